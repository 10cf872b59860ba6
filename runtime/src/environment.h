#pragma once

/// What the launcher told this process, and the variables that users set.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace accelerate::detail {

struct Environment {
  int64_t rank = 0, world_size = 1;
  int64_t local_rank = 0, local_world_size = 1;
  std::string master_address;
  uint16_t master_port = 0;
  std::string restart;           // torchrun's restart count: keys of an earlier life must not be read
  bool store_is_served = false;  // by torchrun's agent; rank 0 must not serve a second one
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};

  bool alone() const { return world_size == 1; }
  bool one_host() const { return local_world_size == world_size; }
};

/// torchrun's variables, else those of MPI launchers (Open MPI, MVAPICH, MPICH and Intel's), else srun's, else alone.
/// Throws c10::Error if they are incomplete or contradict each other.
Environment read_environment();

/// A variable's number, if it is set. Throws c10::Error if it isn't one.
std::optional<int64_t> number(const char* name);
/// A variable's text, or "" if it isn't set.
std::string variable(const char* name);
/// Whether a variable says yes, by Accelerate's rule: y, yes, t, true, on or 1 in any case.
bool flag(const char* name);

}  // namespace accelerate::detail
