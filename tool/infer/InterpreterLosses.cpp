//===- InterpreterLosses.cpp - Losses over the rows of a batch ------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether an expression may be written, and so be run, a second time: it names something, or reads of what it names.
bool Interpreter::repeatable(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  switch (X.Kind) {
  case ExprKind::Ref:
  case ExprKind::Field:
  case ExprKind::Literal:
  case ExprKind::This:
  case ExprKind::Binary:
    break;
  case ExprKind::List:
  case ExprKind::Construct:
  case ExprKind::Cast:
  case ExprKind::Unary:
    if (X.Name == "++" || X.Name == "--")
      return false;
    break;
  case ExprKind::Call: {
    // A tensor's operation that leaves it as it is, a setter of options that were just made.
    bool Options = StringRef(P.Code.type(E).Name).contains("Options");
    StringRef Name = X.Name;
    static const char *const Constant[] = {"std::min",    "std::max",     "torch::tensor", "at::tensor", "torch::ones",
                                           "torch::full", "torch::zeros", "at::ones",      "at::full",   "at::zeros"};
    if (llvm::is_contained(Constant, Name)) // `torch::tensor({0.5, 1.0})` as its arguments are
      break;
    if (!Options && (!Name.consume_front("at::Tensor::") || Name.ends_with("_") || Name == "backward"))
      return false;
    if (Options && X.Object != None && P.Code.Exprs[X.Object].Kind == ExprKind::Ref)
      return false;
    break;
  }
  default:
    return false;
  }
  return (X.Object == None || repeatable(X.Object)) &&
         llvm::all_of(X.Args, [&](ir::ExprId Arg) { return repeatable(Arg); });
}

/// Whether `E` stands in `accelerator.share(E, weight)`.
bool Interpreter::sharedByWeight(ir::ExprId E) {
  if (!WeightedShares) {
    WeightedShares.emplace();
    for (const ir::Expr &Call : P.Code.Exprs)
      if (StringRef(Call.Name).ends_with("Accelerator::share") && Call.Args.size() == 2)
        WeightedShares->insert(Call.Args[0]);
  }
  return WeightedShares->count(E) != 0;
}

/// Whether the program writes the class that losses ignore if nobody says otherwise, `targets.fill_(-100)`: its means
/// count by what is left then. Source: torch/nn/options/loss.h.
bool Interpreter::writesIgnored() {
  if (!Ignored)
    Ignored = llvm::any_of(P.Code.Exprs, [&](const ir::Expr &X) {
      return X.Kind == ExprKind::Unary && X.Name == "-" && P.Code.Exprs[X.Args[0]].Kind == ExprKind::Literal &&
             P.Code.Exprs[X.Args[0]].Name == "100" && P.Code.type(X.Args[0]).Kind == TypeKind::Integer;
    });
  return *Ignored;
}

/// A mean that counts its rows by the weight of their class: its share of the whole, if the weights can be named again.
Value Interpreter::byClass(ir::ExprId E, const ir::Expr &X, const Operands &In) {
  Value Result = Value::of(Placement::Mean, E);
  Result.setRank(0);
  if (sharedByWeight(E)) // a migrated loss, within its `share`
    return Result;
  std::vector<ir::ExprId> Weights(X.Args.begin() + std::min<size_t>(2, X.Args.size()), X.Args.end());
  if (In.Maker != None)
    Weights = {In.Maker};
  bool Cut = false; // along another dimension, or of rows that are named otherwise
  if (X.Args.size() > 1)
    P.forEachExpr(X.Args[1], [&](ir::ExprId Sub) {
      Cut |= OwnRows.count(Sub) || (Cuts.count(Sub) && Cuts[Sub] != 0) || Out.Coercions.count(Sub);
    });
  if (X.Args.size() < 2 || Cut || !repeatable(X.Args[1]) ||
      !llvm::all_of(Weights, [&](ir::ExprId W) { return repeatable(W); }))
    return Value::unknown("is a mean weighted by class or index; give its target and its weights names", E);
  if (!coerce(E, "class-weight", Result))
    return Value::unknown("is a mean weighted by class or index where not every rank comes along", E);
  Out.ClassWeights[E] = {X.Args[1], Weights};
  drawn(E, /*Rows=*/true);
  Result = Value::partial(true, E);
  Result.setRank(0);
  return Result;
}

