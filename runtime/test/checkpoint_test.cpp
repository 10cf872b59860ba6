#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>

#include "temporary_folder.h"
#include "toys.h"

namespace {

using torch::nn::Sequential;

/// Registered objects are referred to for the rest of the process, so there is one of each.
int64_t global_step = 0;
double best = 0;

void register_counters() {
  static const bool done = [] {
    accelerate::Accelerator().register_for_checkpointing(global_step, best);
    return true;
  }();
  (void)done;
}

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

Sequential network(double dropout) {
  return Sequential(torch::nn::Linear(6, 16), torch::nn::Tanh(), torch::nn::Dropout(dropout),
                    torch::nn::BatchNorm1d(16), torch::nn::Linear(16, 1));
}

std::vector<torch::Tensor> clones(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> result;
  for (const auto& x : tensors) {
    result.push_back(x.detach().clone());
  }
  return result;
}

/// A training program: shuffling, dropout, batch statistics, momentum, a schedule, draws of its own.
struct Program {
  explicit Program(int seed, bool adam, size_t workers, bool prepare_loader_twice = false) {
    register_counters();
    torch::manual_seed(seed);
    model = network(0.3);
    if (adam) {
      optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), 0.01);
    } else {
      optimizer =
          std::make_unique<torch::optim::SGD>(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
    }
    scheduler = std::make_unique<torch::optim::StepLR>(*optimizer, 3, 0.7);
    plateau = std::make_unique<torch::optim::ReduceLROnPlateauScheduler>(
        *optimizer, torch::optim::ReduceLROnPlateauScheduler::min, 0.5F, 1);
    loader = accelerate::make_data_loader(waves(44), torch::data::DataLoaderOptions(9).workers(workers));
    accelerator.prepare(model, optimizer, loader, scheduler, plateau);
    if (prepare_loader_twice) {
      accelerator.prepare(model, loader, optimizer);
    }
    global_step = 0;
    best = 1e9;
  }

  /// Trains up to `epochs` of 5 steps, saving where `save_at` says.
  void train(int epochs, int64_t save_at = -1, const std::string& folder = "") {
    while (global_step < int64_t{5} * epochs) {
      for (auto& batch : *loader) {
        optimizer->zero_grad();
        const auto noise = accelerator.own_rows(torch::randn({accelerator.global_rows(batch.data.size(0)), 6}));
        const auto loss = torch::mse_loss(model->forward(batch.data + 0.1 * noise), batch.target);
        accelerator.backward(loss);
        optimizer->step();
        scheduler->step();
        ++global_step;
        const double mean = accelerator.mean(loss).template item<double>();
        best = std::min(best, mean);
        if (global_step % 4 == 0) {
          plateau->step(static_cast<float>(mean));
        }
        losses.push_back(mean);
        if (global_step == save_at) {
          accelerator.save_state(folder);
        }
      }
    }
  }

  accelerate::Accelerator accelerator;
  Sequential model{nullptr};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<torch::optim::StepLR> scheduler;
  std::unique_ptr<torch::optim::ReduceLROnPlateauScheduler> plateau;
  decltype(accelerate::make_data_loader(waves(1), 1)) loader;
  std::vector<double> losses;
};

TEST(Checkpoint, ResumesInMidEpochBitForBit) {
  for (const bool adam : {false, true}) {
    for (const size_t workers : {0, 2}) {
      // In an epoch's middle, behind its last batch, in the second epoch's middle.
      for (const int64_t at : {3, 5, 7}) {
        TemporaryFolder folder;
        std::vector<torch::Tensor> weights, buffers;
        std::vector<double> losses;
        double whole_best = 0;
        torch::Tensor drawn;
        {
          Program whole(1, adam, workers);
          whole.train(3, at, folder / "c");
          weights = clones(whole.model->parameters());
          buffers = clones(whole.model->buffers());
          losses = whole.losses;
          whole_best = best;
          drawn = torch::rand({4});
        }
        Program resumed(99, adam, workers, /*prepare_loader_twice=*/true);
        torch::rand({7});
        EXPECT_EQ(resumed.accelerator.load_state(folder / "c"), folder / "c");
        EXPECT_EQ(global_step, at);
        resumed.train(3);
        EXPECT_EQ(toys::distance(weights, resumed.model->parameters()), 0) << "step " << at << ", adam " << adam;
        EXPECT_EQ(toys::distance(buffers, resumed.model->buffers()), 0);
        EXPECT_EQ(resumed.losses, std::vector<double>(losses.begin() + at, losses.end()));
        EXPECT_EQ(best, whole_best);
        EXPECT_TRUE(torch::equal(drawn, torch::rand({4})));
      }
    }
  }
}

