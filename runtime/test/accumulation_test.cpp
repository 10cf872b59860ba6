#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "messages.h"
#include "toys.h"

namespace {

using torch::nn::Sequential;

constexpr int64_t kSteps = 4;

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

/// All in double precision, against the same training with each window as one batch.
class Accumulation : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    accelerate::Options options;
    options.gradient_accumulation_steps = kSteps;
    accelerate::Accelerator first(options);
  }
  template <typename Make>
  void expect_windows_of(Make make, bool leave);

  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
};

/// A window's batches, as one.
torch::data::Example<> together(const std::vector<torch::data::Example<>>& window) {
  std::vector<torch::Tensor> data, target;
  for (const auto& b : window) {
    data.push_back(b.data);
    target.push_back(b.target);
  }
  return {torch::cat(data), torch::cat(target)};
}

/// Calls `train` with what each window of the original's loader holds.
template <typename Loader, typename Train>
void each_window(Loader& loader, Train train) {
  std::vector<torch::data::Example<>> window;
  for (auto& b : loader) {
    window.push_back(b);
    if (window.size() == kSteps) {
      train(window);
      window.clear();
    }
  }
  if (!window.empty()) {
    train(window);
  }
}

/// Three epochs of a prepared loader of torch's, against windows joined by hand. `leave`: and a pass behind each that
/// is left in its middle, which doesn't count.
template <typename Make>
void Accumulation::expect_windows_of(Make make, bool leave) {
  torch::manual_seed(1);
  auto reference = toys::perceptron();
  torch::optim::SGD reference_optimizer(reference->parameters(), 0.3);
  auto reference_loader = make();
  torch::manual_seed(1);
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.3);
  auto loader = make();
  accelerator.prepare(model, optimizer, loader);
  for (int epoch = 0; epoch < 3; ++epoch) {
    each_window(*reference_loader, [&](const auto& window) {
      const auto b = together(window);
      reference_optimizer.zero_grad();
      torch::mse_loss(reference->forward(b.data), b.target).backward();
      reference_optimizer.step();
    });
    for (auto& b : *loader) {
      auto window = accelerator.accumulate(model);
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      optimizer.step();
    }
    EXPECT_TRUE(accelerator.sync_gradients());  // a window ends with the epoch
    if (leave) {
      for (auto& b : *loader) {
        EXPECT_GT(b.data.size(0), 0);
        break;
      }
    }
  }
  EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
}

/// Where a program calls zero_grad().
enum class Zero { First, Last, Gated, InPlace };

TEST_F(Accumulation, EqualsOneLargeBatch) {
  // 23 rows: last windows of 3, 11, 3, 3 and 23 rows, and last batches of 1 to 3 rows (ghosts on 2 and more ranks).
  for (const size_t batch : {1, 3, 5, 10}) {
    for (const size_t workers : {0, 2}) {
      for (const Zero zero : {Zero::First, Zero::Last, Zero::Gated, Zero::InPlace}) {
        const auto options = torch::data::DataLoaderOptions(batch).workers(workers);
        torch::manual_seed(1);
        Sequential reference = toys::perceptron();
        torch::optim::Adam reference_optimizer(reference->parameters(),
                                               torch::optim::AdamOptions(0.01).weight_decay(0.1));
        auto reference_loader = torch::data::make_data_loader(waves(23), options);
        for (int epoch = 0; epoch < 3; ++epoch) {
          each_window(*reference_loader, [&](const auto& window) {
            const auto b = together(window);
            reference_optimizer.zero_grad();
            torch::mse_loss(reference->forward(b.data), b.target).backward();
            reference_optimizer.step();
          });
        }

        torch::manual_seed(1);
        Sequential model = toys::perceptron();
        torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01).weight_decay(0.1));
        auto loader = accelerate::make_data_loader(waves(23), options);
        accelerator.prepare(model, optimizer, loader);
        int64_t steps = 0;
        for (int epoch = 0; epoch < 3; ++epoch) {
          for (auto& b : *loader) {
            auto window = accelerator.accumulate(model);
            if (zero == Zero::First || zero == Zero::InPlace) {
              optimizer.zero_grad(zero == Zero::First);
            }
            accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
            if (zero == Zero::Gated) {
              if (accelerator.sync_gradients()) {
                optimizer.step();
                optimizer.zero_grad();
              }
            } else {
              optimizer.step();
              if (zero == Zero::Last) {
                optimizer.zero_grad();
              }
            }
            steps += accelerator.sync_gradients() ? 1 : 0;
          }
        }
        EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12)
            << "batch " << batch << ", workers " << workers << ", zero_grad " << static_cast<int>(zero);
        EXPECT_EQ(steps, 3 * (((23 + static_cast<int64_t>(batch) - 1) / static_cast<int64_t>(batch) + 3) / 4));
      }
    }
  }
}

