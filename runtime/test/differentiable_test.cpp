#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "toys.h"

namespace {

/// Losses of a whole batch, as one process computes them, and as the ranks do.
class Differentiable : public testing::Test {
 protected:
  using Loss = std::function<torch::Tensor(const torch::Tensor& output, const torch::Tensor& target)>;

  /// One backward on a batch of each size (1 and 2: ghosts on three ranks), against one process's gradients.
  void expect_the_same(const Loss& whole, const Loss& ours, bool numbers = true) {
    for (const int64_t rows : {7, 6, 2, 1}) {
      torch::manual_seed(3);
      auto alone = toys::perceptron(6, 2);
      alone->to(torch::kDouble);
      auto shared = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(alone->clone());
      accelerator.prepare(shared);
      const auto x = torch::sin(torch::arange(rows * 6, torch::kDouble)).reshape({rows, 6});
      const auto y = torch::cos(torch::arange(rows * 2, torch::kDouble)).reshape({rows, 2}).abs();
      const auto expected = whole(alone->forward(x), y);
      expected.backward();
      const auto [own_x, own_y] = accelerator.shard(std::make_tuple(x, y));
      const auto loss = ours(shared->forward(own_x), own_y);
      accelerator.backward(loss);
      if (numbers) {
        EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-12) << rows << " rows";
      }
      for (size_t i = 0; i < alone->parameters().size(); ++i) {
        EXPECT_TRUE(torch::allclose(shared->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-9, 1e-12))
            << rows << " rows, parameter " << i;
      }
    }
  }

  accelerate::Accelerator accelerator;
};

TEST_F(Differentiable, RatioOfSums) {
  expect_the_same(
      [](const torch::Tensor& output, const torch::Tensor& target) {
        const auto p = torch::sigmoid(output);
        return 1 - (2 * (p * target).sum() + 1) / (p.sum() + target.sum() + 1);
      },
      [this](const torch::Tensor& output, const torch::Tensor& target) {
        const auto p = torch::sigmoid(output);
        return 1 - (2 * accelerator.all_reduce((p * target).sum()) + 1) /
                       (accelerator.all_reduce(p.sum()) + accelerator.sum(target.sum()) + 1);
      });
}

TEST_F(Differentiable, RowsAgainstEachOther) {
  const auto contrast = [](const torch::Tensor& rows, const torch::Tensor& others) {
    const auto similarity = torch::mm(rows, others.t());
    return -torch::log_softmax(similarity, 1).diag().mean();
  };
  expect_the_same(contrast, [&](const torch::Tensor& output, const torch::Tensor& target) {
    return contrast(accelerator.all_gather(output), accelerator.all_gather(target));
  });
}

/// A ghost's own term may be no number, 0 / 0 of a mask that selects nothing: the ranks still meet in the other's graph.
TEST_F(Differentiable, NoNumberOnAGhost) {
  const auto contrast = [](const torch::Tensor& rows, const torch::Tensor& others) {
    return -torch::log_softmax(torch::mm(rows, others.t()), 1).diag().mean();
  };
  const auto own = [](const torch::Tensor& output, const torch::Tensor& target) {
    return (output - target).pow(2).mean();
  };
  const auto whole = [&](const torch::Tensor& output, const torch::Tensor& target) {
    return contrast(output, target) + own(output, target);
  };
  const auto ours = [&](const torch::Tensor& output, const torch::Tensor& target) {
    const auto all = accelerator.all_gather(output), targets = accelerator.all_gather(target);
    const bool ghost = accelerator.process_index() >= all.size(0);
    return contrast(all, targets) + own(output, target) / torch::full({}, ghost ? NAN : 1, torch::kDouble);
  };
  expect_the_same(whole, ours, /*numbers=*/false);
}

TEST_F(Differentiable, ShareByWeight) {
  // A mean over what a mask selects, which each rank has another number of.
  const auto mask_of = [](const torch::Tensor& target) { return (target > 0.5).to(torch::kDouble); };
  expect_the_same(
      [&](const torch::Tensor& output, const torch::Tensor& target) {
        const auto mask = mask_of(target);
        return ((output - target).pow(2) * mask).sum() / mask.sum();
      },
      [&](const torch::Tensor& output, const torch::Tensor& target) {
        const auto mask = mask_of(target);
        const auto mean = ((output - target).pow(2) * mask).sum() / mask.sum().clamp_min(1);
        return accelerator.all_reduce(accelerator.share(mean, accelerate::Weight(mask.sum())));
      });
}

