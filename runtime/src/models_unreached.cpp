// What a loss doesn't reach of a model, and what has waited from backwards that weren't sent.
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "group_impl.h"
#include "model.h"
#include "state.h"

namespace accelerate::detail {

namespace {

/// A gradient of zero for a parameter, of the layout that its real ones have.
at::Tensor zero_gradient(const at::Tensor& parameter, bool sparse) {
  if (!sparse) {
    return at::zeros_like(parameter);
  }
  return at::sparse_coo_tensor(at::zeros({1, 0}, parameter.options().dtype(at::kLong)),
                               at::zeros({0, parameter.size(1)}, parameter.options()), parameter.sizes());
}

}  // namespace

void Models::send_zeros(const std::vector<Reached>& reached, Roots roots) {
  for (const Reached& r : reached) {
    for (const size_t i : r.indices) {
      roots.tensors.push_back(r.model->parameters[i]);
      roots.gradients.push_back(zero_gradient(r.model->parameters[i].detach(), r.model->sparse[i]));
    }
  }
  if (!roots.tensors.empty()) {
    torch::autograd::backward(roots.tensors, roots.gradients);
  }
}

/// Lets the backward pass reach what the loss doesn't, with zeros, and gives this rank's vote.
void Models::fill_up(Reached& reached, Roots& roots) {
  Model& model = *reached.model;
  if (!model.votes.defined()) {
    return;
  }
  Model::Vote vote = Model::kWhole;
  if (reached.parameters != model.trained.size()) {
    reached.partly = true;
    reached.used.resize(model.parameters.size());
    model.before.clear();
    for (const size_t i : reached.indices) {
      reached.used[i] = true;
    }
    for (const Model::Trained& t : model.trained) {
      const at::Tensor& parameter = model.parameters[t.index];
      if (!reached.used[t.index]) {
        const at::Tensor before = parameter.grad();
        const bool waits = before.defined() && t.index < model.local.size() && model.local[t.index];
        roots.tensors.push_back(parameter);
        if (before.defined() && !waits) {
          roots.gradients.push_back(before.detach());  // from an earlier backward, equal on all ranks
          parameter.mutable_grad().reset();
        } else {
          roots.gradients.push_back(zero_gradient(parameter.detach(), model.sparse[t.index]));
        }
        if (waits) {
          reached.used[t.index] = true;
        } else {
          reached.bare.push_back(t.index);
          model.before.push_back(before);
        }
      }
    }
    vote = reached.used == model.used ? Model::kSamePart : Model::kOtherPart;
  }
  model.votes.mutable_grad().reset();
  roots.tensors.push_back(model.votes);
  const auto turn = static_cast<size_t>(state().control.batch) % Model::kTurns;
  roots.gradients.push_back(model.ballots[vote * Model::kTurns + turn]);
  model.local.clear();
}

/// Behind a backward pass that began with fill_up(): throws on all ranks if their losses were of different batches.
void Models::check_turns(Model& model) {
  if (!model.votes.defined() || !model.votes.is_cpu()) {
    return;  // a GPU's would have to be waited for; there it takes ACCELERATE_DEBUG_MODE
  }
  const at::Tensor votes = model.votes.grad().detach().to(at::kDouble);
  const double* const turns = votes.data_ptr<double>() + 2;
  if (std::count_if(turns, turns + Model::kTurns, [](double ranks) { return ranks != 0; }) == 1) {
    return;
  }
  const std::string text = c10::str("the ranks came here with different batches of their training loaders, rank ",
                                    rank(), " with number ", state().control.batch,
                                    ": one of them has left out a batch, maybe by an error that was caught there; let "
                                    "it end the program, or all ranks "
                                    "leave out the same one (check_trigger())");
  model.unfinished = text;  // gradients are mixed: no backward() comes behind this one
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(), ": backward() through ", model.name, ": ", text);
}

