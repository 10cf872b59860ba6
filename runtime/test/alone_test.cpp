#include <accelerate/accelerate.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

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

TEST(Alone, NothingIsStarted) {
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

TEST(Alone, LoadersGiveWhatTorchsGive) {
  for (const size_t workers : {0, 2}) {
    const auto options = torch::data::DataLoaderOptions(3).workers(workers);
    const auto draws = [&](auto make) {
      torch::manual_seed(4);
      auto loader = make(toys::Numbers(8).map(torch::data::transforms::Stack<>()), options);
      std::vector<torch::Tensor> seen;
      for (int epoch = 0; epoch < 2; ++epoch) {
        for (auto& batch : *loader) {
          seen.push_back(batch.data);
          seen.push_back(torch::rand({2}));  // the program's own draws come out the same, too
        }
      }
      return seen;
    };
    const auto torchs =
        draws([](auto dataset, auto o) { return torch::data::make_data_loader(std::move(dataset), o); });
    const auto ours = draws([](auto dataset, auto o) { return accelerate::make_data_loader(std::move(dataset), o); });
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
