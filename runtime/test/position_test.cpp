/// skip_first_batches(), and positions that are saved and loaded.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "sharded.h"
#include "toys.h"

namespace {

using accelerate::detail::LoaderControl;
using sharded::Batches;

class Position : public testing::Test {
 protected:
  static auto numbers(size_t rows) { return toys::Numbers(rows).map(torch::data::transforms::Stack<>()); }

  template <typename Loader>
  static LoaderControl& control(Loader& loader) {
    return dynamic_cast<LoaderControl&>(*loader);
  }

  static std::string saved(const LoaderControl& loader) {
    torch::serialize::OutputArchive archive;
    loader.save_position(archive);
    std::ostringstream out;
    archive.save_to(out);
    return out.str();
  }
  static void load(LoaderControl& loader, const std::string& text) {
    std::istringstream in(text);
    torch::serialize::InputArchive archive;
    archive.load_from(in);
    loader.load_position(archive);
  }
  static int64_t number(const std::string& text, const char* key) {
    std::istringstream in(text);
    torch::serialize::InputArchive archive;
    archive.load_from(in);
    torch::Tensor value;
    archive.read(key, value, true);
    return value.item<int64_t>();
  }

  template <typename Loader>
  Batches global_batches(Loader&& loader) {
    Batches result;
    for (auto& batch : loader) {
      result.push_back(sharded::rows_of(accelerator.gather_for_metrics(batch.data)));
    }
    return result;
  }

  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

TEST_F(Position, SkippedBatchesArentRead) {
  for (const size_t workers : {0, 2}) {
    const auto options = torch::data::DataLoaderOptions(4).workers(workers);
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(18), options);
    const Batches all = sharded::batches_of(18, 4, false);
    EXPECT_EQ(global_batches(accelerate::skip_first_batches(loader, 3)), Batches(all.begin() + 3, all.end()));
    EXPECT_EQ(global_batches(*loader), all);  // one pass only
    EXPECT_EQ(global_batches(accelerate::skip_first_batches(*loader, 9)), Batches());
    EXPECT_EQ(global_batches(accelerate::skip_first_batches(loader, 0)), all);
  }
  auto torchs = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(9), 4);
  accelerator.prepare(torchs);
  EXPECT_EQ(global_batches(accelerate::skip_first_batches(torchs, 1)), (Batches{{4, 5, 6, 7}, {8}}));
}

TEST_F(Position, RestartsInTheMiddleOfAnEpoch) {
  for (const size_t workers : {0, 2}) {
    for (const auto policy : {accelerate::BatchPolicy::Global, accelerate::BatchPolicy::PerProcess}) {
      const auto make = [&] {
        return accelerate::make_data_loader(numbers(50), torch::data::DataLoaderOptions(4).workers(workers), policy);
      };
      const int64_t per_step = policy == accelerate::BatchPolicy::Global ? 1 : n;
      torch::manual_seed(1);
      auto loader = make();
      std::string position;
      torch::Tensor random_state;
      Batches expected;
      for (int epoch = 0; epoch < 3; ++epoch) {
        int64_t step = 0;
        for (auto& batch : *loader) {
          const auto rows = sharded::rows_of(accelerator.gather_for_metrics(batch.data));
          if (!position.empty()) {
            expected.push_back(rows);
          }
          if (epoch == 1 && ++step == 2) {
            position = saved(control(loader));
            random_state = accelerate::detail::random_state();
          }
        }
      }
      EXPECT_EQ(number(position, "epoch"), 1);
      EXPECT_EQ(number(position, "batches"), 2 * per_step);  // of the original: the same on any number of ranks
      torch::manual_seed(99);
      auto other = make();
      for (auto& batch : *other) {
        (void)batch;  // it had begun something else
        break;
      }
      load(control(other), position);
      accelerate::detail::set_random_state(random_state);
      Batches actual = global_batches(*other);
      for (const auto& batch : global_batches(*other)) {
        actual.push_back(batch);
      }
      EXPECT_EQ(actual, expected);
      EXPECT_EQ(number(saved(control(other)), "epoch"), 3);
    }
  }
}

TEST_F(Position, AfterAnEpochTheNextOneBegins) {
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(7), 4);
  const std::string before = saved(control(loader));
  EXPECT_EQ(number(before, "in_pass"), 0);
  const Batches all = global_batches(*loader);
  const std::string after = saved(control(loader));
  EXPECT_EQ(number(after, "epoch"), 1);
  EXPECT_EQ(number(after, "in_pass"), 0);
  std::string last;
  for (auto& batch : *loader) {
    (void)batch;
    last = saved(control(loader));
  }
  load(control(loader), after);
  EXPECT_EQ(global_batches(*loader), all);
  // A pass whose last batch was in hand has none left, but is this pass, not the next.
  load(control(loader), last);
  EXPECT_EQ(global_batches(*loader), Batches());
  EXPECT_EQ(number(saved(control(loader)), "epoch"), 2);
  EXPECT_EQ(global_batches(*loader), all);

  auto other = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(numbers(7), 3);
  EXPECT_THROW(load(control(other), after), c10::Error);  // it counts other batches
}

