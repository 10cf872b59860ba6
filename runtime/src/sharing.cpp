#include <accelerate/opaque.h>
#include <accelerate/sharing.h>

#include <algorithm>
#include <utility>

#include "outcome.h"
#include "state.h"

namespace accelerate::detail {

RowSlice slice_of(int64_t global_rows, int64_t rank, int64_t ranks) {
  const int64_t each = global_rows / ranks, longer = global_rows % ranks;
  RowSlice slice;
  slice.global_rows = global_rows;
  slice.begin = rank * each + std::min(rank, longer);
  slice.rows = each + (rank < longer ? 1 : 0);
  if (slice.rows == 0) {
    slice = RowSlice{0, 1, global_rows, true};
  }
  return slice;
}

RowSlice slice_of(int64_t global_rows) { return slice_of(global_rows, rank(), ranks()); }

RoundPart part_of_round(const std::vector<int64_t>& rows, int64_t batch_size, bool even_batches, int64_t rank,
                        int64_t ranks) {
  RoundPart part;
  for (int64_t other = 0; other < ranks; ++other) {
    const int64_t real = other < static_cast<int64_t>(rows.size()) ? rows[static_cast<size_t>(other)] : 0;
    const int64_t padding = even_batches ? std::max<int64_t>(0, batch_size - real) : 0;
    if (other < rank) {
      part.slice.begin += real + padding;
      part.padding_begin += padding;
    } else if (other == rank) {
      part.slice.rows = real + padding;
      part.slice.padding = padding;
    }
    part.slice.global_rows += real + padding;
  }
  if (part.slice.rows == 0) {
    part.slice = RowSlice{0, 1, part.slice.global_rows, true};
  }
  return part;
}

const DataLoaderConfiguration& dataloader_configuration() { return state().options.dataloader; }

void check(const DataLoaderConfiguration& configuration) {
  TORCH_CHECK(!(configuration.split_batches.value_or(false) && configuration.batch_policy == BatchPolicy::PerProcess),
              "[accelerate] DataLoaderConfiguration: split_batches = true is BatchPolicy::Global, but batch_policy is "
              "BatchPolicy::PerProcess; set one of them");
}

Sharing training_sharing(std::optional<BatchPolicy> policy) {
  const DataLoaderConfiguration& configuration = dataloader_configuration();
  if (!policy) {
    policy = configuration.split_batches.value_or(true) ? configuration.batch_policy : BatchPolicy::PerProcess;
  }
  // One rank's batches are the original's in either way, and there is nobody to be even with.
  return *policy == BatchPolicy::Global || ranks() == 1 ? Sharing::rows : Sharing::rounds;
}

bool State::evaluating() const {
  if (!last_is_evaluation) {
    return false;
  }
  if (!training_loader || (last_loader && !last_pass_over)) {
    return true;
  }
  const auto training = passes.find(training_loader);
  return training != passes.end() && training->second.over;
}

const RowSlice* State::counting_slice() const {
  if (evaluating()) {
    return nullptr;
  }
  return training_loader ? &training_slice : gone_slice ? &*gone_slice : nullptr;
}

namespace {

/// Remembers what a pass comes to, and which training loaders take turns.
void note_pass(State& s, const void* loader, Sharing sharing, const RowSlice& slice) {
  Pass& pass = s.passes[loader];
  if (pass.over) {
    pass = Pass{};
  }
  pass.rows += slice.rows;
  pass.filled = pass.filled || slice.ghost || slice.padding > 0;
  if (pass.filled) {
    s.filled_rows = pass.rows;
  }
  if (sharing == Sharing::batches) {
    return;
  }
  if (s.training_loader && s.training_loader != loader && !s.passes[s.training_loader].over) {
    s.alternating = s.alternating || s.other_loader == loader;
    s.other_loader = s.training_loader;
    s.other_slice = s.training_slice;
    s.other_at = s.handed_out_at;
  }
  s.handed_out_at = s.steps;
}

void forget_turns(State& s, const void* loader) {
  if (s.training_loader == loader || s.other_loader == loader) {
    s.other_loader = nullptr;
    s.alternating = false;
  }
}

}  // namespace

void hand_out(const void* loader, Sharing sharing, const RowSlice& slice) {
  State& s = state();
  if (!s.alone()) {
    note_pass(s, loader, sharing, slice);
    if (sharing != Sharing::batches) {
      s.models.watch_gradients(s.steps);
    }
  }
  s.last_loader = loader;
  s.last_slice = slice;
  s.last_pass_over = false;
  s.last_is_evaluation = sharing == Sharing::batches;
  if (!s.last_is_evaluation) {
    s.training_loader = loader;
    s.training_slice = slice;
    s.gone_slice.reset();
    ++s.control.batch;
    s.control.last_batch = false;
    // A step of whole batches from every rank is as many of the original's.
    s.control.scheduler_steps = sharing == Sharing::rounds ? ranks() : 1;
  }
}

bool batches_count_alone() { return state().control.active(); }

bool last_batch_matters() { return state().control.accumulation_steps > 1; }

void mark_last_batch(bool last) { state().control.last_batch = last; }

void hand_out_shard(const RowSlice& slice, bool last) {
  static const char batch_of_the_program = 0;  // which never goes
  State& s = state();
  TrainingControl& control = s.control;
  // What accumulate() has counted and let go of is over, whether or not it had a backward().
  const bool over = control.accumulated_batch == control.batch && !control.window.inside();
  if (control.shards_join && !over && s.training_loader == &batch_of_the_program &&
      s.training_slice.global_rows == slice.global_rows) {
    s.last_loader = &batch_of_the_program;  // an evaluation loader's batch may have come in between
    s.last_slice = slice;
    s.last_pass_over = false;
    s.last_is_evaluation = false;
    control.last_batch = control.last_batch || last;
    return;
  }
  hand_out(&batch_of_the_program, Sharing::rows, slice);
  mark_last_batch(last);
  if (last && !s.alone()) {
    s.passes[&batch_of_the_program].over = true;
  }
  control.shards_join = true;
}

void end_pass(const void* loader) {
  State& s = state();
  if (s.last_loader != loader) {  // it had no batch for this rank, or a loop within the last step had some
    s.last_loader = loader;
    s.last_slice = RowSlice{};
    s.last_is_evaluation = s.training_loader != loader;
  }
  s.last_pass_over = true;
  s.passes[loader].over = true;
  forget_turns(s, loader);
}

void take_back(const void* loader) {
  State& s = state();
  s.passes.erase(loader);
  forget_turns(s, loader);
  if (s.last_loader == loader) {
    s.last_loader = nullptr;
    s.last_slice = RowSlice{};
    s.last_pass_over = false;
  }
  if (s.training_loader == loader) {
    s.training_loader = nullptr;
    s.gone_slice = std::exchange(s.training_slice, RowSlice{});
  }
}

std::optional<torch::Device> delivery_device() {
  const State& s = state();
  return s.device_requested ? std::optional(s.device) : std::nullopt;
}

void reading_failed(const std::exception_ptr& error) {
  State& s = state();
  if (!s.alone()) {
    s.models.begin_anew();  // reducers keep connections open
    s.group->withdraw("it couldn't read a batch: " + text_of(error));
  }
}

void throw_unshareable(const char* reason) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(),
              ": this loader can't be shared out among ranks: ", reason);
}

}  // namespace accelerate::detail
