#pragma once

/// Accelerator::save().

#include <accelerate/export.h>
#include <torch/serialize.h>

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace accelerate::detail {

ACCELERATE_API bool alone();

/// On the main process calls `write` with the name of a file to be written, and gives that file the name
/// `path` when it is whole. Returns when all ranks may read it; throws on all of them if it failed.
ACCELERATE_API void save_file(const std::string& path, const std::function<void(const std::string&)>& write);

/// An archive is written by its own save_to().
inline void save_file_of(const torch::serialize::OutputArchive& archive, const std::string& file) {
  const_cast<torch::serialize::OutputArchive&>(archive).save_to(file);  // writing doesn't change what it holds
}
template <typename Value>
void save_file_of(const Value& value, const std::string& file) {
  torch::save(value, file);
}

template <typename Value, typename... Target>
void save(const Value& value, Target&&... target) {
  if constexpr (sizeof...(Target) == 1 && (std::is_convertible_v<Target, std::string> && ...)) {
    const std::string path(target...);
    if (alone()) {
      save_file_of(value, path);
    } else {
      save_file(path, [&](const std::string& file) { save_file_of(value, file); });
    }
  } else {
    torch::save(value, std::forward<Target>(target)...);
  }
}

}  // namespace accelerate::detail
