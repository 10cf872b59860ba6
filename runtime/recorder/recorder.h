#pragma once

/// Writes down what a training program does, while it does it. README.md describes the file.

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/output-archive.h>

#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fingerprint.h"

namespace accelerate::recorder {

class Recorder {
 public:
  /// The process's recorder; none if it isn't to be recorded.
  static Recorder* active();

  /// Tensors that belong to the training, from now on. Whoever tells of one first decides its kind.
  void know(const at::Tensor& tensor, const char* kind, const std::string& name);
  void rename(const at::Tensor& tensor, const std::string& name);

  struct Backward {
    double loss = 0;
    const char* dtype = "";
    std::optional<double> weight;  // in the global loss, where the library knows it
    int64_t rows = -1;
    int64_t global_rows = -1;
  };

  /// Before a backward pass: true if it is to be recorded, which it isn't within another one.
  bool begin_backward(const std::vector<at::Tensor>& roots);
  void end_backward(const Backward& backward, bool completed);

  /// Around Optimizer::step.
  void begin_step(const torch::optim::Optimizer& optimizer, const char* kind);
  void end_step();

  /// What is written to LibTorch's archives: tensors by name, other values, archives within archives, and the end of
  /// the outermost: its file's name, if it has one.
  void save(const std::string& key, const at::Tensor& tensor);
  void save(const torch::serialize::OutputArchive& archive, const std::string& key, const c10::IValue& value);
  void save(const std::string& key, const torch::serialize::OutputArchive& nested);
  void end_archive(const torch::serialize::OutputArchive& archive, const std::string& path);

  /// A file of the working folder that was opened to be written.
  void wrote(const std::string& path);

 private:
  explicit Recorder(int file);

  struct Known {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // an address of its own for as long as we know of it
    int64_t id;
    bool has_gradient;  // a parameter, or a leaf of a graph
    bool shown;         // whether its line has been written: its shape is only final when it is first used
    std::string kind;
    std::string name;
    uint64_t last_value;
    uint64_t last_gradient;
  };

  void know_leaves(const std::vector<at::Tensor>& roots);
  void show(Known& known, const at::Tensor& tensor);
  nlohmann::json changed_values();
  nlohmann::json gradients(const std::vector<Known*>& of);
  void write(const nlohmann::json& line);
  nlohmann::json saved(const std::string& key, const at::Tensor& tensor) const;
  void write_values(const torch::serialize::OutputArchive& archive, const Known* state_of);
  const Known* shown(const void* tensor) const;

  const int file_;
  const std::string folder_;
  std::recursive_mutex mutex_;  // an optimizer's closure runs backward within step
  std::vector<Known> known_;
  std::unordered_map<const c10::TensorImpl*, size_t> index_;
  std::unordered_map<const c10::TensorImpl*, c10::weak_intrusive_ptr<c10::TensorImpl>> seen_once_;
  std::unordered_map<const torch::optim::Optimizer*, size_t> optimizers_;
  std::unordered_set<std::string> written_;
  // Values of archives that have not ended: whose they are is said when their archive is put into another one.
  std::unordered_map<const torch::serialize::OutputArchive*, std::vector<nlohmann::json>> values_;
  int64_t backwards_ = 0;
  int64_t steps_ = 0;
  int depth_ = 0;  // of backward passes
};

}  // namespace accelerate::recorder
