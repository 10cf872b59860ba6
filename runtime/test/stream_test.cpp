/// Loaders of stateful and chunk data sets, and of samplers whose requests are no lists of indices.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "sharded.h"
#include "toys.h"

namespace {

using sharded::Batches;
using sharded::Rows;

class Stream : public testing::Test {
 protected:
  /// What all ranks got, step by step, and that nobody got more than its slice.
  template <typename Loader>
  Batches global_batches(Loader& loader) {
    Batches result;
    for (auto& batch : loader) {
      const auto data = stacked(batch);
      result.push_back(sharded::rows_of(accelerator.gather_for_metrics(data)));
      const auto rows = static_cast<int64_t>(result.back().size());
      EXPECT_EQ(data.size(0), std::max<int64_t>(1, rows / n + (r < rows % n ? 1 : 0)));
      EXPECT_EQ(accelerator.global_rows(data.size(0)), n == 1 ? data.size(0) : rows);
    }
    return result;
  }

  static torch::Tensor stacked(const torch::data::Example<>& batch) { return batch.data; }
  static torch::Tensor stacked(const std::vector<torch::data::Example<>>& batch) {
    std::vector<torch::Tensor> rows;
    for (const auto& example : batch) {
      rows.push_back(example.data);
    }
    return torch::stack(rows);
  }
  static torch::Tensor stacked(const std::vector<torch::Tensor>& batch) { return torch::stack(batch); }

  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

/// Hands out consecutive rows; draws where they begin in every epoch.
class Counter : public torch::data::datasets::StatefulDataset<Counter> {
 public:
  Counter(int64_t size, bool shuffled) : size_(size), shuffled_(shuffled) {}
  std::optional<std::vector<torch::data::Example<>>> get_batch(size_t batch_size) override {
    std::lock_guard<std::mutex> lock(*mutex_);
    std::vector<torch::data::Example<>> batch;
    for (; at_ < size_ && batch.size() < batch_size; ++at_) {
      batch.push_back({torch::full({2}, first_ + at_), torch::tensor(at_)});
    }
    ++reads;
    return batch.empty() ? std::nullopt : std::optional(batch);
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override {
    at_ = 0;
    first_ = shuffled_ ? torch::randint(1000, {1}).item<int64_t>() : 0;
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

  static inline std::atomic<int> reads{0};

 private:
  int64_t size_, at_ = 0, first_ = 0;
  bool shuffled_;
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
};

TEST_F(Stream, StatefulDataSetsAreReadOnce) {
  for (const size_t workers : {0, 1}) {
    auto loader = accelerate::make_data_loader(Counter(11, false), torch::data::DataLoaderOptions(4).workers(workers));
    static_assert(std::is_same_v<decltype(loader), std::unique_ptr<torch::data::StatefulDataLoader<Counter>>>);
    accelerator.prepare(loader);
    Counter::reads = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(global_batches(*loader), sharded::batches_of(11, 4, false)) << workers << " workers";
    }
    EXPECT_EQ(Counter::reads > 0, r == 0);
  }
}

TEST_F(Stream, DrawsOfTheSourceAreKnownToAll) {
  torch::manual_seed(7);
  auto single = torch::data::make_data_loader(Counter(5, true), 2);
  std::vector<torch::Tensor> expected, actual;
  const auto run = [](auto& loader, auto& draws) {
    Batches firsts;
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (auto& batch : *loader) {
        firsts.push_back(sharded::rows_of(stacked(batch)));
        draws.push_back(torch::rand({3}));
      }
    }
    return firsts;
  };
  const Batches original = run(single, expected);
  torch::manual_seed(7);
  auto loader = accelerate::make_data_loader(Counter(5, true), 2);
  const Batches mine = run(loader, actual);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_TRUE(torch::equal(actual[i], expected[i])) << i;
  }
  if (r == 0) {
    for (size_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i][0], original[i][0]);
    }
  }
}

