#pragma once

/// Work that is divided among processes, or done by one of them first.

#include <accelerate/batch.h>
#include <accelerate/export.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate {

/// As long as it lives on the processes that go first, the others wait to make theirs. See
/// Accelerator::main_process_first().
class ACCELERATE_API ProcessFirst {
 public:
  /// `first`: whether this process goes first. (collective)
  explicit ProcessFirst(bool first);
  ~ProcessFirst() noexcept(false);
  ProcessFirst(const ProcessFirst&) = delete;
  ProcessFirst& operator=(const ProcessFirst&) = delete;

 private:
  const bool first_;
  const int exceptions_;
};

namespace detail {

/// Calls `action` on the main process, and returns on all when it has; if it throws, throws on all.
ACCELERATE_API void once(const std::function<void()>& action);
ACCELERATE_API void set_trigger();
ACCELERATE_API bool check_trigger();
ACCELERATE_API torch::Tensor pad_across_processes(const torch::Tensor& x, int64_t dim, const torch::Scalar& pad_index,
                                                  bool pad_first);
/// Pads several tensors in place, each to the longest of its own; those without such a dimension stay. (collective)
ACCELERATE_API void pad_tensors(const std::vector<torch::Tensor*>& tensors, int64_t dim, const torch::Scalar& pad_index,
                                bool pad_first);

template <typename Value>
Value pad(const Value& value, int64_t dim, const torch::Scalar& pad_index, bool pad_first) {
  if constexpr (std::is_base_of_v<torch::Tensor, Value>) {
    return pad_across_processes(value, dim, pad_index, pad_first);
  } else {
    Value result(value);
    std::vector<torch::Tensor*> tensors;
    for_each_tensor(result, [&](torch::Tensor& x) { tensors.push_back(&x); });
    pad_tensors(tensors, dim, pad_index, pad_first);
    return result;
  }
}

/// How often a scheduler is to step after the backward in hand.
ACCELERATE_API int64_t scheduler_steps();

/// This rank's part of `length` elements.
struct Part {
  int64_t begin = 0, size = 0;
  int64_t padding = 0;  // copies of the last element behind it
};
ACCELERATE_API Part part_of(int64_t length, bool apply_padding);
ACCELERATE_API torch::Tensor split_tensor(const torch::Tensor& whole, bool apply_padding);
[[noreturn]] ACCELERATE_API void throw_unequal_lengths(int64_t a, int64_t b);

template <typename Container>
int64_t length_of(const Container& whole) {
  if constexpr (std::is_base_of_v<torch::Tensor, Container>) {
    return whole.size(0);
  } else {
    return static_cast<int64_t>(whole.size());
  }
}

template <typename Container>
Container split(const Container& whole, bool apply_padding) {
  if constexpr (std::is_base_of_v<torch::Tensor, Container>) {
    return split_tensor(whole, apply_padding);
  } else if constexpr (is_map<Container>) {
    Container result;
    for (const auto& [key, values] : whole) {
      if (const int64_t a = length_of(whole.begin()->second), b = length_of(values); a != b) {
        throw_unequal_lengths(a, b);
      }
      result.emplace(key, split(values, apply_padding));
    }
    return result;
  } else {
    const Part part = part_of(length_of(whole), apply_padding);
    auto begin = whole.begin();
    std::advance(begin, part.begin);
    auto end = begin;
    std::advance(end, part.size);
    Container result(begin, end);
    for (int64_t i = 0; i < part.padding; ++i) {
      result.insert(result.end(), *std::prev(whole.end()));
    }
    return result;
  }
}

}  // namespace detail
}  // namespace accelerate
