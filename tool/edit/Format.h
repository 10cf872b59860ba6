//===- Format.h - Touched lines in the project's own style ----------------===//
#ifndef ACCELERATE_MIGRATE_EDIT_FORMAT_H
#define ACCELERATE_MIGRATE_EDIT_FORMAT_H

#include "edit/Edits.h"

namespace migrate {

/// `After`, the text of `Path` with its part of the merged edits, with the lines that they touch formatted by the
/// nearest
/// `.clang-format` between the file and `Root`. Without one, or if it can't be read (`Ignored` says why), the text
/// comes back as it is.
std::string formatTouched(llvm::StringRef Path, llvm::StringRef Root, std::string After,
                          const std::vector<Edit> &Merged, std::string &Ignored);

} // namespace migrate

#endif
