#pragma once

/// Recordings of a training that nobody ran.

#include "verify/compare.h"
#include "verify/recording.h"
#include "verify/training.h"

namespace accelerate::launch {

/// Two tensors in a gradient that points somewhere.
inline Prints Gradient(double factor) {
  return {{0, {"", 1, {1 * factor, -2 * factor, 3 * factor, 1, -1, 2, 0.5, 4}}},
          {1, {"", 1, {-1, 1, 2, 2, 1, -3, 1, 0.25}}}};
}

inline Prints Times(Prints prints, double factor) {
  for (auto& [position, print] : prints) {
    print.hash += "'";
    print.norm *= factor;
    for (double& sum : print.sketch) sum *= factor;
  }
  return prints;
}

/// What a rank records of so many steps of a model with two parameters. The first has all rows.
inline Recording Train(int rank, int world, std::size_t steps) {
  Recording recording;
  recording.rank = rank;
  recording.world = world;
  recording.tensors = {{"parameter", "weight", "Float", {8}}, {"parameter", "bias", "Float", {8}}};
  for (std::size_t i = 0; i < steps; ++i) {
    RecordedEvent backward;
    backward.loss = 1.0 / static_cast<double>(i + 1) + rank;
    backward.dtype = "Float";
    backward.gradients = Gradient(1);
    backward.weight = world == 1 ? 1 : rank == 0 ? 1 : 0;
    backward.rows = rank == 0 ? 4 : 0;
    backward.global_rows = 4;
    if (i == 0) backward.values = Gradient(-3);
    RecordedEvent step;
    step.is_step = true;
    step.optimizer = "SGD";
    step.gradients = backward.gradients;
    step.values = Times(Gradient(-3), static_cast<double>(i + 2));
    recording.events.push_back(backward);
    recording.events.push_back(step);
  }
  return recording;
}

/// Alone if there is one recording.
inline RunReport Compare(const Recording& original, const std::vector<Recording>& ranks) {
  RunReport report;
  report.ranks = ranks.size() == 1 ? 0 : static_cast<int>(ranks.size());
  CompareTraining(original, ranks, Tolerance(), report);
  return report;
}

}  // namespace accelerate::launch
