#include "comm_hook.h"

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

namespace accelerate::detail {
namespace {

using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

/// c10d has one for half precision only. As there, gradients are divided first; with a hook the reducer doesn't.
class BF16CompressCommHook final : public c10d::CppCommHookInterface<ProcessGroup> {
 public:
  explicit BF16CompressCommHook(const ProcessGroup& group) : CppCommHookInterface(group) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> compressed{bucket.getBuffer().to(at::kBFloat16).div_(state_->getSize())};
    auto sum = state_->allreduce(compressed)->getFuture();
    return sum->then(
        [buffer = bucket.getBuffer()](c10::ivalue::Future& future) {
          const c10::IValue result = future.value();
          TORCH_INTERNAL_ASSERT(result.isTensorList(), "an all-reduce's result is a list of tensors");
          buffer.copy_(result.toTensorVector()[0]);
          return c10::IValue(buffer);
        },
        c10::TensorType::get());
  }
};

}  // namespace

void register_comm_hook(c10d::Reducer& reducer, DDPCommunicationHookType type, const ProcessGroup& group) {
  switch (type) {
    case DDPCommunicationHookType::No:
      return;
    case DDPCommunicationHookType::FP16:
      reducer.register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
      return;
    case DDPCommunicationHookType::BF16:
      reducer.register_comm_hook(std::make_unique<BF16CompressCommHook>(group));
      return;
  }
}

}  // namespace accelerate::detail
