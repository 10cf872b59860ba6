#pragma once

/// Batches on their way to the device.

#include <accelerate/batch.h>
#include <accelerate/export.h>
#include <torch/types.h>

#include <memory>
#include <optional>

namespace c10 {
struct Event;
class Stream;
}  // namespace c10

namespace accelerate::detail {

/// Moves a loader's batches to the process's device once the loader is prepared: on CUDA from pinned memory, on a
/// stream beside the program's, which only waits for a copy when it is handed out. A loader with workers lets it copy
/// one batch ahead. On the CPU nothing is copied.
class ACCELERATE_API Transfer {
 public:
  Transfer();
  ~Transfer();

  void enable() { enabled_ = true; }

  /// Whether copies run while the program computes.
  bool ahead() const;

  /// Begins to move a batch; finish() makes it usable.
  template <typename Batch>
  std::shared_ptr<c10::Event> start(Batch& batch) {
    if (!begin()) {
      return nullptr;
    }
    try {
      for_each_tensor(batch, [this](torch::Tensor& x) { x = send(x); });
    } catch (...) {
      end();
      throw;
    }
    return end();
  }

  template <typename Batch>
  void finish(Batch& batch, const std::shared_ptr<c10::Event>& copied) {
    if (copied) {
      wait_for(*copied);
      for_each_tensor(batch, [this](torch::Tensor& x) { x = receive(x); });
    }
  }

 private:
  bool begin();
  torch::Tensor send(const torch::Tensor& x) const;
  std::shared_ptr<c10::Event> end();
  void wait_for(const c10::Event& copied) const;
  torch::Tensor receive(const torch::Tensor& x) const;

  bool enabled_ = false;
  std::optional<torch::Device> device_;          // of the batch that is being sent
  std::unique_ptr<c10::Stream> side_, program_;  // on CUDA
};

}  // namespace accelerate::detail
