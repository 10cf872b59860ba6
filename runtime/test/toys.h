#pragma once

/// Small models and data for the tests, and what several of them need.

#include <torch/torch.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace toys {

/// Rows that tell which they are: data is [index, index + 0.5, ...], target is index % 3.
class Numbers : public torch::data::Dataset<Numbers> {
 public:
  explicit Numbers(size_t size, int64_t features = 4) : size_(size), features_(features) {}
  torch::data::Example<> get(size_t index) override {
    const auto i = static_cast<double>(index);
    return {torch::full({features_}, i) + torch::arange(features_) * 0.5,
            torch::tensor(static_cast<int64_t>(index % 3), torch::kInt64)};
  }
  torch::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
  int64_t features_;
};

/// A fixed regression problem.
class Waves : public torch::data::Dataset<Waves> {
 public:
  explicit Waves(size_t size) : size_(size) {}
  torch::data::Example<> get(size_t index) override {
    const auto x = torch::sin(torch::arange(6) * 0.7 + static_cast<double>(index) * 0.31);
    return {x, torch::cos(x.sum()).reshape({1})};
  }
  torch::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
};

inline torch::nn::Sequential perceptron(int64_t in = 6, int64_t out = 1) {
  return torch::nn::Sequential(torch::nn::Linear(in, 8), torch::nn::Tanh(), torch::nn::Linear(8, out));
}

inline double distance(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  double worst = a.size() == b.size() ? 0 : 1e9;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    worst = std::max(worst, (a[i].detach() - b[i].detach()).abs().max().item<double>());
  }
  return worst;
}

/// What the action throws, in words.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace toys
