#pragma once

/// The c10d side of Group, for the files that use c10d themselves.

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "group.h"
#include "peers.h"

namespace accelerate::detail {

struct Group::Impl {
  Environment environment;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::unique_ptr<Peers> peers;
  bool debug = false;     // ACCELERATE_DEBUG_MODE
  bool checking = false;  // within a comparison, which communicates itself
  bool nccl = false;
  bool broken = false;  // an operation failed; nothing of this is usable any more
  std::string reason;   // in words, once it's broken
};

/// Each is in its own file: their headers are heavy, and NCCL's may be absent.
void add_gloo(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store, const Environment& environment,
              bool for_cuda);
bool has_nccl();
void add_nccl(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store, const Environment& environment);

}  // namespace accelerate::detail
