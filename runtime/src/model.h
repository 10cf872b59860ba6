#pragma once

#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <utility>
#include <vector>

#include "c10d_compat.h"
#include "models.h"

namespace accelerate::detail {

/// What is known of a prepared model.
struct Models::Model {
  std::string name;
  int64_t number = 0;                  // in the order of preparation
  std::vector<at::Tensor> parameters;  // trainable or not, without duplicates; keeps their addresses taken
  std::vector<std::string> names;
  std::vector<bool> sparse;  // whose gradients are sparse
  std::vector<at::Tensor> buffers;
  bool trained_once = false;  // it had trainable parameters when it was prepared

  /// What the reducer was built for; it has to be built again where that changes.
  struct Trained {
    Trained(const Model& model, size_t i)
        : index(i),
          dtype(model.parameters[i].scalar_type()),
          device(model.parameters[i].device()),
          accumulator(torch::autograd::impl::grad_accumulator(model.parameters[i])) {}
    size_t index;
    at::ScalarType dtype;
    at::Device device;
    /// Where the reducer's hook sits. Loading a file into a parameter gives it another one, and the old hook never
    /// fires.
    decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::autograd::Variable&>())) accumulator;
    bool operator==(const Trained& other) const {
      return index == other.index && dtype == other.dtype && device == other.device && accumulator == other.accumulator;
    }
  };
  std::vector<Trained> trained;
  bool find_unused = false;

  /// With neither find_unused nor a static graph a reducer waits for every parameter, on every rank, while losses may
  /// reach other ones on each rank and at each step (experts that the data choose). So each rank sends zeros for what
  /// its loss doesn't reach. That's all if some rank's loss reaches the whole model. If none does, the ranks have to
  /// know what is reached nowhere, and so has no gradient. Two numbers that travel with the gradients tell which it is,
  /// without a message of their own: how many ranks' losses reach the whole model, and how many ranks' parts are others
  /// than when the ranks compared them last.
  enum Vote : size_t { kWhole, kSamePart, kOtherPart };
  /// Four numbers more tell how many ranks' losses are of the training loaders' batch 0, 4, 8, ..., of batch 1, 5, ...,
  /// and so on. All ranks' are of one, unless a rank has left one out by itself: gradients of two steps would be mixed.
  static constexpr size_t kTurns = 4;
  at::Tensor votes;                        // the first of the reducer's parameters; none where it doesn't need it
  std::vector<at::Tensor> ballots;         // the gradient for each vote in each turn
  std::vector<bool> used, used_somewhere;  // as compared last
  std::vector<at::Tensor> before;          // gradients of what isn't reached, or none, before the backward under way

  std::vector<size_t> fixed;  // static_graph: the parameters of the reducer's first backward
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  // the reducer only has a weak pointer, and needs it

  /// Why the reducer's last backward pass has ended midway: it waits for the rest, and other ranks may.
  std::string unfinished;

  void drop_reducer() {
    logger.reset();  // it has a pointer that would keep the reducer
    reducer.reset();
    unfinished.clear();
  }

  /// Whose gradients have come from a local backward since the last that wasn't.
  std::vector<bool> local;
  /// There may be such on some rank; alike on all.
  bool unsent = false;

  /// The gradient of the smallest parameter as it was when the last training batch was handed out; see
  /// watch_gradients().
  size_t watched = 0;
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> watched_gradient{at::Tensor().getIntrusivePtr()};
  uint32_t watched_version = 0;
  bool warned = false;

  /// Which buffers the forward pass writes to (running statistics): these are rank 0's after a backward.
  int64_t backwards = 0;
  /// The modules that have buffers, and whether they trained at the last backward. (A module on the stack isn't there.)
  std::vector<std::pair<std::weak_ptr<const torch::nn::Module>, bool>> modes;
  std::vector<at::Tensor> originals;  // the buffers' values when the model was prepared; none once written
  std::vector<bool> written;
};

/// The tensor as collectives take it: outside of any graph, and real.
inline at::Tensor plain(const at::Tensor& x) { return x.is_complex() ? at::view_as_real(x.detach()) : x.detach(); }

}  // namespace accelerate::detail
