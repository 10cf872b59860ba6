//===- Lower.h - From Clang's AST to our representation -------------------===//
#ifndef ACCELERATE_MIGRATE_LOWER_LOWER_H
#define ACCELERATE_MIGRATE_LOWER_LOWER_H

#include "ir/Unit.h"
#include "clang/AST/ASTContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace migrate {

class RuleSet;

/// Which files may be edited: those whose real path this says yes to.
using ProjectFilter = llvm::function_ref<bool(llvm::StringRef RealPath)>;

/// Lowers the functions that the project's files define, template instantiations included, and records where the
/// patterns of `Rules` match in them. `Out` keeps what the preprocessor and the parser already put there.
void lower(clang::ASTContext &Ctx, const RuleSet &Rules, ProjectFilter InProject, ir::Unit &Out);

} // namespace migrate

#endif
