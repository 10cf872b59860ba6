#include "plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "machine.h"

namespace accelerate::launch {

namespace {

constexpr int kUsualPort = 29500;  // torchrun's and the Python package's

bool IsCpuOnly(const Configuration& configuration) { return configuration.use_cpu.value_or(false); }

void CheckMachines(const Configuration& configuration, Plan& plan) {
  plan.num_machines = configuration.num_machines.value_or(1);
  plan.machine_rank = configuration.machine_rank.value_or(0);
  plan.main_process_ip = configuration.main_process_ip.value_or("");
  if (plan.machine_rank >= plan.num_machines) {
    throw UsageError(fmt::format("machine_rank is {}, but the machines are numbered 0 to {}: num_machines is {}",
                                 plan.machine_rank, plan.num_machines - 1, plan.num_machines));
  }
  if (plan.num_machines == 1) {
    if (plan.main_process_ip.empty()) plan.main_process_ip = "127.0.0.1";
    plan.main_process_port = configuration.main_process_port.value_or(0);
    return;
  }
  if (plan.main_process_ip.empty()) {
    throw UsageError("several machines need --main_process_ip, the address of machine 0");
  }
  if (!configuration.machine_rank) {
    throw UsageError(
        fmt::format("several machines need --machine_rank on each of them, 0 to {}", plan.num_machines - 1));
  }
  plan.main_process_port = configuration.main_process_port.value_or(kUsualPort);
  if (plan.main_process_port == 0) {
    throw UsageError("several machines must agree on a port: give --main_process_port a number other than 0");
  }
}

void CheckProcesses(const Configuration& configuration, Plan& plan) {
  if (configuration.num_processes) {
    plan.num_processes = *configuration.num_processes;
  } else if (plan.cuda_devices == 0) {
    plan.num_processes = plan.num_machines;
    plan.num_processes_reason = IsCpuOnly(configuration) ? "CPU only" : "no CUDA device";
  } else {
    plan.num_processes = plan.cuda_devices * plan.num_machines;
    plan.num_processes_reason = fmt::format("{} CUDA device{}", plan.cuda_devices, plan.cuda_devices == 1 ? "" : "s");
  }
  if (plan.num_processes % plan.num_machines != 0) {
    throw UsageError(
        fmt::format("num_processes counts all machines: {} processes cannot be shared evenly by {} machines",
                    plan.num_processes, plan.num_machines));
  }
  if (plan.cuda_devices > 0 && plan.local_processes() > plan.cuda_devices) {
    plan.warnings.push_back(
        fmt::format("{} processes will share {} CUDA device{}, which NCCL refuses; start fewer, or pass --cpu",
                    plan.local_processes(), plan.cuda_devices, plan.cuda_devices == 1 ? "" : "s"));
  }
}

}  // namespace

Machine ThisMachine(const Environment& environment) { return {CountCpus(), CountVisibleCudaDevices(environment)}; }

int VisibleDevices(const Configuration& configuration, const Machine& machine) {
  if (IsCpuOnly(configuration)) return 0;
  const std::string ids = configuration.gpu_ids.value_or("all");
  return ids == "all" ? machine.cuda_devices : CountCudaDevices(ids);
}

Plan MakePlan(const Configuration& configuration, const Machine& machine) {
  Plan plan;
  plan.cuda_devices = VisibleDevices(configuration, machine);
  CheckMachines(configuration, plan);
  CheckProcesses(configuration, plan);
  return plan;
}

void SetEnvironments(Plan& plan, const Configuration& configuration, const Machine& machine,
                     const Environment& environment) {
  std::vector<std::pair<std::string, std::string>> common = {
      {"WORLD_SIZE", std::to_string(plan.num_processes)},
      {"LOCAL_WORLD_SIZE", std::to_string(plan.local_processes())},
      {"MASTER_ADDR", plan.main_process_ip},
      {"MASTER_PORT", std::to_string(plan.main_process_port)},
  };
  // Each process would otherwise start a thread for every CPU, and together they would fight over them.
  if (!environment("OMP_NUM_THREADS")) {
    common.emplace_back("OMP_NUM_THREADS", std::to_string(std::max(1, machine.cpus / plan.local_processes())));
  }
  // What nobody has chosen is left to the program.
  const auto pass = [&](const char* variable, const std::optional<bool>& value) {
    if (value) common.emplace_back(variable, *value ? "true" : "false");
  };
  pass("ACCELERATE_USE_CPU", configuration.use_cpu);
  if (configuration.mixed_precision) common.emplace_back("ACCELERATE_MIXED_PRECISION", *configuration.mixed_precision);
  pass("ACCELERATE_DEBUG_MODE", configuration.debug);
  if (IsCpuOnly(configuration)) {
    common.emplace_back("CUDA_VISIBLE_DEVICES", "");
  } else if (configuration.gpu_ids && *configuration.gpu_ids != "all") {
    common.emplace_back("CUDA_VISIBLE_DEVICES", *configuration.gpu_ids);
  }

  plan.environments.clear();
  for (int local_rank = 0; local_rank < plan.local_processes(); ++local_rank) {
    plan.environments.push_back(
        {{"RANK", std::to_string(plan.first_rank() + local_rank)}, {"LOCAL_RANK", std::to_string(local_rank)}});
    plan.environments.back().insert(plan.environments.back().end(), common.begin(), common.end());
  }
}

}  // namespace accelerate::launch
