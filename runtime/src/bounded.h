#pragma once

#include <chrono>
#include <functional>

namespace accelerate::detail {

/// Calls `action` on a thread of its own and waits for at most `limit`. True if it came back, rethrowing what it threw;
/// false if it didn't, and then the thread is left to itself: `action` must own all that it uses.
bool within(std::chrono::milliseconds limit, std::function<void()> action);

}  // namespace accelerate::detail
