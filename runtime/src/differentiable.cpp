/// Collectives that a gradient flows through.
///
/// The ranks' losses are parts of the original's, or each counts with its weight in backward(): the weights add up to
/// one. So a value that all ranks have whole gets parts of its gradient on each, and the sum over the ranks is the
/// gradient of what it was made of: the adjoint of a sum to all ranks is a sum to all ranks.

#include <accelerate/accelerator.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "group.h"
#include "state.h"

namespace accelerate::detail {
namespace {

at::Tensor summed(const at::Tensor& x, const char* what) {
  at::Tensor sum = x.detach().contiguous().clone();
  state().group->sum(sum, what);
  return sum;
}

struct AllReduce : torch::autograd::Function<AllReduce> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& x) {
    return summed(x, "all_reduce()'s argument");
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list& gradients) {
    return {summed(gradients[0], "all_reduce()'s gradient")};
  }
};

struct AllGather : torch::autograd::Function<AllGather> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& rows) {
    const bool ghost = holds_ghost();
    // Where this rank's rows lie: the ranks before it have theirs first.
    at::Tensor count = at::empty({1}, at::kLong);
    count.fill_(ghost ? 0 : rows.size(0));
    int64_t begin = 0;
    int64_t rank_index = 0;
    for (const at::Tensor& other : state().group->gather(count, "numbers of rows")) {
      if (rank_index++ == rank()) {
        break;
      }
      begin += other.item<int64_t>();
    }
    context->saved_data["begin"] = begin;
    context->saved_data["rows"] = ghost ? int64_t{0} : rows.size(0);
    context->saved_data["local"] = rows.size(0);
    return gather(rows.detach(), /*drop_ghosts=*/true).clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const at::Tensor whole = summed(gradients[0], "all_gather()'s gradient");
    const int64_t rows = context->saved_data["rows"].toInt();
    const int64_t local = context->saved_data["local"].toInt();
    if (rows == local) {
      return {whole.narrow(0, context->saved_data["begin"].toInt(), rows)};
    }
    std::vector<int64_t> sizes = whole.sizes().vec();  // a ghost's rows have no part in it
    sizes[0] = local;
    return {whole.new_zeros(sizes)};
  }
};

}  // namespace

torch::Tensor all_reduce(const torch::Tensor& x) {
  if (alone()) {
    return x;
  }
  TORCH_CHECK(x.is_floating_point() || x.is_complex(), "[accelerate] rank ", rank(),
              ": all_reduce() takes floating-point tensors, and this one is ", x.scalar_type(),
              "; convert it, or use sum(), which has no gradient");
  // Selected, not multiplied: a statistic of a ghost may be not-a-number. The graph stays, so that the backward pass
  // comes here on every rank.
  return AllReduce::apply(holds_ghost() ? x.nan_to_num(0, 0, 0) * 0 : x);
}

torch::Tensor all_gather(const torch::Tensor& rows) {
  if (alone()) {
    return rows;
  }
  TORCH_CHECK(rows.dim() > 0, "[accelerate] rank ", rank(), ": all_gather() takes rows, and this is a single number");
  return AllGather::apply(rows);
}

}  // namespace accelerate::detail
