/// How many threads a rank computes with, where that is the CPU. It's settled with the process's first Accelerator: each suite is a process of
/// its own, whose OMP_NUM_THREADS is 1 as LibTorch starts (run_ranks.sh), and isn't set as the Accelerator looks.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace {

int cpus() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

TEST(ThreadsShared, EachRankHasItsPartOfTheCpus) {
  const int before = torch::get_num_threads();
  unsetenv("OMP_NUM_THREADS");
  accelerate::Accelerator accelerator;
  const auto n = static_cast<int>(accelerator.num_processes());
  EXPECT_EQ(torch::get_num_threads(), n == 1 || torch::cuda::is_available() ? before : std::max(1, cpus() / n));
}

/// As on a host of its own for each rank.
TEST(ThreadsOfHosts, EachRankHasAllCpus) {
  const int before = torch::get_num_threads();
  unsetenv("OMP_NUM_THREADS");
  setenv("LOCAL_RANK", "0", 1);
  setenv("LOCAL_WORLD_SIZE", "1", 1);
  accelerate::Accelerator accelerator;
  const bool left = accelerator.num_processes() == 1 || torch::cuda::is_available();
  EXPECT_EQ(torch::get_num_threads(), left ? before : cpus());
}

TEST(ThreadsBound, NoMoreThanTheCpusThatALauncherHasBoundItTo) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) {
    ++cpu;
  }
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
  unsetenv("OMP_NUM_THREADS");
  setenv("LOCAL_RANK", "0", 1);
  setenv("LOCAL_WORLD_SIZE", "1", 1);
  accelerate::Accelerator accelerator;
  if (accelerator.num_processes() > 1) {
    EXPECT_EQ(torch::get_num_threads(), 1);
  }
}

TEST(ThreadsChosen, TheVariableDecides) {
  torch::set_num_threads(3);  // what it stood for as LibTorch started
  setenv("OMP_NUM_THREADS", "3", 1);
  accelerate::Accelerator accelerator;
  EXPECT_EQ(torch::get_num_threads(), 3);
}

}  // namespace