/// A loader of torch::data's own doesn't know its last batch; the library counts the rows of its data set.
TEST_F(Accumulation, LoadersThatAreSharedOutInPlace) {
  using Sequential = torch::data::samplers::SequentialSampler;
  for (const size_t rows : {23, 26}) {  // 8 batches, which are two windows; and 9
    for (const bool drop_last : {false, true}) {
      for (const size_t workers : {0, 2}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << workers << " workers"
                                        << (drop_last ? ", drop_last" : ""));
        const auto options = torch::data::DataLoaderOptions(3).drop_last(drop_last).workers(workers);
        // With workers torch wants a pass read to its end.
        expect_windows_of([&] { return torch::data::make_data_loader<Sequential>(waves(rows), options); },
                          workers == 0);
      }
    }
  }
}

/// Of a sampler that isn't LibTorch's, with workers, the library reads a step ahead: its pass may be shorter than the
/// data set.
TEST_F(Accumulation, LoadersThatTheMainProcessReads) {
  struct Shorter : torch::data::samplers::SequentialSampler {
    using SequentialSampler::SequentialSampler;
  };
  for (const size_t rows : {23, 26}) {
    for (const size_t workers : {1, 2}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << workers << " workers");
      const auto options = torch::data::DataLoaderOptions(3).max_jobs(workers).workers(workers);
      expect_windows_of([&] { return torch::data::make_data_loader(waves(40), Shorter(rows), options); }, false);
    }
  }
}

TEST_F(Accumulation, AWindowIsOneMessage) {
  Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = accelerate::make_data_loader(waves(27), 3);  // 9 batches: two windows and one of a single batch
  accelerator.prepare(model, optimizer, loader);
  const auto epoch = [&] {
    for (auto& b : *loader) {
      auto window = accelerator.accumulate(model);
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      optimizer.step();
    }
  };
  epoch();
  const MessageCounts expected = {{"allreduce_", 3}, {"broadcast_", 1}};  // the broadcast begins the epoch
  EXPECT_EQ(messages_of(epoch), n == 1 ? MessageCounts{} : expected);
}

TEST_F(Accumulation, WithinAWindowNothingMoves) {
  Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      waves(28), torch::data::DataLoaderOptions(4));
  accelerator.prepare(model, optimizer, loader);
  std::vector<bool> synced;
  for (auto& b : *loader) {
    auto window = accelerator.accumulate(model, optimizer);
    std::vector<torch::Tensor> before;
    for (const auto& p : model->parameters()) {
      before.push_back(p.detach().clone());
    }
    const size_t states = optimizer.state().size();
    accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
    const double norm = accelerator.clip_grad_norm_(model->parameters(), 1e-3);
    optimizer.step();
    synced.push_back(accelerator.sync_gradients());
    if (synced.back()) {
      EXPECT_GT(norm, 1e-3);
      EXPECT_GT(toys::distance(before, model->parameters()), 0);
      EXPECT_EQ(optimizer.state().size(), 4U);
    } else {
      EXPECT_EQ(norm, 0);
      EXPECT_EQ(toys::distance(before, model->parameters()), 0);
      EXPECT_EQ(optimizer.state().size(), states);
      for (const auto& p : model->parameters()) {
        EXPECT_FALSE(p.grad().defined());
      }
    }
    optimizer.zero_grad();
  }
  EXPECT_EQ(synced, (std::vector<bool>{false, false, false, true, false, false, true}));
}

