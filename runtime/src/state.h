#pragma once

/// The process's one state, which every Accelerator and loader refers to.

#include <accelerate/loader_control.h>
#include <accelerate/options.h>
#include <accelerate/sharing.h>
#include <torch/types.h>

#include <memory>
#include <optional>
#include <unordered_map>

#include "control.h"
#include "environment.h"
#include "group.h"
#include "models.h"
#include "prepared.h"

namespace accelerate::detail {

/// What a loader has handed out to this rank in its pass over the data.
struct Pass {
  int64_t rows = 0;     // ghosts and padding are among them
  bool filled = false;  // there were such
  bool over = false;    // its loop has ended
};

struct State {
  Environment environment;
  Options options;
  std::unique_ptr<Group> group;  // none alone
  Models models;
  TrainingControl control;
  PreparedObjects prepared;
  int64_t steps = 0;  // calls of backward(), for people who look at a checkpoint
  int wholes = 0;     // calls of whole() around here

  torch::Device device{torch::kCPU};  // what the program asked for last, or would get
  bool device_requested = false;      // nothing is moved before the program asks

  const void* training_loader = nullptr;  // that gave the training batch in hand; none if it's gone
  RowSlice training_slice;                // of that batch
  std::optional<RowSlice> gone_slice;     // of the last training batch, once its loader has gone
  const void* last_loader = nullptr;      // that gave the last batch, for training or not
  RowSlice last_slice;                    // of that batch
  bool last_pass_over = false;            // it was the last of its loop, which has ended
  bool last_is_evaluation = false;        // it was an evaluation loader's, which may have gone

  std::unordered_map<const void*, Pass> passes;  // of the loaders that are there
  int64_t filled_rows = -1;                      // of the latest pass with a ghost or padding

  /// The training loader before that one, if it is another whose loop goes on, and its batch.
  const void* other_loader = nullptr;
  RowSlice other_slice;
  bool alternating = false;                 // they have taken turns
  int64_t handed_out_at = 0, other_at = 0;  // `steps` when they gave these batches

  /// Whether the batch in hand is an evaluation loader's, of which each rank has whole ones: within a loop over it; and
  /// behind one, unless a training loop goes on around it.
  bool evaluating() const;
  /// This rank's part of the batch that means are over; none where ranks count equally.
  const RowSlice* counting_slice() const;

  bool alone() const { return group == nullptr; }
};

/// Made by the first call, from the environment; with other ranks it returns when all have come. Lives
/// until the process ends, and is closed by a handler of exit().
State& state();

/// Whether there is one; asking doesn't make it.
bool state_is_made();

/// The same, with the options of the first call.
State& state(const Options& options);

}  // namespace accelerate::detail
