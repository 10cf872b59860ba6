#include "slurm.h"

#include <c10/util/Exception.h>

#include <cstdlib>

#include "environment.h"

namespace accelerate::detail {

std::string first_slurm_host(const std::string& list) {
  std::string host;
  for (size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    // "[03-05,9]": the first number, with its zeros.
    const size_t close = list.find(']', i);
    TORCH_CHECK(close != std::string::npos, "[accelerate] SLURM_STEP_NODELIST=", list, " has a [ without a ]");
    const std::string numbers = list.substr(i + 1, close - i - 1);
    host += numbers.substr(0, numbers.find_first_of("-,"));
    i = close;
  }
  return host;
}

std::optional<int64_t> slurm_tasks(const std::string& tasks_per_node, int64_t node) {
  const char* at = tasks_per_node.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const int64_t tasks = std::strtoll(at, &end, 10);
    if (end == at) {
      return std::nullopt;
    }
    int64_t nodes = 1;
    if (end[0] == '(' && end[1] == 'x') {
      nodes = std::strtoll(end + 2, &end, 10);
      end += *end == ')';
    }
    if (node < nodes) {
      return tasks;
    }
    node -= nodes;
    at = *end == ',' ? end + 1 : end;
    if (*end != ',' && *end != '\0') {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<SlurmStep> read_slurm() {
  const auto rank = number("SLURM_PROCID");
  const auto world_size = number("SLURM_STEP_NUM_TASKS");
  if (!rank || !world_size) {
    return std::nullopt;
  }
  TORCH_CHECK(*rank < *world_size, "[accelerate] SLURM_PROCID=", *rank,
              " doesn't fit SLURM_STEP_NUM_TASKS=", *world_size);
  SlurmStep step;
  step.rank = *rank;
  step.world_size = *world_size;
  step.local_rank = number("SLURM_LOCALID").value_or(*rank);
  step.local_world_size =
      slurm_tasks(variable("SLURM_STEP_TASKS_PER_NODE"), number("SLURM_NODEID").value_or(0)).value_or(*world_size);
  step.first_host = first_slurm_host(variable("SLURM_STEP_NODELIST"));
  const int64_t job = number("SLURM_JOB_ID").value_or(0), id = number("SLURM_STEP_ID").value_or(0);
  step.port = static_cast<uint16_t>(20000 + (job * 16 + id) % 20000);
  return step;
}

}  // namespace accelerate::detail
