#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <stdexcept>
#include <vector>

namespace {

TEST(Memory, TheLargestBatchSizeThatFits) {
  accelerate::Accelerator accelerator;
  std::vector<int64_t> tried;
  const int64_t found = accelerate::find_executable_batch_size(
      [&](int64_t size) {
        tried.push_back(size);
        if (size > 100) {
          torch::empty({size, int64_t{1} << 52});  // LibTorch's own error
        }
        return size;
      },
      128);
  EXPECT_EQ(found, 92);
  EXPECT_EQ(tried, (std::vector<int64_t>{128, 115, 103, 92}));
}

TEST(Memory, OneRanksShortageIsAllRanks) {
  accelerate::Accelerator accelerator;
  std::vector<int64_t> tried;
  accelerate::find_executable_batch_size(
      [&](int64_t size) {
        tried.push_back(size);
        if (size > 8 && accelerator.is_last_process()) {
          TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory");
        }
      },
      10);
  EXPECT_EQ(tried, (std::vector<int64_t>{10, 9, 8}));
}

TEST(Memory, OtherErrorsAndNoSizeAtAll) {
  accelerate::Accelerator accelerator;
  EXPECT_THROW(accelerate::find_executable_batch_size([](int64_t) { throw std::runtime_error("another"); }),
               std::runtime_error);
  int calls = 0;
  EXPECT_THROW(accelerate::find_executable_batch_size(
                   [&](int64_t) {
                     ++calls;
                     throw std::bad_alloc();
                   },
                   3),
               c10::Error);
  EXPECT_EQ(calls, 3);  // 3, 2, 1
}

}  // namespace
