/// Pieces of the library at once: accumulation, the loss scale and schedulers with both batch policies, streams, the
/// program's own batches, and checkpoints. Options are a process's: each suite is run in one of its own.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "own_process.h"
#include "sharded.h"
#include "temporary_folder.h"
#include "toys.h"

namespace {

using torch::data::samplers::SequentialSampler;

torch::Tensor rows_of_waves(const sharded::Rows& rows, bool targets) {
  std::vector<torch::Tensor> result;
  for (const int64_t row : rows) {
    const auto example = toys::Waves(static_cast<size_t>(row) + 1).get(static_cast<size_t>(row));
    result.push_back(targets ? example.target : example.data);
  }
  return torch::stack(result);
}

/// One step a window: all of its rows in one batch, on one process.
void train_alone(torch::nn::Sequential& model, torch::optim::SGD& optimizer, const sharded::Batches& windows) {
  for (const sharded::Rows& rows : windows) {
    optimizer.zero_grad();
    torch::mse_loss(model->forward(rows_of_waves(rows, false)), rows_of_waves(rows, true)).backward();
    optimizer.step();
  }
}

/// Waves as a stream.
class WaveStream : public torch::data::datasets::StatefulDataset<WaveStream, torch::data::Example<>> {
 public:
  explicit WaveStream(int64_t rows) : rows_(rows) {}
  std::optional<torch::data::Example<>> get_batch(size_t size) override {
    sharded::Rows rows;
    for (; rows.size() < size && at_ < rows_; ++at_) {
      rows.push_back(at_);
    }
    if (rows.empty()) {
      return std::nullopt;
    }
    return torch::data::Example<>(rows_of_waves(rows, false), rows_of_waves(rows, true));
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override { at_ = 0; }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  int64_t rows_, at_ = 0;
};

/// BatchPolicy::PerProcess, where an epoch's last round is filled up, and windows of two batches.
class TogetherEven : public OwnProcess<TogetherEven> {
 public:
  static accelerate::Options options() {
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    accelerate::Options options;
    options.dataloader.batch_policy = accelerate::BatchPolicy::PerProcess;
    options.gradient_accumulation_steps = 2;
    return options;
  }

 protected:
  /// The rows of the epoch's windows: those of all ranks' batches.
  sharded::Batches windows(int64_t rows, int64_t batch) const {
    sharded::Batches steps;
    for (int64_t rank = 0; rank < n; ++rank) {
      const auto mine = sharded::accelerates(sharded::batches_of(rows, batch, false), batch, /*even=*/n > 1,
                                             /*drop_last=*/false, rank, n);
      steps.resize(mine.size());
      for (size_t step = 0; step < mine.size(); ++step) {
        steps[step].insert(steps[step].end(), mine[step].begin(), mine[step].end());
      }
    }
    return in_pairs(steps);
  }
  static sharded::Batches in_pairs(const sharded::Batches& steps) {
    sharded::Batches result;
    for (size_t step = 0; step < steps.size(); ++step) {
      if (step % 2 == 0) {
        result.emplace_back();
      }
      result.back().insert(result.back().end(), steps[step].begin(), steps[step].end());
    }
    return result;
  }

