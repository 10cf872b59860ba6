//===- Lower.cpp ----------------------------------------------------------===//
#include "lower/Lower.h"
#include "lower/Ranges.h"
#include "lower/Types.h"
#include "rules/Rule.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/ASTMatchers/ASTMatchFinder.h"
#include "clang/Index/USRGeneration.h"
#include "clang/Basic/CharInfo.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace clang;

namespace migrate {
namespace {

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

class Lowering : public ast_matchers::MatchFinder::MatchCallback {
public:
  Lowering(ASTContext &Ctx, const RuleSet &Rules, ProjectFilter InProject, ir::Unit &Out)
      : Ctx(Ctx), SM(Ctx.getSourceManager()), InProject(InProject), Out(Out), Types(Ctx) {
    for (uint32_t I = 0; I != Rules.rules().size(); ++I)
      if (Rules.rules()[I].Matcher) {
        Callbacks.push_back(std::make_unique<Callback>(*this, I));
        Finder.addDynamicMatcher(*Rules.rules()[I].Matcher, Callbacks.back().get());
      }
  }

  bool inProject(SourceLocation Loc) {
    if (Loc.isInvalid())
      return false;
    ir::FileId File = fileOf(SM.getFileID(SM.getFileLoc(Loc)));
    return File != None && Out.Files[File].Project;
  }

  ir::FuncId lowerFunction(const FunctionDecl *F, ir::FuncId Parent = None);
  void lowerGlobal(const VarDecl *V) { varOf(V); }

private:
  struct Callback : ast_matchers::MatchFinder::MatchCallback {
    Callback(Lowering &L, uint32_t Rule) : L(L), Rule(Rule) {}
    void run(const ast_matchers::MatchFinder::MatchResult &R) override {
      ir::RuleMatch M;
      M.Rule = Rule;
      M.Function = L.Current;
      for (const auto &[Name, Node] : R.Nodes.getMap())
        if (const auto *S = Node.get<Stmt>())
          if (auto It = L.Lowered.find(S); It != L.Lowered.end())
            M.Nodes[Name] = It->second;
      if (M.Nodes.size() == R.Nodes.getMap().size())
        L.Out.Matches.push_back(std::move(M));
    }
    Lowering &L;
    uint32_t Rule;
  };

  void run(const ast_matchers::MatchFinder::MatchResult &) override {}

  ir::FileId fileOf(FileID Id);
  ir::Range rangeOf(SourceLocation First, SourceLocation Last);
  ir::Range rangeOf(SourceRange R) { return rangeOf(R.getBegin(), R.getEnd()); }
  ir::Range stmtRange(const Stmt *S);
  ir::TypeId typeId(QualType T);
  ir::VarId varOf(const ValueDecl *D);
  std::string usrOf(const Decl *D);

  ir::ExprId expr(const Expr *E);
  ir::ExprId lowerExpr(const Expr *E);
  ir::ExprId make(ExprKind Kind, const Expr *E);
  void noteDistributed(StringRef Name, const ir::Range &Where);
  ir::ExprId callTo(const CallExpr *E);
  ir::ExprId operatorCall(const CXXOperatorCallExpr *E);
  ir::ExprId construct(const CXXConstructExpr *E);
  ir::ExprId lambda(const LambdaExpr *E);
  void addArgs(ir::ExprId Id, llvm::iterator_range<CallExpr::const_arg_iterator> Args);
  void setCallee(ir::ExprId Id, const FunctionDecl *F);
  void setForwardOf(ir::ExprId Id, QualType ModuleType);

  ir::StmtId stmt(const Stmt *S);
  ir::StmtId block(llvm::ArrayRef<ir::StmtId> Children, ir::Range Where, bool Transparent);
  ir::StmtId make(StmtKind Kind, const Stmt *S);

  ASTContext &Ctx;
  const SourceManager &SM;
  ProjectFilter InProject;
  ir::Unit &Out;
  TypeClassifier Types;
  ast_matchers::MatchFinder Finder;
  std::vector<std::unique_ptr<Callback>> Callbacks;