/// The reduction of `torch::mse_loss(output, target, 2)`, which at::Reduction numbers; None if it isn't given so.
ir::ExprId Interpreter::reductionNumber(const ir::Expr &X) const {
  if (X.Kind != ExprKind::Call || StringRef(X.Name).contains("functional::") ||
      StringRef(X.Name).ends_with("::forward"))
    return None;
  size_t Before = StringRef(X.Name).ends_with("::ctc_loss"); // the number of the blank
  for (ir::ExprId Arg : X.Args)
    if (Arg != None && P.Code.type(Arg).Kind == TypeKind::Integer && Before-- == 0)
      return Arg;
  return None;
}

Value Interpreter::loss(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In) {
  if (In.Tensors.size() > 1 && realigned(In.Tensors[0], In.Tensors[1]))
    return Value::of(Placement::Replicated, E);
  // Targets one behind the other, of all rows, aren't cut with them.
  const bool Joined = StringRef(X.Name).contains_insensitive("ctc") && In.Tensors.size() > 1 && In.Tensors[1].Rank == 1;
  if (Joined && llvm::any_of(In.Tensors, [](const Value &V) { return V.Kind == Placement::Sharded; }))
    return Value::unknown("finds each row's targets by the lengths of those before it", E);
  std::vector<Value> Beside = In.Values;
  // ATen's kernels squeeze both: `[B, 1]` beside `[B]` is row by row (aten/src/ATen/native/Loss.cpp).
  auto ByRows = [](const Value &V) { return V.Kind == Placement::Sharded && V.Dim == 0; };
  if (X.Name == "at::binary_cross_entropy" && Beside.size() > 1 && ByRows(Beside[0]) && ByRows(Beside[1]))
    Beside[1].takeRank(Beside[0]);
  Value Rows = Row.Kind == Operation::Loss
                   ? besideRows(Beside, E)
                   : contract(Row.Signatures, Row.Of, featured(Row.Signatures, In.Tensors, E), E, X.Name);
  if (Rows.replicated())
    drawn(E, /*Rows=*/false);
  const ir::ExprId Number = reductionNumber(X);
  const bool Named =
      Number != None && (mentions(Number, "None", 2) || mentions(Number, "Mean", 2) || mentions(Number, "Sum", 2));
  std::optional<int64_t> Which;
  if (Number != None && !Named)
    Which = integer(Number);
  auto Says = [&](const char *Text) {
    bool Found = In.Maker != None && saysAnywhere(In.Maker, Text);
    for (ir::ExprId Arg : X.Args)
      Found |= P.Code.type(Arg).Kind != TypeKind::Tensor && mentions(Arg, Text, 2);
    return Found;
  };
  if (Rows.replicated() && !Says("None") && !Says("kNone") && (Number == None || Named || Which.value_or(0) != 0))
    Rows.setRank(0);
  if (Rows.Kind != Placement::Sharded)
    return Rows;
  Origins From = In.Maker == None ? Origins() : origins(In.Maker);
  if (From.Lost)
    return Value::unknown("has options that aren't seen; make its module where it is used", E);
  // Only losses over classes divide by the weights of the rows that they were given.
  bool Weighted = Row.parameter("ignore_index") && (Says("ignore_index") || Says("weight"));
  if (Row.parameter("ignore_index") && In.Maker == None && X.Args.size() > 2) { // (input, target, weight, …, index, …)
    auto Kind = [&](size_t I) { return P.Code.Exprs[X.Args[I]].Kind; };
    Weighted |=
        P.Code.type(X.Args[2]).Kind == TypeKind::Tensor && Kind(2) != ExprKind::List && Kind(2) != ExprKind::Construct;
    Weighted |= X.Args.size() > 4 && integer(X.Args[4]) != -100;
  }
  Weighted |= Row.parameter("ignore_index") && writesIgnored();
  SaidUnderIf = false;
  const bool PerRow = Says("None") || Says("kNone") || Which == 0, Sum = Says("Sum") || Says("kSum") || Which == 2;
  bool Several = SaidUnderIf || (Number != None && !Named && !Which) || (PerRow && Sum) ||
                 ((PerRow || Sum) && (Says("Mean") || Says("kMean")));
  if (From.Made.size() > 1 && (PerRow || Sum)) // each of which may be meant
    Several |= llvm::any_of(From.Made, [&](ir::ExprId Made) {
      return Made != In.Maker && !mentions(Made, Sum ? "Sum" : "None") && !mentions(Made, Sum ? "kSum" : "kNone");
    });
  if (Several)
    return Value::unknown("is a mean or a sum, which is decided where it runs", E);
  if (PerRow)
    return Rows;
  if (Weighted && !Sum)
    return byClass(E, X, In);
  Value Result = Sum ? Value::partial(true, E) : Value::of(Placement::Mean, E);
  Result.setRank(0);
  return Result;
}

