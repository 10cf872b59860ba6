#pragma once

/// What sharded loaders have to give, computed without the library.

#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace sharded {

using Rows = std::vector<int64_t>;
using Batches = std::vector<Rows>;

/// A sequential loader's batches.
inline Batches batches_of(int64_t length, int64_t batch, bool drop_last) {
  Batches result;
  for (int64_t begin = 0; begin < length; begin += batch) {
    Rows rows;
    for (int64_t i = begin; i < std::min(begin + batch, length); ++i) {
      rows.push_back(i);
    }
    if (!drop_last || static_cast<int64_t>(rows.size()) == batch) {
      result.push_back(rows);
    }
  }
  return result;
}

/// A rank's batches as Accelerate's BatchSamplerShard gives them (split_batches=False): its algorithm, step by step.
inline Batches accelerates(const Batches& original, int64_t batch_size, bool even, bool drop_last, int64_t rank,
                           int64_t ranks) {
  const auto size = static_cast<size_t>(batch_size);
  Batches result;
  Rows initial, mine, batch;
  int64_t index = -1;
  for (const Rows& next : original) {
    ++index;
    batch = next;
    if (!drop_last && index < ranks) {
      initial.insert(initial.end(), batch.begin(), batch.end());
    }
    if (index % ranks == rank) {
      mine = batch;
    }
    if (index % ranks == ranks - 1 && batch.size() == size) {
      result.push_back(mine);
      mine.clear();
    }
  }
  if (drop_last || initial.empty()) {
    return result;
  }
  if (!even) {
    if (!mine.empty()) {
      result.push_back(mine);
    }
    return result;
  }
  if (mine.size() == size) {
    result.push_back(mine);
  }
  while (static_cast<int64_t>(initial.size()) < ranks * batch_size) {
    const Rows copy = initial;
    initial.insert(initial.end(), copy.begin(), copy.end());
  }
  if (batch.size() == size) {
    batch.clear();
    ++index;
  }
  size_t cycle = 0;
  while (index % ranks != 0 || !batch.empty()) {
    const size_t end = cycle + size - batch.size();
    batch.insert(batch.end(), initial.begin() + static_cast<int64_t>(cycle),
                 initial.begin() + static_cast<int64_t>(end));
    if (index % ranks == rank) {
      result.push_back(batch);
    }
    cycle = end;
    batch.clear();
    ++index;
  }
  return result;
}

/// The rows that toys::Numbers says a batch has.
inline Rows rows_of(const torch::Tensor& data) {
  Rows result;
  for (int64_t i = 0; i < data.size(0); ++i) {
    result.push_back(data[i].reshape({-1})[0].item<int64_t>());
  }
  return result;
}

}  // namespace sharded
