//===- Interpreter.cpp - Expressions --------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

Findings infer(const Program &P, const Roles &R, const OperationTable &Table) {
  auto Coupled = [](const Findings &F) {
    return llvm::any_of(F.Notes, [](const auto &Note) {
      return Note.first.first == "coupled-loss" || Note.first.first == "unknown-rows";
    });
  };
  Findings Found = Interpreter(P, R, Table).run();
  // As late as can be, what is computed of a whole batch before stays as it is: its mean, noise of its shape. But where
  // the loss then can't be followed (its rows were counted before the cut, `n = x.size(0)`), an early cut may do.
  if (!Found.Cuts.empty() && Coupled(Found))
    if (Findings Early = Interpreter(P, R, Table, /*CutEarly=*/true).run();
        !Coupled(Early) && Early.Notes.size() < Found.Notes.size())
      return Early;
  return Found;
}

Findings Interpreter::run() {
  // Each restart takes one more decision, of which there are finitely many; the bound is a safety net.
  for (int Round = 0; Round != 256; ++Round) {
    std::map<uint32_t, std::string> Kept = std::move(Out.Kept);
    Out = Findings();
    Out.Kept = std::move(Kept);
    Restart = false;
    once();
    if (!Restart)
      wholeArguments();
    if (!Restart)
      wholeDraws();
    if (!Restart)
      break;
  }
  // What wasn't followed to its end isn't known: the program must not be migrated.
  if ((Restart || Exhausted) && P.Main != None)
    Out.TooLarge = P.Code.Functions[P.Main].Where;
  return std::move(Out);
}

/// Functions that print or compute with values of several placements take them whole, from the next run on: a metric
/// that training and evaluation share is given all rows of a training batch.
void Interpreter::wholeArguments() {
  for (const auto &[E, How] : Out.Coercions) {
    bool Differs = Out.Notes.count({"ambiguous-placement", E}) != 0;
    Differs |= !keepsWhole(How) && Out.ambiguous(E, How);
    bool Apart = How != "share" && How != "mine" && OfOneRank.count(E);
    if (!Differs && !Apart)
      continue;
    if (auto It = GathersIn.find(E); It != GathersIn.end() && GatheredArguments.insert(It->second).second) {
      Restart = true;
      continue;
    }
    auto It = CoercedIn.find(E);
    if (Differs && It != CoercedIn.end() && It->second != P.Main && WholeArguments.insert(It->second).second)
      Restart = true;
  }
  // What both a loop of all ranks and one of each rank's own batches run can't have a collective in it.
  for (const auto &[E, How] : Out.Coercions)
    if (How != "share" && How != "mine" && OfOneRank.count(E) && !Restart)
      note("ambiguous-placement", E, Out.Types[E],
           "needs `" + How + "` on one path, and is of one rank's own batch on another");
}

void Interpreter::once() {
  Current.clear();
  Last.clear();
  Returned.clear();
  Parts.clear();
  Alias.clear();
  Carried.clear();
  GathersIn.clear();
  Evaluates = false;
  Elements.clear();
  Elsewhere.clear();
  Views.clear();
  OfOneRank.clear();
  WholeDraws.clear();
  RowDraws.clear();
  Copies.clear();
  PointsTo.clear();
  Depths.clear();
  Loops.clear();
  Frames.clear();
  Stack.clear();
  Depth = Divergent = Tries = OwnChoices = NoGrads = Wholes = Threads = 0;
  Assumption.clear();
  Dead = false;
  Recording = true;
  if (P.Main == None)
    return;
  Frames.push_back({P.Main, std::nullopt, {}, false, {}, {}, {}});
  Stack.push_back(P.Main);
  Out.Reached.insert(P.Main);
  for (ir::VarId V : P.Code.Functions[P.Main].Params)
    Depths[V] = 0;
  // No rank has met another yet: whatever differs here can't be agreed on.
  Divergent = 1;
  for (const auto &[Global, Init] : P.Code.Globals)
    Current[Location{Global, {}}] = eval(Init);
  Divergent = 0;
  exec(P.Code.Functions[P.Main].Body);
}

//===----------------------------------------------------------------------===//
// Locations
//===----------------------------------------------------------------------===//

/// What a place got its value from; none if that isn't one expression.
ir::ExprId Interpreter::assignedBy(const Location &L) const {
  auto It = Current.find(L);
  return It == Current.end() ? None : It->second.AssignedBy;
}

