//===- InterpreterSums.cpp - Sums that a loop has filled ------------------===//
//
// A sum over the batches is reduced once, behind its loop, and equal on all ranks from there on.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

using llvm::StringRef;
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

/// A variable, or a field of one that holds it itself, `log.loss`, as it is written.
static std::optional<Location> writtenOut(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Kind == ExprKind::Ref && X.Var != None)
    return Location{X.Var, {}};
  if (X.Kind != ExprKind::Field || X.Object == None || X.Var == None)
    return std::nullopt;
  std::optional<Location> L = writtenOut(P, X.Object);
  const ir::Type &Of = P.Code.type(P.unconverted(X.Object));
  if (!L || Of.Hold != ir::Holding::Value || StringRef(Of.Name).ends_with("*"))
    return std::nullopt;
  L->Path.push_back(X.Var);
  return L;
}

/// Whether a statement adds to a place by its name.
static bool addsByName(const Program &P, ir::StmtId S, const Location &L) {
  bool Found = false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    bool Writes = X.Kind == ExprKind::Assign || (X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--"));
    Found |= Writes && writtenOut(P, X.Args[0]) == L;
  });
  return Found;
}

/// Whether what stands right behind a loop may be passed over: `goto done;`, `throw Stop();` to a handler around it.
bool Interpreter::jumpsOver(ir::StmtId Loop) const {
  bool Found = false;
  std::set<ir::FuncId> Seen;
  std::function<void(ir::StmtId, bool)> Look = [&](ir::StmtId S, bool Here) {
    P.forEachStmt(S, [&](ir::StmtId Child) { Found |= Here && P.Code.Stmts[Child].Kind == StmtKind::Goto; });
    if (Tries > 0)
      P.forEachExprIn(S, [&](ir::ExprId E) {
        Found |= throws(P.Code.Exprs[E]);
        for (ir::FuncId F : P.bodies(P.Code.Exprs[E]))
          if (Seen.insert(F).second && P.Code.Functions[F].Body != None)
            Look(P.Code.Functions[F].Body, false);
      });
  };
  Look(Loop, true);
  return Found;
}

/// Whether `reduce` takes values of a type: numbers and tensors, and what the standard library makes of them. An object
/// of the project's is brought together field by field, where they are read.
static bool reducibleType(const ir::Type &T) {
  if (T.Kind != TypeKind::Container)
    return T.number() || T.Kind == TypeKind::Tensor;
  llvm::SmallVector<StringRef> Names;
  llvm::SplitString(T.Name, Names, " <>,[]");
  static const llvm::StringSet<> Known = {
      "const",  "bool",       "char",        "short",      "int",       "long",       "unsigned", "float",
      "double", "at::Tensor", "std::vector", "std::array", "std::pair", "std::tuple", "std::map", "std::unordered_map"};
  return llvm::all_of(Names, [](StringRef Name) {
    return Known.contains(Name) || Name.ends_with("string") || llvm::all_of(Name, llvm::isDigit);
  });
}

