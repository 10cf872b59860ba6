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
struct ProjectConfiguration {};

/// Options of the process's one state: for the program's first Accelerator.
struct Options {
  DataLoaderConfiguration dataloader;
  DistributedDataParallelOptions ddp;
  ProjectConfiguration project;
};

}  // namespace accelerate
