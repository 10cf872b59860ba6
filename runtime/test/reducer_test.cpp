#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "toys.h"

namespace {

using torch::nn::Sequential;
using Hook = accelerate::DDPCommunicationHookType;

auto waves(size_t rows) { return toys::Waves(rows).map(torch::data::transforms::Stack<>()); }

void start(const accelerate::DistributedDataParallelOptions& ddp) {
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  accelerate::Options options;
  options.ddp = ddp;
  accelerate::Accelerator first(options);
}

/// Trains alone, and as these ranks; returns how far apart the results are.
double distance_to_one_process() {
  const auto options = torch::data::DataLoaderOptions(5);
  torch::manual_seed(1);
  Sequential reference = toys::perceptron();
  torch::optim::Adam reference_optimizer(reference->parameters(), 0.01);
  auto reference_loader = torch::data::make_data_loader(waves(22), options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& b : *reference_loader) {
      reference_optimizer.zero_grad();
      torch::mse_loss(reference->forward(b.data), b.target).backward();
      reference_optimizer.step();
    }
  }
  torch::manual_seed(1);
  accelerate::Accelerator accelerator;
  Sequential model = toys::perceptron();
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  auto loader = accelerate::make_data_loader(waves(22), options);
  accelerator.prepare(model, optimizer, loader);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& b : *loader) {
      optimizer.zero_grad();
      accelerator.backward(torch::mse_loss(model->forward(b.data), b.target));
      optimizer.step();
    }
  }
  for (const auto& p : model->parameters()) {
    EXPECT_TRUE(torch::equal(accelerator.broadcast(p.detach()), p.detach()));
  }
  return toys::distance(model->parameters(), reference->parameters());
}

/// Two heads on one trunk, of which a loss may use one.
struct Heads {
  torch::nn::Linear trunk{6, 8}, a{8, 1}, b{8, 1};
  std::vector<torch::Tensor> parameters() {
    std::vector<torch::Tensor> result = trunk->parameters();
    for (auto& head : {a, b}) {
      for (const auto& p : head->parameters()) {
        result.push_back(p);
      }
    }
    return result;
  }
  torch::Tensor loss(const torch::Tensor& x, bool both) {
    const auto h = torch::tanh(trunk(x));
    return both ? (a(h) + b(h)).pow(2).mean() : a(h).pow(2).mean();
  }
};

/// The gradients of a few steps of such a model that alternates between both heads and one, against one process's.
void check_unused(bool alternate) {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  torch::manual_seed(2);
  Heads reference;
  torch::manual_seed(2);
  Heads heads;
  torch::optim::SGD optimizer(heads.parameters(), 0.1), reference_optimizer(reference.parameters(), 0.1);
  accelerator.prepare(optimizer);
  for (int step = 0; step < 6; ++step) {
    const auto x = torch::sin(torch::arange(12 * n).reshape({2 * n, 6}) * (0.3 + step));
    const bool both = alternate && step % 2 == 1;
    reference_optimizer.zero_grad();
    reference.loss(x, both).backward();
    reference_optimizer.step();
    optimizer.zero_grad();
    accelerator.backward(heads.loss(x.narrow(0, 2 * r, 2), both));
    EXPECT_EQ(heads.b->bias.grad().defined(), both);
    optimizer.step();
  }
  EXPECT_LT(toys::distance(heads.parameters(), reference.parameters()), 1e-12);
}

/// Each rank's loss reaches another head, also while gradients wait for a later backward.
void check_experts() {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  torch::manual_seed(3);
  Heads reference;
  torch::manual_seed(3);
  Heads heads;
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.1);
  torch::optim::SGD optimizer(heads.parameters(), options), reference_optimizer(reference.parameters(), options);
  accelerator.prepare(optimizer);
  for (int64_t step = 0; step < 12; ++step) {
    const auto x = torch::sin(torch::arange(12 * n).reshape({2 * n, 6}) * (0.3 + static_cast<double>(step)));
    const auto loss_of = [&](Heads& h, int64_t rank) {
      const auto y = torch::tanh(h.trunk(x.narrow(0, 2 * rank, 2)));
      return ((step < 4 || (rank + step / 2) % 2 == 0) ? h.a(y) : h.b(y)).pow(2).mean();
    };
    const bool first = step % 2 == 0;
    if (first) {
      reference_optimizer.zero_grad();
      optimizer.zero_grad();
    }
    for (int64_t rank = 0; rank < n; ++rank) {
      (loss_of(reference, rank) / static_cast<double>(n)).backward();
    }
    {
      std::optional<accelerate::NoSync> local;
      if (first) {
        local.emplace(heads.parameters());
      }
      accelerator.backward(loss_of(heads, r));
    }
    if (!first) {
      EXPECT_EQ(heads.b->bias.grad().defined(), reference.b->bias.grad().defined()) << "step " << step;
      reference_optimizer.step();
      optimizer.step();
    }
  }
  EXPECT_LT(toys::distance(heads.parameters(), reference.parameters()), 1e-12);
}

