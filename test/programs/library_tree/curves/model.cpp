#include "curves/model.h"

namespace curves {

ModelImpl::ModelImpl(int64_t width) : first(1, width), second(width, 1) {
  register_module("first", first);
  register_module("second", second);
  to(torch::kDouble);
}

torch::Tensor ModelImpl::forward(const torch::Tensor& x) { return second(torch::tanh(first(x))); }

torch::Tensor sample(int64_t count, uint64_t seed) {
  torch::manual_seed(seed);
  auto x = torch::rand({count, 1}, torch::kDouble) * 2 - 1;
  return torch::cat({x, torch::sin(3 * x) + 0.05 * torch::randn({count, 1}, torch::kDouble)}, 1);
}

}  // namespace curves
