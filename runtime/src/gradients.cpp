#include "gradients.h"

#include <torch/types.h>

#include <algorithm>

#include "graph.h"
#include "group.h"
#include "state.h"

namespace accelerate::detail {
namespace {

/// A sum in which either term may be undefined. A sparse gradient comes second: dense + sparse is dense.
at::Tensor plus(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) {
    return a.defined() ? a : b;
  }
  return a.is_sparse() ? b + a : a + b;
}

at::Tensor times(const at::Tensor& x, double factor) { return factor == 1 || !x.defined() ? x : x * factor; }

/// The numbers of a gradient, as an operation in place takes them.
at::Tensor values(const at::Tensor& gradient) {
  const at::Tensor x = gradient.detach();
  if (x.is_sparse()) {
    return x._values();
  }
  return x.is_complex() ? at::view_as_real(x) : x;
}

}  // namespace

void Gradients::forget_dead() {
  std::vector<Parameter> living;
  for (Parameter& p : parameters_) {
    if (!p.tensor.expired()) {
      living.push_back(std::move(p));
    }
  }
  if (living.size() == parameters_.size()) {
    parameters_ = std::move(living);
    return;
  }
  parameters_ = std::move(living);
  numbers_.clear();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    numbers_[parameters_[i].lock().unsafeGetTensorImpl()] = i;
  }
}

void Gradients::add(const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  forget_dead();
  for (const auto& [name, tensor] : parameters) {
    if (tensor.defined() && numbers_.emplace(tensor.unsafeGetTensorImpl(), parameters_.size()).second) {
      parameters_.emplace_back(tensor, name, models_);
    }
  }
  ++models_;
}

Gradients::Reached Gradients::reach(const at::Tensor& loss) const {
  std::vector<bool> direct(parameters_.size()), model(models_);
  visit_leaves(loss, [&](const at::Tensor& leaf) {
    const auto it = numbers_.find(leaf.unsafeGetTensorImpl());
    if (it != numbers_.end()) {
      direct[it->second] = true;
      model[parameters_[it->second].model] = true;
    }
  });
  Reached reached;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (direct[i]) {
      reached.parameters.push_back(i);
    } else if (model[parameters_[i].model] && !parameters_[i].tensor.expired()) {
      reached.others.push_back(i);
    }
  }
  return reached;
}

void Gradients::hide() {
  at::NoGradGuard no_grad;
  for (Parameter& p : parameters_) {
    const at::Tensor tensor = p.lock();
    if (tensor.defined() && tensor.grad().defined()) {
      p.complete = plus(p.complete, tensor.grad());
      tensor.mutable_grad().reset();
    }
  }
}

void Gradients::show(const Reached& reached, int normaliser) {
  for (const size_t i : reached.parameters) {
    parameters_[i].lock().mutable_grad() = std::move(parameters_[i].parts[normaliser]);
  }
}

void Gradients::hide(const Reached& reached, int normaliser) {
  for (const size_t i : reached.parameters) {
    Parameter& p = parameters_[i];
    const at::Tensor tensor = p.lock();
    p.parts[normaliser] = std::move(tensor.mutable_grad());
    p.kept = true;
    tensor.mutable_grad().reset();
  }
}

void Gradients::unfold(const Reached& reached, const Window& window, int normaliser, double scale) {
  at::NoGradGuard no_grad;
  for (Parameter& p : parameters_) {
    if (p.complete.defined()) {
      if (const at::Tensor tensor = p.lock(); tensor.defined()) {
        tensor.mutable_grad() = plus(tensor.grad(), p.complete);
      }
      p.complete.reset();
    }
  }
  const auto unfold_one = [&](size_t i) {
    Parameter& p = parameters_[i];
    const at::Tensor tensor = p.lock();
    at::Tensor sum = times(tensor.grad(), scale);
    p.kept = false;
    for (auto it = p.parts.begin(); it != p.parts.end();) {
      // The other weighted losses of this batch come with their own weights.
      if (it->first < kWeights || it->first == normaliser) {
        sum = plus(sum, times(it->second, window.final_factor(it->first)));
        it = p.parts.erase(it);
      } else {
        p.kept = true;
        ++it;
      }
    }
    tensor.mutable_grad() = sum;
  };
  std::for_each(reached.parameters.begin(), reached.parameters.end(), unfold_one);
  std::for_each(reached.others.begin(), reached.others.end(), unfold_one);
}

bool Gradients::unscale(const Reached& reached, double scale, Group* group) {
  at::NoGradGuard no_grad;
  std::map<at::Device, std::map<at::ScalarType, std::vector<at::Tensor>>,
           bool (*)(const at::Device&, const at::Device&)>
      gradients([](const at::Device& a, const at::Device& b) {
        return std::make_pair(a.type(), a.index()) < std::make_pair(b.type(), b.index());
      });
  const auto collect = [&](size_t i) {
    const at::Tensor tensor = parameters_[i].lock();
    if (tensor.defined() && tensor.grad().defined()) {
      const at::Tensor x = values(tensor.grad());
      gradients[x.device()][x.scalar_type()].push_back(x);
    }
  };
  std::for_each(reached.parameters.begin(), reached.parameters.end(), collect);
  std::for_each(reached.others.begin(), reached.others.end(), collect);
  at::Tensor found = at::zeros({1}, at::kFloat);
  for (auto& [device, types] : gradients) {
    const auto options = at::TensorOptions(device).dtype(at::kFloat);
    at::Tensor here = at::zeros({1}, options);
    const at::Tensor inverse = at::full({1}, 1 / scale, options);
    for (auto& [type, tensors] : types) {
      at::_amp_foreach_non_finite_check_and_unscale_(tensors, here, inverse);
    }
    found = at::maximum(found, here.cpu());
  }
  if (group) {
    group->maximum(found, "the overflow of gradients");
  }
  return found.item<float>() != 0;
}

void Gradients::drop() {
  for (const Parameter& p : parameters_) {
    if (const at::Tensor tensor = p.lock(); tensor.defined()) {
      tensor.mutable_grad().reset();
    }
  }
}

void Gradients::forget() {
  for (Parameter& p : parameters_) {
    p.kept = false;
    p.complete.reset();
    p.parts.clear();
  }
}

void Gradients::check_empty() {
  std::vector<std::string> names;
  for (const Parameter& p : parameters_) {
    if (p.kept && !p.tensor.expired()) {
      names.push_back(p.name);
    }
  }
  forget();
  TORCH_CHECK(names.empty(), "[accelerate] rank ", rank(), " of ", ranks(),
              ": accumulate(): the last batch of the window had no backward() for a model that earlier ones had, so "
              "that these parameters' gradients came to nothing: ",
              c10::Join(", ", names),
              "; call backward() with the same losses for every batch of a window (its last is the one where "
              "accelerator.sync_gradients() is true)");
}

}  // namespace accelerate::detail
