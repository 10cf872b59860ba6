#pragma once

/// What libaccelerate tells a recorder that was loaded before it. Without one these functions are absent: their
/// addresses are null, and the library does nothing.

#include <ATen/core/Tensor.h>

#include <cstdint>

#define ACCELERATE_RECORDER_HOOK extern "C" __attribute__((weak, visibility("default")))

/// A backward pass of the library begins. This rank's `loss` (times `gradient`, if defined) counts `weight` times in
/// the global loss: the sum of that product over the ranks is what the single process would have computed. `rows` is
/// this rank's share of the batch in hand (none of a ghost), `global_rows` the batch; -1 if no loader of the library
/// gave it.
ACCELERATE_RECORDER_HOOK void accelerate_recorder_begin_backward(const at::Tensor& loss, const at::Tensor& gradient,
                                                                 double weight, int64_t rows, int64_t global_rows);

/// It has ended, and gradients are what optimizers will see; `completed` is false if it threw.
ACCELERATE_RECORDER_HOOK void accelerate_recorder_end_backward(bool completed);

/// What a prepared model calls a parameter or buffer.
ACCELERATE_RECORDER_HOOK void accelerate_recorder_name(const at::Tensor& tensor, const char* name);
