#include <accelerate/collectives.h>
#include <accelerate/processes.h>

#include <algorithm>
#include <exception>

#include "outcome.h"
#include "state.h"

namespace accelerate {
namespace {

/// All ranks meet; returns whether any of them says that it failed.
bool meet(bool failed) {
  at::Tensor flag = torch::scalar_tensor(failed ? 1 : 0, torch::kInt64);
  detail::state().group->maximum(flag, "the end of main_process_first()");
  return flag.item<int64_t>() != 0;
}

void check(bool failed) {
  TORCH_CHECK(!failed, "[accelerate] rank ", detail::rank(), " of ", detail::ranks(),
              ": main_process_first(): an exception ended the part of a process that went first (its own error says "
              "why)");
}

}  // namespace

ProcessFirst::ProcessFirst(bool first) : first_(first), exceptions_(std::uncaught_exceptions()) {
  if (!first_ && !detail::alone()) {
    check(meet(false));
  }
}

ProcessFirst::~ProcessFirst() noexcept(false) {
  if (!first_ || detail::alone()) {
    return;
  }
  if (std::uncaught_exceptions() == exceptions_) {
    check(meet(false));
    return;
  }
  try {
    meet(true);
  } catch (const std::exception&) {
    // The exception that is on its way says more.
  }
}

namespace detail {

void once(const std::function<void()>& action) {
  wait_for_everyone();  // others may still be reading the files as they were
  together("once()", [&] {
    if (state().alone() || rank() == 0) {
      action();
    }
  });
}

void set_trigger() { state().control.trigger = true; }

bool check_trigger() {
  State& s = state();
  bool pulled = std::exchange(s.control.trigger, false);
  if (!s.alone()) {
    at::Tensor flag = torch::scalar_tensor(pulled ? 1 : 0, torch::kInt64);
    s.group->maximum(flag, "check_trigger()");
    pulled = flag.item<int64_t>() != 0;
  }
  return pulled;
}

torch::Tensor pad_across_processes(const torch::Tensor& x, int64_t dim, const torch::Scalar& pad_index,
                                   bool pad_first) {
  State& s = state();
  const int64_t dimensions = x.defined() ? x.dim() : -1;
  const int64_t d = dim < 0 ? dim + dimensions : dim;
  const bool inside = d >= 0 && d < dimensions;
  if (s.alone()) {
    TORCH_CHECK(x.defined(), "[accelerate] pad_across_processes() was given an undefined tensor");
    TORCH_CHECK(inside, "[accelerate] pad_across_processes(): there is no dimension ", dim, " in ", x.sizes());
    return x;
  }
  const at::Tensor mine = torch::tensor({inside ? x.size(d) : int64_t{-1}, dimensions}, torch::kInt64);
  int64_t longest = 0;
  bool same = true;
  for (const at::Tensor& other : s.group->gather(mine, "sizes")) {
    const int64_t size = other[0].item<int64_t>();
    TORCH_CHECK(other[1].item<int64_t>() >= 0, "[accelerate] rank ", rank(), " of ", ranks(),
                ": pad_across_processes(): a rank's tensor is undefined");
    same = same && other[1].item<int64_t>() == dimensions && size >= 0;
    longest = std::max(longest, size);
  }
  TORCH_CHECK(same, "[accelerate] rank ", rank(), " of ", ranks(),
              ": pad_across_processes(): a rank's tensor has no dimension ", dim,
              ", or another number of dimensions; this one's is ", x.sizes());
  if (x.size(d) == longest) {
    return x;
  }
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<size_t>(d)] = longest - x.size(d);
  const at::Tensor padding = torch::full(shape, pad_index, x.options().requires_grad(false));
  return pad_first ? torch::cat({padding, x}, d) : torch::cat({x, padding}, d);
}

int64_t scheduler_steps() {
  const TrainingControl& control = state().control;
  return control.window.sync() && !optimizer_step_was_skipped() ? control.scheduler_steps : 0;
}

Part part_of(int64_t length, bool apply_padding) {
  Part part;
  if (!apply_padding) {
    const int64_t each = length / ranks(), longer = length % ranks();
    part.begin = rank() * each + std::min(rank(), longer);
    part.size = each + (rank() < longer ? 1 : 0);
    return part;
  }
  const int64_t each = (length + ranks() - 1) / ranks();
  part.begin = std::min(length, rank() * each);
  part.size = std::min(length - part.begin, each);
  part.padding = each - part.size;
  return part;
}

torch::Tensor split_tensor(const torch::Tensor& whole, bool apply_padding) {
  TORCH_CHECK(whole.dim() > 0, "[accelerate] rank ", rank(), " of ", ranks(),
              ": split_between_processes() can't split a tensor without dimensions");
  const Part part = part_of(whole.size(0), apply_padding);
  const torch::Tensor own = whole.narrow(0, part.begin, part.size);
  if (part.padding == 0) {
    return own;
  }
  std::vector<int64_t> shape = whole.sizes().vec();
  shape[0] = part.padding;
  return torch::cat({own, whole.narrow(0, whole.size(0) - 1, 1).expand(shape)});
}

void throw_unequal_lengths(int64_t a, int64_t b) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(),
              ": split_between_processes(): the values of a map have ", a, " and ", b,
              " elements; they must have equally many");
}

}  // namespace detail
}  // namespace accelerate
