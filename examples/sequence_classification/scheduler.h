#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <vector>

// The learning rate rises from 0 to the optimizer's own over `warmup_steps`
// steps and falls to 0 again until `total_steps`.
class LinearWarmupScheduler : public torch::optim::LRScheduler {
 public:
  LinearWarmupScheduler(torch::optim::Optimizer& optimizer,
                        unsigned warmup_steps, unsigned total_steps)
      : LRScheduler(optimizer),
        base_lrs_(get_current_lrs()),
        warmup_steps_(warmup_steps),
        total_steps_(total_steps) {
    step();
  }

 private:
  std::vector<double> get_lrs() override {
    const double step = step_count_ + 1;
    double factor;
    if (step < warmup_steps_) {
      factor = step / warmup_steps_;
    } else {
      factor = (total_steps_ + 1 - step) / (total_steps_ + 1 - warmup_steps_);
    }
    std::vector<double> lrs = base_lrs_;
    for (double& lr : lrs) lr *= std::max(factor, 0.0);
    return lrs;
  }

  std::vector<double> base_lrs_;
  double warmup_steps_;
  double total_steps_;
};
