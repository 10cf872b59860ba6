#include "run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "configuration.h"
#include "failure.h"
#include "machine.h"
#include "process_group.h"

extern char** environ;

namespace accelerate::launch {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr std::chrono::seconds kGrace{3};  // for a launcher that is told to stop
constexpr std::size_t kErrorLines = 12;

// Our own process's part in a job is none of the programs'.
constexpr std::array<const char*, 7> kLaunchVariables = {"RANK",        "LOCAL_RANK",  "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                                         "MASTER_ADDR", "MASTER_PORT", "LD_PRELOAD"};

std::vector<std::string> MakeEnvironment(const Variables& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const auto is_name = [&](const auto& other) { return name == other; };
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return c.first == name; });
    if (!changed && std::none_of(kLaunchVariables.begin(), kLaunchVariables.end(), is_name)) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int OpenOutput(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) throw UsageError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return file;
}

struct Streams {
  int out;
  int err;
  ~Streams() {
    close(out);
    close(err);
  }
};

// A process of its own group, which dies with us.
pid_t Start(std::vector<std::string> command, std::vector<std::string> environment, const std::string& folder,
            const Streams& streams) {
  const std::vector<char*> argv = Pointers(command);
  const std::vector<char*> envp = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw UsageError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child > 0) return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  if (getppid() != parent || nothing < 0 || chdir(folder.c_str()) != 0) _exit(127);
  dup2(nothing, STDIN_FILENO);
  dup2(streams.out, STDOUT_FILENO);
  dup2(streams.err, STDERR_FILENO);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

// SIGCHLD waits to be asked for, so that a wait can have an end.
class ChildSignal {
 public:
  ChildSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~ChildSignal() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  ChildSignal(const ChildSignal&) = delete;
  ChildSignal& operator=(const ChildSignal&) = delete;

  /// The status of the child, or -1 if it is still there at the deadline.
  int Wait(pid_t child, Clock::time_point deadline) const {
    while (true) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) return status;
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
      if (left <= 0) return -1;
      const timespec timeout = {static_cast<time_t>(left / 1000000000), static_cast<long>(left % 1000000000)};
      sigtimedwait(&set_, nullptr, &timeout);
    }
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

// What c10 prints of where an error came from.
bool IsBacktrace(const std::string& line) {
  return line.find("frame #") != std::string::npos || line.find("Exception raised from ") != std::string::npos;
}

std::vector<std::string> LastLines(const std::string& text, std::size_t most) {
  std::istringstream stream(text);
  std::deque<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (line.find_first_not_of(' ') == std::string::npos || IsBacktrace(line)) continue;
    lines.push_back(line);
    if (lines.size() > most) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

void Link(const std::string& target, const std::string& folder) {
  const fs::path source = fs::absolute(target).lexically_normal();
  const fs::path name = source.has_filename() ? source.filename() : source.parent_path().filename();
  std::error_code error;
  if (!fs::exists(source, error)) throw UsageError(fmt::format("--link: there is no {}", target));
  fs::create_symlink(source, fs::path(folder) / name, error);
  if (error) throw UsageError(fmt::format("--link: cannot link {}: {}", target, error.message()));
}

void MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (!fs::create_directories(folder, error)) {
    throw UsageError(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  }
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

RunResult RunRecorded(const RunSettings& settings, const std::string& name, const std::string& program, int ranks) {
  const std::string base = settings.work + "/" + name;
  RunResult result;
  result.name = name;
  result.ranks = ranks;
  result.folder = base + "/folder";
  const std::string record = base + "/record";
  MakeFolder(base);
  for (const std::string& folder : {result.folder, record, base + "/stdout"}) MakeFolder(folder);
  for (const std::string& link : settings.links) Link(link, result.folder);

  Variables variables = {{"OMP_NUM_THREADS", std::to_string(settings.threads)}};
  if (settings.cpu) variables.emplace_back("CUDA_VISIBLE_DEVICES", "");
  if (ranks > 0) {
    // Ranks that part ways say so, instead of waiting for each other until our time is over.
    variables.emplace_back("ACCELERATE_DEBUG_MODE", "1");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(settings.time_limit / 2).count();
    if (!ProcessEnvironment("ACCELERATE_TIMEOUT")) {
      variables.emplace_back("ACCELERATE_TIMEOUT", std::to_string(std::max<decltype(seconds)>(1, seconds)));
    }
  }
  // Neither our launcher nor env is a program that the recorder could be loaded into.
  const std::string preloaded = ProcessEnvironment("LD_PRELOAD").value_or("");
  std::vector<std::string> command;
  if (ranks > 0) {
    command = {fs::read_symlink("/proc/self/exe"),
               "launch",
               "--num_processes",
               std::to_string(ranks),
               "--no_config",
               "--quiet",
               "--grace_period",
               std::to_string(kGrace.count()),
               "--log_dir",
               base + "/stdout"};
    if (settings.cpu) command.emplace_back("--cpu");
    command.emplace_back("--");
  }
  command.push_back(FindProgram("env", ProcessEnvironment));
  command.push_back("LD_PRELOAD=" + settings.recorder + (preloaded.empty() ? "" : ":" + preloaded));
  command.push_back("ACCELERATE_RECORD=" + record);
  command.push_back("ACCELERATE_RECORD_LD_PRELOAD=" + preloaded);
  command.push_back(program);
  command.insert(command.end(), settings.arguments.begin(), settings.arguments.end());

  const ChildSignal signal;
  const auto start = Clock::now();
  {
    const Streams streams = {OpenOutput(base + "/stdout/rank0.out"), OpenOutput(base + "/stderr")};
    const pid_t child = Start(command, MakeEnvironment(variables), result.folder, streams);
    int status = signal.Wait(child, start + settings.time_limit);
    if (status == -1) {
      result.timed_out = true;
      kill(-child, SIGTERM);
      status = signal.Wait(child, Clock::now() + 2 * kGrace);
      // The launcher's ranks die with it.
      kill(-child, SIGKILL);
      if (status == -1) waitpid(child, &status, 0);
    }
    result.exit_code = ExitCode(status);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.out = ReadFile(base + "/stdout/rank0.out");
  result.error_lines = LastLines(ReadFile(base + "/stderr"), kErrorLines);
  for (int rank = 0; rank < std::max(1, ranks); ++rank) {
    if (auto recording = ReadRecording(fmt::format("{}/rank{}.jsonl", record, rank))) {
      result.recordings.push_back(std::move(*recording));
    }
  }
  return result;
}

}  // namespace accelerate::launch
