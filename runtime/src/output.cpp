#include "output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "environment.h"

namespace accelerate::detail {
namespace {

void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    mkdir(path.substr(0, end).c_str(), 0700);  // open() reports what is missing
    if (end == std::string::npos) {
      return;
    }
  }
}

bool done = false;

/// A file that nobody asked for; it goes with a process that ends well.
struct DefaultFile {
  std::string folder, path;
  pid_t owner;  // not a copy of it that the program has forked
};

void at_exit(int status, void* given) {
  const auto& file = *static_cast<const DefaultFile*>(given);
  if (getpid() != file.owner) {
    return;
  }
  std::cout.flush();
  std::fflush(stdout);
  struct stat about{};
  if (status != 0 && stat(file.path.c_str(), &about) == 0 && about.st_size > 0) {
    std::fprintf(stderr, "[accelerate] this rank's standard output is in %s\n", file.path.c_str());
    return;
  }
  unlink(file.path.c_str());
  rmdir(file.folder.c_str());  // by the last to leave
}

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

std::string default_output_folder(uint16_t master_port) {
  const std::string temporary = variable("TMPDIR");
  return (temporary.empty() ? "/tmp" : temporary) + "/accelerate-" + std::to_string(getuid()) + "-" +
         std::to_string(master_port);
}

void redirect_output(const Environment& environment) {
  if (done || environment.rank == 0) {
    return;
  }
  done = true;
  std::string folder = variable("ACCELERATE_STDOUT");
  if (folder == "all") {
    return;
  }
  const bool by_default = folder.empty() || folder == "main";
  if (by_default) {
    folder = default_output_folder(environment.master_port);
  }
  make_folders(folder);
  const std::string path = folder + "/rank" + std::to_string(environment.rank) + ".out";
  // What an earlier life of the job wrote may say why there is another.
  const int beginning = number("TORCHELASTIC_RESTART_COUNT").value_or(0) > 0 ? O_APPEND : O_TRUNC;
  int file = open(path.c_str(), O_WRONLY | O_CREAT | beginning | O_CLOEXEC | O_NOFOLLOW, 0600);
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
    if (by_default) {
      on_exit(at_exit, new DefaultFile{folder, path, getpid()});
    }
  }
}

}  // namespace accelerate::detail