  /// Trains with and without the library, and compares; also the number of the scheduler's steps.
  template <typename Loader>
  void compare(Loader& loader, const sharded::Batches& expected, int64_t scheduler_steps_each) {
    torch::manual_seed(1);
    auto model = toys::perceptron(), reference = toys::perceptron();
    {
      torch::NoGradGuard no_grad;
      for (size_t i = 0; i < model->parameters().size(); ++i) {
        reference->parameters()[i].copy_(model->parameters()[i]);
      }
    }
    torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.3).momentum(0.5));
    torch::optim::SGD reference_optimizer(reference->parameters(), torch::optim::SGDOptions(0.3).momentum(0.5));
    torch::optim::StepLR scheduler(optimizer, 1000, 0.5);
    accelerator->prepare(model, optimizer, scheduler);
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (auto& b : loader) {
        auto window = accelerator->accumulate(model);
        optimizer.zero_grad();
        accelerator->backward(torch::mse_loss(model->forward(b.data), b.target));
        optimizer.step();
        accelerator->step_scheduler(scheduler);
      }
      EXPECT_TRUE(accelerator->sync_gradients());  // a window ends with the epoch
      train_alone(reference, reference_optimizer, expected);
    }
    EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
    EXPECT_EQ(scheduler_count(scheduler), 3 * static_cast<int64_t>(expected.size()) * scheduler_steps_each);
  }
  static int64_t scheduler_count(const torch::optim::StepLR& scheduler) {
    struct Open : torch::optim::StepLR {
      static unsigned count(const torch::optim::StepLR& s) { return s.*(&Open::step_count_); }
    };
    return static_cast<int64_t>(Open::count(scheduler));
  }
};

TEST_F(TogetherEven, WindowsOfWholeBatches) {
  for (const int64_t rows : {3, 17, 26}) {
    for (const size_t workers : {0, 2}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << workers << " workers");
      auto loader = accelerate::make_data_loader<SequentialSampler>(
          toys::Waves(static_cast<size_t>(rows)).map(torch::data::transforms::Stack<>()),
          torch::data::DataLoaderOptions(3).workers(workers));
      accelerator->prepare(loader);
      compare(*loader, windows(rows, 3), n);
    }
  }
}

/// Loaders that torch has made, which follow the process's policy.
TEST_F(TogetherEven, LoadersThatExist) {
  struct Own : SequentialSampler {
    using SequentialSampler::SequentialSampler;
  };
  for (const int64_t rows : {3, 17, 26}) {
    const auto waves = toys::Waves(static_cast<size_t>(rows)).map(torch::data::transforms::Stack<>());
    const auto joined = in_pairs(sharded::batches_of(rows, 3 * n, false));  // where the main process reads
    for (const size_t workers : {0, 2}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << workers << " workers");
      const auto options = torch::data::DataLoaderOptions(3).workers(workers);
      auto loader = torch::data::make_data_loader<SequentialSampler>(waves, options);
      auto own = torch::data::make_data_loader<Own>(waves, options);
      auto stream =
          torch::data::make_data_loader(WaveStream(rows), torch::data::DataLoaderOptions(3).workers(workers / 2));
      accelerator->prepare(loader, own, stream);
      compare(*loader, windows(rows, 3), n);
      compare(*own, workers == 0 ? windows(rows, 3) : joined, n);
      compare(*stream, joined, n);
    }
  }
}

TEST_F(TogetherEven, ALoaderOfGlobalBatches) {
  auto loader = accelerate::make_data_loader<SequentialSampler>(toys::Waves(17).map(torch::data::transforms::Stack<>()),
                                                                torch::data::DataLoaderOptions(3),
                                                                accelerate::BatchPolicy::Global);
  accelerator->prepare(loader);
  compare(*loader, in_pairs(sharded::batches_of(17, 3, false)), 1);
}

TEST_F(TogetherEven, Streams) {
  auto loader =
      accelerate::make_data_loader(WaveStream(17), torch::data::DataLoaderOptions(3), accelerate::BatchPolicy::Global);
  accelerator->prepare(loader);
  compare(*loader, in_pairs(sharded::batches_of(17, 3, false)), 1);
}

/// A loader of the program's own, which fills the same memory again for each batch.
class Refilled {
 public:
  explicit Refilled(sharded::Batches batches) : batches_(std::move(batches)) {}
  class Iterator {
   public:
    explicit Iterator(Refilled* loader, size_t at) : loader_(loader), at_(at) {}
    torch::data::Example<> operator*() {
      const sharded::Rows& rows = loader_->batches_[at_];
      const auto count = static_cast<int64_t>(rows.size());
      loader_->data_.narrow(0, 0, count).copy_(rows_of_waves(rows, false));
      loader_->target_.narrow(0, 0, count).copy_(rows_of_waves(rows, true));
      return {loader_->data_.narrow(0, 0, count), loader_->target_.narrow(0, 0, count)};
    }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    Refilled* loader_;
    size_t at_;
  };
  Iterator begin() { return Iterator(this, 0); }
  Iterator end() { return Iterator(this, batches_.size()); }