/// Several megabytes, used in another order than registered in.
struct BigImpl : torch::nn::Module {
  BigImpl() {
    for (const char* name : {"c", "a", "d", "b"}) {
      layers.emplace(name, register_module(name, torch::nn::Linear(500, 500)));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const char* name : {"a", "b", "c", "d"}) {
      x = torch::tanh(layers.at(name)->forward(x));
    }
    return x;
  }
  std::map<std::string, torch::nn::Linear> layers;
};
TORCH_MODULE(Big);

TEST(Checkpoint, ResumesBitForBitWithManyBuckets) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  const auto train = [&](bool save, std::vector<torch::Tensor>& weights) {
    torch::manual_seed(save ? 1 : 2);
    Big model;
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1.0).momentum(0.9));
    accelerator.prepare(model, optimizer);
    if (!save) {
      accelerator.load_state(folder / "c");
    }
    for (int step = save ? 0 : 3; step < 5; ++step) {
      optimizer.zero_grad();
      const auto x =
          torch::sin(torch::arange(1000.0).reshape({2, 500}) * (1 + step + 10 * accelerator.process_index()));
      accelerator.backward(model->forward(x).pow(3).sum());
      optimizer.step();
      if (save && step == 2) {
        accelerator.save_state(folder / "c");
      }
    }
    weights = clones(model->parameters());
  };
  std::vector<torch::Tensor> whole, resumed;
  train(true, whole);
  train(false, resumed);
  EXPECT_EQ(toys::distance(whole, resumed), 0);
}

TEST(Checkpoint, SavingChangesNothing) {
  TemporaryFolder folder;
  Program saving(5, true, 0), other(5, true, 0);
  torch::manual_seed(6);
  saving.train(2, 3, folder / "c");
  const auto drawn = torch::randn({8});
  global_step = 0;
  torch::manual_seed(6);
  other.train(2);
  EXPECT_TRUE(torch::equal(torch::randn({8}), drawn));
  // Not to the last bit on every machine: what is saved takes memory, and LibTorch's kernels add up a tensor in another
  // order where it begins at another place of a cache line.
  ASSERT_EQ(saving.losses.size(), other.losses.size());
  for (size_t i = 0; i < other.losses.size(); ++i) {
    EXPECT_NEAR(saving.losses[i], other.losses[i], 1e-5 * other.losses[i]);
  }
}

TEST(Checkpoint, ResumesInTheProcessThatSaved) {
  TemporaryFolder folder;
  Program program(3, false, 2);
  program.train(3, 7, folder / "c");
  const auto losses = program.losses;
  const auto weights = clones(program.model->parameters());
  program.accelerator.load_state(folder / "c");
  program.losses.clear();
  program.train(3);
  EXPECT_EQ(program.losses, std::vector<double>(losses.begin() + 7, losses.end()));
  EXPECT_EQ(toys::distance(weights, program.model->parameters()), 0);
}

/// A sampler that saves nothing and shuffles with a generator of its own.
class Shuffler : public torch::data::samplers::Sampler<> {
 public:
  explicit Shuffler(size_t size) : indices_(size) { std::iota(indices_.begin(), indices_.end(), 0); }
  void reset(std::optional<size_t> = std::nullopt) override {
    std::shuffle(indices_.begin(), indices_.end(), engine_);
    next_ = 0;
  }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    if (next_ == indices_.size()) {
      return std::nullopt;
    }
    const size_t end = std::min(indices_.size(), next_ + batch_size);
    std::vector<size_t> batch(indices_.begin() + static_cast<int64_t>(next_),
                              indices_.begin() + static_cast<int64_t>(end));
    next_ = end;
    return batch;
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  std::vector<size_t> indices_;
  size_t next_ = 0;
  std::mt19937 engine_{7};
};

