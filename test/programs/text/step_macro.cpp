// The training step is a macro, so that its backward pass stands in no place that could be edited.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

#define TRAIN_STEP(optimizer, loss) \
  do {                              \
    (optimizer).zero_grad();        \
    (loss).backward();              \
    (optimizer).step();             \
  } while (false)

int main() {
  torch::manual_seed(181);
  auto x = torch::randn({64, 3}, torch::kDouble);
  auto dataset = torch::data::datasets::TensorDataset(torch::cat({x, x.sum(1, true)}, 1))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader(std::move(dataset), 16);
  torch::nn::Linear line(3, 1);
  line->to(torch::kDouble);
  torch::optim::SGD optimizer(line->parameters(), 0.1);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) {
      auto loss = torch::mse_loss(line(batch.data.narrow(1, 0, 3)), batch.data.narrow(1, 3, 1));
      TRAIN_STEP(optimizer, loss);
      std::printf("loss %.9f\n", loss.item<double>());
    }
  }
}
