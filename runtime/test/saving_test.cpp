/// What save_state() and save() do in rarer cases: loaders of LibTorch's, gradients of no_sync(), a disk that is full.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "toys.h"

namespace {

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

/// Loaders of torch::data: between epochs there is nothing to be kept but the generator.
void check_loaders_of_torch(size_t workers) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  std::vector<double> losses;
  const auto train = [&](int from, int to, bool save) {
    torch::manual_seed(from == 0 ? 3 : 4);
    auto model = toys::perceptron();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    auto loader = torch::data::make_data_loader(waves(11), torch::data::DataLoaderOptions(4).workers(workers));
    accelerator.prepare(model, optimizer, loader);
    if (from > 0) {
      accelerator.load_state(folder / "c");
    }
    for (int epoch = from; epoch < to; ++epoch) {
      if (save && epoch == 2) {
        accelerator.save_state(folder / "c");
        losses.clear();
      }
      int64_t step = 0;
      for (auto& batch : *loader) {
        optimizer.zero_grad();
        const auto loss = torch::mse_loss(model->forward(batch.data), batch.target);
        accelerator.backward(loss);
        optimizer.step();
        losses.push_back(loss.item<double>());
        if (++step == 1) {
          EXPECT_NE(toys::error_of([&] { accelerator.save_state(folder / "mid"); }).find("in the middle of an epoch"),
                    std::string::npos);
        }
      }
    }
  };
  train(0, 4, true);
  const auto expected = losses;
  losses.clear();
  train(2, 4, false);
  EXPECT_EQ(losses, expected);
}

TEST(Saving, LoadersOfTorchBetweenEpochs) { check_loaders_of_torch(0); }
TEST(Saving, LoadersOfTorchWithWorkersBetweenEpochs) { check_loaders_of_torch(2); }

/// What no_sync() has kept on each rank goes on from there.
TEST(Saving, GradientsThatWaitAreKept) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  const auto rank = static_cast<float>(accelerator.process_index());
  auto model = toys::perceptron();
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(4, 2).sparse(true));
  accelerator.prepare(model, table);
  const auto loss = [&](int64_t step) {
    return (model->forward(torch::sin(torch::arange(6) * (1 + rank) + step)) * (1 + rank)).sum() +
           table->forward(torch::tensor({step % 4, static_cast<int64_t>(rank) % 4})).pow(2).sum();
  };
  const auto finish = [&] {
    accelerator.backward(loss(2));
    std::vector<torch::Tensor> gradients;
    for (const auto& list : {model->parameters(), table->parameters()}) {
      for (const auto& p : list) {
        gradients.push_back(p.grad().is_sparse() ? p.grad().to_dense() : p.grad().clone());
        p.mutable_grad().reset();
      }
    }
    return gradients;
  };
  {
    auto local = accelerator.no_sync();
    accelerator.backward(loss(0));
    accelerator.backward(loss(1));
  }
  accelerator.save_state(folder / "waiting");
  const auto expected = finish();
  accelerator.save_state(folder / "nothing");
  {
    auto local = accelerator.no_sync();
    accelerator.backward(loss(3));  // what was there goes
  }
  accelerator.load_state(folder / "waiting");
  EXPECT_LT(toys::distance(finish(), expected), 1e-6);
  accelerator.load_state(folder / "nothing");
  for (const auto& p : model->parameters()) {
    EXPECT_FALSE(p.grad().defined());
  }
  if (accelerator.is_main_process()) {
    EXPECT_TRUE(std::ifstream(folder / "waiting/gradients_0.bin").good());
  }
}

/// save() throws where LibTorch's writer would end the process; and what it writes is what LibTorch would.
TEST(Saving, SaveOnAFullDisk) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  auto model = toys::perceptron();
  accelerator.prepare(model);
  accelerator.save(model, folder / "model.pt");
  const auto bytes = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  if (accelerator.is_main_process()) {
    ASSERT_EQ(mkdir((folder / "torch").c_str(), 0700), 0);
    torch::save(model, folder / "torch/model.pt");
    EXPECT_FALSE(bytes(folder / "model.pt").empty());
    EXPECT_EQ(bytes(folder / "model.pt"), bytes(folder / "torch/model.pt"));
  }
  EXPECT_NE(toys::error_of([&] { accelerator.save(model, "/dev/full"); })
                .find(accelerator.is_main_process() ? "can't write /dev/full: No space left on device"
                                                    : "couldn't save /dev/full"),
            std::string::npos);
  EXPECT_NE(toys::error_of([&] { accelerator.save(model, folder / "no/such/folder.pt"); }).find("folder.pt"),
            std::string::npos);
  // A file that may not grow fails as a disk does that is full.
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit limit{1000, old_limit.rlim_max};
  if (accelerator.is_main_process()) {
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  const std::string error = toys::error_of([&] { accelerator.save(model, folder / "model.pt"); });
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_NE(error.find("model.pt"), std::string::npos) << error;
  if (accelerator.is_main_process()) {
    EXPECT_NE(error.find("File too large"), std::string::npos) << error;
    // With other ranks the older file stays; alone it was written over, as torch::save() does, and half a file is none.
    EXPECT_EQ(bytes(folder / "model.pt").empty(), accelerator.num_processes() == 1);
  }
  accelerator.save(model, folder / "model.pt");
  torch::load(model, folder / "model.pt");
}

/// The last one here: from such a loader on, the process refuses.
TEST(Saving, LoadersThatNothingIsKnownOfHaveNoPosition) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  if (accelerator.num_processes() == 1) {
    auto with_workers = torch::data::make_data_loader(waves(4), torch::data::samplers::DistributedSequentialSampler(4),
                                                      torch::data::DataLoaderOptions(2).workers(1));
    accelerator.prepare(with_workers);
    EXPECT_NE(
        toys::error_of([&] { accelerator.save_state(folder / "c"); }).find("make it with accelerate::make_data_loader"),
        std::string::npos);
  }
}

}  // namespace
