/// Accelerator::backward(): how a loss counts, and the steps around the backward pass of one.

#include <ATen/autocast_mode.h>
#include <accelerate/accelerator.h>

#include "recorded.h"
#include "state.h"

namespace accelerate {
namespace detail {
namespace {

/// A backward pass computes in the types of its forward pass. And the casts of weights that autocast has kept are of
/// no more use: the optimizer is about to change the weights, maybe under the same guard.
class NoAutocast {
 public:
  NoAutocast() {
    for (size_t i = 0; i < std::size(kDevices); ++i) {
      enabled_[i] = at::autocast::is_autocast_enabled(kDevices[i]);
      at::autocast::set_autocast_enabled(kDevices[i], false);
    }
  }
  ~NoAutocast() {
    at::autocast::clear_cache();
    for (size_t i = 0; i < std::size(kDevices); ++i) {
      at::autocast::set_autocast_enabled(kDevices[i], enabled_[i]);
    }
  }
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  static constexpr at::DeviceType kDevices[] = {at::kCPU, at::kCUDA};
  bool enabled_[std::size(kDevices)];
};

/// loss.backward() times `coefficient`; with other ranks averaged over them, unless `local`.
void propagate(const at::Tensor& loss, double coefficient, bool local, const BackwardArguments& arguments) {
  State& s = state();
  if (!s.alone()) {
    s.models.backward(*s.group, loss, coefficient, local, arguments);
    return;
  }
  if (coefficient == 0) {
    return;  // a weight of zero: zero times not-a-number isn't zero
  }
  at::Tensor gradient = arguments.gradient;
  if (coefficient != 1) {
    gradient = gradient.defined() ? gradient * coefficient : at::full_like(loss.detach(), coefficient);
  }
  loss.backward(gradient, arguments.retain_graph, arguments.create_graph, arguments.inputs);
}

/// Which step a backward belongs to, as far as that can be known.
std::pair<int, int64_t> step_in_hand(TrainingControl& control, bool loader) {
  // A backward between two batches of a window mustn't change the scale of what is kept.
  if (control.accumulates() || !control.window.sync()) {
    return {0, control.window.number()};
  }
  return loader ? std::make_pair(1, control.batch) : std::make_pair(2, ++control.calls);
}

/// A batch of a window that doesn't end with it.
void gather_part(TrainingControl& control, const Gradients::Reached& reached, const at::Tensor& loss,
                 double coefficient, int normaliser, const BackwardArguments& arguments) {
  control.gradients.hide();
  control.gradients.show(reached, normaliser);
  try {
    propagate(loss, coefficient * control.window.part(normaliser), /*local=*/true, arguments);
  } catch (...) {
    control.gradients.hide(reached, normaliser);
    throw;
  }
  control.gradients.hide(reached, normaliser);
}

}  // namespace

void run_backward(const at::Tensor& loss, double coefficient, int normaliser, const BackwardArguments& arguments) {
  const RecordedBackward recorded(loss, arguments.gradient, coefficient / static_cast<double>(ranks()));
  State& s = state();
  TrainingControl& control = s.control;
  control.shards_join = false;
  control.factor = static_cast<double>(ranks());
  s.gone_slice.reset();  // another training goes on, without a loader so far
  std::optional<NoAutocast> no_autocast;
  if (control.precision != "no") {
    no_autocast.emplace();
  }
  const bool windowed = control.accumulates();
  const bool plain = (!windowed && !control.scaler) || !loss.grad_fn();
  const Gradients::Reached reached = plain ? Gradients::Reached{} : control.gradients.reach(loss);
  if (plain || reached.parameters.empty()) {
    if (s.alone()) {
      loss.backward(arguments.gradient, arguments.retain_graph, arguments.create_graph, arguments.inputs);
    } else {
      s.models.backward(*s.group, loss, coefficient, /*local=*/false, arguments);
    }
    return;
  }
  TORCH_CHECK(!arguments.inputs, "[accelerate] rank ", rank(), " of ", ranks(),
              ": backward() with `inputs` can't be used within accumulate() or with mixed_precision \"fp16\"; compute "
              "these gradients with torch::autograd::grad()");
  double scale = 1;
  if (control.scaler) {
    const auto step = step_in_hand(control, s.training_loader != nullptr);
    if (control.unsynced_before && step.first != 0) {
      control.scaler->go_on(step);  // gradients of no_sync() wait for this one: a step has them all, or isn't made
    } else {
      control.scaler->begin(step);
    }
    control.unsynced_before = false;
    scale = control.scaler->scale();
  }
  coefficient *= scale;
  control.factor *= scale;
  if (windowed) {
    control.factor *= control.window.sync() ? control.window.last_part(normaliser) : control.window.part(normaliser);
  }
  if (windowed && !control.window.sync()) {
    gather_part(control, reached, loss, coefficient, normaliser, arguments);
    return;
  }
  control.gradients.unfold(reached, control.window, normaliser, scale);
  propagate(loss, windowed ? coefficient * control.window.last_part(normaliser) : coefficient, /*local=*/false,
            arguments);
  if (control.scaler) {
    control.scaler->record(control.gradients.unscale(reached, scale, s.group.get()));
    if (control.scaler->overflowed()) {
      control.gradients.drop();
    }
  }
}

torch::Tensor gradient(const torch::Tensor& x) {
  const at::Tensor gradient = x.grad();
  const double factor = state().control.factor;
  return gradient.defined() && factor != 1 && factor != 0 ? gradient / factor : gradient;
}

namespace {

double mean_coefficient() {
  const State& s = state();
  if (!s.training_loader) {
    return 1;
  }
  if (s.alternating && s.other_at == s.handed_out_at) {
    // Equal parts of both batches on each rank are the same for either.
    const int64_t rows = s.training_slice.global_rows, others = s.other_slice.global_rows;
    TORCH_CHECK(rows == others || (rows % ranks() == 0 && others % ranks() == 0), "[accelerate] rank ", rank(), " of ",
                ranks(), ": backward() of a mean loss in a loop that takes batches from two training loaders, here of ",
                others, " and ", rows,
                " rows: which of them it is a mean over isn't known, and the ranks' parts of them differ; say what it "
                "counts for: accelerator.backward(loss, accelerate::Weight(rows)) with the rows of its batch on this "
                "rank, for each loss");
  }
  // Exactly 1 where the rows divide evenly: then the loss isn't touched.
  return s.training_slice.ghost
             ? 0
             : static_cast<double>(s.training_slice.rows * ranks()) / static_cast<double>(s.training_slice.global_rows);
}

/// Alone, outside of windows and without a scale, nothing is to be known about a loss.
bool counts() { return !state().alone() || state().control.active(); }

}  // namespace
}  // namespace detail

void Accelerator::backward(const torch::Tensor& loss, const torch::Tensor& gradient, std::optional<bool> retain_graph,
                           bool create_graph, std::optional<torch::TensorList> inputs) const {
  backward_reduced(loss, Reduction::Mean, gradient, retain_graph, create_graph, inputs);
}

void Accelerator::backward_reduced(const torch::Tensor& loss, Reduction reduction, const torch::Tensor& gradient,
                                   std::optional<bool> retain_graph, bool create_graph,
                                   std::optional<torch::TensorList> inputs) const {
  ++detail::state().steps;
  detail::state().control.note_no_sync();
  const detail::BackwardArguments arguments{gradient, retain_graph, create_graph, inputs};
  if (!detail::counts()) {
    detail::run_backward(loss, 1, detail::kNothing, arguments);
    return;
  }
  if (reduction == Reduction::Mean) {
    detail::run_backward(loss, detail::mean_coefficient(), detail::kRows, arguments);
  } else {
    const bool ghost = detail::state().training_slice.ghost;
    detail::run_backward(loss, ghost ? 0 : static_cast<double>(detail::ranks()), detail::kNothing, arguments);
  }
}

void Accelerator::backward(const torch::Tensor& loss, const Weight& weight, const torch::Tensor& gradient,
                           std::optional<bool> retain_graph, bool create_graph,
                           std::optional<torch::TensorList> inputs) const {
  ++detail::state().steps;
  const detail::BackwardArguments arguments{gradient, retain_graph, create_graph, inputs};
  detail::TrainingControl& control = detail::state().control;
  control.note_no_sync();
  if (detail::state().alone() && !control.accumulates()) {
    detail::run_backward(loss, 1, detail::kNothing, arguments);
    return;
  }
  const double mine = detail::state().training_slice.ghost ? 0 : weight.value;
  const double total = detail::reduce(mine);
  const double coefficient = total == 0 ? 0 : mine * static_cast<double>(detail::ranks()) / total;
  const int normaliser = control.accumulates() ? control.window.add_weight(total) : detail::kNothing;
  detail::run_backward(loss, coefficient, normaliser, arguments);
}

}  // namespace accelerate
