#pragma once

/// Which messages the ranks send each other.

#include <ATen/record_function.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

using MessageCounts = std::map<std::string, int64_t>;

/// The collectives that c10d is asked for while `action` runs, by their names: as LibTorch's profiler sees them, so
/// also those of its reducer.
inline MessageCounts messages_of(const std::function<void()>& action) {
  static std::mutex mutex;
  static MessageCounts counts;
  counts.clear();
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        const std::string name = function.name(), prefix = "c10d::";
        if (name.rfind(prefix, 0) == 0) {
          const std::lock_guard<std::mutex> lock(mutex);
          ++counts[name.substr(prefix.size())];
        }
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  action();
  at::removeCallback(handle);
  return counts;
}
