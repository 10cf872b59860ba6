#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "toys.h"

namespace {

using torch::nn::Sequential;

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

TEST(Training, EqualsOneProcess) {
  for (const size_t batch : {4, 5, 8}) {  // 22 rows: last batches of 2 rows, 2 rows, 6 rows
    for (const size_t workers : {0, 2}) {
      const auto options = torch::data::DataLoaderOptions(batch).workers(workers);
      torch::manual_seed(1);
      Sequential reference = toys::perceptron();
      torch::optim::Adam reference_optimizer(reference->parameters(), 0.01);
      auto reference_loader = torch::data::make_data_loader(waves(22), options);
      std::vector<double> reference_losses;
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (auto& b : *reference_loader) {
          reference_optimizer.zero_grad();
          auto loss = torch::mse_loss(reference->forward(b.data), b.target);
          loss.backward();
          reference_optimizer.step();
          reference_losses.push_back(loss.item<double>());
        }
      }

      torch::manual_seed(1);
      accelerate::Accelerator accelerator;
      Sequential model = toys::perceptron();
      torch::optim::Adam optimizer(model->parameters(), 0.01);
      auto loader = accelerate::make_data_loader(waves(22), options);
      accelerator.prepare(loader, optimizer, model);
      std::vector<double> losses;
      for (int epoch = 0; epoch < 3; ++epoch) {
        for (auto& b : *loader) {
          optimizer.zero_grad();
          auto loss = torch::mse_loss(model->forward(b.data), b.target);
          accelerator.backward(loss);
          optimizer.step();
          losses.push_back(accelerator.mean(loss).item<double>());
        }
      }
      EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 2e-6) << batch;
      ASSERT_EQ(losses.size(), reference_losses.size());
      for (size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i], reference_losses[i], 1e-6);
      }
      if (accelerator.num_processes() == 1) {
        EXPECT_EQ(toys::distance(model->parameters(), reference->parameters()), 0);
        EXPECT_EQ(losses, reference_losses);
      }
    }
  }
}

/// Two models, two optimizers, two backwards a step, one of which runs through both models.
template <typename Backward, typename Loader>
void train_gan(Sequential& g, Sequential& d, Loader& loader, Backward backward) {
  torch::optim::SGD g_optimizer(g->parameters(), 0.05), d_optimizer(d->parameters(), 0.05);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& b : loader) {
      d->zero_grad();
      auto fake = g->forward(b.data);
      auto d_loss = torch::softplus(-d->forward(b.data)).mean();
      backward(d_loss);
      auto d_fake = torch::softplus(d->forward(fake.detach())).mean();
      backward(d_fake);
      d_optimizer.step();
      g->zero_grad();
      auto g_loss = torch::softplus(-d->forward(fake)).mean();
      backward(g_loss);
      g_optimizer.step();
    }
  }
}

TEST(Training, TwoModelsAndThreeBackwards) {
  torch::manual_seed(2);
  Sequential g0 = toys::perceptron(6, 6), d0 = toys::perceptron(6, 1);
  auto loader0 = torch::data::make_data_loader(waves(19), 8);
  train_gan(g0, d0, *loader0, [](const torch::Tensor& loss) { loss.backward(); });

  torch::manual_seed(2);
  accelerate::Accelerator accelerator;
  Sequential g = toys::perceptron(6, 6), d = toys::perceptron(6, 1);
  auto loader = accelerate::make_data_loader(waves(19), 8);
  accelerator.prepare(g, d, loader);
  train_gan(g, d, *loader, [&](const torch::Tensor& loss) { accelerator.backward(loss); });
  EXPECT_LT(toys::distance(g->parameters(), g0->parameters()), 2e-6);
  EXPECT_LT(toys::distance(d->parameters(), d0->parameters()), 2e-6);
}

struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() {
    trunk = register_module("trunk", torch::nn::Linear(6, 8));
    a = register_module("a", torch::nn::Linear(8, 1));
    b = register_module("b", torch::nn::Linear(8, 1));
  }
  torch::Tensor score(const torch::Tensor& x, bool first) {  // no method is called `forward`
    auto h = torch::tanh(trunk(x));
    return first ? a(h) : b(h);
  }
  torch::nn::Linear trunk{nullptr}, a{nullptr}, b{nullptr};
};
TORCH_MODULE(TwoHeads);

template <typename Backward, typename Loader>
void train_heads(TwoHeads& model, Loader& loader, Backward backward) {
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  int step = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    if (epoch == 2) {
      model->a->weight.requires_grad_(false);  // frozen on the way
    }
    for (auto& b : loader) {
      optimizer.zero_grad();
      backward(torch::mse_loss(model->score(b.data, step++ % 2 == 0), b.target));
      optimizer.step();
    }
  }
}

