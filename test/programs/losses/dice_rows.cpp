// Marks the bumps of curves. Dice's loss is computed for each curve, then averaged; crossed with an
// ordinary loss.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

class Curves : public torch::data::datasets::Dataset<Curves> {
 public:
  Curves(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    auto at = torch::linspace(0, 6, 32, torch::kDouble).view({1, 1, 32});
    auto phase = torch::rand({count, 1, 1}, torch::kDouble) * 6;
    auto clean = torch::sin(at + phase) + 0.5 * torch::sin(3 * at - phase);
    curves_ = clean + torch::randn({count, 1, 32}, torch::kDouble) * 0.2;
    masks_ = (clean > 0.6).to(torch::kDouble);
  }
  torch::data::Example<> get(size_t index) override { return {curves_[index], masks_[index]}; }
  torch::optional<size_t> size() const override { return curves_.size(0); }

 private:
  torch::Tensor curves_, masks_;
};

// One number for each curve.
torch::Tensor dice(const torch::Tensor& probability, const torch::Tensor& mask) {
  auto p = probability.flatten(1), m = mask.flatten(1);
  return (2 * (p * m).sum(1) + 1) / (p.sum(1) + m.sum(1) + 1);
}

int main() {
  auto training =
      torch::data::make_data_loader(Curves(61, 1).map(torch::data::transforms::Stack<>()), 12);
  auto validation = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Curves(29, 2).map(torch::data::transforms::Stack<>()), 8);

  torch::manual_seed(3);
  torch::nn::Sequential net(torch::nn::Conv1d(torch::nn::Conv1dOptions(1, 6, 5).padding(2)),
                            torch::nn::Tanh(),
                            torch::nn::Conv1d(torch::nn::Conv1dOptions(6, 1, 5).padding(2)));
  net->to(torch::kDouble);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(0.02));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double total = 0;
    for (auto& batch : *training) {
      auto logits = net->forward(batch.data);
      auto crossed = torch::binary_cross_entropy_with_logits(logits, batch.target);
      auto loss = 0.5 * crossed + 0.5 * (1 - dice(torch::sigmoid(logits), batch.target).mean());
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * batch.data.size(0);
    }

    torch::NoGradGuard no_grad;
    double overlap = 0;
    int64_t curves = 0;
    for (auto& batch : *validation) {
      auto probability = torch::sigmoid(net->forward(batch.data));
      overlap += dice((probability > 0.5).to(torch::kDouble), batch.target).sum().item<double>();
      curves += batch.data.size(0);
    }
    std::printf("epoch %d: loss %.9f, dice %.9f\n", epoch, total / 61, overlap / curves);
  }
  torch::save(net, "dice_rows.pt");
}
