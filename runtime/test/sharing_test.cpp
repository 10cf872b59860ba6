/// Which rows each rank gets, of loaders as programs make them, over all small lengths, batch sizes and numbers of
/// ranks. Every rank writes down what it was handed; the main process compares all of it with what torch::data's own
/// loader gives a single process.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "own_process.h"
#include "sharded.h"

namespace {

using accelerate::BatchPolicy;
using sharded::Batches;
using sharded::Rows;

/// Its batches are the indices that it was asked for.
class Indices : public torch::data::datasets::BatchDataset<Indices, torch::Tensor> {
 public:
  explicit Indices(int64_t size) : size_(size) {}
  torch::Tensor get_batch(c10::ArrayRef<size_t> indices) override {
    return torch::tensor(std::vector<int64_t>(indices.begin(), indices.end()));
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(size_); }

 private:
  int64_t size_;
};

/// One rank's part of a step.
struct Part {
  Rows rows;
  bool ghost = false;
  double weight = 0;  // in a mean over the global batch
};
/// An epoch of one rank, and of all ranks.
using Epoch = std::vector<Part>;
using Epochs = std::vector<Epoch>;

struct Case {
  int64_t length, batch;
  bool drop_last;
  torch::data::DataLoaderOptions options() const {
    auto result = torch::data::DataLoaderOptions(static_cast<size_t>(batch));
    return result.drop_last(drop_last);
  }
  void seed() const { torch::manual_seed(static_cast<uint64_t>(length * 100 + batch * 10 + (drop_last ? 1 : 0))); }
};

constexpr int64_t kLongest = 60;

std::vector<Case> cases(int64_t longest) {
  std::vector<Case> result;
  for (int64_t length = 1; length <= longest; ++length) {
    for (int64_t batch = 1; batch <= 7; ++batch) {
      result.push_back({length, batch, false});
      result.push_back({length, batch, true});
    }
  }
  return result;
}

Rows rows_of(const torch::Tensor& indices) {
  return {indices.data_ptr<int64_t>(), indices.data_ptr<int64_t>() + indices.numel()};
}

Rows joined(const Batches& batches) {
  Rows result;
  for (const Rows& batch : batches) {
    result.insert(result.end(), batch.begin(), batch.end());
  }
  return result;
}

/// What one process has: torch::data's loader. The order is random.
Batches single(const Case& c) {
  c.seed();
  auto loader = torch::data::make_data_loader(Indices(c.length), c.options());
  Batches result;
  for (auto& batch : *loader) {
    result.push_back(rows_of(batch));
  }
  return result;
}

/// A sampler of the program's own, of which nothing is known.
struct Own : torch::data::samplers::RandomSampler {
  using RandomSampler::RandomSampler;
};

/// `kPolicy`: of the process, and so of loaders that exist.
template <bool kEven, BatchPolicy kPolicy = BatchPolicy::Global>
class SharingTest : public OwnProcess<SharingTest<kEven, kPolicy>> {
 public:
  static accelerate::Options options() {
    accelerate::Options options;
    options.dataloader.even_batches = kEven;
    options.dataloader.batch_policy = kPolicy;
    return options;
  }

 protected:
  using Base = OwnProcess<SharingTest<kEven, kPolicy>>;
  using Base::accelerator, Base::n, Base::r;

  template <typename Loader>
  Epoch epoch(Loader& loader) {
    Epoch result;
    for (auto& batch : *loader) {
      result.push_back({rows_of(batch), accelerator->mine(int64_t{1}) == 0, accelerator->share(1.0)});
    }
    return result;
  }

  /// What each case's loader gives on every rank; on the main process only, as that compares.
  template <typename Make>
  std::vector<Epochs> record(const std::vector<Case>& all, Make make) {
    std::vector<double> written;
    for (const Case& c : all) {
      c.seed();
      auto loader = make(c);
      const Epoch mine = epoch(loader);
      written.push_back(static_cast<double>(mine.size()));
      for (const Part& part : mine) {
        written.insert(written.end(), {static_cast<double>(part.rows.size()), part.ghost ? 1.0 : 0.0, part.weight});
        written.insert(written.end(), part.rows.begin(), part.rows.end());
      }
    }
    const torch::Tensor everything = accelerator->gather(torch::tensor(written, torch::kFloat64));
    std::vector<Epochs> result(r == 0 ? all.size() : 0);
    const double* at = everything.data_ptr<double>();
    const auto next = [&] { return static_cast<int64_t>(*at++); };
    for (int64_t rank = 0; rank < n && r == 0; ++rank) {
      for (Epochs& epochs : result) {
        Epoch epoch;
        for (int64_t steps = next(); steps > 0; --steps) {
          Part part;
          const int64_t rows = next();
          part.ghost = next() == 1;
          part.weight = *at++;
          for (int64_t i = 0; i < rows; ++i) {
            part.rows.push_back(next());
          }
          epoch.push_back(part);
        }
        epochs.push_back(epoch);
      }
    }
    return result;
  }

