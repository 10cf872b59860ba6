//===- Instantiate.cpp ----------------------------------------------------===//
#include "lower/Instantiate.h"
#include "units/Dependencies.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Sema/Scope.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"

using namespace clang;

namespace migrate {
namespace {

/// Finds what could be instantiated and hasn't been.
class Finder : public RecursiveASTVisitor<Finder> {
public:
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool VisitClassTemplateSpecializationDecl(ClassTemplateSpecializationDecl *D) {
    if (!D->hasDefinition() && D->getSpecializationKind() == TSK_Undeclared && !D->isDependentType())
      Incomplete.push_back(D);
    return true;
  }
  bool VisitCXXMethodDecl(CXXMethodDecl *M) {
    if (!M->isDependentContext() && !M->isDefined() && !M->isInvalidDecl() && !M->getTrailingRequiresClause() &&
        M->getTemplateSpecializationKind() == TSK_ImplicitInstantiation && Seen.insert(M).second)
      if (const FunctionDecl *Pattern = M->getTemplateInstantiationPattern(); Pattern && Pattern->isDefined())
        Methods.push_back(M);
    return true;
  }

  /// Holders and smart pointers make objects in bodies that aren't read: nothing else defines these constructors.
  bool VisitCXXRecordDecl(CXXRecordDecl *D) {
    if (D->isThisDeclarationADefinition() && D->isCompleteDefinition() && !D->isDependentContext() && !D->isLambda() &&
        !D->isInvalidDecl() && D->hasInClassInitializer() && Made.insert(D).second)
      Initialised.push_back(D);
    return true;
  }

  std::vector<ClassTemplateSpecializationDecl *> Incomplete;
  std::vector<CXXMethodDecl *> Methods;
  std::vector<CXXRecordDecl *> Initialised;

private:
  llvm::DenseSet<CXXMethodDecl *> Seen;
  llvm::DenseSet<CXXRecordDecl *> Made;
};

/// Defines a default constructor that nobody wrote, so that it tells what members are initialised with in the class.
void defineDefault(Sema &S, CXXRecordDecl *D) {
  CXXConstructorDecl *Ctor = S.LookupDefaultConstructor(D);
  if (Ctor && Ctor->isDefaulted() && !Ctor->isDeleted() && !Ctor->isInvalidDecl() && !Ctor->hasBody() &&
      !Ctor->willHaveBody())
    S.DefineImplicitDefaultConstructor(D->getLocation(), Ctor);
}

} // namespace

void instantiateMethods(Sema &S, ProjectFilter InProject) {
  ASTContext &Ctx = S.getASTContext();
  const SourceManager &SM = S.getSourceManager();
  bool Loud = !S.getDiagnostics().getSuppressAllDiagnostics();
  S.getDiagnostics().setSuppressAllDiagnostics(true);
  // The unit's own scope is gone at its end; what is instantiated may declare a builtin in it (`__builtin_memcpy`, to
  // assign an array).
  Scope Unit(nullptr, Scope::DeclScope, S.getDiagnostics());
  Unit.setEntity(Ctx.getTranslationUnitDecl());
  Scope *Before = std::exchange(S.TUScope, S.TUScope ? S.TUScope : &Unit);
  Finder Found;
  // One's methods may name the next: beyond any real chain nothing is missed that matters.
  for (int Round = 0; Round != 8; ++Round) {
    Found.Incomplete.clear();
    Found.Methods.clear();
    Found.Initialised.clear();
    for (Decl *D : Ctx.getTranslationUnitDecl()->noload_decls()) {
      SourceLocation Loc = SM.getFileLoc(D->getLocation());
      OptionalFileEntryRef Entry = SM.getFileEntryRefForID(SM.getFileID(Loc));
      if (Entry && InProject(realPathOf(Entry->getFileEntry().tryGetRealPathName())))
        Found.TraverseDecl(D);
    }
    bool Any = !Found.Methods.empty();
    for (CXXRecordDecl *D : Found.Initialised)
      defineDefault(S, D);
    for (ClassTemplateSpecializationDecl *D : Found.Incomplete)
      Any |= S.isCompleteType(D->getLocation(), Ctx.getRecordType(D));
    for (CXXMethodDecl *M : Found.Methods) {
      DiagnosticErrorTrap Trap(S.getDiagnostics());
      S.InstantiateFunctionDefinition(M->getLocation(), M, /*Recursive=*/true, /*DefinitionRequired=*/false,
                                      /*AtEndOfTU=*/true);
      if (Trap.hasErrorOccurred())
        M->setInvalidDecl();
    }
    if (!Any)
      break;
  }
  S.TUScope = Before;
  S.getDiagnostics().setSuppressAllDiagnostics(!Loud);
}

bool callsBack(llvm::StringRef Path) {
  // libstdc++'s algorithms, `std::invoke` and what holds functions; libc++ has a folder for each.
  static const llvm::StringSet<> Files = {"stl_algo.h",    "stl_algobase.h", "stl_numeric.h",  "ranges_algo.h",
                                          "ranges_util.h", "invoke.h",       "std_function.h", "std_thread.h"};
  if (Files.contains(llvm::sys::path::filename(Path)) && Path.contains("/c++/"))
    return true;
  return Path.contains("/__algorithm/") || Path.contains("/__numeric/") || Path.contains("/__functional/");
}

} // namespace migrate
