//===- RolesLoaders.cpp - Loaders, and what their batches are for ---------===//
#include "infer/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

bool isMakeDataLoader(const ir::Expr &E) {
  return E.Kind == ExprKind::Call &&
         (E.Name == "torch::data::make_data_loader" || E.Name == "accelerate::make_data_loader" ||
          E.Name == "accelerate::make_evaluation_data_loader");
}

void Roles::findLoaders() {
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (isMakeDataLoader(X)) {
      LoaderRole &L = Loaders[object(E)];
      L.Made.push_back(E);
      L.ByRows |= X.Name == "accelerate::make_data_loader";
    }
  }
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      ir::ExprId Over = None;
      if (X.Kind == StmtKind::RangeFor && X.Value != None && P.Code.type(X.Value).Kind == TypeKind::DataLoader)
        Over = X.Value;
      // `for (auto it = loader->begin(); it != loader->end(); ++it)`
      if (X.Kind == StmtKind::Loop && X.Value != None)
        P.forEachExpr(X.Value, [&](ir::ExprId E) {
          const ir::Expr &C = P.Code.Exprs[E];
          if (C.Kind == ExprKind::Call && C.Object != None && P.Code.type(C.Object).Kind == TypeKind::DataLoader &&
              StringRef(C.Name).ends_with("::end"))
            Over = C.Object;
        });
      if (Over == None || P.Taught.isLoader(P.Code.type(Over).Name))
        return;
      LoaderRole &L = Loaders[object(Over)];
      L.Loops.push_back(S);
      bool Trains = false;
      for (ir::StmtId Child : X.Children)
        Trains |= Child != None && reachesBackward(Child);
      if (Trains)
        L.Mode = LoaderMode::Training;
      else if (L.Mode == LoaderMode::Unused)
        L.Mode = LoaderMode::Evaluation;
    });
  findSteppedLoaders();
  for (auto &[Object, L] : Loaders) {
    L.Foreign = L.Made.empty();
    if (L.ByRows && L.Mode == LoaderMode::Evaluation)
      L.Mode = LoaderMode::Training; // as the program says: an evaluation whose batches are cut as a training's are
  }
}

/// Loaders over which no loop runs, but of which each step takes the next batch: `if (it == loader->end()) it =
/// loader->begin(); auto& batch = *it; … ++it;`
void Roles::findSteppedLoaders() {
  std::map<ir::VarId, ObjectId> Over; // iterators
  auto Note = [&](ir::VarId Iterator, ir::ExprId From) {
    if (Iterator == None || From == None)
      return;
    const ir::Expr &X = P.Code.Exprs[P.unconverted(From)];
    if (X.Kind == ExprKind::Call && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::DataLoader &&
        StringRef(X.Name).ends_with("::begin"))
      Over.emplace(Iterator, object(X.Object));
  };
  for (const ir::Stmt &S : P.Code.Stmts)
    if (S.Kind == StmtKind::Decl)
      Note(S.Var, S.Value);
  for (const ir::Expr &X : P.Code.Exprs)
    if (X.Args.size() == 2 && X.Args[0] != None &&
        (X.Kind == ExprKind::Assign || StringRef(X.Name).ends_with("::operator=")))
      Note(P.Code.Exprs[X.Args[0]].Var, X.Args[1]);
  if (Over.empty())
    return;
  // Ranks weight by the batch that came last, so that the steps are of one loader, and of no other's loop.
  auto Trains = [&](ir::StmtId Child) { return Child != None && reachesBackward(Child); };
  std::map<ir::StmtId, ObjectId> Steps;
  for (const auto &[S, F] : FunctionOf) {
    const ir::Stmt &X = P.Code.Stmts[S];
    if (X.Kind != StmtKind::Loop || llvm::none_of(X.Children, Trains))
      continue;
    std::set<ir::VarId> Own; // of this loop: begun anew in each turn
    bool Others = false;
    for (std::optional<ir::StmtId> Up = S; Up;
         Up = ParentOf.count(*Up) ? std::optional(ParentOf.at(*Up)) : std::nullopt)
      Others |= overLoader(*Up);
    P.forEachStmt(S, [&](ir::StmtId Child) {
      if (P.Code.Stmts[Child].Kind == StmtKind::Decl)
        Own.insert(P.Code.Stmts[Child].Var);
      Others |= overLoader(Child) && llvm::any_of(P.Code.Stmts[Child].Children, Trains);
    });
    std::set<ObjectId> Stepped;
    P.forEachExprIn(S, [&](ir::ExprId E) {
      if (auto It = Over.find(P.Code.Exprs[E].Var); It != Over.end() && !Own.count(It->first))
        Stepped.insert(It->second);
    });
    if (!Others && Stepped.size() == 1)
      Steps.emplace(S, *Stepped.begin());
  }
  for (const auto &[S, Loader] : Steps) {
    bool Inner = false; // of epochs
    P.forEachStmt(S, [&](ir::StmtId Child) { Inner |= Child != S && Steps.count(Child) != 0; });
    if (Inner)
      continue;
    Loaders[Loader].Mode = LoaderMode::Training;
    Loaders[Loader].Loops.push_back(S);
  }
}

/// Whether a statement is a loop over a loader.
bool Roles::overLoader(ir::StmtId S) const {
  return llvm::any_of(Loaders, [&](const auto &Role) { return llvm::is_contained(Role.second.Loops, S); });
}

} // namespace migrate
