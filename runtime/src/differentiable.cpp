/// Collectives that a gradient flows through.
///
/// The ranks' losses are parts of the original's, or each counts with its weight in backward(): the weights add up to
/// one. So a value that all ranks have whole gets parts of its gradient on each, and the sum over the ranks is the
/// gradient of what it was made of: the adjoint of a sum to all ranks is a sum to all ranks.

#include <accelerate/accelerator.h>
#include <torch/csrc/autograd/custom_function.h>

#include <atomic>

#include "collectives_impl.h"
#include "graph.h"
#include "state.h"

namespace accelerate::detail {
namespace {

/// Set on this thread, read on those of the autograd engine.
std::atomic<bool> no_part = false;

at::Tensor summed(const at::Tensor& x, const char* name) {
  std::vector<at::Tensor> sum{x};
  sum_tensors(sum, name);
  return sum[0];
}

at::Tensor summed_gradient(const at::Tensor& gradient, const char* name) {
  return summed(no_part ? at::zeros_like(gradient) : gradient, name);
}

struct AllReduce : torch::autograd::Function<AllReduce> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return summed(x, "all_reduce()");
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {summed_gradient(gradients[0], "all_reduce()'s gradient")};
  }
};

struct AllGather : torch::autograd::Function<AllGather> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows) {
    const State& s = state();
    const GatheredRows gathered =
        gather_rows(rows, s.training_loader && !s.evaluating() ? &s.training_slice : &s.last_slice, "all_gather()");
    context->saved_data["begin"] = gathered.begin;
    context->saved_data["count"] = gathered.count;
    context->saved_data["local"] = rows.size(0);
    return gathered.rows;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor whole = summed_gradient(gradients[0], "all_gather()'s gradient");
    const int64_t count = context->saved_data["count"].toInt();
    const int64_t local = context->saved_data["local"].toInt();
    const at::Tensor mine = whole.narrow(0, context->saved_data["begin"].toInt(), count);
    if (count == local) {
      return {mine};
    }
    std::vector<int64_t> sizes = whole.sizes().vec();  // a ghost's rows, or padding, have no part in it
    sizes[0] = local;
    at::Tensor gradient = whole.new_zeros(sizes);
    gradient.narrow(0, 0, count).copy_(mine);
    return {gradient};
  }
};

}  // namespace

bool meets_ranks(const at::Tensor& loss) {
  bool meets = false;
  visit_nodes(loss, [&](const torch::autograd::Node& node) {
    meets |= dynamic_cast<const torch::autograd::CppNode<AllReduce>*>(&node) != nullptr ||
             dynamic_cast<const torch::autograd::CppNode<AllGather>*>(&node) != nullptr;
  });
  return meets;
}

NoPart::NoPart() { no_part = true; }
NoPart::~NoPart() { no_part = false; }

torch::Tensor all_reduce(const torch::Tensor& x) {
  if (alone()) {
    return x;
  }
  // A ghost keeps its graph, so that the backward pass comes here on every rank.
  const at::Tensor part = holds_ghost() ? nothing_of(x) : x;
  if (!x.is_floating_point() && !x.is_complex()) {  // a count has no gradient
    return summed(part, "all_reduce()");
  }
  return AllReduce::apply(part);
}

torch::Tensor all_gather(const torch::Tensor& rows) {
  if (alone()) {
    return rows;
  }
  TORCH_CHECK(rows.dim() > 0, "[accelerate] rank ", rank(), ": all_gather() takes rows, and this is a single number");
  return AllGather::apply(rows);
}

}  // namespace accelerate::detail
