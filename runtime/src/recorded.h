#pragma once

/// A backward pass as a recorder sees it, if one was loaded (see runtime/recorder).

#include <exception>

#include "../recorder/hooks.h"
#include "state.h"

namespace accelerate::detail {

class RecordedBackward {
 public:
  /// `weight`: how often this rank's loss counts in the global one.
  RecordedBackward(const at::Tensor& loss, const at::Tensor& gradient, double weight) {
    if (!accelerate_recorder_begin_backward) {
      return;
    }
    const State& s = state();
    const bool known = s.training_loader != nullptr;
    accelerate_recorder_begin_backward(loss, gradient, weight,
                                       !known                   ? -1
                                       : s.training_slice.ghost ? 0
                                                                : s.training_slice.rows,
                                       known ? s.training_slice.global_rows : -1);
  }
  ~RecordedBackward() {
    if (accelerate_recorder_end_backward) {
      accelerate_recorder_end_backward(/*completed=*/std::uncaught_exceptions() == exceptions_);
    }
  }
  RecordedBackward(const RecordedBackward&) = delete;
  RecordedBackward& operator=(const RecordedBackward&) = delete;

 private:
  const int exceptions_ = std::uncaught_exceptions();
};

}  // namespace accelerate::detail
