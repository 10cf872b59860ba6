#pragma once

/// What prepare() was given, in order, for checkpoints. Nothing is owned, and what has ended is forgotten: identity is
/// that of the parameters.

#include <accelerate/prepare.h>
#include <accelerate/safetensors.h>

#include <memory>
#include <string>
#include <vector>

namespace accelerate::detail {

class PreparedObjects {
 public:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

  struct Model {
    std::string name;                 // of its class
    const torch::nn::Module* module;  // an address to compare with; none of loose tensors
    std::vector<std::pair<std::string, WeakTensor>> tensors;

    bool dead() const;
    /// Throws if the model has other parameters now.
    NamedTensors named() const;
  };
  struct Optimizer {
    torch::optim::Optimizer* optimizer;
    std::weak_ptr<void> life;
    bool watched;                        // whether `life` tells
    std::vector<WeakTensor> parameters;  // if it doesn't, these do

    bool dead() const;
  };
  struct BoundScheduler {
    Scheduler scheduler;
    std::vector<std::weak_ptr<void>> optimizers;  // with the last of which it's taken to end
    bool waiting = false;                         // its optimizer hasn't been prepared

    bool dead() const;
  };

  void add(const Preparation& preparation);
  void forget_dead();
  void forget(const LoaderControl* loader);
  void clear() { *this = PreparedObjects(); }

  const std::vector<Model>& models() const { return models_; }
  const std::vector<Optimizer>& optimizers() const { return optimizers_; }
  const std::vector<BoundScheduler>& schedulers() const { return schedulers_; }
  const std::vector<LoaderControl*>& loaders() const { return loaders_; }
  bool has_foreign_loader() const { return foreign_loader_; }

 private:
  void add_model(std::string name, const torch::nn::Module* module, const NamedTensors& tensors);
  void add_optimizer(torch::optim::Optimizer& optimizer);
  void add_scheduler(const Scheduler& scheduler, const Preparation& preparation);

  std::vector<Model> models_;
  std::vector<Optimizer> optimizers_;
  std::vector<BoundScheduler> schedulers_;
  std::vector<LoaderControl*> loaders_;
  bool foreign_loader_ = false;
};

}  // namespace accelerate::detail
