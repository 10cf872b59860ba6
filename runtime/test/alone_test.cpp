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

TEST(Alone, LoadersAreTorchs) {
  if (torch::cuda::is_available()) {
    GTEST_SKIP() << "with a GPU, loaders may have to deliver to it";
  }
  auto loader = accelerate::make_data_loader(toys::Numbers(4), 2);
  EXPECT_EQ(dynamic_cast<accelerate::detail::LoaderControl*>(loader.get()), nullptr);
}

TEST(Alone, DropoutIsTheOriginals) {
  torch::manual_seed(1);
  const auto a = torch::dropout(torch::ones({100}), 0.5, true);
  accelerate::Accelerator accelerator;
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(a, torch::dropout(torch::ones({100}), 0.5, true)));
}

}  // namespace
