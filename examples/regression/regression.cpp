#include <torch/torch.h>

#include <cstdlib>
#include <iomanip>
#include <iostream>

int main(int argc, char** argv) {
  const int epochs = argc > 1 ? std::atoi(argv[1]) : 20;
  torch::manual_seed(42);

  // y = 2x + 1, with some noise. The first column is x, the second one y.
  auto x = torch::rand({1000, 1}) * 4 - 2;
  auto y = 2 * x + 1 + 0.1 * torch::randn({1000, 1});
  auto dataset =
      torch::data::datasets::TensorDataset(torch::cat({x, y}, 1))
          .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader(std::move(dataset), 32);

  torch::nn::Linear model(1, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.02);

  std::cout << std::fixed << std::setprecision(6);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double total = 0;
    int batches = 0;
    for (auto& batch : *loader) {
      auto input = batch.data.narrow(1, 0, 1);
      auto target = batch.data.narrow(1, 1, 1);
      auto loss = torch::mse_loss(model(input), target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
      ++batches;
    }
    std::cout << "epoch " << epoch << ": loss " << total / batches << std::endl;
  }

  std::cout << "y = " << model->weight.item<double>() << " x + "
            << model->bias.item<double>() << std::endl;
  torch::save(model, "regression.pt");
}
