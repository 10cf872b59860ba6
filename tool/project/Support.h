//===- Support.h - Errors and paths, said in one way ----------------------===//
#ifndef ACCELERATE_MIGRATE_PROJECT_SUPPORT_H
#define ACCELERATE_MIGRATE_PROJECT_SUPPORT_H

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <string>

namespace migrate {

inline llvm::Error fail(const llvm::Twine &Message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), Message);
}

/// Absolute, links followed; empty if nothing is there.
inline std::string realPath(const llvm::Twine &Path) {
  llvm::SmallString<256> Real;
  return llvm::sys::fs::real_path(Path, Real) ? std::string() : Real.str().str();
}

} // namespace migrate

#endif
