#pragma once

// Modules that TorchScript exported.

#include <torch/torch.h>

namespace torch {
namespace jit {

using c10::IValue;
using Kwargs = std::unordered_map<std::string, IValue>;
struct Module {
  explicit Module(std::string class_name);
  Module();
  IValue forward(std::vector<IValue> inputs, const Kwargs& kwargs = Kwargs());
  void register_parameter(const std::string& name, at::Tensor v, bool is_buffer);
  void train(bool on = true);
  void eval();
  bool is_training() const;
  void to(at::Device device, at::ScalarType dtype, bool non_blocking = false);
  void to(at::ScalarType dtype, bool non_blocking = false);
  void to(at::Device device, bool non_blocking = false);
  void save(std::ostream& out) const;
  void save(const std::string& filename) const;
};
namespace script {
using jit::Module;
}  // namespace script

Module load(std::istream& in, std::optional<c10::Device> device = std::nullopt, bool load_debug_files = true);
Module load(const std::string& filename, std::optional<c10::Device> device = std::nullopt,
            bool load_debug_files = true);

}  // namespace jit
}  // namespace torch
