//===- InterpreterInlined.cpp - Functions of the project, run where called ===//
//
// What a call gives to a function's parameters, to the object that a method is of, and to the members that a
// constructor initialises; the body runs with that, and what it returns, also field by field, is the call's value.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SaveAndRestore.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// A virtual call may run any of the overriders: what is true of all of them is.
Value Interpreter::dispatched(ir::ExprId E, const ir::Expr &X, const std::vector<ir::FuncId> &Bodies) {
  std::optional<Location> This = X.Kind == ExprKind::Call ? lvalue(X.Object) : std::nullopt;
  if (auto To = This && holdsAddress(*This) ? PointsTo.find(*This) : PointsTo.end(); To != PointsTo.end())
    This = To->second; // `encoder->forward(x)` of a holder that names another's module
  // `meter.add(x).add(y)`, `Trainer(net).run()`: what the first does
  ir::ExprId Object = X.Kind == ExprKind::Call ? X.Object : None;
  while (Object != None && P.Code.Exprs[Object].Kind == ExprKind::Cast && !P.Code.Exprs[Object].Args.empty())
    Object = P.Code.Exprs[Object].Args[0];
  if (Object != None &&
      (P.Code.Exprs[Object].Kind == ExprKind::Call || P.Code.Exprs[Object].Kind == ExprKind::Construct))
    eval(X.Object);
  return anyOf(E, X, Bodies, This);
}

Value Interpreter::anyOf(ir::ExprId E, const ir::Expr &X, const std::vector<ir::FuncId> &Bodies,
                         std::optional<Location> This) {
  if (Bodies.size() == 1)
    return inlined(E, X, Bodies.front(), This);
  State Before = Current, After;
  Value Result;
  for (size_t I = 0; I != Bodies.size(); ++I) {
    Current = Before;
    Value V = inlined(E, X, Bodies[I], This);
    Result = I == 0 ? V : join(Result, V);
    After = I == 0 ? Current : joined(After, Current);
  }
  Current = std::move(After);
  return Result;
}

/// Whether a member is a reference or a pointer to what is followed, `total(total)`, `sum(&sum)`: it names that.
bool Interpreter::refersTo(const Location &Member, ir::ExprId Init) {
  const ir::Type &T = P.Code.typeOf(Member.Path.back());
  PointsTo.erase(Member);
  if (!T.Reference && !holdsAddress(Member))
    return false;
  ir::ExprId Given = P.unconverted(Init); // `metrics(std::move(given))`, `model(owner.get())`
  for (const ir::Expr *X = &P.Code.Exprs[Given]; X->Kind == ExprKind::Call; X = &P.Code.Exprs[Given])
    if ((X->Name == "std::move" || X->Name == "std::forward") && X->Args.size() == 1)
      Given = P.unconverted(X->Args[0]);
    else if (X->Object != None && StringRef(X->Name).starts_with("std::") && StringRef(X->Name).ends_with("::get"))
      Given = P.unconverted(X->Object);
    else
      break;
  const ir::Expr &X = P.Code.Exprs[Given];
  bool Names = X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field || (X.Kind == ExprKind::Unary && X.Name == "&");
  std::optional<Location> Of = Names ? lvalue(Given) : std::nullopt;
  if (!Of || (T.Hold == ir::Holding::Holder && P.Code.type(Given).Name != T.Name))
    return false;
  if (auto To = PointsTo.find(*Of); To != PointsTo.end()) // another pointer to the same
    Of = To->second;
  const ir::Type &To = P.Code.typeOf(Of->Path.empty() ? Of->Root : Of->Path.back());
  if (!To.number() && !To.Own && To.Kind != TypeKind::Tensor && To.Kind != TypeKind::Container &&
      To.Kind != TypeKind::Module && !holdsAddress(*Of))
    return false;
  eval(Init);
  PointsTo.emplace(Member, *Of);
  return true;
}

/// What a constructor's initialiser makes: the object at `At`, whose fields a constructor of the project's own writes.
Value Interpreter::constructed(ir::ExprId E, const std::optional<Location> &At) {
  const ir::Expr &X = P.Code.Exprs[E];
  ir::FuncId Constructor = X.Kind == ExprKind::Construct ? P.callee(X) : None;
  return Constructor == None ? eval(E) : inlined(E, X, Constructor, At);
}

/// A member that a constructor is given, `best = {loss.item<double>(), epoch}`: what is given is what it is assigned,
/// and is brought together there where that is asked for.
void Interpreter::memberGiven(const ir::Function &Constructor, ir::ExprId Init, Value &V) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Init)];
  const size_t I = llvm::find(Constructor.Params, X.Var) - Constructor.Params.begin();
  if (X.Kind != ExprKind::Ref || I >= std::min(Constructor.Params.size(), Frames.back().Args.size()))
    return;
  const ir::ExprId Given = Frames.back().Args[I];
  if (Given == None || !numeric(Given) || !V.reducible())
    return;
  V.AssignedBy = Given;
  Assigned.insert(Given);
  V = asSet(Given, std::move(V), "kept beyond its step");
}

