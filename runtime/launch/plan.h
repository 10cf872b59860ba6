#pragma once

#include <string>
#include <utility>
#include <vector>

#include "configuration.h"

namespace accelerate::launch {

/// What `launch` found out about the machine, passed in so that a plan can be tested without it.
struct Machine {
  int cpus = 1;
  int cuda_devices = 0;  // that CUDA_VISIBLE_DEVICES leaves visible
};

/// Who runs here, and with which variables.
struct Plan {
  int num_processes = 1;
  std::string num_processes_reason;  // empty: somebody set the number
  int num_machines = 1;
  int machine_rank = 0;
  std::string main_process_ip;
  int main_process_port = 0;  // 0: a free one is still to be found
  int cuda_devices = 0;       // that the processes of this machine will see
  /// For each rank of this machine, what is set on top of the inherited environment.
  std::vector<std::vector<std::pair<std::string, std::string>>> environments;
  std::vector<std::string> warnings;

  int local_processes() const { return num_processes / num_machines; }
  int first_rank() const { return machine_rank * local_processes(); }
};

/// This machine, with what CUDA_VISIBLE_DEVICES says.
Machine ThisMachine(const Environment& environment);

/// How many of its GPUs a configuration leaves to the processes.
int VisibleDevices(const Configuration& configuration, const Machine& machine);

/// Works out how many processes run where. Throws UsageError when the numbers do not fit together.
Plan MakePlan(const Configuration& configuration, const Machine& machine);

/// Fills `plan.environments`, once the port is known.
void SetEnvironments(Plan& plan, const Configuration& configuration, const Machine& machine,
                     const Environment& environment);

}  // namespace accelerate::launch
