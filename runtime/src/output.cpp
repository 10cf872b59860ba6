#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>

#include "environment.h"

namespace accelerate::detail {
namespace {

std::string default_folder(const Environment& environment) {
  const std::string temporary = variable("TMPDIR");
  return (temporary.empty() ? "/tmp" : temporary) + "/accelerate-" + std::to_string(getuid()) + "-" +
         std::to_string(environment.master_port);
}

bool done = false;

/// A program's banner comes before its first Accelerator, so this mustn't wait for that.
const bool at_load = [] {
  try {
    redirect_output(read_environment());
  } catch (const std::exception&) {
    // The first Accelerator reports it.
  }
  return true;
}();

}  // namespace

void redirect_output(const Environment& environment) {
  if (done || environment.rank == 0) {
    return;
  }
  done = true;
  std::string folder = variable("ACCELERATE_STDOUT");
  if (folder == "all") {
    return;
  }
  if (folder.empty() || folder == "main") {
    folder = default_folder(environment);
  }
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = folder + "/rank" + std::to_string(environment.rank) + ".out";
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) {
    std::fprintf(stderr, "[accelerate] rank %lld: can't write %s; this rank's output is dropped\n",
                 static_cast<long long>(environment.rank), path.c_str());
    file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  }
  if (file >= 0) {
    std::cout.flush();
    std::fflush(stdout);
    dup2(file, STDOUT_FILENO);
    close(file);
  }
}

}  // namespace accelerate::detail
