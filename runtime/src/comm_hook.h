#pragma once

/// Gradients that travel in half the bytes.

#include <accelerate/options.h>

#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace accelerate::detail {

void register_comm_hook(c10d::Reducer& reducer, DDPCommunicationHookType type,
                        const c10::intrusive_ptr<c10d::ProcessGroup>& group);

}  // namespace accelerate::detail
