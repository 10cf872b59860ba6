#include <accelerate/memory.h>
#include <torch/types.h>

#include <cstddef>
#include <new>
#include <string>

#include "save_state.h"
#include "state.h"

namespace accelerate::detail {
namespace {

/// Where a training stood: the next one begins with a window of its own, and with no gradient from before.
void forget_training(State& s) {
  s.control.window.abandon();
  s.control.gradients.forget();
  s.models.forget_local_gradients();
  s.control.within_no_sync = false;
  if (s.control.scaler) {
    s.control.scaler->set_state(s.control.scaler->state());  // the step that it was in is over
  }
}

}  // namespace

bool out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) || dynamic_cast<const std::bad_alloc*>(&error)) {
    return true;
  }
  // What the host's allocator and the libraries throw is no class of its own.
  const std::string text = error.what();
  for (const char* sign : {"DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough memory",
                           "CUDA out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_NOT_SUPPORTED"}) {
    if (text.find(sign) != std::string::npos) {
      return true;
    }
  }
  return false;
}

bool out_of_memory_on_any(bool here) {
  State& s = state();
  if (s.alone()) {
    return here;
  }
  at::Tensor flag = torch::scalar_tensor(here ? 1 : 0, torch::kInt64);
  s.group->maximum(flag, "find_executable_batch_size()");
  return flag.item<int64_t>() != 0;
}

Attempt::Attempt() : registered_(registered_for_checkpointing()), steps_(state().steps) {}

void Attempt::undo() const {
  State& s = state();
  forget_registered(registered_);
  forget_training(s);
  s.models.forget_dead();
  s.prepared.forget_dead();
  s.steps = steps_;
}

void free_memory() {
  State& s = state();
  forget_training(s);
  s.control.gradients = Gradients();
  s.models.clear();
  s.prepared.clear();
  s.steps = 0;
}

int64_t smaller_batch_size(int64_t batch_size) { return batch_size * 9 / 10; }

}  // namespace accelerate::detail
