//===- Project.h - The source tree, its compile database, its programs ----===//
#ifndef ACCELERATE_MIGRATE_PROJECT_PROJECT_H
#define ACCELERATE_MIGRATE_PROJECT_PROJECT_H

#include "clang/Tooling/CompilationDatabase.h"
#include "llvm/Support/Error.h"
#include <map>
#include <set>
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
  std::string BuildDir;
  std::string HomeDir;    ///< where CMake begins, `CMAKE_SOURCE_DIR`; else the source root
  std::string SourceRoot; ///< what holds the home folder, and the units of its git repository that it builds
  std::string DiffRoot;   ///< the git repository, else the source root
  std::vector<UnitCommand> Units;
  std::vector<UnitCommand> CudaUnits; ///< not read
  std::vector<std::string> Notes;     ///< what was left out of the database and its flags, for users
  /// Target -> the targets that are built into it, itself included; empty if CMake hasn't said.
  std::map<std::string, std::set<std::string>> Targets;

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
