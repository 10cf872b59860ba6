#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "own_process.h"
#include "temporary_folder.h"
#include "toys.h"

namespace {

struct Plain : torch::nn::Module {
  Plain() { layer = register_module("layer", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(const torch::Tensor& x) { return layer(x); }
  torch::nn::Linear layer{nullptr};
};

TEST(Prepare, EveryFormOfAModel) {
  accelerate::Accelerator accelerator;
  Plain value;
  auto shared = std::make_shared<Plain>();
  auto unique = std::make_unique<Plain>();
  Plain* pointer = unique.get();
  torch::nn::Linear holder(2, 2);
  torch::nn::Sequential sequential(torch::nn::Linear(2, 2), torch::nn::ReLU());
  torch::nn::AnyModule any(Plain{});
  std::shared_ptr<torch::nn::Module> base = shared;
  std::vector<torch::nn::Linear> several{torch::nn::Linear(1, 1), torch::nn::Linear(1, 2)};
  auto tensor = torch::zeros({2}, torch::requires_grad());
  auto all = accelerator.prepare(value, shared, unique, pointer, holder, sequential, any, base, several, tensor);
  static_assert(
      std::is_same_v<decltype(all),
                     std::tuple<Plain&, std::shared_ptr<Plain>&, std::unique_ptr<Plain>&, Plain*&, torch::nn::Linear&,
                                torch::nn::Sequential&, torch::nn::AnyModule&, std::shared_ptr<torch::nn::Module>&,
                                std::vector<torch::nn::Linear>&, torch::Tensor&>>);
  EXPECT_EQ(&std::get<0>(all), &value);
  static_assert(std::is_same_v<decltype(accelerator.prepare(value)), Plain&>);
  EXPECT_EQ(&accelerator.prepare(value), &value);
  accelerator.prepare(&value);
  accelerator.prepare(holder.ptr());
}

TEST(Prepare, EveryFormOfTheRest) {
  accelerate::Accelerator accelerator;
  Plain model;
  torch::optim::SGD value(model.parameters(), 0.1);
  auto unique = std::make_unique<torch::optim::Adam>(model.parameters());
  std::shared_ptr<torch::optim::Optimizer> shared = std::make_shared<torch::optim::AdamW>(model.parameters());
  torch::optim::Optimizer* pointer = &value;
  torch::optim::StepLR steps(value, 1);
  torch::optim::ReduceLROnPlateauScheduler plateau(value);
  auto loader = accelerate::make_data_loader(toys::Numbers(4), 2);
  auto evaluation = accelerate::make_evaluation_data_loader(toys::Numbers(4), 2);
  auto [a, b, c, d, e, f, g, h, i] =
      accelerator.prepare(value, unique, shared, pointer, steps, plateau, loader, *evaluation, model);
  EXPECT_EQ(&g, &loader);
  (void)std::tie(a, b, c, d, e, f, h, i);
}

TEST(Prepare, AnOptimizerWithoutAModel) {
  accelerate::Accelerator accelerator;
  auto w = torch::full({2}, 1.0 + accelerator.process_index(), torch::requires_grad());
  torch::optim::SGD optimizer({w}, 1.0);
  accelerator.prepare(optimizer);
  EXPECT_TRUE(torch::equal(w.detach(), torch::ones({2})));  // the main process's
  accelerator.backward((w * accelerator.process_index()).sum());
  const double mean = static_cast<double>(accelerator.num_processes() - 1) / 2;
  EXPECT_TRUE(torch::allclose(w.grad(), torch::full({2}, mean)));
}

/// Preparing again, in any order, one by one or together, changes nothing: neither what is trained, nor what is read,
/// nor what a checkpoint is made of.
TEST(Prepare, AgainIsOnce) {
  using torch::data::samplers::SequentialSampler;
  accelerate::Accelerator accelerator;
  const auto waves = [] { return toys::Waves(22).map(torch::data::transforms::Stack<>()); };
  struct Outcome {
    std::vector<torch::Tensor> parameters;
    std::vector<int64_t> rows;
    std::vector<double> rates;
    std::set<std::string> files;
  };
  const auto outcome_of = [&](bool again) {
    Outcome outcome;
    accelerator.free_memory();
    torch::manual_seed(3);
    auto model = toys::perceptron();
    auto optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), 0.01);
    torch::optim::StepLR scheduler(*optimizer, 2, 0.5);
    torch::optim::ReduceLROnPlateauScheduler plateau(*optimizer);
    auto loader = accelerate::make_data_loader<SequentialSampler>(waves(), 8);
    auto evaluation = accelerate::make_evaluation_data_loader<SequentialSampler>(waves(), 4);
    auto existing = torch::data::make_data_loader<SequentialSampler>(waves(), 8);  // shared out in place
    accelerator.prepare(model, optimizer, scheduler, plateau, loader, evaluation, existing);
    const auto prepare_again = [&] {
      if (again) {
        accelerator.prepare(existing, evaluation, *loader, &plateau, &scheduler, *optimizer, model);
        accelerator.prepare(optimizer);
        accelerator.prepare(scheduler, optimizer.get());
        accelerator.prepare(plateau);
        accelerator.prepare(loader, loader);
        accelerator.prepare(*existing);
      }
    };
    prepare_again();
    for (int epoch = 0; epoch < 2; ++epoch) {
      const auto train = [&](auto& source) {
        for (auto& batch : source) {
          outcome.rows.push_back(batch.data.size(0));
          optimizer->zero_grad();
          accelerator.backward(torch::mse_loss(model->forward(batch.data), batch.target));
          optimizer->step();
          accelerator.step_scheduler(scheduler);
          outcome.rates.push_back(optimizer->param_groups()[0].options().get_lr());
        }
      };
      train(*loader);
      train(*existing);
      for (auto& batch : *evaluation) {
        outcome.rows.push_back(batch.data.size(0));
      }
      accelerator.step_scheduler(plateau, 1.0F);
      prepare_again();
    }
    for (const auto& parameter : model->parameters()) {
      outcome.parameters.push_back(parameter.detach().clone());
    }
    TemporaryFolder folder;
    accelerator.save_state(folder / "state");
    for (const auto& entry : std::filesystem::directory_iterator(folder / "state")) {
      outcome.files.insert(entry.path().filename());
    }
    return outcome;
  };
  const Outcome once = outcome_of(false), twice = outcome_of(true);
  EXPECT_EQ(once.rows, twice.rows);
  EXPECT_EQ(once.rates, twice.rates);
  EXPECT_EQ(once.files, twice.files);
  EXPECT_EQ(once.files.count("optimizer.bin"), 1U);
  EXPECT_EQ(once.files.count("sampler_2.bin"), 1U);
  EXPECT_EQ(toys::distance(once.parameters, twice.parameters), 0);
}

TEST(Prepare, RefusesWhatItCannotPrepare) {
  accelerate::Accelerator accelerator;
  torch::nn::Linear none{nullptr};
  std::shared_ptr<Plain> null;
  EXPECT_THROW(accelerator.prepare(none), c10::Error);
  EXPECT_THROW(accelerator.prepare(null), c10::Error);
  auto result = torch::zeros({1}, torch::requires_grad()) + 1;
  EXPECT_THROW(accelerator.prepare(result), c10::Error);
  // What the loader is can't be known of its base class.
  const auto loader = torch::data::make_data_loader(toys::Numbers(4), torch::data::DataLoaderOptions(2).workers(1));
  std::remove_reference_t<decltype(*loader)>::super& base = *loader;
  if (accelerator.num_processes() > 1) {
    EXPECT_THROW(accelerator.prepare(base), c10::Error);
  } else {
    accelerator.prepare(base);
  }
}

TEST(Prepare, Devices) {
  accelerate::Accelerator accelerator;
  EXPECT_EQ(accelerator.device(torch::kCPU), torch::Device(torch::kCPU));
  if (!torch::cuda::is_available()) {
    EXPECT_EQ(accelerator.device(), torch::Device(torch::kCPU));
  }
  EXPECT_EQ(accelerator.is_main_process(), accelerator.process_index() == 0);
}

TEST(Prepare, WhatIsntPlacedStaysWhereItIs) {
  accelerate::Accelerator accelerator;
  const torch::Device before = accelerator.device();
  // A device that every machine has, and to which LibTorch can't move a module: it throws.
  accelerator.device(torch::Device(torch::kMeta));
  Plain staying;
  EXPECT_THROW(accelerator.prepare(staying), c10::Error);
  auto tensor = torch::zeros({2}, torch::requires_grad());
  torch::optim::SGD optimizer(staying.parameters(), 0.1);
  auto all = accelerator.prepare({false, true, false}, staying, optimizer, tensor);
  static_assert(std::is_same_v<decltype(all), std::tuple<Plain&, torch::optim::SGD&, torch::Tensor&>>);
  EXPECT_TRUE(staying.parameters()[0].is_cpu());
  EXPECT_TRUE(tensor.is_cpu());
  const accelerate::DevicePlacement none{false};
  accelerator.prepare(none, &staying);
  EXPECT_TRUE(staying.parameters()[0].is_cpu());
  EXPECT_NE(toys::error_of([&] { accelerator.prepare({true, false}, staying); }).find("2 placements for 1 arguments"),
            std::string::npos);
  // Batches go there, those of a loader that isn't placed don't.
  for (const bool place : {true, false}) {
    auto loader = accelerate::make_data_loader(toys::Numbers(4).map(torch::data::transforms::Stack<>()), 4);
    accelerator.prepare({place}, loader);
    for (auto& batch : *loader) {
      EXPECT_EQ(batch.data.is_meta(), place);
      EXPECT_EQ(batch.target.is_meta(), place);
    }
  }
  accelerator.device(before);
  accelerator.backward(staying.forward(torch::ones({1, 2})).sum());  // it is trained all the same
  const auto gradient = staying.layer->weight.grad();
  EXPECT_TRUE(torch::equal(accelerator.broadcast(gradient), gradient));
}

/// Optimizers of other kinds keep other things; what is brought to a device goes on as if it had been there.
TEST(Prepare, WhatOptimizersKeepIsMovedWhole) {
  using Parameters = std::vector<torch::Tensor>;
  using Made = std::unique_ptr<torch::optim::Optimizer>;
  const std::vector<std::function<Made(Parameters)>> kinds{
      [](Parameters p) -> Made { return std::make_unique<torch::optim::Adagrad>(p, 0.1); },
      [](Parameters p) -> Made { return std::make_unique<torch::optim::Adam>(p, 0.1); },
      [](Parameters p) -> Made {
        return std::make_unique<torch::optim::SGD>(p, torch::optim::SGDOptions(0.1).momentum(0.9));
      },
  };
  for (const auto& make : kinds) {
    std::vector<torch::Tensor> ends;
    for (const bool moved : {false, true}) {
      auto w = torch::arange(4, torch::kFloat).requires_grad_();
      auto optimizer = make({w});
      for (int step = 0; step < 4; ++step) {
        if (moved) {
          accelerate::detail::move_state(*optimizer, torch::kCPU);
        }
        optimizer->zero_grad();
        (w * w).sum().backward();
        optimizer->step();
      }
      EXPECT_FALSE(optimizer->state().empty());
      ends.push_back(w.detach());
    }
    EXPECT_TRUE(torch::equal(ends[0], ends[1]));
  }
}

/// Options::device_placement.
class NoPlacement : public OwnProcess<NoPlacement> {
 public:
  static accelerate::Options options() {
    accelerate::Options options;
    options.device_placement = false;
    return options;
  }
};

TEST_F(NoPlacement, EverythingStaysAndIsTrained) {
  accelerator->device(torch::Device(torch::kMeta));  // where nothing could be trained
  Plain model;
  auto w = torch::full({2}, 1.0 + static_cast<double>(r), torch::requires_grad());
  torch::optim::Adagrad optimizer(model.parameters(), 0.1);  // which keeps something from the beginning on
  auto loader = accelerate::make_data_loader(toys::Numbers(8, 2).map(torch::data::transforms::Stack<>()), 4);
  auto evaluation =
      accelerate::make_evaluation_data_loader(toys::Numbers(8, 2).map(torch::data::transforms::Stack<>()), 4);
  accelerator->prepare(model, optimizer, loader, evaluation, w);
  EXPECT_TRUE(torch::equal(w.detach(), torch::ones({2})));
  for (auto& batch : *loader) {
    EXPECT_TRUE(batch.data.is_cpu() && batch.target.is_cpu());
    optimizer.zero_grad();
    accelerator->backward(model.forward(batch.data).pow(2).mean());
    optimizer.step();
  }
  for (auto& batch : *evaluation) {
    EXPECT_TRUE(batch.data.is_cpu() && batch.target.is_cpu());
  }
  for (const torch::Tensor& parameter : model.parameters()) {
    EXPECT_TRUE(parameter.is_cpu());
    EXPECT_TRUE(torch::equal(accelerator->broadcast(parameter.detach()), parameter));
  }
}

}  // namespace
