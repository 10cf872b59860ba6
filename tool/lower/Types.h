//===- Types.h - Roles begin with types: what kind of thing a C++ type is -===//
#ifndef ACCELERATE_MIGRATE_LOWER_TYPES_H
#define ACCELERATE_MIGRATE_LOWER_TYPES_H

#include "ir/Unit.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "llvm/ADT/DenseMap.h"

namespace migrate {

/// Classifies types by their base classes, never by the names of variables.
class TypeClassifier {
public:
  explicit TypeClassifier(const clang::ASTContext &Ctx) : Ctx(Ctx) {}

  ir::Type classify(clang::QualType T);

  /// The class that a holder, a smart pointer or a pointer of a module leads to; `T`'s own class otherwise.
  const clang::CXXRecordDecl *moduleClass(clang::QualType T);

private:
  ir::TypeKind kindOf(const clang::CXXRecordDecl *Record);

  const clang::ASTContext &Ctx;
  llvm::DenseMap<const clang::CXXRecordDecl *, ir::TypeKind> Kinds;
};

} // namespace migrate

#endif
