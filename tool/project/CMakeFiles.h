//===- CMakeFiles.h - Where a project's CMake files define a target -------===//
#ifndef ACCELERATE_MIGRATE_PROJECT_CMAKEFILES_H
#define ACCELERATE_MIGRATE_PROJECT_CMAKEFILES_H

#include "project/Project.h"
#include "rules/Apply.h"
#include <optional>

namespace migrate {

/// A target's commands in the one file that defines it. Places are offsets in its text.
struct TargetDefinition {
  std::string Path;
  std::string Name;                ///< as the definition spells it, `${PROJECT_NAME}`
  size_t Begin = 0, Close = 0;     ///< of the command that defines it, or of the call or loop that does: its name, and
                                   ///< the closing parenthesis of its last command
  std::optional<size_t> Links;     ///< the closing parenthesis of a `target_link_libraries` that is its own
  bool ByName = false;             ///< a function or a loop defines it: what is added must name it
  bool Keywords = false;           ///< it is linked with PRIVATE and the like, which can't be mixed with none
  std::optional<std::pair<size_t, size_t>> Torch; ///< `find_package(Torch)` on its way there: name, closing parenthesis
  bool FindsRuntime = false, LinksRuntime = false;
};

/// Follows the project's CMake files as far as names go: `set`, `project`, `foreach`, functions and macros of its own,
/// `file(GLOB)`, `get_filename_component`. None if no command defines the target.
std::optional<TargetDefinition> findTarget(const Project &P, llvm::StringRef Target, const FileTexts &Texts);

} // namespace migrate

#endif
