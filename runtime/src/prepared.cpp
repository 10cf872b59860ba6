#include "prepared.h"

#include <algorithm>
#include <unordered_set>

#include "schedulers.h"
#include "watched_optimizer.h"

namespace accelerate::detail {
namespace {

PreparedObjects::WeakTensor weak(const at::Tensor& x) { return PreparedObjects::WeakTensor(x.getIntrusivePtr()); }

template <typename List, typename Dead>
void erase_if(List& list, Dead dead) {
  list.erase(std::remove_if(list.begin(), list.end(), dead), list.end());
}

/// Whether two models consist of the same tensors, whatever these are called.
bool same_tensors(const PreparedObjects::Model& model, const NamedTensors& tensors) {
  return model.tensors.size() == tensors.size() &&
         std::equal(tensors.begin(), tensors.end(), model.tensors.begin(), [](const auto& a, const auto& b) {
           return b.second.lock().get() == a.second.unsafeGetTensorImpl();
         });
}

/// Whether a model has any of these tensors.
bool shares_a_tensor(const PreparedObjects::Model& model, const NamedTensors& tensors) {
  return std::any_of(model.tensors.begin(), model.tensors.end(), [&](const auto& known) {
    const auto impl = known.second.lock();
    return impl && std::any_of(tensors.begin(), tensors.end(),
                               [&](const auto& item) { return item.second.unsafeGetTensorImpl() == impl.get(); });
  });
}

}  // namespace

bool PreparedObjects::Model::dead() const {
  return std::all_of(tensors.begin(), tensors.end(), [](const auto& item) { return item.second.expired(); });
}

NamedTensors PreparedObjects::Model::named() const {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) {
    auto impl = tensor.lock();
    TORCH_CHECK(impl, "[accelerate] the tensor `", name, "` of a prepared model (", this->name,
                ") is gone while others are there: the model was changed; call prepare(model) again");
    result.emplace_back(name, at::Tensor(std::move(impl)));
  }
  return result;
}

bool PreparedObjects::Optimizer::dead() const {
  return watched ? life.expired()
                 : std::all_of(parameters.begin(), parameters.end(), [](const auto& x) { return x.expired(); });
}

bool PreparedObjects::BoundScheduler::dead() const {
  return !optimizers.empty() &&
         std::all_of(optimizers.begin(), optimizers.end(), [](const auto& life) { return life.expired(); });
}

void PreparedObjects::add(const Preparation& preparation) {
  forget_dead();
  foreign_loader_ = foreign_loader_ || preparation.foreign_loader;
  for (const torch::nn::Module* module : preparation.models) {
    add_model(module->name(), module, named_tensors(*module));
  }
  NamedTensors loose;
  for (const at::Tensor& tensor : preparation.tensors) {
    loose.emplace_back("tensor." + std::to_string(loose.size()), tensor);
  }
  add_model("tensors", nullptr, loose);
  for (torch::optim::Optimizer* optimizer : preparation.optimizers) {
    add_optimizer(*optimizer);
  }
  for (BoundScheduler& scheduler : schedulers_) {
    scheduler.waiting = scheduler.waiting && scheduler.optimizers.empty();
  }
  for (const Scheduler& scheduler : preparation.schedulers) {
    add_scheduler(scheduler, preparation);
  }
  for (LoaderControl* loader : preparation.loaders) {
    if (std::find(loaders_.begin(), loaders_.end(), loader) == loaders_.end()) {
      loaders_.push_back(loader);
    }
  }
}

void PreparedObjects::add_model(std::string name, const torch::nn::Module* module, const NamedTensors& tensors) {
  if (tensors.empty() ||
      std::any_of(models_.begin(), models_.end(), [&](const Model& model) { return same_tensors(model, tensors); })) {
    return;
  }
  Model model{std::move(name), module, {}};
  for (const auto& [tensor_name, tensor] : tensors) {
    model.tensors.emplace_back(tensor_name, weak(tensor));
  }
  // A module of which something was replaced is the same model still, in the same place.
  const auto known = std::find_if(models_.begin(), models_.end(), [&](const Model& other) {
    return module && other.module == module && shares_a_tensor(other, tensors);
  });
  if (known == models_.end()) {
    models_.push_back(std::move(model));
  } else {
    *known = std::move(model);
  }
}

