#pragma once

/// What srun says about a job step (srun(1), "OUTPUT ENVIRONMENT VARIABLES").

#include <cstdint>
#include <optional>
#include <string>

namespace accelerate::detail {

struct SlurmStep {
  int64_t rank = 0, world_size = 1;
  int64_t local_rank = 0, local_world_size = 1;
  std::string first_host;
  uint16_t port = 0;  // equal on all ranks of the step, different for most steps
};

/// This process's part in a step of srun; none outside of one. (A batch script that starts a program without srun is no
/// step: the allocation's variables are there, but nobody else comes.) Throws c10::Error if the variables contradict
/// each other.
std::optional<SlurmStep> read_slurm();

/// The first name of Slurm's short form: "node[03-05,9],login1" is "node03", "rack[1-2]node[07-08]" is "rack1node07".
/// Throws c10::Error if a bracket isn't closed.
std::string first_slurm_host(const std::string& list);

/// The number of tasks of a node, in Slurm's short form: of "4(x2),3" it's 4, 4 and 3.
std::optional<int64_t> slurm_tasks(const std::string& tasks_per_node, int64_t node);

}  // namespace accelerate::detail
