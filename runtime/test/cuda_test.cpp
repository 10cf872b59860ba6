/// A GPU's tensors: collectives, gradients, draws and files, against one process that computes on the same GPU. Where
/// there is none, the suite is skipped; several ranks share one, over gloo.

#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "temporary_folder.h"
#include "toys.h"

namespace {

using torch::nn::Sequential;

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no GPU";
    device = accelerator.device();
    ASSERT_TRUE(device.is_cuda());
  }

  static auto waves() { return toys::Waves(9).map(torch::data::transforms::Stack<>()); }

  Sequential model_of_seed() const {
    torch::manual_seed(5);
    Sequential model = toys::perceptron();
    model->to(device, torch::kFloat64);
    return model;
  }

  torch::Tensor loss_of(Sequential& model, const torch::data::Example<>& batch) const {
    return torch::mse_loss(model->forward(batch.data.to(device, torch::kFloat64)),
                           batch.target.to(device, torch::kFloat64));
  }

  static void expect_equal(const Sequential& a, const Sequential& b) {
    const std::vector<torch::Tensor> expected = a->parameters(), got = b->parameters();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(got[i].is_cuda());
      EXPECT_TRUE(torch::allclose(got[i], expected[i], 1e-12, 1e-14)) << (got[i] - expected[i]).abs().max();
    }
  }

  /// This rank's one row, and the rows of all.
  torch::Tensor row() const { return torch::full({1, 3}, 1.5 + accelerator.process_index(), device); }
  torch::Tensor all_rows() const {
    return torch::arange(accelerator.num_processes(), torch::TensorOptions(device).dtype(torch::kFloat))
               .unsqueeze(1)
               .expand({-1, 3}) +
           1.5;
  }

  accelerate::Accelerator accelerator;
  torch::Device device{torch::kCPU};
};

/// Batches of 4, 4 and 1 rows: parts differ, and ranks without a row have a ghost.
TEST_F(Cuda, TrainsAsOneProcess) {
  Sequential reference = model_of_seed(), model = model_of_seed();
  torch::optim::Adam reference_optimizer(reference->parameters(), 0.05), optimizer(model->parameters(), 0.05);
  auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(waves(), 4);
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(waves(), 4);
  accelerator.prepare(model, optimizer, loader);
  for (int epoch = 0; epoch < 2; ++epoch) {
    double expected = 0, total = 0;
    for (auto& batch : *reference_loader) {
      reference_optimizer.zero_grad();
      torch::Tensor loss = loss_of(reference, batch);
      loss.backward();
      torch::nn::utils::clip_grad_norm_(reference->parameters(), 0.5);
      reference_optimizer.step();
      expected += loss.item<double>();
    }
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      torch::Tensor loss = loss_of(model, batch);
      accelerator.backward(loss);
      accelerator.clip_grad_norm_(model->parameters(), 0.5);
      optimizer.step();
      total += accelerator.share(loss.item<double>());
    }
    accelerator.reduce_(total);
    EXPECT_NEAR(total, expected, 1e-12);
    expect_equal(reference, model);
  }
}

TEST_F(Cuda, CollectivesKeepTensorsOnTheDevice) {
  const torch::Tensor rows = all_rows();
  (void)accelerator.shard(torch::zeros({accelerator.num_processes(), 1}));  // the batch in hand: one row on each rank
  const std::vector<std::pair<torch::Tensor, torch::Tensor>> results = {
      {accelerator.reduce(row()), rows.sum(0, true)},
      {accelerator.max(row()), rows.slice(0, -1)},
      {accelerator.min(row()), rows.slice(0, 0, 1)},
      {accelerator.gather(row()), rows},
      {accelerator.broadcast(row()), rows.slice(0, 0, 1)},
      {accelerator.all_gather(row()), rows},
      {accelerator.all_reduce(row()), rows.sum(0, true)},
      {accelerator.pad_across_processes(row()), row()},
  };
  for (const auto& [got, expected] : results) {
    EXPECT_TRUE(got.is_cuda());
    EXPECT_TRUE(torch::equal(got, expected)) << got << expected;
  }
}

/// A loss that isn't linear in the mean over the batch, and one that compares its rows.
TEST_F(Cuda, GradientsPassThroughCollectives) {
  Sequential reference = model_of_seed(), model = model_of_seed();
  auto reference_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(waves(), 4);
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(waves(), 4);
  torch::optim::SGD reference_optimizer(reference->parameters(), 0.1), optimizer(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer, loader);
  auto spread = [](const torch::Tensor& out) { return out.mul(out.t()).pow(2).sum(); };
  for (auto& batch : *reference_loader) {
    reference_optimizer.zero_grad();
    const torch::Tensor out = reference->forward(batch.data.to(device, torch::kFloat64));
    (torch::sqrt(loss_of(reference, batch)) + spread(out)).backward();
    reference_optimizer.step();
  }
  for (auto& batch : *loader) {
    optimizer.zero_grad();
    const torch::Tensor out = accelerator.all_gather(model->forward(batch.data.to(device, torch::kFloat64)));
    accelerator.backward(torch::sqrt(accelerator.all_reduce(accelerator.share(loss_of(model, batch)))) + spread(out));
    optimizer.step();
  }
  expect_equal(reference, model);
}

/// The generators of all ranks' GPUs are equal, so that each keeps its rows of what one process would draw.
TEST_F(Cuda, DrawsAreTheSingleProcesss) {
  torch::manual_seed(11);
  const torch::Tensor expected = torch::randn({5, 3}, device);
  torch::manual_seed(11);
  const torch::Tensor batch = accelerator.shard(torch::zeros({5, 2}, device));
  const torch::Tensor own = accelerator.own_rows(torch::randn({accelerator.global_rows(batch.size(0)), 3}, device));
  EXPECT_TRUE(torch::equal(accelerator.gather_for_metrics(own), expected));
}

TEST_F(Cuda, SavesWhatAnotherDeviceLoads) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.pt";
  Sequential model = model_of_seed(), loaded = toys::perceptron();
  loaded->to(torch::kFloat64);
  accelerator.save(model, path);
  accelerator.wait_for_everyone();
  torch::load(loaded, path, torch::kCPU);
  for (size_t i = 0; i < model->parameters().size(); ++i) {
    EXPECT_TRUE(torch::equal(loaded->parameters()[i].cpu(), model->parameters()[i].cpu()));
  }
  accelerator.wait_for_everyone();
}

/// What --mixed_precision asks for, where the program lets it.
TEST_F(Cuda, AutocastComputesAsAsked) {
  torch::nn::Linear layer(3, 2);
  layer->to(device);
  const auto autocast = accelerator.autocast();
  const torch::ScalarType type = layer->forward(row()).scalar_type();
  const std::string asked = accelerator.mixed_precision();
  EXPECT_EQ(type, asked == "bf16" ? torch::kBFloat16 : asked == "fp16" ? torch::kHalf : torch::kFloat);
}

}  // namespace
