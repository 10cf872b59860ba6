//===- InterpreterPicks.cpp - Rows of a batch that a mask picks -----------===//
//
// `loss(output.index({mask}), target.index({mask}))`: each rank picks some of its rows, and all ranks' picks behind
// each other are what one process picks. How many a rank has isn't its number of rows, so a mean over them counts by
// their own number, which may be none, and they meet nothing but what the same mask has picked.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether a tensor is seen to be one of truth values: an index of numbers would pick otherwise.
bool Interpreter::isMask(ir::ExprId E, int Hops) {
  static const char *const Tests[] = {"eq",        "ne",          "lt",         "le",          "gt",
                                      "ge",        "less",        "less_equal", "greater",     "greater_equal",
                                      "not_equal", "isnan",       "isinf",      "isfinite",    "isin",
                                      "isclose",   "logical_and", "logical_or", "logical_not", "logical_xor"};
  static const char *const Keep[] = {
      "squeeze", "unsqueeze",  "view",      "reshape",     "flatten",     "all",        "any",     "detach",
      "clone",   "contiguous", "slice",     "narrow",      "select",      "index",      "permute", "transpose",
      "t",       "expand",     "expand_as", "bitwise_not", "bitwise_and", "bitwise_or", "cpu",     "index_select"};
  static const char *const Ours[] = {"shard", "own_rows", "all_gather", "gather", "gather_for_metrics", "broadcast"};
  const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
  if (Hops == 0 || P.Code.type(E).Kind != TypeKind::Tensor)
    return false;
  if (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) {
    std::optional<Location> L = lvalue(E); // of a parameter, what it is given
    ir::ExprId Made = L ? assignedBy(*L) : None;
    return Made != None && isMask(Made, Hops - 1);
  }
  if (X.Kind == ExprKind::Binary)
    return llvm::is_contained({"==", "!=", "<", "<=", ">", ">="}, X.Name) ||
           ((X.Name == "&" || X.Name == "|" || X.Name == "^") && isMask(X.Args[0], Hops - 1));
  if (X.Kind == ExprKind::Unary)
    return (X.Name == "~" || X.Name == "!") && isMask(X.Args[0], Hops - 1);
  if (X.Kind != ExprKind::Call)
    return false;
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (llvm::is_contained(Tests, Name))
    return true;
  if (Name == "to" || Name == "toType")
    return mentions(E, "kBool", 2) || mentions(E, "Bool", 2) || (X.Object != None && isMask(X.Object, Hops - 1));
  const bool Shares = StringRef(X.Name).starts_with("accelerate::Accelerator::");
  ir::ExprId Of = X.Object != None && !Shares ? X.Object : X.Args.empty() ? None : X.Args[0];
  return Of != None && (Shares ? llvm::is_contained(Ours, Name) : llvm::is_contained(Keep, Name)) &&
         isMask(Of, Hops - 1);
}

/// A name for what a mask picks: equal names, equal rows. A mask that is changed, or made anew, picks others.
uint32_t Interpreter::pickNamed(ir::ExprId Mask) {
  bool Lasts = true;
  P.forEachExpr(Mask, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    const ir::Var *V =
        (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None ? &P.Code.Vars[X.Var] : nullptr;
    bool Copy = V && V->Param && !P.Code.typeOf(X.Var).Reference && !reassigned(X.Var);
    Lasts &= !V || Copy || neverChanges(X.Var) || (V->Field && Last[Sub].Kind == Placement::Sharded);
    Lasts &= X.Kind != ExprKind::Call || !StringRef(X.Name).ends_with("_");
  });
  std::string Name = "k:" + (Lasts ? spelled(Mask) : "e" + std::to_string(Mask));
  for (const Frame &F : Frames)
    Name += "/" + std::to_string(F.Call);
  return named(Name);
}

/// `x.index({mask})`, `x.index({mask, 1})`, `masked_select(x, mask)`, if that's what it is.
std::optional<Value> Interpreter::picked(ir::ExprId E, llvm::ArrayRef<ir::ExprId> Items, Value V) {
  if (Items.empty() || !isMask(Items[0]))
    return std::nullopt;
  Value Mask = eval(Items[0]);
  if (Mask.Kind != Placement::Sharded)
    return std::nullopt;
  if (V.Kind != Placement::Sharded || V.Dim != 0 || Mask.Dim != 0 || V.Woven || Mask.Woven || V.Picked != Mask.Picked)
    return Value::unknown("is picked by a mask over the rows of a batch, and isn't cut like them", E);
  int Gone = 0; // dimensions behind the mask's
  for (ir::ExprId Item : Items.drop_front()) {
    const ir::Type &T = P.Code.type(Item);
    Gone += T.Kind == TypeKind::Integer;
    if (T.Kind != TypeKind::Integer && !StringRef(T.Name).ends_with("indexing::Slice"))
      return Value::unknown("indexes a batch in a way that isn't followed", E);
  }
  V.Picked = pickNamed(Items[0]);
  V.Rows = 0;
  V.Batch = None;
  if (V.Rank >= 0 && Mask.Rank > 0) {
    V.setRank(V.Rank - Mask.Rank + 1 - Gone);
  } else {
    V.forgetRank();
    V.RankOf = rankOf(E);
    V.Least = 1;
  }
  V.Narrowed = true;
  return V;
}

