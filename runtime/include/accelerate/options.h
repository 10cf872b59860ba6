#pragma once

/// What a program may choose when it makes its first Accelerator. The names and defaults are Hugging Face
/// Accelerate's where it has the concept. A field that isn't set is taken from the launcher's environment
/// variable, where one is named, and else has the default that is named.

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

/// How gradients travel (Accelerate: DistributedDataParallelKwargs).
struct DistributedDataParallelOptions {};

/// Where checkpoints and logs go (Accelerate: ProjectConfiguration).
struct ProjectConfiguration {};

/// Options of the process's one state: for the program's first Accelerator.
struct Options {
  DataLoaderConfiguration dataloader;
  DistributedDataParallelOptions ddp;
  ProjectConfiguration project;
};

}  // namespace accelerate
