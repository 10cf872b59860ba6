#include <accelerate/weight.h>

#include "state.h"

namespace accelerate {

Weight class_weight(const torch::Tensor& target, const std::optional<torch::Tensor>& weight, int64_t /*reduction*/,
                    int64_t ignore_index, double /*label_smoothing*/) {
  if (detail::state().alone()) {
    return Weight(1);
  }
  if (target.is_floating_point()) {  // probabilities: their loss is divided by the rows, whatever the weights are
    const int64_t classes = target.size(target.dim() == 1 ? 0 : 1);
    return Weight(static_cast<double>(classes == 0 ? 0 : target.numel() / classes));
  }
  const at::Tensor classes = target.masked_select(target.ne(ignore_index));
  if (!weight || !weight->defined()) {
    return Weight(static_cast<double>(classes.numel()));
  }
  return Weight(weight->detach().index_select(0, classes.to(weight->device(), at::kLong)).sum());
}

}  // namespace accelerate
