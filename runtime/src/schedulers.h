#pragma once

/// The state of LibTorch's learning-rate schedulers, which can't save themselves.

#include <accelerate/prepare.h>

#include <cstdint>
#include <string>
#include <vector>

namespace accelerate::detail {

/// What changes when a scheduler steps; the learning rates are the optimizer's. A scheduler of the program's own class
/// has its number of steps here, and whatever else it keeps is the program's to register.
struct SchedulerState {
  std::string kind;               // of which base class
  std::vector<int64_t> counters;  // steps; or the last epoch, bad epochs and the cool-down's
  float best = 0;                 // ReduceLROnPlateau's best metric
};

/// Whether a scheduler is this optimizer's; both have to be alive. It refers to one, and tells nobody to which.
bool is_of(const torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer);

SchedulerState save_scheduler(const Scheduler& scheduler);
/// Throws if the state is of the other kind.
void load_scheduler(const Scheduler& scheduler, const SchedulerState& state);

}  // namespace accelerate::detail