TEST(Checkpoint, LoadersGoOnWhateverTheSampler) {
  accelerate::Accelerator accelerator;
  for (const bool drop_last : {false, true}) {
    for (const size_t workers : {0, 3}) {
      const auto make = [&] {
        return accelerate::make_data_loader(toys::Numbers(23).map(torch::data::transforms::Stack<>()), Shuffler(23),
                                            torch::data::DataLoaderOptions(4).workers(workers).drop_last(drop_last));
      };
      for (int at = 1; at < 12; ++at) {
        TemporaryFolder folder;
        std::vector<double> whole, resumed;
        {
          auto loader = make();
          accelerator.prepare(loader);
          for (int epoch = 0, step = 0; epoch < 3; ++epoch) {
            for (auto& batch : *loader) {
              if (step >= at) {
                whole.push_back(batch.data.sum().item().toDouble());
              }
              if (++step == at) {
                accelerator.save_state(folder / "c");
              }
            }
          }
        }
        auto loader = make();
        accelerator.prepare(loader);
        accelerator.load_state(folder / "c");
        const int begun = (at - 1) / (drop_last ? 5 : 6);
        for (int epoch = begun; epoch < 3; ++epoch) {
          for (auto& batch : *loader) {
            resumed.push_back(batch.data.sum().item().toDouble());
          }
        }
        EXPECT_EQ(resumed, whole) << "drop_last " << drop_last << ", workers " << workers << ", at " << at;
      }
    }
  }
}

TEST(Checkpoint, BetweenEpochsANewOneBegins) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  auto loader = accelerate::make_data_loader(toys::Numbers(9), 4);
  auto evaluation = accelerate::make_evaluation_data_loader(toys::Numbers(9), 4);
  accelerator.prepare(loader, evaluation);
  const auto count = [](auto& any) {
    int batches = 0;
    for (auto& batch : *any) {
      batches += !batch.empty();
    }
    return batches;
  };
  EXPECT_EQ(count(loader), 3);
  const int mine = count(evaluation);
  for (auto& batch : *evaluation) {  // left in its middle
    EXPECT_FALSE(batch.empty());
    break;
  }
  accelerator.save_state(folder / "c");
  accelerator.load_state(folder / "c");
  EXPECT_EQ(count(loader), 3);
  EXPECT_EQ(count(evaluation), mine);
}

TEST(Checkpoint, OwnTypesAndFunctionsAreRegistered) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  static torch::Tensor tensor = torch::zeros({2});
  static std::string text;
  static std::vector<int64_t> list;
  static const bool registered = [&] {
    accelerator.register_for_checkpointing(tensor, text);
    accelerator.register_for_checkpointing(
        [](torch::serialize::OutputArchive& archive) { archive.write("list", c10::IValue(list)); },
        [](torch::serialize::InputArchive& archive) {
          c10::IValue value;
          archive.read("list", value);
          list = value.toIntVector();
        });
    return true;
  }();
  ASSERT_TRUE(registered);
  tensor.fill_(4);
  text = "before";
  list = {3, 1, 2};
  best = -std::numeric_limits<double>::infinity();
  global_step = -5;
  accelerator.save_state(folder / "c");
  const torch::Tensor alias = tensor;
  tensor.zero_();
  text.clear();
  list.clear();
  best = 0;
  global_step = 0;
  accelerator.load_state(folder / "c");
  EXPECT_TRUE(torch::equal(alias, torch::full({2}, 4.0F)));
  EXPECT_EQ(text, "before");
  EXPECT_EQ(list, (std::vector<int64_t>{3, 1, 2}));
  EXPECT_EQ(best, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(global_step, -5);
}

