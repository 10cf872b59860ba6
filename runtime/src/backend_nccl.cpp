/// NCCL, for CUDA tensors. Built where nccl.h was found; else no_nccl.cpp takes its place.

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "group_impl.h"

namespace accelerate::detail {

bool has_nccl() { return true; }

void add_nccl(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store, const Environment& environment) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = environment.timeout;
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
  c10::intrusive_ptr<c10d::Backend> backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      prefixed, static_cast<int>(environment.rank), static_cast<int>(environment.world_size), options);
  group.setBackend(c10::DeviceType::CUDA, c10d::ProcessGroup::BackendType::NCCL, backend);
}

}  // namespace accelerate::detail