class Chunks : public torch::data::datasets::ChunkDataReader<torch::data::Example<>> {
 public:
  using BatchType = std::vector<torch::data::Example<>>;
  BatchType read_chunk(size_t chunk) override {
    BatchType rows;
    for (size_t i = 0; i < 5; ++i) {
      rows.push_back({torch::full({2}, static_cast<int64_t>(5 * chunk + i)), torch::tensor(0)});
    }
    return rows;
  }
  size_t chunk_count() override { return 5; }
  void reset() override {}
};

TEST_F(Stream, ChunkDataSets) {
  using torch::data::samplers::RandomSampler;
  using torch::data::samplers::SequentialSampler;
  const auto options = torch::data::datasets::ChunkDatasetOptions(2, 4);
  auto ordered = torch::data::datasets::make_shared_dataset<
      torch::data::datasets::ChunkDataset<Chunks, SequentialSampler, SequentialSampler>>(
      Chunks(), SequentialSampler(0), SequentialSampler(0), torch::data::datasets::ChunkDatasetOptions(1, 4));
  auto loader = accelerate::make_data_loader(ordered, 4);
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(global_batches(*loader), sharded::batches_of(25, 4, false));
  }
  auto shuffled = torch::data::datasets::make_shared_dataset<torch::data::datasets::ChunkDataset<Chunks>>(
      Chunks(), RandomSampler(0), RandomSampler(0), options);
  auto stacking = accelerate::make_data_loader(
      shuffled.map(torch::data::transforms::BatchLambda<std::vector<torch::data::Example<>>,
                                                        std::vector<torch::data::Example<>>>(
          [](std::vector<torch::data::Example<>> rows) { return rows; })),
      torch::data::DataLoaderOptions(4).workers(2));
  for (int epoch = 0; epoch < 2; ++epoch) {
    Rows seen;
    for (const Rows& batch : global_batches(*stacking)) {
      seen.insert(seen.end(), batch.begin(), batch.end());
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, sharded::batches_of(25, 25, false)[0]);
  }
}

TEST_F(Stream, EvaluationBatchesStayWhole) {
  auto loader = accelerate::make_evaluation_data_loader(Counter(11, false), 4);
  Batches mine;
  for (auto& batch : *loader) {
    mine.push_back(sharded::rows_of(stacked(batch)));
  }
  EXPECT_EQ(mine, r == 0 ? sharded::batches_of(11, 4, false) : Batches());
}

/// A data set that is asked for a number of rows, not for which.
class Sensor : public torch::data::datasets::BatchDataset<Sensor, std::vector<torch::Tensor>, size_t> {
 public:
  std::vector<torch::Tensor> get_batch(size_t size) override {
    std::vector<torch::Tensor> rows;
    for (size_t i = 0; i < size; ++i) {
      rows.push_back(torch::full({3}, at_++));
    }
    return rows;
  }
  std::optional<size_t> size() const override { return std::nullopt; }

 private:
  int64_t at_ = 0;
};

TEST_F(Stream, RequestsOfASize) {
  auto loader = accelerate::make_data_loader(Sensor(), torch::data::samplers::StreamSampler(7), 3);
  EXPECT_EQ(global_batches(*loader), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(global_batches(*loader), (Batches{{7, 8, 9}, {10, 11, 12}, {13}}));
}

/// Begins anew when it's asked again behind its end.
class Endless : public Counter {
 public:
  using Counter::Counter;
  std::optional<std::vector<torch::data::Example<>>> get_batch(size_t batch_size) override {
    auto batch = Counter::get_batch(batch_size);
    if (!batch) {
      reset();
    }
    return batch;
  }
};

TEST_F(Stream, RoundsOfWholeBatches) {
  for (const bool drop_last : {false, true}) {
    auto loader = accelerate::make_data_loader(Endless(2 * n * 2 + 1, false),
                                               torch::data::DataLoaderOptions(2).drop_last(drop_last && n > 1),
                                               accelerate::BatchPolicy::PerProcess);
    Batches expected = sharded::batches_of(2 * n * 2 + 1, 2 * n, drop_last && n > 1);
    Batches result;
    for (auto& batch : *loader) {
      result.push_back(sharded::rows_of(accelerator.gather_for_metrics(stacked(batch))));
    }
    EXPECT_EQ(result, expected);
  }
}

class Fragile : public Counter {
 public:
  Fragile() : Counter(100, false) {}
  std::optional<std::vector<torch::data::Example<>>> get_batch(size_t batch_size) override {
    if (++calls_ == 3) {
      throw std::runtime_error("the disk is gone");
    }
    return Counter::get_batch(batch_size);
  }

 private:
  int calls_ = 0;
};

TEST_F(Stream, AllRanksHearOfErrors) {
  auto loader = accelerate::make_data_loader(Fragile(), 4);
  int steps = 0;
  try {
    for (auto& batch : *loader) {
      (void)batch;
      ++steps;
    }
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("the disk is gone"), std::string::npos) << error.what();
  }
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(accelerator.reduce(1), n);  // and the ranks are still together
}

