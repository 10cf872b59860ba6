#pragma once

/// Mixed precision and clipping: Accelerator::autocast(), clip_grad_norm_(), clip_grad_value_().

#include <accelerate/export.h>
#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace accelerate {

/// As long as it lives, the operations of this thread that gain from it compute in the precision of the options; as
/// torch.autocast in Python. See Accelerator::autocast().
class ACCELERATE_API Autocast {
 public:
  Autocast();
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool active_, before_enabled_ = false;
  torch::ScalarType before_type_ = torch::kFloat;
};

namespace detail {

ACCELERATE_API std::string mixed_precision();
ACCELERATE_API bool optimizer_step_was_skipped();
ACCELERATE_API double clip_grad_norm(const std::vector<torch::Tensor>& parameters, double max_norm, double norm_type);
ACCELERATE_API void clip_grad_value(const std::vector<torch::Tensor>& parameters, double clip_value);

/// The loss scale of "fp16", for checkpoints.
struct ScalerState {
  double scale = 1;
  int64_t growth_tracker = 0;  // steps without an overflow since the scale changed
};
ACCELERATE_API ScalerState scaler_state();
ACCELERATE_API void set_scaler_state(const ScalerState& state);

}  // namespace detail
}  // namespace accelerate