/// What all rows of a batch tell and each of them is computed with, `pad(row, {0, longest - row.size(0)})`,
/// `(x[i] - mean) / deviation`, is that of all ranks' rows. No collective may stand in the loop over the rows: it's
/// brought together where it was assigned, or behind the loop that found it. True if that takes another run.
bool Interpreter::readForRows(const Value &V) {
  const bool Rows = OwnCalls > 0 || llvm::any_of(Loops, [](const Loop &L) { return L.Mode == LoopMode::Fold; });
  const bool Extreme = V.Kind == Placement::Extreme && (Divergent > 0 || ofOneRank());
  if (V.AssignedBy == None || !(Extreme || (Rows && (V.Kind == Placement::Mean || V.Kind == Placement::Partial))))
    return false;
  if (V.Trained && !numeric(V.AssignedBy)) // whose gradient would end there
    return false;
  const ir::Range &Found = P.Code.Exprs[V.AssignedBy].Where;
  auto Holds = [&](ir::StmtId S) { return P.Code.Stmts[S].Where.contains(Found); };
  if (!Loops.empty() && Holds(Loops.back().Statement)) // what it adds up itself
    return false;
  bool Behind = false; // a loop that is over
  P.forEachStmt(P.Code.Functions[Frames.back().Function].Body, [&](ir::StmtId S) {
    const StmtKind Kind = P.Code.Stmts[S].Kind;
    Behind |= (Kind == StmtKind::Loop || Kind == StmtKind::RangeFor) && Holds(S) &&
              llvm::none_of(Loops, [&](const Loop &L) { return L.Statement == S; });
  });
  Restart |= (Behind ? NeededForRows : CoerceAtAssign).insert(V.AssignedBy).second;
  return Restart;
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
  ir::FuncId F = Frames.back().Function;
  auto FoundForRows = [&](const Location &L, const Value &V) {
    return NeededForRows.count(V.AssignedBy) && L.Path.empty() && P.Code.Vars[L.Root].Function == F &&
           P.Code.Stmts[Id].Where.contains(P.Code.Exprs[V.AssignedBy].Where);
  };
  if (ofOneRank()) { // the same text, in an evaluation
    if (llvm::none_of(Loops, [](const Loop &Around) { return Around.Mode == LoopMode::Fold; }))
      for (const auto &[L, V] : Current)
        if (FoundForRows(L, V))
          notWhole("a collective would stand in it", V.AssignedBy);
    return;
  }
  // One text for what is a part on one path, and whole on another: the latter would count once for each rank.
  auto Both = [&](const Location &L, const Value &V) {
    const ir::Stmt &S = P.Code.Stmts[Id];
    const ir::ExprId At = S.Kind == StmtKind::RangeFor || S.Value != None ? S.Value : None;
    note("ambiguous-placement", At, V,
         "fills `" + migrate::spelled(P, L) +
             "`, which needs `reduce` on one path, and is equal on all ranks on another");
  };
  for (auto &[L, V] : Current) {
    if (V.reducible() && FoundForRows(L, V)) {
      const bool Extreme = V.Kind == Placement::Extreme; // of equal numbers, the same
      if (Recording)
        Out.BroughtAfter[Id][L] = Extreme ? (V.Largest ? "max" : "min") : V.Fresh ? "sum" : "reduce";
      if (Recording && !Extreme && WholeAfter.count({Id, L}))
        Both(L, V);
      V = Value::of(Placement::Replicated, V.Source);
      continue;
    }
    if (Recording && V.Kind == Placement::Replicated && P.Code.Vars[L.Root].Function == F) {
      WholeAfter.insert({Id, L});
      if (auto Also = Out.ReduceAfter.find(Id); Also != Out.ReduceAfter.end() && llvm::is_contained(Also->second, L))
        Both(L, V);
      else if (auto Sums = Out.BroughtAfter.find(Id); Sums != Out.BroughtAfter.end())
        if (auto Found = Sums->second.find(L);
            Found != Sums->second.end() && (Found->second == "sum" || Found->second == "reduce"))
          Both(L, V);
    }
    if (V.Kind != Placement::Partial || V.Fresh || P.Code.Vars[L.Root].Function != F)
      continue;
    if (!L.Path.empty() && !addsByName(P, Id, L)) // maybe what only its methods may name
      continue;
    auto Declared = Depths.find(L.Root);
    bool Anew = startedBefore(Id, L.Root);
    if (Declared == Depths.end() || (Declared->second != Depth - 1 && !Anew))
      continue;
    if (auto Before = Entry.find(L); Before != Entry.end() && Before->second.Kind == Placement::Partial)
      continue;
    if (!reducibleType(P.Code.typeOf(L.Path.empty() ? L.Root : L.Path.back())))
      continue;
    if (P.Code.Vars[L.Root].Param && P.Code.typeOf(L.Root).Reference)
      continue;
    // Only what is looked at again, maybe at the start of the next epoch, and isn't reduced already.
    const ir::Range &Loop = P.Code.Stmts[Id].Where;
    bool Used = false, Reduced = false;
    std::set<ir::ExprId> Started;
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      if (const ir::Expr &X = P.Code.Exprs[E]; X.Kind == ExprKind::Assign && X.Name == "=")
        Started.insert(X.Args[0]);
    });
    for (const ir::Function &Lambda : P.Code.Functions) // `auto average = [&] { return sum / rows; }`, called behind it
      for (ir::FuncId Around = Lambda.Parent; Around != None && !Used; Around = P.Code.Functions[Around].Parent)
        if (Around == F)
          P.forEachExprIn(Lambda.Body, [&](ir::ExprId E) {
            Used |= P.Code.Exprs[E].Kind == ExprKind::Ref && P.Code.Exprs[E].Var == L.Root && !Started.count(E);
          });
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      bool Earlier = X.Where.Begin < Loop.Begin;
      if (X.Where.File != Loop.File || (Earlier ? !Anew : X.Where.Begin < Loop.End))
        return;
      Used |= X.Kind == ExprKind::Ref && X.Var == L.Root && !Started.count(E);
      if (X.Name == "accelerate::Accelerator::reduce_")
        for (ir::ExprId Arg : X.Args)
          Reduced |= writtenOut(P, Arg) == L;
    });
    // (Used by its name, that is: what reads it by another brings it together there.)
    if (Reduced || !Used || jumpsOver(Id))
      continue;
    if (Recording) {
      std::vector<Location> &Places = Out.ReduceAfter[Id];
      if (WholeAfter.count({Id, L}))
        Both(L, V);
      if (!llvm::is_contained(Places, L))
        Places.push_back(L);
    }
    const bool Noisy = V.Noisy;
    V = Value::of(Placement::Replicated, V.Source);
    V.Noisy = Noisy;
  }
}

/// The right-hand side that a number was set by, or the argument that a parameter was given. None if neither is known.
ir::ExprId Interpreter::setBy(const Value &V, ir::ExprId E) const {
  return V.AssignedBy == None ? givenHere(P.Code.Exprs[P.unconverted(E)].Var) : V.AssignedBy;
}

/// What is assigned: brought together there, or a part of a sum over the steps, where an earlier run has found that it
/// has to be.
Value Interpreter::asSet(ir::ExprId From, Value V, const char *Use) {
  if (From == None || !V.reducible())
    return V;
  if (CoerceAtAssign.count(From))
    return demandReplicated(From, V, Use);
  const bool OfStep =
      V.Kind == Placement::Mean || V.Kind == Placement::Extent || (V.Kind == Placement::Partial && V.Fresh);
  if (!OfStep || !PartWhereSet.count(From))
    return V;
  coerce(From, V.Kind == Placement::Mean ? "share" : "mine", V);
  return Value::partial(false, From);
}

} // namespace migrate
