// A line fitted without modules and without an optimizer: two tensors, and an update written by
// hand.
#include <torch/torch.h>

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <utility>

torch::Tensor line(const torch::Tensor& x, const torch::Tensor& w, const torch::Tensor& b) {
  return x.matmul(w) + b;
}

torch::Tensor squared(const torch::Tensor& prediction, const torch::Tensor& y) {
  return (prediction - y.reshape(prediction.sizes())).pow(2) / 2;
}

void sgd(torch::Tensor& parameter, double rate, int64_t batch_size) {
  torch::NoGradGuard no_grad;
  parameter.sub_(rate * parameter.grad() / batch_size);
  parameter.grad().zero_();
}

int main() {
  torch::manual_seed(151);
  auto x = torch::randn({85, 2}, torch::kDouble);
  auto y = x.matmul(torch::tensor({2.0, -3.4}, torch::kDouble)) + 4.2;
  auto w = torch::zeros({2, 1}, torch::dtype(torch::kDouble).requires_grad(true));
  auto b = torch::zeros({1}, torch::dtype(torch::kDouble).requires_grad(true));

  const int64_t batch_size = 10;
  auto dataset = torch::data::datasets::TensorDataset(torch::cat({x, y.unsqueeze(1)}, 1))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(dataset), batch_size);

  std::cout << std::fixed << std::setprecision(9);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (auto& batch : *loader) {
      auto loss = squared(line(batch.data.narrow(1, 0, 2), w, b), batch.data.narrow(1, 2, 1)).sum();
      loss.backward();
      sgd(w, 0.3, batch_size);
      sgd(b, 0.3, batch_size);
    }
    torch::NoGradGuard no_grad;
    std::cout << "epoch " << epoch << ": loss " << squared(line(x, w, b), y).mean().item<double>()
              << std::endl;
  }
  std::cout << w[0].item<double>() << " " << w[1].item<double>() << " " << b.item<double>()
            << std::endl;
  torch::save(torch::cat({w.detach().flatten(), b.detach()}), "line.pt");
}
