#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "toys.h"

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

TEST_F(Processes, AreNumbered) {
  EXPECT_EQ(accelerator.local_process_index(), r);  // all are on this host
  EXPECT_EQ(accelerator.is_main_process(), r == 0);
  EXPECT_EQ(accelerator.is_local_main_process(), r == 0);
  EXPECT_EQ(accelerator.is_last_process(), r == n - 1);
}

TEST_F(Processes, Once) {
  int64_t calls = 0;
  EXPECT_EQ(accelerator.once([&] { return ++calls + 0.5; }), 1.5);
  accelerator.once([&] { ++calls; });
  EXPECT_EQ(calls, r == 0 ? 2 : 0);
  const int made = accelerator.once([] {
    errno = EEXIST;
    return -1;
  });
  EXPECT_EQ(errno, EEXIST); // on every process, whatever was sent since
  EXPECT_EQ(made, -1);
  errno = 0;
  accelerator.once([] { errno = ENOENT; });
  EXPECT_EQ(errno, ENOENT);
  EXPECT_THROW(accelerator.once([&]() -> bool { throw std::runtime_error("no room"); }), std::exception);
}

/// What the main process has written and closed, all read; what all have read, it writes anew.
TEST_F(Processes, OneWritesAndAllRead) {
  const std::string path =
      testing::TempDir() + "accelerate_one_writes_" + std::to_string(accelerator.broadcast(getpid()));
  for (const int64_t content : {1, 2, 3}) {
    {
      std::ofstream file(accelerator.main_process_file(accelerator.wait_for_file(path)));
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      file << content + r;
    }
    int64_t found = 0;
    std::ifstream(accelerator.wait_for_file(path)) >> found;
    EXPECT_EQ(found, content);
  }
  accelerator.wait_for_everyone();
  accelerator.on_main_process([&] { std::remove(path.c_str()); });
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

TEST_F(Processes, ContainersArePadded) {
  using Nested = std::map<std::string, std::vector<torch::Tensor>>;
  const Nested mine{{"a", {torch::ones({r + 1, 2}), torch::scalar_tensor(r)}}, {"b", {torch::full({2 * (n - r)}, r)}}};
  const auto padded = accelerator.pad_across_processes(std::tuple(mine, torch::ones({2, r + 1}), 5), 0, 9);
  const Nested& map = std::get<0>(padded);
  EXPECT_TRUE(torch::equal(map.at("a")[0], torch::cat({torch::ones({r + 1, 2}), torch::full({n - r - 1, 2}, 9.0)})));
  EXPECT_EQ(map.at("a")[1].item<int64_t>(), r);  // without that dimension
  EXPECT_EQ(map.at("b")[0].size(0), 2 * n);
  EXPECT_EQ(map.at("b")[0][-1].item<int64_t>(), r == 0 ? 0 : 9);
  EXPECT_EQ(std::get<1>(padded).size(1), r + 1);
  EXPECT_EQ(std::get<2>(padded), 5);
  const auto [a, b] = accelerator.pad_across_processes(torch::ones({r + 1}), torch::ones({n - r, 2}));
  EXPECT_EQ(a.size(0), n);
  EXPECT_EQ(b.size(0), n);
  EXPECT_EQ(accelerator.pad_across_processes(std::vector<int>{1, 2}), (std::vector<int>{1, 2}));  // no tensors at all
  if (n > 1) {
    const std::vector<torch::Tensor> uneven(r == 1 ? 1 : 2, torch::ones({1}));
    EXPECT_THROW(accelerator.pad_across_processes(uneven), c10::Error);
  }
}

TEST_F(Processes, ContainersAreBroadcast) {
  const int64_t last = n - 1;
  EXPECT_EQ(accelerator.broadcast("rank " + std::to_string(r), last), "rank " + std::to_string(last));
  const std::map<std::string, std::vector<torch::Tensor>> mine{
      {"key " + std::to_string(r), std::vector<torch::Tensor>(static_cast<size_t>(r + 1), torch::full({r + 1}, r))}};
  const auto theirs = accelerator.broadcast(mine, last);  // keys, numbers of tensors and shapes differ
  ASSERT_EQ(theirs.count("key " + std::to_string(last)), 1U);
  ASSERT_EQ(static_cast<int64_t>(theirs.begin()->second.size()), n);
  for (const auto& x : theirs.begin()->second) {
    EXPECT_TRUE(torch::equal(x, torch::full({n}, last)));
  }
  const auto weight = torch::full({2}, 1.5 + static_cast<double>(r), torch::requires_grad());
  const auto [x, name, number, example] =
      accelerator.broadcast(weight, std::string(static_cast<size_t>(r), 'x'), 0.25 * static_cast<double>(r + 1),
                            torch::data::Example<>(torch::full({r + 1}, r), torch::Tensor()));
  EXPECT_TRUE(torch::equal(x, torch::full({2}, 1.5)));
  EXPECT_EQ(name, "");
  EXPECT_EQ(number, 0.25);
  EXPECT_EQ(example.data.numel(), 1);
  EXPECT_FALSE(example.target.defined());
  if (n > 1) {
    x.detach().zero_();
    EXPECT_EQ(weight[0].item<double>(), 1.5 + static_cast<double>(r));  // fresh on its own rank, too
    // What can't be sent throws on all ranks, and the next collective works.
    const auto sparse = torch::ones({2, 2}).to_sparse();
    EXPECT_THROW(accelerator.broadcast(std::vector<torch::Tensor>{sparse}), c10::Error);
    EXPECT_THROW(accelerator.broadcast(std::string("x"), n), c10::Error);
    EXPECT_EQ(accelerator.reduce(1), n);
  }
}

}  // namespace