Value Interpreter::inlined(ir::ExprId E, const ir::Expr &X, ir::FuncId F, std::optional<Location> This) {
  const ir::Function &Fn = P.Code.Functions[F];
  if (auto Made = MadeIn.find(F); Made != MadeIn.end()) // what a lambda calls `this`
    This = Made->second;
  std::vector<Value> Values;
  std::vector<std::optional<Location>> Places;
  bool AllReplicated = true, Gathers = false;
  std::set<size_t> Whole; // arguments that were rows
  // What it gives may be a struct of tensors.
  bool OnlyLooks =
      X.Kind == ExprKind::Call && !holdsTensors(P.Code.type(E)) && !P.Code.type(E).Own && !R.reachesBackward(Fn.Body);
  for (ir::ExprId Arg : X.Args) {
    Values.push_back(eval(Arg));
    Places.push_back(lvalue(Arg));
    Value &V = Values.back();
    size_t I = Values.size() - 1;
    const ir::Type *T = I < Fn.Params.size() ? &P.Code.typeOf(Fn.Params[I]) : nullptr;
    if (!T && !Fn.Params.empty() && X.Kind == ExprKind::Call && !V.replicated() && numeric(Arg)) // `line(format, ...)`
      V = demandReplicated(Arg, V, "passed on");
    bool Sums = V.Kind == Placement::Partial && !V.Fresh && holdsNumbers(P.Code.type(Arg).Name); // a list of them
    std::vector<ir::ExprId> Items; // `{sums.at(0), sums.at(1)}`
    if (Sums)
      collectItems(P, P.unconverted(Arg), Items);
    if (WholeArguments.count(F) && (Items.size() > 1 || (!Items.empty() && Items[0] != P.unconverted(Arg)))) {
      for (ir::ExprId Item : Items)
        if (Value Of = Last[Item]; Of.reducible() && numeric(Item))
          demandReplicated(Item, Of, "passed to `" + Fn.Name + "`");
      V = Value::of(Placement::Replicated, Arg);
    } else if (WholeArguments.count(F) && V.reducible() && (numeric(Arg) || Sums)) {
      V = demandReplicated(Arg, V, "passed to `" + Fn.Name + "`");
      if (T && Sums && (!T->Reference || T->Const))
        Whole.insert(I);
    }
    if (PartWhereSet.count(Arg)) // `meter.add(loss.item<double>(), x.size(0))`
      V = asSet(Arg, std::move(V), "passed on");
    const ir::Range &Written = P.Code.Exprs[Arg].Where;
    const std::tuple Text(Written.File, Written.Begin, Written.End);
    const bool Looks = OnlyLooks && T && (!T->Reference || T->Const);
    if (Looks && WholeArguments.count(F) && V.reducible() && P.Code.type(Arg).Kind == TypeKind::Tensor) { // a loss
      V = demandReplicated(Arg, V, "passed to `" + Fn.Name + "`");
      Whole.insert(I);
    }
    // One text calls several: what one of them is given all rows for, the others are given too.
    if (GatheredTexts.count(Text) && gatherable(Arg, V)) {
      if (Looks)
        Restart |= GatheredArguments.insert(F).second;
      else
        note("ambiguous-placement", Arg, V,
             "is needed whole by one of the functions that are called here, and `" + Fn.Name +
                 "` takes this rank's rows");
    }
    const bool Row = V.Kind == Placement::Unknown && rowsBehind(Arg) != None; // `save(x[0])`
    if (Looks && (Row || gatherable(Arg, V))) {
      Gathers |= Divergent == 0 && !GatheredArguments.count(F);
      if (GatheredArguments.count(F) && gathered(Arg, V)) {
        GatheredTexts.insert(Text);
        V = Value::of(Placement::Replicated, Arg);
        Whole.insert(I); // a tensor of its own
      }
    }
    AllReplicated &= V.replicated();
  }
  if (llvm::is_contained(Stack, F))
    CallsItself.insert(F);
  if (llvm::is_contained(Stack, F) || Stack.size() > 40)
    return AllReplicated ? Value::of(Placement::Replicated, E) : again(E, F, Values);
  // An object without a name, that a constructor makes or a function returns.
  const bool Nameless = X.Var != None && (X.Kind == ExprKind::Call || !This);
  const Location Kept = {X.Var, {}};
  if (std::optional<Value> Known = passedBy(E, F, Values, Places, This)) {
    if (Nameless)
      forget(Kept);
    return *Known;
  }
  Out.Reached.insert(F);
  for (size_t I = 0; I < Fn.Params.size() && I < Values.size(); ++I) {
    ir::VarId V = Fn.Params[I];
    begins(V);
    unname(V);
    OwnPlaces.erase(V);
    const ir::ExprId Arg = P.unconverted(X.Args[I]);
    const bool Address = P.Code.Exprs[Arg].Kind == ExprKind::Unary && P.Code.Exprs[Arg].Name == "&";
    const ir::Type &Taken = P.Code.typeOf(V);
    if ((Taken.Reference && !Taken.Const) || Address) // `mark(items[label])`
      if (placedByOwn(Address ? P.Code.Exprs[Arg].Args[0] : Arg))
        OwnPlaces.insert(V);
    points(Location{V, {}}, X.Args[I]);
    bool Pointer = StringRef(P.Code.typeOf(V).Name).ends_with("*") && !P.Code.typeOf(V).Const;
    ir::ExprId From = P.Code.typeOf(V).Kind == TypeKind::Tensor ? copied(X.Args[I]) : None;
    const bool Part = P.Code.typeOf(V).Kind == TypeKind::Tensor && isPart(P.unconverted(X.Args[I])); // `save(x[0])`
    if (Whole.count(I)) {
      Current[Location{V, {}}] = Values[I];
    } else if ((P.Code.typeOf(V).Reference || Pointer) && Places[I] && !Part) {
      Alias[V] = *Places[I];
      if (ofContainer(X.Args[I]))
        Elements.insert(V);
    } else if (From != None && lvalue(From)) {
      Alias[V] = *lvalue(From);
      Copies[V] = From;
    } else {
      Current[Location{V, {}}] = Values[I];
      if (P.Code.typeOf(V).tuple())
        Current[Location{V, {}}].AssignedBy = X.Args[I]; // of which its parts are told
      copyObject(Location{V, {}}, X.Args[I]);
      if (std::optional<Location> Base = Part ? viewed(X.Args[I]) : std::nullopt)
        Views[V] = {*Base};
      const ir::Type &T = P.Code.typeOf(V);
      if (T.Reference && !T.Const && P.Code.Exprs[X.Args[I]].Kind == ExprKind::Call)
        Elsewhere.insert(V);
    }
  }
  if (Nameless) {
    begins(X.Var);
    forget(Kept);
    if (X.Kind == ExprKind::Construct)
      This = Kept;
  }
  if (Threads > 0 && InThreads.insert(F).second)
    Restart |= AgreesIn.count(F) != 0;
  const int Met = Meetings;
  const bool OwnPlace = X.Kind == ExprKind::Call && X.Object != None && placedByOwn(P.unconverted(X.Object));
  Frames.push_back({F, This, Value::of(Placement::Replicated, E), false, {}, {}, X.Args});
  Frames.back().Apart = Divergent;
  Frames.back().OwnPlace = OwnPlace;
  Frames.back().Gathers = Gathers;
  Frames.back().Given = Values;
  Frames.back().Call = E;
  Stack.push_back(F);
  for (ir::ExprId Base : Fn.Bases)
    constructed(Base, This);
  for (const auto &[Field, Init] : Fn.Inits)
    if (This) {
      Location L = *This;
      L.Path.push_back(Field);
      if (refersTo(L, Init))
        continue;
      Value V = constructed(Init, L);
      const ir::Expr &Made = P.Code.Exprs[Init];
      const bool Empty = Made.Kind == ExprKind::Construct && Made.Args.empty() && !V.Nothing;
      if (Made.Kind == ExprKind::Construct && P.callee(Made) != None) { // its constructor has written there
        if (Empty)
          Current.try_emplace(L, Value::of(Placement::Zero, Init));
        continue;
      }
      if (Empty)
        V = Value::of(Placement::Zero, Init);
      memberGiven(Fn, Init, V);
      Current[L] = V;
      copyObject(L, Init);
    } else {
      eval(Init);
    }
  {
    llvm::SaveAndRestore Together(Divergent, Divergent), Chosen(ByRank, ByRank);
    exec(Fn.Body);
  }
  Frame &Top = Frames.back();
  for (const State &Returned : Top.Returns) {
    Current = Dead ? Returned : joined(Current, Returned);
    Dead = false;
  }
  Dead = false;
  Returned[E] = Top.Fields;
  Parts[E] = Top.Parts;
  Value Result = Top.Returned ? Top.Result : Value::of(Placement::Replicated, E);
  if (Nameless && X.Kind == ExprKind::Call) {
    forget(Kept);
    Current[Kept] = Result;
    takeFields(Kept, Top.Fields);
  } else if (Nameless) {
    Result = read(Kept, E);
    State All; // where it will be kept may not be followed: some object's fields, all of them together
    for (auto It = Current.upper_bound(Kept); It != Current.end() && It->first.Root == Kept.Root; ++It)
      if (It->first.Path.size() == 1)
        All.emplace(Location{It->first.Path.front(), {}}, It->second);
    Current.merge(All);
  }
  Frames.pop_back();
  Stack.pop_back();
  if (Meetings != Met)
    metIn(F);
  Result = confirmed(E, F, Result);
  if (Returned[E].empty() && Parts[E].empty())
    followed(F, X, Values, Result);
  // Its own variables are gone, unless a lambda kept them: states are copied and joined often, and needn't carry them.
  if (!body(F).Lambdas)
    std::erase_if(Current, [&](const auto &Kept) { return P.Code.Vars[Kept.first.Root].Function == F; });
  return Result;
}

} // namespace migrate
