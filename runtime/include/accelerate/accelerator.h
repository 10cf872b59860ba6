#pragma once

#include <accelerate/checkpoint.h>
#include <accelerate/collectives.h>
#include <accelerate/export.h>
#include <accelerate/opaque.h>
#include <accelerate/options.h>
#include <accelerate/prepare.h>
#include <torch/types.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace accelerate {

/// What the loss is, over the rows that it was computed from.
enum class Reduction {
  Mean,  ///< a mean over this rank's rows (the default)
  Sum,   ///< a sum over this rank's rows
};

/// The weight of this rank's mean in the global mean, where that isn't the row count: a number of
/// tokens, the sum of a mask. backward() adds the ranks' weights up (one small all-reduce).
struct Weight {
  explicit Weight(double weight) : value(weight) {}
  /// A tensor of one element of any type; reading it waits for the device.
  explicit Weight(const torch::Tensor& weight) : value(weight.item<double>()) {}
  double value;
};

/// A handle on the process's part in the job: cheap to make, to copy and to throw away. The first one
/// reads the launcher's environment and, if there are other ranks, meets them; all others refer to the
/// same state, so any function may make its own.
///
/// Alone (no launcher, or one process) every member does what plain LibTorch would do.
/// Calls that communicate are marked (collective): all ranks must make them, in the same order.
/// They throw c10::Error, naming the rank and the operation, if another rank fails, leaves or differs.
/// Not thread-safe: use it from the thread that trains.
class ACCELERATE_API Accelerator {
 public:
  /// (collective, the first time)
  Accelerator();

  /// The same with the program's choices. Throws if an earlier Accelerator has made the state already. (collective)
  explicit Accelerator(const Options& options);

  /// This rank's device: CUDA if there is any, else the CPU; with ranks, the GPU of the local index.
  /// Asking is what lets prepare() move models and batches: a program that never asks stays where it is.
  /// ACCELERATE_USE_CPU=1 forces the CPU, ACCELERATE_TORCH_DEVICE (e.g. "cuda:1") anything else.
  torch::Device device() const;

  /// The same for a program that has made its choice: returns `original`, except that one which chose
  /// CUDA and has other ranks gets this rank's GPU, or the CPU if the job was forced onto it.
  torch::Device device(torch::Device original) const;