/// Behind a backward pass that began with fill_up(): what no rank had something to send for has the gradient that it
/// had before, or none.
void Models::take_zeros_back(Group& group, const Reached& reached) {
  Model& model = *reached.model;
  if (!reached.partly) {
    return;  // so that some rank has sent for everything
  }
  const at::Tensor votes = model.votes.grad().detach().to(at::kCPU, at::kDouble);
  if (votes[0].item<double>() != 0) {
    return;
  }
  if (votes[1].item<double>() != 0) {
    at::Tensor used = at::zeros({static_cast<int64_t>(reached.used.size())}, at::kInt);
    auto flags = used.accessor<int, 1>();
    for (size_t i = 0; i < reached.used.size(); ++i) {
      flags[static_cast<int64_t>(i)] = reached.used[i];
    }
    group.maximum(used, "the parameters of " + model.name + " that losses reach");
    model.used = reached.used;
    model.used_somewhere.assign(flags.data(), flags.data() + flags.size(0));
  }
  for (size_t k = 0; k < reached.bare.size(); ++k) {
    if (!model.used_somewhere[reached.bare[k]]) {
      model.parameters[reached.bare[k]].mutable_grad() = model.before[k];
    }
  }
  model.before.clear();
}

std::vector<torch::Tensor> Models::with_local_gradients() const {
  std::vector<torch::Tensor> result;
  for (const auto& model : models_) {
    for (size_t i = 0; i < model->local.size(); ++i) {
      if (model->local[i] && model->parameters[i].grad().defined()) {
        result.push_back(model->parameters[i]);
      }
    }
  }
  return result;
}

void Models::set_local_gradient(const torch::Tensor& parameter, const torch::Tensor& gradient) {
  parameter.mutable_grad() = gradient;
  const auto owner = owners_.find(parameter.unsafeGetTensorImpl());
  if (owner == owners_.end()) {
    return;  // alone
  }
  Model& model = *owner->second.model;
  model.local.resize(model.parameters.size());
  model.local[owner->second.index] = true;
  if (model.sparse[owner->second.index] && !gradient.is_sparse()) {
    parameter.mutable_grad() = gradient.to_sparse(/*sparse_dim=*/1);  // its reducer takes no other
  }
}

void Models::forget_local_gradients() {
  for (const at::Tensor& parameter : with_local_gradients()) {
    parameter.mutable_grad().reset();
  }
  for (const auto& model : models_) {
    model->local.clear();
    model->unsent = true;  // what a checkpoint has kept comes next
  }
}

void Models::note_local(const Reached& reached) {
  Model& model = *reached.model;
  model.local.resize(model.parameters.size());
  for (const size_t i : reached.indices) {
    model.local[i] = true;
  }
}

/// Calls `run`, which has a reducer that knows of unused parameters average the gradients that a loss reaches on any
/// rank, and what has waited for it on others. Those that none reaches now, but earlier local backwards did on some,
/// are averaged here: the reducer may know of them or not, and the mean of equal values is no other.
void Models::make_up(Group& group, const Reached& reached, const std::function<void()>& run) {
  Model& model = *reached.model;
  enum { kNothing, kWaits, kReached };
  at::Tensor states = at::zeros({static_cast<int64_t>(model.parameters.size())}, at::kInt);
  auto state_of = states.accessor<int, 1>();
  for (size_t i = 0; i < model.local.size(); ++i) {
    state_of[static_cast<int64_t>(i)] = model.local[i] && model.parameters[i].grad().defined() ? kWaits : kNothing;
  }
  for (const size_t i : reached.indices) {
    state_of[static_cast<int64_t>(i)] = kReached;
  }
  group.maximum(states, "the parameters of " + model.name + " whose gradients wait");
  std::vector<size_t> missed, none;
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const at::Tensor& parameter = model.parameters[i];
    const int state = state_of[static_cast<int64_t>(i)];
    if (state == kWaits) {
      missed.push_back(i);
    } else if (state == kNothing && !parameter.grad().defined()) {
      none.push_back(i);
    }
    if (state != kReached && i < model.local.size() && model.local[i] && !parameter.grad().defined()) {
      // A reducer that knows of it wants one.
      parameter.mutable_grad() = zero_gradient(parameter.detach(), model.sparse[i]);
    }
  }
  model.local.clear();
  model.unsent = false;
  run();
  for (const size_t i : none) {
    model.parameters[i].mutable_grad().reset();
  }
  for (const size_t i : missed) {
    at::Tensor& gradient = model.parameters[i].mutable_grad();
    if (!gradient.defined()) {
      gradient = at::zeros_like(model.parameters[i].detach());
    }
    const bool complex = gradient.is_complex();
    at::Tensor total = plain(gradient.is_sparse() ? gradient.to_dense() : gradient).contiguous().clone();
    group.sum(total, "the gradient of " + model.names[i]);
    total.div_(group.impl().environment.world_size);
    gradient = complex ? at::view_as_complex(total) : total;
  }
}

}  // namespace accelerate::detail
