#include "run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "command.h"
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

// Our own process's part in a job (torchrun's, MPI's, srun's, or of our own launcher's configuration) is none of the
// programs'. A name that ends with _ stands for all that begin so.
constexpr std::array kJobVariables = {"RANK",
                                      "LOCAL_RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_WORLD_SIZE",
                                      "GROUP_RANK",
                                      "GROUP_WORLD_SIZE",
                                      "ROLE_RANK",
                                      "ROLE_WORLD_SIZE",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "TORCHELASTIC_",
                                      "ACCELERATE_NUM_PROCESSES",
                                      "ACCELERATE_NUM_MACHINES",
                                      "ACCELERATE_MACHINE_RANK",
                                      "ACCELERATE_MAIN_PROCESS_",
                                      "OMPI_",
                                      "PMI_",
                                      "PMIX_",
                                      "MV2_COMM_WORLD_",
                                      "MPI_LOCALRANKID",
                                      "MPI_LOCALNRANKS",
                                      "SLURM_PROCID",
                                      "SLURM_LOCALID",
                                      "SLURM_NODEID",
                                      "SLURM_NTASKS",
                                      "SLURM_NPROCS",
                                      "SLURM_STEP_",
                                      "LD_PRELOAD"};

bool IsOfJob(const std::string& name) {
  return std::any_of(kJobVariables.begin(), kJobVariables.end(), [&](const std::string& other) {
    return other.back() == '_' ? name.rfind(other, 0) == 0 : name == other;
  });
}

std::vector<std::string> MakeEnvironment(const Variables& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool changed = std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return c.first == name; });
    if (!changed && !IsOfJob(name)) result.push_back(text);
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
  if (child > 0) {
    setpgid(child, child);  // as the child does; whoever comes first
    return child;
  }
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

// What is said of the rank that failed first: by the other ranks, who knew of its exception when they gave up, else by
// our launcher, which sees processes end.
void FindFailedRank(const std::string& errors, RunResult& result) {
  static const std::regex kBefore("Before that, rank ([0-9]+)[^\n]* failed: ");
  static const std::regex kEnded("\\[accelerate-cpp\\] rank ([0-9]+) (exited with code|was killed by signal) ([0-9]+)");
  std::smatch match;
  result.named_by_others = std::regex_search(errors, match, kBefore);
  if (!result.named_by_others && !std::regex_search(errors, match, kEnded)) return;
  result.failed_rank = std::stoi(match[1]);
  result.crashed = !result.named_by_others && match[2] == "was killed by signal" && std::stoi(match[3]) != SIGABRT;
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

RunSignals::RunSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // What our parent had us ignore, as nohup does, stays ignored.
    struct sigaction current{};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&set_, signal);
  }
  sigprocmask(SIG_BLOCK, &set_, &before_);
}

RunSignals::~RunSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

RunSignals::End RunSignals::Wait(pid_t child, Clock::time_point deadline, bool heed_stop, int& status) {
  while (true) {
    if (waitpid(child, &status, WNOHANG) == child) return End::kEnded;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) return End::kDeadline;
    const timespec timeout = {static_cast<time_t>(left / 1000000000), static_cast<long>(left % 1000000000)};
    const int signal = sigtimedwait(&set_, nullptr, &timeout);
    if (signal <= 0 || signal == SIGCHLD) continue;
    if (stop_ == 0) stop_ = signal;
    if (heed_stop) return End::kStop;
  }
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

RunResult RunRecorded(RunSignals& signals, const RunSettings& settings, const std::string& name,
                      const std::string& program, int ranks) {
  const std::string base = settings.work + "/" + name;
  RunResult result;
  result.name = name;
  result.program = program;
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
               "--num_machines",
               "1",
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

  const auto start = Clock::now();
  {
    const Streams streams = {OpenOutput(base + "/stdout/rank0.out"), OpenOutput(base + "/stderr")};
    const pid_t child = Start(command, MakeEnvironment(variables), result.folder, streams);
    int status = 0;
    const RunSignals::End end = signals.Wait(child, start + settings.time_limit, /*heed_stop=*/true, status);
    if (end != RunSignals::End::kEnded) {
      result.timed_out = end == RunSignals::End::kDeadline;
      if (!result.timed_out) {
        Say("got signal {} ({}): stopping the run '{}'", signals.stop(), strsignal(signals.stop()), name);
      }
      kill(-child, SIGTERM);
      const auto ended = signals.Wait(child, Clock::now() + 2 * kGrace, /*heed_stop=*/false, status);
      // The launcher's ranks die with it.
      kill(-child, SIGKILL);
      if (ended != RunSignals::End::kEnded) waitpid(child, &status, 0);
      if (!result.timed_out) throw Interrupted(signals.stop());
    }
    result.exit_code = ExitCode(status);
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.out = ReadFile(base + "/stdout/rank0.out");
  const std::string errors = ReadFile(base + "/stderr");
  result.error_lines = LastLines(errors, kErrorLines);
  FindFailedRank(errors, result);
  for (int rank = 0; rank < std::max(1, ranks); ++rank) {
    if (auto recording = ReadRecording(fmt::format("{}/rank{}.jsonl", record, rank))) {
      result.recordings.push_back(std::move(*recording));
    }
  }
  return result;
}

}  // namespace accelerate::launch
