/// Checkpoints over processes: checkpointing MODE FOLDER. Run by checkpointing_test.sh.
///   train    trains, and saves FOLDER/c on the way and FOLDER/whole at the end
///   resume   goes on from FOLDER/c and saves FOLDER/resumed
///   compare  whether FOLDER/whole and FOLDER/resumed are equal up to rounding
///   hammer   saves checkpoints until it's killed, each with its number as all weights
///   check    whether the latest one is so

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>

#include "toys.h"

namespace {

constexpr int64_t kSteps = 21, kSaveAt = 9;

int train(const std::string& folder, bool resume) {
  accelerate::Accelerator accelerator;
  int64_t step = 0;
  torch::manual_seed(resume ? 3 : 1);
  torch::nn::Sequential model = toys::perceptron();
  model->to(torch::kFloat64);
  torch::optim::Adam optimizer(model->parameters(), 0.01);
  torch::optim::StepLR scheduler(optimizer, 5, 0.8);
  auto loader = accelerate::make_data_loader(toys::Waves(22).map(torch::data::transforms::Stack<>()), 4);
  accelerator.prepare(model, optimizer, loader, scheduler);
  accelerator.register_for_checkpointing(step);
  if (resume) {
    accelerator.load_state(folder + "/c");
  }
  while (step < kSteps) {
    for (auto& batch : *loader) {
      if (step == kSteps) {
        break;
      }
      const auto x = batch.data.to(torch::kFloat64), y = batch.target.to(torch::kFloat64);
      const auto loss = torch::mse_loss(model->forward(x), y);
      if (step % 2 == 0) {  // its gradients wait for those of the next batch, also in the checkpoint
        optimizer.zero_grad();
        auto local = accelerator.no_sync();
        accelerator.backward(loss);
      } else {
        accelerator.backward(loss);
        optimizer.step();
        scheduler.step();
      }
      if (++step == kSaveAt && !resume) {
        accelerator.save_state(folder + "/c");
      }
    }
  }
  accelerator.save_model(model, folder + (resume ? "/resumed" : "/whole"));
  return 0;
}

int compare(const std::string& folder) {
  const auto a = accelerate::load_safetensors(folder + "/whole/model.safetensors").tensors;
  const auto b = accelerate::load_safetensors(folder + "/resumed/model.safetensors").tensors;
  double worst = a.size() == b.size() && !a.empty() ? 0 : 1;
  for (const auto& [name, x] : a) {
    worst = std::max(worst, (x - b.at(name)).abs().max().item<double>());
  }
  std::printf("largest difference %g\n", worst);
  return worst < 1e-12 ? 0 : 1;
}

struct Numbered {
  explicit Numbered(const std::string& folder) {
    accelerate::Options options;
    options.project.project_dir = folder;
    options.project.automatic_checkpoint_naming = true;
    options.project.total_limit = 3;
    accelerate::Accelerator accelerator(options);
    accelerator.prepare(model);
  }
  torch::nn::Linear model{200, 200};
};

int64_t number_of(const std::string& checkpoint) { return std::stoll(checkpoint.substr(checkpoint.rfind('_') + 1)); }

int hammer(const std::string& folder) {
  const Numbered numbered(folder);
  const accelerate::Accelerator accelerator;
  torch::NoGradGuard no_grad;
  int64_t number = 0;
  try {
    number = number_of(accelerator.load_state()) + 1;
  } catch (const c10::Error&) {
    // The first round.
  }
  for (;; ++number) {
    for (auto& p : numbered.model->parameters()) {
      p.fill_(number);
    }
    accelerator.save_state();
  }
}

int check(const std::string& folder) {
  const Numbered numbered(folder);
  const std::string name = accelerate::Accelerator().load_state();
  const auto number = static_cast<double>(number_of(name));
  for (const auto& p : numbered.model->parameters()) {
    if (!(p == number).all().item<bool>()) {
      std::printf("%s has weights of another\n", name.c_str());
      return 1;
    }
  }
  std::printf("%s is whole\n", name.c_str());
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const std::string mode = argv[1], folder = argv[2];
  return mode == "train"     ? train(folder, false)
         : mode == "resume"  ? train(folder, true)
         : mode == "compare" ? compare(folder)
         : mode == "hammer"  ? hammer(folder)
         : mode == "check"   ? check(folder)
                             : 2;
}
