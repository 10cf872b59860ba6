#include "plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "machine.h"

namespace accelerate::launch {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<std::string> NoVariable(const std::string&) { return std::nullopt; }

// The error of a plan, or the number of processes in all.
std::string Outcome(const Configuration& configuration, int devices = 0) {
  try {
    return std::to_string(MakePlan(configuration, {8, devices}).num_processes);
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::vector<Variables> Environments(const Configuration& configuration, const Machine& machine,
                                    const Environment& environment = NoVariable) {
  Plan plan = MakePlan(configuration, machine);
  if (plan.main_process_port == 0) plan.main_process_port = 1234;
  SetEnvironments(plan, configuration, machine, environment);
  std::vector<Variables> environments;
  for (const auto& one : plan.environments) environments.emplace_back(one.begin(), one.end());
  return environments;
}

TEST(Plan, OneProcessForEachDeviceElseOne) {
  Configuration configuration;
  EXPECT_EQ(Outcome(configuration, 0), "1");
  EXPECT_EQ(Outcome(configuration, 4), "4");
  configuration.gpu_ids = "0,2";
  EXPECT_EQ(Outcome(configuration, 4), "2");
  configuration.use_cpu = true;
  EXPECT_EQ(Outcome(configuration, 4), "1");
  EXPECT_EQ(MakePlan(configuration, {8, 4}).num_processes_reason, "CPU only");
  configuration.num_processes = 3;
  EXPECT_EQ(Outcome(configuration, 4), "3");
  EXPECT_EQ(MakePlan(configuration, {8, 4}).num_processes_reason, "");
}

TEST(Plan, NumbersMustFitTogether) {
  Configuration configuration;
  configuration.machine_rank = 1;
  EXPECT_EQ(Outcome(configuration), "machine_rank is 1, but the machines are numbered 0 to 0: num_machines is 1");
  configuration.num_machines = 2;
  EXPECT_EQ(Outcome(configuration), "several machines need --main_process_ip, the address of machine 0");
  configuration.main_process_ip = "10.0.0.1";
  configuration.num_processes = 3;
  EXPECT_EQ(Outcome(configuration),
            "num_processes counts all machines: 3 processes cannot be shared evenly by 2 machines");
  configuration.num_processes = 4;
  EXPECT_EQ(Outcome(configuration), "4");
  configuration.main_process_port = 0;
  EXPECT_NE(Outcome(configuration).find("must agree on a port"), std::string::npos);
  configuration.machine_rank.reset();
  EXPECT_NE(Outcome(configuration).find("--machine_rank"), std::string::npos);
}

TEST(Plan, WarnsWhenDevicesAreShared) {
  Configuration configuration;
  configuration.num_processes = 2;
  EXPECT_EQ(MakePlan(configuration, {8, 1}).warnings.size(), 1);
  EXPECT_EQ(MakePlan(configuration, {8, 2}).warnings.size(), 0);
  EXPECT_EQ(MakePlan(configuration, {8, 0}).warnings.size(), 0);
}

TEST(Plan, RanksOfTheSecondMachine) {
  Configuration configuration;
  configuration.num_machines = 2;
  configuration.machine_rank = 1;
  configuration.num_processes = 4;
  configuration.main_process_ip = "10.0.0.1";
  const std::vector<Variables> environments = Environments(configuration, {8, 2});
  ASSERT_EQ(environments.size(), 2);
  EXPECT_EQ(environments[1], (Variables{{"RANK", "3"},
                                        {"LOCAL_RANK", "1"},
                                        {"WORLD_SIZE", "4"},
                                        {"LOCAL_WORLD_SIZE", "2"},
                                        {"MASTER_ADDR", "10.0.0.1"},
                                        {"MASTER_PORT", "29500"},
                                        {"OMP_NUM_THREADS", "4"}}));
}

TEST(Plan, PassesWhatWasChosen) {
  Configuration configuration;
  configuration.num_processes = 16;
  configuration.use_cpu = true;
  configuration.debug = false;
  configuration.mixed_precision = "bf16";
  const Variables variables = Environments(configuration, {8, 2}).front();
  EXPECT_EQ(variables.at("ACCELERATE_USE_CPU"), "true");
  EXPECT_EQ(variables.at("ACCELERATE_DEBUG_MODE"), "false");
  EXPECT_EQ(variables.at("ACCELERATE_MIXED_PRECISION"), "bf16");
  EXPECT_EQ(variables.at("CUDA_VISIBLE_DEVICES"), "");
  EXPECT_EQ(variables.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(variables.at("OMP_NUM_THREADS"), "1");
}

TEST(Plan, LeavesTheNumberOfThreadsToTheUser) {
  const auto threads = [](const std::string& name) {
    return name == "OMP_NUM_THREADS" ? std::make_optional<std::string>("3") : std::nullopt;
  };
  EXPECT_EQ(Environments({}, {8, 0}, threads).front().count("OMP_NUM_THREADS"), 0);
}

TEST(Machine, CountsCudaDevices) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "accelerate-devices";
  std::filesystem::create_directories(folder);
  for (const char* name : {"nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia", "null"}) {
    std::ofstream(folder / name) << "";
  }
  EXPECT_EQ(CountCudaDevices("all", folder), 3);
  EXPECT_EQ(CountCudaDevices("all", folder / "missing"), 0);
  EXPECT_EQ(CountCudaDevices("0,1", folder), 2);
  EXPECT_EQ(CountCudaDevices("GPU-8932f937,1,-1,2", folder), 2);
  EXPECT_EQ(CountCudaDevices("", folder), 0);
  EXPECT_EQ(CountCudaDevices("-1", folder), 0);
  const auto visible = [&](std::optional<std::string> list) {
    return CountVisibleCudaDevices(
        [&](const std::string& name) { return name == "CUDA_VISIBLE_DEVICES" ? list : std::nullopt; }, folder);
  };
  EXPECT_EQ(visible(std::nullopt), 3);
  EXPECT_EQ(visible("2"), 1);
  EXPECT_EQ(visible(""), 0);
  std::filesystem::remove_all(folder);
}

TEST(Machine, FindsAFreePort) {
  const int port = FreePort(0);
  EXPECT_GT(port, 0);
  EXPECT_EQ(FreePort(port), port);
}

}  // namespace
}  // namespace accelerate::launch
