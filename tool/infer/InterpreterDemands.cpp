//===- InterpreterDemands.cpp - What must be the same on every rank -------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// `std::optional<Tensor> state;`, `state = std::nullopt`.
bool Interpreter::holdsNothing(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  return StringRef(P.Code.type(E).Name).starts_with("std::optional<") && X.Kind == ExprKind::Construct &&
         (X.Args.empty() || (X.Args[0] != None && P.Code.type(X.Args[0]).Name == "std::nullopt_t"));
}

bool Interpreter::numeric(ir::ExprId E) const {
  const ir::Type &T = P.Code.type(E);
  return T.number() || (T.Kind == TypeKind::Unknown && !T.Own);
}

/// An evaluation loader is left as it is, from the next run on.
void Interpreter::notShared(uint32_t Loader, const std::string &Why, ir::ExprId E) {
  if (!KeepWhole.insert(Loader).second)
    return;
  Out.Kept[Loader] = {E == None ? ir::Range() : P.Code.Exprs[E].Where, Why};
  Restart = true;
}

void Interpreter::notWhole(const std::string &Why, ir::ExprId E) {
  for (auto It = Loops.rbegin(); It != Loops.rend(); ++It)
    if (It->Mode == LoopMode::Fold) {
      Restart |=
          RowLoops.try_emplace(It->Statement, Evidence{E == None ? ir::Range() : P.Code.Exprs[E].Where, Why}).second;
      return;
    } else if (It->Mode == LoopMode::Whole) {
      notShared(It->Loader, Why, E);
      return;
    }
}

/// Whether rows can be brought together where they stand, in their order: they lie along the first dimension.
bool Interpreter::gatherable(ir::ExprId E, const Value &V) const {
  return V.Kind == Placement::Sharded && V.Dim == 0 && !V.Woven && !V.Listed && !V.Iterator && !V.Picked &&
         !V.Earlier && P.Code.type(E).Kind == TypeKind::Tensor;
}

/// The rows that a value is computed from step by step, where nothing else differs: `x[0]`, `x.argmax(1)[0]`.
ir::ExprId Interpreter::rowsBehind(ir::ExprId E) const {
  auto Value = [&](ir::ExprId Sub) {
    auto It = Last.find(Sub);
    return It == Last.end() ? migrate::Value() : It->second;
  };
  for (;;) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    bool First = X.Kind == ExprKind::Unary || (X.Kind == ExprKind::Call && X.Object == None);
    ir::ExprId Of = !First ? X.Object : X.Args.empty() ? None : X.Args[0];
    bool Steps =
        X.Kind == ExprKind::Unary || X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && P.bodies(X).empty());
    if (Of == None || !Steps || !llvm::all_of(llvm::drop_begin(X.Args, First), [&](ir::ExprId Arg) {
          return Arg == None || Value(Arg).replicated();
        }))
      return None;
    if (gatherable(Of, Value(Of)))
      return Of;
    if (Value(Of).Kind != Placement::Unknown)
      return None;
    E = Of;
  }
}

bool losesGraph(const ir::Expr &X) {
  auto [Scope, Plain] = StringRef(X.Name).rsplit("::");
  const StringRef Name = Plain.empty() ? Scope : Plain;
  if (X.Kind == ExprKind::Binary)
    return llvm::is_contained({"==", "!=", "<", ">", "<=", ">="}, Name);
  return X.Kind == ExprKind::Call &&
         llvm::is_contained({"argmax", "argmin", "argsort", "detach", "data", "eq", "ne", "lt", "gt", "le", "ge",
                             "logical_and", "logical_or", "logical_not", "isnan", "isinf", "isfinite", "one_hot",
                             "bincount"},
                            Name);
}

