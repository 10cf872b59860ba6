#include <ATen/autocast_mode.h>
#include <accelerate/precision.h>
#include <torch/nn/utils/clip_grad.h>

#include "state.h"

namespace accelerate {

Autocast::Autocast() : device_(torch::kCPU), active_(detail::state().control.precision != "no") {
  if (!active_) {
    return;
  }
  const detail::State& s = detail::state();
  device_ = s.device_requested ? s.device.type() : torch::kCPU;
  before_enabled_ = at::autocast::is_autocast_enabled(device_);
  before_type_ = at::autocast::get_autocast_dtype(device_);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_, s.control.precision == "fp16" ? torch::kHalf : torch::kBFloat16);
}

Autocast::~Autocast() {
  if (!active_) {
    return;
  }
  if (at::autocast::decrement_nesting() == 0) {
    at::autocast::clear_cache();
  }
  at::autocast::set_autocast_enabled(device_, before_enabled_);
  at::autocast::set_autocast_dtype(device_, before_type_);
}

namespace detail {

std::string mixed_precision() { return state().control.precision; }

bool optimizer_step_was_skipped() {
  const auto& scaler = state().control.scaler;
  return scaler && scaler->overflowed();
}

double clip_grad_norm(const std::vector<torch::Tensor>& parameters, double max_norm, double norm_type) {
  return torch::nn::utils::clip_grad_norm_(parameters, max_norm, norm_type);
}

void clip_grad_value(const std::vector<torch::Tensor>& parameters, double clip_value) {
  torch::nn::utils::clip_grad_value_(parameters, clip_value);
}

ScalerState scaler_state() {
  const auto& scaler = state().control.scaler;
  return scaler ? scaler->state() : ScalerState{};
}

void set_scaler_state(const ScalerState& scaler_state) {
  if (auto& scaler = state().control.scaler) {
    scaler->set_state(scaler_state);
  }
}

}  // namespace detail
}  // namespace accelerate