/// The elements of a pair or tuple, if it was made of them in the project.
const std::vector<Value> *Interpreter::partsOf(ir::ExprId E) const {
  for (int Hops = 0; E != None && Hops != 8; ++Hops) {
    if (Cuts.count(E))
      return nullptr;
    if (auto It = Parts.find(E); It != Parts.end())
      return It->second.empty() ? nullptr : &It->second;
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Ref) {
      E = assignedBy({X.Var, {}});
      continue;
    }
    bool Element = X.Kind == ExprKind::Cast && StringRef(X.Name).starts_with("part"); // a tuple within
    bool Passes = X.Kind == ExprKind::Construct || (X.Kind == ExprKind::Cast && !Element) ||
                  (X.Kind == ExprKind::Call && (X.Name == "std::move" || X.Name == "std::forward"));
    if (!Passes || X.Args.size() != 1)
      return nullptr;
    E = X.Args[0];
  }
  return nullptr;
}

/// An element of the tuple `E`, whose value is `V`.
Value Interpreter::part(ir::ExprId E, Value V, size_t Index) const {
  if (const std::vector<Value> *Parts = partsOf(E); Parts && Index < Parts->size())
    return (*Parts)[Index];
  if (Index > 0 && V.RestDim >= 0) // an LSTM's states don't lie as its output does
    V.Dim = uint8_t(V.RestDim);
  V.RestDim = -1;
  return V;
}

/// Remembers of what a pair or tuple is made.
void Interpreter::makeParts(ir::ExprId E, const ir::Expr &X) {
  bool Makes = X.Kind == ExprKind::Construct || X.Kind == ExprKind::List || X.Name == "std::make_pair" ||
               X.Name == "std::make_tuple";
  if (X.Args.size() < 2 || !Makes)
    return;
  StringRef Type = P.Code.type(E).Name;
  if (!Type.starts_with("std::pair<") && !Type.starts_with("std::tuple<"))
    return;
  std::vector<Value> Made;
  for (ir::ExprId Arg : X.Args)
    Made.push_back(Arg == None ? Value() : Last[Arg]);
  Parts[E] = std::move(Made);
}

//===----------------------------------------------------------------------===//
// Demands
//===----------------------------------------------------------------------===//

/// `std::optional<Tensor> state;`, `state = std::nullopt`.
bool Interpreter::holdsNothing(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  return StringRef(P.Code.type(E).Name).starts_with("std::optional<") && X.Kind == ExprKind::Construct &&
         (X.Args.empty() || (X.Args[0] != None && P.Code.type(X.Args[0]).Name == "std::nullopt_t"));
}

bool Interpreter::numeric(ir::ExprId E) const {
  const ir::Type &T = P.Code.type(E);
  return T.number() || T.Kind == TypeKind::Unknown;
}

/// An evaluation loader is left as it is, from the next run on.
void Interpreter::notShared(uint32_t Loader, const std::string &Why) {
  if (!KeepWhole.insert(Loader).second)
    return;
  Out.Kept[Loader] = Why;
  Restart = true;
}

void Interpreter::notWhole(const std::string &Why, ir::ExprId E) {
  for (auto It = Loops.rbegin(); It != Loops.rend(); ++It)
    if (It->Mode == LoopMode::Fold) {
      Restart |= RowLoops.try_emplace(It->Statement, Why).second;
      return;
    } else if (It->Mode == LoopMode::Whole) {
      notShared(It->Loader, Why);
      return;
    }
}

