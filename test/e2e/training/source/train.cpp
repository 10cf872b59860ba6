#include <torch/torch.h>

#include <fstream>
#include <iomanip>
#include <iostream>

// Reads from the folder that it runs in how often it sees its points.
int main(int argc, char **argv) {
  const std::string settings = argc > 1 ? argv[1] : "settings";
  int epochs = 0;
  std::ifstream(settings + "/epochs.txt") >> epochs;
  if (epochs == 0) {
    std::cerr << "no " << settings << "/epochs.txt here" << std::endl;
    return 1;
  }
  torch::manual_seed(7);
  auto dataset = torch::data::datasets::TensorDataset(torch::randn({60, 4}))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader(std::move(dataset), ROWS);

  torch::nn::Linear model(3, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  std::cout << std::fixed << std::setprecision(6);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (auto &batch : *loader) {
      auto loss = torch::mse_loss(model(batch.data.narrow(1, 0, 3)), batch.data.narrow(1, 3, 1));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      std::cout << "loss " << loss.item<double>() << std::endl;
    }
  }
  torch::save(model, "fit.pt");
}
