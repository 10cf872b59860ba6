#include <ATen/CPUGeneratorImpl.h>
#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <type_traits>
#include <vector>

#include "toys.h"

namespace {

using Batch = std::vector<int64_t>;

Batch indices(const torch::data::Example<>& batch) {
  Batch result;
  for (int64_t i = 0; i < batch.data.size(0); ++i) {
    result.push_back(batch.data[i][0].item<int64_t>());
  }
  return result;
}

struct Case {
  size_t rows, batch, workers;
  bool drop_last, random;
};

const std::vector<Case> kCases = [] {
  std::vector<Case> result;
  for (const size_t rows : {1, 2, 7, 12, 23}) {
    for (const size_t batch : {1, 3, 4, 5, 32}) {
      for (const size_t workers : {0, 2}) {
        for (const bool drop_last : {false, true}) {
          for (const bool random : {false, true}) {
            result.push_back({rows, batch, workers, drop_last, random});
          }
        }
      }
    }
  }
  return result;
}();

/// Two epochs of batches.
template <typename Loader>
std::vector<Batch> run(Loader& loader) {
  std::vector<Batch> result;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : loader) {
      result.push_back(indices(batch));
    }
  }
  return result;
}

template <typename Make>
std::vector<Batch> batches(const Case& c, Make make) {
  torch::manual_seed(5);
  auto dataset = toys::Numbers(c.rows).map(torch::data::transforms::Stack<>());
  const auto options = torch::data::DataLoaderOptions(c.batch).workers(c.workers).drop_last(c.drop_last);
  if (c.random) {
    auto loader = make(std::move(dataset), torch::data::samplers::RandomSampler(c.rows), options);
    return run(*loader);
  }
  auto loader = make(std::move(dataset), torch::data::samplers::SequentialSampler(c.rows), options);
  return run(*loader);
}

const auto kTorch = [](auto dataset, auto sampler, auto options) {
  return torch::data::make_data_loader(std::move(dataset), std::move(sampler), options);
};
const auto kTraining = [](auto dataset, auto sampler, auto options) {
  return accelerate::make_data_loader(std::move(dataset), std::move(sampler), options);
};
const auto kEvaluation = [](auto dataset, auto sampler, auto options) {
  return accelerate::make_evaluation_data_loader(std::move(dataset), std::move(sampler), options);
};

TEST(Loader, TrainingBatchesAreSlicesOfTheOriginals) {
  accelerate::Accelerator accelerator;
  const auto n = static_cast<size_t>(accelerator.num_processes()), r = static_cast<size_t>(accelerator.process_index());
  for (const Case& c : kCases) {
    const auto original = batches(c, kTorch), mine = batches(c, kTraining);
    ASSERT_EQ(mine.size(), original.size()) << c.rows << ' ' << c.batch << ' ' << c.workers;
    for (size_t k = 0; k < mine.size(); ++k) {
      const size_t rows = original[k].size(), each = rows / n, longer = rows % n;
      const size_t begin = r * each + std::min(r, longer), count = each + (r < longer ? 1 : 0);
      const Batch expected =
          count ? Batch(original[k].begin() + begin, original[k].begin() + begin + count) : Batch{original[k][0]};
      EXPECT_EQ(mine[k], expected) << "rows " << c.rows << " batch " << c.batch << " step " << k;
    }
  }
}

TEST(Loader, EvaluationBatchesAreTheOriginalsInTurn) {
  accelerate::Accelerator accelerator;
  const auto n = static_cast<size_t>(accelerator.num_processes()), r = static_cast<size_t>(accelerator.process_index());
  for (const Case& c : kCases) {
    const auto original = batches(c, kTorch), mine = batches(c, kEvaluation);
    std::vector<Batch> expected;
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      for (size_t k = 0; k < original.size() / 2; ++k) {
        if (k % n == r) {
          expected.push_back(original[epoch * original.size() / 2 + k]);
        }
      }
    }
    EXPECT_EQ(mine, expected) << "rows " << c.rows << " batch " << c.batch << " workers " << c.workers;
  }
}

