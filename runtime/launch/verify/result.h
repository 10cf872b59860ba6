#pragma once

/// What a comparison found: what the reports print.

#include <optional>
#include <string>
#include <vector>

namespace accelerate::launch {

enum class Outcome { kSame, kDiffers, kUnknown };

/// One row of the table.
struct Check {
  std::string name;
  Outcome outcome = Outcome::kSame;
  std::string detail;
};

/// What a difference looks like. The kinds are listed in README.md.
struct Explanation {
  std::string kind;
  std::string text;
};

/// The first thing that differs in a run.
struct Difference {
  std::string check;  // the name of the check that found it
  std::string where;  // "before step 3", "line 4 of standard output"
  std::optional<std::size_t> step;
  std::string tensor;  // empty: it isn't about one
  std::optional<int> rank;
  std::string what;
  double difference = 0;  // relative; with `tolerance` for differences of numbers
  double tolerance = 0;
  Explanation explanation;
};

/// One of the migrated program's runs, and how it compares with the original's.
struct RunReport {
  std::string name;
  int ranks = 0;  // 0: alone
  int exit_code = 0;
  bool timed_out = false;
  double seconds = 0;
  std::vector<Check> checks;
  std::optional<Difference> first;

  std::vector<double> losses;                     // of the global batch, for each backward pass
  std::vector<double> differences;                // from the original's, relative
  std::vector<double> tolerances;                 // 0: the same bits are expected
  std::vector<long long> rows;                    // of the global batch; -1: unknown
  std::vector<std::vector<long long>> rank_rows;  // each rank's of them; empty: unknown

  bool same() const { return !first; }
};

struct Report {
  std::string original;  // the programs
  std::string migrated;
  std::vector<std::string> arguments;
  double original_seconds = 0;
  std::vector<double> original_losses;
  std::vector<RunReport> runs;

  bool same() const {
    for (const RunReport& run : runs) {
      if (!run.same()) return false;
    }
    return !runs.empty();
  }
};

}  // namespace accelerate::launch