TEST_F(Accumulation, ClipsTheWholeWindowsGradients) {
  for (const double norm_type : {2.0, 1.0}) {
    torch::manual_seed(2);
    Sequential reference = toys::perceptron();
    auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        waves(18), torch::data::DataLoaderOptions(4));
    std::vector<double> norms;
    torch::optim::SGD reference_optimizer(reference->parameters(), 0.3);
    each_window(*reference_loader, [&](const auto& window) {
      const auto b = together(window);
      reference_optimizer.zero_grad();
      torch::mse_loss(reference->forward(b.data), b.target).backward();
      norms.push_back(torch::nn::utils::clip_grad_norm_(reference->parameters(), 0.05, norm_type));
      torch::nn::utils::clip_grad_value_(reference->parameters(), 0.01);
      reference_optimizer.step();
    });

    torch::manual_seed(2);
    Sequential model = toys::perceptron();
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
        waves(18), torch::data::DataLoaderOptions(4));
    torch::optim::SGD optimizer(model->parameters(), 0.3);
    accelerator.prepare(model, optimizer, loader);
    std::vector<double> seen;
    for (auto& b : *loader) {
      auto window = accelerator.accumulate(model);
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      const double norm = accelerator.clip_grad_norm_(model->parameters(), 0.05, norm_type);
      accelerator.clip_grad_value_(model->parameters(), 0.01);
      if (accelerator.sync_gradients()) {
        seen.push_back(norm);
      }
      optimizer.step();
    }
    ASSERT_EQ(seen.size(), norms.size());
    for (size_t i = 0; i < norms.size(); ++i) {
      EXPECT_NEAR(seen[i], norms[i], 1e-12);
    }
    EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
  }
}

TEST_F(Accumulation, SumsMeansAndWeightsInOneWindow) {
  const auto weight_of = [](const torch::Tensor& x) { return (x.select(1, 0) > 0).to(torch::kDouble) * 2 + 0.5; };
  const auto positive = [](const torch::Tensor& x) { return (x.select(1, 1) > 0).to(torch::kDouble); };
  const auto masked = [](const torch::Tensor& x, const torch::Tensor& mask) { return (x * mask).sum() / mask.sum(); };
  torch::manual_seed(3);
  Sequential reference = toys::perceptron();
  auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      waves(21), torch::data::DataLoaderOptions(4));
  torch::optim::SGD reference_optimizer(reference->parameters(), 0.1);
  each_window(*reference_loader, [&](const auto& window) {
    const auto b = together(window);
    reference_optimizer.zero_grad();
    const auto errors = (reference->forward(b.data) - b.target).pow(2).squeeze(1);
    auto loss = errors.mean() + errors.sqrt().sum() / 50 + masked(errors, weight_of(b.data));
    if (positive(b.data).sum().template item<double>() > 0) {
      loss = loss + masked(errors.pow(2), positive(b.data));
    }
    loss.backward();
    reference_optimizer.step();
  });

  torch::manual_seed(3);
  Sequential model = toys::perceptron();
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      waves(21), torch::data::DataLoaderOptions(4));
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer, loader);
  for (auto& b : *loader) {
    auto window = accelerator.accumulate(model);
    optimizer.zero_grad();
    const auto errors = (model->forward(b.data) - b.target).pow(2).squeeze(1);
    accelerator.backward(errors.mean(), {}, true);
    accelerator.backward(errors.sqrt().sum() / 50, accelerate::Reduction::Sum, {}, true);
    const auto w = weight_of(b.data), p = positive(b.data);
    accelerator.backward(masked(errors, w), accelerate::Weight(w.sum()), {}, true);
    accelerator.backward(masked(errors.pow(2), p), accelerate::Weight(p.sum()));  // 0/0 on some ranks and batches
    optimizer.step();
  }
  EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
}

struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() {
    trunk = register_module("trunk", torch::nn::Linear(6, 8));
    a = register_module("a", torch::nn::Linear(8, 1));
    b = register_module("b", torch::nn::Linear(8, 1));
  }
  torch::Tensor score(const torch::Tensor& x, bool first) {
    auto h = torch::tanh(trunk(x));
    return first ? a(h) : b(h);
  }
  torch::nn::Linear trunk{nullptr}, a{nullptr}, b{nullptr};
};
TORCH_MODULE(TwoHeads);

TEST_F(Accumulation, BatchesThatReachDifferentParameters) {
  torch::manual_seed(4);
  TwoHeads reference;
  auto reference_loader = torch::data::make_data_loader(waves(29), 3);
  torch::optim::SGD reference_optimizer(reference->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  int count = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    each_window(*reference_loader, [&](const std::vector<torch::data::Example<>>& window) {
      reference_optimizer.zero_grad();
      double rows = 0;
      for (const auto& b : window) {
        rows += static_cast<double>(b.data.size(0));
      }
      for (const auto& b : window) {
        const double part = static_cast<double>(b.data.size(0)) / rows;
        (torch::mse_loss(reference->score(b.data, count++ % 3 != 0), b.target) * part).backward();
      }
      reference_optimizer.step();
    });
  }

  torch::manual_seed(4);
  TwoHeads model;
  auto loader = accelerate::make_data_loader(waves(29), 3);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  accelerator.prepare(model, optimizer, loader);
  count = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& b : *loader) {
      auto window = accelerator.accumulate(model);
      accelerator.backward(torch::mse_loss(model->score(b.data, count++ % 3 != 0), b.target));
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
}

TEST_F(Accumulation, TwoModelsAndTwoOptimizers) {
  const auto d_loss = [](Sequential& d, const torch::Tensor& real, const torch::Tensor& fake) {
    return (torch::softplus(-d->forward(real)) + torch::softplus(d->forward(fake.detach()))).mean();
  };
  const auto freeze = [](Sequential& d, bool frozen) {
    for (auto& p : d->parameters()) {
      p.requires_grad_(!frozen);
    }
  };
  torch::manual_seed(5);
  Sequential g0 = toys::perceptron(6, 6), d0 = toys::perceptron(6, 1);
  torch::optim::SGD g0_optimizer(g0->parameters(), 0.1), d0_optimizer(d0->parameters(), 0.1);
  auto loader0 = torch::data::make_data_loader(waves(27), 4);
  each_window(*loader0, [&](const auto& window) {
    const auto b = together(window);
    d0->zero_grad();
    const auto fake = g0->forward(b.data);
    d_loss(d0, b.data, fake).backward();
    // Both losses of all batches before either step: within a window the generator's loss sees the old discriminator.
    g0->zero_grad();
    freeze(d0, true);
    torch::softplus(-d0->forward(fake)).mean().backward();
    freeze(d0, false);
    d0_optimizer.step();
    g0_optimizer.step();
  });

  torch::manual_seed(5);
  Sequential g = toys::perceptron(6, 6), d = toys::perceptron(6, 1);
  torch::optim::SGD g_optimizer(g->parameters(), 0.1), d_optimizer(d->parameters(), 0.1);
  auto loader = accelerate::make_data_loader(waves(27), 4);
  accelerator.prepare(g, d, g_optimizer, d_optimizer, loader);
  for (auto& b : *loader) {
    auto window = accelerator.accumulate(g, d);
    d->zero_grad();
    const auto fake = g->forward(b.data);
    accelerator.backward(d_loss(d, b.data, fake));
    g->zero_grad();
    freeze(d, true);
    accelerator.backward(torch::softplus(-d->forward(fake)).mean());
    freeze(d, false);
    d_optimizer.step();
    g_optimizer.step();
  }
  EXPECT_LT(toys::distance(g->parameters(), g0->parameters()), 1e-12);
  EXPECT_LT(toys::distance(d->parameters(), d0->parameters()), 1e-12);
}

