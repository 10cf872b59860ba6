#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

class Processes : public testing::Test {
 protected:
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

TEST_F(Processes, Triggers) {
  EXPECT_FALSE(accelerator.check_trigger());
  if (accelerator.is_last_process()) {
    accelerator.set_trigger();
  }
  EXPECT_TRUE(accelerator.check_trigger());
  EXPECT_FALSE(accelerator.check_trigger());  // and it's released
}

TEST_F(Processes, Once) {
  int64_t calls = 0;
  EXPECT_EQ(accelerator.once([&] { return ++calls + 0.5; }), 1.5);
  accelerator.once([&] { ++calls; });
  EXPECT_EQ(calls, r == 0 ? 2 : 0);
  EXPECT_THROW(accelerator.once([&]() -> bool { throw std::runtime_error("no room"); }), std::exception);
}

TEST_F(Processes, OnOneProcess) {
  int64_t main = 0, local = 0, last = 0, second = 0;
  accelerator.on_main_process([&] { ++main; });
  accelerator.on_local_main_process([&] { ++local; });
  accelerator.on_last_process([&] { ++last; });
  accelerator.on_process(1, [&] { ++second; });
  EXPECT_EQ(accelerator.is_last_process(), r == n - 1);
  EXPECT_EQ(last, r == n - 1);
  EXPECT_EQ(second, n == 1 || r == 1);
  EXPECT_EQ(local, r == 0);
  accelerator.reduce_(main, local, last, second);
  EXPECT_EQ(main + local + last + second, 4);
}

TEST_F(Processes, TheMainProcessGoesFirst) {
  const std::string path = testing::TempDir() + "accelerate_first_" + std::to_string(accelerator.broadcast(getpid()));
  for (const bool local : {false, true}) {
    {
      auto order = local ? accelerator.local_main_process_first() : accelerator.main_process_first();
      if (r == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::ofstream(path) << "here";
      }
      EXPECT_TRUE(std::ifstream(path).good());
    }
    accelerator.wait_for_everyone();
    accelerator.on_main_process([&] { std::remove(path.c_str()); });
    accelerator.wait_for_everyone();
  }
}

TEST_F(Processes, AnErrorOfTheFirstEndsTheWaitOfTheOthers) {
  std::string text;
  try {
    auto order = accelerator.main_process_first();
    accelerator.on_main_process([] { throw std::runtime_error("no such file"); });
    text = "no error";
  } catch (const c10::Error& error) {
    text = error.what_without_backtrace();
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  EXPECT_NE(text.find(r == 0 ? "no such file" : "an exception ended the part"), std::string::npos) << text;
  EXPECT_EQ(accelerator.reduce(1), n);  // and they are together still
}

TEST_F(Processes, ContainersAreSplit) {
  for (const int64_t length : {0, 1, 2, 5, 6, 7}) {
    std::vector<int> whole(static_cast<size_t>(length));
    std::iota(whole.begin(), whole.end(), 0);
    const auto part = accelerator.split_between_processes(whole);
    const int64_t each = length / n, longer = length % n;
    EXPECT_EQ(static_cast<int64_t>(part.size()), each + (r < longer ? 1 : 0));
    const auto tensor = torch::arange(length);
    EXPECT_TRUE(torch::equal(accelerator.gather(accelerator.split_between_processes(tensor)), tensor));
    for (size_t i = 0; i < part.size(); ++i) {
      EXPECT_EQ(part[i], r * each + std::min(r, longer) + static_cast<int64_t>(i));
    }

    const auto padded = accelerator.split_between_processes(std::deque<int>(whole.begin(), whole.end()), true);
    EXPECT_EQ(static_cast<int64_t>(padded.size()), (length + n - 1) / n);
    const auto all = accelerator.gather(accelerator.split_between_processes(tensor, true));
    EXPECT_EQ(all.size(0), (length + n - 1) / n * n);
    EXPECT_TRUE(torch::equal(all.narrow(0, 0, length), tensor));
    for (int64_t i = length; i < all.size(0); ++i) {
      EXPECT_EQ(all[i].item<int64_t>(), length - 1);
    }
  }
  const std::map<std::string, std::vector<int>> table{{"a", {1, 2, 3}}, {"b", {4, 5, 6}}};
  const auto mine = accelerator.split_between_processes(table);
  EXPECT_EQ(mine.at("a").size(), mine.at("b").size());
  EXPECT_EQ(accelerator.reduce(std::accumulate(mine.at("b").begin(), mine.at("b").end(), 0)), 15);
  if (n > 1) {
    const std::map<std::string, std::vector<int>> uneven{{"a", {1, 2, 3}}, {"b", {4}}};
    EXPECT_THROW(accelerator.split_between_processes(uneven), c10::Error);
  }
}

TEST_F(Processes, TensorsArePadded) {
  const auto x = torch::full({2, r + 1}, r + 1, torch::kInt);
  EXPECT_TRUE(torch::equal(accelerator.pad_across_processes(x, 1, -1),
                           torch::cat({x, torch::full({2, n - r - 1}, -1, torch::kInt)}, 1)));
  EXPECT_TRUE(torch::equal(accelerator.pad_across_processes(x, -1, 7, /*pad_first=*/true),
                           torch::cat({torch::full({2, n - r - 1}, 7, torch::kInt), x}, 1)));
  EXPECT_TRUE(torch::equal(accelerator.pad_across_processes(x), x));
  EXPECT_THROW(accelerator.pad_across_processes(x, 2), c10::Error);
  if (n > 1) {
    EXPECT_THROW(accelerator.pad_across_processes(r == 1 ? x : x[0]), c10::Error);
  }
  auto w = torch::ones({r + 1}, torch::requires_grad());
  (accelerator.pad_across_processes(w) * 3).sum().backward();  // differentiable
  EXPECT_TRUE(torch::equal(w.grad(), torch::full({r + 1}, 3.0)));
}

TEST_F(Processes, PaddingAnUndefinedTensorThrowsOnAllRanks) {
  const auto x = accelerator.is_last_process() ? torch::Tensor() : torch::ones({2});
  EXPECT_NE(toys::error_of([&] { accelerator.pad_across_processes(x); }).find("undefined"), std::string::npos);
  EXPECT_EQ(accelerator.reduce(1), accelerator.num_processes());
}

}  // namespace
