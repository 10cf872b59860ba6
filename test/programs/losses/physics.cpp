// Solves u'' + u = 0 by a network: the residual at random points, with derivatives by
// autograd::grad, and the values at both ends, which are the same in every step.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

class Inner : public torch::data::datasets::Dataset<Inner> {
 public:
  explicit Inner(int64_t count) : points_(torch::rand({count, 1}, torch::kDouble) * M_PI) {}
  torch::data::Example<> get(size_t index) override {
    return {points_[index], torch::sin(points_[index])};
  }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_;
};

struct SolutionImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) {
    return third(torch::tanh(second(torch::tanh(first(x)))));
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(1, 12))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(12, 12))};
  torch::nn::Linear third{register_module("third", torch::nn::Linear(12, 1))};
};
TORCH_MODULE(Solution);

torch::Tensor derivative(const torch::Tensor& of, const torch::Tensor& at) {
  return torch::autograd::grad({of}, {at}, {torch::ones_like(of)}, /*retain_graph=*/true,
                               /*create_graph=*/true)[0];
}

int main() {
  torch::manual_seed(8);
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  Solution u;
  u->to(torch::kDouble);
  u->to(device);
  auto loader =
      torch::data::make_data_loader(Inner(70).map(torch::data::transforms::Stack<>()), 16);
  torch::optim::Adam optimizer(u->parameters(), torch::optim::AdamOptions(0.01));

  auto ends = torch::tensor({0.0, M_PI / 2}, torch::kDouble).view({2, 1}).to(device);
  auto values = torch::tensor({0.0, 1.0}, torch::kDouble).view({2, 1}).to(device);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    double residuals = 0, worst = 0;
    int64_t points = 0;
    for (auto& batch : *loader) {
      auto x = batch.data.to(device).requires_grad_(true);
      auto y = u(x);
      auto residual = derivative(derivative(y, x), x) + y;
      auto inner = residual.pow(2).mean();
      auto boundary = torch::mse_loss(u(ends), values);
      auto loss = inner + 10 * boundary;
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      residuals += inner.item<double>() * x.size(0);
      points += x.size(0);
      worst = std::max(worst, (y - batch.target.to(device)).abs().max().item<double>());
    }
    std::printf("epoch %d: loss of the residual %.9f, largest error %.9f\n", epoch,
                residuals / points, worst);
  }
  torch::save(u, "solution.pt");
}
