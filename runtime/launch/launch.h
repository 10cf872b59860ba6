#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "process_group.h"

namespace accelerate::launch {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// What may be said about how programs are run; `launch` and `test` have these flags.
struct LaunchOptions {
  ConfigurationFlags configuration;
  std::string config_file;
  bool no_config = false;
  bool multi_gpu = false;
  std::string log_dir;
  double grace_period = 30;
  std::optional<int> timeout;  // seconds
  std::optional<int> cpu_threads;
  int max_restarts = 0;
  bool dry_run = false;
  bool quiet = false;

  /// `whole`: also what makes sense for programs that train for long.
  void AddTo(CLI::App& command, bool whole);
};

/// Runs a program as the configuration says, and again after failures as often as the options allow. `environment` is
/// set for every rank. Returns how it ended the last time. Throws UsageError.
GroupExit RunProgram(const LaunchOptions& options, const std::vector<std::string>& program,
                     const Variables& environment = {});

}  // namespace accelerate::launch
