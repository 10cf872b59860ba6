#include "schedulers.h"

namespace accelerate::detail {
namespace {

using Plateau = torch::optim::ReduceLROnPlateauScheduler;

struct Steps : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) { return scheduler.*(&Steps::step_count_); }
  static std::vector<double> rates(const torch::optim::LRScheduler& scheduler) {
    return (scheduler.*(&Steps::get_current_lrs))();
  }
};

/// Access to private members: an explicit instantiation may name them, and defines a function that hands them out.
template <typename Tag, typename Tag::Member member>
struct Expose {
  friend typename Tag::Member member_of(Tag) { return member; }
};
struct LastEpoch {
  using Member = int Plateau::*;
  friend Member member_of(LastEpoch);
};
struct BadEpochs {
  using Member = int Plateau::*;
  friend Member member_of(BadEpochs);
};
struct Cooldown {
  using Member = int Plateau::*;
  friend Member member_of(Cooldown);
};
struct Best {
  using Member = float Plateau::*;
  friend Member member_of(Best);
};
template struct Expose<LastEpoch, &Plateau::last_epoch>;
template struct Expose<BadEpochs, &Plateau::num_bad_epochs>;
template struct Expose<Cooldown, &Plateau::cooldown_counter>;
template struct Expose<Best, &Plateau::best>;

}  // namespace

bool is_of(const torch::optim::LRScheduler& scheduler, torch::optim::Optimizer& optimizer) {
  auto& groups = optimizer.param_groups();
  if (groups.empty() || !groups[0].has_options()) {
    return false;
  }
  torch::optim::OptimizerOptions& options = groups[0].options();
  double before = 0;
  try {
    before = options.get_lr();
  } catch (const c10::Error&) {
    return false;  // options of the program's own, without a learning rate
  }
  const auto reads = [&](double rate) {
    options.set_lr(rate);
    const std::vector<double> rates = Steps::rates(scheduler);
    return !rates.empty() && rates[0] == rate;
  };
  const bool result = reads(0.25) && reads(0.5);
  options.set_lr(before);
  return result;
}

SchedulerState save_scheduler(const Scheduler& scheduler) {
  if (scheduler.lr) {
    return {"LRScheduler", {static_cast<int64_t>(Steps::of(*scheduler.lr))}, 0};
  }
  Plateau& plateau = *scheduler.plateau;
  return {"ReduceLROnPlateauScheduler",
          {plateau.*member_of(LastEpoch{}), plateau.*member_of(BadEpochs{}), plateau.*member_of(Cooldown{})},
          plateau.*member_of(Best{})};
}

void load_scheduler(const Scheduler& scheduler, const SchedulerState& state) {
  const SchedulerState now = save_scheduler(scheduler);
  TORCH_CHECK(now.kind == state.kind && now.counters.size() == state.counters.size(),
              "[accelerate] the checkpoint has a ", state.kind, " where the program has prepared a ", now.kind);
  if (scheduler.lr) {
    Steps::of(*scheduler.lr) = static_cast<unsigned>(state.counters[0]);
    return;
  }
  Plateau& plateau = *scheduler.plateau;
  plateau.*member_of(LastEpoch{}) = static_cast<int>(state.counters[0]);
  plateau.*member_of(BadEpochs{}) = static_cast<int>(state.counters[1]);
  plateau.*member_of(Cooldown{}) = static_cast<int>(state.counters[2]);
  plateau.*member_of(Best{}) = state.best;
}

}  // namespace accelerate::detail