TEST(Checkpoint, DeadObjectsAreLeftOut) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  Sequential model = toys::perceptron();
  for (int phase = 0; phase < 3; ++phase) {  // optimizers that end before their model does, at the same address
    torch::optim::Adam optimizer(model->parameters(), 0.01);
    torch::optim::StepLR scheduler(optimizer, 2);
    Sequential passing = toys::perceptron(6, 2);
    accelerator.prepare(model, optimizer, scheduler, passing);
    optimizer.zero_grad();
    accelerator.backward((model->forward(torch::ones({2, 6})) + passing->forward(torch::ones({2, 6}))).mean());
    optimizer.step();
  }
  auto optimizer = std::make_unique<torch::optim::SGD>(model->parameters(), 0.1);
  const torch::optim::OptimizerOptions& defaults = optimizer->defaults();
  accelerator.prepare(optimizer);
  EXPECT_EQ(static_cast<const torch::optim::SGDOptions&>(defaults).lr(), 0.1);  // a reference from before still holds
  accelerator.save_state(folder / "c");
  const auto text = [&] {
    std::ifstream file(folder / "c/manifest.json");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  EXPECT_EQ(text.find("Adam"), std::string::npos) << text;
  EXPECT_NE(text.find("torch::optim::SGD"), std::string::npos) << text;
  EXPECT_NE(text.find("\"schedulers\": []"), std::string::npos) << text;
  EXPECT_EQ(text.find("model_1.safetensors"), std::string::npos) << text;
  EXPECT_EQ(static_cast<torch::optim::SGDOptions&>(optimizer->defaults()).lr(), 0.1);
  EXPECT_EQ(optimizer->defaults().clone()->get_lr(), 0.1);
}

/// What a checkpoint's manifest says.
std::string manifest_of(const std::string& folder) {
  std::ifstream file(folder + "/manifest.json");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Checkpoint, SchedulersEndWithTheirOwnOptimizers) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  Sequential model = toys::perceptron(), other = toys::perceptron();
  torch::optim::SGD lasting(other->parameters(), 0.3);
  torch::optim::StepLR lasting_scheduler(lasting, 2);
  accelerator.prepare(other, lasting, lasting_scheduler);
  for (const bool optimizer_first : {false, true}) {
    auto optimizer = std::make_unique<torch::optim::SGD>(model->parameters(), 0.3);
    auto scheduler = std::make_unique<torch::optim::StepLR>(*optimizer, 2);
    if (optimizer_first) {
      accelerator.prepare(model, *optimizer);
      accelerator.prepare(*scheduler);
    } else {  // it waits for its optimizer, not for any
      accelerator.prepare(*scheduler);
      accelerator.prepare(model, *optimizer);
    }
    optimizer->step();
    scheduler->step();
    accelerator.save_state(folder / "c");
    EXPECT_EQ(lasting.defaults().get_lr(), 0.3);
    EXPECT_EQ(optimizer->param_groups()[0].options().get_lr(), 0.3);
    accelerator.wait_for_everyone();
    const std::string text = manifest_of(folder / "c");
    const auto schedulers = text.substr(text.find("\"schedulers\""));
    EXPECT_NE(schedulers.find("LRScheduler"), schedulers.rfind("LRScheduler")) << text;  // both
  }
  accelerator.save_state(folder / "c");
  const std::string text = manifest_of(folder / "c");
  const auto schedulers = text.substr(text.find("\"schedulers\""));
  EXPECT_EQ(schedulers.find("LRScheduler"), schedulers.rfind("LRScheduler")) << text;  // one is left
}

struct HeadedImpl : torch::nn::Module {
  HeadedImpl() {
    body = register_module("body", torch::nn::Linear(6, 4));
    head = register_module("head", torch::nn::Linear(4, 1));
  }
  void replace_head() { head = replace_module("head", torch::nn::Linear(4, 3)); }
  torch::nn::Linear body{nullptr}, head{nullptr};
};
TORCH_MODULE(Headed);

TEST(Checkpoint, AModelWhoseHeadWasReplaced) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  torch::manual_seed(1);
  Headed first, model;
  Sequential grown(torch::nn::Linear(6, 4));
  auto optimizer = std::make_unique<torch::optim::SGD>(model->parameters(), 0.1);
  accelerator.prepare(first, model, optimizer, grown);
  model->replace_head();
  grown->push_back(torch::nn::Linear(4, 2));
  optimizer = std::make_unique<torch::optim::SGD>(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer, grown);
  accelerator.save_state(folder / "c");
  const std::string text = manifest_of(folder / "c");
  EXPECT_NE(text.find("model_2.safetensors"), std::string::npos) << text;  // in the order of their first preparation
  EXPECT_EQ(text.find("model_3.safetensors"), std::string::npos) << text;
  const auto weights = clones(model->parameters());
  {
    torch::NoGradGuard no_grad;
    for (auto& p : model->parameters()) {
      p.zero_();
    }
  }
  accelerator.load_state(folder / "c");
  EXPECT_EQ(toys::distance(weights, model->parameters()), 0);
}

