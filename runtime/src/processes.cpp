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
  if (!first_ && !detail::state().alone()) {
    check(meet(false));
  }
}

ProcessFirst::~ProcessFirst() noexcept(false) {
  if (!first_ || detail::state().alone()) {
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
namespace {

torch::Tensor padded(const torch::Tensor& x, int64_t dim, int64_t size, const torch::Scalar& pad_index,
                     bool pad_first) {
  if (x.size(dim) == size) {
    return x;
  }
  std::vector<int64_t> shape = x.sizes().vec();
  shape[static_cast<size_t>(dim)] = size - x.size(dim);
  const at::Tensor padding = torch::full(shape, pad_index, x.options().requires_grad(false));
  return pad_first ? torch::cat({padding, x}, dim) : torch::cat({x, padding}, dim);
}

}  // namespace

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
  return padded(x, d, longest, pad_index, pad_first);
}

void pad_tensors(const std::vector<torch::Tensor*>& tensors, int64_t dim, const torch::Scalar& pad_index,
                 bool pad_first) {
  State& s = state();
  if (s.alone()) {
    return;
  }
  const auto count = static_cast<int64_t>(tensors.size());
  for (const at::Tensor& other : s.group->gather(torch::tensor({count}, torch::kInt64), "numbers of tensors")) {
    TORCH_CHECK(other.item<int64_t>() == count, "[accelerate] rank ", rank(), " of ", ranks(),
                ": pad_across_processes() was given ", count, " tensors here, and ", other.item<int64_t>(),
                " on another rank");
  }
  if (count == 0) {
    return;
  }
  constexpr int64_t kNone = -1;
  std::vector<int64_t> sizes, dimensions;
  for (const torch::Tensor* x : tensors) {
    const int64_t dims = x->defined() ? x->dim() : 0, d = dim < 0 ? dim + dims : dim;
    dimensions.push_back(d >= 0 && d < dims ? d : kNone);
    sizes.push_back(dimensions.back() == kNone ? kNone : x->size(d));
    sizes.push_back(dims);
  }
  std::vector<int64_t> longest(tensors.size(), kNone);
  for (const at::Tensor& other : s.group->gather(torch::tensor(sizes, torch::kInt64), "sizes")) {
    const auto* theirs = other.data_ptr<int64_t>();
    for (size_t i = 0; i < tensors.size(); ++i) {
      TORCH_CHECK(theirs[2 * i + 1] == sizes[2 * i + 1], "[accelerate] rank ", rank(), " of ", ranks(),
                  ": pad_across_processes(): tensor ", i, " has ", sizes[2 * i + 1], " dimensions here, and ",
                  theirs[2 * i + 1], " on another rank");
      longest[i] = std::max(longest[i], theirs[2 * i]);
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (dimensions[i] != kNone) {
      *tensors[i] = padded(*tensors[i], dimensions[i], longest[i], pad_index, pad_first);
    }
  }
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
