#pragma once

/// How a batch's rows are shared out among ranks: the arithmetic, which knows nothing of loaders, and the process's
/// notion of the batch in hand. The parts of the loaders that don't depend on their types are declared here.

#include <accelerate/export.h>
#include <accelerate/options.h>
#include <torch/types.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

namespace accelerate::detail {

/// This rank's part of a step: `rows` of the global batch from `begin` on, the last `padding` of which are there
/// already elsewhere. A ghost is one row of no weight.
struct RowSlice {
  int64_t begin = 0, rows = 0, global_rows = 0;
  bool ghost = false;
  int64_t padding = 0;
};

/// How a loader's batches are shared out.
enum class Sharing {
  rows,     ///< each batch by rows: contiguous slices in rank order, the first ranks get one more
  rounds,   ///< one whole batch for every rank at each step
  batches,  ///< whole batches in turn, each rank at its own pace
};

/// A rank's contiguous slice of a batch.
ACCELERATE_API RowSlice slice_of(int64_t global_rows, int64_t rank, int64_t ranks);
/// The same for this rank.
ACCELERATE_API RowSlice slice_of(int64_t global_rows);

/// A rank's part of a round of whole batches, which stand one after the other in the global batch.
struct RoundPart {
  RowSlice slice;
  int64_t padding_begin = 0;  ///< among the epoch's first rows, which are taken over and over
};

/// `rows`: of the round's batches, at most one for each rank; fewer at the end of an epoch. With `even_batches` every
/// rank gets at least `batch_size` rows.
ACCELERATE_API RoundPart part_of_round(const std::vector<int64_t>& rows, int64_t batch_size, bool even_batches,
                                       int64_t rank, int64_t ranks);

ACCELERATE_API int64_t rank();
ACCELERATE_API int64_t ranks();
ACCELERATE_API const DataLoaderConfiguration& dataloader_configuration();
/// Throws if the fields contradict each other.
ACCELERATE_API void check(const DataLoaderConfiguration& configuration);
/// How a training loader shares its batches: its own policy, else the process's.
ACCELERATE_API Sharing training_sharing(std::optional<BatchPolicy> policy);

/// How many of the original's batches make a step of a loader that isn't an evaluation's.
inline int64_t batches_of_step(Sharing sharing) { return sharing == Sharing::rounds ? ranks() : 1; }

/// This rank's indices of a round of whole batches: the requests for these, which are lists of indices, and the
/// epoch's first round's, joined.
template <typename Index, typename Requests>
std::vector<Index> own_part_of_round(const Requests& requests, const std::vector<Index>& first_rows,
                                     std::size_t batch_size, RowSlice& slice) {
  std::vector<int64_t> rows;
  for (const auto& request : requests) {
    rows.push_back(static_cast<int64_t>(request.size()));
  }
  const RoundPart part =
      part_of_round(rows, static_cast<int64_t>(batch_size), dataloader_configuration().even_batches, rank(), ranks());
  slice = part.slice;
  if (slice.ghost) {
    return {*requests[0].begin()};
  }
  std::vector<Index> indices;
  if (rank() < static_cast<int64_t>(requests.size())) {
    const auto& own = requests[static_cast<std::size_t>(rank())];
    indices.assign(own.begin(), own.end());
  }
  for (int64_t i = part.padding_begin; i < part.padding_begin + slice.padding; ++i) {
    indices.push_back(first_rows[static_cast<std::size_t>(i) % first_rows.size()]);
  }
  return indices;
}

/// Tells the process which batch is in hand now; it's so until the next one, or until its loader goes.
ACCELERATE_API void hand_out(const void* loader, Sharing sharing, const RowSlice& slice);
/// The loop over the loader is over: what is gathered now may be what was collected in it.
ACCELERATE_API void end_pass(const void* loader);
ACCELERATE_API void take_back(const void* loader);
/// Whether training control (accumulation, a loss scale) has to be told of batches where there is one rank, too.
ACCELERATE_API bool batches_count_alone();
/// Whether mark_last_batch() is to be called after hand_out(), for training loaders: accumulation ends windows there.
ACCELERATE_API bool last_batch_matters();
ACCELERATE_API void mark_last_batch(bool last);
/// The device that batches go to; none where they stay.
ACCELERATE_API std::optional<torch::Device> delivery_device();
/// This rank couldn't read its part of a step, which the others don't know of: tells them, so that they end with an
/// error that quotes it, and makes any further operation with them throw. Alone: nothing.
ACCELERATE_API void reading_failed(const std::exception_ptr& error);

/// read(), with that if it throws.
template <typename Read>
auto read_alone(Read read) {
  try {
    return read();
  } catch (...) {
    reading_failed(std::current_exception());
    throw;
  }
}

[[noreturn]] ACCELERATE_API void throw_unshareable(const char* reason);

/// The default CPU generator's state.
ACCELERATE_API torch::Tensor random_state();
ACCELERATE_API void set_random_state(const torch::Tensor& bytes);
/// Gives all ranks the main process's default CPU generator, so that samplers draw alike. (collective)
ACCELERATE_API void agree_on_random_state();

/// Swaps the default CPU generator for this rank's own stream, so that what a data set draws for its rows
/// (augmentation) leaves the common stream alone. Does nothing alone.
class ACCELERATE_API OwnRandomStream {
 public:
  OwnRandomStream();
  ~OwnRandomStream();
  OwnRandomStream(const OwnRandomStream&) = delete;
  OwnRandomStream& operator=(const OwnRandomStream&) = delete;

 private:
  bool active_;
};

}  // namespace accelerate::detail
