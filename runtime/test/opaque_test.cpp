/// Batches that the program formed itself, loaders of its own, and batch types of its own.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sharded.h"
#include "toys.h"

namespace {

struct Sample {
  torch::Tensor image, label;
  std::vector<std::string> names;
  std::optional<torch::Tensor> mask;
  double temperature = 0;  // of the batch as a whole
};

}  // namespace

template <>
struct accelerate::BatchFields<Sample> {
  static auto of(Sample& x) { return std::tie(x.image, x.label, x.names, x.mask, x.temperature); }
};

namespace {

Sample sample(int64_t first, int64_t rows) {
  Sample x{torch::arange(first, first + rows).reshape({-1, 1}).expand({rows, 3}).contiguous(),
           torch::arange(first, first + rows) % 3,
           {},
           torch::ones({rows}, torch::kBool),
           0.5};
  for (int64_t i = first; i < first + rows; ++i) {
    x.names.push_back("row " + std::to_string(i));
  }
  return x;
}

class Opaque : public testing::Test {
 protected:
  /// This rank's rows of `rows`.
  std::pair<int64_t, int64_t> own(int64_t rows) const {
    const int64_t count = rows / n + (r < rows % n ? 1 : 0);
    return count > 0 ? std::pair(r * (rows / n) + std::min(r, rows % n), count) : std::pair(int64_t{0}, int64_t{1});
  }

  void expect_own_rows(const Sample& x, int64_t first, int64_t rows) const {
    const auto [begin, count] = own(rows);
    const Sample expected = sample(first + begin, count);
    EXPECT_TRUE(torch::equal(x.image, expected.image));
    EXPECT_TRUE(torch::equal(x.label, expected.label));
    EXPECT_EQ(x.names, expected.names);
    ASSERT_TRUE(x.mask.has_value());
    EXPECT_TRUE(torch::equal(*x.mask, *expected.mask));
    EXPECT_EQ(x.temperature, 0.5);
  }

  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

TEST_F(Opaque, ShardOfEveryKind) {
  for (const int64_t rows : {1, 2, 5, 6}) {
    const auto [begin, count] = own(rows);
    const auto x = torch::arange(rows * 2).reshape({rows, 2});
    const auto mine = x.narrow(0, begin, count);

    EXPECT_TRUE(torch::equal(accelerator.shard(x), mine));
    EXPECT_TRUE(torch::equal(accelerator.shard(x.t(), 1), mine.t()));
    EXPECT_TRUE(torch::equal(x, torch::arange(rows * 2).reshape({rows, 2})));  // the program's own stays
    const auto [data, label] = accelerator.shard(std::pair(x, x.select(1, 0)));
    EXPECT_TRUE(torch::equal(data, mine));
    EXPECT_TRUE(torch::equal(label, mine.select(1, 0)));
    EXPECT_TRUE(torch::equal(std::get<1>(accelerator.shard(std::tuple(x, x + 1))), mine + 1));
    EXPECT_TRUE(torch::equal(accelerator.shard(torch::data::Example<>(x, x)).target, mine));
    EXPECT_TRUE(torch::equal(accelerator.shard(std::vector<torch::Tensor>{x, x + 1})[1], mine + 1));
    EXPECT_TRUE(torch::equal(accelerator.shard(std::array<torch::Tensor, 2>{x, x + 1})[1], mine + 1));
    const std::map<std::string, torch::Tensor> map{{"x", x}, {"scale", torch::tensor(2.0)}};
    const auto shared = accelerator.shard(map);
    EXPECT_TRUE(torch::equal(shared.at("x"), mine));
    EXPECT_EQ(shared.at("scale").item<double>(), 2.0);
    const std::vector<torch::data::Example<>> examples(static_cast<size_t>(rows), {x[0], x[0]});
    EXPECT_EQ(accelerator.shard(examples).size(), static_cast<size_t>(count));
    expect_own_rows(accelerator.shard(sample(3, rows)), 3, rows);
  }
  if (n > 1) {
    EXPECT_THROW(accelerator.shard(std::pair(torch::ones({4}), torch::ones({5}))), c10::Error);
    EXPECT_THROW(accelerator.shard(torch::ones({4}), 1), c10::Error);
    EXPECT_THROW(accelerator.shard(torch::tensor(1.0)), c10::Error);
    EXPECT_THROW(accelerator.shard(torch::ones({0, 2})), c10::Error);
  }
}

TEST_F(Opaque, ShardIsTheBatchInHand) {
  const auto x = torch::arange(7.0).reshape({7, 1});
  const auto mine = accelerator.shard(x);
  EXPECT_NEAR(accelerator.mean(mine.mean()).item<double>(), 3, 1e-6);
  EXPECT_EQ(accelerator.sum(mine.sum()).item<double>(), 21);
  EXPECT_TRUE(torch::equal(accelerator.gather_for_metrics(mine), x));
  const auto ghost = accelerator.shard(torch::tensor({4.0}));
  EXPECT_EQ(accelerator.sum(ghost.sum()).item<double>(), 4);
  EXPECT_EQ(accelerator.gather_for_metrics(ghost).size(0), 1);
  EXPECT_EQ(accelerator.gather(ghost).size(0), n);
}

TEST_F(Opaque, TrainsAsOneProcess) {
  // Batches of 5, 2 and 1 rows, sequences first.
  const auto batches = [](auto step) {
    for (const int64_t rows : {5, 2, 1}) {
      step(torch::sin(torch::arange(6 * rows).reshape({6, rows}) * 0.7));
    }
  };
  const auto loss_of = [](torch::nn::Sequential& model, const torch::Tensor& x) {
    return torch::mse_loss(model->forward(x.t()), x.t().sum(1, true));
  };
  torch::manual_seed(2);
  auto model = toys::perceptron(), ours = toys::perceptron();
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    ours->parameters()[i].detach().copy_(model->parameters()[i].detach());
  }
  torch::optim::SGD optimizer(model->parameters(), 0.1), our_optimizer(ours->parameters(), 0.1);
  batches([&](const torch::Tensor& x) {
    optimizer.zero_grad();
    loss_of(model, x).backward();
    optimizer.step();
  });
  accelerator.prepare(ours, our_optimizer);
  batches([&](const torch::Tensor& x) {
    our_optimizer.zero_grad();
    accelerator.backward(loss_of(ours, accelerator.shard(x, 1)));
    our_optimizer.step();
  });
  EXPECT_LT(toys::distance(model->parameters(), ours->parameters()), 1e-6);
}

/// A loader of nobody's making, with a shuffle of its own.
class OwnLoader {
 public:
  explicit OwnLoader(std::vector<int64_t> sizes) {
    int64_t first = 0;
    for (const int64_t rows : sizes) {
      batches_.push_back(sample(first, rows));
      first += rows;
    }
  }
  auto begin() {
    ++passes;
    torch::rand({5});
    return batches_.begin();
  }
  auto end() { return batches_.end(); }
  int passes = 0;

