#include <accelerate/accelerator.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "../recorder/hooks.h"
#include "state.h"

namespace accelerate {
namespace detail {
namespace {

bool on(const torch::Tensor& x, const torch::Device& device) {
  return x.device().type() == device.type() && (!device.has_index() || x.device().index() == device.index());
}

void move(torch::nn::Module& module, const torch::Device& device) {
  bool there = true;
  for (const torch::Tensor& x : module.parameters()) {
    there = there && (!x.defined() || on(x, device));
  }
  for (const torch::Tensor& x : module.buffers()) {
    there = there && (!x.defined() || on(x, device));
  }
  if (!there) {
    module.to(device);
  }
}

std::vector<torch::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<torch::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  return parameters;
}

std::optional<torch::Device> device_of(const torch::optim::Optimizer& optimizer) {
  const std::vector<torch::Tensor> parameters = parameters_of(optimizer);
  return parameters.empty() || !parameters[0].defined() ? std::nullopt : std::optional(parameters[0].device());
}

/// In the order in which models get their reducers, so that parameters belong together as they do there.
void look_after_gradients(Gradients& gradients, const Preparation& preparation) {
  using Named = std::vector<std::pair<std::string, at::Tensor>>;
  const auto add = [&](const std::vector<torch::Tensor>& tensors, const std::string& name) {
    Named parameters;
    for (const torch::Tensor& x : tensors) {
      parameters.emplace_back(name + " " + std::to_string(parameters.size()), x);
    }
    gradients.add(parameters);
  };
  for (const torch::nn::Module* module : preparation.models) {
    Named parameters;
    for (const auto& item : module->named_parameters()) {
      parameters.emplace_back(item.key(), item.value());
    }
    gradients.add(parameters);
  }
  add(preparation.tensors, "tensor");
  for (const torch::optim::Optimizer* optimizer : preparation.optimizers) {
    add(parameters_of(*optimizer), "the optimizer's parameter");
  }
}

void tell_recorder(const Preparation& preparation) {
  if (!accelerate_recorder_name) {
    return;
  }
  // Two models may have parameters of one name.
  const bool several = preparation.models.size() > 1;
  int64_t number = 0;
  for (const torch::nn::Module* module : preparation.models) {
    const std::string prefix = several ? "model " + std::to_string(++number) + ": " : "";
    for (const auto& item : module->named_parameters()) {
      accelerate_recorder_name(item.value(), (prefix + item.key()).c_str());
    }
    for (const auto& item : module->named_buffers()) {
      accelerate_recorder_name(item.value(), (prefix + item.key()).c_str());
    }
  }
}

}  // namespace

void throw_null_argument(const char* kind) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), ": prepare() was given ", kind);
}

std::vector<torch::Tensor> parameters_of(const Preparation& preparation) {
  std::vector<torch::Tensor> parameters = preparation.tensors;
  const auto append = [&](const std::vector<torch::Tensor>& more) {
    parameters.insert(parameters.end(), more.begin(), more.end());
  };
  for (const torch::nn::Module* module : preparation.models) {
    append(module->parameters());
  }
  for (const torch::optim::Optimizer* optimizer : preparation.optimizers) {
    append(parameters_of(*optimizer));
  }
  if (parameters.empty() && !preparation.models.empty()) {
    parameters.push_back(torch::empty({0}));  // nobody's: no parameters at all would mean all models'
  }
  return parameters;
}

void append(Preparation& preparation, Preparation&& argument, bool place) {
  if (!place) {
    for (const torch::nn::Module* model : argument.models) {
      preparation.stays.push_back(model);
    }
    for (const torch::Tensor& x : argument.tensors) {
      preparation.stays.push_back(x.unsafeGetTensorImpl());
    }
    for (const LoaderControl* loader : argument.loaders) {
      preparation.stays.push_back(loader);
    }
    for (const torch::optim::Optimizer* optimizer : argument.optimizers) {
      preparation.stays.push_back(optimizer);
    }
  }
  const auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_all(argument.models, preparation.models);
  move_all(argument.tensors, preparation.tensors);
  move_all(argument.optimizers, preparation.optimizers);
  move_all(argument.loaders, preparation.loaders);
  move_all(argument.schedulers, preparation.schedulers);
  move_all(argument.owners, preparation.owners);
  preparation.unshareable = preparation.unshareable ? preparation.unshareable : argument.unshareable;
  preparation.foreign_loader = preparation.foreign_loader || argument.foreign_loader;
}

void throw_placements(std::size_t placements, std::size_t arguments) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), ": prepare() was given ", placements, " placements for ", arguments,
              " arguments");
}

void move_state(torch::optim::Optimizer& optimizer, const torch::Device& device) {
  if (optimizer.state().empty()) {
    return;
  }
  // Each optimizer has a type of state of its own, and all can save and load it.
  std::stringstream bytes;
  torch::serialize::OutputArchive out;
  optimizer.save(out);
  out.save_to(bytes);
  torch::serialize::InputArchive in;
  in.load_from(bytes, device);
  optimizer.load(in);
}

void prepare(const Preparation& preparation) {
  State& s = state();
  TORCH_CHECK(
      !preparation.unshareable || s.alone(), "[accelerate] rank ", rank(), " of ", ranks(),
      ": a loader of torch::data::make_data_loader gives every rank all rows, and this one can't be shared out "
      "any more: ",
      preparation.unshareable,
      "; make it with accelerate::make_data_loader, or accelerate::make_evaluation_data_loader (same arguments)");
  const auto stays = [&](const void* object) {
    return !s.options.device_placement ||
           std::find(preparation.stays.begin(), preparation.stays.end(), object) != preparation.stays.end();
  };
  for (torch::nn::Module* module : preparation.models) {
    if (s.device_requested && !stays(module)) {
      move(*module, s.device);
    }
  }
  for (const torch::Tensor& x : preparation.tensors) {
    TORCH_CHECK(x.defined() && x.is_leaf() && x.requires_grad(), "[accelerate] rank ", rank(),
                ": prepare() takes tensors that are parameters: leaves that require a gradient");
    if (s.device_requested && !stays(x.unsafeGetTensorImpl()) && !on(x, s.device)) {
      x.set_data(x.detach().to(s.device));
    }
  }
  for (torch::optim::Optimizer* optimizer : preparation.optimizers) {
    const auto device = device_of(*optimizer);
    if (s.device_requested && device && !device->is_cpu() && !stays(optimizer)) {
      move_state(*optimizer, *device);
    }
  }
  for (LoaderControl* loader : preparation.loaders) {
    if (!stays(loader)) {
      loader->deliver_to_device();
    }
  }
  if (s.control.active()) {
    look_after_gradients(s.control.gradients, preparation);
  }
  s.prepared.add(preparation);
  tell_recorder(preparation);
  if (s.alone()) {
    return;
  }
  s.control.check_same(*s.group, s.options.dataloader);
  agree_on_random_state();
  for (const torch::nn::Module* module : preparation.models) {
    s.models.add(*s.group, *module);
  }
  if (!preparation.tensors.empty()) {
    s.models.add(*s.group, preparation.tensors, "tensors");
  }
  for (torch::optim::Optimizer* optimizer : preparation.optimizers) {
    s.models.add(*s.group, parameters_of(*optimizer), "the optimizer's parameters");
  }
}

}  // namespace detail
}  // namespace accelerate