TEST_F(Stream, DistributedSamplersAreRefused) {
  const auto make = [] {
    return accelerate::make_data_loader(toys::Numbers(8).map(torch::data::transforms::Stack<>()),
                                        torch::data::samplers::DistributedRandomSampler(8), 4);
  };
  if (n > 1) {
    EXPECT_THROW(make(), c10::Error);
  } else {
    int64_t rows = 0;
    auto loader = make();
    for (auto& batch : *loader) {
      rows += batch.data.size(0);
    }
    EXPECT_EQ(rows, 8);
  }
}

/// A sampler of the program's own.
struct Backwards : torch::data::samplers::Sampler<> {
  explicit Backwards(size_t size) : size_(size), left_(size) {}
  void reset(std::optional<size_t> = std::nullopt) override { left_ = size_; }
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    std::vector<size_t> batch;
    while (left_ > 0 && batch.size() < batch_size) {
      batch.push_back(--left_);
    }
    return batch.empty() ? std::nullopt : std::optional(batch);
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  size_t size_, left_;
};

auto numbers(size_t size) { return toys::Numbers(size).map(torch::data::transforms::Stack<>()); }

/// Loaders that torch made.
class InPlace : public Stream {
 protected:
  /// Two epochs, between which the other ranks' generators go elsewhere: the main process's order counts.
  template <typename Loader>
  Batches shared(Loader& loader) {
    Batches result;
    for (int epoch = 0; epoch < 2; ++epoch) {
      torch::rand({r});
      for (const Rows& batch : global_batches(*loader)) {
        result.push_back(batch);
      }
    }
    return result;
  }

  template <typename Loader>
  static Batches single(Loader& loader) {
    Batches result;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto& batch : *loader) {
        result.push_back(sharded::rows_of(stacked(batch)));
      }
    }
    return result;
  }

  template <typename Make>
  void expect_same(Make make) {
    torch::manual_seed(11);
    auto alone = make();
    const Batches expected = single(alone);
    EXPECT_GT(expected.size(), 2U);
    torch::manual_seed(11);
    auto loader = make();
    auto* const object = loader.get();
    accelerator.prepare(loader);
    accelerator.prepare(loader);
    EXPECT_EQ(loader.get(), object);
    EXPECT_EQ(shared(loader), expected);
  }
};

TEST_F(InPlace, LoadersOfEveryKind) {
  using Sequential = torch::data::samplers::SequentialSampler;
  for (const bool drop_last : {false, true}) {
    for (const size_t workers : {0, 1, 3}) {
      const auto options = torch::data::DataLoaderOptions(4).drop_last(drop_last);
      SCOPED_TRACE(testing::Message() << workers << " workers" << (drop_last ? ", drop_last" : ""));
      expect_same([=] {
        return torch::data::make_data_loader(numbers(11), torch::data::DataLoaderOptions(options).workers(workers));
      });
      expect_same([=] {
        return torch::data::make_data_loader<Sequential>(numbers(11),
                                                         torch::data::DataLoaderOptions(options).workers(workers));
      });
      expect_same([=] {
        return torch::data::make_data_loader(toys::Numbers(11),
                                             torch::data::DataLoaderOptions(options).workers(workers));
      });
    }
  }
}