 private:
  std::vector<Sample> batches_;
};

TEST_F(Opaque, LoadersOfTheProgramsOwn) {
  OwnLoader loader({4, 7, 1});
  for (int epoch = 0; epoch < 2; ++epoch) {
    torch::manual_seed(3);
    int64_t first = 0;
    size_t step = 0;
    for (auto& batch : accelerate::dispatch_batches(loader)) {
      const int64_t rows = (std::array<int64_t, 3>{4, 7, 1})[step++];
      expect_own_rows(batch, first, rows);
      EXPECT_NEAR(accelerator.reduce(accelerator.share(1.0)), 1, 1e-12);
      EXPECT_EQ(accelerator.gather_for_metrics(batch.label).size(0), rows);
      first += rows;
    }
    EXPECT_EQ(step, 3U);
    const auto draw = torch::rand({2});  // what the loader drew, all ranks know of
    torch::manual_seed(3);
    torch::rand({5});
    EXPECT_TRUE(torch::equal(draw, torch::rand({2})));
  }
  EXPECT_EQ(loader.passes, r == 0 ? 2 : 0);
  EXPECT_EQ(accelerator.reduce(accelerator.share(1.0)),
            n == 1 ? 1.0 : accelerator.reduce(1.0 / static_cast<double>(n)));
}

TEST_F(Opaque, FunctionsAndRounds) {
  int64_t next = 0;
  const auto read = [&next]() -> std::optional<torch::Tensor> {
    if (next == 5) {
      return std::nullopt;
    }
    ++next;
    return torch::arange(2 * next - 2, 2 * next);
  };
  sharded::Batches steps;
  for (auto& batch : accelerate::dispatch_batches(read, accelerate::BatchPolicy::PerProcess)) {
    steps.push_back(sharded::rows_of(accelerator.gather_for_metrics(batch)));
  }
  EXPECT_EQ(steps, sharded::batches_of(10, 2 * n, false));
  for (auto& batch : accelerate::dispatch_batches(std::vector<torch::Tensor>())) {
    ADD_FAILURE() << "an empty source has no batches, not even " << batch;
  }
}

TEST_F(Opaque, ASourceIsNotAskedBehindItsEnd) {
  int64_t next = 0, ends = 0;
  const auto read = [&]() -> std::optional<torch::Tensor> {
    if (next == 5) {
      next = 0;  // the next call begins anew
      ++ends;
      return std::nullopt;
    }
    ++next;
    return torch::arange(2 * next - 2, 2 * next);
  };
  const auto list = torch::arange(10).split(2);
  for (int epoch = 0; epoch < 2; ++epoch) {
    sharded::Batches of_function, of_list;
    for (auto& batch : accelerate::dispatch_batches(read, accelerate::BatchPolicy::PerProcess)) {
      of_function.push_back(sharded::rows_of(accelerator.gather_for_metrics(batch)));
    }
    for (auto& batch : accelerate::dispatch_batches(list, accelerate::BatchPolicy::PerProcess)) {
      of_list.push_back(sharded::rows_of(accelerator.gather_for_metrics(batch)));
    }
    EXPECT_EQ(of_function, sharded::batches_of(10, 2 * n, false));
    EXPECT_EQ(of_list, of_function);
  }
  EXPECT_EQ(ends, r == 0 ? 2 : 0);
}

TEST_F(Opaque, AllRanksHearOfErrors) {
  int calls = 0;
  const auto read = [&]() -> std::optional<torch::Tensor> {
    if (++calls == 2) {
      throw std::runtime_error("no such file");
    }
    return torch::ones({4});
  };
  std::string text;
  try {
    for (auto& batch : accelerate::dispatch_batches(read)) {
      (void)batch;
    }
  } catch (const std::exception& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("no such file"), std::string::npos) << text;
  EXPECT_EQ(accelerator.reduce(1), n);
}

TEST_F(Opaque, TensorsOfAllTypesTravel) {
  const auto types = {torch::kBool,     torch::kUInt8,  torch::kInt16,       torch::kHalf,
                      torch::kBFloat16, torch::kDouble, torch::kComplexFloat};
  for (const auto type : types) {
    const auto x = (torch::arange(12).reshape({6, 2}) % 2).to(type);
    std::vector<std::tuple<torch::Tensor, torch::Tensor, std::vector<bool>>> source{
        {x.t().contiguous().t(), torch::Tensor(), {true, false, true, false, true, false}}};
    for (auto& [data, none, flags] : accelerate::dispatch_batches(source)) {
      const auto [begin, count] = own(6);
      EXPECT_EQ(data.scalar_type(), type);
      EXPECT_TRUE(torch::equal(data, x.narrow(0, begin, count))) << type;
      EXPECT_FALSE(none.defined());
      EXPECT_EQ(static_cast<int64_t>(flags.size()), count);
      EXPECT_EQ(flags[0], begin % 2 == 0);
    }
  }
}

TEST_F(Opaque, WhatABatchHasAsAWholeIsEqualInARound) {
  const auto source = [](double second) {
    std::vector<Sample> batches;
    for (int64_t i = 0; i < 12; ++i) {  // whole rounds of one to four
      batches.push_back(sample(2 * i, 2));
    }
    batches[1].temperature = second;
    return batches;
  };
  const auto run = [&](const std::vector<Sample>& batches) {
    for (auto& batch : accelerate::dispatch_batches(batches, accelerate::BatchPolicy::PerProcess)) {
      EXPECT_EQ(batch.image.size(0), 2);
    }
  };
  EXPECT_EQ(toys::error_of([&] { run(source(0.5)); }), "no error");
  const std::string error = toys::error_of([&] { run(source(0.25)); });
  EXPECT_EQ(error.find("a field that isn't of its rows") == std::string::npos, n == 1) << error;
  using Pair = std::vector<std::tuple<torch::Tensor, torch::Tensor>>;
  const auto scaled = [&](double second) {
    const Pair pairs{{torch::ones({2}), torch::scalar_tensor(1.0)}, {torch::ones({2}), torch::scalar_tensor(second)}};
    for (auto& pair : accelerate::dispatch_batches(pairs, accelerate::BatchPolicy::PerProcess)) {
      (void)pair;
    }
  };
  EXPECT_EQ(toys::error_of([&] { scaled(1.0); }), "no error");
  EXPECT_EQ(toys::error_of([&] { scaled(2.0); }).find("a tensor without rows") == std::string::npos, n == 1);
}

}  // namespace
