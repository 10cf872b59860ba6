/// Gloo, for CPU tensors. The only file that sees the headers in gloo_stubs/.

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "group_impl.h"

namespace accelerate::detail {

void add_gloo(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store, const Environment& environment,
              bool for_cuda) {
  auto options = c10d::ProcessGroupGloo::Options::create(environment.timeout);
  const std::string interface = variable("GLOO_SOCKET_IFNAME");
  using Gloo = c10d::ProcessGroupGloo;
  options->devices.push_back(!interface.empty()       ? Gloo::createDeviceForInterface(interface)
                             : environment.one_host() ? Gloo::createDeviceForHostname("127.0.0.1")
                                                      : Gloo::createDefaultDevice());
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<c10d::ProcessGroupGloo>(
      prefixed, static_cast<int>(environment.rank), static_cast<int>(environment.world_size), options);
  group.setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  if (for_cuda) {
    group.setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::GLOO, backend);
  }
}

}  // namespace accelerate::detail
