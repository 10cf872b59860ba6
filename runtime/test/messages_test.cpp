/// How many messages a step, a metric and a loop cost: what training on ranks takes longer by.

#include "messages.h"

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "toys.h"

namespace {

using torch::nn::Sequential;

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

class Messages : public testing::Test {
 protected:
  /// Alone there is nobody to send one to.
  MessageCounts among_ranks(const MessageCounts& messages) const { return n == 1 ? MessageCounts{} : messages; }

  /// Reducers find the order of gradients in their first step, and agree on it in the second.
  template <typename Step>
  static void warm_up(Step step) {
    step();
    step();
  }

  /// A pass over the loader.
  template <typename Loader>
  MessageCounts epoch(Sequential& model, torch::optim::Optimizer& optimizer, Loader& loader) {
    return messages_of([&] {
      for (auto& batch : *loader) {
        optimizer.zero_grad();
        accelerator.backward(torch::mse_loss(model->forward(batch.data), batch.target));
        optimizer.step();
      }
    });
  }

  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

/// Many tensors.
Sequential deep() {
  Sequential model;
  for (int layer = 0; layer < 20; ++layer) {
    model->push_back(torch::nn::Linear(6, 6));
    model->push_back(torch::nn::Tanh());
  }
  model->push_back(torch::nn::Linear(6, 1));
  return model;
}

TEST_F(Messages, AStepIsOneHoweverManyTensors) {
  Sequential model = deep();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = accelerate::make_data_loader(waves(22), 5);  // five steps, the last of which has ghosts
  accelerator.prepare(model, optimizer, loader);
  epoch(model, optimizer, loader);
  // The broadcast is the generator's, with which the order begins.
  EXPECT_EQ(epoch(model, optimizer, loader), among_ranks({{"allreduce_", 5}, {"broadcast_", 1}}));
}

TEST_F(Messages, ALargeModelHasABucketForEach25MiB) {
  Sequential model;
  for (int layer = 0; layer < 10; ++layer) {
    model->push_back(torch::nn::Linear(torch::nn::LinearOptions(1000, 1000).bias(false)));  // 4 MB each
  }
  accelerator.prepare(model);
  const auto step = [&] { accelerator.backward(model->forward(torch::ones({2, 1000})).mean()); };
  warm_up(step);
  // The first one is smaller: a layer. Then six layers of 3.8 MiB, to fill the second, and the rest.
  EXPECT_EQ(messages_of(step), among_ranks({{"allreduce_", 3}}));
}

TEST_F(Messages, WithinNoSyncThereIsNone) {
  Sequential model = deep();
  accelerator.prepare(model);
  const auto step = [&] { accelerator.backward(model->forward(torch::ones({2, 6})).mean()); };
  warm_up(step);
  EXPECT_EQ(messages_of([&] {
              auto local = accelerator.no_sync(model);
              step();
              step();
            }),
            MessageCounts());
  EXPECT_EQ(messages_of(step), among_ranks({{"allreduce_", 1}}));
}

TEST_F(Messages, AWeightIsOneMore) {
  Sequential model = deep();
  accelerator.prepare(model);
  const auto step = [&] {
    accelerator.backward(model->forward(torch::ones({2, 6})).mean(), accelerate::Weight(static_cast<double>(r + 1)));
  };
  warm_up(step);
  EXPECT_EQ(messages_of(step), among_ranks({{"allreduce_", 2}}));
}

TEST_F(Messages, RunningStatisticsAreOneMore) {
  Sequential model(torch::nn::Linear(6, 6), torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 6),
                   torch::nn::BatchNorm1d(6), torch::nn::Linear(6, 1));
  accelerator.prepare(model);
  const auto step = [&] { accelerator.backward(model->forward(torch::rand({4, 6})).mean()); };
  for (int i = 0; i < 4; ++i) {
    step();  // which buffers change is agreed on after 1, 2, 4, ... of them
  }
  // Averages and variances together, and the counts, which are of another type.
  EXPECT_EQ(messages_of(step), among_ranks({{"allreduce_", 1}, {"broadcast_", 2}}));
}

TEST_F(Messages, TwoModelsOfOneLossAreTwo) {
  Sequential first = deep(), second = deep();
  accelerator.prepare(first, second);
  const auto step = [&] {
    const auto x = torch::ones({2, 6});
    accelerator.backward((first->forward(x) + second->forward(x)).mean());
  };
  warm_up(step);
  EXPECT_EQ(messages_of(step), among_ranks({{"allreduce_", 2}}));
}

TEST_F(Messages, MetricsTravelTogether) {
  const MessageCounts one = among_ranks({{"allreduce_", 1}});
  double loss = 0.5, total = 2;
  int64_t correct = 3, rows = 4;
  torch::Tensor confusion = torch::ones({3, 3}, torch::kInt64), sums = torch::ones({4});
  EXPECT_EQ(messages_of([&] { accelerator.reduce_(loss, correct); }), one);
  EXPECT_EQ(messages_of([&] { accelerator.reduce(total, std::array<double, 3>{}, sums, 0.5F); }), one);
  EXPECT_EQ(messages_of([&] { accelerator.reduce(correct, rows, size_t{1}, torch::ones({3}, torch::kInt32)); }), one);
  EXPECT_EQ(messages_of([&] { accelerator.mean(torch::rand({}), torch::rand({}), sums); }), one);
  EXPECT_EQ(messages_of([&] { accelerator.sum(loss, correct); }), one);
  EXPECT_EQ(messages_of([&] { accelerator.check_trigger(); }), one);
  // More than 30 numbers: what has gone first tells whether the ranks agree.
  EXPECT_EQ(messages_of([&] { accelerator.reduce(loss, confusion, sums); }), among_ranks({{"allreduce_", 2}}));
  // The keys are compared.
  EXPECT_EQ(messages_of([&] { accelerator.reduce(std::map<std::string, double>{{"loss", 1}, {"accuracy", 0}}); }),
            among_ranks({{"allgather_", 1}, {"allreduce_", 1}}));
  // Numbers of rows, then rows.
  EXPECT_EQ(messages_of([&] { accelerator.gather(torch::ones({r + 1, 2})); }), among_ranks({{"allgather_", 2}}));
  EXPECT_EQ(messages_of([&] {
              accelerator.share(sums);
              accelerator.mine(sums);
              accelerator.print("x");
            }),
            MessageCounts());
}

/// Integers beside floating-point numbers are exact all the same.
TEST_F(Messages, IntegersAmongOtherNumbersAreExact) {
  const std::vector<int64_t> extremes{(int64_t{1} << 60) / n + r, -(int64_t{1} << 60) / n - r, -1, r, INT64_MAX / n};
  std::vector<int64_t> expected(extremes.size());
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<int64_t> added{(int64_t{1} << 60) / n + i, -(int64_t{1} << 60) / n - i, -1, i, INT64_MAX / n};
    for (size_t k = 0; k < added.size(); ++k) {
      expected[k] += added[k];
    }
  }
  const auto [x, sums, none, wrapped, empty] =
      accelerator.reduce(0.5, extremes, std::vector<int>(), UINT64_MAX, torch::zeros({0, 2}, torch::kInt64));
  EXPECT_EQ(x, 0.5 * static_cast<double>(n));
  EXPECT_EQ(sums, expected);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(empty.sizes(), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(wrapped, UINT64_MAX * static_cast<uint64_t>(n));  // as unsigned numbers do
  for (const int64_t size : {1, 29, 30, 1000, 1001}) {
    const auto whole = torch::arange(size).reshape({-1, 1}) - 7;
    const auto [tensor, number] = accelerator.reduce(whole.to(torch::kInt16), 1.5F);
    EXPECT_TRUE(torch::equal(tensor, (whole * n).to(torch::kInt16))) << size;
    EXPECT_EQ(number, 1.5F * static_cast<float>(n));
  }
}

TEST_F(Messages, LoadersThatExist) {
  Sequential model = deep();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = torch::data::make_data_loader(waves(22), torch::data::DataLoaderOptions(5).workers(2));
  accelerator.prepare(model, optimizer, loader);
  epoch(model, optimizer, loader);
  EXPECT_EQ(epoch(model, optimizer, loader), among_ranks({{"allreduce_", 5}, {"broadcast_", 2}}));  // a pass's rows
  auto without_workers = torch::data::make_data_loader(waves(22), 5);
  accelerator.prepare(without_workers);
  EXPECT_EQ(epoch(model, optimizer, without_workers), among_ranks({{"allreduce_", 5}, {"broadcast_", 5}}));
}

TEST_F(Messages, EvaluationSendsNothingBeforeItsEnd) {
  Sequential model = deep();
  auto loader = accelerate::make_evaluation_data_loader(waves(22), 5);
  accelerator.prepare(model, loader);
  double loss = 0;
  EXPECT_EQ(messages_of([&] {
              const torch::NoGradGuard no_grad;
              for (auto& batch : *loader) {
                loss += torch::mse_loss(model->forward(batch.data), batch.target).item<double>();
              }
            }),
            among_ranks({{"broadcast_", 1}}));  // the order's, once
}

}  // namespace
