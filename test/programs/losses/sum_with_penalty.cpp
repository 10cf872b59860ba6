// A robust regression by hand: the errors of a batch are summed, and the weights are held small by
// a penalty.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

class Measurements : public torch::data::datasets::Dataset<Measurements> {
 public:
  explicit Measurements(int64_t count) {
    torch::manual_seed(21);
    inputs_ = torch::randn({count, 6}, torch::kDouble);
    auto slope = torch::arange(1, 7, torch::kDouble) / 4;
    targets_ = (inputs_ * slope).sum(1, true) + 0.1 * torch::randn({count, 1}, torch::kDouble);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, targets_;
};

int main() {
  const double l1 = 0.02, l2 = 0.1;
  auto loader =
      torch::data::make_data_loader(Measurements(75).map(torch::data::transforms::Stack<>()), 10);

  torch::manual_seed(22);
  torch::nn::Linear line(6, 1);
  line->to(torch::kDouble);
  torch::optim::SGD optimizer(line->parameters(), 0.004);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    double errors = 0, penalties = 0;
    for (auto& batch : *loader) {
      auto difference = line(batch.data) - batch.target;
      auto error = torch::log(torch::cosh(difference)).sum();
      auto penalty =
          l2 * line->weight.pow(2).sum() + l1 * torch::sqrt(line->weight.pow(2) + 1e-6).sum();
      auto loss = error + penalty;
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      errors += error.item<double>();
      penalties += penalty.item<double>();
    }
    std::printf("epoch %d: error %.9f, penalty %.9f, norm %.9f\n", epoch, errors, penalties,
                line->weight.norm().item<double>());
  }
  torch::save(line, "line.pt");
}
