#pragma once

/// Checks that what must be equal on all ranks is.

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace accelerate::detail {

class Group;

/// A tensor's name, shape and type in words, e.g. "fc.weight: float32 [10, 784]".
std::string describe(const std::string& name, const at::Tensor& x);

/// Throws on every rank, with the first difference, unless all ranks call it with equal lines. (collective)
void check_same_on_all(Group& group, const std::string& operation, const std::vector<std::string>& lines);

}  // namespace accelerate::detail
