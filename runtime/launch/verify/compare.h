#pragma once

#include <regex>
#include <string>
#include <vector>

#include "result.h"
#include "run.h"

namespace accelerate::launch {

/// How far apart numbers of the same training may be on ranks: README.md has the reasons.
struct Tolerance {
  /// Of the first step, relative; 0: 256 units of the loss's rounding, 1.5e-5 for float.
  double first = 0;
  /// Never more than this, however long the training is.
  static constexpr double kMost = 0.05;

  double At(const std::string& dtype, std::size_t steps) const;
};

struct CompareSettings {
  Tolerance tolerance;
  std::vector<std::regex> masks;     // of output that differs from run to run
  std::vector<std::string> ignored;  // glob patterns of files
};

/// Whether the program couldn't even be started with the recorder.
bool CannotBeRecorded(const RunResult& run);

/// Compares a run of the migrated program with the original's: exactly if it was alone, else within the tolerance.
RunReport CompareRuns(const RunResult& original, const RunResult& migrated, const CompareSettings& settings);

/// Adds to the later report that the global batches of two runs on ranks aren't the same, if that is so.
void CompareRows(const RunReport& first, RunReport& later);

/// Whether two runs of one program did the same, and why not.
std::optional<Difference> FindNondeterminism(const RunResult& one, const RunResult& other,
                                             const CompareSettings& settings);

}  // namespace accelerate::launch
