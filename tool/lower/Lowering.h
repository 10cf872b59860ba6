//===- Lowering.h - The walk over one unit's AST (private to lower/) ------===//
#ifndef ACCELERATE_MIGRATE_LOWER_LOWERING_H
#define ACCELERATE_MIGRATE_LOWER_LOWERING_H

#include "lower/Lower.h"
#include "lower/Types.h"
#include "rules/Rule.h"
#include "clang/AST/ExprCXX.h"
#include "clang/ASTMatchers/ASTMatchFinder.h"

namespace migrate {

/// The qualified name without inline namespaces.
std::string qualifiedName(const clang::NamedDecl &D);

class Lowering {
public:
  Lowering(clang::ASTContext &Ctx, const RuleSet &Rules, ProjectFilter InProject, ir::Unit &Out)
      : Ctx(Ctx), SM(Ctx.getSourceManager()), InProject(InProject), Out(Out), Types(Ctx) {
    for (uint32_t I = 0; I != Rules.rules().size(); ++I)
      if (Rules.rules()[I].Matcher) {
        Callbacks.push_back(std::make_unique<Callback>(*this, I));
        Finder.addDynamicMatcher(*Rules.rules()[I].Matcher, Callbacks.back().get());
      }
  }

  bool inProject(clang::SourceLocation Loc) {
    if (Loc.isInvalid())
      return false;
    ir::FileId File = fileOf(SM.getFileID(SM.getFileLoc(Loc)));
    return File != ir::None && Out.Files[File].Project;
  }

  ir::FuncId lowerFunction(const clang::FunctionDecl *F, ir::FuncId Parent = ir::None);
  void lowerGlobal(const clang::VarDecl *V);

private:
  struct Callback : clang::ast_matchers::MatchFinder::MatchCallback {
    Callback(Lowering &L, uint32_t Rule) : L(L), Rule(Rule) {}
    void run(const clang::ast_matchers::MatchFinder::MatchResult &R) override {
      ir::RuleMatch M;
      M.Rule = Rule;
      M.Function = L.Current; // none in a global's initialiser
      for (const auto &[Name, Node] : R.Nodes.getMap())
        if (const auto *S = Node.get<clang::Stmt>())
          if (auto It = L.Lowered.find(S); It != L.Lowered.end())
            M.Nodes[Name] = It->second;
      // What a pattern binds may lie in code that isn't lowered; the place must not get lost.
      M.Whole = M.Nodes.size() == R.Nodes.getMap().size();
      L.Out.Matches.push_back(std::move(M));
    }
    Lowering &L;
    uint32_t Rule;
  };

  ir::FileId fileOf(clang::FileID Id);
  ir::Range rangeOf(clang::SourceLocation First, clang::SourceLocation Last);
  ir::Range rangeOf(clang::SourceRange R) { return rangeOf(R.getBegin(), R.getEnd()); }
  ir::Range stmtRange(const clang::Stmt *S);
  void takeParentheses(const clang::Stmt *S, ir::Range &R);
  ir::TypeId typeId(clang::QualType T);
  ir::VarId varOf(const clang::ValueDecl *D);
  const clang::CXXRecordDecl *ownRecord(clang::QualType T);
  void keep(ir::ExprId Id, clang::QualType T);
  ir::VarId bindingOf(const clang::BindingDecl *B, const clang::VarDecl *Whole);
  const clang::FieldDecl *memberOf(const clang::BindingDecl *B);
  ir::ExprId fieldOf(ir::VarId Whole, const clang::BindingDecl *B);
  ir::ExprId memberOf(ir::VarId Whole, const clang::FieldDecl *Field);
  ir::ExprId halfOf(ir::VarId Whole, const clang::VarDecl *Entry, bool First);
  std::string usrOf(const clang::Decl *D);

  ir::ExprId expr(const clang::Expr *E);
  ir::ExprId lowerExpr(const clang::Expr *E);
  ir::ExprId make(ir::ExprKind Kind, const clang::Expr *E);
  void noteDistributed(llvm::StringRef Name, const ir::Range &Where);
  ir::ExprId callTo(const clang::CallExpr *E);
  bool puts(const ir::Expr &X) const;
  ir::ExprId elementPut(ir::ExprId Put, const clang::CallExpr *E);
  ir::ExprId partOf(ir::ExprId Whole, const clang::Expr *E, unsigned Index);
  ir::ExprId arrayOf(const clang::Expr *Size, const clang::Expr *Where);
  ir::ExprId operatorCall(const clang::CXXOperatorCallExpr *E);
  ir::ExprId construct(const clang::CXXConstructExpr *E);
  const clang::CXXConstructorDecl *constructorOf(const clang::CXXRecordDecl *Record, unsigned Args);
  const clang::CXXConstructorDecl *madeBy(const clang::FunctionDecl *F, unsigned Args);
  const clang::CXXMethodDecl *forwardOf(const clang::FunctionDecl *Apply);
  const clang::CXXConstructorDecl *heldBy(const clang::CXXConstructExpr *E);
  ir::ExprId aggregate(const clang::InitListExpr *E);
  ir::ExprId lambda(const clang::LambdaExpr *E);
  ir::ExprId madeUp(ir::ExprKind Kind, const clang::Expr *E, ir::TypeId Type);
  ir::ExprId namedAs(ir::VarId Var, const clang::Expr *E);
  ir::ExprId bound(const clang::CallExpr *E);
  /// `Defaults`: also the arguments that the declaration gives, which no edit may touch.
  void addArgs(ir::ExprId Id, llvm::iterator_range<clang::CallExpr::const_arg_iterator> Args, bool Defaults = false);
  void setCallee(ir::ExprId Id, const clang::FunctionDecl *F);
  bool runsConstructor(const clang::CXXCtorInitializer *I);
  void setForwardOf(ir::ExprId Id, clang::QualType ModuleType);

  bool startsThreads(const clang::Stmt *S) const;
  ir::StmtId stmt(const clang::Stmt *S);
  ir::StmtId lowerStmt(const clang::Stmt *S);
  ir::StmtId block(llvm::ArrayRef<ir::StmtId> Children, ir::Range Where, bool Transparent);
  ir::StmtId make(ir::StmtKind Kind, const clang::Stmt *S);
  const clang::CXXDestructorDecl *destructorOf(const clang::VarDecl *V);
  std::vector<ir::StmtId> destroyed(size_t Outermost, clang::SourceLocation Where);

  clang::ASTContext &Ctx;
  const clang::SourceManager &SM;
  ProjectFilter InProject;
  ir::Unit &Out;
  TypeClassifier Types;
  clang::ast_matchers::MatchFinder Finder;
  std::vector<std::unique_ptr<Callback>> Callbacks;

  ir::FuncId Current = ir::None;
  std::vector<std::vector<const clang::VarDecl *>> Scopes; ///< what the blocks around here destroy at their ends
  size_t BreakTo = 0, ContinueTo = 0;                      ///< the outermost scope that is left so
  llvm::DenseMap<clang::FileID, ir::FileId> Files;
  std::map<std::string, ir::FileId> FilesByPath;
  std::map<std::string, ir::TypeId> TypeIds;
  llvm::DenseMap<const clang::Decl *, ir::VarId> Vars;
  llvm::DenseMap<const clang::Decl *, std::string> Usrs;
  llvm::DenseMap<const clang::Stmt *, ir::ExprId> Lowered;
  llvm::DenseMap<const clang::FunctionDecl *, ir::FuncId> Functions;
  std::set<std::string> Aggregates;
};

} // namespace migrate

#endif