/// A scheduler refers to an optimizer, and ends with it at the latest. Which one it is can be found out for those of
/// torch::optim::LRScheduler; others are taken to end with those that they were prepared with, or else with all.
void PreparedObjects::add_scheduler(const Scheduler& scheduler, const Preparation& preparation) {
  BoundScheduler bound{scheduler, {}};
  const auto& given = preparation.optimizers;
  const auto among_given = [&](const torch::optim::Optimizer* optimizer) {
    return std::find(given.begin(), given.end(), optimizer) != given.end();
  };
  bool found = false;
  for (const Optimizer& item : optimizers_) {
    const bool belongs = scheduler.lr
                             ? (item.watched || among_given(item.optimizer)) && is_of(*scheduler.lr, *item.optimizer)
                             : given.empty() || among_given(item.optimizer);
    found = found || belongs;
    if (belongs && item.watched) {
      bound.optimizers.push_back(item.life);
    }
  }
  bound.waiting = !found;
  const auto known = std::find_if(schedulers_.begin(), schedulers_.end(), [&](const BoundScheduler& other) {
    return other.scheduler.lr == scheduler.lr && other.scheduler.plateau == scheduler.plateau;
  });
  if (known == schedulers_.end()) {
    schedulers_.push_back(std::move(bound));
  } else if (found) {
    *known = std::move(bound);
  }
}

void PreparedObjects::add_optimizer(torch::optim::Optimizer& optimizer) {
  const std::shared_ptr<void> life = watch(optimizer);
  Optimizer added{&optimizer, life, life != nullptr, {}};
  if (life) {
    for (BoundScheduler& scheduler : schedulers_) {
      if (scheduler.waiting) {
        scheduler.optimizers.emplace_back(life);
      }
    }
  }
  std::unordered_set<const c10::TensorImpl*> in_models;
  for (const Model& model : models_) {
    for (const auto& item : model.tensors) {
      in_models.insert(item.second.lock().get());
    }
  }
  NamedTensors loose;  // parameters of no prepared model are a model of their own
  for (size_t group = 0; group < optimizer.param_groups().size(); ++group) {
    const auto& parameters = optimizer.param_groups()[group].params();
    for (size_t i = 0; i < parameters.size(); ++i) {
      added.parameters.push_back(weak(parameters[i]));
      if (!in_models.count(parameters[i].unsafeGetTensorImpl())) {
        loose.emplace_back("group." + std::to_string(group) + ".parameter." + std::to_string(i), parameters[i]);
      }
    }
  }
  add_model("the optimizer's parameters", nullptr, loose);
  for (Optimizer& known : optimizers_) {
    const bool same_parameters =
        known.parameters.size() == added.parameters.size() &&
        std::equal(known.parameters.begin(), known.parameters.end(), added.parameters.begin(),
                   [](const WeakTensor& a, const WeakTensor& b) { return a.lock() == b.lock(); });
    // Another optimizer of the same parameters follows one that nothing is known about.
    if (known.optimizer == &optimizer || (!known.watched && same_parameters)) {
      known = std::move(added);
      return;
    }
  }
  optimizers_.push_back(std::move(added));
}

void PreparedObjects::forget_dead() {
  erase_if(models_, [](const Model& model) { return model.dead(); });
  erase_if(optimizers_, [](const Optimizer& optimizer) { return optimizer.dead(); });
  erase_if(schedulers_, [](const BoundScheduler& scheduler) { return scheduler.dead(); });
}

void PreparedObjects::forget(const LoaderControl* loader) {
  erase_if(loaders_, [&](const LoaderControl* known) { return known == loader; });
}

}  // namespace accelerate::detail