/// Whether a value has no graph, by what makes it: numbers of rows, comparisons, what was detached.
static bool withoutGraph(const Program &P, ir::ExprId E) {
  for (;;) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    if (losesGraph(X))
      return true;
    if (X.Kind == ExprKind::Cast && X.Name == "part1") { // `std::get<1>(output.max(1))`
      StringRef Of = StringRef(P.Code.Exprs[P.unconverted(X.Args[0])].Name).rsplit("::").second;
      return llvm::is_contained({"max", "min", "topk", "sort", "kthvalue", "mode", "median"}, Of);
    }
    if (X.Kind != ExprKind::Call || X.Object == None)
      return false;
    if (!llvm::is_contained({"to", "cpu", "clone", "contiguous", "view", "reshape", "flatten", "squeeze", "unsqueeze"},
                            StringRef(X.Name).rsplit("::").second))
      return false;
    E = X.Object;
  }
}

/// Brings rows together that are kept beyond their step, with their graph if they have one.
bool Interpreter::kept(ir::ExprId E, const Value &V) {
  bool Graph = V.Trained && NoGrads == 0 && !withoutGraph(P, E);
  return gatherable(E, V) && coerce(E, Graph ? "all-gather" : "gather", V);
}

/// Brings rows together for something that looks at all of them.
bool Interpreter::gathered(ir::ExprId E, const Value &V) {
  if (V.Kind == Placement::Unknown)
    E = rowsBehind(E);
  return E != None && gatherable(E, Last[E]) && coerce(E, "gather", Last[E]);
}

/// Brings together the rows that a number of a step is computed from, `out.std().item<double>()`. Not in a loop within
/// the step, where it would be each time, nor in a function that may be given all rows instead.
bool Interpreter::gatheredNumber(ir::ExprId E, const Value &V) {
  return V.Kind == Placement::Unknown && E != None && numeric(E) && !Loops.empty() &&
         Loops.back().Mode == LoopMode::Rows && llvm::none_of(Frames, [](const Frame &F) { return F.Gathers; }) &&
         gathered(E, V);
}

/// What each rank computes for itself of all rows.
Value Interpreter::computedOfAll(ir::ExprId E) {
  Value V = Value::of(Placement::Replicated, E);
  V.Equal = Strength::Recomputed;
  return V;
}

/// Whether what differs in a number can be brought together: `out.std().item<double>() < 0.01 && epoch > 3`,
/// `1 - error.var().item<double>() / y.var().item<double>()`.
bool Interpreter::canGatherIn(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
  const auto It = Last.find(E);
  if (It == Last.end())
    return X.Kind == ExprKind::Literal;
  if (It->second.replicated())
    return true;
  if (!numeric(E))
    return false;
  if (X.Kind == ExprKind::Binary || X.Kind == ExprKind::Unary)
    return llvm::all_of(X.Args, [&](ir::ExprId Side) { return canGatherIn(Side); });
  const ir::ExprId Rows = It->second.Kind == Placement::Unknown ? rowsBehind(E) : None;
  return It->second.reducible() || (Rows != None && gatherable(Rows, Last.at(Rows)));
}

/// Brings together what differs in a number, if all of it can be.
bool Interpreter::gatheredIn(ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
  const auto It = Last.find(E);
  if (!canGatherIn(E) || It == Last.end() || It->second.replicated())
    return It != Last.end() && It->second.replicated();
  if ((X.Kind == ExprKind::Binary || X.Kind == ExprKind::Unary) && It->second.Kind == Placement::Unknown) {
    for (ir::ExprId Side : X.Args)
      if (P.Code.Exprs[P.unconverted(Side)].Kind != ExprKind::Literal && !gatheredIn(Side))
        return false;
    return true;
  }
  return It->second.reducible()
             ? demandReplicated(E, It->second, "used beside what is computed of all rows").replicated()
             : gatheredNumber(E, It->second);
}

/// What a function finds no way to do with a rank's rows (writing a picture of them) it can do with all of them, if it
/// only looks at them: it is given those, from the next run on.
bool Interpreter::gathersInstead(const std::string &Finding) {
  static const char *const Local[] = {"row-loop", "rank-local-use", "divergent-training", "divergent-branch",
                                      "divergent-collective"};
  if (!llvm::is_contained(Local, Finding))
    return false;
  for (const Frame &F : Frames)
    if (F.Gathers && GatheredArguments.insert(F.Function).second)
      return Restart = true;
  return false;
}

