#pragma once

#include <cstddef>

namespace accelerate::detail {

/// How many objects are registered for checkpointing.
std::size_t registered_for_checkpointing();
/// Forgets all but the first `keep` of them.
void forget_registered(std::size_t keep);

}  // namespace accelerate::detail