TEST(Training, ModelsUsedInPart) {
  torch::manual_seed(3);
  TwoHeads model0;
  auto loader0 = torch::data::make_data_loader(waves(17), 4);
  train_heads(model0, *loader0, [](const torch::Tensor& loss) { loss.backward(); });

  torch::manual_seed(3);
  accelerate::Accelerator accelerator;
  TwoHeads model;
  auto loader = accelerate::make_data_loader(waves(17), 4);
  accelerator.prepare(model, loader);
  train_heads(model, *loader, [&](const torch::Tensor& loss) { accelerator.backward(loss); });
  EXPECT_LT(toys::distance(model->parameters(), model0->parameters()), 2e-6);
}

TEST(Training, SumsAndWeights) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  const auto x = torch::arange(30, torch::kFloat64).reshape({10, 3}).sin();
  const auto mask = (torch::arange(10) % 3 != 0).to(torch::kFloat64);
  // Rows r, r + n, ... of ten.
  const auto mine = torch::arange(r, 10, n);
  auto w = torch::ones({3}, torch::dtype(torch::kFloat64).requires_grad(true));
  accelerator.prepare(w);

  auto expected = [&](const std::function<torch::Tensor(torch::Tensor)>& loss) {
    auto v = torch::ones({3}, torch::dtype(torch::kFloat64).requires_grad(true));
    loss(v).backward();
    return v.grad();
  };
  auto error = [&](const torch::Tensor& e) {
    auto result = (w.grad() - e).abs().max().item<double>();
    w.mutable_grad() = torch::Tensor();
    return result;
  };

  accelerator.backward((x.index_select(0, mine).matmul(w)).pow(2).sum(), accelerate::Reduction::Sum);
  EXPECT_LT(error(expected([&](auto v) { return x.matmul(v).pow(2).sum(); })), 1e-12);

  auto m = mask.index_select(0, mine);
  auto masked = (x.index_select(0, mine).matmul(w).pow(2) * m).sum() / m.sum();
  accelerator.backward(masked, accelerate::Weight(m.sum()));
  EXPECT_LT(error(expected([&](auto v) { return (x.matmul(v).pow(2) * mask).sum() / mask.sum(); })), 1e-12);

  // A weight of zero: the loss is 0/0 on all ranks but the first.
  auto nothing = r == 0 ? torch::ones_like(m) : torch::zeros_like(m);
  auto partly = (x.index_select(0, mine).matmul(w).pow(2) * nothing).sum() / nothing.sum();
  accelerator.backward(partly, accelerate::Weight(nothing.sum()));
  const auto first = torch::arange(0, 10, n);
  EXPECT_LT(error(expected([&](auto v) { return x.index_select(0, first).matmul(v).pow(2).mean(); })), 1e-12);

  // retain_graph as for torch::Tensor.
  auto twice = w.pow(2).sum();
  accelerator.backward(twice, {}, true);
  accelerator.backward(twice);
  EXPECT_LT(error(torch::full({3}, 4.0, torch::kFloat64)), 1e-12);
}

TEST(Training, LoadingInTheMiddleKeepsTheGradientsTogether) {
  accelerate::Accelerator accelerator;
  torch::manual_seed(4);
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = accelerate::make_data_loader(toys::Waves(23).map(torch::data::transforms::Stack<>()), 5);
  accelerator.prepare(model, optimizer, loader);
  int step = 0;
  for (auto& batch : *loader) {
    if (++step == 3) {
      std::stringstream file;  // gives the parameters other gradient accumulators
      torch::save(model, file);
      torch::load(model, file);
    }
    optimizer.zero_grad();
    accelerator.backward(torch::mse_loss(model->forward(batch.data), batch.target));
    optimizer.step();
    for (const auto& parameter : model->parameters()) {
      EXPECT_TRUE(torch::equal(accelerator.broadcast(parameter.detach()), parameter.detach())) << "step " << step;
    }
  }
}

TEST(Training, RunningStatisticsAreEqualOnAllRanks) {
  accelerate::Accelerator accelerator;
  torch::manual_seed(4);
  torch::nn::Sequential model(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::Linear(8, 1));
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  auto loader = accelerate::make_data_loader(waves(24), 12);
  accelerator.prepare(model, optimizer, loader);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& b : *loader) {
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      optimizer.step();
    }
  }
  for (const auto& buffer : model->buffers()) {
    EXPECT_TRUE(torch::equal(buffer, accelerator.broadcast(buffer)));
  }
}