class SmallBuckets : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    accelerate::DistributedDataParallelOptions ddp;
    ddp.bucket_cap_mb = 1e-4;  // one parameter a bucket
    ddp.find_unused_parameters = true;
    start(ddp);
  }
};

TEST_F(SmallBuckets, EqualsOneProcess) { EXPECT_LT(distance_to_one_process(), 1e-12); }
TEST_F(SmallBuckets, ModelsUsedInPart) { check_unused(true); }
TEST_F(SmallBuckets, PartsThatDifferBetweenRanks) { check_experts(); }

class NoUnused : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    accelerate::DistributedDataParallelOptions ddp;
    ddp.find_unused_parameters = false;
    start(ddp);
  }
};

TEST_F(NoUnused, EqualsOneProcess) { EXPECT_LT(distance_to_one_process(), 1e-12); }

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl() {
    used = register_module("used", torch::nn::Linear(2, 1));
    spare = register_module("spare", torch::nn::Linear(2, 1));
  }
  torch::nn::Linear used{nullptr}, spare{nullptr};
};
TORCH_MODULE(TwoLayers);

TEST_F(NoUnused, UnusedParametersAreNamed) {
  accelerate::Accelerator accelerator;
  TwoLayers model;
  accelerator.prepare(model);
  const auto x = torch::ones({1, 2});
  if (accelerator.num_processes() > 1) {
    try {
      accelerator.backward(model->used(x).sum());
      ADD_FAILURE() << "no error";
    } catch (const c10::Error& error) {
      const std::string text = error.what_without_backtrace();
      EXPECT_NE(text.find("spare.weight, spare.bias"), std::string::npos) << text;
      EXPECT_EQ(text.find("used.weight"), std::string::npos) << text;
    }
  }
  accelerator.backward((model->used(x) + model->spare(x)).sum());
  model->spare->weight.requires_grad_(false);
  model->spare->bias.requires_grad_(false);
  accelerator.backward(model->used(x).sum());
}

class StaticGraph : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    accelerate::DistributedDataParallelOptions ddp;
    ddp.static_graph = true;
    start(ddp);
  }
};

TEST_F(StaticGraph, EqualsOneProcess) { EXPECT_LT(distance_to_one_process(), 1e-12); }
TEST_F(StaticGraph, AModelOfWhichOnePartIsNeverUsed) { check_unused(false); }

TEST_F(StaticGraph, AnotherGraphIsAnError) {
  accelerate::Accelerator accelerator;
  TwoLayers model;
  accelerator.prepare(model);
  const auto x = torch::ones({1, 2});
  accelerator.backward(model->used(x).sum());
  if (accelerator.num_processes() > 1) {
    EXPECT_THROW(accelerator.backward((model->used(x) + model->spare(x)).sum()), c10::Error);
  }
}

class HookFP16 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    accelerate::DistributedDataParallelOptions ddp;
    ddp.comm_hook = Hook::FP16;
    start(ddp);
  }
};

class HookBF16 : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    accelerate::DistributedDataParallelOptions ddp;
    ddp.comm_hook = Hook::BF16;
    start(ddp);
  }
};

/// The relative error of one gradient, which only the compression makes.
double gradient_error() {
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();
  const auto x = torch::sin(torch::arange(100 * n).reshape({n, 100}) * 0.37);
  auto w = torch::ones({100}, torch::requires_grad());
  accelerator.prepare(w);
  accelerator.backward((w * x[r]).sum());
  const auto expected = x.mean(0);
  return ((w.grad() - expected).norm() / expected.norm()).item<double>();
}

/// `most`: what rounding to the type may cost; without any, the hook didn't run.
void check_hook(double most) {
  accelerate::Accelerator accelerator;
  const double error = gradient_error();
  if (accelerator.num_processes() == 1) {
    EXPECT_LT(error, 1e-15);
  } else {
    EXPECT_GT(error, most / 100);
    EXPECT_LT(error, most);
  }
  EXPECT_LT(distance_to_one_process(), 0.05);
}

TEST_F(HookFP16, GradientsTravelInHalfPrecision) { check_hook(2e-3); }
TEST_F(HookBF16, GradientsTravelInBfloat16) { check_hook(1.6e-2); }

TEST_F(HookBF16, SparseGradientsAreRefused) {
  accelerate::Accelerator accelerator;
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(7, 2).sparse(true));
  accelerator.prepare(table);
  if (accelerator.num_processes() > 1) {
    EXPECT_THROW(accelerator.backward(table(torch::tensor({1})).sum()), c10::Error);
  }
}

}  // namespace
