#include <accelerate/accelerator.h>

#include <algorithm>

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

}  // namespace

void throw_null_argument(const char* kind) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), ": prepare() was given ", kind);
}

void prepare(const Preparation& preparation) {
  State& s = state();
  if (s.device_requested) {
    for (torch::nn::Module* module : preparation.models) {
      move(*module, s.device);
    }
  }
  for (const torch::Tensor& x : preparation.tensors) {
    TORCH_CHECK(x.defined() && x.is_leaf() && x.requires_grad(), "[accelerate] rank ", rank(),
                ": prepare() takes tensors that are parameters: leaves that require a gradient");
    if (s.device_requested && !on(x, s.device)) {
      x.set_data(x.detach().to(s.device));
    }
  }
  for (LoaderControl* loader : preparation.loaders) {
    loader->deliver_to_device();
    if (std::find(s.loaders.begin(), s.loaders.end(), loader) == s.loaders.end()) {
      s.loaders.push_back(loader);
    }
  }
  if (s.alone()) {
    return;
  }
  TORCH_CHECK(
      !preparation.unshareable, "[accelerate] rank ", rank(), " of ", ranks(),
      ": a loader of torch::data::make_data_loader gives every rank all rows, and this one can't be shared out "
      "any more: ",
      preparation.unshareable,
      "; make it with accelerate::make_data_loader, or accelerate::make_evaluation_data_loader (same arguments)");
  agree_on_random_state();
  for (const torch::nn::Module* module : preparation.models) {
    s.models.add(*s.group, *module);
  }
  if (!preparation.tensors.empty()) {
    s.models.add(*s.group, preparation.tensors, "tensors");
  }
  for (torch::optim::Optimizer* optimizer : preparation.optimizers) {
    std::vector<torch::Tensor> parameters;
    for (const auto& group : optimizer->param_groups()) {
      parameters.insert(parameters.end(), group.params().begin(), group.params().end());
    }
    s.models.add(*s.group, parameters, "the optimizer's parameters");
  }
}

namespace {

/// The factor that makes the average over N ranks, which the reducers compute, what the loss means.
void backward_with(const torch::Tensor& loss, double coefficient, const BackwardArguments& arguments) {
  State& s = state();
  s.models.backward(*s.group, loss, coefficient, arguments);
}

double mean_coefficient() {
  const State& s = state();
  if (!s.training_loader) {
    return 1;
  }
  // Exactly 1 where the rows divide evenly: then the loss isn't touched.
  return holds_ghost()
             ? 0
             : static_cast<double>(s.training_slice.rows * ranks()) / static_cast<double>(s.training_slice.global_rows);
}

}  // namespace
}  // namespace detail

void Accelerator::backward(const torch::Tensor& loss, const torch::Tensor& gradient, std::optional<bool> retain_graph,
                           bool create_graph, std::optional<torch::TensorList> inputs) const {
  backward_reduced(loss, Reduction::Mean, gradient, retain_graph, create_graph, inputs);
}

void Accelerator::backward_reduced(const torch::Tensor& loss, Reduction reduction, const torch::Tensor& gradient,
                                   std::optional<bool> retain_graph, bool create_graph,
                                   std::optional<torch::TensorList> inputs) const {
  if (detail::alone()) {
    loss.backward(gradient, retain_graph, create_graph, inputs);
    return;
  }
  const double sum_coefficient = detail::holds_ghost() ? 0 : static_cast<double>(detail::ranks());
  detail::backward_with(loss, reduction == Reduction::Sum ? sum_coefficient : detail::mean_coefficient(),
                        {gradient, retain_graph, create_graph, inputs});
}

void Accelerator::backward(const torch::Tensor& loss, const Weight& weight, const torch::Tensor& gradient,
                           std::optional<bool> retain_graph, bool create_graph,
                           std::optional<torch::TensorList> inputs) const {
  if (detail::alone()) {
    loss.backward(gradient, retain_graph, create_graph, inputs);
    return;
  }
  const double mine = detail::holds_ghost() ? 0 : weight.value;
  const double total = detail::reduce(mine);
  const double coefficient = total == 0 ? 0 : mine * static_cast<double>(detail::ranks()) / total;
  detail::backward_with(loss, coefficient, {gradient, retain_graph, create_graph, inputs});
}

}  // namespace accelerate
