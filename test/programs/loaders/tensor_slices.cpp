// Fits a surface with batches that are cut out of a tensor by hand: a new permutation each epoch,
// its parts as indices.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>

int main() {
  torch::manual_seed(4);
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

  const int64_t rows = 107, batch_size = 16;
  auto inputs = torch::rand({rows, 3}, torch::kDouble) * 2 - 1;
  auto targets =
      (inputs.select(1, 0) * inputs.select(1, 1) + inputs.select(1, 2).sin()).unsqueeze(1);
  inputs = inputs.to(device);
  targets = targets.to(device);

  torch::nn::Sequential net(torch::nn::Linear(3, 12), torch::nn::Tanh(), torch::nn::Linear(12, 1));
  net->to(device, torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));

  for (int epoch = 0; epoch < 4; ++epoch) {
    auto order = torch::randperm(rows, torch::kLong).to(device);
    double total = 0;
    for (int64_t start = 0; start < rows; start += batch_size) {
      const int64_t end = std::min(start + batch_size, rows);
      auto indices = order.slice(0, start, end);
      auto x = inputs.index_select(0, indices);
      auto y = targets.index_select(0, indices);

      optimizer.zero_grad();
      auto loss = torch::mse_loss(net->forward(x), y);
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * x.size(0);
    }
    std::printf("epoch %d: loss %.9f\n", epoch, total / rows);
  }

  torch::NoGradGuard no_grad;
  auto error = (net->forward(inputs) - targets).abs().max().item<double>();
  std::printf("largest error %.9f\n", error);
  torch::save(net, "surface.pt");
}
