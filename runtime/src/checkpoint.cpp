#include <accelerate/checkpoint.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "state.h"

namespace accelerate::detail {
namespace {

namespace fs = std::filesystem;

/// Writes into a folder beside the target, then renames: the folder keeps the file's name, which LibTorch
/// also writes into the archive.
void write_whole(const fs::path& given, const std::function<void(const std::string&)>& write) {
  std::error_code no_link;
  const fs::path path = fs::is_symlink(given, no_link) ? fs::weakly_canonical(given) : given;
  if (fs::exists(path) && !fs::is_regular_file(path)) {
    write(path.string());  // a device or a pipe has no earlier state to keep
    return;
  }
  const fs::path folder = path.parent_path() / ("." + path.filename().string() + "." + std::to_string(getpid()));
  const fs::path file = folder / path.filename();
  if (!fs::create_directory(folder)) {
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
  std::error_code ignored;
  try {
    write(file.string());
    fs::rename(file, path);
  } catch (...) {
    fs::remove_all(folder, ignored);
    throw;
  }
  fs::remove_all(folder, ignored);
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
