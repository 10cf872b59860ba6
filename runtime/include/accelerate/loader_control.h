#pragma once

/// What the library needs of a loader.

#include <accelerate/export.h>

#include <cstdint>
#include <vector>

namespace torch::serialize {
class InputArchive;
class OutputArchive;
}  // namespace torch::serialize

namespace accelerate::detail {

/// A loader that was made by accelerate::make_data_loader, or was shared out by prepare().
class ACCELERATE_API LoaderControl {
 public:
  LoaderControl() = default;
  LoaderControl(const LoaderControl&) = delete;
  LoaderControl& operator=(const LoaderControl&) = delete;
  virtual ~LoaderControl();

  /// From now on batches arrive on the process's device.
  virtual void deliver_to_device() = 0;

  /// The next pass leaves its first `steps` out, without reading them.
  virtual void skip_next(int64_t steps) = 0;

  /// Writes where the loader stands: in which pass, after how many of the original's batches, and the sampler's state;
  /// nothing of it depends on the rank. Between the steps of a pass, or between passes.
  virtual void save_position(torch::serialize::OutputArchive& archive) const = 0;

  /// Makes the next begin() go on from there: with the rest of that pass, without drawing anything, or with the next
  /// pass if that one had been read to its end. Also on another number of ranks.
  virtual void load_position(torch::serialize::InputArchive& archive) = 0;

  /// Throws what load_position() would, and changes nothing.
  virtual void check_position(torch::serialize::InputArchive& archive) const = 0;
};

/// The loaders that were prepared and are alive, in the order of their preparation, which is the same on all ranks.
ACCELERATE_API const std::vector<LoaderControl*>& prepared_loaders();

/// For loaders of torch::data, whose samplers can't be reached.
[[noreturn]] ACCELERATE_API void throw_no_position();

}  // namespace accelerate::detail