  ir::FuncId Current = None;
  llvm::DenseMap<FileID, ir::FileId> Files;
  std::map<std::string, ir::FileId> FilesByPath;
  std::map<std::string, ir::TypeId> TypeIds;
  llvm::DenseMap<const Decl *, ir::VarId> Vars;
  llvm::DenseMap<const Decl *, std::string> Usrs;
  llvm::DenseMap<const Stmt *, ir::ExprId> Lowered;
  llvm::DenseMap<const FunctionDecl *, ir::FuncId> Functions;
};

//===----------------------------------------------------------------------===//
// Places, types, declarations
//===----------------------------------------------------------------------===//

ir::FileId Lowering::fileOf(FileID Id) {
  if (auto It = Files.find(Id); It != Files.end())
    return It->second;
  OptionalFileEntryRef Entry = SM.getFileEntryRefForID(Id);
  if (!Entry)
    return Files[Id] = None;
  StringRef Real = Entry->getFileEntry().tryGetRealPathName();
  std::string Path = (Real.empty() ? Entry->getName() : Real).str();
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
  SourceLocation End = S->getEndLoc();
  if (End.isFileID())
    if (auto Token = Lexer::findNextToken(End, SM, Ctx.getLangOpts()); Token && Token->is(tok::semi))
      R.End = SM.getFileOffset(Token->getEndLoc());
  return R;
}

ir::TypeId Lowering::typeId(QualType T) {
  ir::Type Type = Types.classify(T);
  std::string Key = Type.Name + (Type.Reference ? "&" : "") + (Type.Const ? "c" : "");
  auto [It, New] = TypeIds.try_emplace(Key, Out.Types.size());
  if (New)
    Out.Types.push_back(Type);
  return It->second;
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
  if (const auto *Variable = dyn_cast<VarDecl>(D))
    V.Global = Variable->hasGlobalStorage();
  if (V.Field || V.Global)
    V.Usr = usrOf(D);
  V.Function = V.Field || V.Global ? None : Current;
  if (const auto *Declarator = dyn_cast<DeclaratorDecl>(D))
    V.Decl = rangeOf(Declarator->getSourceRange());
  Out.Vars.push_back(V);
  return Vars[D] = Out.Vars.size() - 1;
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ir::ExprId Lowering::make(ExprKind Kind, const Expr *E) {
  ir::Expr X;
  X.Kind = Kind;
  X.Type = typeId(E->getType());
  X.Where = rangeOf(E->getSourceRange());
  X.FromTemplate = Current != None && !Out.Functions[Current].Pattern.empty();
  noteDistributed(Out.Types[X.Type].Name, X.Where);
  Out.Exprs.push_back(X);
  return Out.Exprs.size() - 1;
}

/// Code that shares work out by itself: a second layer on top of it would average twice.
void Lowering::noteDistributed(StringRef Name, const ir::Range &Where) {
  bool Own = Name.starts_with("c10d::") || Name.contains("<c10d::") || Name.starts_with("MPI_") ||
             (Name.starts_with("nccl") && Name.size() > 4 && isUppercase(Name[4])) ||
             Name.contains("torch::nn::parallel::") || Name.contains("torch::data::samplers::Distributed");
  if (Own && Where.valid())
    Out.Distributed.push_back((Name + " at " + Out.Files[Where.File].Path + ":" + Twine(Where.Line)).str());
}

void Lowering::setCallee(ir::ExprId Id, const FunctionDecl *F) {
  if (!F)
    return;
  Out.Exprs[Id].Name = qualifiedName(*F);
  Out.Exprs[Id].Callee = usrOf(F);
  noteDistributed(Out.Exprs[Id].Name, Out.Exprs[Id].Where);
  Out.Exprs[Id].NoReturn = F->isNoReturn() || F->hasAttr<NoReturnAttr>() || F->hasAttr<CXX11NoReturnAttr>();
}

void Lowering::addArgs(ir::ExprId Id, llvm::iterator_range<CallExpr::const_arg_iterator> Args) {
  std::vector<ir::ExprId> Ids;
  for (const Expr *Arg : Args)
    if (!isa<CXXDefaultArgExpr>(Arg)) // what the user didn't write
      Ids.push_back(expr(Arg));
  Out.Exprs[Id].Args = std::move(Ids);
}

/// `model(x)` on a holder, and `seq->forward(x)`: which class's forward runs.
void Lowering::setForwardOf(ir::ExprId Id, QualType ModuleType) {
  const CXXRecordDecl *Record = Types.moduleClass(ModuleType);
  if (!Record || !Record->hasDefinition())
    return;
  Out.Exprs[Id].Name = qualifiedName(*Record) + "::forward";
  for (const Decl *D : Record->decls()) {
    if (const auto *Template = dyn_cast<FunctionTemplateDecl>(D))
      D = Template->getTemplatedDecl();
    if (const auto *M = dyn_cast<CXXMethodDecl>(D); M && M->getDeclName().isIdentifier() && M->getName() == "forward") {
      Out.Exprs[Id].Callee = usrOf(M);
      return;
    }
  }
}

ir::ExprId Lowering::callTo(const CallExpr *E) {
  ir::ExprId Id = make(ExprKind::Call, E);
  const FunctionDecl *F = E->getDirectCallee();
  setCallee(Id, F);
  const Expr *Callee = E->getCallee()->IgnoreParenImpCasts();
  if (const auto *Member = dyn_cast<MemberExpr>(Callee)) {
    // A call of a static method through an object has no object to lower for.
    ir::ExprId Object = expr(Member->getBase());
    Out.Exprs[Id].Object = Object;
    Out.Exprs[Id].CalleeName = rangeOf(Member->getMemberLoc(), Member->getMemberLoc());
    // Modules of LibTorch inherit their forward from templates: the object's class tells which it is.
    if (F && F->getDeclName().isIdentifier() && F->getName() == "forward" && !inProject(F->getLocation()) &&
        Out.type(Object).Kind == ir::TypeKind::Module)
      if (const CXXRecordDecl *Record = Types.moduleClass(Member->getBase()->IgnoreParenImpCasts()->getType());
          Record && !inProject(Record->getLocation()))
        Out.Exprs[Id].Name = qualifiedName(*Record) + "::forward";
  } else if (const auto *Ref = dyn_cast<DeclRefExpr>(Callee)) {
    Out.Exprs[Id].CalleeName = rangeOf(Ref->getBeginLoc(), Ref->getLocation());
  } else {
    ir::ExprId Object = expr(Callee);
    Out.Exprs[Id].Object = Object;
  }
  if (F && F->isImplicit() && isa<CXXConversionDecl>(F))
    return Out.Exprs[Id].Object;
  addArgs(Id, E->arguments());
  return Id;
}

ir::ExprId Lowering::operatorCall(const CXXOperatorCallExpr *E) {
  OverloadedOperatorKind Op = E->getOperator();
  std::string Spelling = getOperatorSpelling(Op);
  switch (Op) {
  case OO_Call: {
    ir::ExprId Id = make(ExprKind::Call, E);
    setCallee(Id, E->getDirectCallee());
    ir::ExprId Object = expr(E->getArg(0));
    Out.Exprs[Id].Object = Object;
    if (Out.type(Object).Kind == ir::TypeKind::Module)
      setForwardOf(Id, E->getArg(0)->getType());
    addArgs(Id, llvm::drop_begin(E->arguments()));
    return Id;
  }
  case OO_Subscript: {
    ir::ExprId Id = make(ExprKind::Index, E);
    setCallee(Id, E->getDirectCallee());
    ir::ExprId Object = expr(E->getArg(0));
    Out.Exprs[Id].Object = Object;
    addArgs(Id, llvm::drop_begin(E->arguments()));
    return Id;
  }
  case OO_Arrow:
    return expr(E->getArg(0)); // `holder->x` is `holder.x` to the analysis
  case OO_Star:
    if (E->getNumArgs() == 1) {
      ir::ExprId Id = make(ExprKind::Unary, E);
      Out.Exprs[Id].Name = "*";
      addArgs(Id, E->arguments());
      return Id;
    }
    break;
  default:
    break;
  }
  bool Assigns = E->isAssignmentOp();
  ir::ExprId Id = make(Assigns ? ExprKind::Assign : E->getNumArgs() == 1 || Op == OO_PlusPlus || Op == OO_MinusMinus
                                                        ? ExprKind::Unary
                                                        : ExprKind::Binary,
                       E);
  setCallee(Id, E->getDirectCallee());
  Out.Exprs[Id].Name = Spelling;
  addArgs(Id, E->arguments());
  return Id;
}

ir::ExprId Lowering::construct(const CXXConstructExpr *E) {
  // Copies and moves are the value itself.
  const CXXConstructorDecl *Ctor = E->getConstructor();
  if (Ctor->isCopyOrMoveConstructor() && E->getNumArgs() >= 1 && !isa<CXXTemporaryObjectExpr>(E))
    return expr(E->getArg(0));
  ir::ExprId Id = make(ExprKind::Construct, E);
  setCallee(Id, Ctor);
  addArgs(Id, E->arguments());
  return Id;
}

ir::ExprId Lowering::lambda(const LambdaExpr *E) {
  ir::ExprId Id = make(ExprKind::Lambda, E);
  const CXXMethodDecl *Op = E->getCallOperator();
  ir::FuncId F = None;
  if (const FunctionTemplateDecl *Template = Op->getDescribedFunctionTemplate()) {
    for (const FunctionDecl *Spec : Template->specializations())
      if (ir::FuncId Id = lowerFunction(Spec->getDefinition() ? Spec->getDefinition() : Spec, Current); F == None)
        F = Id;
  } else {
    F = lowerFunction(Op, Current);
  }
  Out.Exprs[Id].Func = F;
  return Id;
}

ir::ExprId Lowering::expr(const Expr *E) {
  if (!E)
    return None;
  if (auto It = Lowered.find(E); It != Lowered.end())
    return It->second;
  ir::ExprId Id = lowerExpr(E);
  Lowered[E] = Id;
  Finder.match(*E, Ctx);
  return Id;
}

ir::ExprId Lowering::lowerExpr(const Expr *E) {
  // Wrappers that the user didn't write, and parentheses.
  if (const auto *Full = dyn_cast<FullExpr>(E))
    return expr(Full->getSubExpr());
  if (const auto *Temporary = dyn_cast<MaterializeTemporaryExpr>(E))
    return expr(Temporary->getSubExpr());
  if (const auto *Bind = dyn_cast<CXXBindTemporaryExpr>(E))
    return expr(Bind->getSubExpr());
  if (const auto *Paren = dyn_cast<ParenExpr>(E))
    return expr(Paren->getSubExpr());
  if (const auto *Init = dyn_cast<CXXDefaultInitExpr>(E))
    return expr(Init->getExpr());
  if (const auto *Implicit = dyn_cast<ImplicitCastExpr>(E)) {
    const Expr *Sub = Implicit->getSubExpr();
    if (Implicit->getCastKind() == CK_ConstructorConversion)
      if (const auto *Made = dyn_cast<CXXConstructExpr>(Sub->IgnoreImplicit()); Made && Made->getNumArgs() >= 1)
        return expr(Made->getArg(0));
    if (Implicit->getCastKind() == CK_UserDefinedConversion)
      if (const auto *Call = dyn_cast<CXXMemberCallExpr>(Sub->IgnoreImplicit()))
        return expr(Call->getImplicitObjectArgument());
    ir::ExprId Id = expr(Sub);
    // Losing conversions are operations: a mean isn't linear behind float -> int.
    if (Implicit->getCastKind() == CK_FloatingToIntegral && Id != None) {
      ir::ExprId Cast = make(ExprKind::Cast, E);
      Out.Exprs[Cast].Name = "truncate";
      Out.Exprs[Cast].Args = {Id};
      return Cast;
    }
    return Id;
  }
  if (const auto *Cast = dyn_cast<ExplicitCastExpr>(E)) {
    const Expr *Sub = Cast->getSubExpr();
    ir::ExprId Inner = expr(Sub);
    ir::ExprId Id = make(ExprKind::Cast, E);
    if (Inner != None && Out.type(Inner).Kind == ir::TypeKind::Floating && Out.type(Id).Kind == ir::TypeKind::Integer &&
        Out.Exprs[Inner].Name != "truncate")
      Out.Exprs[Id].Name = "truncate";
    Out.Exprs[Id].Args = {Inner};
    return Id;
  }
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    const ValueDecl *D = Ref->getDecl();
    if (const auto *Enumerator = dyn_cast<EnumConstantDecl>(D)) {
      ir::ExprId Id = make(ExprKind::Literal, E);
      Out.Exprs[Id].Name = qualifiedName(*Enumerator);
      return Id;
    }
    if (const auto *F = dyn_cast<FunctionDecl>(D)) {
      ir::ExprId Id = make(ExprKind::Unknown, E);
      setCallee(Id, F);
      return Id;
    }
    if (const auto *Binding = dyn_cast<BindingDecl>(D); Binding && Binding->getHoldingVar())
      D = Binding->getHoldingVar();
    ir::VarId V = varOf(D);
    ir::ExprId Id = make(ExprKind::Ref, E);
    Out.Exprs[Id].Var = V;
    Out.Exprs[Id].Name = qualifiedName(*D); // constants of LibTorch are known by name
    return Id;
  }
  if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    ir::ExprId Object = expr(Member->getBase());
    ir::VarId V = isa<FieldDecl, VarDecl>(Member->getMemberDecl()) ? varOf(Member->getMemberDecl()) : None;
    ir::ExprId Id = make(ExprKind::Field, E);
    Out.Exprs[Id].Object = Object;
    Out.Exprs[Id].Var = V;
    Out.Exprs[Id].Name = Member->getMemberDecl()->getNameAsString();
    return Id;
  }
  if (isa<CXXThisExpr>(E))
    return make(ExprKind::This, E);
  if (const auto *Op = dyn_cast<CXXOperatorCallExpr>(E))
    return operatorCall(Op);
  if (const auto *Call = dyn_cast<CallExpr>(E))
    return callTo(Call);
  if (const auto *Construct = dyn_cast<CXXConstructExpr>(E))
    return construct(Construct);
  if (const auto *Lambda = dyn_cast<LambdaExpr>(E))
    return lambda(Lambda);
  if (const auto *New = dyn_cast<CXXNewExpr>(E)) {
    ir::ExprId Id = make(ExprKind::Construct, E);
    if (const CXXConstructExpr *Made = New->getConstructExpr()) {
      setCallee(Id, Made->getConstructor());
      addArgs(Id, Made->arguments());
    }
    return Id;
  }
  if (const auto *List = dyn_cast<InitListExpr>(E)) {
    const InitListExpr *Semantic = List->isSemanticForm() ? List : List->getSemanticForm();
    std::vector<ir::ExprId> Ids;
    for (const Expr *Init : (Semantic ? Semantic : List)->inits())
      if (Init && !isa<ImplicitValueInitExpr>(Init))
        Ids.push_back(expr(Init));
    ir::ExprId Id = make(ExprKind::List, E);
    Out.Exprs[Id].Args = std::move(Ids);
    return Id;
  }
  if (const auto *Std = dyn_cast<CXXStdInitializerListExpr>(E))
    return expr(Std->getSubExpr());
  if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    if (Unary->getOpcode() == UO_Plus || Unary->getOpcode() == UO_Extension)
      return expr(Unary->getSubExpr());
    ir::ExprId Sub = expr(Unary->getSubExpr());
    ir::ExprId Id = make(ExprKind::Unary, E);
    Out.Exprs[Id].Name = UnaryOperator::getOpcodeStr(Unary->getOpcode()).str();
    Out.Exprs[Id].Args = {Sub};
    return Id;
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E)) {
    ir::ExprId L = expr(Binary->getLHS()), R = expr(Binary->getRHS());
    ir::ExprId Id = make(Binary->isAssignmentOp() ? ExprKind::Assign : ExprKind::Binary, E);
    Out.Exprs[Id].Name = Binary->getOpcodeStr().str();
    Out.Exprs[Id].Args = {L, R};
    return Id;
  }
  if (const auto *Conditional = dyn_cast<ConditionalOperator>(E)) {
    ir::ExprId C = expr(Conditional->getCond()), T = expr(Conditional->getTrueExpr()),
               F = expr(Conditional->getFalseExpr());
    ir::ExprId Id = make(ExprKind::Conditional, E);
    Out.Exprs[Id].Args = {C, T, F};
    return Id;
  }
  if (const auto *Index = dyn_cast<ArraySubscriptExpr>(E)) {
    ir::ExprId Base = expr(Index->getBase()), Sub = expr(Index->getIdx());
    ir::ExprId Id = make(ExprKind::Index, E);
    Out.Exprs[Id].Object = Base;
    Out.Exprs[Id].Args = {Sub};
    return Id;
  }
  if (isa<IntegerLiteral, FloatingLiteral, CXXBoolLiteralExpr, CharacterLiteral, clang::StringLiteral,
          CXXNullPtrLiteralExpr, GNUNullExpr, UnaryExprOrTypeTraitExpr>(E)) {
    ir::ExprId Id = make(ExprKind::Literal, E);
    if (const auto *Int = dyn_cast<IntegerLiteral>(E))
      Out.Exprs[Id].Name = llvm::toString(Int->getValue(), 10, /*Signed=*/true);
    else if (const auto *Float = dyn_cast<FloatingLiteral>(E))
      Out.Exprs[Id].Name = Float->getValue().isZero() ? "0" : "float";
    else if (const auto *Bool = dyn_cast<CXXBoolLiteralExpr>(E))
      Out.Exprs[Id].Name = Bool->getValue() ? "true" : "false";
    else if (const auto *String = dyn_cast<clang::StringLiteral>(E); String && String->getCharByteWidth() == 1)
      Out.Exprs[Id].Name = String->getString().str();
    return Id;
  }
  // What isn't modelled keeps its children, so that nothing below it is overlooked.
  std::vector<ir::ExprId> Children;
  for (const Stmt *Child : E->children())
    if (const auto *Sub = dyn_cast_or_null<Expr>(Child); Sub && !isa<CXXDefaultArgExpr>(Sub))
      Children.push_back(expr(Sub));
  ir::ExprId Id = make(ExprKind::Unknown, E);
  Out.Exprs[Id].Name = E->getStmtClassName();
  Out.Exprs[Id].Args = std::move(Children);
  return Id;
}

