/// The arguments of Accelerator::backward() beside the loss: torch::Tensor::backward's.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "toys.h"

namespace {

using Gradients = std::vector<torch::Tensor>;
using torch::nn::Sequential;

/// Batches of 4, 4 and 1 rows: the ranks' parts differ, and in the last one most ranks have a ghost.
class Backward : public testing::Test {
 protected:
  static void SetUpTestSuite() { torch::set_default_dtype(caffe2::TypeMeta::Make<double>()); }
  static void TearDownTestSuite() { torch::set_default_dtype(caffe2::TypeMeta::Make<float>()); }

  static auto waves() { return toys::Waves(9).map(torch::data::transforms::Stack<>()); }

  static Sequential model_of_seed() {
    torch::manual_seed(5);
    return toys::perceptron();
  }

  static Gradients gradients_of(const Sequential& model) {
    Gradients result;
    for (const auto& parameter : model->parameters()) {
      result.push_back(parameter.grad().defined() ? parameter.grad().detach().clone() : torch::Tensor());
    }
    return result;
  }

  /// Each batch's loss on each row.
  using Example = torch::data::Example<>;
  static torch::Tensor losses(Sequential& model, const Example& batch) {
    return (model->forward(batch.data) - batch.target).pow(2).flatten();
  }

  /// The gradients after one batch: those of the single process, and ours, have to be equal at each one.
  void compare(const std::function<void(Sequential&, const Example&)>& single,
               const std::function<void(Sequential&, const Example&)>& ours) {
    Sequential reference = model_of_seed(), model = model_of_seed();
    auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(waves(), 4);
    auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(waves(), 4);
    accelerator.prepare(model, loader);
    std::vector<Gradients> expected;
    for (auto& batch : *reference_loader) {
      reference->zero_grad();
      single(reference, batch);
      expected.push_back(gradients_of(reference));
    }
    size_t step = 0;
    for (auto& batch : *loader) {
      model->zero_grad();
      ours(model, batch);
      const Gradients actual = gradients_of(model);
      ASSERT_LT(step, expected.size());
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(actual[i].defined(), expected[step][i].defined()) << "step " << step << ", parameter " << i;
        if (actual[i].defined()) {
          EXPECT_LT((actual[i] - expected[step][i]).abs().max().item<double>(), 1e-12)
              << "step " << step << ", parameter " << i;
        }
      }
      ++step;
    }
    EXPECT_EQ(step, expected.size());
  }

  accelerate::Accelerator accelerator;
};

TEST_F(Backward, AGradientMakesALossOfRows) {
  const auto mean = [](const torch::Tensor& x) { return torch::full_like(x, 1.0 / static_cast<double>(x.numel())); };
  compare(
      [&](Sequential& model, const Example& batch) {
        auto x = losses(model, batch);
        x.backward(mean(x));
      },
      [&](Sequential& model, const Example& batch) {
        auto x = losses(model, batch);
        accelerator.backward(x, mean(x));
      });
}

TEST_F(Backward, AGradientScalesALoss) {
  const auto three = torch::tensor(3.0);
  compare([&](Sequential& model, const Example& batch) { losses(model, batch).mean().backward(three); },
          [&](Sequential& model, const Example& batch) { accelerator.backward(losses(model, batch).mean(), three); });
}

TEST_F(Backward, AGradientOfASum) {
  compare(
      [&](Sequential& model, const Example& batch) {
        auto x = losses(model, batch);
        x.backward(torch::full_like(x, 0.5));
      },
      [&](Sequential& model, const Example& batch) {
        auto x = losses(model, batch);
        accelerator.backward(x, accelerate::Reduction::Sum, torch::full_like(x, 0.5));
      });
}

TEST_F(Backward, AGradientOfAWeightedMean) {
  // Rows count as much as their first number; a ghost's don't.
  const auto weights = [](const Example& batch) { return batch.data.select(1, 0).abs() + 0.1; };
  compare(
      [&](Sequential& model, const Example& batch) {
        const auto w = weights(batch);
        losses(model, batch).backward(w / w.sum());
      },
      [&](Sequential& model, const Example& batch) {
        const auto w = weights(batch);
        accelerator.backward(losses(model, batch), accelerate::Weight(w.sum()), w / w.sum());
      });
}

