#include <accelerate/checkpoint.h>
#include <accelerate/collectives.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "environment.h"
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

/// Copies all that comes from a pipe to a file. Returns the error that stopped it; the pipe is read to its end anyway.
int drain(int pipe, int file) {
  int error = 0;
  char piece[1 << 16];
  for (ssize_t got = 0; (got = read(pipe, piece, sizeof(piece))) != 0;) {
    if (got < 0 && errno != EINTR) {
      return errno;
    }
    for (ssize_t done = 0; error == 0 && done < got;) {
      const ssize_t written = ::write(file, piece + done, static_cast<size_t>(got - done));
      done += std::max<ssize_t>(written, 0);
      error = written >= 0 || errno == EINTR ? 0 : errno;
    }
  }
  return error;
}

/// A name for an open file, in a folder of its own: LibTorch writes the name into its archives, so it has to be right.
class NameOf {
 public:
  NameOf(int file, const std::string& name) {
    const std::string temporary = variable("TMPDIR");
    folder_ = (temporary.empty() ? "/tmp" : temporary) + "/accelerate-save-XXXXXX";
    check(mkdtemp(folder_.data()) ? 0 : -1, "make", folder_);
    path_ = folder_ + "/" + name;
    check(symlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path_.c_str()), "make", path_);
  }
  ~NameOf() {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  NameOf(const NameOf&) = delete;
  NameOf& operator=(const NameOf&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

/// Lets LibTorch write into a pipe, and writes what comes out of it: LibTorch's own writer throws from a destructor
/// when a file can't be written, which ends the process.
void write_through(const std::string& path, const std::function<void(const std::string&)>& write) {
  int ends[2] = {-1, -1};
  check(pipe2(ends, O_CLOEXEC), "make a pipe to", path);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  int error = file < 0 ? errno : 0;
  std::exception_ptr thrown;
  if (error == 0) {
    std::thread reader([&] { error = drain(ends[0], file); });
    try {
      write(NameOf(ends[1], path.substr(path.rfind('/') + 1)).path());
    } catch (...) {
      thrown = std::current_exception();
    }
    close(std::exchange(ends[1], -1));
    reader.join();
    struct stat status{};
    const bool regular = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (close(file) != 0 && error == 0) {
      error = errno;
    }
    if (regular && (error != 0 || thrown)) {
      unlink(path.c_str());  // half a file is worse than none
    }
  }
  for (const int end : ends) {
    if (end >= 0) {
      close(end);
    }
  }
  errno = error;
  check(error == 0 ? 0 : -1, "write", path);
  if (thrown) {
    std::rethrow_exception(thrown);
  }
}

/// Writes into a folder beside the target, then renames.
void write_whole(const std::string& given, const std::function<void(const std::string&)>& write) {
  const std::string path = resolved(given);
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    write_through(path, write);  // a device or a pipe has no earlier state to keep
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
    write_through(file, write);
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
  if (s.alone()) {
    write_through(path, write);  // over the file itself, as torch::save() does
    return;
  }
  wait_for_everyone();  // others may still be reading the file as it was
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