  int64_t process_index() const;
  int64_t local_process_index() const;
  int64_t num_processes() const;
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }

  /// Makes models, optimizers, loaders, schedulers and leaf tensors ready, in place: any number, in any
  /// order, of any ownership; returned as they came (a tuple, or the one argument). (collective)
  ///
  /// Models go to device(), and start with the main process's parameters and buffers. An optimizer's
  /// parameters that belong to no prepared model are treated as a model of their own. Batches of a
  /// loader from accelerate::make_data_loader arrive on device(). With other ranks, a loader that
  /// torch::data::make_data_loader made without workers is shared out in place from here on, as
  /// BatchPolicy::Global says; any other throws. Preparing again is harmless.
  /// Throws on all ranks if a model's parameters differ between them.
  template <typename... Args>
  detail::Prepared<Args...> prepare(Args&&... args) const {
    static_assert(sizeof...(Args) > 0, "accelerate: prepare() takes at least one argument");
    detail::Preparation preparation;
    (detail::collect(preparation, args), ...);
    detail::prepare(preparation);
    return detail::Prepared<Args...>(std::forward<Args>(args)...);
  }

  /// loss.backward(gradient, retain_graph, create_graph, inputs), after which the gradients are those of
  /// the loss of the global batch, on every rank. (collective)
  ///
  /// The loss is a mean over this rank's rows of the training batch in hand (the one that a loader of
  /// accelerate::make_data_loader gave last; with no such batch, ranks count equally). A rank with a
  /// ghost batch counts zero. Any number of models and of calls per step. All ranks must reach the
  /// same models from their losses.
  void backward(const torch::Tensor& loss, const torch::Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<torch::TensorList> inputs = std::nullopt) const;

  /// The same for a loss that is a sum over this rank's rows: `Reduction::Sum`. (A template, so that
  /// `backward(loss, {}, true)` keeps meaning what it means for torch::Tensor.)
  template <typename R, std::enable_if_t<std::is_same_v<R, Reduction>, int> = 0>
  void backward(const torch::Tensor& loss, R reduction, const torch::Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<torch::TensorList> inputs = std::nullopt) const {
    backward_reduced(loss, reduction, gradient, retain_graph, create_graph, inputs);
  }

  /// The same for a loss that is a mean weighted by something other than rows. A weight of zero leaves
  /// this rank out, even if its loss isn't finite.
  void backward(const torch::Tensor& loss, const Weight& weight, const torch::Tensor& gradient = {},
                std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<torch::TensorList> inputs = std::nullopt) const;

  /// The sum over the ranks, as a fresh value (detached): tensors of any type (integers exactly),
  /// numbers, std::array and std::vector of them; several at once come back as a tuple and travel
  /// together. Shapes must be equal on all ranks. Alone: the argument itself. (collective)
  template <typename... Values>
  auto reduce(const Values&... values) const {
    return detail::reduce(values...);
  }

  /// The same in place.
  template <typename... Values>
  void reduce_(Values&... values) const {
    detail::reduce_in_place(values...);
  }

  /// This rank's part of a mean over the global batch: x * local rows / global rows, zero on a ghost.
  /// The parts' sum over the ranks is the mean. Differentiable, no communication. Alone: x itself.
  template <typename Value>
  Value share(const Value& x) const {
    return detail::share(x);
  }

  /// The mean over the global batch of a mean over this rank's rows: reduce(share(x)...). (collective)
  template <typename... Values>
  auto mean(const Values&... values) const {
    return detail::reduce(detail::share(values)...);
  }

  /// x, or zero where the batch in hand is a ghost: what to add to a sum over rows.
  template <typename Value>
  Value mine(const Value& x) const {
    return detail::mine(x);
  }

  /// The sum over the ranks without ghosts: reduce(mine(x)...). (collective)
  template <typename... Values>
  auto sum(const Values&... values) const {
    return detail::reduce(detail::mine(values)...);
  }

  /// The number of rows of the global training batch in hand, of which this rank has `local_rows`. For draws of
  /// batch extent: every rank draws the whole from equal generators, and keeps its own part, so that the numbers
  /// are those of the single process: own_rows(torch::randn({global_rows(x.size(0)), 100})). Alone: the argument.
  int64_t global_rows(int64_t local_rows) const { return detail::global_rows(local_rows); }

  /// This rank's rows of a tensor that has the rows of the global batch in hand along dimension 0. Alone: the argument.
  torch::Tensor own_rows(const torch::Tensor& whole) const { return detail::own_rows(whole); }

  /// This rank's rows of a batch that the program formed itself, alike on every rank; `dim` is the dimension of the
  /// rows. Tensors, torch::data examples, tuples, maps, vectors, and what BatchFields knows (see batch.h). The slices
  /// are contiguous, in rank order; where there are fewer rows than ranks, the last ranks get a ghost, a copy of the
  /// first row. It is the training batch in hand from now on, so that backward(), share(), mean() and the like weigh
  /// it. Throws if its parts differ in their numbers of rows, or have none. Alone: the batch. No communication.
  template <typename Batch>
  std::decay_t<Batch> shard(Batch&& batch, int64_t dim = 0) const {
    return detail::shard(std::decay_t<Batch>(std::forward<Batch>(batch)), dim);
  }

  /// All ranks' rows, concatenated along dimension 0 in rank order; the ranks may have unequal numbers
  /// of rows, and none. A tensor of no dimensions counts as one row. Detached. Alone: the argument
  /// itself (one row, if it had no dimensions). (collective)
  torch::Tensor gather(const torch::Tensor& rows) const { return detail::gather(rows, /*drop_ghosts=*/false); }

  /// The same without the rows of ghosts, and without those that only fill up a last round (even_batches), so that
  /// every sample counts once.
  torch::Tensor gather_for_metrics(const torch::Tensor& rows) const {
    return detail::gather(rows, /*drop_ghosts=*/true);
  }

  /// The value of rank `from_process`, fresh, on all ranks: a tensor (equal shapes) or a number. (collective)
  template <typename Value>
  Value broadcast(const Value& x, int64_t from_process = 0) const {
    return detail::broadcast(x, from_process);
  }

  /// Returns when all ranks have come here. (collective)
  void wait_for_everyone() const { detail::wait_for_everyone(); }

  /// Writes the arguments and a line end to standard output, on the main process only.
  template <typename... Args>
  void print(const Args&... args) const {
    if (is_main_process()) {
      (std::cout << ... << args) << std::endl;
    }
  }

  /// Calls `function` on the main process only. It must not communicate.
  template <typename Function>
  void on_main_process(Function&& function) const {
    if (is_main_process()) {
      std::forward<Function>(function)();
    }
  }

  /// The name under which to open an output file that there is to be one of: `path` on the main process,
  /// the null device on the others, so that what is written there needs no guard.
  std::string main_process_file(const std::string& path) const { return is_main_process() ? path : "/dev/null"; }

  /// torch::save(value, target...), or archive.save_to(path). A file is written by the main process alone, under
  /// another name first, so that it is whole or absent; all ranks may read it afterwards, or all throw. (collective)
  /// Any other target (a stream, a function) is no checkpoint: every rank writes to its own.
  template <typename Value, typename... Target>
  void save(const Value& value, Target&&... target) const {
    detail::save(value, std::forward<Target>(target)...);
  }

 private:
  void backward_reduced(const torch::Tensor& loss, Reduction reduction, const torch::Tensor& gradient,
                        std::optional<bool> retain_graph, bool create_graph,
                        std::optional<torch::TensorList> inputs) const;
};

}  // namespace accelerate