TEST_F(Backward, ARetainedGraphServesTwice) {
  compare(
      [&](Sequential& model, const Example& batch) {
        auto loss = losses(model, batch).mean();
        loss.backward({}, /*retain_graph=*/true);
        loss.backward();
      },
      [&](Sequential& model, const Example& batch) {
        auto loss = losses(model, batch).mean();
        accelerator.backward(loss, {}, /*retain_graph=*/true);
        accelerator.backward(loss);
      });
}

/// A penalty on the gradient at each row, as of WGAN-GP: differentiated within the loss.
TEST_F(Backward, PenaltiesOnGradientsAtRows) {
  const auto loss = [](Sequential& model, const Example& batch) {
    auto x = batch.data.clone().requires_grad_();
    auto y = model->forward(x);
    auto gradient = torch::autograd::grad({y}, {x}, {torch::ones_like(y)}, /*retain_graph=*/true,
                                          /*create_graph=*/true)[0];
    return ((gradient.norm(2, 1) - 1).pow(2) + (y - batch.target).pow(2).flatten()).mean();
  };
  compare([&](Sequential& model, const Example& batch) { loss(model, batch).backward(); },
          [&](Sequential& model, const Example& batch) { accelerator.backward(loss(model, batch)); });
}

/// Gradients of gradients: alone; where they are those of several ranks, each knows its own graph only.
TEST_F(Backward, GradientsOfGradientsAreAloneOrAnError) {
  const auto penalty = [](Sequential& model) {
    auto sum = torch::zeros({});
    for (const auto& parameter : model->parameters()) {
      sum = sum + parameter.grad().pow(2).sum();
    }
    return sum;
  };
  const bool alone = accelerator.num_processes() == 1;
  compare(
      [&](Sequential& model, const Example& batch) {
        losses(model, batch).mean().backward({}, std::nullopt, /*create_graph=*/alone);
        if (alone) {
          penalty(model).backward();
        }
      },
      [&](Sequential& model, const Example& batch) {
        const std::string error = toys::error_of(
            [&] { accelerator.backward(losses(model, batch).mean(), {}, std::nullopt, /*create_graph=*/true); });
        if (alone) {
          accelerator.backward(penalty(model));
          return;
        }
        EXPECT_NE(error.find("backward() with create_graph can't be used on several ranks"), std::string::npos)
            << error;
        accelerator.backward(losses(model, batch).mean());
      });
}

TEST_F(Backward, OnlyTheInputsGetGradients) {
  const auto some = [](Sequential& model) {
    return std::vector<torch::Tensor>{model->parameters()[0], model->parameters()[3]};
  };
  compare(
      [&](Sequential& model, const Example& batch) {
        const auto inputs = some(model);
        losses(model, batch).mean().backward({}, std::nullopt, false, torch::TensorList(inputs));
      },
      [&](Sequential& model, const Example& batch) {
        const auto inputs = some(model);
        accelerator.backward(losses(model, batch).mean(), {}, std::nullopt, false, torch::TensorList(inputs));
      });
}

/// An error in the pass is what it is, and on ranks the end, which the next backward() says; in a process of its own.
/// The gradient at a batch, which a program moves the batch along (adversarial rows): of a mean, a sum, and a mean over
/// a mask. Each rank's rows have the single process's.
TEST_F(Backward, AtItsInputsIsTheSingleProcess) {
  const auto mask = [](const torch::Tensor& x) { return (x.select(1, 0) > 0.3).to(torch::kDouble) + 1e-3; };
  const auto step = [&](Sequential& model, const Example& batch, int kind, const auto& backward, const auto& gradient) {
    const auto x = batch.data.clone().set_requires_grad(true);
    const auto out = model->forward(x);
    out.retain_grad();
    const auto each = (out - batch.target).pow(2).flatten();
    const auto weights = mask(x.detach());
    backward(kind == 0   ? each.mean()
             : kind == 1 ? each.sum()
                         : (each * weights).sum() / weights.sum(),
             kind, weights.sum());
    model->zero_grad();
    const auto moved = (x + 0.1 * gradient(x) + 0.1 * gradient(out).sum(1, true)).detach();
    backward((model->forward(moved) - batch.target).pow(2).mean(), 0, torch::Tensor());
  };
  for (const int kind : {0, 1, 2}) {
    SCOPED_TRACE(kind);
    compare(
        [&](Sequential& model, const Example& batch) {
          step(
              model, batch, kind, [](const torch::Tensor& loss, int, const torch::Tensor&) { loss.backward(); },
              [](const torch::Tensor& x) { return x.grad(); });
        },
        [&](Sequential& model, const Example& batch) {
          step(
              model, batch, kind,
              [&](const torch::Tensor& loss, int of, const torch::Tensor& weight) {
                if (of == 0) {
                  accelerator.backward(loss);
                } else if (of == 1) {
                  accelerator.backward(loss, accelerate::Reduction::Sum);
                } else {
                  accelerator.backward(loss, accelerate::Weight(weight));
                }
              },
              [&](const torch::Tensor& x) { return accelerator.gradient(x); });
        });
  }
}