TEST_F(Differentiable, ShareByClass) {
  namespace F = torch::nn::functional;
  const auto weights = torch::tensor({0.25, 3.0}, torch::kDouble);
  // Of the last row no loss counts, unless it is the only one; where ranks have one row each, one has none that counts.
  const auto classes = [](const torch::Tensor& target) {
    return torch::where(target.select(1, 1) > 0.97, -1, (target.select(1, 0) > 0.5).to(torch::kLong));
  };
  const torch::nn::CrossEntropyLoss criterion(torch::nn::CrossEntropyLossOptions().weight(weights).ignore_index(-1));
  const auto options = F::NLLLossFuncOptions().ignore_index(-1);
  using accelerate::class_weight;
  const std::vector<std::pair<Loss, std::function<accelerate::Weight(const torch::Tensor&)>>> losses = {
      {[&](const torch::Tensor& x, const torch::Tensor& t) { return torch::nn::CrossEntropyLoss(criterion)(x, t); },
       [&](const torch::Tensor& t) { return class_weight(t, criterion); }},
      {[&](const torch::Tensor& x, const torch::Tensor& t) { return F::nll_loss(x.log_softmax(1), t, options); },
       [&](const torch::Tensor& t) { return class_weight(t, options); }},
      {[&](const torch::Tensor& x, const torch::Tensor& t) {
         return torch::cross_entropy_loss(x, t, weights, torch::Reduction::Mean, -1, 0.1);
       },
       [&](const torch::Tensor& t) { return class_weight(t, weights, torch::Reduction::Mean, -1, 0.1); }},
      {[&](const torch::Tensor& x, const torch::Tensor& t) {
         return torch::nll_loss(x.log_softmax(1), t, {}, torch::Reduction::Mean, -1);
       },
       [&](const torch::Tensor& t) { return class_weight(t, {}, torch::Reduction::Mean, -1); }},
      {[&](const torch::Tensor& x, const torch::Tensor& t) {  // probabilities
         return torch::cross_entropy_loss(x, torch::one_hot(t + 1, 3).narrow(1, 1, 2).to(torch::kDouble), weights);
       },
       [&](const torch::Tensor& t) {
         return class_weight(torch::one_hot(t + 1, 3).narrow(1, 1, 2).to(torch::kDouble), weights);
       }}};
  for (const auto& [loss, weight] : losses) {
    expect_the_same(
        [&](const torch::Tensor& output, const torch::Tensor& target) { return loss(output, classes(target)); },
        [&](const torch::Tensor& output, const torch::Tensor& target) {
          const auto t = classes(target);
          return accelerator.all_reduce(accelerator.share(loss(output, t), weight(t)));
        });
  }
  if (accelerator.num_processes() > 1) {
    // Nothing counts on any rank: what one process would have.
    EXPECT_TRUE(accelerator.share(torch::tensor(NAN), accelerate::Weight(0)).isnan().item<bool>());
  }
}

TEST_F(Differentiable, Extremes) {
  const auto r = static_cast<double>(accelerator.process_index());
  const auto n = accelerator.num_processes();
  EXPECT_EQ(accelerator.max(r), static_cast<double>(n - 1));
  EXPECT_EQ(accelerator.min(int64_t{5} + accelerator.process_index()), 5);
  const auto x = torch::tensor({r, -r});
  EXPECT_TRUE(torch::equal(accelerator.max(x), torch::tensor({n - 1.0, 0.0})));
  EXPECT_TRUE(torch::equal(accelerator.min(x), torch::tensor({0.0, 1.0 - n})));
  EXPECT_EQ(accelerator.max(torch::tensor(r == 0)).item<bool>(), true);
  EXPECT_EQ(accelerator.min(torch::tensor(r == 0)).item<bool>(), n == 1);
}

TEST_F(Differentiable, ShapesThatDiffer) {
  const auto n = accelerator.num_processes();
  if (n == 1) {
    return;
  }
  // Gloo alone would add up what is there, or wait. After the error the ranks go on together.
  const auto x = torch::ones({2 + accelerator.process_index()}, torch::requires_grad());
  for (int64_t i = 0; i < 2; ++i) {
    try {
      accelerator.all_reduce(x);
      ADD_FAILURE() << "no error";
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      EXPECT_NE(text.find("all_reduce() differs between ranks: `all_reduce(): Float [2]` on rank 0, "
                          "`all_reduce(): Float [3]` on rank 1"),
                std::string::npos)
          << text;
    }
    EXPECT_EQ(accelerator.reduce(1), n);
  }
  const auto rows = torch::ones({3, 2 + accelerator.process_index()}, torch::requires_grad());
  EXPECT_THROW(accelerator.all_gather(rows), c10::Error);
  EXPECT_EQ(accelerator.reduce(1), n);
}

TEST_F(Differentiable, GradientsOfEveryFloatingType) {
  // Each rank's gradient is that of a mean over the ranks: summed up, 1 in all places, and nothing on a ghost.
  const auto n = accelerator.num_processes();
  for (const int64_t real : {n, int64_t{1}}) {
    accelerator.shard(torch::ones({real}));
    const bool ghost = accelerator.process_index() >= real;
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kComplexFloat}) {
      for (const int64_t length : {3, 70000}) {  // as double, and as it is
        const auto x = torch::ones({length}, torch::dtype(type)).requires_grad_();
        const auto sum = accelerator.all_reduce(x);
        EXPECT_EQ(sum.scalar_type(), type);
        const auto expect = [&](const torch::Tensor& value, int64_t expected) {
          const auto number = (value.is_complex() ? torch::real(value) : value).to(torch::kDouble);
          EXPECT_TRUE(torch::allclose(number, torch::full({length}, expected, torch::kDouble), 1e-2))
              << type << ' ' << length << ' ' << real;
        };
        expect(sum.detach(), real);
        sum.backward(torch::full({length}, 1.0 / static_cast<double>(n), torch::dtype(type)));
        expect(x.grad(), ghost ? 0 : 1);
      }
    }
  }
}

TEST_F(Differentiable, CountsHaveNoGradient) {
  const auto counts = accelerator.all_reduce(torch::ones({2}, torch::kLong));
  EXPECT_EQ(counts.scalar_type(), torch::kLong);
  EXPECT_FALSE(counts.requires_grad());
  EXPECT_EQ(counts[1].item<int64_t>(), accelerator.sum(int64_t{1}));  // a test before may have left a ghost
  if (accelerator.num_processes() > 1) {
    EXPECT_THROW(accelerator.all_gather(torch::tensor(1.0)), c10::Error);
  }
}

}  // namespace