TEST(Training, ModelsThatDieAreForgotten) {
  accelerate::Accelerator accelerator;
  for (int fold = 0; fold < 4; ++fold) {
    Sequential model = toys::perceptron();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    accelerator.prepare(model, optimizer);
    accelerator.prepare(model);  // twice is harmless
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      accelerator.backward(model->forward(torch::ones({2, 6}) * accelerator.process_index()).mean());
      optimizer.step();
    }
    for (const auto& p : model->parameters()) {
      EXPECT_TRUE(torch::equal(p, accelerator.broadcast(p)));
    }
  }
}

TEST(Training, ModelsThatDifferFailOnAllRanks) {
  accelerate::Accelerator accelerator;
  torch::nn::Linear model(4, accelerator.process_index() == 1 ? 3 : 2);
  if (accelerator.num_processes() == 1) {
    accelerator.prepare(model);
    return;
  }
  try {
    accelerator.prepare(model);
    ADD_FAILURE() << "no error";
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what_without_backtrace()).find("weight: Float [2, 4]"), std::string::npos)
        << error.what();
  }
}

TEST(Training, DropoutDiffersAndLeavesTheCommonStreamAlone) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes();
  torch::manual_seed(9);
  auto x = torch::ones({1000}, torch::requires_grad());
  auto dropped = torch::dropout(x, 0.5, true);
  dropped.sum().backward();
  EXPECT_TRUE(torch::equal(x.grad(), dropped.detach()));  // 2 where kept
  torch::dropout(torch::ones({100 * (1 + accelerator.process_index())}), 0.5, true);
  const auto masks = accelerator.gather(dropped.detach().reshape({1, -1}));
  for (int64_t other = 1; other < n; ++other) {
    EXPECT_FALSE(torch::equal(masks[0], masks[other]));
  }
  if (n > 1) {
    const auto common = torch::rand({3});
    torch::manual_seed(9);
    EXPECT_TRUE(torch::equal(common, torch::rand({3})));
    torch::manual_seed(9);
    EXPECT_TRUE(torch::equal(torch::dropout(x, 0.5, true), dropped));  // seeds hold for it as well
  }
}

TEST(Training, WhatIsComputedWholeDropsTheSameUnits) {
  accelerate::Accelerator accelerator;
  torch::manual_seed(9);
  const auto dropped = accelerator.whole([&] { return torch::dropout(torch::ones({1000}), 0.5, true); });
  const auto behind = torch::rand({3});
  torch::manual_seed(9);  // the single process's: from the stream that all have in common
  EXPECT_TRUE(torch::equal(dropped, torch::empty({1000}).bernoulli_(0.5).div_(0.5)));
  EXPECT_TRUE(torch::equal(behind, torch::rand({3})));
}

TEST(Training, RandomisedSlopesLeaveTheCommonStreamAlone) {
  accelerate::Accelerator accelerator;
  torch::manual_seed(9);
  auto x = -torch::ones({64 * (1 + accelerator.process_index())});
  const auto sloped = torch::rrelu(x, 0.1, 0.3, /*training=*/true);
  EXPECT_TRUE((sloped <= -0.1).all().item<bool>() && (sloped >= -0.3).all().item<bool>());
  torch::rrelu_(x, 0.1, 0.3, /*training=*/true);
  EXPECT_FALSE(torch::equal(x, sloped));
  const auto common = accelerator.gather(torch::rand({1, 3}));
  EXPECT_TRUE(torch::equal(common, common.narrow(0, 0, 1).expand_as(common)));
}

/// Ranks drop the same units again after manual_seed(), also with the seed as before and numbers drawn in between.
TEST(Training, SeedsBeginDropoutAnew) {
  accelerate::Accelerator accelerator;
  const auto draw = [](uint64_t seed, bool between) {
    torch::manual_seed(seed);
    if (between) {
      torch::rand({3});
    }
    return torch::dropout(torch::ones({64}), 0.5, true);
  };
  for (const bool between : {false, true}) {
    const auto first = draw(5, between);
    EXPECT_TRUE(torch::equal(draw(5, between), first)) << between;
    EXPECT_FALSE(torch::equal(draw(6, between), first));
    EXPECT_FALSE(torch::equal(torch::dropout(torch::ones({64}), 0.5, true), draw(6, between)));
    const auto all = accelerator.gather(first.reshape({1, 64}));
    for (int64_t rank = 1; rank < accelerator.num_processes(); ++rank) {
      EXPECT_FALSE(torch::equal(all[0], all[rank]));
    }
  }
}

