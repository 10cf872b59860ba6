// Batches are moved along the loss's gradient at them before the model learns from them; behind it, what it looks at.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>

using Batch = torch::data::Example<>;

class Rings : public torch::data::datasets::Dataset<Rings> {
 public:
  explicit Rings(int64_t count) {
    torch::manual_seed(41);
    points_ = torch::rand({count, 3}, torch::kDouble) * 2 - 1;
    rings_ = (points_.pow(2).sum(1) * 1.5).to(torch::kLong).clamp(0, 2);
  }
  Batch get(size_t index) override { return {points_[index], rings_[index]}; }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_, rings_;
};

struct NetImpl : torch::nn::Module {
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(3, 24))};
  torch::nn::Linear output{register_module("output", torch::nn::Linear(24, 3))};
  torch::Tensor forward(torch::Tensor x) {
    x = torch::tanh(hidden(x));
    return output(x);
  }
};
TORCH_MODULE(Net);

/// Some steps uphill, within a box around the rows.
torch::Tensor attacked(Net& net, const torch::Tensor& x, const torch::Tensor& y, double size, int steps) {
  auto moved = x.clone();
  for (int step = 0; step < steps; ++step) {
    moved.requires_grad_(true);
    net->zero_grad();
    torch::cross_entropy_loss(net(moved), y).backward();
    const auto gradient = moved.grad().detach();
    moved = moved.detach() + size / steps * gradient / gradient.norm(2, 1, true).clamp_min(1e-12);
    moved = torch::max(torch::min(moved, x + size), x - size).detach();
  }
  return moved;
}

int main() {
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Rings(83).map(torch::data::transforms::Stack<>()), 12);
  auto unseen = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Rings(31).map(torch::data::transforms::Stack<>()), 10);
  torch::manual_seed(42);
  Net net;
  net->to(torch::kDouble);
  torch::optim::SGD optimizer(net->parameters(), 0.4);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    double clean = 0, robust = 0, steepest = 0;
    int64_t rows = 0, right = 0;
    for (auto& batch : *loader) {
      auto x = batch.data.clone().set_requires_grad(true);
      auto loss = torch::cross_entropy_loss(net(x), batch.target);
      optimizer.zero_grad();
      loss.backward();
      auto along = x.grad();
      if (along.abs().max().item<double>() > steepest) steepest = along.abs().max().item<double>();
      auto once = (x + 0.5 * along).detach();
      auto often = attacked(net, batch.data, batch.target, 0.2, 3);
      optimizer.zero_grad();
      auto output = net(torch::cat({once, often}, 1).view({-1, 2, 3}).mean(1));
      auto harder = torch::cross_entropy_loss(output, batch.target);
      harder.backward();
      optimizer.step();
      clean += loss.item<double>() * batch.data.size(0);
      robust += harder.item<double>() * batch.data.size(0);
      right += output.argmax(1).eq(batch.target).sum().item<int64_t>();
      rows += batch.data.size(0);
    }
    std::printf("epoch %d: clean %.9f, robust %.9f, %d of %d right, slope %.9f\n", epoch, clean / rows, robust / rows,
                static_cast<int>(right), static_cast<int>(rows), steepest);
  }
  auto importance = torch::zeros({3}, torch::kDouble);
  for (auto& batch : *unseen) {
    auto x = batch.data.clone();
    x.requires_grad_();
    net->zero_grad();
    net(x).gather(1, batch.target.unsqueeze(1)).sum().backward();
    importance += x.grad().abs().sum(0);
  }
  std::printf("importance %.9f %.9f %.9f\n", importance[0].item<double>(), importance[1].item<double>(),
              importance[2].item<double>());
  torch::save(net, "robust.pt");
}
