/// BatchPolicy::PerProcess with real loaders on real ranks. Options are a process's: each suite here is run in one of
/// its own (see CMakeLists.txt), and skipped where another suite has made the state already.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "own_process.h"
#include "sharded.h"
#include "toys.h"

namespace {

using sharded::Batches;
using sharded::Rows;

enum class Choice { even, uneven, dispatch, read_alike };

template <Choice kChoice>
class PolicyTest : public OwnProcess<PolicyTest<kChoice>> {
 public:
  static accelerate::Options options() {
    accelerate::Options options;
    if (kChoice == Choice::even || kChoice == Choice::uneven) {
      options.dataloader.split_batches = false;
      options.dataloader.even_batches = kChoice == Choice::even;
    } else {
      options.dataloader.dispatch_batches = kChoice == Choice::dispatch;
    }
    return options;
  }

 protected:
  /// Every length, batch size, and so on that tells something; with workers where there is more to lose.
  template <typename Check>
  void for_each_case(Check check) {
    for (const int64_t length : {1, 2, 3, 5, 7, 12, 13, 24, 25}) {
      for (const int64_t batch : {1, 2, 3, 5}) {
        for (const bool drop_last : {false, true}) {
          for (const size_t workers : {0, 2}) {
            SCOPED_TRACE(testing::Message() << length << " rows, batches of " << batch << ", " << workers << " workers"
                                            << (drop_last ? ", drop_last" : ""));
            const auto options = torch::data::DataLoaderOptions(static_cast<size_t>(batch)).workers(workers);
            check(length, batch, drop_last, torch::data::DataLoaderOptions(options).drop_last(drop_last));
          }
        }
      }
    }
  }

  static auto numbers(int64_t length) {
    return toys::Numbers(static_cast<size_t>(length)).map(torch::data::transforms::Stack<>());
  }
};

using PolicyEven = PolicyTest<Choice::even>;
using PolicyUneven = PolicyTest<Choice::uneven>;
using PolicyDispatch = PolicyTest<Choice::dispatch>;
using PolicyReadAlike = PolicyTest<Choice::read_alike>;

TEST_F(PolicyEven, BatchesAreAccelerates) {
  for_each_case([&](int64_t length, int64_t batch, bool drop_last, auto options) {
    const Batches original = sharded::batches_of(length, batch, drop_last);
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(length), options);
    for (int epoch = 0; epoch < 2; ++epoch) {
      Batches mine;
      Rows metrics;
      for (auto& b : *loader) {
        mine.push_back(sharded::rows_of(b.data));
        const Rows step = sharded::rows_of(accelerator->gather_for_metrics(b.data));
        metrics.insert(metrics.end(), step.begin(), step.end());
        EXPECT_DOUBLE_EQ(accelerator->reduce(accelerator->share(1.0)), 1);
        EXPECT_EQ(accelerator->reduce(b.data.size(0)), accelerator->global_rows(b.data.size(0)));
      }
      // Alone there is nobody to be even with: the last batch stays as short as it was.
      EXPECT_EQ(mine, n == 1 ? original : sharded::accelerates(original, batch, true, drop_last, r, n));
      Rows expected;
      const int64_t kept = drop_last ? length / (batch * n) * (batch * n) : length;
      for (int64_t i = 0; i < kept; ++i) {
        expected.push_back(i);
      }
      EXPECT_EQ(metrics, expected);
    }
  });
}

TEST_F(PolicyEven, LoadersMayChooseForThemselves) {
  auto global = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      numbers(4 * n), torch::data::DataLoaderOptions(static_cast<size_t>(n)), accelerate::BatchPolicy::Global);
  int64_t steps = 0;
  for (auto& batch : *global) {
    EXPECT_EQ(batch.data.size(0), 1);
    EXPECT_EQ(sharded::rows_of(batch.data)[0], steps * n + r);
    ++steps;
  }
  EXPECT_EQ(steps, 4);
}

TEST_F(PolicyEven, EvaluationStaysWhole) {
  auto loader = accelerate::make_evaluation_data_loader<torch::data::samplers::SequentialSampler>(numbers(11), 2);
  int64_t rows = 0;
  for (auto& batch : *loader) {
    rows += batch.data.size(0);
  }
  EXPECT_EQ(accelerator->reduce(rows), 11);
}

