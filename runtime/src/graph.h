#pragma once

/// What an autograd graph depends on.

#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

namespace accelerate::detail {

/// Calls `visit` with each function of the graph behind `loss`.
template <typename Visit>
void visit_nodes(const at::Tensor& loss, Visit visit) {
  ska::flat_hash_set<const torch::autograd::Node*> visited;
  visited.reserve(256);  // a backward of a small model shouldn't be spent on growing it
  std::vector<const torch::autograd::Node*> todo{loss.grad_fn().get()};
  visited.insert(todo.back());
  while (!todo.empty()) {
    const torch::autograd::Node* node = todo.back();
    todo.pop_back();
    visit(*node);
    for (const auto& edge : node->next_edges()) {
      if (edge.function && visited.insert(edge.function.get()).second) {
        todo.push_back(edge.function.get());
      }
    }
  }
}

/// Calls `visit` with each leaf that the graph behind `loss` would give a gradient.
template <typename Visit>
void visit_leaves(const at::Tensor& loss, Visit visit) {
  visit_nodes(loss, [&](const torch::autograd::Node& node) {
    if (!node.next_edges().empty()) {
      return;
    }
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(&node)) {
      visit(leaf->variable);
    }
  });
}

/// Whether the backward pass through the graph behind `loss` meets the other ranks: in all_gather(), all_reduce().
bool meets_ranks(const at::Tensor& loss);

/// While one lives, this rank has no part in the gradients that all_gather() and all_reduce() bring together, though it
/// comes along: what its graph computes is not a number.
class NoPart {
 public:
  NoPart();
  ~NoPart();
  NoPart(const NoPart&) = delete;
  NoPart& operator=(const NoPart&) = delete;
};

}  // namespace accelerate::detail
