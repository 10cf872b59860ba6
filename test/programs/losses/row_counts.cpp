// Counts by loops over the rows of training batches: hits for each class, a table of confusions,
// the worst row.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

constexpr int64_t kClasses = 3;

class Points : public torch::data::datasets::Dataset<Points> {
 public:
  explicit Points(int64_t count) {
    torch::manual_seed(41);
    points_ = torch::randn({count, 3}, torch::kDouble);
    auto score = points_.select(1, 0) * points_.select(1, 1);
    labels_ = (score > -0.2).to(torch::kLong) + (score > 0.3).to(torch::kLong);
  }
  torch::data::Example<> get(size_t index) override { return {points_[index], labels_[index]}; }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_, labels_;
};

int main() {
  auto loader =
      torch::data::make_data_loader(Points(91).map(torch::data::transforms::Stack<>()), 15);
  torch::manual_seed(42);
  torch::nn::Sequential net(torch::nn::Linear(3, 16), torch::nn::Tanh(),
                            torch::nn::Linear(16, kClasses));
  net->to(torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.02));

  for (int epoch = 1; epoch <= 3; ++epoch) {
    int64_t correct = 0, seen = 0;
    double worst = 0, sum = 0;
    std::vector<int64_t> hits(kClasses, 0), totals(kClasses, 0);
    for (auto& batch : *loader) {
      auto output = net->forward(batch.data);
      auto loss = torch::cross_entropy_loss(output, batch.target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();

      auto each = torch::cross_entropy_loss(output, batch.target, {}, at::Reduction::None);
      auto predicted = output.argmax(1);
      for (int64_t i = 0; i < batch.target.size(0); ++i) {
        const auto label = batch.target[i].item<int64_t>();
        ++totals[label];
        if (predicted[i].item<int64_t>() == label) {
          ++hits[label];
          ++correct;
        }
        const double row = each[i].item<double>();
        sum += row;
        worst = std::max(worst, row);
        ++seen;
      }
    }
    std::printf("epoch %d: mean loss %.9f, worst %.9f, %d of %d right\n", epoch, sum / seen, worst,
                static_cast<int>(correct), static_cast<int>(seen));
    for (int64_t c = 0; c < kClasses; ++c) {
      std::printf("  class %d: %d of %d\n", static_cast<int>(c), static_cast<int>(hits[c]),
                  static_cast<int>(totals[c]));
    }
  }
  torch::save(net, "row_counts.pt");
}