/// A schedule of the program's own: any class with a step().
struct Halving {
  torch::optim::Optimizer& optimizer;
  int64_t steps = 0;
  void step() {
    ++steps;
    auto& options = optimizer.param_groups()[0].options();
    options.set_lr(options.get_lr() / 2);
  }
};

/// A step takes the batches of all ranks: schedules that count batches go on by as many.
TEST_F(PolicyEven, SchedulersCountTheOriginalsBatches) {
  auto w = torch::ones({1}, torch::requires_grad());
  auto v = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD optimizer({w}, 1.0), other({v}, 1.0);
  torch::optim::StepLR batches(optimizer, 3, 0.5);
  torch::optim::SGD reference({w}, 1.0);
  torch::optim::StepLR original(reference, 3, 0.5);
  Halving own{other};
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(12 * n), 2);
  accelerator->prepare(optimizer, other, loader, batches);
  int64_t steps = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      other.zero_grad();
      accelerator->backward((w + v).sum() * batch.data.mean());
      optimizer.step();
      other.step();
      accelerator->step_scheduler(batches);
      accelerator->step_scheduler(own);
      ++steps;
      for (int64_t i = 0; i < n; ++i) {
        original.step();
      }
      EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), reference.param_groups()[0].options().get_lr());
      EXPECT_EQ(own.steps, steps * n);
    }
  }
  EXPECT_EQ(steps, 12);
  EXPECT_LT(optimizer.param_groups()[0].options().get_lr(), 0.5);
  // A loader of global batches makes one step of the original's.
  auto global = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      numbers(2 * n), torch::data::DataLoaderOptions(static_cast<size_t>(n)), accelerate::BatchPolicy::Global);
  own.steps = 0;
  for (auto& batch : *global) {
    accelerator->backward((w + v).sum() * batch.data.mean());
    accelerator->step_scheduler(own);
  }
  EXPECT_EQ(own.steps, 2);
}

/// A plateau is of epochs' metrics, whichever way batches are shared out.
TEST_F(PolicyEven, APlateauIsSteppedOnce) {
  auto w = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD optimizer({w}, 1.0);
  torch::optim::ReduceLROnPlateauScheduler plateau(optimizer, torch::optim::ReduceLROnPlateauScheduler::min, 0.5F,
                                                   /*patience=*/1);
  accelerator->prepare(optimizer, plateau);
  std::vector<double> rates;
  for (int epoch = 0; epoch < 5; ++epoch) {
    accelerator->step_scheduler(plateau, 1.0F);
    rates.push_back(optimizer.param_groups()[0].options().get_lr());
  }
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 0.5, 0.5, 0.25}));
}

TEST_F(PolicyUneven, EveryRowOnce) {
  for_each_case([&](int64_t length, int64_t batch, bool drop_last, auto options) {
    const Batches original = sharded::batches_of(length, batch, drop_last);
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(length), options);
    Batches mine;
    int64_t steps = 0;
    Rows metrics;
    for (auto& b : *loader) {
      if (accelerator->mine(int64_t{1}) == 1) {
        mine.push_back(sharded::rows_of(b.data));
      } else {
        EXPECT_EQ(b.data.size(0), 1);
      }
      ++steps;
      const Rows step = sharded::rows_of(accelerator->gather_for_metrics(b.data));
      metrics.insert(metrics.end(), step.begin(), step.end());
      EXPECT_NEAR(accelerator->reduce(accelerator->share(1.0)), 1, 1e-12);
      EXPECT_EQ(accelerator->sum(b.data.size(0)), static_cast<int64_t>(step.size()));
    }
    EXPECT_EQ(mine, n == 1 ? original : sharded::accelerates(original, batch, false, drop_last, r, n));
    EXPECT_EQ(accelerator->reduce(steps), n * steps);  // nobody waits for anybody
    Rows expected;
    const int64_t kept = drop_last ? length / (batch * n) * (batch * n) : length;
    for (int64_t i = 0; i < kept; ++i) {
      expected.push_back(i);
    }
    EXPECT_EQ(metrics, expected);
  });
}

TEST_F(PolicyUneven, SkipsStepsOfAllRanks) {
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(6 * n + 1), 2);
  Batches steps;
  for (auto& batch : accelerate::skip_first_batches(loader, 1)) {
    steps.push_back(sharded::rows_of(accelerator->gather_for_metrics(batch.data)));
  }
  Batches expected = sharded::batches_of(6 * n + 1, 2 * n, false);
  expected.erase(expected.begin());
  EXPECT_EQ(steps, expected);
}

