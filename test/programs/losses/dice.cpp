// Marks the bumps of curves. The loss is Dice's: an overlap divided by a size, here over all points
// of a batch, so that its denominator depends on the model and on every curve.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

// Sums of two waves; the mask says where they are high.
class Curves : public torch::data::datasets::Dataset<Curves> {
 public:
  Curves(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    auto at = torch::linspace(0, 6, 32, torch::kDouble).view({1, 1, 32});
    auto phase = torch::rand({count, 1, 1}, torch::kDouble) * 6;
    auto noise = torch::randn({count, 1, 32}, torch::kDouble) * 0.2;
    auto clean = torch::sin(at + phase) + 0.5 * torch::sin(3 * at - phase);
    curves_ = clean + noise;
    masks_ = (clean > 0.6).to(torch::kDouble);
  }
  torch::data::Example<> get(size_t index) override { return {curves_[index], masks_[index]}; }
  torch::optional<size_t> size() const override { return curves_.size(0); }

 private:
  torch::Tensor curves_, masks_;
};

torch::Tensor dice_loss(const torch::Tensor& probability, const torch::Tensor& mask) {
  const double smooth = 1.0;
  auto overlap = (probability * mask).sum();
  return 1 - (2 * overlap + smooth) / (probability.sum() + mask.sum() + smooth);
}

int main() {
  auto loader =
      torch::data::make_data_loader(Curves(61, 1).map(torch::data::transforms::Stack<>()), 12);

  torch::manual_seed(2);
  torch::nn::Sequential net(
      torch::nn::Conv1d(torch::nn::Conv1dOptions(1, 6, 5).padding(2)), torch::nn::Tanh(),
      torch::nn::Conv1d(torch::nn::Conv1dOptions(6, 1, 5).padding(2)), torch::nn::Sigmoid());
  net->to(torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.02));
  for (int epoch = 1; epoch <= 3; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = dice_loss(net->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      std::printf("epoch %d: loss %.9f\n", epoch, loss.item<double>());
    }
  }
  torch::save(net, "dice.pt");
}