/// What rows that a mask picked can't go through, or can't meet; nothing if it goes well.
std::optional<Value> Interpreter::picksAstray(ir::ExprId E, const ir::Expr &X, const OperationRow &Row,
                                              const Operands &In) {
  auto Local = [](const Value &V) { return V.Kind == Placement::Sharded || V.Kind == Placement::Extent; };
  auto First = llvm::find_if(In.Values, [&](const Value &V) { return Local(V) && V.Picked != 0; });
  if (First == In.Values.end())
    return std::nullopt;
  for (const Value &V : In.Values)
    if (Local(V) && V.Picked != First->Picked)
      return Value::unknown("joins rows that a mask picked with others", E);
  switch (Row.Kind) {
  case Operation::RowWise:
  case Operation::Linear:
  case Operation::Update:
  case Operation::Contract:
  case Operation::Sum:
  case Operation::Count: // of none, all are zero
  case Operation::Mean:
  case Operation::AlongDim:
  case Operation::Windows:
  case Operation::Loss:
  case Operation::ClassLoss:
  case Operation::Index:
  case Operation::Lookup:
  case Operation::Select:
  case Operation::Unsqueeze:
  case Operation::Flatten:
  case Operation::Factory:
  case Operation::Noise: // told there
  case Operation::Like:
  case Operation::Metadata:
  case Operation::Extent:
  case Operation::Tuple:
  case Operation::Number:
  case Operation::NoiseModule:
    return std::nullopt;
  case Operation::OverDim: // of none there is no largest
    if (StringRef(X.Name).ends_with("::unbind"))
      break;
    return std::nullopt;
  case Operation::Reshape:
    if (!X.Args.empty()) {
      std::vector<ir::ExprId> Shape;
      for (ir::ExprId Arg : X.Args)
        collectItems(P, Arg, Shape);
      if (!Shape.empty() && integer(Shape[0]) == -1)
        return std::nullopt;
    }
    break;
  case Operation::Squeeze: // of a dimension that is named
    if (!X.Args.empty())
      return std::nullopt;
    break;
  default:
    break;
  }
  return Value::unknown("is of rows that a mask picked, of which a rank may have none (`" + X.Name + "`)", E);
}

/// What an operation makes of rows that a mask picked: others of them, or a mean that counts by their number.
Value Interpreter::ofPicks(ir::ExprId E, const ir::Expr &X, const Operands &In, Value Result) {
  auto First = llvm::find_if(In.Values, [](const Value &V) { return V.Picked != 0; });
  if (First == In.Values.end())
    return Result;
  if (Result.Kind == Placement::Sharded || Result.Kind == Placement::Extent) {
    if (Result.Picked == 0)
      Result.Picked = First->Picked;
    Result.Rows = 0;
    return Result;
  }
  if (Result.Kind == Placement::Extreme)
    return Value::unknown("is of rows that a mask picked, of which a rank may have none (`" + X.Name + "`)", E);
  if (Result.Kind != Placement::Mean)
    return Result;
  if (sharedByWeight(E)) // migrated, within its `share`
    return Result;
  // Whatever the mask has picked tells how many rows there are: best what has a name.
  ir::ExprId Counted = None;
  auto Changes = [&](ir::ExprId Of) { // a copy of it would stay as it is
    bool Any = false;
    P.forEachExpr(Of,
                  [&](ir::ExprId Sub) { Any |= Out.Coercions.count(Sub) || Cuts.count(Sub) || OwnRows.count(Sub); });
    return Any;
  };
  for (ir::ExprId Operand : In.Exprs)
    P.forEachExpr(Operand, [&](ir::ExprId Sub) {
      auto It = Last.find(Sub);
      if (It == Last.end() || It->second.Kind != Placement::Sharded || It->second.Picked != First->Picked ||
          P.Code.type(Sub).Kind != TypeKind::Tensor || !repeatable(Sub) || Changes(Sub))
        return;
      if (Counted == None || (P.Code.Exprs[Sub].Kind == ExprKind::Ref && P.Code.Exprs[Counted].Kind != ExprKind::Ref))
        Counted = Sub;
    });
  if (Counted == None)
    return Value::unknown("is a mean over rows that a mask picked; give these a name", E);
  if (!coerce(E, "picked-weight", Result))
    return Value::unknown("is a mean over rows that a mask picked, where not every rank comes along", E);
  Out.PickedFrom[E] = Counted;
  drawn(E, /*Rows=*/true);
  int8_t Rank = Result.Rank;
  Result = Value::partial(true, E);
  Result.Rank = Rank;
  return Result;
}

} // namespace migrate
