/// Options that no other suite needs. Each suite is a process of its own.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>

#include "own_process.h"
#include "toys.h"

namespace {

/// ProjectConfiguration::logging_dir, and a limit that nothing can keep to.
class LoggingDir : public OwnProcess<LoggingDir> {
 public:
  static accelerate::Options options() {
    accelerate::Options options;
    options.project.project_dir = own + "/project";
    options.project.logging_dir = own + "/logs";
    options.project.log_with = "csv";
    options.project.automatic_checkpoint_naming = true;
    options.project.total_limit = 0;
    return options;
  }

 protected:
  static inline const std::string own = testing::TempDir() + "accelerate-logging-" +
                                        std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
};

TEST_F(LoggingDir, TrackersWriteThere) {
  const std::string folder = accelerator->broadcast(own);  // the main process writes
  accelerator->init_trackers("mnist");
  accelerator->log({{"loss", 0.5}});
  accelerator->end_training();
  accelerator->wait_for_everyone();
  EXPECT_TRUE(std::ifstream(folder + "/logs/mnist/metrics.csv").good());
  EXPECT_FALSE(std::ifstream(folder + "/project/mnist/metrics.csv").good());
  EXPECT_NE(toys::error_of([&] { accelerator->save_state(); }).find("total_limit has to be 1 or more"),
            std::string::npos);
  accelerator->once([&] { (void)!std::system(("rm -rf " + folder).c_str()); });
}

/// ACCELERATE_LOG_WITH, where the program names no tracker.
TEST(LogWithVariable, ChoosesTrackers) {
  setenv("ACCELERATE_LOG_WITH", "jsonl, csv", 1);
  accelerate::Options options;
  options.project.logging_dir = testing::TempDir() + "accelerate-log-with-" + std::to_string(getppid());
  accelerate::Accelerator accelerator(options);
  const std::string folder = accelerator.broadcast(options.project.logging_dir);
  accelerator.init_trackers("mnist");
  accelerator.log({{"loss", 0.5}});
  accelerator.end_training();
  accelerator.wait_for_everyone();
  EXPECT_TRUE(std::ifstream(folder + "/mnist/metrics.csv").good());
  EXPECT_TRUE(std::ifstream(folder + "/mnist/metrics.jsonl").good());
  accelerator.wait_for_everyone();
  accelerator.once([&] { (void)!std::system(("rm -rf " + folder).c_str()); });
}

/// ACCELERATE_TORCH_DEVICE, and ACCELERATE_USE_CPU, which comes before it.
TEST(DeviceVariables, Decide) {
  unsetenv("ACCELERATE_USE_CPU");
  setenv("ACCELERATE_TORCH_DEVICE", "meta", 1);  // which every machine has
  accelerate::Accelerator accelerator;
  EXPECT_EQ(accelerator.device(), torch::Device(torch::kMeta));
  EXPECT_EQ(accelerator.device(torch::kCPU), torch::Device(torch::kCPU));  // the program's own choice
  setenv("ACCELERATE_USE_CPU", "1", 1);
  if (accelerator.num_processes() > 1) {
    EXPECT_EQ(accelerator.device(torch::kCUDA), torch::Device(torch::kCPU));
  }
}

/// How often the launcher has started the job again.
TEST(Restarts, AreCounted) {
  unsetenv("TORCHELASTIC_RESTART_COUNT");
  accelerate::Accelerator accelerator;
  EXPECT_EQ(accelerator.restarts(), 0);
  setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
  EXPECT_EQ(accelerator.restarts(), 2);
}

TEST(RefusedTimeout, IsNamed) {
  accelerate::Options options;
  options.init_process_group.timeout = std::chrono::seconds(0);
  const std::string error = toys::error_of([&] { accelerate::Accelerator accelerator(options); });
  if (error.find("must be the program's first") != std::string::npos) {
    GTEST_SKIP() << "needs a process of its own";
  }
  EXPECT_NE(error.find("InitProcessGroupOptions::timeout is 0 s, and must be 1 s or more"), std::string::npos) << error;
}

}  // namespace
