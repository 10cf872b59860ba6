#pragma once

/// What a program may choose when it makes its first Accelerator. The names and defaults are Hugging Face
/// Accelerate's where it has the concept. A field that isn't set is taken from the launcher's environment
/// variable, where one is named, and else has the default that is named.

#include <cstdint>
#include <optional>
#include <string>

namespace accelerate {

/// How loaders share out their data (Accelerate: DataLoaderConfiguration).
struct DataLoaderConfiguration {};

/// How gradients travel (Accelerate: DistributedDataParallelKwargs).
struct DistributedDataParallelOptions {};

/// Where checkpoints and logs go (Accelerate: ProjectConfiguration).
struct ProjectConfiguration {
  /// The project's folder. Needed by automatic_checkpoint_naming; otherwise only a default for logging_dir.
  std::string project_dir;
  /// Where trackers that write files put them; project_dir if it's empty.
  std::string logging_dir;
  /// save_state() names its checkpoints itself: project_dir/checkpoints/checkpoint_0, checkpoint_1, ...
  bool automatic_checkpoint_naming = false;
  /// With automatic naming, how many checkpoints are kept: once a new one is complete, the oldest beyond this number
  /// are removed. All, if it isn't set.
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
  DataLoaderConfiguration dataloader;
  DistributedDataParallelOptions ddp;
  ProjectConfiguration project;
};

}  // namespace accelerate
