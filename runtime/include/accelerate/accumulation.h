#pragma once

/// Accelerator::accumulate() and no_sync(): several batches for one optimizer step.

#include <accelerate/export.h>
#include <torch/types.h>

#include <vector>

namespace accelerate {

/// One batch's part in a window of gradient accumulation; it lasts for the body of the loop. See
/// Accelerator::accumulate().
class ACCELERATE_API Accumulation {
 public:
  Accumulation();
  ~Accumulation();
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;
};

/// As long as it lives, gradients stay on this rank. See Accelerator::no_sync().
class ACCELERATE_API NoSync {
 public:
  /// For the models of these parameters; without any, for all models.
  explicit NoSync(std::vector<torch::Tensor> parameters);
  ~NoSync();
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;

 private:
  std::vector<torch::Tensor> parameters_;
};

namespace detail {

ACCELERATE_API bool sync_gradients();

}  // namespace detail
}  // namespace accelerate
