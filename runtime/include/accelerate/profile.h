#pragma once

#include <accelerate/export.h>

#include <memory>
#include <string>

namespace accelerate {

/// What is recorded (Accelerate: ProfileKwargs). Operators on the CPU always; on CUDA, kernels as well.
struct ProfileOptions {
  /// Where the traces go: profile_0.json for rank 0, and so on; made if it isn't there. The current folder if empty.
  std::string output_trace_dir;
  bool record_shapes = false;   ///< the shapes of operators' inputs
  bool profile_memory = false;  ///< allocations
  bool with_stack = false;      ///< where operators were called; only TorchScript has such places
  bool with_flops = false;      ///< estimates of matrix products and convolutions
};

/// A profile that is being recorded, with LibTorch's own profiler: this thread's operators, and backward's. There can
/// be one at a time. It costs a few microseconds an operator while it lasts, and nothing otherwise.
class ACCELERATE_API Profile {
 public:
  /// Begins. Throws if another profile is being recorded, or the folder can't be made.
  explicit Profile(const ProfileOptions& options = {});
  /// Ends and writes, if stop() hasn't; an error is printed then.
  ~Profile();
  Profile(Profile&& other) noexcept;
  Profile& operator=(Profile&&) = delete;

  /// Ends and writes the trace; throws if it can't be written. Later calls do nothing.
  void stop();
  /// The trace's file.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool active_ = false;
};

}  // namespace accelerate
