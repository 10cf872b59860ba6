#pragma once

#include <torch/torch.h>

namespace curves {

struct ModelImpl : torch::nn::Module {
  explicit ModelImpl(int64_t width);
  torch::Tensor forward(const torch::Tensor& x);

  torch::nn::Linear first, second;
};
TORCH_MODULE(Model);

// Points in [-1, 1] and the heights of a curve there, one row each.
torch::Tensor sample(int64_t count, uint64_t seed);

}  // namespace curves
