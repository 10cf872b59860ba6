//===- InterpreterIndex.cpp - What an index picks of rows -----------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// What `x.index({...})` is given, one for each dimension: slices stay what they are.
std::vector<ir::ExprId> Interpreter::indexItems(const ir::Expr &X) const {
  std::vector<ir::ExprId> Items;
  std::function<void(ir::ExprId)> Collect = [&](ir::ExprId Arg) {
    const ir::Expr &A = P.Code.Exprs[Arg];
    bool Slice = StringRef(P.Code.type(Arg).Name).ends_with("indexing::Slice");
    if ((A.Kind == ExprKind::List || A.Kind == ExprKind::Construct) && !A.Args.empty() && !Slice)
      for (ir::ExprId Sub : A.Args)
        Collect(Sub);
    else
      Items.push_back(Arg);
  };
  for (ir::ExprId Arg : X.Args)
    Collect(Arg);
  return Items;
}

/// The number of dimensions of a whole tensor that is indexed; -1 if that isn't known.
int Interpreter::rankIndexed(const ir::Expr &X, int Rank) const {
  const int Whole = Rank;
  int Tensors = 0, Picked = 0;
  for (ir::ExprId Item : indexItems(X)) {
    StringRef Type = P.Code.type(Item).Name;
    if (P.Code.type(Item).Kind == TypeKind::Tensor) {
      auto Known = Last.find(Item);
      const int Own = Known == Last.end() ? -1 : Known->second.Rank;
      if (Own < 1 || (Own > 1 && Own <= Whole)) // a mask may have as many as what it picks from
        return -1;
      ++Tensors;
      Picked = std::max(Picked, Own);
    } else if (P.Code.type(Item).Kind == TypeKind::Integer) {
      --Rank;
    } else if (!Type.ends_with("indexing::Slice")) {
      return -1;
    }
  }
  return Rank < 0 ? -1 : Rank - Tensors + Picked;
}

/// `x.index({Slice(), -1})`: where the batch's dimension goes, if it is taken whole.
Value Interpreter::indexed(ir::ExprId E, const ir::Expr &X, Value V) {
  std::vector<ir::ExprId> Items = indexItems(X);
  int Dim = 0, To = 0; // dimensions of the operand that are passed before the batch's, and of the result
  int Added = 0;
  bool Passed = false, Counted = true;
  for (size_t I = 0; I != Items.size(); ++I) {
    const ir::Expr &A = P.Code.Exprs[Items[I]];
    StringRef Type = P.Code.type(Items[I]).Name;
    if (StringRef(A.Name).ends_with("None") || Type.ends_with("nullopt_t")) {
      To += !Passed;
      ++Added;
    } else if (Type.ends_with("indexing::Slice")) {
      if (!Passed && Dim == V.Dim) {
        if (!A.Args.empty())
          return Value::unknown("takes some rows of a batch by number", E);
        Passed = true;
      } else if (!Passed) {
        ++Dim, ++To;
      }
    } else if (Type.ends_with("EllipsisIndexType") || (A.Kind == ExprKind::Literal && A.Name == "...")) {
      if (!Passed && I + 1 != Items.size() && locate(V, -int64_t(Items.size() - I - 1)) != Side::Behind)
        return Value::unknown("indexes a batch from the end where its rows may be meant", E);
      Passed = true;
    } else if (P.Code.type(Items[I]).Kind == TypeKind::Integer) {
      if (!Passed && Dim == V.Dim)
        return Value::unknown("picks rows of a batch by number", E);
      Dim += !Passed;
      --Added;
    } else if (Passed && eval(Items[I]).replicated()) {
      Counted = false;
    } else {
      return Value::unknown("indexes a batch in a way that isn't followed", E);
    }
  }
  V.Dim = V.Dim - Dim + To;
  if (Counted)
    V.addToRank(Added);
  else
    V.forgetRank();
  V.Narrowed |= Added < 0;
  V.Least = std::max<int8_t>(V.Least, V.Dim + 1);
  return V;
}

/// Whether `E` is one item along the first dimension of a tensor, a row as it seems: `x[i]`, `x.select(0, i)`.
bool Interpreter::pickedByNumber(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  ir::ExprId Of = X.Object;
  if (Of == None || P.Code.type(Of).Kind != TypeKind::Tensor)
    return false;
  if (X.Kind == ExprKind::Index)
    return X.Args.size() == 1 && P.Code.type(X.Args[0]).Kind == TypeKind::Integer;
  if (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::select"))
    return X.Args.size() == 2 && integer(X.Args[0]) == 0;
  std::vector<ir::ExprId> Items; // `x.index({i})`
  if (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::index") && X.Args.size() == 1)
    collectItems(P, X.Args[0], Items);
  while (Items.size() == 1 && P.Code.Exprs[Items[0]].Kind == ExprKind::Construct &&
         P.Code.Exprs[Items[0]].Args.size() == 1)
    Items[0] = P.Code.Exprs[Items[0]].Args[0];
  return Items.size() == 1 && P.Code.type(Items[0]).Kind == TypeKind::Integer;
}

/// Whether `E` is of the one sample that a data set's own `get()` gave.
bool Interpreter::oneSample(ir::ExprId E) const {
  for (int Hops = 0; Hops != 8 && E != None; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    if (X.Kind == ExprKind::Call)
      return llvm::any_of(P.bodies(X), [&](ir::FuncId F) {
        const ir::Function &Fn = P.Code.Functions[F];
        return Fn.Name == "get" &&
               llvm::any_of(Fn.Overrides, [](StringRef Usr) { return Usr.contains("@N@torch@N@data@N@datasets"); });
      });
    E = X.Kind == ExprKind::Field && X.Object != None ? X.Object
        : X.Kind == ExprKind::Ref && X.Var != None    ? assignedBy({X.Var, {}})
                                                      : None;
  }
  return false;
}

} // namespace migrate
