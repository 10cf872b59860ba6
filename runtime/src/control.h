#pragma once

/// Training control: what the options say about it, and where the training stands.

#include <accelerate/options.h>
#include <accelerate/precision.h>
#include <torch/types.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gradients.h"
#include "window.h"

namespace accelerate::detail {

class Group;
struct BackwardArguments;

/// PyTorch's GradScaler: the same numbers, updated between two steps.
class Scaler {
 public:
  /// A step is known by a kind and a number. Another one than last time: the scale is updated for it.
  void begin(const std::pair<int, int64_t>& step);
  /// Another step's number for the one that goes on.
  void go_on(const std::pair<int, int64_t>& step) { step_ = step; }
  double scale() const { return state_.scale; }
  /// The outcome of one of the step's backwards, when its gradients are complete.
  void record(bool overflow);
  bool overflowed() const { return overflowed_; }

  ScalerState state() const;
  void set_state(const ScalerState& state);

 private:
  ScalerState state_{65536, 0};
  std::optional<std::pair<int, int64_t>> step_;
  bool complete_ = false, overflowed_ = false;
};

struct TrainingControl {
  /// Takes the options and the environment. Throws if they make no sense.
  void configure(const Options& options);
  /// Throws on all ranks if their options differ; the first time only. (collective)
  void check_same(Group& group, const DataLoaderConfiguration& dataloader);

  /// Whether gradients need looking after at all; and loaders, which tell where an epoch ends and a step begins.
  bool active() const { return accumulation_steps > 1 || scaler; }
  bool accumulates() const { return accumulation_steps > 1 && window.inside(); }

  /// To be called by each backward(): gradients of one within no_sync() belong into checkpoints.
  void note_no_sync() { within_no_sync = within_no_sync || in_no_sync(); }
  bool in_no_sync() const { return unsynced_all > 0 || !unsynced.empty(); }

  int64_t accumulation_steps = 1;
  std::string precision = "no";
  DistributedDataParallelOptions ddp;
  std::optional<Scaler> scaler;
  Window window;
  Gradients gradients;

  int64_t batch = 0;              // counts the training batches that loaders handed out
  bool last_batch = false;        // the one in hand is its loader's last
  bool shards_join = false;       // there was no backward() since it was sharded: more tensors of it may come
  int64_t accumulated_batch = 0;  // the one that accumulate() has counted last
  int64_t calls = 0;              // of backward()
  double factor = 1;              // of the last backward(): what gradients at its inputs are too large by

  /// Per optimizer step; hand_out() sets it with each training batch. A loader with batches of its own on each rank
  /// takes as many times more samples a step, which a schedule that counts samples has to follow: then this is the
  /// number of ranks.
  int64_t scheduler_steps = 1;

  bool trigger = false;  // set_trigger()
  bool checked = false;
  bool within_no_sync = false;                              // there has been a backward() within no_sync()
  bool unsynced_before = false;                             // a no_sync() has ended since the last backward()
  std::unordered_map<const void*, int64_t> local_sgds;      // that live; State::steps when their models were averaged
  int unsynced_all = 0;                                     // no_sync() for all models
  std::unordered_map<const at::TensorImpl*, int> unsynced;  // and for those of these parameters
};

/// loss.backward() for a loss that counts `coefficient` in this batch and is divided by `normaliser` over a window.
void run_backward(const at::Tensor& loss, double coefficient, int normaliser, const BackwardArguments& arguments);

}  // namespace accelerate::detail
