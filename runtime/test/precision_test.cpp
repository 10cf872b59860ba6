#include <ATen/autocast_mode.h>
#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "toys.h"

namespace {

using torch::nn::Sequential;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

auto in_order(size_t rows, size_t batch) {
  return accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(waves(rows),
                                                                                torch::data::DataLoaderOptions(batch));
}

void start(const char* precision, int64_t steps = 1) {
  accelerate::Options options;
  options.mixed_precision = precision;
  options.gradient_accumulation_steps = steps;
  accelerate::Accelerator first(options);
}

class BF16 : public testing::Test {
 protected:
  static void SetUpTestSuite() { start("bf16"); }
  accelerate::Accelerator accelerator;
};

TEST_F(BF16, AutocastWhileTheGuardLives) {
  torch::nn::Linear model(6, 8);
  const auto x = torch::ones({2, 6});
  EXPECT_EQ(accelerator.mixed_precision(), "bf16");
  {
    auto autocast = accelerator.autocast();
    EXPECT_EQ(model(x).scalar_type(), torch::kBFloat16);
    EXPECT_EQ(torch::mse_loss(model(x), torch::zeros({2, 8})).scalar_type(), torch::kFloat);
    {
      auto inner = accelerator.autocast();
      EXPECT_EQ(model(x).scalar_type(), torch::kBFloat16);
    }
    EXPECT_EQ(model(x).scalar_type(), torch::kBFloat16);
  }
  EXPECT_EQ(model(x).scalar_type(), torch::kFloat);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

/// Trains with torch's own autocast around each forward pass.
std::vector<torch::Tensor> reference_parameters() {
  torch::manual_seed(1);
  Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      waves(22), torch::data::DataLoaderOptions(5));
  for (auto& b : *loader) {
    optimizer.zero_grad();
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    auto loss = torch::mse_loss(model->forward(b.data), b.target);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    loss.backward();
    optimizer.step();
  }
  return model->parameters();
}

TEST_F(BF16, OneGuardForTheWholeTraining) {
  const auto reference = reference_parameters();
  torch::manual_seed(1);
  Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = in_order(22, 5);
  accelerator.prepare(model, optimizer, loader);
  auto autocast = accelerator.autocast();  // weights cast for one step mustn't serve the next
  for (auto& b : *loader) {
    optimizer.zero_grad();
    accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
    EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
    optimizer.step();
  }
  const double distance = toys::distance(model->parameters(), reference);
  EXPECT_LT(distance, accelerator.num_processes() == 1 ? 1e-7 : 5e-3);
}

class FP16 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    start("fp16");
  }
  accelerate::Accelerator accelerator;
  const bool last_rank = accelerator.process_index() + 1 == accelerator.num_processes();
};

TEST_F(FP16, GradientsAreTheTrueOnes) {
  torch::manual_seed(2);
  Sequential reference = toys::perceptron();
  torch::optim::Adam reference_optimizer(reference->parameters(), 0.01);
  auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      waves(22), torch::data::DataLoaderOptions(5));
  for (auto& b : *reference_loader) {
    reference_optimizer.zero_grad();
    auto y = reference->forward(b.data);
    torch::mse_loss(y, b.target).backward({}, true);
    y.abs().mean().backward();
    torch::nn::utils::clip_grad_norm_(reference->parameters(), 0.1);
    reference_optimizer.step();
  }
  torch::manual_seed(2);
  Sequential model = toys::perceptron();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = in_order(22, 5);
  accelerator.prepare(model, optimizer, loader);
  for (auto& b : *loader) {
    optimizer.zero_grad();
    auto y = model->forward(b.data);
    accelerator.backward(torch::mse_loss(y, b.target), {}, true);
    accelerator.backward(y.abs().mean());  // adds to gradients that are unscaled already
    accelerator.clip_grad_norm_(model->parameters(), 0.1);
    optimizer.step();
    EXPECT_FALSE(accelerator.optimizer_step_was_skipped());
  }
  EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
}

std::string saved(const torch::optim::Optimizer& optimizer) {
  std::ostringstream out;
  torch::save(optimizer, out);
  return out.str();
}

