//===- Lower.cpp - Places, types, declarations ----------------------------===//
#include "lower/Lowering.h"
#include "lower/Ranges.h"
#include "units/Dependencies.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/CharInfo.h"
#include "clang/Index/USRGeneration.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/SmallString.h"

using namespace clang;

namespace migrate {

using ir::ExprKind;
using ir::None;
using ir::StmtKind;

std::string qualifiedName(const NamedDecl &D) {
  std::string Name;
  llvm::raw_string_ostream OS(Name);
  PrintingPolicy Policy(D.getASTContext().getLangOpts());
  Policy.SuppressInlineNamespace = true;
  D.printQualifiedName(OS, Policy);
  return Name;
}

ir::FileId Lowering::fileOf(FileID Id) {
  if (auto It = Files.find(Id); It != Files.end())
    return It->second;
  OptionalFileEntryRef Entry = SM.getFileEntryRefForID(Id);
  if (!Entry)
    return Files[Id] = None;
  StringRef Real = Entry->getFileEntry().tryGetRealPathName();
  std::string Path = realPathOf(Real.empty() ? Entry->getName() : Real);
  if (auto It = FilesByPath.find(Path); It != FilesByPath.end())
    return Files[Id] = It->second;
  for (uint32_t I = 0; I != Out.Files.size(); ++I)
    if (Out.Files[I].Path == Path)
      return Files[Id] = FilesByPath[Path] = I;
  ir::File File;
  File.Path = Path;
  File.Project = InProject(Path);
  Out.Files.push_back(File);
  return Files[Id] = FilesByPath[Path] = Out.Files.size() - 1;
}

ir::Range Lowering::rangeOf(SourceLocation First, SourceLocation Last) {
  ir::Range R;
  if (First.isInvalid() || Last.isInvalid())
    return R;
  std::optional<CharSourceRange> Typed = typedByUser(First, Last, Ctx);
  SourceLocation Begin = Typed ? Typed->getBegin() : SM.getFileLoc(First);
  R.File = fileOf(SM.getFileID(Begin));
  if (R.File == None)
    return ir::Range();
  R.Begin = SM.getFileOffset(Begin);
  R.End = Typed ? SM.getFileOffset(Typed->getEnd()) : R.Begin;
  R.Line = SM.getLineNumber(SM.getFileID(Begin), R.Begin);
  R.Column = SM.getColumnNumber(SM.getFileID(Begin), R.Begin);
  R.Editable = Typed && Out.Files[R.File].Project;
  return R;
}

/// With the semicolon, if one follows.
ir::Range Lowering::stmtRange(const Stmt *S) {
  ir::Range R = rangeOf(S->getSourceRange());
  if (!R.Editable)
    return R;
  // What a macro without parameters ends is followed by what follows its name.
  if (SourceLocation End = S->getEndLoc(); End.isMacroID() && !SM.isMacroArgExpansion(End)) {
    StringRef Text = SM.getBufferData(SM.getFileID(SM.getFileLoc(S->getBeginLoc())));
    if (size_t Semicolon = Text.find_first_not_of(" \t", R.End); Semicolon < Text.size() && Text[Semicolon] == ';')
      R.End = Semicolon + 1;
    return R;
  }
  // What a user typed as a macro's argument is followed by what follows it there: an argument has no end within.
  if (SourceLocation End = SM.getSpellingLoc(S->getEndLoc()); End.isFileID())
    if (auto Token = Lexer::findNextToken(End, SM, Ctx.getLangOpts()); Token && Token->is(tok::semi))
      R.End = SM.getFileOffset(Token->getEndLoc());
  return R;
}

/// A fold expression loses its parentheses where it is instantiated; those in front of a statement are its own.
void Lowering::takeParentheses(const Stmt *S, ir::Range &R) {
  SourceLocation Begin = S->getBeginLoc();
  if (!R.Editable || !Begin.isFileID())
    return;
  StringRef Text = SM.getBufferData(SM.getFileID(Begin));
  unsigned Taken = 0;
  for (size_t At = R.Begin; At > 0 && (isWhitespace(Text[At - 1]) || Text[At - 1] == '('); --At)
    if (Text[At - 1] == '(') {
      R.Begin = At - 1;
      ++Taken;
    }
  if (Taken == 0)
    return;
  SourceLocation End = S->getEndLoc();
  auto Take = [&](tok::TokenKind Kind) {
    auto Token = Lexer::findNextToken(End, SM, Ctx.getLangOpts());
    if (!Token || Token->isNot(Kind))
      return false;
    End = Token->getLocation();
    R.End = SM.getFileOffset(Token->getEndLoc());
    return true;
  };
  while (Taken > 0 && Take(tok::r_paren))
    --Taken;
  Take(tok::semi);
}

ir::TypeId Lowering::typeId(QualType T) {
  ir::Type Type = Types.classify(T);
  Type.Own = !T.isNull() && ownRecord(T.getNonReferenceType()) != nullptr;
  std::string Key = Type.Name + (Type.Reference ? "&" : "") + (Type.Const ? "c" : "");
  auto [It, New] = TypeIds.try_emplace(Key, Out.Types.size());
  if (New)
    Out.Types.push_back(Type);
  return It->second;
}

/// The lambdas that a function was instantiated with, by where they stand: USRs take all of a function's for one.
static std::string lambdasIn(const Decl *D) {
  std::string Text;
  auto Add = [&](const TemplateArgumentList *Args) {
    if (!Args)
      return;
    for (const TemplateArgument &Arg : Args->asArray())
      for (const TemplateArgument &Each :
           Arg.getKind() == TemplateArgument::Pack ? Arg.pack_elements() : llvm::ArrayRef(Arg))
        if (Each.getKind() == TemplateArgument::Type)
          if (std::string Type = Each.getAsType().getCanonicalType().getAsString();
              Type.find("(lambda") != std::string::npos)
            Text += "#" + Type;
  };
  if (const auto *F = dyn_cast<FunctionDecl>(D))
    Add(F->getTemplateSpecializationArgs());
  for (const DeclContext *Of = D->getDeclContext(); Of; Of = Of->getParent())
    if (const auto *Record = dyn_cast<ClassTemplateSpecializationDecl>(Of))
      Add(&Record->getTemplateArgs());
  return Text;
}

std::string Lowering::usrOf(const Decl *D) {
  D = D->getCanonicalDecl();
  if (auto It = Usrs.find(D); It != Usrs.end())
    return It->second;
  llvm::SmallString<128> Usr;
  if (index::generateUSRForDecl(D, Usr) || Usr.empty()) {
    // Lambdas and local classes have no USR of their own.
    Usr = ("local:" + std::to_string(Usrs.size()) + ":" + Out.Source).c_str();
  } else if (const auto *M = dyn_cast<CXXMethodDecl>(D); M && M->getParent()->isLambda()) {
    Usr += "#" + std::to_string(Usrs.size());
  } else {
    Usr += lambdasIn(D);
  }
  return Usrs[D] = Usr.str().str();
}

ir::VarId Lowering::varOf(const ValueDecl *D) {
  D = cast<ValueDecl>(D->getCanonicalDecl());
  if (auto It = Vars.find(D); It != Vars.end())
    return It->second;
  ir::Var V;
  V.Name = D->getNameAsString();
  V.Type = typeId(D->getType());
  V.Field = isa<FieldDecl>(D);
  V.Param = isa<ParmVarDecl>(D);
  if (const auto *Variable = dyn_cast<VarDecl>(D)) {
    V.Global = Variable->hasGlobalStorage();
    V.EachThread = Variable->getTLSKind() != VarDecl::TLS_None;
  }
  if (V.Field || V.Global)
    V.Usr = usrOf(D);
  V.Function = V.Field || V.Global ? None : Current;
  if (const auto *Declarator = dyn_cast<DeclaratorDecl>(D))
    V.Decl = rangeOf(Declarator->getSourceRange());
  Out.Vars.push_back(V);
  return Vars[D] = Out.Vars.size() - 1;
}

/// The class of an object that the project has made up: none that is known by its kind.
const CXXRecordDecl *Lowering::ownRecord(QualType T) {
  const CXXRecordDecl *Record = T.isNull() ? nullptr : T->getAsCXXRecordDecl();
  return Record && !Record->isLambda() && inProject(Record->getLocation()) &&
                 Types.classify(T).Kind == ir::TypeKind::Unknown
             ? Record
             : nullptr;
}

/// An object that has no name, `return Result(loss, count)`, `step().loss`, `new Result`, lies in a variable of its
/// own. So does what a call gives or not, `loader.next()->x`.
void Lowering::keep(ir::ExprId Id, QualType T) {
  const auto *Maybe = T.isNull() ? nullptr : dyn_cast_or_null<ClassTemplateSpecializationDecl>(T->getAsCXXRecordDecl());
  const bool Optional = Maybe && Out.Exprs[Id].Kind == ExprKind::Call && Maybe->isInStdNamespace() &&
                        Maybe->getName() == "optional" && ownRecord(Maybe->getTemplateArgs()[0].getAsType());
  const bool Map = Out.Exprs[Id].Kind == ExprKind::Call && Out.type(Id).namesTensors();
  if (Current == None || !(Optional || Map || ownRecord(T)))
    return;
  ir::Var V;
  V.Type = typeId(T);
  V.Function = Current;
  Out.Vars.push_back(V);
  Out.Exprs[Id].Var = Out.Vars.size() - 1;
}

void Lowering::lowerGlobal(const VarDecl *V) {
  ir::VarId Var = varOf(V);
  ir::ExprId Value = expr(V->getInit());
  Out.Globals.emplace_back(Var, Value);
}

namespace {

/// Finds what is to be lowered: definitions in project files, and the instantiations of project templates.
class Collector : public RecursiveASTVisitor<Collector> {
public:
  Collector(Lowering &L) : L(L) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool TraverseLambdaExpr(LambdaExpr *) { return true; } // lowered where it stands

