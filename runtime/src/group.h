#pragma once

/// The ranks of the job and what they say to each other: c10d's process group and store, with errors that
/// name the rank, the operation and who is missing.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "environment.h"

namespace accelerate::detail {

class Group {
 public:
  /// Meets the other ranks. `cuda`: also prepare for CUDA tensors, of the current device.
  Group(const Environment& environment, bool cuda);
  ~Group();

  /// In place, over all ranks; `what` names the thing in errors. Tensors must be contiguous and equal in
  /// shape on all ranks.
  void sum(at::Tensor& x, const std::string& what);
  void maximum(at::Tensor& x, const std::string& what);
  void broadcast(at::Tensor& x, int64_t root, const std::string& what);
  void broadcast_many(const std::vector<at::Tensor>& tensors, int64_t root, const std::string& what);
  /// One tensor of each rank, in rank order.
  std::vector<at::Tensor> gather(const at::Tensor& x, const std::string& what);

  /// With ACCELERATE_DEBUG_MODE: throws on all ranks unless they are about to do the same with equal shapes, which they
  /// tell each other first. The functions above do so by themselves. (collective)
  void compare(const std::function<std::vector<std::string>()>& lines);

  /// Runs something that communicates, with the errors of the above.
  void guard(const std::string& operation, const std::function<void()>& run);

  /// Throws if there can be no such operation any more, since an earlier one failed, or this rank has withdrawn.
  void require(const std::string& operation) const;

  /// This rank can't do what the others are about to do, for a reason of its own that they can't know. Tells them, and
  /// closes its connections, so that their operations end with an error that quotes it.
  void withdraw(const std::string& reason);

  /// Throws what guard() throws, for an error that was caught elsewhere.
  [[noreturn]] void fail(const std::string& operation, const std::exception& error, int64_t seconds);

  /// The end of this process with that exit status: says so to the others, waits a moment for them to come here as
  /// well, then leaves. If it failed it doesn't wait. Never throws.
  void leave(int status);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  /// What is known of the other ranks after a failure with them; no operation is possible after it.
  std::string explanation();
  /// For an exception that nobody catches.
  std::string last_words(const std::string& message);
  /// For an operation that doesn't come back, whatever its own timeout says. Ends the process.
  [[noreturn]] void overdue(const std::string& operation);

  std::unique_ptr<Impl> impl_;
};

}  // namespace accelerate::detail