TEST_F(FP16, AnOverflowOnOneRankSkipsTheStepOnAll) {
  const auto make = [](const std::string& kind,
                       const std::vector<torch::Tensor>& parameters) -> std::unique_ptr<torch::optim::Optimizer> {
    if (kind == "SGD") {
      return std::make_unique<torch::optim::SGD>(parameters,
                                                 torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1));
    }
    if (kind == "Adam") {
      return std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(0.1).weight_decay(0.1));
    }
    if (kind == "AdamW") {
      return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(0.1));
    }
    if (kind == "RMSprop") {
      return std::make_unique<torch::optim::RMSprop>(parameters, torch::optim::RMSpropOptions(0.1).momentum(0.9));
    }
    return std::make_unique<torch::optim::Adagrad>(parameters, torch::optim::AdagradOptions(0.1));
  };
  for (const std::string kind : {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad"}) {
    // What the steps that aren't skipped come to.
    torch::manual_seed(3);
    Sequential reference = toys::perceptron();
    auto reference_optimizer = make(kind, reference->parameters());
    auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        waves(30), torch::data::DataLoaderOptions(5));
    int step = 0;
    for (auto& b : *reference_loader) {
      if (++step == 2 || step == 5) {
        continue;
      }
      reference_optimizer->zero_grad();
      (torch::mse_loss(reference->forward(b.data), b.target) * 2).backward();
      reference_optimizer->step();
    }

    torch::manual_seed(3);
    Sequential model = toys::perceptron();
    auto optimizer = make(kind, model->parameters());
    auto loader = in_order(30, 5);
    accelerator.prepare(model, optimizer, loader);
    accelerate::detail::set_scaler_state({65536, 0});
    step = 0;
    for (auto& b : *loader) {
      ++step;
      optimizer->zero_grad();
      const auto loss = torch::mse_loss(model->forward(b.data), b.target);
      const bool bad = step == 2 || step == 5;
      const std::string before = saved(*optimizer);
      std::vector<torch::Tensor> values;
      for (const auto& p : model->parameters()) {
        values.push_back(p.detach().clone());
      }
      // At step 2 the first of two backwards overflows on one rank, at step 5 the second.
      accelerator.backward(step == 2 && last_rank ? loss * kInfinity : loss, {}, true);
      EXPECT_EQ(accelerator.optimizer_step_was_skipped(), step == 2);
      accelerator.backward(step == 5 && last_rank ? loss * kInfinity : loss);
      EXPECT_EQ(accelerator.optimizer_step_was_skipped(), bad);
      EXPECT_EQ(accelerator.clip_grad_norm_(model->parameters(), 1e9) == 0, bad);
      optimizer->step();
      EXPECT_EQ(toys::distance(values, model->parameters()) == 0, bad) << kind << " step " << step;
      EXPECT_EQ(saved(*optimizer) == before, bad) << kind << " step " << step;
      EXPECT_EQ(accelerate::detail::scaler_state().scale, 65536 * (step >= 5 ? 0.25 : step >= 2 ? 0.5 : 1));
    }
    EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-11) << kind;
  }
}

/// Two batches a step by hand: an overflow in the first leaves no half of a step.
TEST_F(FP16, AnOverflowWithinNoSyncSkipsTheStep) {
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = in_order(24, 4);
  accelerator.prepare(model, optimizer, loader);
  accelerate::detail::set_scaler_state({65536, 0});
  int batch = 0;
  for (auto& b : *loader) {
    const auto loss = torch::mse_loss(model->forward(b.data), b.target);
    const auto before = model->parameters()[0].detach().clone();
    if (batch % 2 == 0) {
      optimizer.zero_grad();
      auto local = accelerator.no_sync(model);
      accelerator.backward(batch == 2 && last_rank ? loss * kInfinity : loss);
    } else {
      accelerator.backward(loss, {}, true);
      accelerator.backward(loss);  // the same step
      EXPECT_EQ(accelerator.optimizer_step_was_skipped(), batch == 3);
      optimizer.step();
      EXPECT_EQ(torch::equal(model->parameters()[0], before), batch == 3) << "batch " << batch;
    }
    ++batch;
  }
  EXPECT_EQ(batch, 6);
  EXPECT_EQ(accelerate::detail::scaler_state().scale, 32768);
}

