/// The arithmetic of sharing, for all ranks at once, against computations of its own.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sharded.h"

namespace {

using accelerate::detail::part_of_round;
using accelerate::detail::RoundPart;
using accelerate::detail::RowSlice;
using accelerate::detail::slice_of;
using sharded::Batches;
using sharded::Rows;

/// What the library's arithmetic makes of an epoch: the rows of every rank at every step.
struct Step {
  std::vector<RowSlice> slices;
  std::vector<Rows> rows;
};

std::vector<Step> shared_by_rows(const Batches& original, int64_t ranks) {
  std::vector<Step> steps;
  for (const Rows& batch : original) {
    Step step;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      step.slices.push_back(slice_of(static_cast<int64_t>(batch.size()), rank, ranks));
      const auto begin = batch.begin() + step.slices.back().begin;
      step.rows.emplace_back(begin, begin + step.slices.back().rows);
    }
    steps.push_back(step);
  }
  return steps;
}

std::vector<Step> shared_by_rounds(const Batches& original, int64_t batch_size, bool even, bool drop_last,
                                   int64_t ranks) {
  Rows first;
  for (size_t i = 0; i < original.size() && i < static_cast<size_t>(ranks); ++i) {
    first.insert(first.end(), original[i].begin(), original[i].end());
  }
  std::vector<Step> steps;
  for (size_t begin = 0; begin < original.size(); begin += static_cast<size_t>(ranks)) {
    const size_t count = std::min(static_cast<size_t>(ranks), original.size() - begin);
    if (drop_last && count < static_cast<size_t>(ranks)) {
      break;
    }
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < count; ++i) {
      sizes.push_back(static_cast<int64_t>(original[begin + i].size()));
    }
    Step step;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const RoundPart part = part_of_round(sizes, batch_size, even, rank, ranks);
      step.slices.push_back(part.slice);
      Rows rows;
      if (part.slice.ghost) {
        rows.push_back(original[begin][0]);
      } else {
        if (static_cast<size_t>(rank) < count) {
          rows = original[begin + static_cast<size_t>(rank)];
        }
        for (int64_t i = 0; i < part.slice.padding; ++i) {
          rows.push_back(first[static_cast<size_t>(part.padding_begin + i) % first.size()]);
        }
      }
      step.rows.push_back(rows);
    }
    steps.push_back(step);
  }
  return steps;
}

/// What has to hold of every step: parts that lie one after the other, and weights that sum to one.
void check_step(const Step& step) {
  int64_t rows = 0;
  double weights = 0;
  for (size_t rank = 0; rank < step.slices.size(); ++rank) {
    const RowSlice& slice = step.slices[rank];
    ASSERT_EQ(static_cast<int64_t>(step.rows[rank].size()), slice.rows);
    ASSERT_GT(slice.rows, 0);
    if (!slice.ghost) {
      ASSERT_EQ(slice.begin, rows);
      rows += slice.rows;
      weights += static_cast<double>(slice.rows) / static_cast<double>(slice.global_rows);
    }
  }
  for (const RowSlice& slice : step.slices) {
    ASSERT_EQ(slice.global_rows, rows);
  }
  ASSERT_NEAR(weights, 1, 1e-12);
}

/// The epoch's real rows, in rank order within a step.
Rows real_rows(const std::vector<Step>& steps) {
  Rows result;
  for (const Step& step : steps) {
    for (size_t rank = 0; rank < step.rows.size(); ++rank) {
      if (!step.slices[rank].ghost) {
        result.insert(result.end(), step.rows[rank].begin(), step.rows[rank].end() - step.slices[rank].padding);
      }
    }
  }
  return result;
}

