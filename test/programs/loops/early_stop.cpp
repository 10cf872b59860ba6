// Goes on where the last run stopped, keeps the best model, and stops when there is no progress.
#include <torch/torch.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>
#include <utility>

class Hills : public torch::data::datasets::Dataset<Hills> {
 public:
  Hills(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    at_ = torch::rand({count, 2}, torch::kDouble) * 2 - 1;
    heights_ =
        torch::exp(-at_.pow(2).sum(1, true)) + 0.1 * torch::randn({count, 1}, torch::kDouble);
  }
  torch::data::Example<> get(size_t index) override { return {at_[index], heights_[index]}; }
  torch::optional<size_t> size() const override { return at_.size(0); }

 private:
  torch::Tensor at_, heights_;
};

int main() {
  const std::string folder = "checkpoints", progress = folder + "/progress.txt";
  std::filesystem::create_directories(folder);
  auto training = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Hills(66, 1).map(torch::data::transforms::Stack<>()), 10);
  auto validation = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Hills(31, 2).map(torch::data::transforms::Stack<>()), 10);

  torch::manual_seed(121);
  torch::nn::Sequential net(torch::nn::Linear(2, 24), torch::nn::Tanh(), torch::nn::Linear(24, 1));
  net->to(torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.05));

  int first = 1;
  double best = std::numeric_limits<double>::infinity();
  if (std::filesystem::exists(progress)) {
    torch::load(net, folder + "/last.pt");
    torch::load(optimizer, folder + "/optimizer.pt");
    std::ifstream in(progress);
    in >> first >> best;
    ++first;
    std::cout << "going on at epoch " << first << std::endl;
  }

  std::cout << std::fixed << std::setprecision(9);
  int patience = 2;
  for (int epoch = first; epoch < first + 6; ++epoch) {
    double train_loss = 0;
    int batches = 0;
    for (auto& batch : *training) {
      auto loss = torch::mse_loss(net->forward(batch.data), batch.target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      train_loss += loss.item<double>();
      ++batches;
    }

    double loss = 0;
    int64_t rows = 0;
    {
      torch::NoGradGuard no_grad;
      for (auto& batch : *validation) {
        loss += torch::mse_loss(net->forward(batch.data), batch.target, torch::Reduction::Sum)
                    .item<double>();
        rows += batch.data.size(0);
      }
    }
    loss /= rows;
    std::cout << "epoch " << epoch << ": loss " << train_loss / batches << ", validation " << loss
              << std::endl;

    if (loss < best) {
      best = loss;
      patience = 2;
      torch::save(net, folder + "/best.pt");
    } else if (--patience == 0) {
      std::cout << "no progress" << std::endl;
      break;
    }
    torch::save(net, folder + "/last.pt");
    torch::save(optimizer, folder + "/optimizer.pt");
    std::ofstream out(progress);
    out << epoch << " " << std::setprecision(17) << best << "\n";
  }
  std::cout << "best " << best << std::endl;
}
