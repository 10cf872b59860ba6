#pragma once

#include <torch/serialize.h>

namespace accelerate::detail {

class Group;

/// Has the ranks draw alike from here on: gives all of them the main process's default CPU generator. One that nobody
/// has seeded gets a seed from the system's entropy, as LibTorch's own has. (collective)
void begin_common_stream(Group& group);

/// Gives dropout a random stream of this rank's own, so that ranks drop different units and, drawing for
/// unequal numbers of rows, stay together in the common stream. Called once, with other ranks only.
void separate_dropout();

/// This rank's generators: the default ones of the CPU and of the current CUDA device, and the own streams beside them.
void save_random_streams(torch::serialize::OutputArchive& archive);
/// Brings them back. With `common_only` the own streams begin anew, from the common generators' seeds: the archive is
/// another rank's, or of another number of ranks.
void load_random_streams(torch::serialize::InputArchive& archive, bool common_only);

}  // namespace accelerate::detail
