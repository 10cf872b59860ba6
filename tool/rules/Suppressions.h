//===- Suppressions.h - Rules that comments switch off --------------------===//
//
//   x.norm();  // accelerate-migrate: off(AM0701): every rank may print its own
//
// in the line itself, alone above it, or `off-begin(…)` and `off-end(…)` around lines. rules/README.md tells what it
// means.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_RULES_SUPPRESSIONS_H
#define ACCELERATE_MIGRATE_RULES_SUPPRESSIONS_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace migrate {

/// One code in one comment.
struct Suppression {
  std::string Code;              ///< or name
  unsigned Line = 0, Column = 0; ///< where it stands
  unsigned First = 0, Last = 0;  ///< the lines that it's about
};

struct Suppressions {
  std::vector<Suppression> All;
  /// Comments that are meant to be suppressions and aren't: `Code` tells what is wrong.
  std::vector<Suppression> Malformed;

  /// The suppressions in the comments of a C++ text.
  static Suppressions in(llvm::StringRef Text);
};

} // namespace migrate

#endif
