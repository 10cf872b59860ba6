//===- Git.h - What git says about the tree -------------------------------===//
#ifndef ACCELERATE_MIGRATE_PROJECT_GIT_H
#define ACCELERATE_MIGRATE_PROJECT_GIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace migrate {

/// The nearest folder, from `Folder` upwards, with a `.git`, as far up as git itself would look; else empty.
std::string gitRoot(llvm::StringRef Folder);

/// Why writing `Paths` could not be taken back with git: a tracked file below `Root` that has changes which aren't
/// committed, or one of `Paths` that git doesn't know. Empty if all is well, or `Root` is no git work tree.
std::string uncommitted(llvm::StringRef Root, llvm::ArrayRef<std::string> Paths);

/// The files of a work tree, relative to it: those that git tracks (in submodules, too) or neither tracks nor ignores.
/// A repository inside this one that isn't a submodule is one name, with `/` behind it. No value if git can't say.
std::optional<std::vector<std::string>> workTreeFiles(llvm::StringRef Root);

} // namespace migrate

#endif
