#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
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

void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0700);  // open() reports what is missing
    if (end == std::string::npos) {
      return;
    }
  }
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
  make_folders(folder);
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
