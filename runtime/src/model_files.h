#pragma once

/// A model's weights as files.

#include <accelerate/safetensors.h>

#include <map>
#include <string>

namespace accelerate::detail {

class FileWriter;

/// save_safetensors() into a file that is open already; `path` names it in errors.
void write_safetensors(FileWriter& file, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata, const std::string& path);

/// Tensors of which each is there once, and the names of those that were the same tensor: {name: the name kept}.
/// (Python's save_model() notes tied weights in the metadata likewise.)
struct Untied {
  NamedTensors tensors;
  std::map<std::string, std::string> metadata;
};
Untied untie(const NamedTensors& tensors);

/// What to copy where, so that tensors become what a file held. Throws, naming the tensor and `origin`, if one is
/// missing or has another shape.
using Copies = std::vector<std::pair<at::Tensor, at::Tensor>>;
Copies match(const NamedTensors& targets, const Safetensors& source, const std::string& origin);
void copy(const Copies& copies);

}  // namespace accelerate::detail