 private:
  sharded::Batches batches_;
  torch::Tensor data_ = torch::zeros({16, 6}), target_ = torch::zeros({16, 1});
};

TEST_F(TogetherEven, TheProgramsOwnBatches) {
  sharded::Batches all{{0, 1, 2, 3, 4}, {5, 6, 7}, {8}, {9, 10, 11, 12, 13, 14, 15}};
  for (const bool odd : {false, true}) {
    if (odd) {
      all.pop_back();
    }
    auto batches = accelerate::dispatch_batches(Refilled(all), accelerate::BatchPolicy::Global);
    compare(batches, in_pairs(all), 1);
  }
}

/// A function goes on where it was left, also if that was in the middle of a window.
TEST_F(TogetherEven, AFunctionsBatchesAreAllThere) {
  int64_t next = 0;
  auto batches = accelerate::dispatch_batches(
      [&next]() -> std::optional<torch::Tensor> {
        return next == 5 ? std::nullopt : std::optional(torch::full({4}, next++));
      },
      accelerate::BatchPolicy::Global);
  std::vector<int64_t> seen;
  for (auto& batch : batches) {
    seen.push_back(batch[0].item<int64_t>());
    if (seen.size() == 2) {
      break;
    }
  }
  for (auto& batch : batches) {
    seen.push_back(batch[0].item<int64_t>());
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

/// Batches that the program cuts itself, whole or one tensor after the other: it says which is the last.
struct Shards {
  const sharded::Batches& rows;
  bool apart;
  std::vector<torch::data::Example<>> made;
  struct Iterator {
    Shards* shards;
    size_t at;
    torch::data::Example<>& operator*() const {
      const accelerate::Accelerator accelerator;
      const sharded::Rows& rows = shards->rows[at];
      torch::data::Example<> batch(rows_of_waves(rows, false), rows_of_waves(rows, true));
      const bool last = at + 1 == shards->rows.size();
      shards->made.clear();
      if (shards->apart) {
        batch.data = accelerator.shard(batch.data, 0, last);
        batch.target = accelerator.shard(batch.target);
      } else {
        batch = accelerator.shard(batch, 0, last);
      }
      shards->made.push_back(batch);
      return shards->made.back();
    }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() { return {this, 0}; }
  Iterator end() { return {this, rows.size()}; }
};

TEST_F(TogetherEven, Shards) {
  for (const bool apart : {false, true}) {
    for (const sharded::Batches& all :
         {sharded::Batches{{0, 1, 2, 3}, {4, 5, 6}, {7, 8}}, sharded::Batches{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}}}) {
      SCOPED_TRACE(testing::Message() << (apart ? "apart, " : "") << all.size() << " batches");
      Shards shards{all, apart, {}};
      compare(shards, in_pairs(all), 1);
    }
  }
}

/// A step that is left before its backward() has had its batch.
TEST_F(TogetherEven, ShardsWithoutABackward) {
  auto model = toys::perceptron();
  accelerator->prepare(model);
  for (const bool ends : {false, true}) {
    accelerator->shard(torch::ones({6, 6}));
    accelerator->shard(torch::ones({6, 1}));
    auto window = accelerator->accumulate(model);
    EXPECT_EQ(accelerator->sync_gradients(), ends);
  }
}

TEST_F(TogetherEven, CheckpointsAreOfWholeWindows) {
  TemporaryFolder folder;
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = accelerate::make_data_loader<SequentialSampler>(toys::Waves(40).map(torch::data::transforms::Stack<>()),
                                                                torch::data::DataLoaderOptions(2));
  accelerator->prepare(model, optimizer, loader);
  std::vector<double> expected, resumed;
  int64_t step = 0;
  const auto train = [&](std::vector<double>& losses, bool save) {
    for (auto& b : *loader) {
      auto window = accelerator->accumulate(model);
      optimizer.zero_grad();
      const auto loss = torch::mse_loss(model->forward(b.data), b.target);
      accelerator->backward(loss);
      optimizer.step();
      losses.push_back(loss.item<double>());
      if (save && ++step == 1) {
        EXPECT_NE(toys::error_of([&] { accelerator->save_state(folder / "c"); }).find("within a window"),
                  std::string::npos);
      } else if (save && step == 2) {
        accelerator->save_state(folder / "c");
        losses.clear();
      }
    }
  };
  train(expected, true);
  for (auto& b : *loader) {  // leaves a window incomplete, which the checkpoint replaces
    auto window = accelerator->accumulate(model);
    accelerator->backward(torch::mse_loss(model->forward(b.data), b.target));
    break;
  }
  accelerator->load_state(folder / "c");
  train(resumed, false);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(resumed, expected);
}

TEST_F(TogetherEven, APositionOfAnotherBatchSizeChangesNothing) {
  TemporaryFolder folder;
  torch::nn::Linear model(2, 2);
  const auto loader_of = [&](size_t batch) {
    auto loader = accelerate::make_data_loader(toys::Numbers(9), batch);
    accelerator->prepare(loader);
    return loader;
  };
  accelerator->prepare(model);
  {
    auto loader = loader_of(2);
    accelerator->save_state(folder / "c");
  }
  auto loader = loader_of(3);
  const auto weight = torch::full_like(model->weight, 3);
  {
    torch::NoGradGuard no_grad;
    model->weight.copy_(weight);
  }
  EXPECT_NE(toys::error_of([&] { accelerator->load_state(folder / "c"); }).find("batches of 2 rows"),
            std::string::npos);
  EXPECT_TRUE(torch::equal(model->weight, weight));
}

/// The loss scale is part of a checkpoint.
class TogetherFP16 : public OwnProcess<TogetherFP16> {
 public:
  static accelerate::Options options() {
    accelerate::Options options;
    options.mixed_precision = "fp16";
    return options;
  }
};

TEST_F(TogetherFP16, TheScaleIsKept) {
  TemporaryFolder folder;
  auto w = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD optimizer({w}, 0.1);
  accelerator->prepare(optimizer);
  const auto step = [&](double factor) {
    optimizer.zero_grad();
    accelerator->backward((w * factor).sum());
    optimizer.step();
  };
  step(1);
  step(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(accelerator->optimizer_step_was_skipped());
  step(1);
  accelerator->save_state(folder / "c");
  const auto saved = accelerate::detail::scaler_state();
  EXPECT_EQ(saved.scale, 32768);
  EXPECT_EQ(saved.growth_tracker, 1);
  step(std::numeric_limits<double>::infinity());
  EXPECT_EQ(accelerate::detail::scaler_state().scale, 16384);
  accelerator->load_state(folder / "c");
  EXPECT_EQ(accelerate::detail::scaler_state().scale, saved.scale);
  EXPECT_EQ(accelerate::detail::scaler_state().growth_tracker, saved.growth_tracker);
  step(1);
  EXPECT_EQ(accelerate::detail::scaler_state().growth_tracker, 2);
}

/// Batches of the program's own are steps, alone as well: two backwards of one belong together.
TEST_F(TogetherFP16, AShardIsAStep) {
  auto w = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD optimizer({w}, 0.1);
  accelerator->prepare(optimizer);
  const auto before = accelerate::detail::scaler_state();
  const auto x = accelerator->shard(torch::ones({6, 1}));
  accelerator->backward((w * x).mean());
  accelerator->backward((w * x).mean());
  EXPECT_EQ(accelerate::detail::scaler_state().growth_tracker, before.growth_tracker + 1);
}

}  // namespace