TEST(Sharing, EveryRowOnceInOrder) {
  int64_t cases = 0;
  for (int64_t length = 1; length <= 60; ++length) {
    for (int64_t batch = 1; batch <= 7; ++batch) {
      for (int64_t ranks = 1; ranks <= 5; ++ranks) {
        for (const bool drop_last : {false, true}) {
          const Batches original = sharded::batches_of(length, batch, drop_last);
          SCOPED_TRACE(testing::Message() << length << " rows, batches of " << batch << ", " << ranks << " ranks"
                                          << (drop_last ? ", drop_last" : ""));
          Rows all(static_cast<size_t>(drop_last ? length / batch * batch : length));
          std::iota(all.begin(), all.end(), 0);

          const auto by_rows = shared_by_rows(original, ranks);
          ASSERT_EQ(by_rows.size(), original.size());
          for (const Step& step : by_rows) {
            check_step(step);
          }
          ASSERT_EQ(real_rows(by_rows), all);

          for (const bool even : {false, true}) {
            const auto by_rounds = shared_by_rounds(original, batch, even, drop_last, ranks);
            Batches of_rank[5];
            for (const Step& step : by_rounds) {
              check_step(step);
              for (size_t rank = 0; rank < step.rows.size(); ++rank) {
                of_rank[rank].push_back(step.rows[rank]);
              }
            }
            Rows whole = all;
            if (drop_last) {
              whole.resize(static_cast<size_t>(length / (batch * ranks) * (batch * ranks)));
            }
            ASSERT_EQ(real_rows(by_rounds), whole);
            for (int64_t rank = 0; rank < ranks; ++rank) {
              Batches reference = sharded::accelerates(original, batch, even, drop_last, rank, ranks);
              if (reference.size() < by_rounds.size()) {  // where Accelerate has no batch, we have a ghost
                ASSERT_FALSE(even);
                ASSERT_EQ(reference.size() + 1, by_rounds.size());
                ASSERT_TRUE(by_rounds.back().slices[static_cast<size_t>(rank)].ghost);
                of_rank[rank].pop_back();
              }
              ASSERT_EQ(of_rank[rank], reference) << "rank " << rank << (even ? ", even" : "");
            }
            ++cases;
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 60 * 7 * 5 * 2 * 2);
}

/// The tables of Accelerate's own tests of BatchSamplerShard (even_batches, no split), written out.
TEST(Sharing, AcceleratesTables) {
  const auto both = [](int64_t length, bool drop_last, bool even) {
    const Batches original = sharded::batches_of(length, 3, drop_last);
    std::vector<Batches> result(2);
    for (const Step& step : shared_by_rounds(original, 3, even, drop_last, 2)) {
      for (size_t rank = 0; rank < 2; ++rank) {
        if (!step.slices[rank].ghost) {
          result[rank].push_back(step.rows[rank]);
        }
      }
    }
    return result;
  };
  const Batches first{{0, 1, 2}, {6, 7, 8}, {12, 13, 14}}, second{{3, 4, 5}, {9, 10, 11}, {15, 16, 17}};
  const auto with = [](Batches batches, Rows last) {
    batches.push_back(std::move(last));
    return batches;
  };
  using Both = std::vector<Batches>;
  EXPECT_EQ(both(24, false, true), (Both{with(first, {18, 19, 20}), with(second, {21, 22, 23})}));
  EXPECT_EQ(both(21, false, true), (Both{with(first, {18, 19, 20}), with(second, {0, 1, 2})}));
  EXPECT_EQ(both(21, true, true), (Both{first, second}));
  EXPECT_EQ(both(22, false, true), (Both{with(first, {18, 19, 20}), with(second, {21, 0, 1})}));
  EXPECT_EQ(both(22, true, true), (Both{first, second}));
  EXPECT_EQ(both(20, false, true), (Both{with(first, {18, 19, 0}), with(second, {1, 2, 3})}));
  EXPECT_EQ(both(20, true, true), (Both{first, second}));
  EXPECT_EQ(both(2, false, true), (Both{{{0, 1, 0}}, {{1, 0, 1}}}));
  EXPECT_EQ(both(2, true, true), (Both{{}, {}}));
  EXPECT_EQ(both(21, false, false), (Both{with(first, {18, 19, 20}), second}));
  EXPECT_EQ(both(22, false, false), (Both{with(first, {18, 19, 20}), with(second, {21})}));
  EXPECT_EQ(both(20, false, false), (Both{with(first, {18, 19}), second}));
  EXPECT_EQ(both(2, false, false), (Both{{{0, 1}}, {}}));
}

TEST(Sharing, ContradictionsAreRefused) {
  accelerate::DataLoaderConfiguration configuration;
  configuration.split_batches = true;
  accelerate::detail::check(configuration);
  configuration.batch_policy = accelerate::BatchPolicy::PerProcess;
  EXPECT_THROW(accelerate::detail::check(configuration), c10::Error);
  configuration.split_batches = false;
  accelerate::detail::check(configuration);
}

}  // namespace
