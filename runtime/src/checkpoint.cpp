#include <accelerate/checkpoint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

// No std::filesystem in this library: LibTorch's wheels export their own, older copies of its functions, which
// the linker then takes, and which crash.

namespace accelerate::detail {
namespace {

/// The path with symbolic links resolved, if there is a file.
std::string resolved(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  std::string result = real ? real : path;
  std::free(real);
  return result;
}

void check(int result, const char* operation, const std::string& path) {
  TORCH_CHECK(result == 0, "[accelerate] rank ", rank(), ": can't ", operation, " ", path, ": ", std::strerror(errno));
}

/// Writes into a folder beside the target, then renames: the folder lets the file keep its name, which
/// LibTorch also writes into the archive.
void write_whole(const std::string& given, const std::function<void(const std::string&)>& write) {
  const std::string path = resolved(given);
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    write(path);  // a device or a pipe has no earlier state to keep
    return;
  }
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string name = path.substr(parent.size());
  const std::string folder = parent + "." + name + "." + std::to_string(getpid());
  const std::string file = folder + "/" + name;
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    check(-1, "write beside", path);
  }
  try {
    write(file);
    check(std::rename(file.c_str(), path.c_str()), "replace", path);
  } catch (...) {
    std::remove(file.c_str());
    rmdir(folder.c_str());
    throw;
  }
  rmdir(folder.c_str());
}

}  // namespace

void save_file(const std::string& path, const std::function<void(const std::string&)>& write) {
  State& s = state();
  std::exception_ptr error;
  if (rank() == 0) {
    try {
      write_whole(path, write);
    } catch (...) {
      error = std::current_exception();
    }
  }
  at::Tensor failed = torch::scalar_tensor(error ? 1 : 0, torch::kInt64);
  s.group->maximum(failed, "the outcome of saving " + path);
  if (error) {
    std::rethrow_exception(error);
  }
  TORCH_CHECK(failed.item<int64_t>() == 0, "[accelerate] rank ", rank(), " of ", ranks(),
              ": the main process couldn't save ", path, " (its own error says why)");
}

}  // namespace accelerate::detail
