#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "configuration.h"

namespace accelerate::launch {

/// A folder of the user's own, gone when this is.
class TemporaryFolder {
 public:
  /// Throws UsageError if there can be none.
  TemporaryFolder() {
    std::error_code none;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(none);  // heeds TMPDIR
    path_ = (none ? "/tmp" : parent.string()) + "/accelerate-cpp-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      throw UsageError(fmt::format("cannot make the folder {}: {}; set TMPDIR", path_, std::strerror(errno)));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace accelerate::launch
