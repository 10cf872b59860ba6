#include "curves/training.h"

#include <utility>

namespace curves {

std::vector<double> train(Model& model, torch::Tensor data, const Settings& settings) {
  auto dataset = torch::data::datasets::TensorDataset(std::move(data))
                     .map(torch::data::transforms::Stack<torch::data::TensorExample>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(dataset), settings.batch_size);
  torch::optim::Adam optimizer(model->parameters(),
                               torch::optim::AdamOptions(settings.learning_rate));

  std::vector<double> losses;
  for (int64_t epoch = 0; epoch < settings.epochs; ++epoch) {
    double total = 0;
    int64_t rows = 0;
    for (auto& batch : *loader) {
      auto loss = torch::mse_loss(model(batch.data.narrow(1, 0, 1)), batch.data.narrow(1, 1, 1));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * batch.data.size(0);
      rows += batch.data.size(0);
    }
    losses.push_back(total / rows);
  }
  return losses;
}

double evaluate(Model& model, const torch::Tensor& data) {
  torch::NoGradGuard no_grad;
  return torch::mse_loss(model(data.narrow(1, 0, 1)), data.narrow(1, 1, 1)).item<double>();
}

}  // namespace curves