//===----------------------------------------------------------------------===//
// Statements and functions
//===----------------------------------------------------------------------===//

ir::StmtId Lowering::make(StmtKind Kind, const Stmt *S) {
  ir::Stmt X;
  X.Kind = Kind;
  X.Where = stmtRange(S);
  Out.Stmts.push_back(X);
  return Out.Stmts.size() - 1;
}

ir::StmtId Lowering::block(llvm::ArrayRef<ir::StmtId> Children, ir::Range Where, bool Transparent) {
  ir::Stmt X;
  X.Kind = StmtKind::Block;
  X.Where = Where;
  X.Children.assign(Children.begin(), Children.end());
  X.Transparent = Transparent;
  Out.Stmts.push_back(X);
  return Out.Stmts.size() - 1;
}

ir::StmtId Lowering::stmt(const Stmt *S) {
  if (!S || isa<NullStmt>(S))
    return None;
  if (const auto *E = dyn_cast<Expr>(S)) {
    ir::ExprId Value = expr(E);
    ir::StmtId Id = make(StmtKind::Expr, S);
    Out.Stmts[Id].Value = Value;
    return Id;
  }
  if (const auto *Compound = dyn_cast<CompoundStmt>(S)) {
    std::vector<ir::StmtId> Children;
    for (const Stmt *Child : Compound->body())
      if (ir::StmtId Id = stmt(Child); Id != None)
        Children.push_back(Id);
    return block(Children, stmtRange(S), /*Transparent=*/false);
  }
  if (const auto *Decls = dyn_cast<DeclStmt>(S)) {
    std::vector<ir::StmtId> Children;
    for (const Decl *D : Decls->decls()) {
      const auto *V = dyn_cast<VarDecl>(D);
      if (!V)
        continue;
      ir::ExprId Init = V->getInit() ? expr(V->getInit()) : None;
      ir::VarId Var = varOf(V);
      ir::StmtId Id = make(StmtKind::Decl, S);
      Out.Stmts[Id].Var = Var;
      Out.Stmts[Id].Value = Init;
      Children.push_back(Id);
      if (const auto *Decomposition = dyn_cast<DecompositionDecl>(V))
        for (const BindingDecl *B : Decomposition->bindings()) {
          // Each name is a part of the whole: its value is the whole's.
          ir::VarId Part = varOf(B->getHoldingVar() ? cast<ValueDecl>(B->getHoldingVar()) : cast<ValueDecl>(B));
          ir::StmtId Bound = make(StmtKind::Decl, S);
          Out.Stmts[Bound].Var = Part;
          Out.Stmts[Bound].Value = Init;
          Children.push_back(Bound);
        }
    }
    if (Children.size() == 1)
      return Children.front();
    return block(Children, stmtRange(S), /*Transparent=*/true);
  }
  if (const auto *If = dyn_cast<IfStmt>(S)) {
    std::vector<ir::StmtId> Before;
    if (If->getInit())
      Before.push_back(stmt(If->getInit()));
    if (If->getConditionVariableDeclStmt())
      Before.push_back(stmt(If->getConditionVariableDeclStmt()));
    ir::ExprId Cond = expr(If->getCond());
    ir::StmtId Then = stmt(If->getThen()), Else = stmt(If->getElse());
    ir::StmtId Id = make(StmtKind::If, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = {Then, Else};
    if (Before.empty())
      return Id;
    Before.push_back(Id);
    return block(Before, Out.Stmts[Id].Where, /*Transparent=*/false);
  }
  if (const auto *For = dyn_cast<ForStmt>(S)) {
    ir::StmtId Init = stmt(For->getInit());
    ir::ExprId Cond = For->getCond() ? expr(For->getCond()) : None;
    ir::StmtId Inc = stmt(For->getInc()), Body = stmt(For->getBody());
    ir::StmtId Id = make(StmtKind::Loop, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = {Init, Inc, Body};
    return Id;
  }
  if (isa<WhileStmt, DoStmt>(S)) {
    const auto *While = dyn_cast<WhileStmt>(S);
    ir::ExprId Cond = expr(While ? While->getCond() : cast<DoStmt>(S)->getCond());
    ir::StmtId Body = stmt(While ? While->getBody() : cast<DoStmt>(S)->getBody());
    ir::StmtId Id = make(StmtKind::Loop, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = {None, None, Body};
    return Id;
  }
  if (const auto *Range = dyn_cast<CXXForRangeStmt>(S)) {
    ir::ExprId Over = Range->getRangeInit() ? expr(Range->getRangeInit()) : None;
    ir::VarId Var = varOf(Range->getLoopVariable());
    std::vector<ir::StmtId> Inner;
    if (const auto *Decomposition = dyn_cast<DecompositionDecl>(Range->getLoopVariable()))
      for (const BindingDecl *B : Decomposition->bindings()) {
        ir::VarId Part = varOf(B->getHoldingVar() ? cast<ValueDecl>(B->getHoldingVar()) : cast<ValueDecl>(B));
        ir::Expr Whole;
        Whole.Kind = ExprKind::Ref;
        Whole.Var = Var;
        Whole.Type = Out.Vars[Var].Type;
        Out.Exprs.push_back(Whole);
        ir::StmtId Bound = make(StmtKind::Decl, Range->getLoopVarStmt());
        Out.Stmts[Bound].Var = Part;
        Out.Stmts[Bound].Value = Out.Exprs.size() - 1;
        Inner.push_back(Bound);
      }
    ir::StmtId Body = stmt(Range->getBody());
    if (!Inner.empty()) {
      if (Body != None)
        Inner.push_back(Body);
      Body = block(Inner, Body != None ? Out.Stmts[Body].Where : ir::Range(), /*Transparent=*/false);
    }
    ir::StmtId Id = make(StmtKind::RangeFor, S);
    Out.Stmts[Id].Value = Over;
    Out.Stmts[Id].Var = Var;
    Out.Stmts[Id].Children = {Body};
    return Id;
  }
  if (const auto *Return = dyn_cast<ReturnStmt>(S)) {
    ir::ExprId Value = Return->getRetValue() ? expr(Return->getRetValue()) : None;
    ir::StmtId Id = make(StmtKind::Return, S);
    Out.Stmts[Id].Value = Value;
    return Id;
  }
  if (isa<BreakStmt>(S))
    return make(StmtKind::Break, S);
  if (isa<ContinueStmt>(S))
    return make(StmtKind::Continue, S);
  if (const auto *Switch = dyn_cast<SwitchStmt>(S)) {
    ir::ExprId Cond = expr(Switch->getCond());
    std::vector<ir::StmtId> Cases;
    if (const auto *Body = dyn_cast<CompoundStmt>(Switch->getBody()))
      for (const Stmt *Child : Body->body())
        if (ir::StmtId Id = stmt(Child); Id != None)
          Cases.push_back(Id);
    ir::StmtId Id = make(StmtKind::Switch, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = std::move(Cases);
    return Id;
  }
  if (const auto *Case = dyn_cast<SwitchCase>(S))
    return stmt(Case->getSubStmt());
  std::vector<ir::StmtId> Children;
  for (const Stmt *Child : S->children())
    if (ir::StmtId Id = stmt(Child); Id != None)
      Children.push_back(Id);
  ir::StmtId Id = make(StmtKind::Other, S);
  Out.Stmts[Id].Children = std::move(Children);
  return Id;
}

ir::FuncId Lowering::lowerFunction(const FunctionDecl *F, ir::FuncId Parent) {
  if (auto It = Functions.find(F->getCanonicalDecl()); It != Functions.end())
    return It->second;
  ir::FuncId Id = Out.Functions.size();
  Functions[F->getCanonicalDecl()] = Id;
  Out.Functions.emplace_back();
  llvm::SaveAndRestore InFunction(Current, Id);

  ir::Function Fn;
  Fn.Usr = usrOf(F);
  Fn.Name = F->getNameAsString();
  Fn.Qualified = qualifiedName(*F);
  Fn.Main = F->isMain();
  Fn.Parent = Parent;
  Fn.Where = rangeOf(F->getSourceRange());
  if (const FunctionDecl *Pattern = F->getTemplateInstantiationPattern())
    Fn.Pattern = Out.Files.empty() || Fn.Where.File == None
                     ? qualifiedName(*Pattern)
                     : Out.Files[Fn.Where.File].Path + ":" + std::to_string(Fn.Where.Begin);
  if (const auto *M = dyn_cast<CXXMethodDecl>(F)) {
    Fn.Record = M->getParent()->isLambda() ? "" : qualifiedName(*M->getParent());
    Fn.Virtual = M->isVirtual();
    for (const CXXMethodDecl *O : M->overridden_methods())
      Fn.Overrides.push_back(usrOf(O));
  }
  Out.Functions[Id] = Fn; // expressions ask whether they stand in a template
  for (const ParmVarDecl *P : F->parameters()) {
    ir::VarId V = varOf(P); // may reallocate
    Out.Functions[Id].Params.push_back(V);
  }
  if (const auto *Ctor = dyn_cast<CXXConstructorDecl>(F))
    for (const CXXCtorInitializer *Init : Ctor->inits())
      if (Init->isMemberInitializer() && Init->getInit()) {
        ir::ExprId Value = expr(Init->getInit());
        ir::VarId Field = varOf(Init->getMember());
        Out.Functions[Id].Inits.emplace_back(Field, Value);
      }
  const Stmt *Body = F->getBody();
  ir::StmtId Lowered = Body ? stmt(Body) : None;
  Out.Functions[Id].Body = Lowered;
  if (const auto *Compound = dyn_cast_or_null<CompoundStmt>(Body)) {
    ir::Range Brace = rangeOf(Compound->getLBracLoc(), Compound->getLBracLoc());
    Out.Functions[Id].BodyBegin = Brace.End;
    if (!Brace.Editable)
      Out.Functions[Id].Where.Editable = false;
  }
  Out.HasMain |= Fn.Main;
  return Id;
}

/// Finds what is to be lowered: definitions in project files, and the instantiations of project templates.
class Collector : public RecursiveASTVisitor<Collector> {
public:
  Collector(Lowering &L) : L(L) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool TraverseLambdaExpr(LambdaExpr *) { return true; } // lowered where it stands

  bool VisitFunctionDecl(FunctionDecl *F) {
    if (F->doesThisDeclarationHaveABody() && !F->isDependentContext() && L.inProject(F->getLocation()))
      L.lowerFunction(F);
    return true;
  }

private:
  Lowering &L;
};

} // namespace

void lower(ASTContext &Ctx, const RuleSet &Rules, ProjectFilter InProject, ir::Unit &Out) {
  Lowering L(Ctx, Rules, InProject, Out);
  std::vector<Decl *> Own;
  for (Decl *D : Ctx.getTranslationUnitDecl()->decls())
    if (L.inProject(D->getLocation()))
      Own.push_back(D);
  // Everything else stays untouched (and, behind a precompiled header, unread).
  Ctx.setTraversalScope(Own);
  Collector C(L);
  for (Decl *D : Own)
    C.TraverseDecl(D);
}

} // namespace migrate
