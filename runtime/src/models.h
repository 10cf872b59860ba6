#pragma once

/// Prepared models, and the backward pass that averages their gradients with c10d's Reducer.

#include <torch/nn/module.h>
#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace accelerate::detail {

class Group;

/// The arguments of torch::Tensor::backward.
struct BackwardArguments {
  torch::Tensor gradient;
  std::optional<bool> retain_graph;
  bool create_graph = false;
  std::optional<torch::TensorList> inputs;
};

class Models {
 public:
  Models();
  ~Models();

  /// Checks that the module is the same on all ranks and makes it equal to rank 0's. Parameters that
  /// belong to a module prepared earlier stay with that one. (collective)
  void add(Group& group, const torch::nn::Module& module);
  /// The same for parameters without a module.
  void add(Group& group, const std::vector<torch::Tensor>& parameters, const std::string& name);

  /// loss.backward() with the ranks' gradients weighted by `coefficient` and averaged: not if `local`, and not those of
  /// models that no_sync() was called for. (collective)
  void backward(Group& group, const torch::Tensor& loss, double coefficient, bool local,
                const BackwardArguments& arguments);

  /// The parameters whose gradients have stayed on this rank (no_sync()) and wait for a backward() that isn't local.
  std::vector<torch::Tensor> with_local_gradients() const;
  /// Gives one of their parameters such a gradient, as one that a checkpoint has kept.
  void set_local_gradient(const torch::Tensor& parameter, const torch::Tensor& gradient);
  /// Takes all of them away.
  void forget_local_gradients();

  /// To be called with each training batch, and how often backward() has been called. Warns if gradients have changed
  /// since the last one without: by loss.backward(), which no reducer hears of, so that models drift apart.
  void watch_gradients(int64_t backwards);

  /// Forgets models that nobody else knows any more.
  void forget_dead();

  /// Lets the next backward begin as a new process's first would: reducers add up in an order that they find in their
  /// first backward, and a job that goes on from a checkpoint has to find the same as the one that saved it.
  void begin_anew();

  /// Forgets all models; nothing of c10d is referred to any more.
  void clear();

 private:
  struct Model;
  struct Owner {
    Model* model;
    size_t index;  // among the model's parameters
  };
  /// How much of a model a loss depends on.
  struct Reached {
    Model* model;
    size_t parameters;
    std::vector<size_t> indices;
    // Where that isn't all of it, and other ranks' losses may depend on other parts:
    bool partly = false;
    std::vector<bool> used;    // which parameters have something to send: they are reached, or have waited for it
    std::vector<size_t> bare;  // the others
  };
  /// What a backward pass begins with beside the loss.
  struct Roots {
    std::vector<torch::Tensor> tensors, gradients;
  };

  void add_model(Group& group, std::unique_ptr<Model> model);
  std::vector<Reached> reach(const torch::Tensor& loss) const;
  bool reaches_rows_alone(const torch::Tensor& loss) const;
  static bool synced(const Model& model);
  static void send_zeros(const std::vector<Reached>& reached, Roots roots);
  static void note_local(const Reached& reached);
  static void fill_up(Reached& reached, Roots& roots);
  static void check_turns(Model& model);
  static void take_zeros_back(Group& group, const Reached& reached);
  static void make_up(Group& group, const Reached& reached, const std::function<void()>& run);
  [[noreturn]] static void throw_unused(const Reached& reached);
  static bool fix_graph(const Reached& reached);
  static void make_ready(Group& group, const Reached& reached);
  static void agree_on_buffers(Group& group, Model& model);

  int64_t prepared_ = 0;                        // models, ever
  int64_t watched_at_ = -1;                     // calls of backward(), with the last training batch
  std::vector<std::unique_ptr<Model>> models_;  // in the order of preparation, which is the same on all ranks
  std::unordered_map<const c10::TensorImpl*, Owner> owners_;
};

}  // namespace accelerate::detail
