#include <accelerate/accumulation.h>

#include "state.h"

namespace accelerate {

Accumulation::Accumulation() {
  detail::State& s = detail::state();
  detail::TrainingControl& control = s.control;
  TORCH_CHECK(!control.window.inside(), "[accelerate] rank ", detail::rank(), " of ", detail::ranks(),
              ": accumulate() was called while the result of another call was alive; let it end with the loop's body");
  const bool loader = s.training_loader != nullptr;
  if (control.accumulation_steps > 1) {
    TORCH_CHECK(!loader || control.accumulated_batch != control.batch, "[accelerate] rank ", detail::rank(), " of ",
                detail::ranks(),
                ": accumulate() was called twice for one batch of a loader; call it once a batch, around all that is "
                "done with it");
    if (control.window.sync()) {
      control.gradients.check_empty();
    }
  }
  control.accumulated_batch = control.batch;
  control.window.enter(control.accumulation_steps, loader ? s.training_slice.global_rows : 1,
                       loader && control.last_batch);
}

Accumulation::~Accumulation() { detail::state().control.window.leave(); }

NoSync::NoSync(std::vector<torch::Tensor> parameters) : parameters_(std::move(parameters)) {
  detail::TrainingControl& control = detail::state().control;
  if (parameters_.empty()) {
    ++control.unsynced_all;
  }
  for (const torch::Tensor& parameter : parameters_) {
    ++control.unsynced[parameter.unsafeGetTensorImpl()];
  }
}

NoSync::~NoSync() {
  detail::TrainingControl& control = detail::state().control;
  control.unsynced_before = true;
  if (parameters_.empty()) {
    --control.unsynced_all;
  }
  for (const torch::Tensor& parameter : parameters_) {
    const auto it = control.unsynced.find(parameter.unsafeGetTensorImpl());
    if (it != control.unsynced.end() && --it->second == 0) {
      control.unsynced.erase(it);
    }
  }
}

bool detail::sync_gradients() { return state().control.window.sync(); }

}  // namespace accelerate