TEST_F(Accumulation, GradientsThatNobodyZeroedStay) {
  auto w = torch::ones({3}, torch::requires_grad()), other = torch::ones({2}, torch::requires_grad());
  accelerator.prepare(w, other);
  other.mutable_grad() = torch::full({2}, 7.0);
  w.mutable_grad() = torch::full({3}, 5.0);
  for (int i = 0; i < kSteps; ++i) {
    auto window = accelerator.accumulate();
    accelerator.backward((w * static_cast<double>(i + r)).sum());  // no loader: batches count equally
    EXPECT_EQ(w.grad().defined(), accelerator.sync_gradients());
    EXPECT_EQ(other.grad().defined(), accelerator.sync_gradients());
  }
  const double mean = 1.5 + static_cast<double>(n - 1) / 2;
  EXPECT_TRUE(torch::allclose(w.grad(), torch::full({3}, 5 + mean)));
  EXPECT_TRUE(torch::equal(other.grad(), torch::full({2}, 7.0)));
}

TEST_F(Accumulation, SparseGradients) {
  const auto train = [](torch::nn::Embedding& table, auto each) {
    torch::optim::SGD optimizer(table->parameters(), 0.5);
    each(optimizer);
    return table->weight.detach().clone();
  };
  const auto indices = [&](int64_t step, int64_t rank) { return torch::tensor({step % 3, (step + rank) % 7}); };
  torch::manual_seed(6);
  torch::nn::Embedding reference(torch::nn::EmbeddingOptions(7, 2).sparse(true));
  const auto expected = train(reference, [&](auto& optimizer) {
    for (int64_t step = 0; step < 2 * kSteps; step += kSteps) {
      optimizer.zero_grad();
      for (int64_t i = step; i < step + kSteps; ++i) {
        for (int64_t rank = 0; rank < n; ++rank) {
          (reference(indices(i, rank)).pow(2).sum() / static_cast<double>(n * kSteps)).backward();
        }
      }
      optimizer.step();
    }
  });
  torch::manual_seed(6);
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(7, 2).sparse(true));
  accelerator.prepare(table);
  const auto actual = train(table, [&](auto& optimizer) {
    for (int64_t i = 0; i < 2 * kSteps; ++i) {
      auto window = accelerator.accumulate(table);
      optimizer.zero_grad();
      accelerator.backward(table(indices(i, r)).pow(2).sum());
      optimizer.step();
    }
  });
  EXPECT_TRUE(torch::allclose(actual, expected, 0, 1e-12));
}

TEST_F(Accumulation, NoSyncKeepsGradientsHere) {
  auto w = torch::ones({2}, torch::requires_grad()), v = torch::ones({2}, torch::requires_grad());
  accelerator.prepare(w);
  accelerator.prepare(v);
  const double mean = static_cast<double>(n - 1) / 2, mine = static_cast<double>(r);
  {
    auto local = accelerator.no_sync(w);
    accelerator.backward(((w + v) * mine).sum());
    EXPECT_TRUE(torch::allclose(w.grad(), torch::full({2}, mine)));
    EXPECT_TRUE(torch::allclose(v.grad(), torch::full({2}, mean)));
  }
  {
    auto local = accelerator.no_sync();
    accelerator.backward(((w + v) * mine).sum());
    EXPECT_TRUE(torch::allclose(w.grad(), torch::full({2}, 2 * mine)));
    EXPECT_TRUE(torch::allclose(v.grad(), torch::full({2}, mean + mine)));
  }
  accelerator.backward(((w + v) * mine).sum());
  EXPECT_TRUE(torch::allclose(w.grad(), torch::full({2}, 3 * mean)));
  EXPECT_TRUE(torch::allclose(v.grad(), torch::full({2}, 3 * mean)));
}

