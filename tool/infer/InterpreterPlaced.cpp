//===- InterpreterPlaced.cpp - Operations at places that an index tells ---===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Rows are added up at places that an index tells: a sum over the batch, if it starts at zero.
Value Interpreter::scattered(ir::ExprId E, const ir::Expr &X, const Operands &In, const Dimensions &Dims) {
  const Value &Self = In.Tensors[0];
  std::vector<Value> Rest(In.Tensors.begin() + 1, In.Tensors.end());
  if (Self.Kind == Placement::Sharded) {
    // `index_add`'s index counts along the dimension alone, so it isn't compared with the others.
    if (llvm::any_of(Rest, [](const Value &V) { return V.Kind == Placement::Sharded && V.Dim != 0; }) || Dims.All)
      return Value::unknown("looks at all rows of the batch at once (`" + X.Name + "`)", E);
    return Dims.Unknown ? Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E)
                        : along(Self, Dims.Known, E, X.Name);
  }
  bool AnyLocal = llvm::any_of(Rest, [](const Value &V) { return V.Kind == Placement::Sharded; });
  if (!AnyLocal) {
    for (const Value &V : Rest)
      if (V.Kind == Placement::Own && In.InPlace)
        if (std::optional<Location> L = lvalue(In.Exprs[0]))
          return accumulate(*L, V, None, E);
    return broadcast(In.Values, E);
  }
  const Value &Source = Rest.back();
  bool AlongBatch = Source.Kind == Placement::Sharded && Dims.Known.size() == 1 && !Dims.Unknown &&
                    locate(Source, Dims.Known[0]) == Side::Batch &&
                    llvm::all_of(Rest, [](const Value &V) { return V.Kind == Placement::Sharded; });
  if (!AlongBatch)
    return Value::unknown("puts rows of a batch into something that isn't cut like them", E);
  Value Added = Value::partial(true, E);
  Added.Rank = Self.Rank;
  if (In.InPlace)
    if (std::optional<Location> L = lvalue(In.Exprs[0])) {
      auto From = llvm::find_if(llvm::reverse(In.Exprs), // `mine` of it is what a ghost adds: nothing
                                [&](ir::ExprId Arg) { return P.Code.type(Arg).Kind == TypeKind::Tensor; });
      return accumulate(*L, Added, *From, E);
    }
  return arithmetic(E, "+", Self, Added, None, None);
}

/// `counts.index_put_({rows, columns}, values, true)`: adds up where a batch's rows say.
std::optional<Value> Interpreter::addedAt(ir::ExprId E, const ir::Expr &X) {
  std::optional<Location> L = lvalue(X.Object);
  if (!L || X.Args.size() != 3 || P.Code.Exprs[X.Args[2]].Name != "true")
    return std::nullopt;
  Value Self = eval(X.Object);
  std::vector<ir::ExprId> Places;
  collectItems(P, X.Args[0], Places);
  std::vector<Value> Rows;
  for (ir::ExprId Place : Places)
    Rows.push_back(eval(Place));
  const Value Values = eval(X.Args[1]);
  const ir::Expr &Given = P.Code.Exprs[P.unconverted(X.Args[1])];
  const bool Mine = StringRef(Given.Name).ends_with("Accelerator::mine") && !Given.Args.empty(); // migrated
  Places.push_back(Mine ? Given.Args[0] : X.Args[1]);
  Rows.push_back(Mine ? Last[Given.Args[0]] : Values);
  // What has all rows of the batch, beside this rank's of them, is cut as well.
  if (auto Local = llvm::find_if(Rows, [](const Value &V) { return V.Kind == Placement::Sharded; });
      Local != Rows.end())
    for (size_t I = 0; I != Places.size(); ++I) {
      const Value &V = Rows[I];
      if (P.Code.type(Places[I]).Kind != TypeKind::Tensor || !V.replicated() || V.Rank == 0 || V.Rows == NoRows)
        continue;
      if (Local->Rows <= NoRows)
        ownRows(/*Compares=*/0, /*Beside=*/true, Places, *Local, /*Table=*/false);
      else if (V.Rows == Local->Rows ? !ownRowsOf(Places[I]) : V.Rows == 0 || Uncounted.count(V.Rows))
        note("unknown-rows", Places[I], V, "meets the rows of a batch");
    }
  Value Meet = broadcast(Rows, E);
  if (!Self.reducible() && !Self.replicated())
    return std::nullopt;
  Value Added = Meet;
  if (Meet.Kind == Placement::Sharded && Meet.Dim == 0 && !Meet.Picked) {
    Added = Value::partial(!Mine, E);
    Added.takeRank(Self);
  } else if (!Meet.replicated() && Meet.Kind != Placement::Own) {
    return std::nullopt;
  }
  Value Sum = accumulate(*L, Added, Added.Kind == Placement::Own ? None : X.Args[1], E);
  Sum.takeRank(Self);
  write(*L, Sum, E);
  return Sum;
}

