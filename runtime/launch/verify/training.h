#pragma once

#include <vector>

#include "compare.h"
#include "recording.h"
#include "result.h"

namespace accelerate::launch {

/// What a comparison learned of the original's tensors.
struct TrainingScale {
  double values = 0;        // the largest norm of all parameters together
  double gradients = 0;     // and of all gradients
  std::vector<bool> noise;  // by position: gradients never were more than rounding, so that values aren't compared
};

/// Compares what the ranks of a run trained with what the original did, step by step: adds the checks and, if something
/// differs, the first difference to the report. With `report.ranks` below two the same bits are expected.
TrainingScale CompareTraining(const Recording& original, const std::vector<Recording>& ranks,
                              const Tolerance& tolerance, RunReport& report);

}  // namespace accelerate::launch
