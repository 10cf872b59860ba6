#pragma once

/// find_executable_batch_size().

#include <accelerate/export.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>

namespace accelerate {
namespace detail {

/// Whether an error says that memory ran out: of a device, or of the host.
ACCELERATE_API bool out_of_memory(const std::exception& error);
/// Whether that was so on any rank. (collective)
ACCELERATE_API bool out_of_memory_on_any(bool here);
ACCELERATE_API int64_t smaller_batch_size(int64_t batch_size);

/// What there was before an attempt, and a clean slate for the next: its window of accumulate() and the gradients kept
/// for it, the step of the loss scale, and what it registered for checkpointing are forgotten.
class ACCELERATE_API Attempt {
 public:
  Attempt();
  void undo() const;

 private:
  std::size_t registered_;
  int64_t steps_;
};

}  // namespace detail

/// Calls `function(batch_size)` with `starting_batch_size`, and again with 9/10 of the size (rounded down) each time
/// that memory runs out, on any rank; returns its result. Throws when the size is 0. What the function made must be
/// gone when it ends by an exception: make model, optimizer and loader in it. (LibTorch's CUDA allocator has given back
/// what it could before it fails.) What an attempt leaves behind in this library goes before the next: an open window
/// of accumulate(), what it registered for checkpointing, models that have ended. (collective)
///
/// With other ranks, a rank that runs out alone while the others are in a collective can't be waited for: the job ends
/// with the group's timeout. Equal devices with equal batches run out together.
template <typename Function>
auto find_executable_batch_size(Function&& function, int64_t starting_batch_size = 128) {
  using Result = std::invoke_result_t<Function&, int64_t>;
  const detail::Attempt attempt;
  for (int64_t size = starting_batch_size;; size = detail::smaller_batch_size(size)) {
    if (size != starting_batch_size) {
      attempt.undo();
    }
    TORCH_CHECK(size > 0, "[accelerate] find_executable_batch_size(): no batch size fits into memory, down from ",
                starting_batch_size);
    try {
      if constexpr (std::is_void_v<Result>) {
        function(size);
        if (!detail::out_of_memory_on_any(false)) {
          return;
        }
      } else {
        Result result = function(size);
        if (!detail::out_of_memory_on_any(false)) {
          return result;
        }
      }
      continue;
    } catch (const std::exception& error) {
      if (!detail::out_of_memory(error)) {
        throw;
      }
    }
    detail::out_of_memory_on_any(true);
  }
}

}  // namespace accelerate
