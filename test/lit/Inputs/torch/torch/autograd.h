#pragma once

// Gradients asked for, functions with a derivative of their own, and values of any type.

#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <torch/functions.h>

namespace c10 {
struct IValue {
  IValue();
  IValue(at::Tensor t);
  IValue(double d);
  IValue(int64_t i);
  IValue(bool b);
  bool isTensor() const;
  at::Tensor toTensor() &&;
  at::Tensor& toTensor() &;
  const at::Tensor& toTensor() const&;
  double toDouble() const;
  int64_t toInt() const;
};
}  // namespace c10

namespace torch {
namespace autograd {

using Variable = Tensor;
using variable_list = std::vector<Variable>;
using tensor_list = std::vector<Tensor>;

void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              const variable_list& inputs = {});
variable_list grad(const variable_list& outputs, const variable_list& inputs, const variable_list& grad_outputs = {},
                   std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                   bool allow_unused = false);

template <typename X, typename... Args>
using forward_t = decltype(X::forward(nullptr, std::declval<Args>()...));

struct AutogradContext;

template <class T>
struct Function {
  template <typename X = T, typename... Args>
  static auto apply(Args&&... args) -> std::enable_if_t<std::is_same_v<X, T>, forward_t<X, Args...>>;
  static constexpr bool is_traceable = false;
};

struct AutogradContext {
  AutogradContext() = default;
  AutogradContext(const AutogradContext& other) = delete;
  AutogradContext& operator=(const AutogradContext& other) = delete;
  std::unordered_map<std::string, IValue> saved_data;
  void save_for_backward(variable_list to_save);
  void mark_dirty(const variable_list& inputs);
  void mark_non_differentiable(const variable_list& outputs);
  void set_materialize_grads(bool value);
  variable_list get_saved_variables() const;
  bool needs_input_grad(size_t output_edge_index) const;
};

}  // namespace autograd
}  // namespace torch