TEST(Loader, SharesAddUpToOne) {
  accelerate::Accelerator accelerator;
  auto loader = accelerate::make_data_loader(toys::Numbers(11).map(torch::data::transforms::Stack<>()), 5);
  double rows = 0;
  int steps = 0;
  for (auto& batch : *loader) {
    EXPECT_DOUBLE_EQ(accelerator.reduce(accelerator.share(1.0)), 1.0);
    rows += accelerator.sum(static_cast<double>(batch.data.size(0)));
    ++steps;
  }
  EXPECT_EQ(rows, 11);
  EXPECT_EQ(steps, 3);
}

TEST(Loader, RanksDrawTheSameOrderWhateverTheyDrewBefore) {
  accelerate::Accelerator accelerator;
  torch::manual_seed(3);
  torch::rand({1 + accelerator.process_index()});
  auto loader = accelerate::make_data_loader(toys::Numbers(12).map(torch::data::transforms::Stack<>()), 6);
  for (int epoch = 0; epoch < 2; ++epoch) {
    torch::Tensor seen = torch::zeros({12}, torch::kInt64);
    for (auto& batch : *loader) {
      for (const int64_t i : indices(batch)) {
        seen[i] += 1;
      }
      torch::rand({1 + accelerator.process_index()});
    }
    EXPECT_TRUE(torch::equal(accelerator.reduce(seen), torch::ones({12}, torch::kInt64)));
  }
}

TEST(Loader, TypesAreTorchs) {
  using Mapped = decltype(toys::Numbers(1).map(torch::data::transforms::Stack<>()));
  auto dataset = toys::Numbers(4).map(torch::data::transforms::Stack<>());
  auto a = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(dataset, 2);
  auto b = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(dataset, 2);
  auto c = accelerate::make_evaluation_data_loader<torch::data::samplers::SequentialSampler>(dataset, 2);
  static_assert(std::is_same_v<decltype(a), decltype(b)> && std::is_same_v<decltype(a), decltype(c)>);
  static_assert(
      std::is_same_v<decltype(accelerate::make_data_loader(dataset, 2)),
                     std::unique_ptr<torch::data::StatelessDataLoader<Mapped, torch::data::samplers::RandomSampler>>>);
}

TEST(Loader, UnstackedExamplesAndEarlyBreaks) {
  for (const size_t workers : {0, 2}) {
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
        toys::Numbers(9), torch::data::DataLoaderOptions(4));
    for (int epoch = 0; epoch < 3; ++epoch) {
      for (std::vector<torch::data::Example<>>& batch : *loader) {
        EXPECT_FALSE(batch.empty());
        if (workers == 0) {
          break;
        }
      }
    }
  }
}

class Broken : public torch::data::Dataset<Broken> {
 public:
  torch::data::Example<> get(size_t) override { throw std::runtime_error("unreadable"); }
  torch::optional<size_t> size() const override { return 8; }
};

TEST(Loader, ErrorsOfWorkersArrive) {
  if (accelerate::Accelerator().num_processes() > 1) {
    return;  // there they end the job (reading_test.sh)
  }
  for (const size_t workers : {0, 2}) {
    auto loader = accelerate::make_data_loader(Broken(), torch::data::DataLoaderOptions(4).workers(workers));
    EXPECT_THROW(loader->begin().operator*(), std::exception);
  }
}

