#pragma once

/// What the benchmark trains: models of different shapes, and data in memory. python_training.py has the same.

#include <torch/torch.h>

#include <string>
#include <vector>

namespace bench {

/// A model, its global batch, and what a row of its data is like.
struct Workload {
  torch::nn::Sequential model;
  int64_t batch;
  std::vector<int64_t> row;
  bool tokens = false;  // rows are of numbers below kTokens, not of values
};

constexpr int64_t kTokens = 1000, kClasses = 10;
/// Batches an epoch.
constexpr int64_t kBatches = 100;

struct EncoderImpl : torch::nn::Module {
  EncoderImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(kTokens, 128));
    encoder = register_module(
        "encoder", torch::nn::TransformerEncoder(torch::nn::TransformerEncoderOptions(
                       torch::nn::TransformerEncoderLayerOptions(128, 4).dim_feedforward(256).dropout(0.1), 2)));
    head = register_module("head", torch::nn::Linear(128, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(encoder->forward(embedding(x.transpose(0, 1))).mean(0)); }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::TransformerEncoder encoder{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Encoder);

inline torch::nn::Sequential perceptron(const std::vector<int64_t>& widths) {
  torch::nn::Sequential model;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    model->push_back(torch::nn::Linear(widths[i], widths[i + 1]));
    if (i + 2 < widths.size()) {
      model->push_back(torch::nn::ReLU());
    }
  }
  return model;
}

inline Workload make_workload(const std::string& name) {
  namespace nn = torch::nn;
  if (name == "mlp-small") {
    return {perceptron({64, 128, 128, 64, kClasses}), 64, {64}};
  }
  if (name == "mlp-deep") {
    std::vector<int64_t> widths(42, 64);
    widths.push_back(kClasses);
    return {perceptron(widths), 32, {64}};
  }
  if (name == "cnn") {
    return {nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::ReLU(), nn::MaxPool2d(2),
                           nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)), nn::ReLU(), nn::MaxPool2d(2),
                           nn::Flatten(), nn::Linear(32 * 7 * 7, 64), nn::ReLU(), nn::Linear(64, kClasses)),
            32,
            {1, 28, 28}};
  }
  if (name == "mlp-5m") {
    return {perceptron({1024, 1024, 1024, 1024, 1024, 1024, kClasses}), 32, {1024}};
  }
  if (name == "transformer") {
    return {nn::Sequential(Encoder()), 16, {32}, /*tokens=*/true};
  }
  TORCH_CHECK(false, "there is no model \"", name, "\"");
}

/// An epoch's rows.
class Rows : public torch::data::Dataset<Rows> {
 public:
  explicit Rows(const Workload& workload) {
    std::vector<int64_t> shape{kBatches * workload.batch};
    shape.insert(shape.end(), workload.row.begin(), workload.row.end());
    data_ = workload.tokens ? torch::randint(kTokens, shape, torch::kInt64) : torch::randn(shape);
    target_ = torch::randint(kClasses, {shape[0]}, torch::kInt64);
  }
  torch::data::Example<> get(size_t index) override {
    return {data_[static_cast<int64_t>(index)], target_[static_cast<int64_t>(index)]};
  }
  torch::optional<size_t> size() const override { return static_cast<size_t>(data_.size(0)); }

 private:
  torch::Tensor data_, target_;
};

/// Batches that are there already: what remains is the loader.
class Nothing : public torch::data::datasets::BatchDataset<Nothing, torch::data::Example<>> {
 public:
  torch::data::Example<> get_batch(torch::ArrayRef<size_t>) override { return batch_; }
  torch::optional<size_t> size() const override { return 32 * 1000; }

 private:
  torch::data::Example<> batch_{torch::zeros({32, 4}), torch::zeros({32})};
};

}  // namespace bench
