//===- InterpreterSums.cpp - Sums that a loop has filled ------------------===//
//
// A sum over the batches is reduced once, behind its loop, and equal on all ranks from there on.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/StringRef.h"

using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether a statement before this one, in the same block, starts `Var` anew: `total = 0; for (…)`.
bool Interpreter::startedBefore(ir::StmtId Id, ir::VarId Var) const {
  auto Parent = R.ParentOf.find(Id);
  if (Parent == R.ParentOf.end())
    return false;
  for (ir::StmtId Child : P.Code.Stmts[Parent->second].Children) {
    if (Child == Id)
      break;
    const ir::Stmt *S = Child == None ? nullptr : &P.Code.Stmts[Child];
    for (ir::ExprId E = S && S->Kind == StmtKind::Expr ? S->Value : None; E != None;) { // `a = b = 0`
      const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
      if (X.Kind != ExprKind::Assign || X.Name != "=")
        break;
      const ir::Expr &To = P.Code.Exprs[X.Args[0]];
      if (To.Kind == ExprKind::Ref && To.Var == Var)
        return true;
      E = X.Args[1];
    }
  }
  return false;
}

/// Accumulators of this function that the loop has filled are reduced behind it, once and in place, if nothing adds
/// to them again: they were declared right outside of it, or are started anew there.
void Interpreter::reduceAfter(ir::StmtId Id, const State &Entry) {
  if (Divergent > 0)
    return;
  // The only statement of an `if` without braces: nothing can be put behind it.
  if (auto Parent = R.ParentOf.find(Id);
      Parent != R.ParentOf.end() && P.Code.Stmts[Parent->second].Kind != StmtKind::Block)
    return;
  if (ofOneRank())
    return;
  ir::FuncId F = Frames.back().Function;
  for (auto &[L, V] : Current) {
    if (!L.Path.empty() || V.Kind != Placement::Partial || V.Fresh || P.Code.Vars[L.Root].Function != F)
      continue;
    auto Declared = Depths.find(L.Root);
    bool Anew = startedBefore(Id, L.Root);
    if (Declared == Depths.end() || (Declared->second != Depth - 1 && !Anew))
      continue;
    if (auto Before = Entry.find(L); Before != Entry.end() && Before->second.Kind == Placement::Partial)
      continue;
    const ir::Type &T = P.Code.typeOf(L.Root);
    if (!T.number() && T.Kind != TypeKind::Tensor && T.Kind != TypeKind::Container)
      continue;
    if (P.Code.Vars[L.Root].Param && T.Reference)
      continue;
    // Only what is looked at again, maybe at the start of the next epoch, and isn't reduced already.
    const ir::Range &Loop = P.Code.Stmts[Id].Where;
    bool Used = false, Reduced = false;
    std::set<ir::ExprId> Started;
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      if (const ir::Expr &X = P.Code.Exprs[E]; X.Kind == ExprKind::Assign && X.Name == "=")
        Started.insert(X.Args[0]);
    });
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      bool Earlier = X.Where.Begin < Loop.Begin;
      if (X.Where.File != Loop.File || (Earlier ? !Anew : X.Where.Begin < Loop.End))
        return;
      Used |= X.Kind == ExprKind::Ref && X.Var == L.Root && !Started.count(E);
      if (X.Name == "accelerate::Accelerator::reduce_")
        for (ir::ExprId Arg : X.Args)
          Reduced |= P.Code.Exprs[Arg].Kind == ExprKind::Ref && P.Code.Exprs[Arg].Var == L.Root;
    });
    if (Reduced)
      continue;
    if (Used && Recording) {
      std::vector<ir::VarId> &Vars = Out.ReduceAfter[Id];
      if (std::find(Vars.begin(), Vars.end(), L.Root) == Vars.end())
        Vars.push_back(L.Root);
    }
    V = Value::of(Placement::Replicated, V.Source);
  }
}

} // namespace migrate
