#pragma once

/// The gradients of prepared parameters, where backward() doesn't simply leave them with the parameter: within a
/// window of accumulation, and under a loss scale. Works alone as well.
///
/// Within a window gradients are kept here, and the parameters have none. LibTorch's optimizers pass over parameters
/// without a gradient, so that step() and zero_grad() of any of them do nothing until the window ends, with no wrapper
/// around them; and what has been summed can still be weighed when the window's rows are known.

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "window.h"

namespace accelerate::detail {

class Group;

class Gradients {
 public:
  /// What a loss depends on: numbers of parameters, in the order of preparation.
  struct Reached {
    std::vector<size_t> parameters;
    std::vector<size_t> others;  // of the same models
  };

  /// Those of a model's parameters that no earlier one has belong to it.
  void add(const std::vector<std::pair<std::string, at::Tensor>>& parameters);

  Reached reach(const at::Tensor& loss) const;

  /// Takes every parameter's gradient away; it comes back, as it is, at the window's end.
  void hide();
  /// Puts back what these parameters have gathered under a normaliser, for a backward to add to; and takes it away.
  void show(const Reached& reached, int normaliser);
  void hide(const Reached& reached, int normaliser);

  /// Gives the parameters of these models the window's sums, times `scale`.
  void unfold(const Reached& reached, const Window& window, int normaliser, double scale);

  /// Divides the gradients of these models by `scale`. Returns whether there is an infinity or a not-a-number in any,
  /// on any rank. (collective)
  bool unscale(const Reached& reached, double scale, Group* group);
  /// Leaves no prepared parameter a gradient.
  void drop();

  /// Forgets what a window has kept.
  void forget();
  /// Throws if gradients are kept that the window's last batch should have asked for, and forgets them.
  void check_empty();

 private:
  struct Parameter {
    Parameter(const at::Tensor& x, std::string name_of_x, size_t model_of_x)
        : tensor(x.getIntrusivePtr()), name(std::move(name_of_x)), model(model_of_x) {}
    c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl> tensor;  // a dead model is not kept
    std::string name;
    size_t model;
    at::Tensor complete;              // gradients from before the window
    std::map<int, at::Tensor> parts;  // by normaliser
    bool kept = false;

    at::Tensor lock() const { return at::Tensor(tensor.lock()); }
  };
  void forget_dead();

  std::vector<Parameter> parameters_;
  std::unordered_map<const at::TensorImpl*, size_t> numbers_;
  size_t models_ = 0;
};

}  // namespace accelerate::detail
