#pragma once

/// LocalSGD: ranks that train by themselves and average their models now and then.

#include <accelerate/accelerator.h>
#include <accelerate/export.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

namespace accelerate {
namespace detail {

/// Replaces parameters by their mean over the ranks. `local_sgd`: whose they are. (collective)
ACCELERATE_API void average_parameters(const std::vector<torch::Tensor>& parameters, const void* local_sgd);
ACCELERATE_API void begin_local_sgd(const void* local_sgd);
ACCELERATE_API void end_local_sgd(const void* local_sgd);
ACCELERATE_API bool is_averaged(const void* local_sgd);

}  // namespace detail

/// As long as it lives, backward() of `model` sends no gradients; step(), called after each optimizer step, averages
/// its parameters over the ranks every `local_sgd_steps` times, and the destructor does so at the end. Less traffic,
/// but not the single process's training. As in Accelerate, parameters are all that is averaged: what optimizers keep
/// (momentum, Adam's moments) stays each rank's own, and goes on from there. So a checkpoint, which has the main
/// process's optimizers, isn't gone on from bit for bit; save_state() throws where the models aren't averaged().
/// (collective: step(), the end)
///
///   accelerate::LocalSGD local_sgd(accelerator, model, 8);
///   for (auto& batch : *loader) { ...; optimizer.step(); local_sgd.step(); }
class LocalSGD {
 public:
  /// `model`: anything that prepare() takes for a model. `enabled`: false does nothing.
  template <typename Model>
  LocalSGD(const Accelerator&, Model& model, int64_t local_sgd_steps, bool enabled = true)
      : every_(local_sgd_steps), exceptions_(std::uncaught_exceptions()) {
    TORCH_CHECK(local_sgd_steps > 0, "[accelerate] LocalSGD: local_sgd_steps is ", local_sgd_steps,
                ", and must be 1 or more");
    if (enabled && !detail::alone()) {
      detail::Preparation chosen;
      detail::collect(chosen, model);
      parameters_ = detail::parameters_of(chosen);
      no_sync_.emplace(parameters_);
      detail::begin_local_sgd(this);
    }
  }
  ~LocalSGD() noexcept(false) {
    if (!no_sync_) {
      return;
    }
    detail::end_local_sgd(this);
    if (std::uncaught_exceptions() == exceptions_) {
      detail::average_parameters(parameters_, this);
    }
  }
  LocalSGD(const LocalSGD&) = delete;
  LocalSGD& operator=(const LocalSGD&) = delete;

  /// Within a window of accumulate() that goes on: nothing.
  void step() {
    if (no_sync_ && detail::sync_gradients() && ++steps_ % every_ == 0) {
      detail::average_parameters(parameters_, this);
    }
  }

  /// Whether the model is the same on all ranks: there was no backward() since it was averaged. Always true where this
  /// does nothing (alone, `enabled` is false).
  bool averaged() const { return !no_sync_ || detail::is_averaged(this); }

 private:
  const int64_t every_;
  const int exceptions_;
  int64_t steps_ = 0;
  std::vector<torch::Tensor> parameters_;
  std::optional<NoSync> no_sync_;
};

}  // namespace accelerate
