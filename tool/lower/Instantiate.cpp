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

/// Tells the templates that training can go through from those of a library that lies in the project's folder: every
/// method of all that Eigen can make would name yet other types, without end.
class Training {
public:
  explicit Training(const ASTContext &Ctx) : SM(Ctx.getSourceManager()) {}

  /// Whether a class's file, or that of what a template of it is made for, names LibTorch.
  bool mayConcern(const DeclContext *D) {
    for (; D && !D->isTranslationUnit(); D = D->getParent()) {
      const auto *Class = dyn_cast<CXXRecordDecl>(D);
      if (Class && (inFile(Class) || ofArguments(dyn_cast<ClassTemplateSpecializationDecl>(Class))))
        return true;
    }
    return false;
  }

private:
  bool inFile(const Decl *D) {
    const FileID File = SM.getFileID(SM.getFileLoc(D->getLocation()));
    auto [It, New] = Names.try_emplace(File, false);
    if (New)
      if (std::optional<StringRef> Text = SM.getBufferDataOrNone(File))
        It->second = Text->contains("torch") || Text->contains("ATen") || Text->contains("c10");
    return It->second;
  }
  bool ofArguments(const ClassTemplateSpecializationDecl *Of) {
    return Of && llvm::any_of(Of->getTemplateArgs().asArray(), [&](const TemplateArgument &Arg) { return given(Arg); });
  }
  bool given(const TemplateArgument &Arg) {
    if (Arg.getKind() == TemplateArgument::Pack)
      return llvm::any_of(Arg.pack_elements(), [&](const TemplateArgument &One) { return given(One); });
    if (Arg.getKind() != TemplateArgument::Type)
      return false;
    QualType T = Arg.getAsType().getNonReferenceType();
    while (!T->getPointeeType().isNull())
      T = T->getPointeeType();
    const CXXRecordDecl *Class = T->getAsCXXRecordDecl();
    return T->isFunctionType() ||
           (Class && (inFile(Class) || ofArguments(dyn_cast<ClassTemplateSpecializationDecl>(Class))));
  }

  const SourceManager &SM;
  llvm::DenseMap<FileID, bool> Names;
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
  Training Reachable(Ctx);
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
    llvm::erase_if(Found.Methods, [&](CXXMethodDecl *M) { return !Reachable.mayConcern(M->getParent()); });
    llvm::erase_if(Found.Incomplete, [&](ClassTemplateSpecializationDecl *D) { return !Reachable.mayConcern(D); });
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
