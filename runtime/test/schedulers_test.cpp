#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "toys.h"

namespace {

/// Two batches make one step.
class Schedulers : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
    accelerate::Options options;
    options.gradient_accumulation_steps = 2;
    accelerate::Accelerator first(options);
  }
  accelerate::Accelerator accelerator;
};

TEST_F(Schedulers, StepWithTheOptimizer) {
  const auto data = [] { return toys::Waves(18).map(torch::data::transforms::Stack<>()); };
  using Sequential = torch::data::samplers::SequentialSampler;
  torch::manual_seed(1);
  auto reference = toys::perceptron();
  torch::optim::SGD reference_optimizer(reference->parameters(), 0.5);
  torch::optim::StepLR reference_scheduler(reference_optimizer, 2, 0.5), reference_epochs(reference_optimizer, 1, 0.9);
  auto reference_loader = torch::data::make_data_loader<Sequential>(data(), torch::data::DataLoaderOptions(8));
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& b : *reference_loader) {
      reference_optimizer.zero_grad();
      torch::mse_loss(reference->forward(b.data), b.target).backward();
      reference_optimizer.step();
      reference_scheduler.step();
    }
    reference_epochs.step();
  }

  torch::manual_seed(1);
  auto model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.5);
  torch::optim::StepLR scheduler(optimizer, 2, 0.5), epochs(optimizer, 1, 0.9);
  auto loader = accelerate::make_data_loader<Sequential>(data(), torch::data::DataLoaderOptions(4));
  accelerator.prepare(model, optimizer, loader, scheduler, epochs);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& b : *loader) {
      auto window = accelerator.accumulate(model);
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      optimizer.step();
      accelerator.step_scheduler(scheduler);
    }
    epochs.step();
  }
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), reference_optimizer.param_groups()[0].options().get_lr());
  EXPECT_LT(toys::distance(model->parameters(), reference->parameters()), 1e-12);
}

TEST_F(Schedulers, APlateauIsTheMainProcesses) {
  auto w = torch::ones({1}, torch::requires_grad());
  torch::optim::SGD optimizer({w}, 1.0);
  torch::optim::ReduceLROnPlateauScheduler scheduler(optimizer, torch::optim::ReduceLROnPlateauScheduler::min, 0.1F, 1);
  accelerator.prepare(optimizer);
  for (int step = 0; step < 12; ++step) {
    auto window = accelerator.accumulate();
    accelerator.backward(w.sum());
    // Better and better on the main process, the same on the others.
    const float metric = accelerator.is_main_process() ? -static_cast<float>(step) : 1.0F;
    accelerator.step_scheduler(scheduler, metric);
  }
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 1.0);
}

}  // namespace
