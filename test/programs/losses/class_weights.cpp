// Classifies points of unequal classes. Rare classes count more, and points without a label count
// nothing.
#include <torch/torch.h>

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <utility>

constexpr int64_t kClasses = 3, kUnlabelled = 255;

class Points : public torch::data::Dataset<Points> {
 public:
  explicit Points(int64_t count) {
    torch::manual_seed(11);
    points_ = torch::randn({count, 5}, torch::kDouble);
    auto score = points_.select(1, 0) + points_.select(1, 1) * points_.select(1, 2);
    labels_ = (score > 0.5).to(torch::kLong) + (score > 1.6).to(torch::kLong);
    labels_.masked_fill_(torch::rand({count}) < 0.2, kUnlabelled);
  }
  torch::data::Example<> get(size_t index) override { return {points_[index], labels_[index]}; }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_, labels_;
};

int main() {
  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) {
    std::cout << "CUDA is available, training on GPU." << std::endl;
    device = torch::Device(torch::kCUDA);
  }

  auto data = Points(203).map(torch::data::transforms::Stack<>());
  const size_t rows = data.size().value();
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(data), torch::data::DataLoaderOptions().batch_size(24));

  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(5, 16), torch::nn::Tanh(),
                              torch::nn::Linear(16, kClasses));
  model->to(torch::kDouble);
  model->to(device);

  auto weights = torch::tensor({0.4, 1.0, 2.5}, torch::kDouble).to(device);
  torch::nn::CrossEntropyLoss criterion(
      torch::nn::CrossEntropyLossOptions().weight(weights).ignore_index(kUnlabelled));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  std::cout << std::fixed << std::setprecision(9) << rows << " points" << std::endl;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    double sum = 0;
    int batches = 0;
    for (auto& batch : *loader) {
      auto output = model->forward(batch.data.to(device));
      auto loss = criterion(output, batch.target.to(device));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      sum += loss.item<double>();
      if (++batches % 4 == 0)
        std::cout << "  batch " << batches << ": loss " << loss.item<double>() << "\n";
    }
    std::cout << "epoch " << epoch << ": loss " << sum / batches << std::endl;
  }
  torch::save(model, "class_weights.pt");
}
