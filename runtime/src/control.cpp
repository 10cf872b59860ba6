#include "control.h"

#include <cstdlib>

#include "environment.h"
#include "same_on_all.h"

namespace accelerate::detail {
namespace {

constexpr double kGrowthFactor = 2, kBackoffFactor = 0.5;
constexpr int64_t kGrowthInterval = 2000;

int64_t accumulation_steps_of(const Options& options) {
  if (options.gradient_accumulation_steps) {
    TORCH_CHECK(*options.gradient_accumulation_steps >= 1, "[accelerate] Options::gradient_accumulation_steps is ",
                *options.gradient_accumulation_steps, ", and must be 1 or more");
    return *options.gradient_accumulation_steps;
  }
  const char* name = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS";
  const std::string text = variable(name);
  if (text.empty()) {
    return 1;
  }
  char* end = nullptr;
  const long long steps = std::strtoll(text.c_str(), &end, 10);
  TORCH_CHECK(*end == '\0' && steps >= 1, "[accelerate] ", name, " is ", text, ", and must be a number of 1 or more");
  return steps;
}

std::string precision_of(const Options& options) {
  std::string text = options.mixed_precision.value_or(variable("ACCELERATE_MIXED_PRECISION"));
  if (text.empty()) {
    text = "no";
  }
  TORCH_CHECK(text == "no" || text == "bf16" || text == "fp16", "[accelerate] ",
              options.mixed_precision ? "Options::mixed_precision" : "ACCELERATE_MIXED_PRECISION", " is \"", text,
              "\", and must be \"no\", \"bf16\" or \"fp16\"");
  return text;
}

}  // namespace

void Scaler::begin(const std::pair<int, int64_t>& step) {
  if (step_ == step) {
    return;
  }
  state_ = state();
  step_ = step;
  complete_ = false;
  overflowed_ = false;
}

void Scaler::record(bool overflow) {
  complete_ = true;
  overflowed_ = overflowed_ || overflow;
}

ScalerState Scaler::state() const {
  ScalerState next = state_;
  if (!complete_) {
    return next;
  }
  if (overflowed_) {
    next.scale *= kBackoffFactor;
    next.growth_tracker = 0;
  } else if (++next.growth_tracker == kGrowthInterval) {
    // As in PyTorch, whose scale is a float.
    next.scale = next.scale * kGrowthFactor <= 3e38 ? next.scale * kGrowthFactor : next.scale;
    next.growth_tracker = 0;
  }
  return next;
}

void Scaler::set_state(const ScalerState& state) {
  state_ = state;
  step_.reset();
  complete_ = false;
  overflowed_ = false;
}

void TrainingControl::configure(const Options& options) {
  accumulation_steps = accumulation_steps_of(options);
  precision = precision_of(options);
  ddp = options.ddp;
  TORCH_CHECK(ddp.bucket_cap_mb > 0, "[accelerate] DistributedDataParallelOptions::bucket_cap_mb is ",
              ddp.bucket_cap_mb, ", and must be more than 0");
  if (precision == "fp16") {
    scaler.emplace();
  }
}

void TrainingControl::check_same(Group& group, const DataLoaderConfiguration& dataloader) {
  if (checked) {
    return;
  }
  const auto text = [](const std::optional<bool>& x) { return std::string(!x ? "automatic" : *x ? "on" : "off"); };
  check_same_on_all(
      group, "the Accelerator's options",
      {"gradient_accumulation_steps: " + std::to_string(accumulation_steps), "mixed_precision: " + precision,
       "bucket_cap_mb: " + std::to_string(ddp.bucket_cap_mb),
       "find_unused_parameters: " + text(ddp.find_unused_parameters), "static_graph: " + text(ddp.static_graph),
       "comm_hook: " + std::to_string(static_cast<int>(ddp.comm_hook)),
       "batch_policy: " + std::to_string(static_cast<int>(dataloader.batch_policy)),
       "split_batches: " + text(dataloader.split_batches), "even_batches: " + text(dataloader.even_batches),
       "dispatch_batches: " + text(dataloader.dispatch_batches)});
  checked = true;
}

}  // namespace accelerate::detail
