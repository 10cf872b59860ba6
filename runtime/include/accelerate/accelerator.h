#pragma once

#include <accelerate/accumulation.h>
#include <accelerate/checkpoint.h>
#include <accelerate/collectives.h>
#include <accelerate/export.h>
#include <accelerate/opaque.h>
#include <accelerate/options.h>
#include <accelerate/precision.h>
#include <accelerate/prepare.h>
#include <accelerate/processes.h>
#include <accelerate/project.h>
#include <accelerate/weight.h>
#include <torch/types.h>

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate {

/// What the loss is, over the rows that it was computed from.
enum class Reduction {
  Mean,  ///< a mean over this rank's rows (the default)
  Sum,   ///< a sum over this rank's rows
};

/// A handle on the process's part in the job: cheap to make, to copy and to throw away. The first one
/// reads the launcher's environment and, if there are other ranks, meets them; all others refer to the
/// same state, so any function may make its own.
///
/// Alone (no launcher, or one process) every member does what plain LibTorch would do.
/// Calls that communicate are marked (collective): all ranks must make them, in the same order.
/// They throw c10::Error, naming the rank and the operation, if another rank fails, leaves or differs.
/// With ACCELERATE_DEBUG_MODE=1 ranks tell each other what they are about to do before each collective, and throw if
/// operations or shapes differ: what would hang, or add up the wrong numbers, becomes an error. (Twice the messages.)
/// Not thread-safe: use it from the thread that trains.
///
/// Checkpoints, weights, logs and traces are in its base class, Project.
class ACCELERATE_API Accelerator : public Project {
 public:
  /// The first one joins the job. From then on all ranks draw from one state of LibTorch's CPU generator, the main
  /// process's, seeded or not; what is drawn earlier without a seed, in initializers that run before `main`, is the same
  /// on each rank and in each run. (collective, the first time)
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

  /// This process's number among all of the job, from 0: its rank. Accelerate's name for it.
  int64_t process_index() const;
  /// Its number among those of its host, from 0; it takes the GPU of this number.
  int64_t local_process_index() const;
  /// How many there are in all, on all hosts: 1 without a launcher.
  int64_t num_processes() const;
  bool is_main_process() const { return process_index() == 0; }
  bool is_local_main_process() const { return local_process_index() == 0; }

  /// How often the launcher has started the job again after a failure (accelerate-cpp's and torchrun's --max_restarts;
  /// TORCHELASTIC_RESTART_COUNT): 0 the first time. Then a program goes on from its latest_checkpoint().
  int64_t restarts() const;

  /// Makes models, optimizers, loaders, schedulers and leaf tensors ready, in place: any number, in any
  /// order, of any ownership; returned as they came (a tuple, or the one argument). (collective)
  ///
  /// Models go to device(), and start with the main process's parameters and buffers. An optimizer's
  /// parameters that belong to no prepared model are treated as a model of their own. Batches of a
  /// loader from accelerate::make_data_loader arrive on device(). With other ranks, a loader of
  /// torch::data::make_data_loader is shared out in place from here on, as DataLoaderConfiguration says. Each rank reads
  /// its own rows, also where workers do (with RandomSampler or SequentialSampler). The main process reads and sends
  /// where the data set is stateful, where requests aren't lists of indices, where dispatch_batches says so, and where
  /// there are workers and a sampler of another type. That one can't be asked for a pass beforehand, as it may have no
  /// end, or look at what the program does; and what it gives goes to the workers at once. The other ranks' workers read
  /// the same, in vain: make such a loader with accelerate::make_data_loader, if reading is dear.
  /// Throws if the sampler is a DistributedSampler, if a loop over the loader has begun, if it is passed as its base
  /// class, or if its batches would have to be sent and are of a type that isn't known; without workers, also if the
  /// data set's class is final. Preparing again is harmless. Throws on all ranks if a model's parameters differ between
  /// them.
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
  /// same models from their losses; which of a model's parameters may differ. In a loop that takes batches
  /// from two training loaders a mean's loader isn't known: throws on all ranks if the ranks' parts of their
  /// batches differ; give such losses a Weight.
  ///
  /// With other ranks `create_graph` throws, but for `inputs`: a rank has its own graph only. Compute what the loss
  /// differentiates with torch::autograd::grad(). Behind a call that threw midway on a rank the next one throws on all.
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

  /// x.grad() of a leaf (or of a tensor that retains its gradient) that has this rank's rows: the gradient of the loss
  /// that the last backward() was given, as the single process has it there. What backward() leaves at x itself is
  /// larger by the number of ranks, over which it averages the parameters' gradients, and by a scaler's factor. x's
  /// shape; undefined where x.grad() is. Alone, without a scaler or accumulation: x.grad() itself. No communication.
  torch::Tensor gradient(const torch::Tensor& x) const { return detail::gradient(x); }

  /// The same, but only those arguments are moved for which `placement` says true, which must be as many:
  /// prepare({true, false, true}, model, teacher, optimizer).
  template <typename... Args>
  detail::Prepared<Args...> prepare(DevicePlacement placement, Args&&... args) const {
    static_assert(sizeof...(Args) > 0, "accelerate: prepare() takes at least one argument");
    if (placement.of.size() != sizeof...(Args)) {
      detail::throw_placements(placement.of.size(), sizeof...(Args));
    }
    detail::Preparation preparation;
    std::size_t i = 0;
    (detail::collect_placed(preparation, args, placement.of[i++]), ...);
    detail::prepare(preparation);
    return detail::Prepared<Args...>(std::forward<Args>(args)...);
  }

  /// Forgets all that was prepared, with the memory that is held for it (buckets of gradients, windows), and counts
  /// backward() from 0 again; also lets go of `objects`: pointers and module holders, which become empty. What is still
  /// to be trained has to be prepared again. What was registered for checkpointing stays, as in Accelerate. LibTorch's
  /// CUDA allocator keeps what is freed for the process's next tensors. All ranks must call it.
  template <typename... Objects>
  void free_memory(Objects&... objects) const {
    detail::free_memory();
    ((objects = nullptr), ...);
  }

  // --- Training control: accumulation, precision, clipping

  /// Gradient accumulation: `Options::gradient_accumulation_steps` batches (a window) make one step. Alone as well.
  ///
  ///   for (auto& batch : *loader) {
  ///     auto window = accelerator.accumulate(model);  // once a batch; it lasts for the body of the loop
  ///     optimizer.zero_grad();
  ///     accelerator.backward(loss(batch));
  ///     optimizer.step();
  ///   }
  ///
  /// Until its window's last batch, what backward() computes is kept back: the prepared parameters have no gradients,
  /// and LibTorch's optimizers pass over parameters without. So step() and zero_grad() do nothing (Accelerate's
  /// semantics, with plain optimizers), before and after backward() alike, and clip_grad_norm_() returns 0. The last
  /// batch's backward() adds everything up and sends it over the ranks once. A window ends after that many batches, and
  /// with the last batch of a loader of accelerate::make_data_loader, of dispatch_batches(), or of a loader that was
  /// shared out in place (whose epochs are taken to be as long as its data set); and with one that shard() is told to
  /// be the last. Otherwise it runs on into the next epoch.
  ///
  /// The result is that of one batch of the window's rows: a mean counts by its rows over the window's real rows (where
  /// Accelerate divides by the number of steps, also in a last window that is shorter), a sum counts as it is, a loss
  /// with a Weight by its weight over the window's; the k-th weighted loss of each batch belong together. Batches that
  /// come from no prepared loader count equally. Of a mean over a batch of a few rows and one of many, this is exact.
  ///
  /// What else happens once a step belongs under sync_gradients(): schedulers, averages of weights, logs; also step()
  /// of optimizers that ask for gradients by themselves (LBFGS), or of the program's own if it doesn't skip undefined
  /// gradients. Gradients that a program throws away between two backwards of one batch (a GAN's discriminator, reached
  /// by the generator's loss) can't be told from others: freeze these parameters with requires_grad_(false) instead.
  /// Each batch of a window must have the same losses for the same models: throws at the next window if the last lacks
  /// one. `models` are for the reader: all prepared models take part.
  template <typename... Models>
  [[nodiscard]] Accumulation accumulate(const Models&... /*models*/) const {
    return Accumulation();
  }

  /// Whether the gradients are complete after the backward() of the batch in hand: false in all but the last batch of
  /// a window. Keeps its value until the next accumulate(). True for programs that don't accumulate.
  bool sync_gradients() const { return detail::sync_gradients(); }

  /// As long as the result lives, gradients of these models (none: all) stay on this rank, where they add up; the first
  /// backward() after it sends the sum. They aren't kept back from step(). Alone: nothing.
  template <typename... Models>
  [[nodiscard]] NoSync no_sync(Models&... models) const {
    detail::Preparation chosen;
    (detail::collect(chosen, models), ...);
    return NoSync(detail::parameters_of(chosen));
  }

  /// Mixed precision for the operations of this thread, as long as the result lives: `Options::mixed_precision` on
  /// device()'s type. Put it around the forward pass and the loss: unlike Accelerate's prepare(), ours doesn't wrap the
  /// model. It may live on through backward(), which computes without it. For "no": nothing. "fp16" works on the CPU as
  /// far as LibTorch's operators do there (they say so if not); "bf16" is what CPUs are made for.
  [[nodiscard]] Autocast autocast() const { return Autocast(); }

  /// "no", "bf16" or "fp16".
  std::string mixed_precision() const { return detail::mixed_precision(); }

  /// Whether the last backward() of "fp16" overflowed, on any rank. The scale that it multiplies the loss with was too
  /// large then; the next step has half of it, and twice as much after 2000 steps without an overflow (it begins with
  /// 65536; PyTorch's constants). backward() divides gradients by the scale at its end, so that what follows sees true
  /// ones. After an overflow no prepared parameter has a gradient, on any rank, for the rest of the step, so that
  /// optimizers leave parameters and their own state (momentum, Adam's counts) as they are. A step lasts as long as
  /// the batch of a loader of accelerate::make_data_loader, or the window of accumulate(); with neither, one
  /// backward(). It goes on while gradients of no_sync() wait.
  bool optimizer_step_was_skipped() const { return detail::optimizer_step_was_skipped(); }

  /// torch::nn::utils::clip_grad_norm_ and clip_grad_value_: after backward() gradients are equal on all ranks, and
  /// unscaled, so nothing else is needed. Returns the norm before clipping; 0 where there are no gradients: within a
  /// window of accumulate(), and in a step that is skipped.
  double clip_grad_norm_(const std::vector<torch::Tensor>& parameters, double max_norm, double norm_type = 2.0) const {
    return detail::clip_grad_norm(parameters, max_norm, norm_type);
  }
  double clip_grad_norm_(const torch::Tensor& parameter, double max_norm, double norm_type = 2.0) const {
    return detail::clip_grad_norm({parameter}, max_norm, norm_type);
  }
  void clip_grad_value_(const std::vector<torch::Tensor>& parameters, double clip_value) const {
    detail::clip_grad_value(parameters, clip_value);
  }
  void clip_grad_value_(const torch::Tensor& parameter, double clip_value) const {
    detail::clip_grad_value({parameter}, clip_value);
  }

  /// scheduler.step() for one that is stepped once a batch: does nothing where the optimizer's step did nothing (within
  /// a window of accumulate(), after an overflow). One step is one of the original's, since the global batch is kept;
  /// under a policy that keeps the batch of each process it steps as many times as there are processes, as Accelerate
  /// does. A scheduler that is stepped once an epoch needs no help: call its own step(). The learning rates that a
  /// program computes by itself belong under sync_gradients().
  template <typename Scheduler>
  void step_scheduler(Scheduler& scheduler) const {
    for (int64_t i = detail::scheduler_steps(); i > 0; --i) {
      scheduler.step();
    }
  }

  /// The same for ReduceLROnPlateauScheduler, once, with the main process's metric, so that all ranks decide alike.
  /// (collective)
  template <typename Scheduler>
  void step_scheduler(Scheduler& scheduler, float metric) const {
    metric = broadcast(metric);
    if (detail::scheduler_steps() > 0) {
      scheduler.step(metric);
    }
  }

  /// A way for one rank to tell all (to stop early, say): true on every rank if set_trigger() was called on any since
  /// the last check_trigger(). Where a rank would `break` by itself, it sets the trigger, and all check. (collective)
  void set_trigger() const { detail::set_trigger(); }
  bool check_trigger() const { return detail::check_trigger(); }

  /// Between this and the result's end the main process goes first (to fill a cache, say), the others after it:
  ///   { auto order = accelerator.main_process_first(); download(); }
  /// What stands there must not communicate. If the main process throws there, all do. (collective)
  [[nodiscard]] ProcessFirst main_process_first() const { return ProcessFirst(is_main_process()); }
  /// The same with one process of each host.
  [[nodiscard]] ProcessFirst local_main_process_first() const { return ProcessFirst(is_local_main_process()); }

  bool is_last_process() const { return process_index() + 1 == num_processes(); }

  /// As on_main_process(), for others; alone always.
  template <typename Function>
  void on_local_main_process(Function&& function) const {
    if (is_local_main_process()) {
      std::forward<Function>(function)();
    }
  }
  template <typename Function>
  void on_last_process(Function&& function) const {
    if (is_last_process()) {
      std::forward<Function>(function)();
    }
  }
  template <typename Function>
  void on_process(int64_t process, Function&& function) const {
    if (num_processes() == 1 || process_index() == process) {
      std::forward<Function>(function)();
    }
  }

  /// This rank's part of a container (vector, deque, list, string), of a tensor along dimension 0, or of each value of
  /// a map of such: contiguous in rank order; the first ranks get one more where it doesn't divide. With
  /// `apply_padding` all parts have the same length: the last ranks' are filled up with copies of the last element, so
  /// that the parts in rank order begin with the whole. (Accelerate pads each part, where that doesn't hold.)
  template <typename Container>
  Container split_between_processes(const Container& inputs, bool apply_padding = false) const {
    return num_processes() == 1 ? inputs : detail::split(inputs, apply_padding);
  }

  /// The tensor, made as long along `dim` as the longest of all ranks with `pad_index` behind it, or before it. Of
  /// tuples, vectors, maps, optionals and what has BatchFields, every tensor, each to its own longest; those without
  /// such a dimension, and what isn't a tensor, stay as they are. Throws if a tensor has another number of dimensions
  /// on another rank, or a single one no such dimension. Alone: the argument. (collective, once for all)
  template <typename Value>
  Value pad_across_processes(const Value& x, int64_t dim = 0, const torch::Scalar& pad_index = 0,
                             bool pad_first = false) const {
    return detail::pad(x, dim, pad_index, pad_first);
  }
  /// The same of several along dimension 0, with zeros: auto [a, b] = pad_across_processes(a, b).
  template <typename... Tensors>
  auto pad_across_processes(const torch::Tensor& first, const torch::Tensor& second, const Tensors&... more) const {
    return pad_across_processes(std::tuple<torch::Tensor, torch::Tensor, Tensors...>(first, second, more...));
  }

  // --- End of training control

  /// The sum over the ranks, as a fresh value (detached): tensors of any type (integers exactly),
  /// numbers, std::array, std::vector, std::pair and std::tuple of them, std::map and std::unordered_map from strings,
  /// numbers or enumerators to any of these; several at once come back as a tuple and travel together. Shapes and keys
  /// must be equal on all ranks, or it throws on all of them (a GPU's tensors: with ACCELERATE_DEBUG_MODE, as for max(),
  /// min() and all_reduce()). Alone: the argument itself. (collective)
  template <typename... Values>
  auto reduce(const Values&... values) const {
    return detail::reduce(values...);
  }

  /// The same in place.
  template <typename... Values>
  void reduce_(Values&... values) const {
    detail::reduce_in_place(values...);
  }

  /// This rank's part of a mean over the global batch: x * local rows / global rows, zero on a ghost. The parts' sum
  /// over the ranks is the mean. The batch is the training loader's last one, also when the loader has gone, until the
  /// next backward(); where there has been none, or an evaluation loader's came after it, ranks count equally.
  /// Differentiable, no communication. Alone: x itself.
  template <typename Value>
  Value share(const Value& x) const {
    return detail::share(x);
  }

  /// The mean over the global batch of a mean over this rank's rows: reduce(share(x)...). (collective)
  template <typename... Values>
  auto mean(const Values&... values) const {
    return detail::reduce(detail::share(values)...);
  }

  /// x, or zero where the batch in hand is a ghost: what to add to a sum over rows. An evaluation loader has none, so
  /// that it's x in a loop over one; and behind it, unless it stands within a training loop, whose batch is in hand
  /// again then. (So it is with share(): there ranks count equally.)
  template <typename Value>
  Value mine(const Value& x) const {
    return detail::mine(x);
  }

  /// The sum over the ranks without ghosts: reduce(mine(x)...). (collective)
  template <typename... Values>
  auto sum(const Values&... values) const {
    return detail::reduce(detail::mine(values)...);
  }

  /// The part of a mean that counts by something else than rows (tokens, a mask): x * weight / the ranks' weights, zero
  /// on a ghost. Differentiable in x. Alone: x itself. (collective)
  torch::Tensor share(const torch::Tensor& x, const Weight& weight) const {
    return detail::share_tensor(x, weight.value);
  }

  /// The largest or smallest value over the ranks, elementwise, of a tensor or number, fresh. Throws on all ranks if
  /// shapes or types differ. Alone: x itself. (collective)
  template <typename Value>
  Value max(const Value& x) const {
    return detail::extreme_of(x, /*largest=*/true);
  }
  template <typename Value>
  Value min(const Value& x) const {
    return detail::extreme_of(x, /*largest=*/false);
  }

  /// sum(x) with a gradient, for what a loss computes from the whole batch: all_reduce(numerator) /
  /// all_reduce(denominator). The result, and a loss that is made of it, is equal on all ranks; backward(loss) then
  /// gives the gradients of the single process. Integers have no gradient: sum(x). Throws on all ranks if shapes or
  /// types differ. Alone: x itself. (collective, and so is its part of the backward)
  torch::Tensor all_reduce(const torch::Tensor& x) const { return detail::all_reduce(x); }

  /// All ranks' rows along dimension 0 in rank order, without ghosts, with a gradient: for losses that compare the rows
  /// of a batch with each other. Otherwise as all_reduce(). (collective)
  torch::Tensor all_gather(const torch::Tensor& rows) const { return detail::all_gather(rows); }

  /// The number of rows of the global training batch in hand, of which this rank has `local_rows`. For draws of
  /// batch extent: every rank draws the whole from equal generators, and keeps its own part, so that the numbers
  /// are those of the single process: own_rows(torch::randn({global_rows(x.size(0)), 100})). Alone: the argument.
  int64_t global_rows(int64_t local_rows) const { return detail::global_rows(local_rows); }
  /// The same of a whole shape, of which the first dimension counts the rows:
  /// own_rows(torch::randn(global_rows(x.sizes()))).
  std::vector<int64_t> global_rows(c10::IntArrayRef local_sizes) const {
    std::vector<int64_t> sizes = local_sizes.vec();
    if (!sizes.empty()) sizes[0] = global_rows(sizes[0]);
    return sizes;
  }

  /// This rank's rows of a tensor that has the rows of the global batch in hand along dimension 0. A single row, which
  /// is broadcast along the batch, stays. A view: what is written to it is written into `whole`, own_rows(buffer).copy_(x).
  /// `for_each`: so many rows stand for each of the batch's, one behind the other, such as samples drawn beside it:
  /// own_rows(torch::randint(0, words, {global_rows(x.size(0)) * 5}), 5). Alone: the argument. Throws if it has another
  /// number of rows.
  torch::Tensor own_rows(const torch::Tensor& whole, int64_t for_each = 1) const {
    return detail::own_rows(whole, for_each);
  }

  /// An uninitialised tensor of x's options and shape, but with the rows of the global batch in hand along dimension 0,
  /// of which x has this rank's: own_rows(torch::randn_like(global_like(x))). Throws if x has another number of rows
  /// than the batch has on this rank, or no dimensions. Alone: x itself. No communication.
  torch::Tensor global_like(const torch::Tensor& x) const { return detail::global_like(x); }

  /// x.squeeze() of a tensor that has this rank's rows of the training batch in hand along dimension 0, which stays
  /// where it is one of several rows of the global batch. Alone, and for whatever isn't such rows: x.squeeze().
  torch::Tensor squeeze(const torch::Tensor& x) const { return detail::squeeze(x); }

  /// compute(), as one process would do it: what is computed, every rank has whole, so that own_rows(), global_rows(),
  /// global_like(), share(), mine(), mean(), sum(), reduce(), gather() and the like return what they are given. For a
  /// function that draws for a batch's rows, or weights its loss, and is called for something that isn't a batch:
  /// `whole([&] { return model->forward(fixed); })`. No place for backward(). Calls nest.
  template <typename Compute>
  decltype(auto) whole(Compute&& compute) const {
    const detail::Whole around;
    return std::forward<Compute>(compute)();
  }

  /// This rank's rows of a batch that the program formed itself, alike on every rank; `dim` is the dimension of the
  /// rows. Tensors, torch::data examples, tuples, maps, vectors, and what BatchFields knows (see batch.h). The slices
  /// are contiguous, in rank order; where there are fewer rows than ranks, the last ranks get a ghost, a copy of the
  /// first row. It is the training batch in hand from now on, so that backward(), share(), mean() and the like weigh
  /// it. Several calls with equal numbers of rows before the next backward() are parts of one batch (its data and its
  /// targets). `last`: no other comes in this epoch, so that a window of accumulate() ends with it.
  /// Throws if its parts differ in their numbers of rows, or have none; an optional without a batch stays empty, and the
  /// batch in hand what it was. Alone: the batch. No communication.
  template <typename Batch>
  std::decay_t<Batch> shard(Batch&& batch, int64_t dim = 0, bool last = false) const {
    return detail::shard(std::decay_t<Batch>(std::forward<Batch>(batch)), dim, last);
  }

  /// All ranks' rows, concatenated along dimension 0 in rank order; the ranks may have unequal numbers
  /// of rows, and none. A tensor of no dimensions counts as one row. Detached. Alone: the argument
  /// itself (one row, if it had no dimensions). (collective)
  torch::Tensor gather(const torch::Tensor& rows) const { return detail::gather(rows, /*drop_ghosts=*/false); }

  /// The same without the rows of ghosts, and without those that only fill up a last round (even_batches), so that
  /// every sample counts once. Of the batch in hand: to be called in the loop. Behind a loop that had such rows on any
  /// rank it takes the last batch's rows only, and throws on all ranks if given others, such as those that were
  /// collected in the loop, of which it doesn't know which ones to drop; these, known by their number, also behind
  /// other loops and when the loader has gone.
  torch::Tensor gather_for_metrics(const torch::Tensor& rows) const {
    return detail::gather(rows, /*drop_ghosts=*/true);
  }

  /// The same of several (predictions and targets), one by one, as a tuple: auto [p, t] = gather_for_metrics(p, t).
  template <typename... Tensors>
  auto gather(const torch::Tensor& first, const torch::Tensor& second, const Tensors&... more) const {
    return std::tuple{gather(first), gather(second), gather(more)...};
  }
  template <typename... Tensors>
  auto gather_for_metrics(const torch::Tensor& first, const torch::Tensor& second, const Tensors&... more) const {
    return std::tuple{gather_for_metrics(first), gather_for_metrics(second), gather_for_metrics(more)...};
  }

  /// The value of rank `from_process`, fresh, on all ranks: a tensor (equal shapes and types, or it
  /// throws on all ranks) or a number; strings, enumerators, tuples, pairs, vectors, maps and optionals of such, and
  /// structures with BatchFields (see batch.h), whose tensors and lists may have other shapes and lengths on other
  /// ranks. Detached. Alone: the argument itself. (collective; containers travel together)
  template <typename Value>
  Value broadcast(const Value& x, int64_t from_process = 0) const {
    return detail::broadcast(x, from_process);
  }

  /// The same of several, of the main process, together, as a tuple: auto [x, name] = broadcast(x, name). Where the
  /// second of two is an integer it is a rank: give it as broadcast(std::tuple(x, n)).
  template <typename First, typename Second, typename... More,
            std::enable_if_t<(sizeof...(More) > 0) || !std::is_integral_v<Second>, int> = 0>
  std::tuple<First, Second, More...> broadcast(const First& first, const Second& second, const More&... more) const {
    return broadcast(std::tuple<First, Second, More...>(first, second, more...));
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

  /// Calls `function` on the main process only, with `args`, which every process computes. It must not communicate.
  template <typename Function, typename... Args>
  void on_main_process(Function&& function, Args&&... args) const {
    if (is_main_process()) {
      std::forward<Function>(function)(std::forward<Args>(args)...);
    }
  }

  /// Calls `function` on the main process alone, and returns on every process, when it has, what it returned there (a
  /// number, or nothing), with `errno` as it was there: for what is to be done once, such as making a folder. It must
  /// not communicate. If it throws, all do. (collective)
  template <typename Function>
  std::invoke_result_t<Function> once(Function&& function) const {
    using Result = std::invoke_result_t<Function>;
    int error = 0;
    if constexpr (std::is_void_v<Result>) {
      detail::once([&] {
        function();
        error = errno;
      });
      errno = broadcast(error);
    } else {
      Result result{};
      detail::once([&] {
        result = function();
        error = errno;
      });
      std::tie(result, error) = broadcast(std::tuple(result, error));
      errno = error;
      return result;
    }
  }

  /// The name under which to open an output file that there is to be one of: `path` on the main process,
  /// the null device on the others, so that what is written there needs no guard. It waits for nobody: to write over a
  /// file that other processes may still be reading, open main_process_file(wait_for_file(path)).
  std::string main_process_file(const std::string& path) const { return is_main_process() ? path : "/dev/null"; }

  /// `path`, once every process is here: to open a file that the main process has written (and closed) before, and to
  /// write over one that all have read. (collective)
  template <typename Path>
  Path wait_for_file(Path path) const {
    wait_for_everyone();
    return path;
  }

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