TEST(Loader, DrawsForRowsAreTheSingleProcesses) {
  accelerate::Accelerator accelerator;
  auto loader = accelerate::make_data_loader(toys::Numbers(11).map(torch::data::transforms::Stack<>()), 4);
  accelerator.prepare(loader);
  torch::manual_seed(3);
  for (auto& batch : *loader) {
    const int64_t rows = batch.data.size(0);
    // Drawn whole from equal generators: together the ranks hold what one process would have drawn.
    const auto before = at::detail::getDefaultCPUGenerator().clone();
    const auto own = accelerator.own_rows(torch::randn({accelerator.global_rows(rows), 2}));
    EXPECT_EQ(own.size(0), rows);
    const auto whole = accelerator.gather_for_metrics(own);
    EXPECT_EQ(whole.size(0), accelerator.global_rows(rows));
    EXPECT_TRUE(torch::equal(whole, at::randn({whole.size(0), 2}, before, at::TensorOptions())));

    // Several rows for each of the batch's.
    const auto pairs = torch::arange(whole.size(0) * 2).view({-1, 1});
    const auto two = accelerator.own_rows(pairs, 2);
    EXPECT_EQ(two.size(0), 2 * rows);
    EXPECT_TRUE(torch::equal(two.view({rows, 2}), accelerator.own_rows(pairs.view({-1, 2}))));
    if (accelerator.num_processes() > 1) {
      EXPECT_THROW(accelerator.own_rows(pairs, 3), c10::Error);
      EXPECT_THROW(accelerator.own_rows(pairs, 0), c10::Error);
    }

    const auto buffer = torch::zeros({whole.size(0), 2});
    accelerator.own_rows(buffer).copy_(own);
    EXPECT_TRUE(torch::equal(accelerator.own_rows(buffer), own));
    EXPECT_EQ(buffer.count_nonzero().item<int64_t>(), 2 * rows);

    // A rank's only row is no batch of one row.
    const auto squeezed = accelerator.squeeze(torch::ones({rows, 1, 3, 1}));
    EXPECT_EQ(squeezed.sizes(), whole.size(0) == 1 ? std::vector<int64_t>{3} : (std::vector<int64_t>{rows, 3}));
    EXPECT_EQ(accelerator.squeeze(torch::ones({rows})).dim(), whole.size(0) == 1 ? 0 : 1);
    EXPECT_EQ(accelerator.squeeze(torch::tensor(1.0)).dim(), 0);
    EXPECT_EQ(accelerator.whole([&] { return accelerator.squeeze(torch::ones({1, 3})); }).dim(), 1);

    // Also with a tensor's type and order in memory.
    const auto before_like = at::detail::getDefaultCPUGenerator().clone();
    const auto pictures = torch::zeros({rows, 2, 3, 5}, torch::kFloat64).to(torch::MemoryFormat::ChannelsLast);
    const auto like = accelerator.global_like(pictures);
    EXPECT_EQ(like.sizes(), (std::vector<int64_t>{whole.size(0), 2, 3, 5}));
    EXPECT_EQ(like.scalar_type(), torch::kFloat64);
    EXPECT_TRUE(like.is_contiguous(torch::MemoryFormat::ChannelsLast));
    EXPECT_EQ(like.is_same(pictures), accelerator.num_processes() == 1);
    const auto noise = accelerator.gather_for_metrics(accelerator.own_rows(torch::randn_like(like)));
    auto expected = torch::empty({whole.size(0), 2, 3, 5}, torch::kFloat64).to(torch::MemoryFormat::ChannelsLast);
    EXPECT_TRUE(torch::equal(noise, expected.normal_(0, 1, before_like)));
    // What every rank has is drawn for as it is, alike.
    const auto before_whole = at::detail::getDefaultCPUGenerator().clone();
    const auto fixed = torch::zeros({5, 2});  // the same on all ranks, unlike what they have of the batch
    const auto drawn = accelerator.whole([&] {
      EXPECT_EQ(accelerator.whole([&] { return accelerator.global_rows(3); }), 3);
      return accelerator.own_rows(torch::randn_like(accelerator.global_like(fixed)));
    });
    EXPECT_TRUE(torch::equal(drawn, torch::empty({5, 2}).normal_(0, 1, before_whole)));
    const auto three = torch::full({}, 3.0);
    EXPECT_EQ(accelerator.whole([&] { return accelerator.share(three).item<double>() + accelerator.mine(1.0); }), 4);
    EXPECT_EQ(accelerator.whole([&] { return accelerator.mean(three) + accelerator.sum(three); }).item<double>(), 6);
    EXPECT_EQ(accelerator.whole([&] { return accelerator.all_gather(fixed); }).size(0), 5);
    EXPECT_THROW(accelerator.whole([] { TORCH_CHECK(false, "thrown through it"); }), c10::Error);
    EXPECT_EQ(accelerator.global_rows(rows), whole.size(0));
    if (accelerator.num_processes() > 1) {
      EXPECT_EQ(accelerator.own_rows(torch::ones({1, 5})).size(0), 1);
      EXPECT_THROW(accelerator.own_rows(torch::ones({whole.size(0) + 1, 5})), c10::Error);
      EXPECT_THROW(accelerator.global_like(torch::ones({rows + 1, 2})), c10::Error);
      EXPECT_THROW(accelerator.global_like(torch::tensor(1.0)), c10::Error);
    }
  }
}

}  // namespace