/// Nothing is known of a sampler of the program's own: with workers the main process reads for all.
TEST_F(InPlace, SamplersOfTheProgram) {
  for (const bool drop_last : {false, true}) {
    for (const size_t workers : {0, 1, 3}) {
      SCOPED_TRACE(testing::Message() << workers << " workers" << (drop_last ? ", drop_last" : ""));
      const auto options = torch::data::DataLoaderOptions(4).drop_last(drop_last).workers(workers);
      expect_same([=] { return torch::data::make_data_loader(numbers(11), Backwards(11), options); });
      expect_same([=] { return torch::data::make_data_loader(toys::Numbers(11), Backwards(11), options); });
    }
  }
}

TEST_F(InPlace, BatchesAreSkipped) {
  for (const size_t workers : {0, 1}) {
    const auto options = torch::data::DataLoaderOptions(4).workers(workers);
    const auto expect_skipped = [&](auto loader) {
      accelerator.prepare(loader);
      auto rest = accelerate::skip_first_batches(loader, 1);
      EXPECT_EQ(global_batches(rest), (Batches{{6, 5, 4, 3}, {2, 1, 0}})) << workers << " workers";
      EXPECT_EQ(global_batches(*loader).size(), 3U) << workers << " workers";
    };
    expect_skipped(torch::data::make_data_loader(numbers(11), Backwards(11), options));
  }
}

