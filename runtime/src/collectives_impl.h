#pragma once

/// What collectives with a gradient share with those that have none.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace accelerate::detail {

struct RowSlice;

/// reduce_tensors() with the name of the function that the user called, for errors. (collective)
void sum_tensors(std::vector<at::Tensor>& tensors, const std::string& name);

/// All ranks' rows, and which of them are this rank's.
struct GatheredRows {
  at::Tensor rows;
  int64_t begin = 0, count = 0;
};

/// `dropped`: the batch that x has the rows of, if its ghost or padding is to be left out (they lie behind the other
/// rows). `unclear`: nobody knows which of this rank's rows are to be left out, which is an error on all ranks. Fresh,
/// without a gradient. (collective)
GatheredRows gather_rows(const at::Tensor& x, const RowSlice* dropped, const std::string& name, bool unclear = false);

/// Zero in x's shape, for a ghost's part. Selected, not multiplied: a statistic of a single row may be not-a-number.
/// The graph stays, so that all ranks reach the same parameters.
at::Tensor nothing_of(const at::Tensor& x);

}  // namespace accelerate::detail
