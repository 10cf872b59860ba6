#pragma once

/// What is kept of a tensor's values: enough to tell whether two are the same bits, and how far apart they are if not.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace accelerate::recorder {

struct Fingerprint {
  uint64_t hash = 0;  // of the bytes, in the order of indices
  double norm = 0;    // the root of the sum of squares, computed in double

  /// Sums of the elements under signs that depend on their index alone. For two tensors of one shape, the mean square
  /// of the differences of these sums estimates the square of the distance between the tensors, to within a factor of
  /// two or so (the sketch of Alon, Matias and Szegedy): a permutation or a flipped sign is seen, which norms don't
  /// show.
  std::array<double, 8> sketch{};
};

/// Reads the tensor on whatever device it is, and leaves no trace in it: no draw, no graph, no version.
Fingerprint fingerprint(const at::Tensor& tensor);

}  // namespace accelerate::recorder
