#pragma once

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

/// The base of a suite that needs options, which are the first Accelerator's of a process: it's run in a process of its
/// own, and skipped where another suite has made the state already. The suite has a static options().
template <typename Suite>
class OwnProcess : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      accelerator = std::make_unique<accelerate::Accelerator>(Suite::options());
    } catch (const c10::Error&) {
      // SetUp() skips.
    }
  }
  void SetUp() override {
    if (!accelerator) {
      GTEST_SKIP() << "needs a process of its own";
    }
    n = accelerator->num_processes();
    r = accelerator->process_index();
  }

  static inline std::unique_ptr<accelerate::Accelerator> accelerator;
  int64_t n = 1, r = 0;
};
