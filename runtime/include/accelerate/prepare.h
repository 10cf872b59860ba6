#pragma once

/// How Accelerator::prepare() recognises what it is given: by type, at compile time.

#include <accelerate/export.h>
#include <accelerate/in_place.h>
#include <accelerate/loader_control.h>
#include <torch/data/dataloader/base.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/pimpl.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate {

/// For prepare(), before its other arguments: which of them are moved to device(), one by one (a model, a tensor), have
/// their batches brought there (a loader), or what they keep brought to their parameters (an optimizer that has
/// stepped, or was loaded, before). What isn't stays where it is, and is trained there all the same. Nothing is moved
/// where Options::device_placement is false.
struct DevicePlacement {
  DevicePlacement(std::initializer_list<bool> arguments) : of(arguments) {}
  std::vector<bool> of;
};

namespace detail {

/// A scheduler of either kind, which have no base class in common.
struct Scheduler {
  torch::optim::LRScheduler* lr = nullptr;
  torch::optim::ReduceLROnPlateauScheduler* plateau = nullptr;
};

/// What one call of prepare() was given, sorted by kind; each in the order of the arguments.
struct Preparation {
  std::vector<torch::nn::Module*> models;
  std::vector<torch::Tensor> tensors;
  std::vector<torch::optim::Optimizer*> optimizers;
  std::vector<LoaderControl*> loaders;
  std::vector<Scheduler> schedulers;
  std::vector<const void*> stays;                          // models, tensors' impls, loaders, optimizers
  const char* unshareable = nullptr;                       // why a loader that torch::data made can't be shared out
  bool foreign_loader = false;                             // nothing is known of where that one stands
  std::vector<std::shared_ptr<torch::nn::Module>> owners;  // keep holders' modules during the call
};

ACCELERATE_API void prepare(const Preparation& preparation);
/// Brings what an optimizer keeps (momentum, ...) to a device.
ACCELERATE_API void move_state(torch::optim::Optimizer& optimizer, const torch::Device& device);
/// Adds what one argument was; `place`: whether it is moved.
ACCELERATE_API void append(Preparation& preparation, Preparation&& argument, bool place);
[[noreturn]] ACCELERATE_API void throw_placements(std::size_t placements, std::size_t arguments);
/// Forgets what was prepared.
ACCELERATE_API void free_memory();
/// The parameters of its models, tensors and optimizers.
ACCELERATE_API std::vector<torch::Tensor> parameters_of(const Preparation& preparation);
[[noreturn]] ACCELERATE_API void throw_null_argument(const char* kind);

/// What prepare() returns: its only argument, or a tuple of all; references for lvalues.
template <typename... Args>
struct PreparedType {
  using type = std::tuple<Args...>;
};
template <typename Arg>
struct PreparedType<Arg> {
  using type = Arg;
};
template <typename... Args>
using Prepared = typename PreparedType<Args...>::type;

template <typename>
inline constexpr bool always_false = false;

template <typename Contained>
std::true_type is_holder(const torch::nn::ModuleHolder<Contained>*);
std::false_type is_holder(...);

template <typename D, typename B, typename R>
std::true_type is_loader(const torch::data::DataLoaderBase<D, B, R>*);
std::false_type is_loader(...);

template <typename T>
struct is_owner : std::is_pointer<T> {};
template <typename T>
struct is_owner<std::shared_ptr<T>> : std::true_type {};
template <typename T, typename D>
struct is_owner<std::unique_ptr<T, D>> : std::true_type {};

template <typename T>
struct is_list : std::false_type {};
template <typename T, typename A>
struct is_list<std::vector<T, A>> : std::true_type {};
template <typename T, std::size_t N>
struct is_list<std::array<T, N>> : std::true_type {};

template <typename D, typename B, typename R>
void collect_loader(Preparation& preparation, torch::data::DataLoaderBase<D, B, R>& loader) {
  if (auto* control = dynamic_cast<LoaderControl*>(&loader)) {
    preparation.loaders.push_back(control);
  } else {
    preparation.foreign_loader = true;
    preparation.unshareable = "it is passed as its base class";
  }
}

/// Of one of torch's two classes.
template <typename Loader>
void collect_known_loader(Preparation& preparation, Loader& loader) {
  if (auto* control = dynamic_cast<LoaderControl*>(&loader)) {
    preparation.loaders.push_back(control);
    return;
  }
  const InPlace shared = share_in_place(loader);
  if (shared.control) {
    preparation.loaders.push_back(shared.control);
  } else {
    preparation.foreign_loader = true;
    preparation.unshareable = shared.reason;
  }
}

template <typename D, typename S>
void collect_loader(Preparation& preparation, torch::data::StatelessDataLoader<D, S>& loader) {
  collect_known_loader(preparation, loader);
}

template <typename D>
void collect_loader(Preparation& preparation, torch::data::StatefulDataLoader<D>& loader) {
  collect_known_loader(preparation, loader);
}

template <typename Arg>
void collect(Preparation& preparation, Arg& arg) {
  using T = std::remove_cv_t<Arg>;
  if constexpr (std::is_base_of_v<torch::nn::Module, T>) {
    preparation.models.push_back(const_cast<T*>(&arg));  // a module moves its parameters, not itself
  } else if constexpr (std::is_same_v<T, torch::nn::AnyModule>) {
    if (arg.is_empty()) {
      throw_null_argument("an empty torch::nn::AnyModule");
    }
    preparation.owners.push_back(arg.ptr());
    preparation.models.push_back(preparation.owners.back().get());
  } else if constexpr (decltype(is_holder(static_cast<T*>(nullptr)))::value) {
    if (arg.is_empty()) {
      throw_null_argument("an empty module holder");
    }
    preparation.owners.push_back(arg.ptr());
    preparation.models.push_back(preparation.owners.back().get());
  } else if constexpr (std::is_base_of_v<torch::Tensor, T>) {
    preparation.tensors.push_back(arg);
  } else if constexpr (std::is_base_of_v<torch::optim::Optimizer, T>) {
    preparation.optimizers.push_back(const_cast<T*>(&arg));
  } else if constexpr (decltype(is_loader(static_cast<T*>(nullptr)))::value) {
    collect_loader(preparation, const_cast<T&>(arg));
  } else if constexpr (std::is_base_of_v<torch::optim::LRScheduler, T>) {
    // Its steps are equal on all ranks already; a checkpoint keeps their number.
    preparation.schedulers.push_back({const_cast<T*>(&arg), nullptr});
  } else if constexpr (std::is_base_of_v<torch::optim::ReduceLROnPlateauScheduler, T>) {
    preparation.schedulers.push_back({nullptr, const_cast<T*>(&arg)});
  } else if constexpr (is_owner<T>::value) {
    if (arg == nullptr) {
      throw_null_argument("a null pointer");
    }
    collect(preparation, *arg);
  } else if constexpr (is_list<T>::value) {
    for (auto& element : arg) {
      collect(preparation, element);
    }
  } else {
    static_assert(always_false<T>,
                  "accelerate: prepare() takes modules, module holders, AnyModule, leaf tensors, optimizers, "
                  "torch::data loaders and learning-rate schedulers (and pointers to them, and vectors of "
                  "them); this argument is none of these");
  }
}

template <typename Arg>
void collect_placed(Preparation& preparation, Arg& arg, bool place) {
  Preparation argument;
  collect(argument, arg);
  append(preparation, std::move(argument), place);
}

}  // namespace detail
}  // namespace accelerate