/// The same of a model that is frozen meanwhile: nothing is sent for it.
TEST_F(Backward, AtTheInputsOfAFrozenModelIsTheSingleProcess) {
  const auto step = [&](Sequential& model, const Example& batch, const auto& backward, const auto& gradient) {
    const auto x = batch.data.clone().set_requires_grad(true);
    for (auto& parameter : model->parameters()) parameter.set_requires_grad(false);
    backward((model->forward(x) - batch.target).pow(2).mean());
    for (auto& parameter : model->parameters()) parameter.set_requires_grad(true);
    const auto moved = (x + 0.1 * gradient(x)).detach();
    backward((model->forward(moved) - batch.target).pow(2).mean());
  };
  compare(
      [&](Sequential& model, const Example& batch) {
        step(
            model, batch, [](const torch::Tensor& loss) { loss.backward(); },
            [](const torch::Tensor& x) { return x.grad(); });
      },
      [&](Sequential& model, const Example& batch) {
        step(
            model, batch, [&](const torch::Tensor& loss) { accelerator.backward(loss); },
            [&](const torch::Tensor& x) { return accelerator.gradient(x); });
      });
}

TEST_F(Backward, AtItsInputsIsUndefinedBeforeIt) {
  const auto x = torch::ones({2, 3}).set_requires_grad(true);
  EXPECT_FALSE(accelerator.gradient(x).defined());
}

TEST(BackwardFailed, IsSaidByTheNext) {
  accelerate::Accelerator accelerator;
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer);
  const auto loss = [&] { return model->forward(torch::ones({2, 6})).mean(); };
  auto graph = loss();
  accelerator.backward(graph);
  const std::string own = toys::error_of([&] { accelerator.backward(graph); });
  EXPECT_NE(own.find("backward through the graph a second time"), std::string::npos) << own;
  const std::string next = toys::error_of([&] { accelerator.backward(loss()); });
  if (accelerator.num_processes() == 1) {
    EXPECT_EQ(next, "no error");
    return;
  }
  for (const char* part : {"the last backward() through", "ended in an error on this rank", "graph a second time"}) {
    EXPECT_NE(next.find(part), std::string::npos) << next;
  }
}

/// An error that one rank catches, to go on with the next batch: the others' gradients would be of another batch from
/// there on. Also in a process of its own.
TEST(BackwardOutOfStep, ThrowsOnAllRanks) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = accelerate::make_data_loader(toys::Waves(40).map(torch::data::transforms::Stack<>()), 5);
  accelerator.prepare(model, optimizer, loader);
  std::vector<std::string> errors;
  int64_t step = 0;
  for (auto& batch : *loader) {
    errors.push_back(toys::error_of([&] {
      if (step++ == 2 && r == n - 1) {
        throw std::runtime_error("an odd row");
      }
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(batch.data), batch.target));
      optimizer.step();
    }));
  }
  ASSERT_EQ(errors.size(), 8U);
  for (size_t i = 0; i < errors.size(); ++i) {
    if (i == 2 && r == n - 1) {
      EXPECT_EQ(errors[i], "an odd row");
    } else if (i < 2 || n == 1) {
      EXPECT_EQ(errors[i], "no error");
    } else {  // and none of those behind it comes to anything
      EXPECT_NE(errors[i].find("different batches of their training loaders"), std::string::npos)
          << i << ": " << errors[i];
    }
  }
}

}  // namespace
