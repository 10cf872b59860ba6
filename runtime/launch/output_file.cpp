#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "configuration.h"

namespace accelerate::launch {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // the kernel's limit

[[noreturn]] void Fail(const std::string& path, const std::string& flag, const std::string& what) {
  throw UsageError(fmt::format("cannot write {}: {}; choose another place with {}", path, what, flag));
}

// The regular file behind all links, which may not exist yet. None where something can only be written to: devices,
// pipes, and files that somebody has open (/dev/stdout), which wouldn't see a new one in their place.
std::optional<fs::path> Replaceable(const std::string& path) {
  std::error_code error;
  fs::path target = fs::absolute(path, error);
  for (int links = 0; links < kMostLinks && fs::is_symlink(target, error); ++links) {
    const std::string folder = fs::weakly_canonical(target.parent_path(), error).string() + "/";
    if (folder.rfind("/proc/", 0) == 0) return std::nullopt;
    target = (folder / fs::read_symlink(target, error)).lexically_normal();
  }
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) return std::nullopt;
  return target;
}

// Returns 0 or errno.
int WriteAll(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(descriptor, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  return 0;
}

// Returns 0 or errno.
int WriteInPlace(const std::string& path, const std::string& text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return errno;
  const int error = WriteAll(descriptor, text);
  return close(descriptor) != 0 && error == 0 ? errno : error;
}

// Returns 0 or errno.
int Replace(const std::string& target, const std::string& text) {
  std::string temporary = target + ".XXXXXX";
  const int descriptor = mkstemp(temporary.data());
  if (descriptor < 0) return errno;
  // mkstemp makes the file private; a configuration is as public as the user's other files.
  const mode_t mask = umask(0);
  umask(mask);
  int error = fchmod(descriptor, 0666 & ~mask) == 0 ? WriteAll(descriptor, text) : errno;
  if (error == 0 && fsync(descriptor) != 0) error = errno;
  if (close(descriptor) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace

void WriteFileAtomically(const std::string& path, const std::string& text, const std::string& flag) {
  std::error_code error;
  if (fs::is_directory(path, error)) Fail(path, flag, "it is a folder");
  const std::optional<fs::path> target = Replaceable(path);
  if (target) {
    fs::create_directories(target->parent_path(), error);
    if (error) Fail(path, flag, error.message());
  }
  const int number = target ? Replace(target->string(), text) : WriteInPlace(path, text);
  if (number != 0) Fail(path, flag, std::strerror(number));
}

void CheckWritable(const std::string& path, const std::string& flag) {
  std::error_code error;
  if (fs::is_directory(path, error)) Fail(path, flag, "it is a folder");
  const std::optional<fs::path> target = Replaceable(path);
  const fs::path place = target ? target->parent_path() : fs::path(path);
  if (target && !fs::is_directory(place, error)) Fail(path, flag, fmt::format("there is no folder {}", place.string()));
  if (access(place.c_str(), W_OK) != 0) Fail(path, flag, std::strerror(errno));
}

}  // namespace accelerate::launch