  /// What has to hold under any policy. Returns the ranks' rows, one behind the other.
  static Rows check_step(const Epochs& epochs, size_t step) {
    Rows together;
    for (const Epoch& epoch : epochs) {
      if (!epoch[step].ghost) {
        together.insert(together.end(), epoch[step].rows.begin(), epoch[step].rows.end());
      }
    }
    double weights = 0;
    for (const Epoch& epoch : epochs) {
      const Part& part = epoch[step];
      const double rows = part.ghost ? 0 : static_cast<double>(part.rows.size());
      EXPECT_NEAR(part.weight, rows / static_cast<double>(together.size()), 1e-12);
      EXPECT_GT(part.rows.size(), 0U);
      EXPECT_TRUE(!part.ghost || part.rows.size() == 1);
      weights += part.weight;
    }
    EXPECT_NEAR(weights, 1, 1e-12);
    return together;
  }

  /// BatchPolicy::Global: together the batch, by contiguous slices that differ by one row at most.
  void check_global(const Case& c, const Epochs& epochs) {
    const Batches original = single(c);
    for (const Epoch& epoch : epochs) {
      ASSERT_EQ(epoch.size(), original.size());
    }
    for (size_t step = 0; step < original.size(); ++step) {
      ASSERT_EQ(check_step(epochs, step), original[step]) << "step " << step;
      const auto rows = static_cast<int64_t>(original[step].size());
      for (int64_t rank = 0; rank < n; ++rank) {
        const Part& part = epochs[static_cast<size_t>(rank)][step];
        ASSERT_EQ(part.ghost, rank >= rows) << "step " << step << ", rank " << rank;
        if (!part.ghost) {
          ASSERT_EQ(static_cast<int64_t>(part.rows.size()), rows / n + (rank < rows % n ? 1 : 0))
              << "step " << step << ", rank " << rank;
        }
      }
    }
  }

  /// The original's batches, as many to a round as there are ranks.
  std::vector<Batches> rounds_of(const Case& c, const Batches& original) {
    const auto ranks = static_cast<size_t>(n);
    std::vector<Batches> rounds;
    for (size_t i = 0; i < original.size(); ++i) {
      if (i % ranks == 0) {
        rounds.emplace_back();
      }
      rounds.back().push_back(original[i]);
    }
    if (c.drop_last && !rounds.empty() && rounds.back().size() < ranks) {
      rounds.pop_back();
    }
    return rounds;
  }

  /// BatchPolicy::PerProcess: a step is the original's next n batches, one for each rank.
  void check_rounds(const Case& c, const Epochs& epochs) {
    const Batches original = single(c);
    const auto ranks = static_cast<size_t>(n);
    const std::vector<Batches> rounds = rounds_of(c, original);
    for (const Epoch& epoch : epochs) {
      ASSERT_EQ(epoch.size(), rounds.size());
    }
    const Rows first = rounds.empty() ? Rows() : joined(rounds[0]);
    for (size_t step = 0; step < rounds.size(); ++step) {
      Rows expected = joined(rounds[step]);
      if (kEven && n > 1) {  // filled up with the epoch's first rows, over and over
        for (size_t i = 0; static_cast<int64_t>(expected.size()) < c.batch * n; ++i) {
          expected.push_back(first[i % first.size()]);
        }
      }
      ASSERT_EQ(check_step(epochs, step), expected) << "step " << step;
      for (size_t rank = 0; rank < ranks; ++rank) {
        const Part& part = epochs[rank][step];
        ASSERT_EQ(part.ghost, rank >= rounds[step].size() && !kEven) << "step " << step << ", rank " << rank;
      }
    }
    // And rank by rank as Accelerate has it.
    for (int64_t rank = 0; rank < n && n > 1; ++rank) {
      Batches batches;
      for (const Part& part : epochs[static_cast<size_t>(rank)]) {
        if (!part.ghost) {
          batches.push_back(part.rows);
        }
      }
      ASSERT_EQ(batches, sharded::accelerates(original, c.batch, kEven, c.drop_last, rank, n)) << "rank " << rank;
    }
  }

