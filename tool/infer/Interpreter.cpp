//===- Interpreter.cpp - Expressions --------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// What a place got its value from; none if that isn't one expression.
ir::ExprId Interpreter::assignedBy(const Location &L) const {
  auto It = Current.find(L);
  return It == Current.end() ? None : It->second.AssignedBy;
}

/// The elements of a pair or tuple, if it was made of them in the project.
const std::vector<Value> *Interpreter::partsOf(ir::ExprId E) const {
  for (int Hops = 0; E != None && Hops != 8; ++Hops) {
    if (auto It = Parts.find(E); It != Parts.end())
      return It->second.empty() ? nullptr : &It->second;
    if (Cuts.count(E))
      return nullptr;
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

/// The half of the pair `E` that `Field` names, `drawn.second`, if the pair was made of two in the project.
const Value *Interpreter::half(ir::ExprId E, ir::VarId Field) const {
  StringRef Name = Field == None ? "" : StringRef(P.Code.Vars[Field].Name);
  if (Name != "first" && Name != "second")
    return nullptr;
  const std::vector<Value> *Of = partsOf(E);
  return Of && Of->size() == 2 ? &(*Of)[Name == "second"] : nullptr;
}

/// Whether a half of a pair stands beside an object of the project's, of whose members some may be sums.
static bool besideObject(const Program &P, const ir::Expr &X) {
  const StringRef Pair = P.Code.type(X.Object).Name;
  return (X.Name == "first" || X.Name == "second") && Pair.starts_with("std::pair<") &&
         !Pair.starts_with("std::pair<const ") && llvm::any_of(P.Held, [&](const auto &Held) {
           return Held.first.first == (X.Name == "first") && Pair.contains(Held.first.second);
         });
}

/// A number of an item that was put into a list with others, of which it isn't followed which is what: `{7, loss}`. One
/// that can't be a mean is a constant beside one; beside a sum it may be a count, too. Likewise of an object whose
/// fields aren't known: what is never changed is no sum as its others may be.
std::optional<Value> Interpreter::ofItem(ir::ExprId E, const Location &L) {
  const TypeKind Kind = P.Code.type(E).Kind;
  const bool Whole =
      Kind == TypeKind::Integer || Kind == TypeKind::Bool || Kind == TypeKind::Enum || Kind == TypeKind::String;
  const bool Listed = (L.Path.size() == 1 && R.isOneOfList(L.Root)) || besideObject(P, P.Code.Exprs[E]);
  if (!Whole || (!Listed && (L.Path.empty() || Current.count(L))))
    return std::nullopt;
  const Value Item = read(L, E);
  if (Item.Kind == Placement::Mean)
    return Value::of(Placement::Replicated, E);
  if (Item.Kind == Placement::Partial && (Listed || !reassigned(L.Path.back())))
    return Value::unknown(Listed ? "is one of several numbers that were put into a list together"
                                 : "is part of an object that isn't followed field by field",
                          E);
  return std::nullopt;
}

/// Remembers of what a pair or tuple is made.
void Interpreter::makeParts(ir::ExprId E, const ir::Expr &X) {
  bool Makes = X.Kind == ExprKind::Construct || X.Kind == ExprKind::List || X.Name == "std::make_pair" ||
               X.Name == "std::make_tuple";
  if (X.Args.size() < 2 || !Makes)
    return;
  if (!P.Code.type(E).tuple())
    return;
  std::vector<Value> Made;
  for (ir::ExprId Arg : X.Args)
    Made.push_back(Arg == None ? Value() : Last[Arg]);
  Parts[E] = std::move(Made);
  holds(E, X.Args);
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

bool holdsNumbers(StringRef Type) {
  bool List = Type.contains('[');
  while (Type.consume_front("std::vector<") || Type.consume_front("std::array<"))
    List = true;
  if (!List)
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
  if (auto Own = OwnCounts.find(E); Own != OwnCounts.end() && Last[Own->second].Kind == Placement::Sharded) {
    V = Last[Own->second];
    V.Kind = Placement::Extent;
    V.Source = E;
    V.Batch = None;
    if (Recording)
      Out.BatchSizes[E] = Own->second;
  }
  asItsOperands(E, P.Code.Exprs[E], V);
  agreedHere(E, V);
  makeParts(E, P.Code.Exprs[E]);
  if (taken(By.Together))
    bringTogether(E, V);
  fromOutside(E, P.Code.Exprs[E], V);
  if (Cuts.count(E) && V.Kind == Placement::Sharded)
    CutBefore.insert(E);
  if (CutBefore.count(E) && (CutInStep.count(E) || CutElsewhere.count(E)))
    note("unknown-rows", E, V, "is cut for one caller, where another's rows go through that are cut already");
  const bool Uncut = Cuts.count(E) && BroughtTogether.count(E) && V.replicated(); // of all rows, all
  if (Cuts.count(E) && V.replicated() && !V.Nothing && !Uncut) {
    if (V.outside())
      note("outside-entropy", E, V,
           raced().empty() ? "is a batch that differs between processes"
                           : "is a batch that differs between processes (sort what several threads put into a list)");
    // A function that makes one step is called in several loops of them. (Not beside those in an epoch, for what is
    // evaluated there.)
    const Loop *Step = stepLoop();
    const bool Around = Step && llvm::any_of(CutLoops, [&](ir::StmtId Of) {
                          return P.Code.Stmts[Step->Statement].Where.contains(P.Code.Stmts[Of].Where);
                        });
    if (Step && Step->Trains && !Around && CutLoops.insert(Step->Statement).second) {
      Restart = true;
      return V;
    }
    // `step(0);`, a step outside of all loops.
    const bool Alone =
        llvm::none_of(Loops, [](const Loop &L) { return L.Trains; }) && llvm::any_of(Frames, [&](const Frame &F) {
          const ir::StmtId Body = P.Code.Functions[F.Function].Body;
          return Body != None && !P.Code.Functions[F.Function].Main && R.reachesBackward(Body) &&
                 P.Code.Stmts[Body].Where.contains(P.Code.Exprs[E].Where);
        });
    const bool InStep = Alone || llvm::any_of(Loops, [&](const Loop &L) { return CutLoops.count(L.Statement) != 0; });
    (InStep ? CutInStep : CutElsewhere).insert(E);
    const bool Alike = By.CutToo.count(E) && Divergent == 0 && !ofOneRank(); // whoever calls it
    if (CutInStep.count(E) && CutElsewhere.count(E) && !Alike)               // within what both call
      note("unknown-rows", E, V, "is cut for a training step, where something else goes through whole");
    if (ForEachRow.count(E))
      note("assumed-ranks", E, V,
           "vector comes from a call in each step and is taken to hold a number for each row of the batch; make sure "
           "that it isn't one for each feature");
    V = rowsCut(E, V, Cuts[E]);
    if (Recording)
      Out.Cuts[E] = Cuts[E];
  }
  if (V.amongOthers() && P.Code.Exprs[E].Kind != ExprKind::Call && OwnRows.count(E) == 0 &&
      llvm::any_of(Loops, [](const Loop &L) { return L.Mode == LoopMode::Rows; }))
    Restart |= OwnRows.insert(E).second;
  if (OwnRows.count(E) && (V.replicated() || V.amongOthers())) {
    const bool InStep =
        llvm::any_of(Loops, [&](const Loop &L) { return L.accumulates() || CutLoops.count(L.Statement) != 0; });
    if (!InStep && !CutLoops.empty()) // within what the steps call, too
      note("unknown-rows", E, V, "is cut for a training step, where something else goes through whole");
    const int8_t Rank = V.Rank;
    const bool Others = V.AllRows && changesNumber(E);
    V = Others ? Value::unknown("has other rows than the batch, of which this rank's can't be told", E)
               : Value::sharded(0, E);
    V.setRank(Rank);
    if (Recording && !Others)
      Out.OwnRows.insert(E);
  }
  const bool WholeHere = V.Kind == Placement::Replicated;
  if (const ir::Expr &X = P.Code.Exprs[E]; X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct)
    readsThroughPointers(E, X);
  if (BroughtTogether.count(E))
    V = allOf(E, std::move(V));
  if (KeptRows.count(E) && kept(E, V)) {
    const Value Rows = V;
    V = Value::of(Placement::Replicated, E);
    V.takeRank(Rows);
    V.Trained = Rows.Trained;
  }
  opensFile(E);
  Last[E] = V;
  if (Recording) {
    if (ByRank == 0)
      Out.ByRank.erase(E);
    else if (!Out.Types.count(E)) // nor elsewhere
      Out.ByRank.insert(E);
    Out.Types[E] = V;
    if (WholeHere)
      Out.WholeHere.insert(E);
    if (auto Apart = llvm::find_if(llvm::reverse(Loops), [](const Loop &L) { return L.ofOneRank(); });
        Apart != Loops.rend())
      OfOneRank[E] = Apart->Mode == LoopMode::Whole ? Apart->Loader : None;
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
    if (isKey(X)) {
      const Value Entry = eval(X.Object);
      return Entry.reducible() ? Value::of(Placement::Replicated, E) : Entry;
    }
    if (X.Kind == ExprKind::Field && X.Object != None) {
      if (std::optional<Value> Item = itemOfRows(X.Object))
        return *Item;
      const ir::Expr &Of = P.Code.Exprs[P.unconverted(X.Object)];
      const bool Made = Of.Kind == ExprKind::Call || Of.Kind == ExprKind::Construct;
      if (Made && Of.Var != None) { // `step().loss`
        eval(X.Object);
      } else if (Made && !lvalue(X.Object)) { // `meter.get().first`
        Value Whole = eval(X.Object);
        if (const Value *Half = half(X.Object, X.Var))
          return *Half;
        if (!Whole.replicated())
          return Whole;
      } else if (ofCall(X.Object)) { // `step().sums.second`
        const Value Whole = eval(X.Object);
        if (const Value *Half = half(X.Object, X.Var))
          return *Half;
        if (ofTemporary(X.Object))
          return Whole;
      } else if (const std::optional<Location> L = named(E);
                 L && (!Current.count(*L) || besideObject(P, X))) { // of `auto both = step();`
        if (const Value *Half = half(X.Object, X.Var))
          return *Half;
        if (std::optional<Value> Told = ofItem(E, *L))
          return *Told;
      }
    }
    if (std::optional<Location> L = named(E)) {
      // `in.x->sum()` of a pointer to a tensor
      const auto To = holdsAddress(*L) ? PointsTo.find(*L) : PointsTo.end();
      const bool Tensor =
          To != PointsTo.end() &&
          P.Code.typeOf(To->second.Path.empty() ? To->second.Root : To->second.Path.back()).Kind == TypeKind::Tensor;
      Value V = read(Tensor ? To->second : *L, E);
      if (V.reducible() && readForRows(V))
        V = Value::of(Placement::Replicated, E);
      if (V.Kind == Placement::Partial && !V.Fresh && outer(*L))
        notWhole("it reads what it adds up", E);
      // `auto& batch = *it` is read where the iterator is kept.
      V.Iterator &= P.Code.type(E).Kind == TypeKind::Unknown;
      return ofField(E, *L, std::move(V));
    }
    if (X.Object == None)
      return Value::of(Placement::Replicated, E);
    Value Whole = eval(X.Object); // `f().first`
    if (const Value *Half = half(X.Object, X.Var))
      return *Half;
    return Whole;
  }
  case ExprKind::Unary: {
    if (ir::FuncId F = P.callee(X); F != None) // the project's own
      return ownOperator(E, X, F);
    if (X.Name == "++" || X.Name == "--") {
      placedBy(X.Args[0]);
      std::optional<Location> L = lvalue(X.Args[0]);
      if (astray(L) || behindNames(*L)) {
        elsewhere(E, None, Value::of(Placement::Replicated, E), /*Changes=*/true);
        return eval(X.Args[0]);
      }
      Value Before = read(*L, X.Args[0]);
      if (Before.Iterator)
        return Before;
      if (!Statements.count(E) && outer(*L)) // `l[i++] += x`
        notWhole("it reads what it adds up", E);
      const Value Sum = accumulate(*L, Value::of(Placement::Replicated, E), None, E);
      write(*L, Sum, E);
      seenBehindNames(*L, Sum, E);
      return Before;
    }
    if (std::optional<Value> Number = X.Name == "*" ? behind(E, X.Args[0], None) : std::nullopt)
      return *Number;
    Value V = eval(X.Args[0]);
    if (X.Name == "*") {
      if (std::optional<Value> Item = itemOfRows(X.Args[0]))
        return *Item;
      if (std::optional<Location> L = lvalue(X.Args[0]); L && PointsTo.count(*L))
        return read(PointsTo.at(*L), E);
      V.Iterator = false;
      return V;
    }
    if (X.Name == "-") // the largest becomes the smallest
      return V.Kind == Placement::Extreme ? nonLinear(V, X.Args[0], "negated") : asNumber(V);
    if (X.Name == "!" || X.Name == "~")
      return nonLinear(V, X.Args[0], "negated");
    return V;
  }
  case ExprKind::Binary:
    return withRows(E, X, nullptr, binary(E, X));
  case ExprKind::Assign:
    return assign(E, X);
  case ExprKind::Index: {
    if (ir::FuncId F = P.callee(X); F != None && (numeric(E) || P.Code.type(E).Kind == TypeKind::Tensor)) {
      eval(X.Object);
      return inlined(E, X, F, lvalue(X.Object));
    }
    if (std::optional<Value> Number = X.Args.size() == 1 ? behind(E, X.Object, X.Args[0]) : std::nullopt)
      return *Number;
    if (std::optional<Value> Kept = entry(E))
      return *Kept;
    Value V = eval(X.Object);
    if (X.Args.size() == 1 && (isRow(X, X.Args[0], V) || cutWithFold(X, V)))
      return Value::of(Placement::Own, E);
    for (ir::ExprId Arg : X.Args) {
      Value Index = eval(Arg);
      if (Index.Kind == Placement::Own || Index.Kind == Placement::Unknown)
        V = V.replicated() ? Index : V;
    }
    // The batch's own shape, `x.sizes()[2]`.
    const std::optional<int64_t> Dim = X.Args.size() == 1 ? integer(X.Args[0]) : std::nullopt;
    if (const ir::ExprId Of = Dim && *Dim > 0 ? shapeOf(X.Object) : None; Of != None)
      hasAtLeast(Last[Of], Of, int(*Dim) + 1);
    if (V.Kind == Placement::Extent && X.Args.size() == 1 && P.Code.Exprs[X.Args[0]].Kind == ExprKind::Literal &&
        P.Code.Exprs[X.Args[0]].Name != "0")
      return Value::of(Placement::Replicated, E);
    if (listsRows(X.Object, V))
      return Value::unknown("picks rows of a batch by number", E);
    if (V.Kind == Placement::Sharded && hasRows(P.Code.type(X.Object))) {
      V.Batch = None;
      bool One = X.Args.size() == 1 && P.Code.type(X.Args[0]).Kind == TypeKind::Integer;
      if (V.Dim == 0 && One && countsInStep(X.Args[0]))
        note("row-loop", E, V, "picks rows of a batch by numbers that a loop counts, which aren't this rank's");
      if (V.Dim == 0 && One && Recording && !ofOneRank() &&
          P.Code.Exprs[P.unconverted(X.Args[0])].Kind != ExprKind::Literal)
        PicksRows[E] = trainingSteps();
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
  case ExprKind::Conditional:
    return chosen(E, X);
  case ExprKind::Lambda: {
    for (ir::ExprId Kept : X.Args) // `[data = batch.data]`
      declare(P.Code.Exprs[P.Code.Exprs[Kept].Args[0]].Var, P.Code.Exprs[Kept].Args[1], None);
    Value V = Value::of(Placement::Replicated, E);
    if (X.Func != None) {
      V.Funcs = {X.Func};
      MadeIn.insert_or_assign(X.Func, Frames.back().This);
    }
    return V;
  }
  case ExprKind::List: {
    // `double sums[10] = {}`: what is added up in it starts at zero.
    bool Zeros = holdsNumbers(P.Code.type(E).Name) &&
                 llvm::all_of(X.Args, [&](ir::ExprId Arg) { return eval(Arg).Kind == Placement::Zero; });
    Value V = Value::of(Zeros ? Placement::Zero : Placement::Replicated, E);
    // `std::array<double, 2>{sum / rows, rows}`: items have one place, so parts beside what is whole are whole as well.
    // (Whole numbers may be a shape.)
    auto Number = [&](ir::ExprId Arg) { return Arg != None && P.Code.type(Arg).number(); };
    StringRef Items = P.Code.type(E).Name;
    const bool Mixed = holdsNumbers(Items) && (Items.contains("double") || Items.contains("float")) &&
                       llvm::all_of(X.Args, Number) &&
                       llvm::any_of(X.Args, [&](ir::ExprId A) { return eval(A).Kind == Placement::Replicated; });
    for (size_t I = 0; I != X.Args.size(); ++I) {
      Value A = eval(X.Args[I]);
      if (Mixed && A.reducible())
        A = demandReplicated(X.Args[I], A, "kept beside what is equal on all ranks");
      addFuncs(V, A); // `{{"mean", mean}, {"sum", sum}}`, by name
      if (!A.replicated()) {
        V = V.replicated() ? A : amongItems(P.Code.type(E), V, A, X.Args[I]);
      } else if (V.replicated()) { // tensors, or a struct of them
        V.Rows = I == 0 ? A.Rows : V.Rows;
        joinRows(V, A);
      }
    }
    return V;
  }
  case ExprKind::Cast: {
    const auto Whole = X.Args[0] == Unpacked && Unpacked != None ? Last.find(Unpacked) : Last.end();
    Value V = Whole == Last.end() ? eval(X.Args[0]) : Whole->second;
    if (P.Code.type(E).Kind == TypeKind::Void && !StringRef(P.Code.type(E).Name).ends_with("*"))
      return Value::of(Placement::Replicated, E);
    if (StringRef Part = X.Name; Part.consume_front("part")) {
      // Beside an object that is known by its fields: what is said of the list or tuple itself.
      if (P.held(X) == None && !partsOf(X.Args[0]) && knownByFields(X.Args[0])) {
        V = besideFields(*lvalue(X.Args[0]), E);
        if (V.Kind == Placement::Partial && P.Code.type(E).Kind == TypeKind::Integer)
          return Value::unknown("is one of several numbers that were put into a list together", E);
      }
      size_t Index = 0;
      return Part.getAsInteger(10, Index) ? V : part(X.Args[0], V, Index);
    }
    return X.Name == "truncate" ? nonLinear(V, X.Args[0], "rounded") : V;
  }
  case ExprKind::Construct:
    if (holdsNothing(E))
      return Value::nothing(E);
    if (X.Args.empty() && P.Code.type(E).Kind == TypeKind::Tensor) // undefined
      return Value::nothing(E);
    if (X.Args.size() == 1 && X.Args[0] != None && StringRef(P.Code.type(E).Name).starts_with("c10::ArrayRef<") &&
        P.Code.type(X.Args[0]).Kind == TypeKind::Container) // `torch::TensorList(xs)`, which owns nothing
      return eval(X.Args[0]);
    // `std::vector<Tensor> heads(4)`: as many undefined ones.
    if (X.Args.size() == 1 && X.Args[0] != None && P.Code.type(X.Args[0]).Kind == TypeKind::Integer &&
        StringRef(P.Code.type(E).Name).starts_with("std::vector<at::Tensor") && eval(X.Args[0]).replicated())
      return Value::of(Placement::Zero, E);
    if (std::optional<Value> Rows = oneForEachRow(E, X))
      return *Rows;
    // `std::vector<int> hits(10)`, `(10, 0)`: as many zeros.
    if (!X.Args.empty() && X.Args[0] != None && P.Code.type(X.Args[0]).Kind == TypeKind::Integer &&
        holdsNumbers(P.Code.type(E).Name) && eval(X.Args[0]).replicated() &&
        llvm::all_of(llvm::drop_begin(X.Args), [&](ir::ExprId Arg) {
          const bool Item = Arg != None && (P.Code.type(Arg).number() || holdsNumbers(P.Code.type(Arg).Name));
          return !Item || eval(Arg).Kind == Placement::Zero;
        }))
      return Value::of(Placement::Zero, E);
    return call(E, X);
  case ExprKind::Call:
    if (std::optional<Value> Kept = entry(E))
      return *Kept;
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
