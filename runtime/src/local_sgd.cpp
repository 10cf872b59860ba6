#include <accelerate/local_sgd.h>

#include <map>
#include <utility>

#include "state.h"

namespace accelerate::detail {

void begin_local_sgd(const void* local_sgd) { state().control.local_sgds[local_sgd] = state().steps; }

void end_local_sgd(const void* local_sgd) { state().control.local_sgds.erase(local_sgd); }

bool is_averaged(const void* local_sgd) {
  const auto& known = state().control.local_sgds;
  const auto it = known.find(local_sgd);
  return it == known.end() || it->second == state().steps;
}

void average_parameters(const std::vector<torch::Tensor>& parameters, const void* local_sgd) {
  State& s = state();
  if (const auto it = s.control.local_sgds.find(local_sgd); it != s.control.local_sgds.end()) {
    it->second = s.steps;
  }
  if (s.alone()) {
    return;
  }
  torch::NoGradGuard no_grad;
  std::map<std::pair<int, at::ScalarType>, std::vector<at::Tensor>> together;  // by device and type, in one order
  for (const torch::Tensor& parameter : parameters) {
    const at::Tensor plain = parameter.is_complex() ? at::view_as_real(parameter.detach()) : parameter.detach();
    together[{plain.is_cpu() ? -1 : plain.device().index(), plain.scalar_type()}].push_back(plain);
  }
  for (auto& [kind, tensors] : together) {
    std::vector<at::Tensor> flat;
    for (const at::Tensor& x : tensors) {
      flat.push_back(x.reshape({-1}));
    }
    at::Tensor mean = torch::cat(flat);
    s.group->sum(mean, "LocalSGD's parameters");
    mean.div_(ranks());
    int64_t begin = 0;
    for (at::Tensor& x : tensors) {
      x.copy_(mean.narrow(0, begin, x.numel()).view(x.sizes()));
      begin += x.numel();
    }
  }
}

}  // namespace accelerate::detail
