//===- Ranges.h - Source ranges that are safe to edit ---------------------===//
#ifndef ACCELERATE_MIGRATE_LOWER_RANGES_H
#define ACCELERATE_MIGRATE_LOWER_RANGES_H

#include "clang/AST/ASTContext.h"
#include "clang/Basic/SourceLocation.h"
#include <optional>

namespace migrate {

/// The file range of the tokens from `First` to `Last`, if the user typed both in one place: in the file, or inside
/// the same argument of the same macro call. No value for what a macro's body spells: it can't be edited here.
std::optional<clang::CharSourceRange> typedByUser(clang::SourceLocation First, clang::SourceLocation Last,
                                                  const clang::ASTContext &Ctx);

} // namespace migrate

#endif
