#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accelerate::launch {

/// One process to start.
struct RankProcess {
  int rank = 0;
  bool is_main =
      false;  // inherits stdin, stdout and stderr; the others' lines pass through the launcher, with a prefix
  std::vector<std::pair<std::string, std::string>> environment;  // set on top of the inherited one
  std::string error_file;   // where the program writes why it failed; it is told by TORCHELASTIC_ERROR_FILE
  std::string log_file;     // gets a copy of its stderr; empty: none. Not for the main process
  bool append_log = false;  // what an earlier life wrote stays
};

struct GroupCommand {
  std::string program;                 // the file to execute
  std::vector<std::string> arguments;  // argv, from argv[0]
  std::vector<RankProcess> processes;
  std::chrono::milliseconds grace{};    // between SIGTERM and SIGKILL
  std::chrono::milliseconds timeout{};  // for which the ranks wait for one that is stopped
};

/// How one rank ended.
struct RankExit {
  int rank = 0;
  int status = 0;                       // as waitpid gives it
  std::string message;                  // from its error file
  std::vector<std::string> last_lines;  // of its stderr; empty for the main process, whose stderr we do not see
};

struct GroupExit {
  std::vector<RankExit> failures;  // ranks that failed of themselves, the first to fail first
  int stop_signal = 0;             // the signal on which the launcher stopped the ranks; 0: none
  int exit_code = 0;
};

/// Starts the processes and waits for all of them. The first failure stops the others; a signal that asks the launcher
/// to stop is passed on to them. No process that they started outlives a group that was stopped. Reports to stderr as
/// things happen. Throws UsageError when the program cannot be started.
GroupExit RunProcessGroup(const GroupCommand& command);

}  // namespace accelerate::launch
