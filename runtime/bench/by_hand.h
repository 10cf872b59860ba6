#pragma once

/// Data-parallel training as it is written by hand on c10d, to compare with.

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace bench::by_hand {

/// In place of loss.backward().
using Backward = std::function<void(const torch::Tensor& loss)>;

/// torchrun's variables.
int64_t rank();
int64_t ranks();

/// With c10d's Reducer, which overlaps its all-reduces with the backward pass: the best that there is.
Backward reducer(const std::vector<torch::Tensor>& parameters);

/// Without: one all-reduce a parameter behind the backward pass, as in most published C++ examples.
Backward per_parameter(const std::vector<torch::Tensor>& parameters);

}  // namespace bench::by_hand