  /// The same where the main process reads: no row is there twice, as a round is sent joined, and cut evenly.
  void check_sent_rounds(const Case& c, const Epochs& epochs) {
    const std::vector<Batches> rounds = rounds_of(c, single(c));
    for (const Epoch& epoch : epochs) {
      ASSERT_EQ(epoch.size(), rounds.size());
    }
    for (size_t step = 0; step < rounds.size(); ++step) {
      ASSERT_EQ(check_step(epochs, step), joined(rounds[step])) << "step " << step;
      const auto rows = static_cast<int64_t>(joined(rounds[step]).size());
      for (int64_t rank = 0; rank < n; ++rank) {
        ASSERT_EQ(static_cast<int64_t>(epochs[static_cast<size_t>(rank)][step].rows.size()),
                  std::max<int64_t>(1, rows / n + (rank < rows % n ? 1 : 0)))
            << "step " << step << ", rank " << rank;
      }
    }
  }

  template <typename Make, typename Check>
  void check_all(Make make, Check check, int64_t longest = kLongest) {
    const std::vector<Case> all = cases(longest);
    ASSERT_EQ(all.size(), static_cast<size_t>(longest) * 7 * 2);
    const std::vector<Epochs> epochs = record(all, make);
    for (size_t i = 0; i < epochs.size(); ++i) {
      SCOPED_TRACE(testing::Message() << all[i].length << " rows, batches of " << all[i].batch << ", " << n << " ranks"
                                      << (all[i].drop_last ? ", drop_last" : ""));
      check(all[i], epochs[i]);
      if (this->HasFailure()) {
        return;  // the others fail for the same reason
      }
    }
  }

  void rounds() {
    check_all(
        [](const Case& c) {
          return accelerate::make_data_loader(Indices(c.length), c.options(), BatchPolicy::PerProcess);
        },
        [&](const Case& c, const Epochs& epochs) { check_rounds(c, epochs); });
  }

  /// A loader that torch has made, prepared. Of fewer lengths than others, since each batch is a message or several.
  template <typename Sampler, typename Check>
  void check_existing(size_t workers, Check check, int64_t longest = 20) {
    check_all(
        [&](const Case& c) {
          // Whether the program asks for the order or not, ranks' batches have to belong together. Of those that the
          // main process sends the order is the program's choice.
          auto options = c.options().workers(workers).enforce_ordering(n == 1 || std::is_same_v<Sampler, Own>);
          auto loader = torch::data::make_data_loader<Sampler>(Indices(c.length), options);
          accelerator->prepare(loader);
          return loader;
        },
        check, longest);
  }

