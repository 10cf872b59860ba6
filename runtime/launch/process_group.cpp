#include "process_group.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "command.h"
#include "failure.h"
#include "line_relay.h"
#include "signals.h"
#include "spawn.h"

namespace accelerate::launch {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// When a rank dies, its peers' connections break and they die within milliseconds. Waiting this long before stopping
// the rest tells the failures of the program from those that we cause.
constexpr milliseconds kCollect{200};
// `timeout` and some schedulers send a signal to us and again to our group; only a later one is impatience.
constexpr milliseconds kImpatience{1000};
// The ranks that wait for a stopped one give up after their timeout, and tell more about it than we can. Only if none
// of them waits any more it is up to us.
constexpr milliseconds kOverdue{5000};

bool AsksToStop(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

bool OnTerminal() { return isatty(STDIN_FILENO) != 0 || isatty(STDOUT_FILENO) != 0 || isatty(STDERR_FILENO) != 0; }

std::set<pid_t> Children() {
  std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
  std::set<pid_t> children;
  for (pid_t child = 0; list >> child;) children.insert(child);
  return children;
}

class ProcessGroup {
 public:
  explicit ProcessGroup(const GroupCommand& command) : command_(command), children_before_(Children()) {
    // Processes that ranks leave behind become ours instead of init's, so that Sweep can find them.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  GroupExit Run() {
    try {
      for (const RankProcess& process : command_.processes) Start(process);
    } catch (const UsageError&) {
      SignalAll(SIGKILL);
      Sweep();
      throw;
    }
    while (running_ > 0) Step();
    for (Rank& rank : ranks_) {
      if (rank.out) rank.out->Finish();
      if (rank.err) rank.err->Finish();
    }
    if (phase_ == Phase::kCollecting) ReportFailures();
    if (phase_ != Phase::kRunning) Sweep();
    return Result();
  }

 private:
  enum class Phase {
    kRunning,
    kCollecting,  // a rank failed: who else fails of itself?
    kStopping,    // the ranks were told to stop
    kKilling,
  };

  struct Rank {
    int number = 0;
    pid_t process = -1;  // -1: has ended
    bool own_group = false;
    std::unique_ptr<LineRelay> out;
    std::unique_ptr<LineRelay> err;
    std::string error_file;
    std::optional<Clock::time_point> stopped;  // since then
    int stop_status = 0;
    std::optional<Clock::time_point> done;  // ended well, then
  };

  void Start(const RankProcess& process) {
    Rank rank;
    rank.number = process.rank;
    rank.error_file = process.error_file;
    // A process in a group of its own may neither read nor set a terminal, so the main process stays in ours.
    rank.own_group = !process.is_main || !OnTerminal();
    const Spawned spawned =
        Spawn({command_.program, command_.arguments, process.environment, rank.own_group, !process.is_main}, signals_);
    rank.process = spawned.process;
    if (!process.is_main) {
      const std::string prefix = fmt::format("[rank {}] ", rank.number);
      rank.out = std::make_unique<LineRelay>(spawned.out, STDOUT_FILENO, prefix);
      rank.err = std::make_unique<LineRelay>(spawned.err, STDERR_FILENO, prefix, process.log_file, process.append_log);
    }
    ranks_.push_back(std::move(rank));
    ++running_;
  }

  // Waits for the next thing to happen and deals with it.
  void Step() {
    std::vector<pollfd> waiting = {{signals_.descriptor(), POLLIN, 0}};
    std::vector<LineRelay*> relays = {nullptr};
    for (Rank& rank : ranks_) {
      for (LineRelay* relay : {rank.out.get(), rank.err.get()}) {
        if (relay == nullptr || !relay->is_open()) continue;
        waiting.push_back({relay->source(), POLLIN, 0});
        relays.push_back(relay);
      }
    }
    int timeout = -1;
    if (const auto next = NextDeadline()) {
      const auto left = std::chrono::ceil<milliseconds>(*next - Clock::now());
      timeout = static_cast<int>(std::max<milliseconds::rep>(0, left.count()));
    }
    poll(waiting.data(), waiting.size(), timeout);
    for (std::size_t i = 1; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) relays[i]->Pump();
    }
    if (waiting[0].revents != 0) TakeSignals();
    if (deadline_ && Clock::now() >= *deadline_) OnDeadline();
    if (phase_ == Phase::kRunning) GiveUpStopped();
  }

  std::optional<Clock::time_point> NextDeadline() const {
    std::optional<Clock::time_point> next = deadline_;
    for (const Rank& rank : ranks_) {
      if (phase_ != Phase::kRunning || !rank.stopped) continue;
      const Clock::time_point overdue = *rank.stopped + command_.timeout + kOverdue;
      next = next ? std::min(*next, overdue) : overdue;
    }
    return next;
  }

  void GiveUpStopped() {
    for (Rank& rank : ranks_) {
      if (!rank.stopped || Clock::now() < *rank.stopped + command_.timeout + kOverdue) continue;
      if (first_bad_status_ == 0) first_bad_status_ = rank.stop_status;
      AddFailure(rank, rank.stop_status);
    }
  }

  void TakeSignals() {
    signalfd_siginfo info{};
    while (read(signals_.descriptor(), &info, sizeof(info)) == sizeof(info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) {
        Reap();
      } else {
        Forward(signal, info.ssi_code == SI_KERNEL);
      }
    }
  }

  void Reap() {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
      const auto rank =
          std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& other) { return other.process == ended; });
      if (rank == ranks_.end()) continue;  // left behind by a rank
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        NoteStop(*rank, status);
        continue;
      }
      processes_[rank->number] = std::exchange(rank->process, -1);
      rank->stopped.reset();
      --running_;
      if (status == 0) rank->done = Clock::now();
      if (status == 0) continue;
      if (first_bad_status_ == 0) first_bad_status_ = status;
      if (phase_ == Phase::kRunning || phase_ == Phase::kCollecting) AddFailure(*rank, status);
    }
  }

  // Somebody stopped one rank, which looks like a hang to the others. Not so when we all are suspended.
  void NoteStop(Rank& rank, int status) {
    rank.stopped.reset();
    if (!WIFSTOPPED(status) || suspended_ || phase_ != Phase::kRunning) return;
    rank.stopped = Clock::now();
    rank.stop_status = status;
    Say("rank {} {}; the others wait for it for at most {:.3g} s", rank.number, DescribeStatus(status),
        std::chrono::duration<double>(command_.timeout).count());
  }

  void AddFailure(Rank& rank, int status) {
    failures_.push_back({rank.number, status, "", {}});  // its last lines may still be in the pipe
    if (phase_ == Phase::kCollecting) return;
    phase_ = Phase::kCollecting;
    deadline_ = Clock::now() + kCollect;
  }

  void Forward(int signal, bool from_terminal) {
    // A terminal sends its signals to the main process as well, when that is in our group.
    SignalAll(signal == SIGTSTP ? SIGSTOP : signal, from_terminal);
    suspended_ = signal == SIGTSTP || (suspended_ && signal != SIGCONT);
    if (signal == SIGTSTP) raise(SIGSTOP);  // until somebody continues us
    if (!AsksToStop(signal)) return;
    if (stop_signal_ != 0 && Clock::now() - stop_time_ > kImpatience) return Kill();
    if (stop_signal_ != 0) return;
    if (phase_ == Phase::kCollecting) ReportFailures();
    stop_signal_ = signal;
    stop_time_ = Clock::now();
    Say("got signal {} ({}); passed it on to the ranks", signal, strsignal(signal));
    StopWithin(command_.grace);
  }

  void OnDeadline() {
    deadline_.reset();
    if (phase_ == Phase::kCollecting) {
      ReportFailures();
      if (running_ > 0) Say("stopping the other {} rank{}", running_, running_ == 1 ? "" : "s");
      SignalAll(SIGTERM);
      StopWithin(command_.grace);
    } else if (phase_ == Phase::kStopping) {
      Say("{} rank{} did not stop within {:.3g} s: killed", running_, running_ == 1 ? "" : "s",
          std::chrono::duration<double>(command_.grace).count());
      Kill();
    }
  }

  void StopWithin(milliseconds grace) {
    SignalAll(SIGCONT);  // a process that is suspended would not see that it is asked to stop
    phase_ = Phase::kStopping;
    deadline_ = Clock::now() + grace;
  }

  void Kill() {
    phase_ = Phase::kKilling;
    deadline_.reset();
    SignalAll(SIGKILL);
  }

  // A rank that has ended is left out: its number may belong to another process by now. What it left behind is Sweep's.
  void SignalAll(int signal, bool only_own_groups = false) const {
    for (const Rank& rank : ranks_) {
      if (rank.process < 0 || (only_own_groups && !rank.own_group)) continue;
      kill(rank.own_group ? -rank.process : rank.process, signal);
    }
  }

  // Kills what the ranks started and left behind. Killing one process can hand us its children, hence the loop.
  void Sweep() const {
    for (int round = 0; round < 100; ++round) {
      bool any = false;
      for (const pid_t child : Children()) {
        if (children_before_.count(child) != 0) continue;
        any = true;
        kill(child, SIGKILL);
        waitpid(child, nullptr, WNOHANG);
      }
      if (!any) return;
      poll(nullptr, 0, 10);
    }
  }

  void ReportFailures() {
    for (RankExit& failure : failures_) {
      for (const Rank& rank : ranks_) {
        if (rank.number != failure.rank) continue;
        if (rank.err) failure.last_lines = rank.err->last_lines();
        failure.message = ReadErrorFile(rank.error_file);
      }
    }
    const RankExit& first = failures_.front();
    Say("rank {} {}{}", first.rank, DescribeStatus(first.status), HintFromStatus(first.status, processes_[first.rank]));
    // Of an exception the lines would be a stack.
    if (!first.message.empty()) {
      Say("its error:");
      PrintIndented(first.message);
    } else if (!first.last_lines.empty()) {
      Say("the last lines of its stderr:");
      for (const std::string& line : first.last_lines) fmt::print(stderr, "    {}\n", line);
    }
    for (std::size_t i = 1; i < failures_.size(); ++i) {
      Say("rank {} also failed: it {}", failures_[i].rank, DescribeStatus(failures_[i].status));
    }
    // They haven't failed, but the others may have on their account.
    for (const Rank& rank : ranks_) {
      if (rank.done) Say("rank {} had ended before, with code 0", rank.number);
      if (rank.stopped && first.rank != rank.number) {
        Say("rank {} {} since {:.1f} s", rank.number, DescribeStatus(rank.stop_status),
            std::chrono::duration<double>(Clock::now() - *rank.stopped).count());
      }
    }
  }

  static void PrintIndented(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) fmt::print(stderr, "    {}\n", line);
  }

  GroupExit Result() const { return {failures_, stop_signal_, ExitCode(first_bad_status_)}; }

  const GroupCommand& command_;
  Signals signals_;
  std::set<pid_t> children_before_;
  std::vector<Rank> ranks_;
  int running_ = 0;
  Phase phase_ = Phase::kRunning;
  std::optional<Clock::time_point> deadline_;
  std::vector<RankExit> failures_;
  std::map<int, pid_t> processes_;  // of the ranks that have ended
  bool suspended_ = false;          // by us, when we were
  int first_bad_status_ = 0;
  int stop_signal_ = 0;
  Clock::time_point stop_time_;
};

}  // namespace

GroupExit RunProcessGroup(const GroupCommand& command) { return ProcessGroup(command).Run(); }

}  // namespace accelerate::launch