/// Whether rows can be brought together where they stand, in their order: they lie along the first dimension.
bool Interpreter::gatherable(ir::ExprId E, const Value &V) const {
  return V.Kind == Placement::Sharded && V.Dim == 0 && !V.Woven && !V.Listed && !V.Iterator &&
         P.Code.type(E).Kind == TypeKind::Tensor;
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

/// Brings rows together for something that looks at all of them.
bool Interpreter::gathered(ir::ExprId E, const Value &V) {
  if (V.Kind == Placement::Unknown)
    E = rowsBehind(E);
  return E != None && gatherable(E, Last[E]) && coerce(E, "gather", Last[E]);
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
  Out.Notes[{Name, E}] = F;
}

/// Records that `E` becomes `accelerator.HOW(E)`. False where no collective may stand.
bool Interpreter::coerce(ir::ExprId E, const std::string &How, const Value &V) {
  bool Collective = How != "share" && How != "mine";
  if (ofOneRank()) {
    notWhole("a collective would stand in it", E);
    return true;
  }
  if (Collective && Divergent > 0)
    return false;
  if (Recording) {
    CoercedIn[E] = Frames.back().Function;
    for (const Frame &F : Frames)
      if (F.Gathers)
        GathersIn[E] = F.Function;
    auto [It, New] = Out.Coercions.try_emplace(E, How);
    if (!New && It->second != How)
      note("ambiguous-placement", E, V, "needs `" + It->second + "` on one path and `" + How + "` on another");
    Out.Sinks[E] = evidence(E, V);
  }
  return true;
}

/// The value of `E` where its use needs the same on every rank.
Value Interpreter::demandReplicated(ir::ExprId E, const Value &V, const std::string &Use) {
  if (V.replicated())
    return V;
  if (V.Kind == Placement::Own) {
    notWhole(std::string("one of its values is ") + Use, E);
    return Value::of(Placement::Replicated, E);
  }
  bool Sizes = V.Kind == Placement::Extent && P.Code.type(E).Kind == TypeKind::Container; // `x.sizes()`
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
    if (coerce(At, How, V))
      return Value::of(Placement::Replicated, E);
    note("divergent-collective", E, V, std::string("is ") + Use + " where not every rank comes along");
    return Value::of(Placement::Replicated, E);
  }
  if (gathered(E, V))
    return Value::of(Placement::Replicated, E);
  std::string Why = Sizes ? "has this rank's number of rows" : V.Why.empty() ? "is " + inWords(V) : V.Why;
  note("rank-local-use", E, V, std::string("is ") + Use + ", but " + Why);
  return Value::of(Placement::Replicated, E);
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

/// Anything but linear of a number that isn't replicated: the number is reduced first.
Value Interpreter::nonLinear(const Value &V, ir::ExprId E, const char *What) {
  if (V.replicated() || V.Kind == Placement::Own || V.Kind == Placement::Sharded || V.Kind == Placement::Unknown)
    return V;
  if (numeric(E)) {
    ir::ExprId Count = countIn(E);
    demandReplicated(Count, Count == E ? V : Last[Count], What);
    return Value::of(Placement::Replicated, E);
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
  if (P.Code.type(E).Kind != TypeKind::Tensor || !gathers(V))
    return false;
  bool Mean = V.Kind == Placement::Mean;
  return coerce(E, V.Trained ? (Mean ? "all-mean" : "all-reduce") : (Mean ? "mean" : "sum"), V);
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

/// `double[10]`, `std::vector<int>`, `std::array<float, 3>`.
static bool holdsNumbers(StringRef Type) {
  if (!Type.consume_front("std::vector<") && !Type.consume_front("std::array<") && !Type.contains('['))
    return false;
  static const char *const Numbers[] = {"float", "double", "int", "long", "unsigned", "short", "size_t", "uint"};
  return llvm::any_of(Numbers, [&](const char *Number) { return Type.starts_with(Number); });
}

Value Interpreter::eval(ir::ExprId E) {
  if (E == None)
    return Value::of(Placement::Replicated);
  // Calls are inlined and loops repeated: a program of ordinary size takes some ten thousand steps.
  constexpr uint64_t Budget = 20000000;
  if (++Steps > Budget)
    Exhausted = Restart = true;
  if (Exhausted)
    return Value::unknown("stands in a program too large to follow", E);
  if (auto It = Standing.find(E); It != Standing.end())
    return Last[E] = It->second;
  Value V = evalRaw(E);
  makeParts(E, P.Code.Exprs[E]);
  fromOutside(E, P.Code.Exprs[E], V);
  if (Cuts.count(E) && V.replicated()) {
    if (V.Outside)
      note("outside-entropy", E, V, "is a batch that differs between processes");
    V = rowsCut(E, V, Cuts[E]);
    if (Recording)
      Out.Cuts[E] = Cuts[E];
  }
  if (OwnRows.count(E) && V.replicated()) {
    int8_t Rank = V.Rank;
    V = Value::sharded(0, E);
    V.setRank(Rank);
    if (Recording)
      Out.OwnRows.insert(E);
  }
  opensFile(E);
  Last[E] = V;
  if (Recording) {
    Out.Types[E] = V;
    if (V.Kind == Placement::Replicated)
      Out.WholeHere.insert(E);
    if (ofOneRank())
      OfOneRank.insert(E);
  }
  return V;
}

Value Interpreter::evalRaw(ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E];
  switch (X.Kind) {
  case ExprKind::Literal:
    return Value::of(X.Name == "0" ? Placement::Zero : Placement::Replicated, E);
  case ExprKind::This:
    return Value::of(Placement::Replicated, E);
  case ExprKind::Ref:
  case ExprKind::Field: {
    if (P.Code.type(E).Name == "std::nullopt_t")
      return Value::nothing(E);
    // Models, optimizers, devices and the like are one on every rank; what they hold is followed by name.
    switch (P.Code.type(E).Kind) {
    case TypeKind::Module:
    case TypeKind::Optimizer:
    case TypeKind::Scheduler:
    case TypeKind::DataLoader:
    case TypeKind::Device:
    case TypeKind::DeviceType:
    case TypeKind::Accelerator:
    case TypeKind::Stream:
    case TypeKind::FileStream:
      return Value::of(Placement::Replicated, E);
    default:
      break;
    }
    if (X.Kind == ExprKind::Field && X.Object != None)
      if (std::optional<Value> Item = itemOfRows(X.Object))
        return *Item;
    if (std::optional<Location> L = named(E)) {
      Value V = read(*L, E);
      if (V.Kind == Placement::Partial && !V.Fresh && outer(*L))
        notWhole("it reads what it adds up", E);
      // The key of a map of sums: no text is a part of one.
      if (V.reducible() && P.Code.type(E).Kind == TypeKind::String)
        return Value::of(Placement::Replicated, E);
      // `auto& batch = *it` is read where the iterator is kept.
      V.Iterator &= P.Code.type(E).Kind == TypeKind::Unknown;
      return ofField(E, *L, std::move(V));
    }
    if (X.Object == None)
      return Value::of(Placement::Replicated, E);
    Value Whole = eval(X.Object); // `f().first`
    if (const std::vector<Value> *Parts = partsOf(X.Object); Parts && Parts->size() == 2 && X.Var != None)
      return (*Parts)[P.Code.Vars[X.Var].Name == "second"];
    return Whole;
  }
  case ExprKind::Unary: {
    if (X.Name == "++" || X.Name == "--") {
      placedBy(X.Args[0]);
      std::optional<Location> L = lvalue(X.Args[0]);
      if (astray(L)) {
        elsewhere(E, None, Value::of(Placement::Replicated, E), /*Changes=*/true);
        return eval(X.Args[0]);
      }
      Value Before = read(*L, X.Args[0]);
      if (Before.Iterator)
        return Before;
      if (!Statements.count(E) && outer(*L)) // `l[i++] += x`
        notWhole("it reads what it adds up", E);
      write(*L, accumulate(*L, Value::of(Placement::Replicated, E), None, E), E);
      return Before;
    }
    Value V = eval(X.Args[0]);
    if (X.Name == "*") {
      if (std::optional<Value> Item = itemOfRows(X.Args[0]))
        return *Item;
      if (std::optional<Location> L = lvalue(X.Args[0]); L && PointsTo.count(*L))
        return read(PointsTo.at(*L), E);
      V.Iterator = false;
      return V;
    }
    if (X.Name == "-")
      return asNumber(V);
    if (X.Name == "!" || X.Name == "~")
      return nonLinear(V, X.Args[0], "negated");
    return V;
  }
  case ExprKind::Binary:
    return withRows(E, X, nullptr, binary(E, X));
  case ExprKind::Assign:
    return assign(E, X);
  case ExprKind::Index: {
    Value V = eval(X.Object);
    if (X.Args.size() == 1 && (isRow(X, X.Args[0], V) || cutWithFold(X, V)))
      return Value::of(Placement::Own, E);
    for (ir::ExprId Arg : X.Args) {
      Value Index = eval(Arg);
      if (Index.Kind == Placement::Own || Index.Kind == Placement::Unknown)
        V = V.replicated() ? Index : V;
    }
    // The batch's own shape, `x.sizes()[2]`.
    if (V.Kind == Placement::Extent && X.Args.size() == 1 && P.Code.Exprs[X.Args[0]].Kind == ExprKind::Literal &&
        P.Code.Exprs[X.Args[0]].Name != "0")
      return Value::of(Placement::Replicated, E);
    if (listsRows(X.Object, V))
      return Value::unknown("picks rows of a batch by number", E);
    if (V.Kind == Placement::Sharded && P.Code.type(X.Object).Kind == TypeKind::Tensor) {
      V.Batch = None;
      bool One = X.Args.size() == 1 && P.Code.type(X.Args[0]).Kind == TypeKind::Integer;
      if (V.Dim == 0 || !One)
        return Value::unknown("picks rows of a batch by number", E);
      V.Dim -= 1;
      V.addToRank(-1);
    } else if (V.replicated() && P.Code.type(X.Object).Kind == TypeKind::Tensor) {
      V.Rank > 0 ? V.setRank(V.Rank - 1) : V.forgetRank();
    }
    if (V.replicated())
      V.Rows = rowsOf(E, X, nullptr, {});
    return V;
  }
  case ExprKind::Conditional: {
    Value C = eval(X.Args[0]);
    C = nonLinear(C, X.Args[0], "decided on");
    Value T = eval(X.Args[1]), F = eval(X.Args[2]);
    return C.Kind == Placement::Own ? C : join(T, F);
  }
  case ExprKind::Lambda: {
    for (ir::ExprId Kept : X.Args) // `[data = batch.data]`
      declare(P.Code.Exprs[P.Code.Exprs[Kept].Args[0]].Var, P.Code.Exprs[Kept].Args[1], None);
    Value V = Value::of(Placement::Replicated, E);
    if (X.Func != None)
      V.Funcs = {X.Func};
    return V;
  }
  case ExprKind::List: {
    // `double sums[10] = {}`: what is added up in it starts at zero.
    bool Zeros = holdsNumbers(P.Code.type(E).Name) &&
                 llvm::all_of(X.Args, [&](ir::ExprId Arg) { return eval(Arg).Kind == Placement::Zero; });
    Value V = Value::of(Zeros ? Placement::Zero : Placement::Replicated, E);
    for (size_t I = 0; I != X.Args.size(); ++I) {
      Value A = eval(X.Args[I]);
      if (!A.replicated()) {
        V = V.replicated() || V.same(A) ? A : join(V, A);
      } else if (V.replicated()) { // tensors, or a struct of them
        V.Rows = I == 0 ? A.Rows : V.Rows;
        joinRows(V, A);
      }
    }
    return V;
  }
  case ExprKind::Cast: {
    Value V = eval(X.Args[0]);
    if (P.Code.type(E).Kind == TypeKind::Void)
      return Value::of(Placement::Replicated, E);
    if (StringRef Part = X.Name; Part.consume_front("part")) {
      size_t Index = 0;
      return Part.getAsInteger(10, Index) ? V : part(X.Args[0], V, Index);
    }
    return X.Name == "truncate" ? nonLinear(V, X.Args[0], "rounded") : V;
  }
  case ExprKind::Construct:
    if (holdsNothing(E))
      return Value::nothing(E);
    if (X.Args.empty() && P.Code.type(E).Kind == TypeKind::Tensor) // undefined: nothing that could disagree
      return Value::of(Placement::Zero, E);
    // `std::vector<Tensor> heads(4)`: as many undefined ones.
    if (X.Args.size() == 1 && X.Args[0] != None && P.Code.type(X.Args[0]).Kind == TypeKind::Integer &&
        StringRef(P.Code.type(E).Name).starts_with("std::vector<at::Tensor") && eval(X.Args[0]).replicated())
      return Value::of(Placement::Zero, E);
    // `std::vector<int> hits(10)`, `(10, 0)`: as many zeros.
    if (!X.Args.empty() && X.Args[0] != None && P.Code.type(X.Args[0]).Kind == TypeKind::Integer &&
        holdsNumbers(P.Code.type(E).Name) && eval(X.Args[0]).replicated() &&
        llvm::all_of(llvm::drop_begin(X.Args), [&](ir::ExprId Arg) {
          return Arg == None || !P.Code.type(Arg).number() || eval(Arg).Kind == Placement::Zero;
        }))
      return Value::of(Placement::Zero, E);
    return call(E, X);
  case ExprKind::Call:
    if (isElement(X))
      if (std::optional<Value> Item = itemOfRows(E)) {
        for (ir::ExprId Arg : X.Args)
          eval(Arg);
        return *Item;
      }
    return call(E, X);
  case ExprKind::Unknown: {
    Value V = Value::of(Placement::Replicated, E);
    if (ir::FuncId Named = P.callee(X); Named != None)
      V.Funcs = {Named};
    for (ir::ExprId Arg : X.Args)
      if (Value A = eval(Arg); !A.replicated())
        V = A.Kind == Placement::Own ? A : Value::unknown("passes through an expression that isn't followed", E);
    return V;
  }
  }
  return Value::of(Placement::Replicated, E);
}

} // namespace migrate
