#include "bounded.h"

#include <future>
#include <thread>
#include <utility>

namespace accelerate::detail {

bool within(std::chrono::milliseconds limit, std::function<void()> action) {
  std::packaged_task<void()> task(std::move(action));
  std::future<void> outcome = task.get_future();
  std::thread(std::move(task)).detach();
  if (outcome.wait_for(limit) != std::future_status::ready) {
    return false;
  }
  outcome.get();
  return true;
}

}  // namespace accelerate::detail
