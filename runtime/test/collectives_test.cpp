#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "toys.h"

namespace {

class Collectives : public testing::Test {
 protected:
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

TEST_F(Collectives, ReduceKeepsTypesAndIsExact) {
  const int64_t large = (int64_t{1} << 60) / n + r;  // beyond double's integers
  int64_t expected = 0;
  for (int64_t i = 0; i < n; ++i) {
    expected += (int64_t{1} << 60) / n + i;
  }
  auto sum = accelerator.reduce(large);
  static_assert(std::is_same_v<decltype(sum), int64_t>);
  EXPECT_EQ(sum, expected);

  auto [i, f, d, u, t, a, v] = accelerator.reduce(int{3}, 0.5F, 0.25, size_t{7}, torch::tensor({1.5F, 2.5F}),
                                                  std::array<double, 2>{1, 2}, std::vector<int64_t>{r, 1});
  static_assert(std::is_same_v<decltype(i), int> && std::is_same_v<decltype(f), float> &&
                std::is_same_v<decltype(u), size_t>);
  EXPECT_EQ(i, 3 * n);
  EXPECT_EQ(f, 0.5F * static_cast<float>(n));
  EXPECT_EQ(d, 0.25 * static_cast<double>(n));
  EXPECT_EQ(u, 7U * static_cast<size_t>(n));
  EXPECT_TRUE(torch::equal(t, torch::tensor({1.5F, 2.5F}) * n));
  EXPECT_EQ(a[1], 2.0 * static_cast<double>(n));
  EXPECT_EQ(v[0], n * (n - 1) / 2);
}

TEST_F(Collectives, ReducesArraysInPlace) {
  float sums[3] = {1, 2, static_cast<float>(r)};
  int64_t counts[2][2] = {{1, 2}, {3, r}};
  accelerator.reduce_(sums, counts);
  EXPECT_EQ(sums[1], 2.0F * static_cast<float>(n));
  EXPECT_EQ(sums[2], static_cast<float>(n * (n - 1) / 2));
  EXPECT_EQ(counts[1][0], 3 * n);
  EXPECT_EQ(counts[1][1], n * (n - 1) / 2);
}

TEST_F(Collectives, ReduceOfTensorsOfEveryType) {
  for (const auto type : {torch::kUInt8, torch::kInt16, torch::kInt32, torch::kInt64, torch::kFloat16, torch::kBFloat16,
                          torch::kFloat32, torch::kFloat64, torch::kComplexFloat}) {
    const auto x = torch::full({2, 3}, 2).to(type);
    const auto sum = accelerator.reduce(x);
    EXPECT_EQ(sum.scalar_type(), type);
    EXPECT_TRUE(torch::equal(sum, torch::full({2, 3}, 2 * n).to(type))) << type;
    EXPECT_TRUE(torch::equal(x, torch::full({2, 3}, 2).to(type)));  // a fresh value
  }
  const auto big = torch::ones({300, 300}) * (r + 1);
  EXPECT_TRUE(torch::equal(accelerator.reduce(big), torch::ones({300, 300}) * (n * (n + 1) / 2)));
}

// Gloo itself would hand out wrong sums, or wait.
TEST_F(Collectives, ReduceOfOtherShapesThrowsOnAllRanks) {
  for (const int64_t length : {0, 3}) {
    const bool last = r == n - 1;
    try {
      accelerator.reduce(torch::ones({last ? length : 2}, torch::kFloat64));
      EXPECT_EQ(n, 1);
    } catch (const c10::Error& error) {
      const std::string expected =
          c10::str("`reduce(): Double [2]` on rank 0, `reduce(): Double [", length, "]` on rank ", n - 1);
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
    EXPECT_EQ(accelerator.reduce(int64_t{1}), n);  // the ranks are still together
  }
}

TEST_F(Collectives, OtherShapesThrowOnAllRanks) {
  if (n == 1) {
    return;
  }
  const bool last = r == n - 1;
  const auto expect = [&](const std::function<void()>& run, const std::string& part) {
    const std::string error = toys::error_of(run);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(accelerator.reduce(int64_t{1}), n);  // the ranks are still together
  };
  expect([&] { accelerator.reduce(torch::ones({last ? 3 : 2, last ? 2 : 3})); }, "`reduce(): Float [2, 3]` on rank 0");
  expect([&] { accelerator.reduce(torch::ones({3}, last ? torch::kInt : torch::kFloat)); }, "`reduce(): Float [3]`");
  expect([&] { accelerator.reduce(std::vector<double>(last ? 7 : 6, 1.0)); }, "differs between ranks");
  expect([&] { accelerator.reduce(std::vector<double>(last ? 1 : 0, 1.0)); }, "differs between ranks");
  for (const int64_t size : {40, 2000, 100000}) {
    expect([&] { accelerator.reduce(torch::ones({last ? size + 1 : size})); }, c10::str("Float [", size + 1, "]"));
  }
  expect([&] { accelerator.max(torch::ones({last ? 3 : 2})); }, "`max(): Float [2]` on rank 0, `max(): Float [3]`");
  expect([&] { accelerator.min(torch::ones({last ? 300 : 200})); }, "`min(): Float [200]` on rank 0");
  expect([&] { accelerator.broadcast(torch::ones({2}, last ? torch::kInt : torch::kFloat)); }, "`broadcast(): Float");
  expect([&] { accelerator.broadcast(torch::ones({last ? 500 : 499})); }, "`broadcast(): Float [499]` on rank 0");
  expect([&] { accelerator.gather(torch::ones({2, last ? 3 : 2, last ? 2 : 3})); }, "`rows of Float [2, 3]` on rank 0");
}

/// Longer than what travels with the signature of shapes.
TEST_F(Collectives, LongValues) {
  for (const int64_t size : {0, 1, 29, 30, 31, 240, 241, 5000, 100000}) {
    const auto x = torch::arange(size, torch::kFloat64);
    EXPECT_TRUE(torch::equal(accelerator.reduce(x), x * static_cast<double>(n))) << size;
    EXPECT_TRUE(torch::equal(accelerator.max(x + r), x + (n - 1))) << size;
    EXPECT_TRUE(torch::equal(accelerator.min(x + r), x)) << size;
    EXPECT_TRUE(torch::equal(accelerator.broadcast(x * (r + 1), n - 1), x * n)) << size;
    const auto bytes = torch::arange(size).to(torch::kInt8);
    EXPECT_TRUE(torch::equal(accelerator.broadcast(bytes + r), bytes)) << size;
  }
  const auto [whole, large, none] =
      accelerator.reduce(torch::full({40}, r), torch::ones({70000}), std::vector<float>());
  EXPECT_TRUE(torch::equal(whole, torch::full({40}, n * (n - 1) / 2)));
  EXPECT_TRUE(torch::equal(large, torch::ones({70000}) * n));
  EXPECT_TRUE(none.empty());
}

TEST_F(Collectives, ReduceOfMaps) {
  // Filled in another order on each rank.
  std::unordered_map<std::string, double> sums;
  for (int64_t i = 0; i < 20; ++i) {
    const int64_t key = r % 2 == 0 ? i : 19 - i;
    sums["metric" + std::to_string(key)] = static_cast<double>(key * (r + 1));
  }
  std::map<int, torch::Tensor> counts{{7, torch::ones({2}, torch::kInt64) * r}, {-1, torch::zeros({1})}};
  const auto [all_sums, all_counts, one] = accelerator.reduce(sums, counts, 1);
  static_assert(std::is_same_v<std::decay_t<decltype(all_sums)>, std::unordered_map<std::string, double>>);
  ASSERT_EQ(all_sums.size(), 20U);
  const int64_t ranks_sum = n * (n + 1) / 2;
  for (int64_t key = 0; key < 20; ++key) {
    EXPECT_EQ(all_sums.at("metric" + std::to_string(key)), static_cast<double>(key * ranks_sum));
  }
  EXPECT_TRUE(torch::equal(all_counts.at(7), torch::ones({2}, torch::kInt64) * (n * (n - 1) / 2)));
  EXPECT_EQ(one, n);
  EXPECT_EQ(sums.at("metric3"), static_cast<double>(3 * (r + 1)));  // a fresh value
  const torch::Tensor same = counts.at(7);
  accelerator.reduce_(counts, sums);
  EXPECT_TRUE(torch::equal(same, all_counts.at(7)));
  EXPECT_EQ(sums, all_sums);
  EXPECT_TRUE(accelerator.reduce(std::map<std::string, float>()).empty());
}

TEST_F(Collectives, ReduceOfPairsAndOfNestedMaps) {
  std::map<int, std::pair<int64_t, double>> hits{{0, {r, 0.5}}, {1, {2, r}}};
  std::map<std::string, std::map<int, std::vector<double>>> nested{{"a", {{1, {1.0 * r, 2}}}}, {"b", {}}};
  auto both = std::make_tuple(r, torch::ones({2}) * r);
  const auto [all_hits, all_nested] = accelerator.reduce(hits, nested);
  const int64_t sum = n * (n - 1) / 2;
  EXPECT_EQ(all_hits.at(0), std::pair(sum, 0.5 * static_cast<double>(n)));
  EXPECT_EQ(all_hits.at(1), std::pair(2 * n, static_cast<double>(sum)));
  EXPECT_EQ(all_nested.at("a").at(1), (std::vector<double>{1.0 * sum, 2.0 * n}));
  EXPECT_TRUE(all_nested.at("b").empty());
  accelerator.reduce_(hits, both);
  EXPECT_EQ(hits, all_hits);
  EXPECT_EQ(std::get<0>(both), sum);
  EXPECT_TRUE(torch::equal(std::get<1>(both), torch::ones({2}) * sum));
  if (n > 1) {
    nested["b"][r] = {};
    EXPECT_NE(toys::error_of([&] { accelerator.reduce_(nested); }).find("the key"), std::string::npos);
  }
}

TEST_F(Collectives, ReduceOfOtherKeysThrowsOnAllRanks) {
  if (n == 1) {
    return;
  }
  const bool last = r == n - 1;
  const std::map<std::string, double> renamed{{"loss", 1}, {last ? "hits" : "count", 2}};
  const std::string error = toys::error_of([&] { accelerator.reduce(renamed); });
  EXPECT_NE(error.find(c10::str("`the key count` on rank 0, `the key hits` on rank ", n - 1)), std::string::npos)
      << error;
  std::unordered_map<int64_t, torch::Tensor> more{{1, torch::ones({2})}};
  if (last) {
    more[2] = torch::ones({2});
  }
  EXPECT_NE(toys::error_of([&] { accelerator.reduce_(more); }).find("`a map of 1` on rank 0, `a map of 2`"),
            std::string::npos);
  EXPECT_TRUE(torch::equal(more.at(1), torch::ones({2})));
  EXPECT_EQ(accelerator.reduce(int64_t{1}), n);  // the ranks are still together
}

TEST_F(Collectives, ReduceInPlace) {
  double loss = 1.5;
  int64_t correct = r;
  auto x = torch::ones({3}) * r;
  std::vector<float> list{1, 2};
  accelerator.reduce_(loss, correct, x, list);
  EXPECT_EQ(loss, 1.5 * static_cast<double>(n));
  EXPECT_EQ(correct, n * (n - 1) / 2);
  EXPECT_TRUE(torch::equal(x, torch::ones({3}) * (n * (n - 1) / 2)));
  EXPECT_EQ(list[1], 2.0F * static_cast<float>(n));
}

TEST_F(Collectives, GatherWithUnequalRows) {
  const auto mine = torch::full({r, 2}, r, torch::kInt16);  // rank 0 has none
  std::vector<torch::Tensor> expected;
  for (int64_t i = 0; i < n; ++i) {
    expected.push_back(torch::full({i, 2}, i, torch::kInt16));
  }
  EXPECT_TRUE(torch::equal(accelerator.gather(mine), torch::cat(expected)));
  EXPECT_TRUE(torch::equal(accelerator.gather(torch::tensor(r)), torch::arange(n)));
  EXPECT_EQ(accelerator.gather(torch::zeros({0, 3}, torch::kBool)).sizes(), (std::vector<int64_t>{0, 3}));
  if (n > 1) {
    EXPECT_THROW(accelerator.gather(torch::zeros({2, 1 + r})), c10::Error);
  }
}

TEST_F(Collectives, MeansOverTheGlobalBatch) {
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      toys::Numbers(n > 1 ? 2 * n + 1 : 3).map(torch::data::transforms::Stack<>()), static_cast<size_t>(2 * n));
  // Batches of 2n rows and of 1: then all ranks but the first hold a ghost.
  int64_t begin = 0, counted = 0;
  double total = 0;
  torch::Tensor last;
  std::vector<torch::Tensor> collected;
  for (auto& b : *loader) {
    const auto first = b.data.select(1, 0);
    const int64_t rows = begin == 0 ? 2 * n : 1;
    const double mean = static_cast<double>(2 * begin + rows - 1) / 2;
    EXPECT_NEAR(accelerator.mean(first.mean()).item<double>(), mean, 1e-6);
    EXPECT_NEAR(accelerator.mean(first.mean().item<float>()), mean, 1e-5);
    EXPECT_EQ(accelerator.sum(first.size(0)), rows);
    const auto [seen, classes] = accelerator.gather_for_metrics(first, b.target);
    EXPECT_TRUE(torch::equal(seen, torch::arange(begin, begin + rows).to(seen.scalar_type())));
    EXPECT_TRUE(torch::equal(classes, torch::arange(begin, begin + rows).remainder(3)));
    last = first;
    collected.push_back(first);
    counted += accelerator.mine(first.size(0));
    total += accelerator.share(first.mean().item<double>());
    if (begin > 0 && r > 0) {
      EXPECT_EQ(accelerator.mine(int64_t{5}), 0);
      EXPECT_EQ(accelerator.share(torch::full({}, std::numeric_limits<double>::quiet_NaN())).item<double>(), 0);
    }
    begin += rows;
  }
  EXPECT_EQ(accelerator.reduce(counted), 2 * n + 1);
  // Behind the loop: the last batch's rows, or all where no rank had a ghost; else nobody knows which rows to drop.
  EXPECT_EQ(accelerator.gather_for_metrics(last).size(0), 1);
  const std::string error =
      toys::error_of([&] { EXPECT_EQ(accelerator.gather_for_metrics(torch::cat(collected)).size(0), 2 * n + 1); });
  EXPECT_NE(error.find(n == 1 ? "no error" : "after a batch that was filled up on rank 1 (by a ghost"),
            std::string::npos)
      << error;
  auto evaluation = accelerate::make_evaluation_data_loader<torch::data::samplers::SequentialSampler>(
      toys::Numbers(3).map(torch::data::transforms::Stack<>()), 4);
  std::vector<torch::Tensor> rows{torch::zeros({0, 4})};  // on a rank without a batch nothing else
  for (auto& b : *evaluation) {
    rows.push_back(b.data);
  }
  EXPECT_EQ(accelerator.gather_for_metrics(torch::cat(rows)).size(0), 3);
  EXPECT_NEAR(accelerator.reduce(total), (2.0 * static_cast<double>(n) - 1) / 2 + 2.0 * static_cast<double>(n), 1e-6);
}

using torch::data::samplers::SequentialSampler;

auto numbers(int64_t rows) { return toys::Numbers(static_cast<size_t>(rows)).map(torch::data::transforms::Stack<>()); }

/// A ghost of the last training batch is nothing to an evaluation loop, whose batches are whole.
TEST_F(Collectives, SumsInAnEvaluation) {
  auto loader = accelerate::make_data_loader<SequentialSampler>(numbers(2 * n + 1), static_cast<size_t>(2 * n));
  auto evaluation = accelerate::make_evaluation_data_loader<SequentialSampler>(numbers(6 * n), 2);
  for (const bool within : {false, true}) {
    int64_t count = 0, mine = 0, steps = 0;
    const auto evaluate = [&] {
      for (auto& b : *evaluation) {
        count += b.data.size(0);
        mine += accelerator.mine(b.data.size(0));
      }
    };
    for (auto& b : *loader) {
      if (within && ++steps == 2) {  // the batch of a single row
        evaluate();
        EXPECT_EQ(accelerator.sum(b.data.size(0)), 1);  // the training goes on
        EXPECT_NEAR(accelerator.mean(r == 0 ? 3.0 : 7.0), 3, 1e-12);
      }
    }
    if (!within) {
      evaluate();
      EXPECT_EQ(accelerator.sum(count), 6 * n);
      EXPECT_NEAR(accelerator.mean(static_cast<double>(r)), static_cast<double>(n - 1) / 2, 1e-12);
    }
    EXPECT_EQ(accelerator.reduce(count), 6 * n);
    EXPECT_EQ(accelerator.reduce(mine), 6 * n);
  }
}

/// All ranks hear of what one alone did wrong, and go on.
TEST_F(Collectives, UndefinedTensors) {
  if (n == 1) {
    return;
  }
  for (const int64_t wrong : {int64_t{0}, n - 1, int64_t{-1}}) {
    SCOPED_TRACE(testing::Message() << "on rank " << wrong);
    const torch::Tensor x = wrong == r || wrong == -1 ? torch::Tensor() : torch::ones({2});
    for (const std::string& error :
         {toys::error_of([&] { accelerator.reduce(x, 1.0); }), toys::error_of([&] { accelerator.broadcast(x); })}) {
      EXPECT_NE(error.find("undefined"), std::string::npos) << error;
      EXPECT_NE(error.find("rank " + std::to_string(r) + " of "), std::string::npos) << error;
    }
    EXPECT_EQ(accelerator.reduce(1), n);
  }
}

/// What an epoch's end prints may come behind its loader's.
TEST_F(Collectives, MeansBehindALoaderThatHasGone) {
  const auto train = [&](int64_t rows) {
    double value = 0;
    auto loader = accelerate::make_data_loader<SequentialSampler>(numbers(rows), static_cast<size_t>(rows));
    for (auto& b : *loader) {
      value = b.data.select(1, 0).mean().item<double>();
    }
    return value;
  };
  const auto all = static_cast<double>(n);
  const double equally = (all - 1) / 2, own = static_cast<double>(r);
  for (const int64_t rows : {int64_t{1}, n + 1, 2 * n}) {
    SCOPED_TRACE(testing::Message() << rows << " rows");
    const double value = train(rows);
    EXPECT_NEAR(accelerator.mean(value), static_cast<double>(rows - 1) / 2, 1e-12);
    EXPECT_NEAR(accelerator.mean(torch::tensor(value, torch::kDouble)).item<double>(),
                static_cast<double>(rows - 1) / 2, 1e-12);
    EXPECT_EQ(accelerator.sum(int64_t{1}), std::min(n, rows));
    // The same of the batches that the program makes itself, whose loader goes with the loop.
    double of_batch = 0;
    for (auto& batch : accelerate::dispatch_batches(std::vector<torch::Tensor>{torch::arange(rows) * 1.0})) {
      of_batch = batch.mean().item<double>();
    }
    EXPECT_NEAR(accelerator.mean(of_batch), static_cast<double>(rows - 1) / 2, 1e-6);
  }
  // An evaluation has batches of its own, while its loader is there and behind it.
  train(1);
  {
    auto evaluation = accelerate::make_evaluation_data_loader<SequentialSampler>(numbers(4 * n), 2);
    for (auto& b : *evaluation) {
      EXPECT_EQ(accelerator.mine(b.data.size(0)), 2);
    }
    EXPECT_NEAR(accelerator.mean(own), equally, 1e-12);
  }
  EXPECT_NEAR(accelerator.mean(own), equally, 1e-12);
  // Also where it is the evaluation's loader that has gone.
  auto loader = accelerate::make_data_loader<SequentialSampler>(numbers(1), 1);
  for (auto& b : *loader) {
    (void)b;
  }
  {
    auto evaluation = accelerate::make_evaluation_data_loader<SequentialSampler>(numbers(4 * n), 2);
    for (auto& b : *evaluation) {
      (void)b;
    }
  }
  EXPECT_NEAR(accelerator.mean(own), equally, 1e-12);
  // A training without a loader is another one.
  train(1);
  auto w = torch::zeros({1}, torch::requires_grad());
  accelerator.prepare(w);
  accelerator.backward((w * own).sum());
  EXPECT_NEAR(w.grad().item<double>(), equally, 1e-6);
  EXPECT_NEAR(accelerator.mean(own), equally, 1e-12);
}

/// Batches of one row and of 2n in turns: all ranks but the first have ghosts in the middle.
class Uneven : public torch::data::samplers::Sampler<> {
 public:
  Uneven(int64_t rows, int64_t ranks) : rows_(rows), large_(2 * ranks) {}
  void reset(std::optional<size_t> = std::nullopt) override { at_ = batch_ = 0; }
  std::optional<std::vector<size_t>> next(size_t) override {
    std::vector<size_t> batch;
    for (const int64_t end = std::min(rows_, at_ + (batch_++ % 2 == 0 ? 1 : large_)); at_ < end; ++at_) {
      batch.push_back(static_cast<size_t>(at_));
    }
    return batch.empty() ? std::nullopt : std::optional(batch);
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  int64_t rows_, large_, at_ = 0, batch_ = 0;
};

TEST_F(Collectives, CollectedRowsWithGhostsAmongThem) {
  const auto gathered = [&](const std::vector<torch::Tensor>& collected) {
    return toys::error_of([&] { accelerator.gather_for_metrics(torch::cat(collected)); });
  };
  const std::string expected = n == 1 ? "no error" : "filled up on rank 1";
  std::vector<torch::Tensor> uneven, gone, between, whole{torch::zeros({0, 4})};
  {
    auto loader = accelerate::make_data_loader(numbers(4 * n + 2), Uneven(4 * n + 2, n), 4);
    for (auto& b : *loader) {
      uneven.push_back(b.data);
    }
    EXPECT_NE(gathered(uneven).find(expected), std::string::npos);
  }
  {
    auto loader = accelerate::make_data_loader<SequentialSampler>(numbers(2 * n + 1), static_cast<size_t>(2 * n));
    for (auto& b : *loader) {
      gone.push_back(b.data);
    }
  }
  EXPECT_NE(gathered(gone).find(expected), std::string::npos);
  auto loader = accelerate::make_data_loader<SequentialSampler>(numbers(4 * n + 1), static_cast<size_t>(2 * n));
  for (auto& b : *loader) {
    between.push_back(b.data);
  }
  auto evaluation = accelerate::make_evaluation_data_loader<SequentialSampler>(numbers(7 * n), 7);
  for (auto& b : *evaluation) {
    whole.push_back(b.data);
  }
  EXPECT_NE(gathered(between).find(expected), std::string::npos);
  EXPECT_EQ(accelerator.gather_for_metrics(torch::cat(whole)).size(0), 7 * n);
  EXPECT_EQ(accelerator.gather_for_metrics(torch::full({2}, r)).size(0), 2 * n);
}

TEST_F(Collectives, BroadcastAndOutput) {
  EXPECT_EQ(accelerator.broadcast(r + 5), 5);
  EXPECT_EQ(accelerator.broadcast(static_cast<float>(r), n - 1), static_cast<float>(n - 1));
  EXPECT_TRUE(torch::equal(accelerator.broadcast(torch::full({2, 2}, r)), torch::zeros({2, 2}, torch::kInt64)));
  int called = 0;
  accelerator.on_main_process([&] { ++called; });
  EXPECT_EQ(called, accelerator.is_main_process() ? 1 : 0);
  accelerator.on_main_process(
      [&](int more, const std::string& unit) { called += more + static_cast<int>(unit.size()); }, 2, "ab");
  EXPECT_EQ(called, accelerator.is_main_process() ? 5 : 0);
  accelerator.wait_for_everyone();
}

TEST_F(Collectives, FilesStayWhileOthersRead) {
  const std::string folder = testing::TempDir() + "accelerate_read_" + std::to_string(accelerator.broadcast(getpid()));
  const std::string path = folder + "/x.pt";
  accelerator.once([&] { return mkdir(folder.c_str(), 0700); });
  const auto read = [&] {
    if (r == accelerator.num_processes() - 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    torch::Tensor x;
    torch::load(x, path);
    return x.item<int64_t>();
  };
  accelerator.save(torch::full({}, 1), path);
  EXPECT_EQ(read(), 1);
  accelerator.save(torch::full({}, 2), path);
  EXPECT_EQ(read(), 2);
  accelerator.once([&] { return unlink(path.c_str()) + rmdir(folder.c_str()); });
}

TEST_F(Collectives, SaveWritesOneFile) {
  const std::string folder = testing::TempDir() + "accelerate_save_" + std::to_string(accelerator.broadcast(getpid()));
  accelerator.on_main_process([&] { mkdir(folder.c_str(), 0700); });
  accelerator.wait_for_everyone();
  torch::manual_seed(7);
  auto model = toys::perceptron();
  accelerator.prepare(model);
  const std::string path = folder + "/model.pt";
  accelerator.save(model, path);
  auto loaded = toys::perceptron();
  torch::load(loaded, path);  // on every rank, at once
  EXPECT_EQ(toys::distance(loaded->parameters(), model->parameters()), 0);
  accelerator.save(std::vector<torch::Tensor>{torch::full({}, r)}, path.c_str());
  std::vector<torch::Tensor> tensors;
  torch::load(tensors, path);
  EXPECT_EQ(tensors.at(0).item<int64_t>(), 0);
  torch::serialize::OutputArchive archive;
  model->save(archive);
  accelerator.save(archive, folder + "/archive.pt");
  auto archived = toys::perceptron();
  torch::load(archived, folder + "/archive.pt");
  EXPECT_EQ(toys::distance(archived->parameters(), model->parameters()), 0);
  EXPECT_EQ(accelerator.main_process_file(path), r == 0 ? path : "/dev/null");
  std::ostringstream memory;
  accelerator.save(torch::full({}, r), memory);
  std::istringstream in(memory.str());
  torch::Tensor mine;
  torch::load(mine, in);
  EXPECT_EQ(mine.item<int64_t>(), r);
  EXPECT_THROW(accelerator.save(model, folder + "/absent/model.pt"), std::exception);
  accelerator.wait_for_everyone();
  if (accelerator.is_main_process()) {
    EXPECT_EQ(unlink((folder + "/archive.pt").c_str()), 0);
    EXPECT_EQ(unlink(path.c_str()), 0);
    EXPECT_EQ(rmdir(folder.c_str()), 0);  // nothing else was left in it
  }
}

}  // namespace
