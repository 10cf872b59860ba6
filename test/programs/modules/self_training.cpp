// A model that trains itself: it makes its own optimizer, and its loops call its own layers.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

class Tones : public torch::data::datasets::Dataset<Tones> {
 public:
  Tones(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    auto frequency = torch::randint(1, 4, {count, 1}, torch::kLong);
    auto phase = torch::rand({count, 1}, torch::kDouble);
    auto at = torch::linspace(0, 1, 24, torch::kDouble).unsqueeze(0);
    tones_ = torch::sin((at * frequency + phase) * 6.28) +
             0.3 * torch::randn({count, 24}, torch::kDouble);
    labels_ = frequency.squeeze(1) - 1;
  }
  torch::data::Example<> get(size_t index) override { return {tones_[index], labels_[index]}; }
  torch::optional<size_t> size() const override { return tones_.size(0); }

 private:
  torch::Tensor tones_, labels_;
};

class Listener : public torch::nn::Module {
 public:
  Listener() {
    register_module("hidden", hidden_);
    register_module("output", output_);
    to(torch::kDouble);
  }

  torch::Tensor forward(const torch::Tensor& tones) { return output_(torch::relu(hidden_(tones))); }

  template <typename Loader>
  void fit(Loader& loader, int epochs, double learning_rate) {
    torch::optim::Adam optimizer(parameters(), torch::optim::AdamOptions(learning_rate));
    train();
    for (int epoch = 1; epoch <= epochs; ++epoch) {
      double total = 0;
      int64_t rows = 0;
      for (auto& batch : loader) {
        zero_grad();
        auto loss = torch::nll_loss(torch::log_softmax(forward(batch.data), 1), batch.target);
        loss.backward();
        optimizer.step();
        total += loss.template item<double>() * batch.data.size(0);
        rows += batch.data.size(0);
      }
      std::printf("epoch %d: loss %.9f\n", epoch, total / rows);
    }
  }

  template <typename Loader>
  double accuracy(Loader& loader) {
    torch::NoGradGuard no_grad;
    eval();
    int64_t correct = 0, rows = 0;
    for (auto& batch : loader) {
      correct += forward(batch.data).argmax(1).eq(batch.target).sum().template item<int64_t>();
      rows += batch.target.size(0);
    }
    return static_cast<double>(correct) / rows;
  }

 private:
  torch::nn::Linear hidden_{24, 20}, output_{20, 3};
};

int main() {
  auto training = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Tones(130, 1).map(torch::data::transforms::Stack<>()), 16);
  auto testing = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Tones(45, 2).map(torch::data::transforms::Stack<>()), 16);
  torch::manual_seed(3);
  auto listener = std::make_shared<Listener>();
  listener->fit(*training, 3, 0.01);
  std::printf("accuracy %.9f\n", listener->accuracy(*testing));
  torch::save(listener, "listener.pt");
}
