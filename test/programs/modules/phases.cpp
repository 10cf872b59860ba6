// First the head is trained over frozen features, then everything, by an optimizer that is made
// anew.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

class Points : public torch::data::datasets::Dataset<Points> {
 public:
  explicit Points(int64_t count) {
    torch::manual_seed(71);
    points_ = torch::randn({count, 4}, torch::kDouble);
    labels_ = (points_.select(1, 0) * points_.select(1, 3) > 0).to(torch::kLong);
  }
  torch::data::Example<> get(size_t index) override { return {points_[index], labels_[index]}; }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_, labels_;
};

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return head(torch::tanh(features->forward(x))); }
  torch::nn::Sequential features{
      register_module("features", torch::nn::Sequential(torch::nn::Linear(4, 12), torch::nn::Tanh(),
                                                        torch::nn::Linear(12, 12)))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(12, 2))};
};
TORCH_MODULE(Net);

void set_trainable(torch::nn::Module& module, bool trainable) {
  for (auto& parameter : module.parameters()) parameter.set_requires_grad(trainable);
}

int main() {
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Points(118).map(torch::data::transforms::Stack<>()), 16);
  torch::manual_seed(72);
  Net net;
  net->to(torch::kDouble);
  net->to(device);

  for (int phase = 0; phase < 3; ++phase) {
    const bool whole = phase > 0;
    set_trainable(*net->features, whole);
    std::vector<torch::Tensor> trained;
    for (const auto& parameter : net->parameters()) {
      if (parameter.requires_grad()) trained.push_back(parameter);
    }
    torch::optim::SGD optimizer(trained,
                                torch::optim::SGDOptions(whole ? 0.05 : 0.2).momentum(0.9));

    for (int epoch = 0; epoch < 2; ++epoch) {
      int64_t correct = 0, rows = 0;
      double total = 0;
      for (auto& batch : *loader) {
        auto data = batch.data.to(device), target = batch.target.to(device);
        optimizer.zero_grad();
        auto output = net(data);
        auto loss = torch::cross_entropy_loss(output, target);
        loss.backward();
        optimizer.step();
        total += loss.item<double>() * data.size(0);
        correct += output.argmax(1).eq(target).sum().item<int64_t>();
        rows += data.size(0);
      }
      std::printf("phase %d, epoch %d: %zu tensors trained, loss %.9f, %d right\n", phase, epoch,
                  trained.size(), total / rows, static_cast<int>(correct));
    }
  }
  torch::save(net, "phases.pt");
}
