#pragma once

/// What an autograd graph depends on.

#include <c10/util/flat_hash_map.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

#include <vector>

namespace accelerate::detail {

/// Calls `visit` with each leaf that the graph behind `loss` would give a gradient.
template <typename Visit>
void visit_leaves(const at::Tensor& loss, Visit visit) {
  ska::flat_hash_set<const torch::autograd::Node*> visited;
  visited.reserve(256);  // a backward of a small model shouldn't be spent on growing it
  std::vector<const torch::autograd::Node*> todo{loss.grad_fn().get()};
  visited.insert(todo.back());
  while (!todo.empty()) {
    const torch::autograd::Node* node = todo.back();
    todo.pop_back();
    if (node->next_edges().empty()) {  // a leaf of the graph, or a function without inputs
      if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
        visit(leaf->variable);
      }
      continue;
    }
    for (const auto& edge : node->next_edges()) {
      if (edge.function && visited.insert(edge.function.get()).second) {
        todo.push_back(edge.function.get());
      }
    }
  }
}

}  // namespace accelerate::detail
