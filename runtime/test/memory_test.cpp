#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "toys.h"

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

/// How often a checkpoint's manifest names something.
size_t count(const std::string& folder, const std::string& word) {
  std::ifstream file(folder + "/manifest.json");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  size_t result = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++result;
  }
  return result;
}

TEST(Memory, AnAttemptsRegistrationsGoWithIt) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  static int64_t before = 1, within = 2;
  const accelerate::detail::Attempt test;
  accelerator.register_for_checkpointing(before);
  accelerate::find_executable_batch_size(
      [&](int64_t size) {
        accelerator.register_for_checkpointing(within);
        if (size > 6) {
          throw std::bad_alloc();
        }
        accelerator.save_state(folder / "c");
      },
      8);
  EXPECT_EQ(count(folder / "c", "\"file\": \"custom_checkpoint_"), 2U);
  test.undo();
}

TEST(Memory, FreedObjectsArePreparedAnew) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  auto model = toys::perceptron();
  auto optimizer = std::make_unique<torch::optim::SGD>(model->parameters(), 0.1);
  auto going = toys::perceptron();
  accelerator.prepare(model, optimizer, going);
  const auto gradient = [&] {
    model->zero_grad();
    accelerator.backward(
        model->forward(torch::full({1, 6}, 1.0 + static_cast<double>(accelerator.process_index()))).sum());
    return model->parameters()[0].grad();
  };
  const auto expected = gradient().clone();
  accelerator.free_memory(going, optimizer);
  EXPECT_TRUE(going.is_empty());
  EXPECT_EQ(optimizer, nullptr);
  accelerator.save_state(folder / "c");
  EXPECT_EQ(count(folder / "c", "model.safetensors"), 0U);
  EXPECT_EQ(count(folder / "c", "\"step\": 0"), 1U);
  optimizer = std::make_unique<torch::optim::SGD>(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer);
  EXPECT_TRUE(torch::equal(gradient(), expected));
}

}  // namespace
