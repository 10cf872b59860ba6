#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "recording.h"

namespace accelerate::launch {

/// What is the same in all runs of a comparison.
struct RunSettings {
  std::string recorder;                // the library to load
  std::string work;                    // each run has a folder in it
  std::vector<std::string> links;      // files and folders that the programs find in their working folders
  std::vector<std::string> arguments;  // of the programs
  std::chrono::milliseconds time_limit{};
  int threads = 1;  // OMP_NUM_THREADS: other numbers of threads add up in other orders
  bool cpu = false;
};

/// How a run ended and what it left.
struct RunResult {
  std::string name;
  std::string program;                   // its path
  int ranks = 0;                         // 0: without a launcher
  std::string folder;                    // its working folder
  std::string out;                       // what it (rank 0) wrote on standard output
  std::vector<std::string> error_lines;  // the last of standard error, without backtraces
  std::optional<int> failed_rank;        // the first to fail of itself, as the ranks or our launcher say
  bool crashed = false;                  // that one was killed by a signal, and not by abort()
  bool named_by_others = false;          // that one failed before the others gave up
  int exit_code = 0;
  bool timed_out = false;
  double seconds = 0;
  std::vector<Recording> recordings;  // in the order of ranks; empty if nothing was recorded

  bool ok() const { return exit_code == 0 && !timed_out; }
};

/// Somebody asked us to stop, and the run that was under way has been ended.
class Interrupted : public std::exception {
 public:
  explicit Interrupted(int signal) : signal_(signal) {}
  int signal() const { return signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

/// For as long as it lives, signals that ask us to stop and SIGCHLD wait to be asked for: so that a wait can have an
/// end, and whoever is asked to stop can tidy up.
class RunSignals {
 public:
  RunSignals();
  ~RunSignals();
  RunSignals(const RunSignals&) = delete;
  RunSignals& operator=(const RunSignals&) = delete;

  enum class End { kEnded, kDeadline, kStop };
  /// Waits until the child has ended, until the deadline, or (if `heed_stop`) for a signal that asks us to stop.
  End Wait(pid_t child, std::chrono::steady_clock::time_point deadline, bool heed_stop, int& status);
  int stop() const { return stop_; }  // the signal; 0: none yet

 private:
  sigset_t set_{};
  sigset_t before_{};
  int stop_ = 0;
};

/// Runs `program` in a new folder, with our own launcher if `ranks` isn't 0. Ends it when the time limit is over.
/// Throws UsageError if it can't be started, and Interrupted.
RunResult RunRecorded(RunSignals& signals, const RunSettings& settings, const std::string& name,
                      const std::string& program, int ranks);

/// The content of a file; empty if it can't be read.
std::string ReadFile(const std::string& path);

}  // namespace accelerate::launch
