#pragma once

/// Kinds of mistakes and how they look in the numbers.

#include <map>
#include <string>
#include <vector>

#include "recording.h"
#include "result.h"

namespace accelerate::launch {

/// What is known where gradients or losses begin to differ.
struct Evidence {
  int ranks = 1;
  std::size_t steps_before = 0;      // that agree
  bool loss_agrees = false;          // the step's losses do, so its rows, draws and weights do
  bool plain_backward = false;       // LibTorch's backward() was called where the library's should be
  bool buffers_change = false;       // the forward pass writes to buffers: batch statistics
  double loss_ratio = 0;             // migrated / original
  double previous_share = 0;         // the difference one step before, as a part of this one
  const Prints* original = nullptr;  // gradients; may be null
  const Prints* migrated = nullptr;
  const Prints* values = nullptr;  // the parameters then
};

Explanation ExplainTraining(const Evidence& evidence);

/// A number in the output that became `ratio` times what it was.
Explanation ExplainNumber(double ratio, int ranks);

/// The factor between two sets of tensors, if there is a common one; 0 if not.
double CommonFactor(const Prints& original, const Prints& migrated);

/// Whether the difference of the two is a multiple of `values`: of the gradient of their squares' sum.
bool IsPenalty(const Prints& original, const Prints& migrated, const Prints& values);

}  // namespace accelerate::launch
