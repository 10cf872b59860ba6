//===- Workers.cpp --------------------------------------------------------===//
#include "units/Workers.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace llvm;

namespace migrate {
namespace {

struct Child {
  pid_t Pid;
  int Pipe;
  size_t Job;
  std::string Bytes;
};

[[noreturn]] void beChild(int Pipe, size_t Job, pid_t Parent, const WorkerOptions &Options,
                          function_ref<std::string(size_t)> Work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != Parent)
    _exit(1); // it died before it could be watched
  rlimit Cpu = {Options.CpuSeconds, Options.CpuSeconds + 5};
  setrlimit(RLIMIT_CPU, &Cpu);
  rlimit Core = {0, 0};
  setrlimit(RLIMIT_CORE, &Core);
  // What a crash handler would print is of no use to users; the parent says what happened.
  if (int Null = open("/dev/null", O_WRONLY); Null >= 0) {
    dup2(Null, STDERR_FILENO);
    dup2(Null, STDOUT_FILENO);
  }
  std::string Bytes = Work(Job);
  for (size_t Sent = 0; Sent != Bytes.size();) {
    ssize_t N = write(Pipe, Bytes.data() + Sent, Bytes.size() - Sent);
    if (N < 0 && errno == EINTR)
      continue;
    if (N <= 0)
      _exit(1);
    Sent += N;
  }
  _exit(0); // no destructors, no buffers: they are the parent's
}

std::string failureOf(int Status, const WorkerOptions &Options) {
  if (WIFEXITED(Status) && WEXITSTATUS(Status) == 0)
    return "";
  if (WIFSIGNALED(Status) && WTERMSIG(Status) == SIGXCPU)
    return "took more than " + std::to_string(Options.CpuSeconds) + " s";
  if (WIFSIGNALED(Status) && WTERMSIG(Status) == SIGKILL)
    return "was killed (out of memory?)";
  if (WIFSIGNALED(Status))
    return std::string("crashed (") + strsignal(WTERMSIG(Status)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(Status));
}

} // namespace

void runJobs(size_t Count, const WorkerOptions &Options, function_ref<std::string(size_t)> Work,
             function_ref<void(size_t)> Started, function_ref<void(size_t, Outcome)> Done) {
  if (!Options.Isolate) {
    for (size_t I = 0; I != Count; ++I) {
      Started(I);
      Done(I, {Work(I), ""});
    }
    return;
  }
  const pid_t Self = getpid();
  std::vector<Child> Running;
  size_t Next = 0;
  while (Next != Count || !Running.empty()) {
    while (Next != Count && Running.size() < std::max(1U, Options.Jobs)) {
      size_t Job = Next;
      int Ends[2];
      outs().flush(); // or the child would have a copy of what waits there
      errs().flush();
      pid_t Pid = pipe2(Ends, O_CLOEXEC) == 0 ? fork() : -1;
      if (Pid < 0) {
        if (!Running.empty())
          break; // when one has ended, there may be room
        Done(Job, {"", std::string("can't be started: ") + strerror(errno)});
        ++Next;
        continue;
      }
      if (Pid == 0)
        beChild(Ends[1], Job, Self, Options, Work);
      close(Ends[1]);
      Running.push_back({Pid, Ends[0], Job, ""});
      Started(Job);
      ++Next;
    }
    std::vector<pollfd> Pipes;
    for (const Child &C : Running)
      Pipes.push_back({C.Pipe, POLLIN, 0});
    if (poll(Pipes.data(), Pipes.size(), -1) < 0)
      continue;
    for (size_t I = Running.size(); I-- > 0;) {
      if (!Pipes[I].revents)
        continue;
      Child &C = Running[I];
      char Buffer[1 << 16];
      ssize_t N = read(C.Pipe, Buffer, sizeof(Buffer));
      if (N > 0)
        C.Bytes.append(Buffer, N);
      if (N > 0 || (N < 0 && (errno == EINTR || errno == EAGAIN)))
        continue;
      close(C.Pipe);
      int Status = 0;
      while (waitpid(C.Pid, &Status, 0) < 0 && errno == EINTR)
        ;
      Child Ended = std::move(C);
      Running.erase(Running.begin() + I);
      Done(Ended.Job, {std::move(Ended.Bytes), failureOf(Status, Options)});
    }
  }
}

static uint64_t numberIn(StringRef Path) {
  uint64_t Number = 0;
  if (auto Buffer = MemoryBuffer::getFileAsStream(Path))
    if (!(*Buffer)->getBuffer().trim().getAsInteger(10, Number))
      return Number;
  return ~0ULL;
}

/// The number behind `Name` at the beginning of a line.
static std::optional<uint64_t> fieldIn(StringRef Path, StringRef Name) {
  if (auto Buffer = MemoryBuffer::getFileAsStream(Path))
    for (line_iterator It(**Buffer); !It.is_at_eof(); ++It)
      if (StringRef Line = *It; Line.consume_front(Name)) {
        uint64_t Number = 0;
        if (!Line.trim().split(' ').first.getAsInteger(10, Number))
          return Number;
      }
  return std::nullopt;
}

unsigned jobsFor(uint64_t BytesPerJob) {
  uint64_t Free = ~0ULL;
  if (auto Kilobytes = fieldIn("/proc/meminfo", "MemAvailable:"))
    Free = *Kilobytes << 10;
  // A container may have less than its host.
  if (uint64_t Limit = numberIn("/sys/fs/cgroup/memory.max"); Limit != ~0ULL)
    if (uint64_t Used = numberIn("/sys/fs/cgroup/memory.current"); Used != ~0ULL) {
      uint64_t Reclaimable = fieldIn("/sys/fs/cgroup/memory.stat", "inactive_file ").value_or(0);
      Free = std::min(Free, Limit - std::min(Limit, Used - std::min(Used, Reclaimable)));
    }
  uint64_t ByMemory = std::max<uint64_t>(1, Free / BytesPerJob);
  return static_cast<unsigned>(std::min<uint64_t>(ByMemory, hardware_concurrency().compute_thread_count()));
}

} // namespace migrate
