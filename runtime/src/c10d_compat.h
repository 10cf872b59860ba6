#pragma once

/// The differences between LibTorch releases in what we use of c10d. Only this file knows of them.

#include <algorithm>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace accelerate::detail {

struct ReducerArguments {
  std::vector<at::Tensor> parameters;
  std::vector<std::vector<size_t>> buckets;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::vector<bool> sparse;
  bool find_unused;
  int64_t bucket_bytes;
  std::unordered_map<size_t, std::string> names;
};

/// The first bucket is small, so that its all-reduce begins early.
inline int64_t first_bucket_bytes(int64_t bucket_bytes) {
  return std::min<int64_t>(bucket_bytes, c10d::kDefaultFirstBucketBytes);
}

/// The constructor changed in 2.8, 2.11 and 2.12; a template, so that only the one that exists is compiled.
template <typename Reducer = c10d::Reducer>
std::shared_ptr<Reducer> make_reducer(ReducerArguments a) {
  using Params = std::vector<at::Tensor>;
  using Buckets = std::vector<std::vector<size_t>>;
  using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
  using Sparse = std::vector<bool>;
  using Names = std::unordered_map<size_t, std::string>;
  using Caps = std::vector<int64_t>;
  const int64_t cap = a.bucket_bytes, first_cap = first_bucket_bytes(cap);
  // Gradients are copied to and from the buckets: as views of them, Optimizer::zero_grad() couldn't detach them.
  constexpr bool kViews = false;
  if constexpr (std::is_constructible_v<Reducer, Params, Buckets, Group, Sparse, int64_t, bool, bool, Names, int64_t,
                                        bool, bool, Caps>) {
    return std::make_shared<Reducer>(std::move(a.parameters), std::move(a.buckets), std::move(a.group),
                                     std::move(a.sparse), cap, a.find_unused, kViews, std::move(a.names), first_cap,
                                     false, false, Caps{});
  } else if constexpr (std::is_constructible_v<Reducer, Params, Buckets, Group, Sparse, int64_t, bool, bool, Names,
                                               int64_t, bool, bool>) {
    return std::make_shared<Reducer>(std::move(a.parameters), std::move(a.buckets), std::move(a.group),
                                     std::move(a.sparse), cap, a.find_unused, kViews, std::move(a.names), first_cap,
                                     false, false);
  } else {
    std::vector<size_t> limits(a.buckets.size(), static_cast<size_t>(cap));
    return std::make_shared<Reducer>(std::move(a.parameters), std::move(a.buckets), std::move(limits),
                                     std::move(a.group), std::move(a.sparse), cap, a.find_unused, kViews,
                                     std::move(a.names), first_cap);
  }
}

}  // namespace accelerate::detail
