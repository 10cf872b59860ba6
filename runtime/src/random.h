#pragma once

#include <torch/serialize.h>

namespace accelerate::detail {

/// Gives dropout a random stream of this rank's own, so that ranks drop different units and, drawing for
/// unequal numbers of rows, stay together in the common stream. Called once, with other ranks only.
void separate_dropout();

/// This rank's generators: the default ones of the CPU and of the current CUDA device, and the own streams beside them.
void save_random_streams(torch::serialize::OutputArchive& archive);
/// Brings them back. With `common_only` the own streams begin anew, from the common generators' seeds: the archive is
/// another rank's, or of another number of ranks.
void load_random_streams(torch::serialize::InputArchive& archive, bool common_only);

}  // namespace accelerate::detail