  bool VisitFunctionDecl(FunctionDecl *F) {
    bool Left = F->isInvalidDecl() && F->isTemplateInstantiation(); // see instantiateMethods()
    if (F->doesThisDeclarationHaveABody() && !F->isDependentContext() && L.inProject(F->getLocation()) && !Left)
      L.lowerFunction(F);
    return true;
  }
  bool VisitVarDecl(VarDecl *V) {
    if (V->isFileVarDecl() && V->isThisDeclarationADefinition() && V->hasInit() && !V->isTemplated() &&
        !V->getType()->isDependentType() && L.inProject(V->getLocation()))
      L.lowerGlobal(V);
    return true;
  }

private:
  Lowering &L;
};

} // namespace

void lower(ASTContext &Ctx, const RuleSet &Rules, ProjectFilter InProject, ir::Unit &Out) {
  Lowering L(Ctx, Rules, InProject, Out);
  std::vector<Decl *> Own;
  for (Decl *D : Ctx.getTranslationUnitDecl()->noload_decls()) // a precompiled header holds none of the project
    if (L.inProject(D->getLocation()))
      Own.push_back(D);
  // Everything else stays untouched (and, behind a precompiled header, unread).
  Ctx.setTraversalScope(Own);
  Collector C(L);
  for (Decl *D : Own)
    C.TraverseDecl(D);
  // What Clang complained about wasn't understood.
  for (ir::Function &F : Out.Functions)
    for (const ir::Problem &E : Out.Errors)
      F.Broken |= F.Where.valid() && E.Offset != None && E.Path == Out.Files[F.Where.File].Path &&
                  F.Where.Begin <= E.Offset && E.Offset <= F.Where.End;
}

} // namespace migrate