TEST_F(Accumulation, NoSyncOfPartsOfAModel) {
  TwoHeads model;
  accelerator.prepare(model);
  const auto x = torch::ones({1, 6});
  const double mean = static_cast<double>(n - 1) / 2, mine = static_cast<double>(r);
  accelerator.backward(model->score(x, true).sum());  // the reducer learns that parts may be unused
  for (const bool zeroed : {false, true}) {
    model->zero_grad();
    {
      auto local = accelerator.no_sync(model);
      accelerator.backward(model->score(x, false).sum() * mine);
    }
    if (zeroed) {
      model->zero_grad();
    }
    accelerator.backward(model->score(x, true).sum() * mine);
    EXPECT_TRUE(torch::allclose(model->a->bias.grad(), torch::full({1}, mean)));
    if (zeroed) {
      EXPECT_FALSE(model->b->bias.grad().defined());
    } else {
      EXPECT_TRUE(torch::allclose(model->b->bias.grad(), torch::full({1}, mean)));
    }
  }
}

/// Experts that the data choose: each rank's loss reaches other parts of the model, and some are reached by none.
TEST_F(Accumulation, PartsThatDifferBetweenRanks) {
  for (const std::string how : {"each step", "no_sync", "accumulate"}) {
    SCOPED_TRACE(how);
    const int64_t window = how == "each step" ? 1 : how == "no_sync" ? 2 : kSteps;
    torch::manual_seed(7);
    TwoHeads reference;
    torch::manual_seed(7);
    TwoHeads model;
    const auto options = torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1);
    torch::optim::SGD optimizer(model->parameters(), options), reference_optimizer(reference->parameters(), options);
    accelerator.prepare(model, optimizer);
    for (int64_t step = 0; step < 5 * kSteps; ++step) {
      const auto x = torch::sin(torch::arange(12 * n).reshape({2 * n, 6}) * (0.3 + static_cast<double>(step)));
      const auto loss_of = [&](TwoHeads& m, int64_t rank) {
        const auto rows = x.narrow(0, 2 * rank, 2);
        const int64_t choice = step / kSteps == 2 ? 0 : (rank + step) % (step / kSteps == 3 ? 2 : 3);
        const auto y = choice < 2 ? m->score(rows, choice == 0) : m->score(rows, true) + m->score(rows, false);
        return y.pow(2).mean();
      };
      const bool first = step % window == 0, last = step % window == window - 1;
      if (first) {
        reference_optimizer.zero_grad();
      }
      for (int64_t rank = 0; rank < n; ++rank) {
        (loss_of(reference, rank) / static_cast<double>(n * window)).backward();
      }
      if (last) {
        reference_optimizer.step();
      }
      if (how == "no_sync") {
        if (first) {
          optimizer.zero_grad();
          auto local = accelerator.no_sync(model);
          accelerator.backward(loss_of(model, r) / 2);
        } else {
          accelerator.backward(loss_of(model, r) / 2);
          optimizer.step();
        }
      } else {
        std::optional<accelerate::Accumulation> guard;
        if (how == "accumulate") {
          guard.emplace();  // accelerator.accumulate(model), which can't be moved
        }
        optimizer.zero_grad();
        accelerator.backward(loss_of(model, r));
        optimizer.step();
      }
      if (last) {
        EXPECT_EQ(model->b->bias.grad().defined(), reference->b->bias.grad().defined()) << "step " << step;
      }
    }
    EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
    for (const auto& p : model->parameters()) {
      EXPECT_TRUE(torch::equal(accelerator.broadcast(p.detach()), p.detach()));
    }
  }
}

