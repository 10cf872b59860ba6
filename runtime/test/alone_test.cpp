#include <accelerate/accelerate.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <thread>

#include "toys.h"

namespace {

/// Threads of this process.
int threads() {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (readdir(folder)) {
    ++count;
  }
  closedir(folder);
  return count - 2;
}

/// The same when none is ending: one that has been joined stands there for a moment longer.
int threads_that_stay() {
  int count = threads();
  for (int same = 0; same < 20; ++same) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (const int now = threads(); now != count) {
      count = now;
      same = 0;
    }
  }
  return count;
}

TEST(Alone, NothingIsStarted) {
  torch::cuda::is_available();  // whose driver may start one
  const int before = threads();
  accelerate::Accelerator accelerator;
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer);
  EXPECT_EQ(threads(), before);  // no store, no process group
  accelerator.backward(model->forward(torch::ones({1, 2})).sum());
  for (const auto& p : model->parameters()) {
    EXPECT_EQ(torch::autograd::impl::hooks(p).size(), 0U);
  }
  EXPECT_EQ(accelerator.num_processes(), 1);
}

TEST(Alone, ValuesAreReturnedThemselves) {
  accelerate::Accelerator accelerator;
  auto x = torch::ones({2}, torch::requires_grad());
  EXPECT_TRUE(accelerator.reduce(x).is_same(x));
  EXPECT_TRUE(accelerator.share(x).is_same(x));
  EXPECT_TRUE(accelerator.mean(x).is_same(x));
  EXPECT_TRUE(accelerator.mine(x).is_same(x));
  EXPECT_TRUE(accelerator.gather(x).is_same(x));
  EXPECT_TRUE(accelerator.broadcast(x).is_same(x));
  EXPECT_EQ(accelerator.mean(0.1F), 0.1F);
}

TEST(Alone, LoadersWorkAsTorchsDo) {
  if (torch::cuda::is_available()) {
    GTEST_SKIP() << "with a GPU, loaders may have to deliver to it";
  }
  for (const size_t workers : {0, 2}) {
    const auto run = [&](auto make) {
      torch::manual_seed(4);
      const int before = threads_that_stay();
      auto loader = make(toys::Numbers(11), torch::data::DataLoaderOptions(3).workers(workers).drop_last(true));
      std::vector<torch::Tensor> result{torch::tensor(threads() - before)};
      for (int epoch = 0; epoch < 2; ++epoch) {
        for (auto& batch : *loader) {
          for (const auto& example : batch) {
            result.push_back(example.data);
          }
        }
        result.push_back(torch::rand({2}));  // the generator went the same way
      }
      return result;
    };
    const auto torchs = run([](auto... x) { return torch::data::make_data_loader(x...); });
    const auto ours = run([](auto... x) { return accelerate::make_data_loader(x...); });
    ASSERT_EQ(ours.size(), torchs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_TRUE(torch::equal(ours[i], torchs[i])) << i;
    }
  }
}

TEST(Alone, DropoutIsTheOriginals) {
  torch::manual_seed(1);
  const auto a = torch::dropout(torch::ones({100}), 0.5, true);
  accelerate::Accelerator accelerator;
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(a, torch::dropout(torch::ones({100}), 0.5, true)));
}

}  // namespace