void Interpreter::note(const std::string &Name, ir::ExprId E, const Value &V, const std::string &Text) {
  if (!Recording || E == None || gathersInstead(Name))
    return;
  Fact F;
  F.Name = Name;
  F.Function = Frames.back().Function;
  F.Nodes["place"] = P.Code.Exprs[E].Where;
  F.Texts["what"] = Text;
  F.Texts["placement"] = toString(V);
  F.Chain = evidence(E, V);
  if (Name == "row-loop" && !Loops.empty())
    if (auto Why = RowLoops.find(Loops.back().Statement); Why != RowLoops.end() && Why->second.Where.valid())
      F.Chain.push_back({Why->second.Where, Why->second.What + " here"});
  Out.Notes[{Name, E}] = F;
  Out.NotedIn[{Name, E}] = trainingSteps();
}

/// A number that was given to a function which lets some ranks use it alone is brought together where that is called,
/// from the next run on: `report(loss.item<float>())`.
bool Interpreter::broughtAhead(ir::ExprId E) {
  const Frame &F = Frames.back();
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (F.Apart > 0 || X.Kind != ExprKind::Ref || !numeric(E) ||
      !llvm::is_contained(P.Code.Functions[F.Function].Params, X.Var) || !WholeArguments.insert(F.Function).second)
    return false;
  return Restart = true;
}

/// The same with its graph, which does no harm where there is none, in an evaluation: what one text needs for both.
static StringRef withGraph(StringRef How) {
  return How == "sum" ? "all-reduce" : How == "mean" ? "all-mean" : How == "gather" ? "all-gather" : How;
}

/// Records that `E` becomes `accelerator.HOW(E)`. False where no collective may stand.
bool Interpreter::coerce(ir::ExprId E, const std::string &How, const Value &V) {
  bool Collective = How != "share" && How != "mine";
  if (ofOneRank()) {
    notWhole("a collective would stand in it", E);
    return true;
  }
  if (Collective && Divergent > 0)
    return broughtAhead(E);
  if (Collective && OwnCalls > 0) { // called as often as this rank has rows
    note("row-loop", E, V, "is needed from all ranks in what a standard algorithm calls for each of this rank's rows");
    return true;
  }
  Meetings += Collective;
  ofOneBatch(E, V);
  if (StringRef(How).starts_with("all-")) // whose graph each rank has a part of
    Out.SharedSteps.insert(trainingSteps());
  if (Recording) {
    CoercedIn[E] = Frames.back().Function;
    for (const Frame &F : Frames)
      if (F.Gathers)
        GathersIn[E] = F.Function;
    auto [It, New] = Out.Coercions.try_emplace(E, How);
    if (!New && withGraph(It->second) == withGraph(How))
      It->second = It->second == How ? How : withGraph(How);
    else if (!New)
      note("ambiguous-placement", E, V, "needs `" + It->second + "` on one path and `" + How + "` on another");
    Out.Sinks[E] = evidence(E, V);
  }
  return true;
}

/// What `E` is the value of, `b` in `a, b`, which would be two arguments of a call.
ir::ExprId Interpreter::behindCommas(ir::ExprId E) const {
  for (ir::ExprId At = P.unconverted(E); P.Code.Exprs[At].Kind == ExprKind::Binary && P.Code.Exprs[At].Name == ",";
       At = P.unconverted(E))
    E = P.Code.Exprs[At].Args[1];
  return E;
}

/// Has a number brought together where it was set, from the next run on. False if that can't be, or has been tried.
bool Interpreter::broughtWhereSet(const Value &V) {
  const bool New = V.reducible() && V.AssignedBy != None && numeric(V.AssignedBy) && Divergent == 0 && !ofOneRank() &&
                   CoerceAtAssign.insert(V.AssignedBy).second;
  Restart |= New;
  return New;
}

