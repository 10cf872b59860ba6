#pragma once

#include <vector>

#include "compare.h"
#include "recording.h"
#include "result.h"

namespace accelerate::launch {

/// Compares what the ranks of a run trained with what the original did, step by step: adds the checks and, if something
/// differs, the first difference to the report. With `report.ranks` below two the same bits are expected.
void CompareTraining(const Recording& original, const std::vector<Recording>& ranks, const Tolerance& tolerance,
                     RunReport& report);

}  // namespace accelerate::launch