TEST(Checkpoint, ModelsThatOnlyAnOptimizerKnows) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  accelerator.prepare(optimizer);
  accelerator.save_state(folder / "c");
  const auto weight = model->parameters()[0].detach().clone();
  torch::NoGradGuard no_grad;
  model->parameters()[0].zero_();
  accelerator.load_state(folder / "c");
  EXPECT_TRUE(torch::equal(model->parameters()[0], weight));
}

/// Runs in the folder of a good checkpoint; what `damage` does there has to be named on all ranks, and change nothing.
void expect_refused(const std::function<void(const std::string& folder)>& damage, const std::string& says) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  Sequential model = toys::perceptron();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  accelerator.prepare(model, optimizer);
  accelerator.save_state(folder / "c");
  const auto weight = model->parameters()[0].detach().clone().add_(1);
  {
    torch::NoGradGuard no_grad;
    model->parameters()[0].copy_(weight);
  }
  if (accelerator.is_main_process()) {
    damage(folder / "c");
  }
  accelerator.wait_for_everyone();
  const std::string error = toys::error_of([&] { accelerator.load_state(folder / "c"); });
  EXPECT_NE(error.find(says), std::string::npos) << error;
  EXPECT_TRUE(torch::equal(model->parameters()[0], weight));
}

TEST(Checkpoint, DamageIsNamed) {
  const auto overwrite = [](const std::string& name, int64_t position) {
    return [=](const std::string& folder) {
      std::fstream file(folder + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(position);
      const auto byte = static_cast<char>(file.get() ^ 1);
      file.seekp(position);
      file.put(byte);
    };
  };
  expect_refused([](const std::string& folder) { std::remove((folder + "/optimizer.bin").c_str()); },
                 "optimizer.bin is missing");
  expect_refused([](const std::string& folder) { (void)!truncate((folder + "/model.safetensors").c_str(), 100); },
                 "model.safetensors is damaged: it has 100 bytes");
  expect_refused(overwrite("model.safetensors", 450), "model.safetensors is damaged: its checksum");
  expect_refused(overwrite("random_states_0.bin", 900), "random_states_0.bin is damaged: its checksum");
  expect_refused(overwrite("manifest.json", 40), "manifest.json");
  expect_refused([](const std::string& folder) { std::remove((folder + "/manifest.json").c_str()); },
                 "is no checkpoint");
  expect_refused([](const std::string& folder) { (void)!std::system(("rm -r " + folder).c_str()); },
                 "there is no checkpoint");
}

TEST(Checkpoint, WhatDoesntFitIsNamed) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  {
    Sequential model = toys::perceptron();
    torch::optim::Adam optimizer(model->parameters(), 0.01);
    accelerator.prepare(model, optimizer);
    accelerator.save_state(folder / "c");
  }
  const auto load = [&] { accelerator.load_state(folder / "c"); };
  EXPECT_NE(toys::error_of(load).find("has 1 models, and the program has 0"), std::string::npos)
      << toys::error_of(load);
  {
    Sequential model = toys::perceptron(6, 3);
    torch::optim::Adam optimizer(model->parameters(), 0.01);
    accelerator.prepare(model, optimizer);
    EXPECT_NE(toys::error_of(load).find("tensor `2.weight` is [1, 8] there and [3, 8]"), std::string::npos)
        << toys::error_of(load);
  }
  Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  accelerator.prepare(model, optimizer);
  EXPECT_NE(toys::error_of(load).find("is the state of a torch::optim::Adam"), std::string::npos)
      << toys::error_of(load);
}

