#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "signals.h"

namespace accelerate::launch {

struct SpawnRequest {
  const std::string& program;  // the file to execute
  const std::vector<std::string>& arguments;
  const std::vector<std::pair<std::string, std::string>>& environment;  // set on top of the inherited one
  bool own_group = false;                                               // be the leader of a process group
  bool own_streams = false;  // stdin from nowhere, stdout and stderr into pipes; else inherit all three
};

struct Spawned {
  pid_t process = -1;
  int out = -1;  // what it writes, to be read without blocking; -1 when it inherited ours
  int err = -1;
};

/// Starts a process that dies with this one. Throws UsageError, and leaves nothing behind, when that fails.
Spawned Spawn(const SpawnRequest& request, const Signals& signals);

}  // namespace accelerate::launch
