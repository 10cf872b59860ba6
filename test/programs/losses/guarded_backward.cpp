// A second head is trained in steps where the first one errs a lot, and bad steps are passed over.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

class Waves : public torch::data::datasets::Dataset<Waves> {
 public:
  explicit Waves(int64_t count) {
    torch::manual_seed(31);
    inputs_ = torch::rand({count, 2}, torch::kDouble) * 4 - 2;
    targets_ = torch::stack({torch::sin(inputs_.select(1, 0)), torch::cos(inputs_.sum(1))}, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, targets_;
};

struct TwoHeadsImpl : torch::nn::Module {
  torch::nn::Linear trunk{register_module("trunk", torch::nn::Linear(2, 16))};
  torch::nn::Linear sine{register_module("sine", torch::nn::Linear(16, 1))};
  torch::nn::Linear cosine{register_module("cosine", torch::nn::Linear(16, 1))};
};
TORCH_MODULE(TwoHeads);

int main() {
  auto loader =
      torch::data::make_data_loader(Waves(86).map(torch::data::transforms::Stack<>()), 14);
  torch::manual_seed(32);
  TwoHeads net;
  net->to(torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.02));
  const double limit = 0.15;
  int extra = 0, skipped = 0;
  for (int epoch = 1; epoch <= 5; ++epoch) {
    double total = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto hidden = torch::tanh(net->trunk(batch.data));
      auto first = torch::mse_loss(net->sine(hidden), batch.target.narrow(1, 0, 1));
      if (!std::isfinite(first.item<double>()) || first.item<double>() < 0.01) {
        ++skipped;
        continue;
      }
      first.backward({}, /*retain_graph=*/true);
      if (first.item<double>() > limit) {
        auto second = torch::mse_loss(net->cosine(hidden), batch.target.narrow(1, 1, 1));
        (0.5 * second).backward();
        ++extra;
      }
      optimizer.step();
      total += first.item<double>();
    }
    std::printf("epoch %d: total loss %.9f, %d extra, %d skipped\n", epoch, total, extra, skipped);
  }
  torch::save(net, "two_heads.pt");
}
