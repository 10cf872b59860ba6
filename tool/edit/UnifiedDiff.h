//===- UnifiedDiff.h - What changed, for `git apply` and `patch -p1` ------===//
#ifndef ACCELERATE_MIGRATE_EDIT_UNIFIEDDIFF_H
#define ACCELERATE_MIGRATE_EDIT_UNIFIEDDIFF_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace migrate {

/// The unified diff (three lines of context) between two texts of the file that diffs name `Name`. Line endings and a
/// missing final newline come through. Empty if the texts are equal.
std::string unifiedDiff(llvm::StringRef Name, llvm::StringRef Before, llvm::StringRef After);

} // namespace migrate

#endif
