// Layers that a loop runs one behind the other, a recurrent layer whose state is made in front of the
// loader's loop and carried from batch to batch, a parameter of the module's own whose gradient is
// printed; batches scaled by their least and largest and by their deviation; sums of a step that a
// class adds up for an epoch and for all of them, and the classes that were seen.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <tuple>
#include <vector>

constexpr int64_t kBatch = 8, kHidden = 5, kClasses = 4;

class Series : public torch::data::datasets::Dataset<Series> {
 public:
  Series() {
    torch::manual_seed(611);
    values_ = torch::randn({40, 6, 3}, torch::kDouble);
    labels_ = (torch::arange(40) * 7 % 11).clamp_max(kClasses - 1);
  }
  torch::data::Example<> get(size_t index) override {
    return {values_[static_cast<int64_t>(index)], labels_[static_cast<int64_t>(index)]};
  }
  torch::optional<size_t> size() const override { return values_.size(0); }

 private:
  torch::Tensor values_, labels_;
};

class NetImpl : public torch::nn::Module {
 public:
  NetImpl() {
    scale = register_parameter("scale", torch::ones({3}, torch::kDouble));
    gru = register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(3, kHidden).batch_first(true)));
    layers = register_module("layers", torch::nn::Sequential(torch::nn::Flatten(), torch::nn::Linear(6 * kHidden, 8),
                                                             torch::nn::Tanh(), torch::nn::Linear(8, kClasses)));
    to(torch::kDouble);
  }
  void begin(int64_t rows) { state_ = torch::zeros({1, rows, kHidden}, torch::kDouble); }
  torch::Tensor forward(const torch::Tensor& series) {
    auto [x, next] = gru->forward(series * scale, state_);
    state_ = next.detach();
    for (auto& layer : *layers) {
      x = layer.forward(x);
    }
    return x;
  }

  torch::Tensor scale;

 private:
  torch::nn::GRU gru{nullptr};
  torch::nn::Sequential layers{nullptr};
  torch::Tensor state_;
};
TORCH_MODULE(Net);

struct Stats {
  double loss = 0;
  int64_t hits = 0, rows = 0;
  Stats& operator+=(const Stats& other) {
    loss += other.loss;
    hits += other.hits;
    rows += other.rows;
    return *this;
  }
};

Stats step(Net& net, torch::optim::Optimizer& optimizer, const torch::data::Example<>& batch) {
  const auto least = batch.data.min(), most = batch.data.max();
  auto inputs = (batch.data - least) / (most - least);
  inputs = inputs / batch.data.std({0}).clamp_min(0.1);
  optimizer.zero_grad();
  auto output = net(inputs);
  auto loss = torch::nn::functional::cross_entropy(output, batch.target);
  loss.backward();
  optimizer.step();
  Stats now;
  now.loss = loss.item<double>() * static_cast<double>(batch.data.size(0));
  now.hits = output.argmax(1).eq(batch.target).sum().item<int64_t>();
  now.rows = batch.data.size(0);
  return now;
}

int main() {
  torch::manual_seed(612);
  Net net;
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Series().map(torch::data::transforms::Stack<>()), kBatch);
  torch::optim::SGD optimizer(net->parameters(), 0.2);
  Stats all;
  for (int epoch = 0; epoch < 3; ++epoch) {
    net->begin(kBatch);
    Stats stats;
    std::vector<bool> seen(kClasses);
    for (auto& batch : *loader) {
      stats += step(net, optimizer, batch);
      for (int64_t i = 0; i < batch.target.size(0); ++i) {
        seen[batch.target[i].item<int64_t>()] = true;
      }
    }
    all += stats;
    int classes = 0;
    for (const bool one : seen) classes += one;
    std::printf("epoch %d loss %.6f accuracy %.4f classes %d gradient %.6f\n", epoch, stats.loss / stats.rows,
                double(stats.hits) / stats.rows, classes, net->scale.grad().norm().item<double>());
  }
  std::printf("loss %.6f\n", all.loss / all.rows);
  torch::save(net, "walked.pt");
}