/// The value of `E` where its use needs the same on every rank.
Value Interpreter::demandReplicated(ir::ExprId E, const Value &V, const std::string &Use) {
  if (V.replicated())
    return V;
  if (V.tellsRanks()) // as is meant
    return Value::of(Placement::Replicated, E);
  E = behindCommas(E);
  if (V.Kind == Placement::Own) {
    notWhole(std::string("one of its values is ") + Use, E);
    return Value::of(Placement::Replicated, E);
  }
  bool Sizes = V.Kind == Placement::Extent && P.Code.type(E).Kind == TypeKind::Container; // `x.sizes()`
  // What another library keeps the number in, or its address, can't be brought together: the number is where it is set.
  const ir::Type &T = P.Code.type(E);
  const bool Foreign = T.Kind == TypeKind::Unknown && !T.Own && !StringRef(T.Name).starts_with("std::") &&
                       !StringRef(T.Name).starts_with("c10::") && !StringRef(T.Name).starts_with("at::");
  if (Foreign && broughtWhereSet(V))
    return Value::of(Placement::Replicated, E);
  if (V.reducible() && !Sizes) {
    std::string How = V.Kind == Placement::Extreme             ? (V.Largest ? "max" : "min")
                      : V.Kind == Placement::Mean              ? "mean"
                      : V.Fresh || V.Kind == Placement::Extent ? "sum"
                                                               : "reduce";
    // `loss.item<float>()`: the tensor is reduced, not the number, so that its device stays out of the way.
    ir::ExprId At = E;
    const ir::Expr &X = P.Code.Exprs[E];
    bool Scalar = StringRef(P.Code.type(E).Name).ends_with("Scalar"); // which only its tensor tells the type of
    if (X.Kind == ExprKind::Call && X.Name == "at::Tensor::item" && X.Object != None &&
        P.Code.Exprs[X.Object].Where.Editable &&
        (Scalar || (How == "mean" && P.Code.Exprs[X.Object].Kind == ExprKind::Ref)))
      At = X.Object;
    if (Threads > 0) {
      note("divergent-collective", E, V, std::string("is ") + Use + " in another thread, where ranks can't meet");
      return Value::of(Placement::Replicated, E);
    }
    const TypeKind Of = P.Code.type(At).Kind;
    if (How == "mean" && (Of == TypeKind::Integer || Of == TypeKind::Bool)) { // whose share is none
      note("rank-local-use", E, V, "is " + Use + ", but is an integer that may be a mean over this rank's rows");
      return Value::of(Placement::Replicated, E);
    }
    if (V.Kind == Placement::Extent && Recording)
      SumsRows.insert(trainingSteps());
    if (coerce(At, How, V))
      return Value::of(Placement::Replicated, E);
    note("divergent-collective", E, V, std::string("is ") + Use + " where not every rank comes along");
    return Value::of(Placement::Replicated, E);
  }
  if (gathered(E, V))
    return Value::of(Placement::Replicated, E);
  if (Sizes) { // of all rows
    const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
    if (X.Kind == ExprKind::Call && X.Object != None && gathered(X.Object, Last[X.Object]))
      return Value::of(Placement::Replicated, E);
  }
  std::string Why = Sizes ? "has this rank's number of rows" : V.Why.empty() ? "is " + inWords(V) : V.Why;
  note("rank-local-use", E, V, std::string("is ") + Use + ", but " + Why);
  // What is printed is over. What is decided by it isn't: ranks may train for other numbers of steps.
  return Use == "compared" ? Value::unknown(Why, E) : Value::of(Placement::Replicated, E);
}

