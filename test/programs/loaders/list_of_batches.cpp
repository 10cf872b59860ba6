// All batches are made before the training and kept in a vector, whose order is shuffled each
// epoch.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>
#include <vector>

using Batch = std::pair<torch::Tensor, torch::Tensor>;

std::vector<Batch> make_batches(const torch::Tensor& inputs, const torch::Tensor& targets,
                                int64_t batch_size) {
  std::vector<Batch> batches;
  const auto input_parts = inputs.split(batch_size), target_parts = targets.split(batch_size);
  for (size_t i = 0; i < input_parts.size(); ++i)
    batches.emplace_back(input_parts[i], target_parts[i]);
  return batches;
}

int main() {
  torch::manual_seed(6);
  auto inputs = torch::randn({77, 4}, torch::kDouble);
  auto targets = torch::tanh(inputs.sum(1, true)) - inputs.narrow(1, 1, 1);
  auto batches = make_batches(inputs, targets, 12);

  torch::nn::Sequential net(torch::nn::Linear(4, 10), torch::nn::Tanh(), torch::nn::Linear(10, 1));
  net->to(torch::kDouble);
  torch::optim::RMSprop optimizer(net->parameters(), torch::optim::RMSpropOptions(0.005));
  std::mt19937 engine(3);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    std::shuffle(batches.begin(), batches.end(), engine);
    double total = 0;
    for (const auto& [x, y] : batches) {
      auto loss = torch::smooth_l1_loss(net->forward(x), y);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
    }
    std::printf("epoch %d: loss %.9f\n", epoch, total / batches.size());
  }
  torch::save(net, "list.pt");
}
