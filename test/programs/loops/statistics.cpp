// What steps add up in tensors, computed with behind them: recalls, a confusion matrix, the columns' spread.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>

class Blobs : public torch::data::datasets::Dataset<Blobs> {
 public:
  explicit Blobs(int64_t count) {
    torch::manual_seed(51);
    classes_ = torch::randint(0, 3, {count}, torch::kLong);
    points_ = torch::randn({count, 4}, torch::kDouble) + classes_.unsqueeze(1).to(torch::kDouble);
  }
  torch::data::Example<> get(size_t index) override { return {points_[index], classes_[index]}; }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_, classes_;
};

void show(const char* name, const torch::Tensor& values) {
  std::printf("%s", name);
  for (int64_t i = 0; i < values.numel(); ++i) std::printf(" %.9f", values.flatten()[i].item<double>());
  std::printf("\n");
}

int main() {
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Blobs(61).map(torch::data::transforms::Stack<>()), 10);
  torch::manual_seed(52);
  torch::nn::Linear net(4, 3);
  net->to(torch::kDouble);
  torch::optim::SGD optimizer(net->parameters(), 0.2);
  auto errors = torch::zeros({3}, torch::kDouble), ever = torch::zeros({3}, torch::kDouble);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    auto hits = torch::zeros({3}, torch::kDouble), seen = torch::zeros({3}, torch::kDouble);
    auto confusion = torch::zeros({3, 3}, torch::kDouble);
    auto sum = torch::zeros({4}, torch::kDouble), products = torch::zeros({4, 4}, torch::kDouble);
    int64_t rows = 0;
    for (auto& batch : *loader) {
      auto output = net(batch.data);
      auto each = torch::nn::functional::cross_entropy(
          output, batch.target, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
      optimizer.zero_grad();
      each.mean().backward();
      optimizer.step();
      auto p = torch::one_hot(output.argmax(1), 3).to(torch::kDouble);
      auto t = torch::one_hot(batch.target, 3).to(torch::kDouble);
      hits += (p * t).sum(0);
      seen += t.sum(0);
      confusion += t.t().mm(p);
      sum += batch.data.sum(0);
      products += batch.data.t().mm(batch.data);
      rows += batch.data.size(0);
      errors.index_add_(0, batch.target, each.detach());
      ever.index_add_(0, batch.target, torch::ones_like(each));
    }
    std::printf("epoch %d, %d rows\n", epoch, static_cast<int>(rows));
    show("recall", hits / seen.clamp_min(1));
    show("confusion", confusion / confusion.sum(1, true));
    auto mean = sum / rows;
    auto covariance = products / rows - torch::outer(mean, mean);
    show("spread", torch::sqrt(covariance.diag()));
    show("errors", errors / ever);
    std::printf("f1 %.9f\n", (2 * hits / (seen + confusion.sum(0))).mean().item<double>());
  }
  torch::save(net, "blobs.pt");
}
