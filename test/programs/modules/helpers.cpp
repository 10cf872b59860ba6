// Settings with defaults beside their members, the optimizer made by a helper, everything held by a
// struct.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

class Lines : public torch::data::datasets::Dataset<Lines> {
 public:
  explicit Lines(int64_t count) {
    torch::manual_seed(91);
    x_ = torch::randn({count, 3}, torch::kDouble);
    y_ = x_.matmul(torch::tensor({{1.5}, {-2.0}, {0.5}}, torch::kDouble)) + 0.7;
  }
  torch::data::Example<> get(size_t index) override { return {x_[index], y_[index]}; }
  torch::optional<size_t> size() const override { return x_.size(0); }

 private:
  torch::Tensor x_, y_;
};

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        torch::nn::Module& model,
                                                        double learning_rate) {
  if (name == "adam") {
    return std::make_unique<torch::optim::Adam>(model.parameters(),
                                                torch::optim::AdamOptions(learning_rate));
  }
  return std::make_unique<torch::optim::SGD>(model.parameters(),
                                             torch::optim::SGDOptions(learning_rate));
}

struct Experiment {
  std::shared_ptr<torch::nn::LinearImpl> model = std::make_shared<torch::nn::LinearImpl>(3, 1);
  torch::optim::SGD optimizer{model->parameters(),
                              torch::optim::SGDOptions(rate).momentum(momentum)};
  static constexpr double rate = 0.05, momentum = 0.5;
  double total = 0;
  int64_t rows = 0;
};

int main(int argc, char** argv) {
  auto loader =
      torch::data::make_data_loader(Lines(67).map(torch::data::transforms::Stack<>()), 12);
  torch::manual_seed(92);

  auto net = std::make_shared<torch::nn::LinearImpl>(3, 1);
  net->to(torch::kDouble);
  auto optimizer = make_optimizer(argc > 1 ? argv[1] : "adam", *net, 0.1);
  Experiment experiment;
  experiment.model->to(torch::kDouble);

  for (int epoch = 1; epoch <= 3; ++epoch) {
    double total = 0;
    experiment.total = 0;
    experiment.rows = 0;
    for (auto& batch : *loader) {
      auto loss = torch::l1_loss(net->forward(batch.data), batch.target);
      optimizer->zero_grad();
      loss.backward();
      optimizer->step();
      total += loss.item<double>();

      auto second = torch::mse_loss(experiment.model->forward(batch.data), batch.target);
      experiment.optimizer.zero_grad();
      second.backward();
      experiment.optimizer.step();
      experiment.total += second.item<double>() * batch.data.size(0);
      experiment.rows += batch.data.size(0);
    }
    std::printf("epoch %d: total loss %.9f, second loss %.9f\n", epoch, total,
                experiment.total / experiment.rows);
  }
  torch::save(net, "helpers.pt");
  torch::save(experiment.model, "experiment.pt");
}
