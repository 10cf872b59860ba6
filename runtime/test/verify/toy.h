#pragma once

/// What the program before and behind its migration have in common.

#include <torch/torch.h>

#include <string>

/// y = a nonlinear function of x, 100 rows: with batches of 12 the last has 4.
struct Rows : torch::data::datasets::Dataset<Rows> {
  Rows()
      : x(torch::rand({100, 8}) * 2 - 1), y(torch::tanh(x.sum(1, /*keepdim=*/true)) + 0.1 * torch::randn({100, 1})) {}
  torch::data::Example<> get(size_t i) override { return {x[static_cast<int64_t>(i)], y[static_cast<int64_t>(i)]}; }
  torch::optional<size_t> size() const override { return x.size(0); }
  torch::Tensor x, y;
};

constexpr int64_t kBatch = 12;
constexpr int64_t kTrainRows = 100;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    hidden = register_module("hidden", torch::nn::Linear(8, 16));
    mean_input = register_buffer("mean_input", torch::zeros({8}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::tanh(hidden(x)); }
  torch::nn::Linear hidden{nullptr};
  torch::Tensor mean_input;  // of the batches seen, the last ones more
};
TORCH_MODULE(Net);

inline torch::Tensor squares(const torch::nn::Module& module) {
  torch::Tensor sum = torch::zeros({});
  for (const auto& parameter : module.parameters()) {
    sum = sum + parameter.pow(2).sum();
  }
  return sum;
}

/// How the program computes its loss, by its first argument: mean, sum, penalty, windows or clip.
using Scenario = std::string;