/// Has no end, and begins where the program wants to go on.
struct Steered : torch::data::samplers::Sampler<> {
  explicit Steered(std::shared_ptr<std::atomic<size_t>> from) : from_(std::move(from)) {}
  void reset(std::optional<size_t> = std::nullopt) override {}
  std::optional<std::vector<size_t>> next(size_t batch_size) override {
    std::vector<size_t> batch;
    for (size_t i = 0; i < batch_size; ++i) {
      batch.push_back(*from_ + i);
    }
    return batch;
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  std::shared_ptr<std::atomic<size_t>> from_;
};

/// With workers it's asked as many batches ahead as torch does, and no more.
TEST_F(InPlace, SamplersThatLookAtTheProgram) {
  const auto run = [&](size_t workers, bool prepared) {
    const auto from = std::make_shared<std::atomic<size_t>>(0);
    auto loader = torch::data::make_data_loader(
        numbers(1000), Steered(from), torch::data::DataLoaderOptions(4).workers(workers).max_jobs(2 * workers));
    if (prepared) {
      accelerator.prepare(loader);
    }
    Batches result;
    for (auto& batch : *loader) {
      const torch::Tensor data = prepared ? accelerator.gather_for_metrics(batch.data) : batch.data;
      result.push_back(sharded::rows_of(data));
      *from += 10;
      if (result.size() == 7) {
        break;
      }
    }
    return result;
  };
  for (const size_t workers : {0, 1, 2}) {
    const Batches expected = run(workers, false);
    EXPECT_EQ(expected.back()[0], workers == 0 ? 60 : static_cast<int64_t>(60 - 20 * workers));
    EXPECT_EQ(run(workers, true), expected) << workers << " workers";
  }
}

/// Nothing can be chosen from what is asked for by its size: the main process reads.
TEST_F(InPlace, RequestsOfASize) {
  for (const size_t workers : {0, 1}) {
    auto loader = torch::data::make_data_loader(Sensor(), torch::data::samplers::StreamSampler(7),
                                                torch::data::DataLoaderOptions(3).workers(workers));
    accelerator.prepare(loader);
    EXPECT_EQ(global_batches(*loader), (Batches{{0, 1, 2}, {3, 4, 5}, {6}})) << workers << " workers";
    EXPECT_EQ(global_batches(*loader), (Batches{{7, 8, 9}, {10, 11, 12}, {13}})) << workers << " workers";
  }
}

/// With workers each rank reads its own rows, of which there are as many batches under way as the loader was to have.
TEST_F(InPlace, WorkersReadTheRanksRowsOnly) {
  static std::atomic<int> reads{0};
  struct Counting : torch::data::Dataset<Counting> {
    torch::data::Example<> get(size_t index) override {
      ++reads;
      return {torch::full({4}, static_cast<double>(index)), torch::tensor(0)};
    }
    torch::optional<size_t> size() const override { return 40; }
  };
  auto loader = torch::data::make_data_loader(Counting().map(torch::data::transforms::Stack<>()),
                                              torch::data::DataLoaderOptions(8).workers(2));
  accelerator.prepare(loader);
  reads = 0;
  int64_t rows = 0;
  for (auto& batch : *loader) {
    rows += batch.data.size(0);
    accelerator.prepare(loader);  // again, which changes nothing
  }
  EXPECT_EQ(reads, rows);
  EXPECT_EQ(accelerator.reduce(rows), 40);
  // Left in its middle, it has to be read to its end before it can begin again: as torch has it.
  for (auto& batch : *loader) {
    EXPECT_GT(batch.data.size(0), 0);
    break;
  }
  EXPECT_THROW(loader->begin(), c10::Error);
}

TEST_F(InPlace, StatefulDataSetsAreReadOnce) {
  for (const bool shuffled : {false, true}) {
    expect_same([=] { return torch::data::make_data_loader(Counter(11, shuffled), 4); });
  }
  auto loader = torch::data::make_data_loader(Counter(11, true), 4);
  accelerator.prepare(loader);
  Counter::reads = 0;
  EXPECT_EQ(global_batches(*loader).size(), 3U);
  EXPECT_EQ(Counter::reads, r == 0 ? 4 : 0);  // and once more, to find the end
}

TEST_F(InPlace, StatefulDataSetsWithWorkers) {
  for (const bool shuffled : {false, true}) {
    expect_same([=] {
      return torch::data::make_data_loader(Counter(11, shuffled), torch::data::DataLoaderOptions(4).workers(1));
    });
  }
  // Several read in whatever order; each row comes once.
  auto loader = torch::data::make_data_loader(Counter(31, false), torch::data::DataLoaderOptions(4).workers(3));
  accelerator.prepare(loader);
  for (int epoch = 0; epoch < 2; ++epoch) {
    Rows rows;
    for (const Rows& batch : global_batches(*loader)) {
      rows.insert(rows.end(), batch.begin(), batch.end());
    }
    std::sort(rows.begin(), rows.end());
    EXPECT_EQ(rows, sharded::batches_of(31, 31, false)[0]);
  }
}

TEST_F(InPlace, AllRanksHearOfErrors) {
  auto loader = torch::data::make_data_loader(Fragile(), torch::data::DataLoaderOptions(4).workers(1));
  accelerator.prepare(loader);
  int steps = 0;
  const std::string error = toys::error_of([&] {
    for (auto& batch : *loader) {
      (void)batch;
      ++steps;
    }
  });
  EXPECT_NE(error.find("the disk is gone"), std::string::npos) << error;
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(accelerator.reduce(1), n);  // and the ranks are still together
}

/// A batch that nobody has described.
struct Opaque {
  torch::Tensor data;
};
struct Opaques : torch::data::datasets::BatchDataset<Opaques, Opaque> {
  Opaque get_batch(c10::ArrayRef<size_t> indices) override {
    return {torch::zeros({static_cast<int64_t>(indices.size())})};
  }
  std::optional<size_t> size() const override { return 11; }
};

/// What can't be shared out any more says why, and what to write instead.
TEST_F(InPlace, WhatCantBeIsNamed) {
  const auto expect = [&](auto make, const std::string& reason) {
    auto loader = make();
    const std::string error = toys::error_of([&] { accelerator.prepare(loader); });
    if (n == 1) {
      EXPECT_EQ(error, "no error");
    } else {
      EXPECT_NE(error.find(reason), std::string::npos) << error;
      EXPECT_NE(error.find("make it with accelerate::make_data_loader"), std::string::npos) << error;
    }
  };
  const auto options = torch::data::DataLoaderOptions(4).workers(2);
  expect([&] { return torch::data::make_data_loader(Opaques(), Backwards(11), options); }, "a type that isn't known");
  expect(
      [&] {
        auto loader = torch::data::make_data_loader(numbers(40), options);
        (void)*loader->begin();
        return loader;
      },
      "a loop over it has begun");
  expect(
      [&] {
        return torch::data::make_data_loader(numbers(8), torch::data::samplers::DistributedRandomSampler(8), options);
      },
      "DistributedSampler");
}

}  // namespace
