#include "machine.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>

namespace accelerate::launch {

namespace fs = std::filesystem;

int CountCudaDevices(const std::string& visible, const std::string& device_folder) {
  int count = 0;
  if (visible != "all") {
    std::istringstream list(visible);
    std::string device;
    // CUDA stops at the first entry that names no device.
    while (std::getline(list, device, ',') && !device.empty() && device != "-1" && device != "NoDevFiles") ++count;
    return count;
  }
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(device_folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    const std::string prefix = "nvidia";
    const bool numbered = name.size() > prefix.size() && name.compare(0, prefix.size(), prefix) == 0 &&
                          std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    count += numbered ? 1 : 0;
  }
  return count;
}

int CountVisibleCudaDevices(const Environment& environment, const std::string& device_folder) {
  return CountCudaDevices(environment("CUDA_VISIBLE_DEVICES").value_or("all"), device_folder);
}

// Those that this process may run on: a container's, or a batch system's, may be few of the machine's.
int CountCpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

namespace {

// The port that can be listened on, 0 if `wanted` can't be (errno says why); `wanted` 0: any.
int TryPort(int wanted) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // As the store will do: a port that an earlier run left in TIME_WAIT is free.
  const int reuse = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(wanted));
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool free = listener >= 0 && bind(listener, generic, size) == 0 && listen(listener, 1) == 0 &&
                    getsockname(listener, generic, &size) == 0;
  const int error = errno;
  if (listener >= 0) close(listener);
  errno = error;
  return free ? ntohs(address.sin_port) : 0;
}

// Ports below this one aren't given to anybody's outgoing connections.
int FirstEphemeralPort() {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  return first;
}

}  // namespace

int FreePort(int wanted) {
  if (wanted != 0) {
    if (TryPort(wanted) != 0) return wanted;
    throw UsageError(fmt::format("port {} cannot be used: {}; give another --main_process_port, or 0 for a free one",
                                 wanted, std::strerror(errno)));
  }
  // It has to stay free until rank 0 listens on it.
  constexpr int kLowest = 10000;
  std::random_device random;
  for (int attempt = 0, end = FirstEphemeralPort(); attempt < 100 && end > kLowest; ++attempt) {
    const int port = std::uniform_int_distribution<int>(kLowest, end - 1)(random);
    if (TryPort(port) != 0) return port;
  }
  const int port = TryPort(0);
  if (port == 0) throw UsageError(fmt::format("there is no free port: {}", std::strerror(errno)));
  return port;
}

namespace {

// Why `path` cannot be executed; empty when it can.
std::string WhyNotExecutable(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "does not exist; has it been built?";
  if (error) return error.message();
  if (fs::is_directory(status)) return "is a folder; name the program inside it";
  if (access(path.c_str(), X_OK) == 0) return "";
  return fmt::format("is not executable; launch runs programs, so build it, or: chmod +x {}", path);
}

}  // namespace

std::string FindProgram(const std::string& program, const Environment& environment) {
  if (program.find('/') != std::string::npos) {
    const std::string reason = WhyNotExecutable(program);
    if (reason.empty()) return program;
    throw UsageError(fmt::format("{} {}", program, reason));
  }
  std::istringstream path(environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
  std::string folder;
  while (std::getline(path, folder, ':')) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (WhyNotExecutable(candidate).empty()) return candidate;
  }
  std::error_code unreadable;
  const bool here = !program.empty() && fs::exists(program, unreadable);
  throw UsageError(fmt::format("{} is in no folder of PATH{}", program.empty() ? "''" : program,
                               here ? fmt::format("; did you mean ./{}?", program) : "; give the path of the program"));
}

std::string OperatingSystem() {
  utsname names{};
  uname(&names);
  std::string distribution;
  std::ifstream release("/etc/os-release");
  const std::string key = "PRETTY_NAME=";
  for (std::string line; std::getline(release, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    distribution = line.substr(key.size());
    distribution.erase(std::remove(distribution.begin(), distribution.end(), '"'), distribution.end());
    distribution += ", ";
  }
  return fmt::format("{}{} {} ({})", distribution, names.sysname, names.release, names.machine);
}

std::string NvidiaDriver() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar 5 ..."
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.find('.') != std::string::npos) return word;
  }
  return "";
}

}  // namespace accelerate::launch