/// The integer in `100.0 * done / 61`: brought together before it is scaled, it is exact, as what is rounded must be.
/// `E` itself if it is no such fraction.
ir::ExprId Interpreter::countIn(ir::ExprId E) const {
  for (ir::ExprId At = P.unconverted(E);;) {
    const ir::Expr &X = P.Code.Exprs[At];
    if (auto It = Last.find(At); P.Code.type(At).Kind == TypeKind::Integer && It != Last.end())
      return It->second.reducible() ? At : E;
    if (X.Kind != ExprKind::Binary || (X.Name != "*" && X.Name != "/"))
      return E;
    auto Whole = [&](ir::ExprId Side) {
      auto It = Last.find(Side);
      return It != Last.end() && It->second.replicated();
    };
    if (Whole(X.Args[1]))
      At = P.unconverted(X.Args[0]);
    else if (X.Name == "*" && Whole(X.Args[0]))
      At = P.unconverted(X.Args[1]);
    else
      return E;
  }
}

/// Whether a value is of a row whose number a loop counts, `p[i].item<int>()`.
static bool countedRow(const Program &P, ir::ExprId E) {
  for (E = P.unconverted(E); E != None; E = P.unconverted(E)) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Index && X.Args.size() == 1 && X.Args[0] != None)
      if (P.Code.Exprs[P.unconverted(X.Args[0])].Kind == ExprKind::Ref && P.Code.type(X.Args[0]).number())
        return true;
    if (X.Object == None)
      return false;
    E = X.Object;
  }
  return false;
}

/// Whether a tensor was added up over steps, without a graph: its parts have one shape on all ranks, so that they can
/// be brought together wherever they are needed, a count of each class, a sum of each column.
bool Interpreter::sumOfSteps(ir::ExprId E, const Value &V) const {
  return E != None && P.Code.type(E).Kind == TypeKind::Tensor && V.Kind == Placement::Partial && !V.Fresh && !V.Trained;
}

/// Anything but linear of a number that isn't replicated: the number is reduced first.
Value Interpreter::nonLinear(const Value &V, ir::ExprId E, const char *What) {
  // `p[i].item<int>() == label`: of all rows it is the one that is meant.
  if (V.Kind == Placement::Unknown && P.Code.type(E).number() && countedRow(P, E)) {
    if (gathered(E, V))
      return Value::of(Placement::Replicated, E);
    // Behind a pointer there may be fewer rows than the loop counts.
    ir::ExprId From = P.unconverted(P.Code.Exprs[P.unconverted(E)].Object);
    if (From != None && StringRef(P.Code.type(From).Name).ends_with("*"))
      note("row-loop", E, V, "reads a batch's rows through a pointer, by numbers that a loop counts");
  }
  if (V.replicated() || V.Kind == Placement::Own || V.Kind == Placement::Sharded || V.Kind == Placement::Unknown)
    return V;
  if (sumOfSteps(E, V)) {
    demandReplicated(E, V, What);
    return Value::of(Placement::Replicated, E);
  }
  if (numeric(E)) {
    ir::ExprId Count = countIn(E);
    const Value Whole = demandReplicated(Count, Count == E ? V : Last[Count], What);
    return Whole.Kind == Placement::Unknown ? Whole : Value::of(Placement::Replicated, E);
  }
  if (brought(V, E)) {
    Value Whole = Value::of(Placement::Replicated, E);
    Whole.Trained = V.Trained;
    return Whole;
  }
  Value U = Value::unknown(std::string("is ") + What + " before its parts on the ranks are brought together", E);
  return U;
}

/// Brings a tensor's parts on the ranks together where it stands, with its graph if it has one. False if it can't be.
bool Interpreter::brought(const Value &V, ir::ExprId E) {
  return P.Code.type(E).Kind == TypeKind::Tensor && gathers(V) && bringParts(V, E);
}

/// The same of a sum or mean of any shape that all ranks have in common.
bool Interpreter::bringParts(const Value &V, ir::ExprId E) {
  bool Mean = V.Kind == Placement::Mean;
  return coerce(E, V.Trained ? (Mean ? "all-mean" : "all-reduce") : (Mean ? "mean" : "sum"), V);
}

} // namespace migrate
