#pragma once

#include <optional>
#include <string>

#include "compare.h"
#include "recording.h"
#include "result.h"
#include "training.h"

namespace accelerate::launch {

/// Compares the tensors and numbers that the original and the migrated program's main process wrote to archives, in
/// their order: the same bits if it was alone, else within the tolerance of their step. `first` becomes the difference
/// if it is empty.
Check CompareSaved(const Recording& original, const Recording& migrated, int ranks, const TrainingScale& scale,
                   const Tolerance& tolerance, std::optional<Difference>& first);

/// Whether an archive of that name has an optimizer in it, and so the addresses of its parameters: its bytes aren't the
/// same twice.
bool SavesOptimizer(const Recording& recording, const std::string& archive);

}  // namespace accelerate::launch