/// Running statistics that are written from some step on only.
TEST(Training, StatisticsThatBeginLate) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes();
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(6, 4), torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 1));
  accelerator.prepare(model);
  model->eval();
  for (int step = 1; step <= 8; ++step) {
    if (step == 6) {  // where nobody would look for them otherwise
      model->train();
    }
    const auto x = torch::sin(torch::arange(48 * n).reshape({8 * n, 6}) * (0.3 + step));
    accelerator.backward(model->forward(x.narrow(0, 8 * accelerator.process_index(), 8)).pow(2).mean());
    const auto mean = model->named_buffers()["1.running_mean"];
    EXPECT_TRUE(torch::equal(accelerator.broadcast(mean), mean)) << "step " << step;
  }
}

/// Which of two loaders' batches a mean loss is of can't be known; where it matters, backward() says so on all ranks.
/// What LibTorch warns of.
struct Warnings : c10::WarningHandler {
  void process(const c10::Warning& warning) override { texts.push_back(warning.msg()); }
  std::vector<std::string> texts;
};

/// loss.backward() is heard of by nobody; that is said, once.
TEST(Training, ABackwardThatIsntOurs) {
  accelerate::Accelerator accelerator;
  Warnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  const auto train = [&](const std::function<void(Sequential&, const torch::Tensor&, int64_t)>& step) {
    Sequential model = toys::perceptron();
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    auto loader = accelerate::make_data_loader(toys::Waves(24).map(torch::data::transforms::Stack<>()), 4);
    accelerator.prepare(model, optimizer, loader);
    int64_t k = 0;
    for (auto& batch : *loader) {
      step(model, torch::mse_loss(model->forward(batch.data), batch.target), k++);
      optimizer.step();
    }
  };
  train([&](Sequential& model, const torch::Tensor& loss, int64_t k) {
    model->zero_grad(/*set_to_none=*/k % 2 == 0);
    if (k < 2 || k == 3) {
      return;  // a batch that is left out on all ranks
    }
    if (k == 4) {  // a gradient of the inputs' own, say, before the step's
      loss.backward({}, /*retain_graph=*/true);
      model->zero_grad();
    }
    accelerator.backward(loss);
    accelerator.clip_grad_norm_(model->parameters(), 0.1);
  });
  EXPECT_TRUE(warnings.texts.empty()) << warnings.texts[0];
  train([](Sequential& model, const torch::Tensor& loss, int64_t) {
    model->zero_grad();
    loss.backward();
  });
  if (accelerator.num_processes() == 1) {
    EXPECT_TRUE(warnings.texts.empty());
  } else {
    ASSERT_EQ(warnings.texts.size(), 1U);
    EXPECT_NE(warnings.texts[0].find("call accelerator.backward(loss)"), std::string::npos) << warnings.texts[0];
  }
}

TEST(Training, TwoLoadersInOneLoop) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes();
  using torch::data::samplers::SequentialSampler;
  const auto batch = static_cast<size_t>(2 * n);
  for (const bool weighted : {false, true}) {
    auto model = toys::perceptron();
    auto a = accelerate::make_data_loader<SequentialSampler>(waves(static_cast<size_t>(6 * n)), batch);
    auto b = accelerate::make_data_loader<SequentialSampler>(waves(static_cast<size_t>(6 * n - 1)), batch);
    accelerator.prepare(model, a, b);
    const std::string error = toys::error_of([&] {
      auto other = b->begin();
      for (auto& first : *a) {
        for (const auto& x : {first, *other}) {
          const auto loss = torch::mse_loss(model->forward(x.data), x.target);
          if (weighted) {
            accelerator.backward(loss, accelerate::Weight(static_cast<double>(x.data.size(0))));
          } else {
            accelerator.backward(loss);
          }
        }
        ++other;
      }
    });
    EXPECT_NE(error.find(n > 1 && !weighted ? "two training loaders" : "no error"), std::string::npos) << error;
  }
  // One loop after the other, or within it, is none of that.
  auto model = toys::perceptron();
  auto a = accelerate::make_data_loader<SequentialSampler>(waves(static_cast<size_t>(4 * n + 1)), batch);
  auto b = accelerate::make_data_loader<SequentialSampler>(waves(static_cast<size_t>(6 * n - 1)), batch);
  accelerator.prepare(model, a, b);
  for (auto& x : *a) {
    accelerator.backward(torch::mse_loss(model->forward(x.data), x.target));
    for (auto& y : *b) {
      accelerator.backward(torch::mse_loss(model->forward(y.data), y.target));
      if (x.data.size(0) == 1) {
        break;
      }
    }
  }
}

}  // namespace
