//===- Parse.h - One translation unit, parsed and lowered -----------------===//
#ifndef ACCELERATE_MIGRATE_LOWER_PARSE_H
#define ACCELERATE_MIGRATE_LOWER_PARSE_H

#include "ir/Unit.h"
#include "project/Project.h"
#include "units/Serialise.h"
#include <string>

namespace migrate {

class RuleSet;

struct ParseOptions {
  std::string ResourceDir;     ///< Clang's own headers
  std::string RuntimeInclude;  ///< where `accelerate/accelerate.h` lies, or empty
  bool Precompile = true;      ///< use a precompiled header of LibTorch
  bool DistrustPrefix = false; ///< but not for this unit, and drop it if that helps
  bool SkipBodies = true;      ///< function bodies outside the project aren't read
};

/// Parses one unit and lowers it. What Clang reports is in `Unit::Errors`; a unit that could not even be started
/// (an unusable command) has a fatal problem there.
/// `System` of the result holds what lies outside the project, `Own` the project's files.
ReadUnit parseUnit(const Project &P, const UnitCommand &Command, const RuleSet &Rules, const ParseOptions &Options,
                   const Overlay &Edited = {});

/// Clang's resource folder: `Explicit`, beside the executable, the one baked in, or what `clang-19` says. Empty if
/// none holds `include/stddef.h`.
std::string findResourceDir(llvm::StringRef Explicit, llvm::StringRef Executable);

} // namespace migrate

#endif
