#pragma once

#include <chrono>
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
  int ranks = 0;                         // 0: without a launcher
  std::string folder;                    // its working folder
  std::string out;                       // what it (rank 0) wrote on standard output
  std::vector<std::string> error_lines;  // the last of standard error, without backtraces
  int exit_code = 0;
  bool timed_out = false;
  double seconds = 0;
  std::vector<Recording> recordings;  // in the order of ranks; empty if nothing was recorded

  bool ok() const { return exit_code == 0 && !timed_out; }
};

/// Runs `program` in a new folder, with our own launcher if `ranks` isn't 0. Ends it when the time limit is over.
/// Throws UsageError if it can't be started.
RunResult RunRecorded(const RunSettings& settings, const std::string& name, const std::string& program, int ranks);

/// The content of a file; empty if it can't be read.
std::string ReadFile(const std::string& path);

}  // namespace accelerate::launch