TEST_F(Accumulation, NoSyncOfAModelWithoutParameters) {
  torch::nn::Tanh nothing;
  auto w = torch::ones({2}, torch::requires_grad());
  accelerator.prepare(w);
  auto local = accelerator.no_sync(nothing);
  accelerator.backward((w * static_cast<double>(r)).sum());
  EXPECT_TRUE(torch::allclose(w.grad(), torch::full({2}, static_cast<double>(n - 1) / 2)));
}

TEST_F(Accumulation, Errors) {
  auto w = torch::ones({2}, torch::requires_grad()), v = torch::ones({2}, torch::requires_grad());
  accelerator.prepare(w);
  accelerator.prepare(v);
  for (int i = 0; i < kSteps; ++i) {
    auto window = accelerator.accumulate();
    EXPECT_NE(toys::error_of([&] { auto second = accelerator.accumulate(); }).find("was alive"), std::string::npos);
    accelerator.backward(i + 1 < kSteps ? (w + v).sum() : w.sum());  // the last batch leaves v out
  }
  EXPECT_NE(toys::error_of([&] { auto window = accelerator.accumulate(); }).find("came to nothing: tensor 0"),
            std::string::npos);
  for (int i = 0; i < kSteps; ++i) {
    auto window = accelerator.accumulate();
    if (i == 1) {
      std::vector<torch::Tensor> inputs{w};
      EXPECT_NE(toys::error_of([&] {
                  accelerator.backward(w.sum(), {}, std::nullopt, false, torch::TensorList(inputs));
                }).find("`inputs`"),
                std::string::npos);
    }
    accelerator.backward((w + v).sum());
  }
  auto loader = accelerate::make_data_loader(waves(4), 4);
  for (auto& b : *loader) {
    {
      auto window = accelerator.accumulate();
      accelerator.backward((w + b.data.sum() + v).sum());
    }
    EXPECT_NE(toys::error_of([&] { auto window = accelerator.accumulate(); }).find("twice for one batch"),
              std::string::npos);
  }
  EXPECT_NE(
      toys::error_of([] { accelerate::Accelerator late{accelerate::Options()}; }).find("must be the program's first"),
      std::string::npos);
}

/// Run with ACCELERATE_GRADIENT_ACCUMULATION_STEPS=2.
TEST(AccumulationVariable, SetsTheSteps) {
  accelerate::Accelerator accelerator;
  std::vector<bool> synced;
  for (int i = 0; i < 4; ++i) {
    auto window = accelerator.accumulate();
    synced.push_back(accelerator.sync_gradients());
  }
  EXPECT_EQ(synced, (std::vector<bool>{false, true, false, true}));
}

/// Run with a bad value of one variable or the other.
TEST(ControlVariables, BadValuesAreErrors) {
  const std::string error = toys::error_of([] { accelerate::Accelerator accelerator; });
  EXPECT_NE(error.find("must be"), std::string::npos) << error;
}

TEST_F(Accumulation, AfterMemoryRanOutAWindowBeginsAnew) {
  const auto train = [&](int64_t fail_at) {
    torch::manual_seed(1);
    auto model = toys::perceptron();
    torch::optim::SGD optimizer(model->parameters(), 0.5);
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(waves(6 * 4), 4);
    accelerator.prepare(model, optimizer, loader);
    int64_t batches = 0;
    for (auto& b : *loader) {
      auto window = accelerator.accumulate(model);
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      optimizer.step();
      if (++batches == fail_at) {
        throw std::bad_alloc();
      }
    }
    return model->parameters()[0].detach().clone();
  };
  const auto expected = train(-1);
  const auto found = accelerate::find_executable_batch_size([&](int64_t size) { return train(size > 7 ? 2 : -1); }, 9);
  EXPECT_TRUE(torch::equal(found, expected));
}

}  // namespace
