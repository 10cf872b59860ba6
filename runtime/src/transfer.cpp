#include <accelerate/sharing.h>
#include <accelerate/transfer.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

// c10's own streams and events, so that no CUDA header is needed.

namespace accelerate::detail {
namespace {

c10::impl::VirtualGuardImpl cuda() { return c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA); }

/// With its index, which "cuda" leaves open.
torch::Device exact(const torch::Device& device) { return device.has_index() ? device : cuda().getDevice(); }

}  // namespace

Transfer::Transfer() = default;
Transfer::~Transfer() = default;

bool Transfer::ahead() const {
  const auto device = enabled_ ? delivery_device() : std::nullopt;
  return device && device->is_cuda();
}

bool Transfer::begin() {
  device_ = enabled_ ? delivery_device() : std::nullopt;
  if (!device_) {
    return false;
  }
  if (device_->is_cuda()) {
    device_ = exact(*device_);
    if (!side_ || side_->device() != *device_) {
      side_ = std::make_unique<c10::Stream>(cuda().getStreamFromGlobalPool(*device_));
    }
    program_ = std::make_unique<c10::Stream>(cuda().exchangeStream(*side_));
  }
  return true;
}

torch::Tensor Transfer::send(const torch::Tensor& x) const {
  if (!x.defined() || (device_->is_cuda() && x.is_cuda())) {
    return x;  // what is on a GPU already was computed on the program's stream, and moves there
  }
  const bool pinnable = device_->is_cuda() && x.is_cpu() && x.layout() == torch::kStrided;
  return pinnable ? x.pin_memory().to(*device_, /*non_blocking=*/true) : x.to(*device_);
}

std::shared_ptr<c10::Event> Transfer::end() {
  if (!device_->is_cuda()) {
    return nullptr;
  }
  auto copied = std::make_shared<c10::Event>(c10::DeviceType::CUDA);
  copied->record(*side_);
  cuda().exchangeStream(*program_);
  return copied;
}

void Transfer::wait_for(const c10::Event& copied) const { copied.block(cuda().getStream(side_->device())); }

torch::Tensor Transfer::receive(const torch::Tensor& x) const {
  if (!x.defined() || !x.is_cuda()) {
    return x;
  }
  // The memory belongs to the side stream, which mustn't reuse it while the program's stream reads it.
  x.record_stream(cuda().getStream(x.device()));
  return x.to(side_->device());
}

}  // namespace accelerate::detail
