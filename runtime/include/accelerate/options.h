#pragma once

/// What a program may choose when it makes its first Accelerator. The names and defaults are Hugging Face
/// Accelerate's where it has the concept. A field that isn't set is taken from the launcher's environment
/// variable, where one is named, and else has the default that is named.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace accelerate {

/// What a training loader's batch size means where there are several ranks.
enum class BatchPolicy {
  /// It is the global batch: at each step the ranks' batches together are the original's batch, so that the program
  /// trains as it does alone. Accelerate's `split_batches=True`.
  Global,
  /// It is each rank's own: at step k rank r has the original's batch k * N + r, so that the global batch is N times
  /// the original's and an epoch has 1/N of its steps. Accelerate's default.
  PerProcess,
};

/// How loaders share out their data (Accelerate: DataLoaderConfiguration).
struct DataLoaderConfiguration {
  /// For training loaders that aren't given a policy of their own. (Evaluation loaders share whole batches.)
  BatchPolicy batch_policy = BatchPolicy::Global;

  /// Accelerate's name for the same choice: true is Global, false is PerProcess. Unset, `batch_policy` decides; a
  /// contradiction (true with PerProcess) throws. The batch needn't divide by the number of ranks.
  std::optional<bool> split_batches;

  /// PerProcess only, where the epoch doesn't end with a full batch for every rank. True (Accelerate's default): what
  /// is missing is filled up with the epoch's first rows, over and over, so that all ranks have full batches; those
  /// rows train twice, and count twice in sums and means, but gather_for_metrics() drops them. False: every row counts
  /// once; batches are as short as the original's, ranks without one get a ghost, and losses are weighted by the real
  /// numbers of rows. With drop_last such a last round is left out, either way. A last round that the main process
  /// reads for all (dispatch_batches) is split evenly instead, and no row counts twice.
  bool even_batches = true;

  /// Who reads. True: the main process reads whole batches and sends them, the others keep their slices; right
  /// whatever the source's randomness. False: every rank reads, and keeps its part. Unset: every rank reads only its
  /// share where the sampler's requests are lists of indices; else (stateful and chunk data sets, stream samplers) as
  /// if true. With false, such sources must give the same batches on all ranks.
  std::optional<bool> dispatch_batches;
};

/// In which type gradients travel (Accelerate: DDPCommunicationHookType). Its PowerSGD hooks exist in Python only.
enum class DDPCommunicationHookType {
  No,    ///< their own
  FP16,  ///< half precision: half the traffic, 11 bits of mantissa, overflows above 65504
  BF16,  ///< bfloat16: half the traffic, 8 bits of mantissa, float's range
};

/// How gradients travel (Accelerate: DistributedDataParallelKwargs). Nothing of it matters alone.
struct DistributedDataParallelOptions {
  /// The size of the buckets in which gradients travel, in MiB (c10d's default; the first one has 1 MiB at most).
  double bucket_cap_mb = 25;

  /// Whether models may have parameters that a loss doesn't reach; which, may change from step to step and differ
  /// between ranks (experts that the data choose), as long as it reaches some. Not set (the default): they may, and a
  /// model whose parameters are all reached doesn't pay for it. `true`: c10d's reducer looks for them in every
  /// backward, and every model pays for that. `false`, Accelerate's default: backward() throws and names them.
  std::optional<bool> find_unused_parameters;

  /// The loss reaches the same parameters in every backward(): what is unused is found out once. The first backward
  /// fixes them; one that reaches others throws. Not for programs that train a model with several losses.
  bool static_graph = false;

  DDPCommunicationHookType comm_hook = DDPCommunicationHookType::No;
};

/// How ranks meet and wait for each other (Accelerate: InitProcessGroupKwargs).
struct InitProcessGroupOptions {
  /// How long a rank waits for the others, to start and in each operation, before the job ends with an error that names
  /// who is missing. Else ACCELERATE_TIMEOUT (seconds), which `accelerate-cpp launch --timeout` sets, else 600 s.
  std::optional<std::chrono::seconds> timeout;
};

/// Where checkpoints and logs go (Accelerate: ProjectConfiguration).
struct ProjectConfiguration {
  /// The project's folder. Needed by automatic_checkpoint_naming; otherwise only a default for logging_dir.
  std::string project_dir;
  /// Where trackers that write files put them; project_dir if it's empty.
  std::string logging_dir;
  /// save_state() names its checkpoints itself: project_dir/checkpoints/checkpoint_0, checkpoint_1, ...
  bool automatic_checkpoint_naming = false;
  /// With automatic naming, how many checkpoints are kept: once a new one is complete, the oldest beyond this number
  /// are removed. All, if it isn't set. Only what has an undamaged manifest counts and is removed: other folders of
  /// such a name, and checkpoints that somebody has put a file into, stay.
  std::optional<int64_t> total_limit;
  /// The number of the first checkpoint. If there are checkpoints of this number or a higher one, numbers go on behind
  /// the highest. (Accelerate begins at 0 again after a resume, and then throws.)
  int64_t iteration = 0;
  /// The trackers that init_trackers() starts, separated by commas: "csv", "jsonl", "tensorboard", or "all". From
  /// ACCELERATE_LOG_WITH if it's empty; none if that is, too.
  std::string log_with;
};

/// Options of the process's one state: for the program's first Accelerator.
struct Options {
  /// Whether prepare() moves models, tensors and what optimizers keep to device(), and batches of prepared loaders
  /// arrive there. One call of prepare() can say it for each of its arguments (DevicePlacement).
  bool device_placement = true;
  DataLoaderConfiguration dataloader;
  DistributedDataParallelOptions ddp;
  InitProcessGroupOptions init_process_group;
  ProjectConfiguration project;

  /// "no", "bf16" or "fp16": what accelerator.autocast() computes in, and whether backward() scales the loss ("fp16").
  /// Else ACCELERATE_MIXED_PRECISION, else "no".
  std::optional<std::string> mixed_precision;

  /// How many batches make one optimizer step, for loops that use accelerator.accumulate(). Else
  /// ACCELERATE_GRADIENT_ACCUMULATION_STEPS, else 1. (Accelerate lets the variable overrule the program; here the
  /// program decides.)
  std::optional<int64_t> gradient_accumulation_steps;
};

}  // namespace accelerate
