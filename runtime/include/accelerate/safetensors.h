#pragma once

/// Weights in the safetensors format: what Python's `safetensors` and the Hugging Face libraries read and write.
/// A file is data alone; reading one that comes from elsewhere can't run code, and can't read past its end.

#include <accelerate/export.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate {

using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;

/// What a file holds: tensors on the CPU by name, and the strings of its `__metadata__`.
struct Safetensors {
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Writes the file (whole or not at all), on the process that calls. Dense tensors of any device and stride, of the
/// types bool, 8- to 64-bit integers, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2 and complex64.
/// Throws if a tensor is of another type, undefined or named twice, or the file can't be written.
ACCELERATE_API void save_safetensors(const NamedTensors& tensors, const std::string& path,
                                     const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

/// Reads the file. Throws, naming the file and what is wrong with it, if it isn't one: every offset, shape and size
/// is checked before it is used, as the format's reference implementation does.
ACCELERATE_API Safetensors load_safetensors(const std::string& path);

namespace detail {

/// The module's parameters and buffers under their plain names, in the order of named_parameters() and
/// named_buffers().
ACCELERATE_API NamedTensors named_tensors(const torch::nn::Module& module);

/// The module that a reference, a holder or a pointer means.
template <typename M>
const torch::nn::Module& module_of(const M& model) {
  if constexpr (std::is_base_of_v<torch::nn::Module, M>) {
    return model;
  } else {
    return *model;
  }
}

ACCELERATE_API void save_model(const torch::nn::Module& module, const std::string& directory,
                               const std::string& max_shard_size);
ACCELERATE_API void load_model(const torch::nn::Module& module, const std::string& path);

}  // namespace detail

/// Copies weights into a model (a module, holder or pointer): from a safetensors file, or from the folder that
/// Accelerator::save_model() or Python's save_model() wrote, in one file or in shards. Needs no Accelerator. Every
/// parameter and buffer of the model must be there, with its shape; types are converted. Throws, naming the tensor,
/// before anything is changed.
template <typename M>
void load_checkpoint_in_model(const M& model, const std::string& path) {
  detail::load_model(detail::module_of(model), path);
}

}  // namespace accelerate
