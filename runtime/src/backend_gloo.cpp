/// Gloo, for CPU tensors. The only file that sees the headers in gloo_stubs/.

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "group_impl.h"

namespace accelerate::detail {
namespace {

/// This host's address on the way to rank 0's; empty if that isn't known, or is the loopback. (The host's own name,
/// which Gloo would look up, often stands for the loopback in /etc/hosts.)
std::string own_address_towards(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "1", &wanted, &found) != 0) {
    return "";
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::string result;
  for (const addrinfo* to = found; to && result.empty(); to = to->ai_next) {
    // Connecting such a socket sends nothing, and chooses the route.
    const int socket_file = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    char text[NI_MAXHOST] = "";
    if (socket_file >= 0 && connect(socket_file, to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(socket_file, reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0) {
      result = text;
    }
    if (socket_file >= 0) {
      close(socket_file);
    }
  }
  return result.rfind("127.", 0) == 0 || result == "::1" ? "" : result;
}

std::shared_ptr<::gloo::transport::Device> device_for(const Environment& environment) {
  using Gloo = c10d::ProcessGroupGloo;
  if (const std::string interface = variable("GLOO_SOCKET_IFNAME"); !interface.empty()) {
    return Gloo::createDeviceForInterface(interface);
  }
  if (environment.one_host()) {
    return Gloo::createDeviceForHostname("127.0.0.1");
  }
  const std::string address = own_address_towards(environment.master_address);
  return address.empty() ? Gloo::createDefaultDevice() : Gloo::createDeviceForHostname(address);
}

}  // namespace

void add_gloo(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store, const Environment& environment,
              bool for_cuda) {
  auto options = c10d::ProcessGroupGloo::Options::create(environment.timeout);
  options->devices.push_back(device_for(environment));
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("gloo", store);
  c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<c10d::ProcessGroupGloo>(
      prefixed, static_cast<int>(environment.rank), static_cast<int>(environment.world_size), options);
  group.setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::GLOO, backend);
  if (for_cuda) {
    group.setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::GLOO, backend);
  }
}

}  // namespace accelerate::detail
