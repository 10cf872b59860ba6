#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "toys.h"

namespace {

using torch::nn::Sequential;

constexpr int64_t kEvery = 3, kSteps = 8;

torch::Tensor loss_of(Sequential& model, int64_t step, int64_t rank) {
  const auto x =
      torch::sin(torch::arange(12, torch::kDouble).reshape({2, 6}) * (1.0 + 0.1 * static_cast<double>(step)) +
                 static_cast<double>(rank));
  return (model->forward(x) - x.sum(1, true)).pow(2).mean();
}

Sequential model_of_the_test() {
  torch::manual_seed(1);
  Sequential model = toys::perceptron();
  model->to(torch::kDouble);
  return model;
}

TEST(LocalSGD, AveragesNowAndThen) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  // All ranks' models, here.
  std::vector<Sequential> all;
  for (int64_t i = 0; i < n; ++i) {
    all.push_back(model_of_the_test());
  }
  for (int64_t step = 1; step <= kSteps; ++step) {
    for (int64_t i = 0; i < n; ++i) {
      torch::optim::SGD optimizer(all[i]->parameters(), 0.05);
      optimizer.zero_grad();
      loss_of(all[i], step, i).backward();
      optimizer.step();
    }
    if (step % kEvery == 0 || step == kSteps) {
      torch::NoGradGuard no_grad;
      for (size_t p = 0; p < all[0]->parameters().size(); ++p) {
        auto mean = torch::zeros_like(all[0]->parameters()[p]);
        for (auto& model : all) {
          mean += model->parameters()[p] / n;
        }
        for (auto& model : all) {
          model->parameters()[p].copy_(mean);
        }
      }
    }
  }

  Sequential model = model_of_the_test();
  torch::optim::SGD optimizer(model->parameters(), 0.05);
  accelerator.prepare(model, optimizer);
  const auto train = [&](int64_t from, int64_t to, accelerate::LocalSGD* local_sgd) {
    for (int64_t step = from; step <= to; ++step) {
      optimizer.zero_grad();
      accelerator.backward(loss_of(model, step, r));
      optimizer.step();
      if (local_sgd) {
        local_sgd->step();
      }
    }
  };
  {
    accelerate::LocalSGD local_sgd(accelerator, model, kEvery);
    train(1, kSteps, &local_sgd);
  }
  EXPECT_LT(toys::distance(model->parameters(), all[0]->parameters()), 1e-12);

  // Behind it, and where it's disabled, gradients are averaged again.
  accelerate::LocalSGD disabled(accelerator, model, kEvery, /*enabled=*/false);
  train(1, 2, &disabled);
  for (const auto& p : model->parameters()) {
    EXPECT_TRUE(torch::equal(accelerator.broadcast(p.detach()), p.detach()));
  }
}

/// What optimizers keep is each rank's own: it is neither averaged nor forgotten, as in Accelerate.
TEST(LocalSGD, OptimizersKeepTheirOwnState) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  const auto adam = [](const std::vector<torch::Tensor>& parameters) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<torch::optim::Adam>(parameters, 0.05);
  };
  const auto momentum = [](const std::vector<torch::Tensor>& parameters) -> std::unique_ptr<torch::optim::Optimizer> {
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(0.05).momentum(0.9));
  };
  for (const auto& make : {std::function(adam), std::function(momentum)}) {
    std::vector<Sequential> all;
    std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers;
    for (int64_t i = 0; i < n; ++i) {
      all.push_back(model_of_the_test());
      optimizers.push_back(make(all.back()->parameters()));
    }
    Sequential model = model_of_the_test();
    auto optimizer = make(model->parameters());
    accelerator.prepare(model, optimizer);
    accelerate::LocalSGD local_sgd(accelerator, model, 2);
    for (int64_t step = 1; step <= 6; ++step) {
      for (int64_t i = 0; i < n; ++i) {
        const auto rank = static_cast<size_t>(i);
        optimizers[rank]->zero_grad();
        loss_of(all[rank], step, i).backward();
        optimizers[rank]->step();
      }
      torch::NoGradGuard no_grad;
      for (size_t p = 0; step % 2 == 0 && p < all[0]->parameters().size(); ++p) {
        auto mean = torch::zeros_like(all[0]->parameters()[p]);
        for (auto& other : all) {
          mean += other->parameters()[p] / n;
        }
        for (auto& other : all) {
          other->parameters()[p].copy_(mean);
        }
      }
      {
        torch::AutoGradMode grad(true);
        optimizer->zero_grad();
        accelerator.backward(loss_of(model, step, r));
        optimizer->step();
        local_sgd.step();
      }
      EXPECT_LT(toys::distance(model->parameters(), all[static_cast<size_t>(r)]->parameters()), 1e-12) << step;
    }
  }
}

TEST(LocalSGD, AnExceptionIsNotHeldUp) {
  accelerate::Accelerator accelerator;
  Sequential model = model_of_the_test();
  accelerator.prepare(model);
  if (accelerator.is_main_process()) {  // the others would wait for its last average
    EXPECT_THROW(
        {
          accelerate::LocalSGD local_sgd(accelerator, model, kEvery);
          throw std::runtime_error("on the way");
        },
        std::runtime_error);
  }
  EXPECT_THROW(accelerate::LocalSGD(accelerator, model, 0), c10::Error);
  accelerator.wait_for_everyone();
}

TEST(LocalSGD, ACheckpointNeedsAnAverage) {
  accelerate::Accelerator accelerator;
  TemporaryFolder folder;
  Sequential model = model_of_the_test();
  torch::optim::SGD optimizer(model->parameters(), 0.05);
  accelerator.prepare(model, optimizer);
  const bool alone = accelerator.num_processes() == 1;
  {
    accelerate::LocalSGD local_sgd(accelerator, model, 2);
    EXPECT_TRUE(local_sgd.averaged());
    accelerator.save_state(folder / "c");
    for (int64_t step = 1; step <= 4; ++step) {
      optimizer.zero_grad();
      accelerator.backward(loss_of(model, step, accelerator.process_index()));
      optimizer.step();
      const std::string error = toys::error_of([&] { accelerator.save_state(folder / "c"); });
      EXPECT_EQ(error.find("every rank has a model of its own") == std::string::npos, alone) << error;
      local_sgd.step();
      EXPECT_EQ(local_sgd.averaged(), alone || step % 2 == 0);
      EXPECT_EQ(toys::error_of([&] { accelerator.save_state(folder / "c"); }) == "no error", local_sgd.averaged());
    }
    accelerator.backward(loss_of(model, 5, accelerator.process_index()));
    accelerator.load_state(folder / "c");
    EXPECT_TRUE(local_sgd.averaged());
  }
  accelerator.save_state(folder / "c");
}

}  // namespace
