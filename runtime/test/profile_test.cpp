/// Profiles, loggers and progress bars.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "temporary_folder.h"
#include "toys.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Profile, TracesOperatorsAndBackwardOfEachRank) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  torch::nn::Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer);
  std::string path;
  {
    accelerate::ProfileOptions options;
    options.output_trace_dir = folder / "a/b";
    options.record_shapes = true;
    auto profile = accelerator.profile(options);
    path = profile.path();
    EXPECT_THROW((void)accelerator.profile(options), c10::Error);  // one at a time
    accelerator.backward(model->forward(torch::ones({2, 6})).sum());
    optimizer.step();
  }
  EXPECT_EQ(path, (folder / "a/b/profile_") + std::to_string(accelerator.process_index()) + ".json");
  const std::string trace = read(path);
  for (const char* expected : {"\"traceEvents\"", "aten::addmm", "aten::tanh", "TanhBackward0", "Input Dims"}) {
    EXPECT_NE(trace.find(expected), std::string::npos) << expected << " in " << trace.size() << " bytes";
  }
  EXPECT_EQ(trace.find("aten::sin"), std::string::npos);
  auto second = accelerator.profile({folder / "c"});
  torch::ones({3}).sin();
  second.stop();
  second.stop();
  EXPECT_NE(read(second.path()).find("aten::sin"), std::string::npos);
}

TEST(Logging, LevelsAndRanks) {
  accelerate::Accelerator accelerator;
  auto logger = accelerate::get_logger("train", accelerate::LogLevel::Info);
  testing::internal::CaptureStderr();
  logger.debug("not this");
  logger.info("step ", 3, " of ", 4.5);
  logger.all_processes().warning("everyone");
  const std::string rank = "[RANK " + std::to_string(accelerator.process_index()) + "] ";
  const std::string prefix = accelerator.num_processes() > 1 ? rank : "";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            (accelerator.is_main_process() ? "INFO:train: " + prefix + "step 3 of 4.5\n" : "") +
                "WARNING:train: " + prefix + "everyone\n");
  EXPECT_EQ(accelerate::get_logger("x").level(), accelerate::LogLevel::Warning);
  setenv("ACCELERATE_LOG_LEVEL", "debug", 1);
  EXPECT_EQ(accelerate::get_logger("x").level(), accelerate::LogLevel::Debug);
  setenv("ACCELERATE_LOG_LEVEL", "loud", 1);
  EXPECT_THROW(accelerate::get_logger("x"), c10::Error);
  unsetenv("ACCELERATE_LOG_LEVEL");
}

TEST(Progress, IsDrawnOnceAHost) {
  accelerate::Accelerator accelerator;
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    {
      accelerate::ProgressBar bar(40, "epoch 1", out, terminal);
      for (int i = 0; i < 40; ++i) {
        bar.set_postfix("loss " + std::to_string(i));
        bar.update();
      }
    }
    if (!accelerator.is_local_main_process()) {
      EXPECT_EQ(out.str(), "");
      continue;
    }
    const std::string text = out.str();
    EXPECT_EQ(text.back(), '\n');
    EXPECT_NE(text.find("epoch 1: 100%|####################| 40/40 ["), std::string::npos) << text;
    EXPECT_NE(text.find("loss 39"), std::string::npos) << text;
    const auto draws = std::count(text.begin(), text.end(), '\r');
    EXPECT_EQ(draws > 0, terminal);
    EXPECT_LE(draws, 4);  // far fewer than updates
  }
  std::ostringstream out;
  accelerate::ProgressBar unknown(0, "", out, false);
  unknown.update(7);
  unknown.close();
  EXPECT_EQ(out.str().substr(0, 3), accelerator.is_local_main_process() ? "7 [" : "");
}

}  // namespace
