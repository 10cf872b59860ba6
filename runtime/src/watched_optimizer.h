#pragma once

#include <torch/optim/optimizer.h>

#include <memory>

namespace accelerate::detail {

/// Something that lives as long as the optimizer does, for those who must not own it: LibTorch's optimizers tell
/// nobody when they end, and what has an address may be dead. Null for an optimizer of a class that isn't LibTorch's.
std::shared_ptr<void> watch(torch::optim::Optimizer& optimizer);

}  // namespace accelerate::detail
