#include "spawn.h"

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
#include <memory>

#include "configuration.h"

extern char** environ;

namespace accelerate::launch {

namespace {

// From a child to us. Neither end outlives an exec.
struct Pipe {
  int reader = -1;
  int writer = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
      throw UsageError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    reader = ends[0];
    writer = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    if (writer >= 0) close(writer);
    if (reader >= 0) close(reader);
  }
  int TakeReader() {
    fcntl(reader, F_SETFL, O_NONBLOCK);
    return std::exchange(reader, -1);
  }
};

bool IsSet(const std::vector<std::pair<std::string, std::string>>& changes, const std::string& name) {
  return std::any_of(changes.begin(), changes.end(), [&](const auto& change) { return change.first == name; });
}

std::vector<std::string> MergedEnvironment(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    // Left by a torchrun around us, they would tell of its ranks: that somebody else serves MASTER_PORT, for one.
    if (name.rfind("TORCHELASTIC_", 0) == 0) continue;
    if (!IsSet(changes, name)) merged.push_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The child's part, from fork to exec. Returns only when that failed, with errno set.
void Become(const SpawnRequest& request, const Signals& signals, pid_t launcher, const Pipe* out, const Pipe* err,
            char* const* argv, char* const* envp) {
  if (request.own_group) setpgid(0, 0);
  // The one thing that reaches the ranks when the launcher itself is killed with SIGKILL.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(1);
  if (request.own_streams) {
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(out->writer, STDOUT_FILENO);
    dup2(err->writer, STDERR_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
  }
  signals.Restore();
  execve(request.program.c_str(), argv, envp);
}

const char* Hint(int error) {
  if (error == ENOEXEC) return "; a script must begin with #! and its interpreter";
  if (error == ENOENT) return "; a library loader or the script's interpreter is missing";
  return "";
}

}  // namespace

Spawned Spawn(const SpawnRequest& request, const Signals& signals) {
  std::unique_ptr<Pipe> out;
  std::unique_ptr<Pipe> err;
  if (request.own_streams) {
    out = std::make_unique<Pipe>();
    err = std::make_unique<Pipe>();
  }
  Pipe trouble;  // closed by a successful exec, else it carries errno
  // All that allocates is done before the fork.
  std::vector<std::string> arguments = request.arguments;
  std::vector<std::string> environment = MergedEnvironment(request.environment);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const pid_t launcher = getpid();

  Spawned spawned;
  spawned.process = fork();
  if (spawned.process < 0) throw UsageError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (spawned.process == 0) {
    Become(request, signals, launcher, out.get(), err.get(), argv.data(), envp.data());
    const int error = errno;
    _exit(write(trouble.writer, &error, sizeof(error)) == sizeof(error) ? 0 : 1);
  }
  if (request.own_group) setpgid(spawned.process, spawned.process);  // as the child does; whoever comes first
  close(std::exchange(trouble.writer, -1));
  int error = 0;
  if (read(trouble.reader, &error, sizeof(error)) == sizeof(error)) {
    waitpid(spawned.process, nullptr, 0);
    throw UsageError(fmt::format("cannot start {}: {}{}", request.program, std::strerror(error), Hint(error)));
  }
  if (request.own_streams) {
    spawned.out = out->TakeReader();
    spawned.err = err->TakeReader();
  }
  return spawned;
}

}  // namespace accelerate::launch