/// Rows from a random first one on.
class Walk : public torch::data::datasets::StatefulDataset<Walk, torch::data::Example<>> {
 public:
  std::optional<torch::data::Example<>> get_batch(size_t size) override {
    if (at_ >= 11) {
      return std::nullopt;
    }
    const int64_t rows = std::min<int64_t>(static_cast<int64_t>(size), 11 - at_);
    at_ += rows;
    return torch::data::Example<>(torch::arange(first_ + at_ - rows, first_ + at_).reshape({-1, 1}),
                                  torch::zeros({rows}));
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  void reset() override {
    at_ = 0;
    first_ = torch::randint(1 << 20, {1}).item<int64_t>();
  }
  void save(torch::serialize::OutputArchive&) const override {}
  void load(torch::serialize::InputArchive&) override {}

 private:
  int64_t at_ = 0, first_ = 0;
};

TEST_F(Position, OfAStream) {
  torch::manual_seed(1);
  auto loader = accelerate::make_data_loader(Walk(), 4);
  std::string position;
  torch::Tensor random_state;
  Batches expected;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : *loader) {
      const auto rows = sharded::rows_of(accelerator.gather_for_metrics(batch.data));
      if (!position.empty()) {
        expected.push_back(rows);
      } else if (epoch == 1) {
        torch::rand({3});
        position = saved(control(loader));
        random_state = accelerate::detail::random_state();
      }
    }
  }
  torch::manual_seed(99);
  auto other = accelerate::make_data_loader(Walk(), 4);
  load(control(other), position);
  accelerate::detail::set_random_state(random_state);
  Batches actual = global_batches(*other);
  for (const auto& batch : global_batches(*other)) {
    actual.push_back(batch);
  }
  EXPECT_EQ(actual, expected);
  auto whole = global_batches(*other);
  EXPECT_EQ(whole.size(), 3U);
  EXPECT_EQ(global_batches(accelerate::skip_first_batches(other, 2)).size(), 1U);
}

TEST_F(Position, LoadersAreFoundInTheOrderOfPreparation) {
  const auto& known = accelerate::detail::prepared_loaders();
  const size_t before = known.size();
  auto a = accelerate::make_data_loader(numbers(4), 2);
  auto b = accelerate::make_data_loader(numbers(4), 2);
  accelerator.prepare(b);
  accelerator.prepare(a, b);
  ASSERT_EQ(known.size(), before + 2);
  EXPECT_EQ(known[before], &control(b));
  EXPECT_EQ(known[before + 1], &control(a));
  b.reset();
  ASSERT_EQ(known.size(), before + 1);
  EXPECT_EQ(known[before], &control(a));
}

TEST_F(Position, OfADataSetOfAnotherLength) {
  const auto sorted = [&](auto& loader) {
    std::vector<double> rows;
    for (const auto& batch : global_batches(*loader)) {
      for (const auto row : batch) {
        rows.push_back(static_cast<double>(row));
      }
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  };
  const auto all = [](int64_t count) {
    std::vector<double> rows(static_cast<size_t>(count));
    std::iota(rows.begin(), rows.end(), 0.0);
    return rows;
  };
  for (const size_t workers : {0, 2}) {
    const auto make = [&](size_t rows) {
      return accelerate::make_data_loader(numbers(rows), torch::data::DataLoaderOptions(4).workers(workers));
    };
    auto loader = make(12);
    std::string middle;
    for (auto& batch : *loader) {
      (void)batch;
      middle = middle.empty() ? saved(control(loader)) : middle;
    }
    const std::string end = saved(control(loader));
    for (const size_t rows : {8, 20}) {  // a new epoch has all of the new rows
      auto other = make(rows);
      const std::string error = toys::error_of([&] { load(control(other), middle); });
      EXPECT_NE(error.find("of size 12, and this loader's has " + std::to_string(rows)), std::string::npos) << error;
      EXPECT_EQ(sorted(other), all(static_cast<int64_t>(rows)));
      load(control(other), end);
      EXPECT_EQ(number(saved(control(other)), "epoch"), 1);
      EXPECT_EQ(sorted(other), all(static_cast<int64_t>(rows)));
      EXPECT_EQ(sorted(other), all(static_cast<int64_t>(rows)));
    }
  }
}

}  // namespace