  /// One rank's batches of a sequential loader, without ghosts.
  Batches batches_of(int64_t length, int64_t batch, bool drop_last) {
    auto loader = accelerate::make_data_loader(Indices(length),
                                               torch::data::samplers::SequentialSampler(static_cast<size_t>(length)),
                                               Case{length, batch, drop_last}.options(), BatchPolicy::PerProcess);
    Batches result;
    for (const Part& part : epoch(loader)) {
      if (!part.ghost) {
        result.push_back(part.rows);
      }
    }
    return result;
  }
};

using Sharing = SharingTest<true>;
using SharingUneven = SharingTest<false>;

TEST_F(Sharing, GlobalBatches) {
  check_all([](const Case& c) { return accelerate::make_data_loader(Indices(c.length), c.options()); },
            [&](const Case& c, const Epochs& epochs) { check_global(c, epochs); });
}

using torch::data::samplers::RandomSampler;

TEST_F(Sharing, GlobalBatchesOfLoadersThatExist) {
  const auto check = [&](const Case& c, const Epochs& epochs) { check_global(c, epochs); };
  check_existing<RandomSampler>(0, check);
  check_existing<Own>(0, check);
}

TEST_F(Sharing, GlobalBatchesOfLoadersWithWorkersThatExist) {
  const auto check = [&](const Case& c, const Epochs& epochs) { check_global(c, epochs); };
  for (const size_t workers : {1, 2}) {
    check_existing<RandomSampler>(workers, check);
    check_existing<Own>(workers, check, /*longest=*/12);
  }
}

using SharingInPlace = SharingTest<true, BatchPolicy::PerProcess>;
using SharingInPlaceUneven = SharingTest<false, BatchPolicy::PerProcess>;

TEST_F(SharingInPlace, RoundsOfEvenBatches) {
  const auto check = [&](const Case& c, const Epochs& epochs) { check_rounds(c, epochs); };
  for (const size_t workers : {0, 1, 2}) {
    check_existing<RandomSampler>(workers, check);
  }
  check_existing<Own>(0, check);
}

TEST_F(SharingInPlaceUneven, Rounds) {
  const auto check = [&](const Case& c, const Epochs& epochs) { check_rounds(c, epochs); };
  for (const size_t workers : {0, 2}) {
    check_existing<RandomSampler>(workers, check);
  }
  check_existing<Own>(0, check);
}

TEST_F(SharingInPlace, RoundsThatTheMainProcessReads) {
  for (const size_t workers : {1, 2}) {
    check_existing<Own>(
        workers, [&](const Case& c, const Epochs& epochs) { check_sent_rounds(c, epochs); }, /*longest=*/12);
  }
}

TEST_F(Sharing, RoundsOfEvenBatches) { rounds(); }

TEST_F(SharingUneven, Rounds) { rounds(); }

/// Whole batches in turn: each on one rank, as it was.
TEST_F(Sharing, EvaluationByWholeBatches) {
  check_all([](const Case& c) { return accelerate::make_evaluation_data_loader(Indices(c.length), c.options()); },
            [&](const Case& c, const Epochs& epochs) {
              const Batches original = single(c);
              size_t handed_out = 0;
              for (size_t k = 0; k < original.size(); ++k) {
                const Epoch& epoch = epochs[k % static_cast<size_t>(n)];
                ASSERT_LT(k / static_cast<size_t>(n), epoch.size());
                ASSERT_EQ(epoch[k / static_cast<size_t>(n)].rows, original[k]) << "batch " << k;
              }
              for (const Epoch& epoch : epochs) {
                handed_out += epoch.size();
              }
              ASSERT_EQ(handed_out, original.size());
            });
}

/// The tables of Accelerate's own tests of BatchSamplerShard, for two processes, written out.
const Batches kFirst{{0, 1, 2}, {6, 7, 8}, {12, 13, 14}}, kSecond{{3, 4, 5}, {9, 10, 11}, {15, 16, 17}};

Batches with(Batches batches, Rows last) {
  batches.push_back(std::move(last));
  return batches;
}

TEST_F(Sharing, AcceleratesTables) {
  if (n != 2) {
    return;
  }
  const auto mine = [&](const Batches& first, const Batches& second) { return r == 0 ? first : second; };
  EXPECT_EQ(batches_of(24, 3, false), mine(with(kFirst, {18, 19, 20}), with(kSecond, {21, 22, 23})));
  EXPECT_EQ(batches_of(21, 3, false), mine(with(kFirst, {18, 19, 20}), with(kSecond, {0, 1, 2})));
  EXPECT_EQ(batches_of(21, 3, true), mine(kFirst, kSecond));
  EXPECT_EQ(batches_of(22, 3, false), mine(with(kFirst, {18, 19, 20}), with(kSecond, {21, 0, 1})));
  EXPECT_EQ(batches_of(22, 3, true), mine(kFirst, kSecond));
  EXPECT_EQ(batches_of(20, 3, false), mine(with(kFirst, {18, 19, 0}), with(kSecond, {1, 2, 3})));
  EXPECT_EQ(batches_of(20, 3, true), mine(kFirst, kSecond));
  EXPECT_EQ(batches_of(2, 3, false), mine({{0, 1, 0}}, {{1, 0, 1}}));
  EXPECT_EQ(batches_of(2, 3, true), Batches());
}

TEST_F(SharingUneven, AcceleratesTables) {
  if (n != 2) {
    return;
  }
  const auto mine = [&](const Batches& first, const Batches& second) { return r == 0 ? first : second; };
  EXPECT_EQ(batches_of(21, 3, false), mine(with(kFirst, {18, 19, 20}), kSecond));
  EXPECT_EQ(batches_of(22, 3, false), mine(with(kFirst, {18, 19, 20}), with(kSecond, {21})));
  EXPECT_EQ(batches_of(20, 3, false), mine(with(kFirst, {18, 19}), kSecond));
  EXPECT_EQ(batches_of(2, 3, false), mine({{0, 1}}, {}));
}

TEST(SharingOptions, ContradictionsAreRefused) {
  accelerate::DataLoaderConfiguration configuration;
  configuration.split_batches = true;
  accelerate::detail::check(configuration);
  configuration.batch_policy = accelerate::BatchPolicy::PerProcess;
  EXPECT_THROW(accelerate::detail::check(configuration), c10::Error);
  configuration.split_batches = false;
  accelerate::detail::check(configuration);
}

}  // namespace