/// `table.index_copy_(0, numbers, states)` of a table that all ranks have: all of them keep all rows.
std::optional<Value> Interpreter::copiedAt(ir::ExprId E, const ir::Expr &X) {
  std::optional<Location> L = lvalue(X.Object);
  if (!L || !outer(*L) || X.Args.size() != 3 || integer(X.Args[0]) != 0)
    return std::nullopt;
  const Value Table = eval(X.Object), At = eval(X.Args[1]), Rows = eval(X.Args[2]);
  if (!Table.replicated() || !(At.replicated() || gatherable(X.Args[1], At)) || !kept(X.Args[2], Rows))
    return std::nullopt;
  demandReplicated(X.Args[1], At, "used as an index");
  Value Whole = Value::of(Placement::Replicated, E);
  Whole.takeRank(Table);
  Whole.Rows = Table.Rows;
  write(*L, Whole, None);
  return Whole;
}

/// `table.index({rows}) = values`: where a table that all ranks have is set by a batch's rows, all of them tell where.
void Interpreter::putAt(ir::ExprId Rows) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Rows)];
  std::optional<Location> L =
      X.Kind == ExprKind::Call && X.Name == "at::Tensor::index" && X.Object != None ? lvalue(X.Object) : std::nullopt;
  if (!L || !outer(*L) || !eval(X.Object).replicated())
    return;
  for (ir::ExprId Item : indexItems(X))
    if (Item = P.unconverted(Item); P.Code.type(Item).Kind == TypeKind::Tensor)
      demandReplicated(Item, eval(Item), "used as an index");
}

/// Whether all rows of a tensor are equal: `torch::ones({batch_size})`.
bool Interpreter::filled(ir::ExprId E) const {
  for (int Hops = 0; Hops != 8 && E != None; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (X.Kind == ExprKind::Ref)
      E = assignedBy({X.Var, {}});
    else if (X.Kind == ExprKind::Call && X.Object != None && (Name == "to" || Name == "cuda" || Name == "clone"))
      E = X.Object;
    else
      return X.Kind == ExprKind::Call &&
             llvm::is_contained({"zeros", "ones", "full", "zeros_like", "ones_like", "full_like"}, Name);
  }
  return false;
}

/// `ones.narrow(0, 0, x.size(0))`: as many rows of a whole as this rank has of the batch. They are its own if they are
/// all equal.
Value Interpreter::asManyRows(ir::ExprId E, const Operands &In, const Dimensions &Dims) {
  bool First = Dims.Known.empty() ? !Dims.Unknown : Dims.Known[0] == 0;
  if (!First || In.Exprs.empty() || !filled(In.Exprs[0]))
    return Value::unknown("takes as many rows of a whole as this rank has", E);
  Value V = Value::sharded(0, E);
  if (In.Values[0].Rank >= 0)
    V.setRank(In.Values[0].Rank);
  V.Least = std::max<int8_t>(V.Least, 1);
  return V;
}

/// A table looked up by the rows of a batch, or columns of a batch taken by number.
Value Interpreter::lookedUp(ir::ExprId E, const ir::Expr &X, const Operands &In, const Dimensions &Dims) {
  const Value &Self = In.Tensors[0];
  Value Index = In.Tensors.size() > 1 ? In.Tensors[1] : Value::of(Placement::Replicated, E);
  for (const Value &V : llvm::drop_begin(In.Values))
    if (V.Kind == Placement::Extent)
      return Value::unknown("takes as many rows of a whole as this rank has", E);
  bool OneIndex = StringRef(X.Name).ends_with("index_select");
  if (Self.Kind != Placement::Sharded && Index.Kind != Placement::Sharded) {
    Value Result = broadcast(In.Values, E);
    if (Result.replicated() && OneIndex)
      Self.Rank >= 0 ? Result.setRank(Self.Rank) : Result.forgetRank();
    else if (Result.replicated() && StringRef(X.Name).ends_with("::take")) // shaped like the index
      Result.takeRank(Index);
    return Result;
  }
  if (StringRef(X.Name).ends_with("::take") && Self.replicated() && Index.Kind == Placement::Sharded) {
    Index.Batch = None; // shaped like the index
    return Index;
  }
  if (Dims.All)
    return Value::unknown("looks at all rows of the batch at once (`" + X.Name + "`)", E);
  if (Dims.Unknown)
    return Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E);
  if (Self.Kind == Placement::Sharded) {
    if (Index.Kind == Placement::Sharded && (OneIndex || Index.Dim != Self.Dim))
      return Value::unknown("takes what rows of a batch say from all of them (`" + X.Name + "`)", E);
    if (Index.replicated() && !OneIndex)
      return Value::unknown("picks from rows of a batch by an index that isn't cut like them (`" + X.Name + "`)", E);
    return along(Self, Dims.Known, E, X.Name);
  }
  if (!Self.replicated())
    return broadcast(In.Values, E);
  int64_t Dim = Dims.Known[0];
  if (OneIndex) {
    if (Dim < 0 && Self.Rank < 0)
      return Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E);
    Value Result = Value::sharded(Dim < 0 ? Dim + Self.Rank : Dim, Index.Source);
    if (Self.Rank >= 0) {
      Result.setRank(Self.Rank);
    } else { // whatever it is, it's the same everywhere
      Result.RankOf = rankOf(E);
      Result.Least = int8_t(Result.Dim + 1);
    }
    return Result;
  }
  if (locate(Index, Dim) != Side::Batch)
    return Value::unknown("takes as many rows of a whole as this rank has", E);
  Index.Batch = None;
  return Index;
}

} // namespace migrate