/// A no_sync() that outlives steps, as LocalSGD's does, joins none of them.
TEST_F(FP16, StepsWithinNoSync) {
  auto w = torch::ones({2}, torch::requires_grad());
  accelerator.prepare(w);
  accelerate::detail::set_scaler_state({65536, 0});
  const auto local = accelerator.no_sync();
  for (int step = 0; step < 4; ++step) {
    w.mutable_grad().reset();
    accelerator.backward((w * (step == 1 ? kInfinity : 1.0)).sum());
    EXPECT_EQ(accelerator.optimizer_step_was_skipped(), step == 1) << "step " << step;
  }
}

TEST_F(FP16, TheScaleGrows) {
  auto w = torch::ones({2}, torch::requires_grad());
  accelerator.prepare(w);
  accelerate::detail::set_scaler_state({1024, 1998});
  for (const double after : {1024, 2048, 2048}) {
    accelerator.backward(w.sum());  // no loader: a step of its own
    EXPECT_EQ(accelerate::detail::scaler_state().scale, after);
    EXPECT_TRUE(torch::equal(w.grad(), torch::ones({2})));
    w.mutable_grad().reset();
  }
}

TEST_F(FP16, AutocastOnThisDevice) {
  torch::nn::Linear model(6, 8);
  model->to(torch::kFloat);
  accelerator.prepare(model);
  torch::Tensor loss;
  {
    auto autocast = accelerator.autocast();
    const auto y = model(torch::ones({2, 6}, torch::kFloat));
    EXPECT_EQ(y.scalar_type(), torch::kHalf);
    loss = y.to(torch::kFloat).pow(2).mean();
  }
  accelerator.backward(loss);
  EXPECT_FALSE(accelerator.optimizer_step_was_skipped());
  const auto expected = 2 * model(torch::ones({2, 6}, torch::kFloat)).sum(0) / 16;
  EXPECT_TRUE(torch::allclose(model->bias.grad(), expected, 1e-2, 1e-3));
}

class FP16Accumulation : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    start("fp16", 3);
  }
  accelerate::Accelerator accelerator;
};

TEST_F(FP16Accumulation, AnOverflowSkipsItsWindow) {
  torch::manual_seed(4);
  Sequential reference = toys::perceptron();
  torch::optim::Adam reference_optimizer(reference->parameters(), 0.01);
  auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      waves(22), torch::data::DataLoaderOptions(9));  // windows of 3 batches of 3 rows; the last of 3 and 1
  int window_number = 0;
  for (auto& b : *reference_loader) {
    if (++window_number == 2) {
      continue;
    }
    reference_optimizer.zero_grad();
    torch::mse_loss(reference->forward(b.data), b.target).backward();
    reference_optimizer.step();
  }
  torch::manual_seed(4);
  Sequential model = toys::perceptron();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = in_order(22, 3);
  accelerator.prepare(model, optimizer, loader);
  accelerate::detail::set_scaler_state({65536, 0});
  int step = 0;
  std::vector<bool> skipped;
  for (auto& b : *loader) {
    auto window = accelerator.accumulate(model);
    auto loss = torch::mse_loss(model->forward(b.data), b.target);
    // In the first batch of the second window.
    accelerator.backward(++step == 4 && accelerator.is_main_process() ? loss * kInfinity : loss);
    optimizer.step();
    optimizer.zero_grad();
    if (accelerator.sync_gradients()) {
      skipped.push_back(accelerator.optimizer_step_was_skipped());
    }
  }
  EXPECT_EQ(skipped, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(accelerate::detail::scaler_state().scale, 32768);
  EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
}

/// Run with ACCELERATE_MIXED_PRECISION=bf16.
TEST(PrecisionVariable, SetsThePrecision) {
  accelerate::Accelerator accelerator;
  EXPECT_EQ(accelerator.mixed_precision(), "bf16");
  auto autocast = accelerator.autocast();
  EXPECT_EQ(torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type(), torch::kBFloat16);
}

}  // namespace