TEST(Checkpoint, AFullDiskLeavesTheOlderCheckpoint) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  Sequential model(torch::nn::Linear(100, 100));
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  accelerator.prepare(model, optimizer);
  accelerator.save_state(folder / "c");
  const auto weight = model->parameters()[0].detach().clone();
  optimizer.zero_grad();
  accelerator.backward(model->forward(torch::ones({1, 100})).sum());
  optimizer.step();
  // A limit on the size of files ends writes as a full disk does: the weights fit, the optimizer's state doesn't.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{}, small{};
  getrlimit(RLIMIT_FSIZE, &before);
  for (const rlim_t bytes : {20'000, 60'000}) {
    small = before;
    small.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string error = toys::error_of([&] { accelerator.save_state(folder / "c"); });
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_NE(error.find(bytes < 40'000 ? "model.safetensors: File too large" : "optimizer.bin: File too large"),
              std::string::npos)
        << error;
  }
  struct stat status{};
  EXPECT_NE(stat((folder / ".c.tmp").c_str(), &status), 0);  // nothing is left
  accelerator.load_state(folder / "c");
  EXPECT_TRUE(torch::equal(model->parameters()[0], weight));
}

TEST(Checkpoint, FoldersOfOthersAreKept) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  if (accelerator.is_main_process()) {
    std::ofstream(folder / "notes.txt") << "dear to me";
  }
  accelerator.wait_for_everyone();
  EXPECT_NE(toys::error_of([&] { accelerator.save_state(folder.path()); }).find("notes.txt in it is of no checkpoint"),
            std::string::npos);
  EXPECT_NE(toys::error_of([&] { accelerator.save_state(folder / "notes.txt"); }).find("notes.txt"), std::string::npos);
  EXPECT_NE(toys::error_of([&] { accelerator.save_state(); }).find("automatic_checkpoint_naming"), std::string::npos);
  accelerator.save_state(folder / "deep/down/c");
  accelerator.save_state(folder / "deep/down/c/");  // again, replacing it
  accelerator.load_state(folder / "deep/down/c");
}

TEST(Checkpoint, RanksThatDifferAllThrow) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  if (accelerator.num_processes() == 1) {
    return;
  }
  torch::nn::Linear one(2, 2);
  accelerator.prepare(one);
  const accelerate::detail::Attempt test;
  if (accelerator.process_index() == 1) {
    accelerate::detail::register_for_checkpointing(
        {[](torch::serialize::OutputArchive&) {}, [](torch::serialize::InputArchive&) {}});
  }
  EXPECT_NE(toys::error_of([&] { accelerator.save_state(folder / "c"); }).find("differs between ranks"),
            std::string::npos);
  test.undo();
}

TEST(Checkpoint, ARefusalOfTheProgramsOwnChangesNothing) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  const accelerate::detail::Attempt test;  // takes back what is registered here
  static bool refuses = false;
  refuses = false;
  accelerator.register_for_checkpointing(
      [](torch::serialize::OutputArchive& archive) { archive.write("value", c10::IValue(int64_t{1})); },
      [](torch::serialize::InputArchive&) { TORCH_CHECK(!refuses, "not mine"); });
  Sequential model = toys::perceptron();
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(toys::Numbers(9), 3);
  accelerator.prepare(model, loader);
  for (auto& batch : *loader) {
    EXPECT_FALSE(batch.empty());
    accelerator.save_state(folder / "c");
    break;
  }
  const auto count = [&] {
    int batches = 0;
    for (auto& batch : *loader) {
      batches += !batch.empty();
    }
    return batches;
  };
  {
    torch::NoGradGuard no_grad;
    model->parameters()[0].fill_(5);
  }
  refuses = accelerator.is_last_process();  // on one rank
  const std::string error = toys::error_of([&] { accelerator.load_state(folder / "c"); });
  EXPECT_NE(error.find("not mine"), std::string::npos) << error;
  EXPECT_EQ(model->parameters()[0][0][0].item<float>(), 5);
  EXPECT_EQ(count(), 3);  // not the rest of the saved epoch
  refuses = false;
  accelerator.load_state(folder / "c");
  EXPECT_NE(model->parameters()[0][0][0].item<float>(), 5);
  EXPECT_EQ(count(), 2);
  test.undo();
}

}  // namespace
