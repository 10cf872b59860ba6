//===- Project.h - The source tree, its compile database, its programs ----===//
#ifndef ACCELERATE_MIGRATE_PROJECT_PROJECT_H
#define ACCELERATE_MIGRATE_PROJECT_PROJECT_H

#include "clang/Tooling/CompilationDatabase.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace migrate {

/// A unit to read: one entry of the compile database, cleaned of what LibTooling can't use.
struct UnitCommand {
  clang::tooling::CompileCommand Command;
  std::string Source; ///< real path
  std::string Target; ///< from the object's path (`CMakeFiles/<target>.dir/`), or empty
};

struct Project {
  std::string BuildDir, SourceRoot, DiffRoot;
  std::vector<UnitCommand> Units;

  /// Whether a file may be edited: below the source root, not in a build folder.
  bool owns(llvm::StringRef RealPath) const;
  /// `RealPath` as diffs and messages name it: relative to the git repository, else to the source root.
  std::string display(llvm::StringRef RealPath) const;
};

/// Finds the compile database (`BuildDir`, else `build*/` here), reads it, and keeps the entries of `Sources` (all
/// if empty). `Flags` not empty: no database is needed, `Sources` are read with these. Errors are for users: they say
/// what is wrong, where, and what to type next.
llvm::Expected<Project> openProject(llvm::StringRef BuildDir, const std::vector<std::string> &Sources,
                                    const std::vector<std::string> &Flags);

} // namespace migrate

#endif