/// `autograd::grad({y}, {x}, {v})`: rows of y that depend on the same rows of x alone have gradients at these rows, and
/// so has their sum.
Value Interpreter::gradients(ir::ExprId E, const ir::Expr &X) {
  std::vector<Value> Lists[3]; // outputs, inputs, what the outputs' gradients are
  bool Whole = true, Parameters = false;
  std::vector<ir::ExprId> Points, Means;
  for (size_t I = 0; I != X.Args.size(); ++I) {
    if (X.Args[I] == None)
      continue;
    if (I > 2) {
      eval(X.Args[I]);
      continue;
    }
    std::vector<ir::ExprId> Items;
    collectItems(P, X.Args[I], Items);
    for (ir::ExprId Item : Items) {
      Value V = eval(Item);
      Whole &= V.replicated();
      Parameters |= I == 1 && (isParameter(Item) || R.ofModel(Item) ||
                               StringRef(P.Code.Exprs[Item].Name).ends_with("::parameters"));
      const StringRef Call = P.Code.Exprs[P.unconverted(Item)].Name;
      if (I == 0 && V.Kind == Placement::Partial && Call.starts_with("accelerate::") && Call.ends_with("::share"))
        V.Fresh = true;                               // as below, in a migrated program
      if (P.Code.type(Item).Kind == TypeKind::Tensor) // else a list that was made elsewhere
        Lists[I].push_back(V);
      if (I == 1 && V.replicated() && !V.Trained && V.Rows > NoRows)
        Points.push_back(Item);
      if (I == 0 && V.Kind == Placement::Mean)
        Means.push_back(Item);
    }
  }
  auto &[Of, At, By] = Lists;
  Value Result = Value::of(Placement::Replicated, E);
  Result.Trained = llvm::any_of(Of, [](const Value &V) { return V.Trained; });
  // The only gradients that such a program trains with, or this rank's part of them.
  if (Parameters && (!Whole || llvm::none_of(P.Code.Exprs, isBackward))) {
    Out.Trains = true;
    note("unsupported-backward", E, Result, "takes the parameters' gradients by `torch::autograd::grad`");
    return Result;
  }
  if (Whole) {
    // Of rows that were brought together behind a cut, a rank has the gradients at its own.
    if (llvm::any_of(Of, [](const Value &V) { return V.AllRows; }) &&
        !llvm::all_of(At, [](const Value &V) { return V.AllRows; }))
      return Value::unknown("is the gradient of rows that were brought together", E);
    if (!Parameters && !At.empty()) { // it has the points' rows, and is cut with them
      Result.Rows = At.front().Rows;
      Result.takeRank(At.front());
      for (const Value &V : Of)
        addEdges(Result, V);
      for (const Value &V : At)
        addEdges(Result, V);
    }
    return Result;
  }
  // What was computed at a part of the points is cut at them.
  const Loop *Step = stepLoop();
  if (Step && !Points.empty() && llvm::any_of(Of, [](const Value &V) { return V.Kind != Placement::Replicated; }))
    for (ir::ExprId Point : Points)
      cut(cutPoint(Point, *Step), Step->Statement);
  // What one of the ranks brought together depends on the others' rows.
  bool Alone = llvm::none_of(Out.Coercions, [](const auto &C) { return StringRef(C.second).starts_with("all-"); });
  auto Rows = [](const Value &V) { return V.Kind == Placement::Sharded && V.Dim == 0; };
  auto Sum = [](const Value &V) { return V.Kind == Placement::Partial && V.Fresh; };
  // Of a mean over the rows, as much as this rank's have of it: `autograd::grad({loss}, {x})` of an attack.
  if (By.empty() && Alone && llvm::all_of(Of, [&](const Value &V) { return Sum(V) || V.Kind == Placement::Mean; }) &&
      llvm::all_of(At, Rows) && llvm::all_of(Means, [&](ir::ExprId Mean) { return coerce(Mean, "share", Last[Mean]); }))
    for (Value &V : Of)
      V = Value::partial(true, E);
  if (!Alone || Of.empty() || At.empty() || !llvm::all_of(At, Rows) || !llvm::all_of(By, Rows) ||
      !(By.empty() ? llvm::all_of(Of, Sum) : llvm::all_of(Of, Rows)))
    return Value::unknown("is the gradient of more than this rank's rows at them", E);
  Value V = At.front();
  V.Batch = None;
  V.Trained = true;
  V.AssignedBy = None;
  if (llvm::any_of(At, [&](const Value &Other) { return Other.Rank != V.Rank || Other.RankOf != V.RankOf; }))
    V.forgetRank();
  V.Least = std::max<int8_t>(V.Least, 1);
  return V;
}

} // namespace migrate