/// N ranks with batches of B train as one process with batches of N * B, down to a last round that isn't full.
TEST_F(PolicyUneven, TrainsAsOneProcessWithTheRanksBatches) {
  const auto train = [&](auto step, auto& loader) {
    torch::manual_seed(2);
    auto model = toys::perceptron();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    step(model, optimizer, loader);
    return model->parameters();
  };
  auto single = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      toys::Waves(23).map(torch::data::transforms::Stack<>()), static_cast<size_t>(3 * n));
  const auto expected = train(
      [](auto& model, auto& optimizer, auto& loader) {
        for (auto& batch : *loader) {
          optimizer.zero_grad();
          torch::mse_loss(model->forward(batch.data), batch.target).backward();
          optimizer.step();
        }
      },
      single);
  auto ours = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      toys::Waves(23).map(torch::data::transforms::Stack<>()), 3);
  const auto actual = train(
      [&](auto& model, auto& optimizer, auto& loader) {
        accelerator->prepare(model, optimizer, loader);
        for (auto& batch : *loader) {
          optimizer.zero_grad();
          accelerator->backward(torch::mse_loss(model->forward(batch.data), batch.target));
          optimizer.step();
        }
      },
      ours);
  EXPECT_LT(toys::distance(expected, actual), 1e-6);
}

/// Counts what it is asked for; its rows are those of toys::Numbers.
class Counted : public toys::Numbers {
 public:
  using toys::Numbers::Numbers;
  torch::data::Example<> get(size_t index) override {
    ++reads;
    return toys::Numbers::get(index);
  }
  static inline std::atomic<int> reads{0};
};

TEST_F(PolicyDispatch, TheMainProcessReads) {
  for (const auto policy : {accelerate::BatchPolicy::Global, accelerate::BatchPolicy::PerProcess}) {
    for_each_case([&](int64_t length, int64_t batch, bool drop_last, auto options) {
      Counted::reads = 0;
      auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
          torch::data::datasets::MapDataset<Counted, torch::data::transforms::Stack<>>(
              Counted(static_cast<size_t>(length)), {}),
          options, policy);
      Batches steps;
      for (auto& b : *loader) {
        steps.push_back(sharded::rows_of(accelerator->gather_for_metrics(b.data)));
        EXPECT_NEAR(accelerator->reduce(accelerator->share(1.0)), 1, 1e-12);
      }
      const int64_t per_step = policy == accelerate::BatchPolicy::Global ? batch : batch * n;
      EXPECT_EQ(steps, sharded::batches_of(length, per_step, drop_last));
      EXPECT_EQ(Counted::reads > 0, r == 0 && !steps.empty());
    });
  }
}

/// The same rows on every rank.
class Twelve : public torch::data::datasets::StatefulDataset<Twelve, torch::Tensor> {
 public:
  std::optional<torch::Tensor> get_batch(size_t size) override {
    at_ += static_cast<int64_t>(size);
    return at_ <= 12 ? std::optional(torch::arange(at_ - static_cast<int64_t>(size), at_)) : std::nullopt;
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override { at_ = 0; }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  int64_t at_ = 0;
};

TEST_F(PolicyReadAlike, EveryRankReadsAndKeepsItsPart) {
  auto loader = accelerate::make_data_loader(Twelve(), 3);
  auto evaluation = accelerate::make_evaluation_data_loader(Twelve(), 3);
  for (int epoch = 0; epoch < 2; ++epoch) {
    Batches steps, turns;
    for (auto& batch : *loader) {
      steps.push_back(sharded::rows_of(accelerator->gather_for_metrics(batch)));
    }
    EXPECT_EQ(steps, sharded::batches_of(12, 3, false));
    for (auto& batch : *evaluation) {
      turns.push_back(sharded::rows_of(batch));
    }
    Batches expected;
    for (int64_t k = r; k < 4; k += n) {
      expected.push_back({3 * k, 3 * k + 1, 3 * k + 2});
    }
    EXPECT_EQ(turns, expected);
  }
  auto rounds = accelerate::make_data_loader(Twelve(), 3, accelerate::BatchPolicy::PerProcess);
  Batches steps;
  for (auto& batch : *rounds) {
    steps.push_back(sharded::rows_of(accelerator->gather_for_metrics(batch)));
  }
  EXPECT_EQ(steps, sharded::batches_of(12, 3 * n, false));
}

}  // namespace
