//===- InterpreterStores.cpp - What is written to places ------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// Has a value that outlives its step brought together where it was assigned, from the next run on. False if that is
/// no assignment, or the value carries a graph.
bool Interpreter::keepWhole(const Value &V) {
  Placement Was = V.Kind == Placement::Escaped ? V.Was : V.Kind;
  if (V.AssignedBy == None || !Assigned.count(V.AssignedBy) || V.Trained ||
      (Was != Placement::Mean && Was != Placement::Partial && Was != Placement::Extent && Was != Placement::Extreme))
    return false;
  if (!numeric(V.AssignedBy) && P.Code.type(V.AssignedBy).Kind != TypeKind::Tensor)
    return false;
  if (CoerceAtAssign.insert(V.AssignedBy).second)
    Restart = true;
  return true;
}

void Interpreter::write(const Location &L, Value V, ir::ExprId From) {
  V.AssignedBy = From;
  underRecomputed(V);
  // What is declared there is the same on all ranks that come there.
  auto Begun = BegunUnder.find(L.Root);
  if (Divergent > (Begun == BegunUnder.end() ? 0 : Begun->second) && V.Kind != Placement::Own &&
      V.Kind != Placement::Sharded)
    V = Value::unknown(SetApart, From);
  forget(L); // fields that were known one by one are overwritten with the whole
  Current[L] = std::move(V);
}

/// Whether a pointer points to something that is made here, or in the function that gives it.
bool Interpreter::makes(ir::ExprId E) const {
  auto Made = [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    return X.Kind == ExprKind::Construct || StringRef(X.Name).contains("make_");
  };
  const ir::Expr &X = P.Code.Exprs[E];
  ir::FuncId F = X.Kind == ExprKind::Call ? P.callee(X) : None;
  if (F == None)
    return X.Kind == ExprKind::Literal || Made(E);
  return llvm::all_of(P.returned(F), [&](ir::ExprId Sub) {
    ir::ExprId Returned = P.unconverted(Sub);
    const ir::Expr &R = P.Code.Exprs[Returned];
    return Made(Returned) || (R.Kind == ExprKind::Ref && !P.Code.Vars[R.Var].Global && !P.Code.Vars[R.Var].Param);
  });
}

/// Whether `Body` may write to a variable, or to a name of one of its parts.
bool Interpreter::writesTo(ir::StmtId Body, ir::VarId V) const {
  std::set<ir::VarId> Names = {V};
  bool Found = false;
  auto Named = [&](ir::ExprId E) {
    while (E != None && P.Code.Exprs[E].Kind != ExprKind::Ref)
      E = P.Code.Exprs[E].Object != None ? P.Code.Exprs[E].Object
          : P.Code.Exprs[E].Args.empty() ? None
                                         : P.Code.Exprs[E].Args[0];
    return E != None && Names.count(P.Code.Exprs[E].Var);
  };
  P.forEachStmt(Body, [&](ir::StmtId S) {
    const ir::Stmt &X = P.Code.Stmts[S];
    if (X.Kind == StmtKind::Decl && X.Value != None && P.Code.typeOf(X.Var).Reference && Named(X.Value))
      Names.insert(X.Var);
  });
  P.forEachExprIn(Body, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Assign || (X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--")))
      Found |= Named(X.Args[0]);
    else if (X.Kind == ExprKind::Call && X.Object != None && Named(X.Object))
      Found |= X.Callee.size() || StringRef(X.Name).ends_with("_") || isCollecting(X.Name);
    for (size_t I = 0; X.Kind == ExprKind::Call && I < X.Args.size() && I < 32; ++I)
      Found |= (X.Writable >> I & 1) && X.Args[I] != None && Named(X.Args[I]);
  });
  return Found;
}

/// A variable begins anew: it names nothing else.
void Interpreter::unname(ir::VarId V) {
  Alias.erase(V);
  Elements.erase(V);
  Elsewhere.erase(V);
  anew(V);
  Copies.erase(V);
}

/// `V` is written to where it can't be followed: it has to be the same on every rank there.
void Interpreter::elsewhere(ir::ExprId E, ir::ExprId From, const Value &V, bool Changes) {
  if (Changes || OwnChoices > 0)
    notWhole("it writes through an expression that isn't followed", E);
  if (V.replicated())
    return;
  const ir::Expr *Made = From == None ? nullptr : &P.Code.Exprs[P.unconverted(From)];
  const bool Object = Made && (Made->Kind == ExprKind::List || Made->Kind == ExprKind::Construct) &&
                      !P.Code.type(From).number() && P.Code.type(From).Kind != TypeKind::Tensor;
  if (!Object || Made->Args.empty()) {
    demandReplicated(From == None ? E : From, V, "written through an expression that isn't followed");
    return;
  }
  for (ir::ExprId Member : Made->Args) // `status = {epoch, loss}`
    if (Member != None)
      elsewhere(E, Member, eval(Member), /*Changes=*/false);
}

/// What tells the place of an element, `cm[{target, prediction}]`'s too.
static std::vector<ir::ExprId> placesIn(const Program &P, const ir::Expr &Element) {
  std::vector<ir::ExprId> Places;
  for (ir::ExprId Arg : Element.Args)
    if (Arg != None)
      collectItems(P, Arg, Places);
  return Places;
}

/// What tells the place of an element that is written, `seen[label.item<int64_t>()]`, must be the same on all ranks.
void Interpreter::placedBy(ir::ExprId Element) {
  if (const ir::Expr &X = P.Code.Exprs[P.unconverted(Element)]; X.Kind == ExprKind::Conditional) {
    agree(X.Args[0], eval(X.Args[0])); // `(device() % 2 ? heads : tails)++`
    placedBy(X.Args[1]);
    placedBy(X.Args[2]);
    return;
  }
  for (; Element != None; Element = P.Code.Exprs[Element].Object) {
    const ir::Expr &X = P.Code.Exprs[Element = P.unconverted(Element)];
    if (X.Kind == ExprKind::Field) // `items[k].seen = true`
      continue;
    if (!isElement(X) && X.Kind != ExprKind::Index)
      return;
    std::optional<Location> L = lvalue(Element);
    bool OfRows = L && Current.count(*L) && Current.at(*L).Kind == Placement::Sharded;
    for (ir::ExprId Place : placesIn(P, X)) {
      if (!P.Code.type(Place).number() || OfRows)
        continue;
      const Value V = eval(Place);
      agree(Place, V); // `wins[std::time(nullptr) % 2]++`
      if (!V.reducible() && V.Kind != Placement::Unknown)
        continue;
      demandReplicated(Place, V, "used as an index");
      if (!L || V.Kind != Placement::Unknown)
        continue;
      const Value Astray = Value::unknown("is written at places that differ between ranks", Place);
      write(*L, Astray, None);
      seenBehindNames(*L, Astray, Place);
    }
  }
}

/// Whether one rank's own rows tell the place of an element, or what a name, a pointer or a method's object leads to.
/// What tells it is evaluated, wherever that is: of `items[pred[i].item<int64_t>()].seen = true` nothing else does so.
bool Interpreter::placedByOwn(ir::ExprId E) {
  for (; E != None; E = P.Code.Exprs[P.unconverted(E)].Object) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    if (X.Kind == ExprKind::Unary && X.Name == "*")
      return placedByOwn(P.unconverted(X.Args[0]));
    if (X.Kind == ExprKind::Ref)
      return OwnPlaces.count(X.Var) != 0;
    if (X.Kind == ExprKind::This || (X.Kind == ExprKind::Field && X.Object == None))
      return Frames.back().OwnPlace;
    if (X.Kind != ExprKind::Field && X.Kind != ExprKind::Index && !isElement(X))
      return false;
    for (ir::ExprId Place : placesIn(P, X)) {
      const Value V = eval(Place);
      agree(Place, V); // `wins[device() % 2].add()`
      if (V.Kind == Placement::Own)
        return true;
    }
  }
  return false;
}

/// `to = V`, where `From` is the expression that holds the value, if one does.
Value Interpreter::store(ir::ExprId E, ir::ExprId To, ir::ExprId From, Value V) {
  const ir::Expr &Target = P.Code.Exprs[To];
  if (Target.Kind == ExprKind::Ref) { // another tensor from here on, no view and no copy
    anew(Target.Var);
    if (Copies.erase(Target.Var))
      Alias.erase(Target.Var);
  }
  std::optional<Location> L = lvalue(To);
  if (isElement(Target))
    for (ir::ExprId Sub : Target.Args)
      eval(Sub);
  if (!L)
    eval(To);
  if ((V.Kind == Placement::Own || V.replicated()) && isOwnRow(To))
    return V;
  if ((V.Kind == Placement::Sharded || KeptRows.count(From)) && keepsInPart(To, From, V))
    return V;
  const bool Within = withinTensor(To);
  const bool InStep = !L && Within && V.Kind == Placement::Sharded && ofThisStep(To); // `x.slice(1, 0, 2) = y`
  if (InStep && intoWhole(E, To))
    return V;
  if (!L && Within && V.Kind == Placement::Own && ofThisStep(To)) { // of one rank's batch
    write({partOfVar(To).first, {}}, V, None);
    return V;
  }
  if (!InStep && (astray(L) || (Within && behindNames(*L)))) {
    elsewhere(E, From, V, /*Changes=*/false);
    if (V.reducible() && From != None && P.Code.type(From).number()) // it has been brought together there
      V = Value::of(Placement::Replicated, From);
  }
  if (!L) {
    if (Within)
      wroteInto(To, V, E);
    return V;
  }
  if (From != None)
    Assigned.insert(From);
  V = asSet(From, V, outer(*L) ? "kept beyond its step" : "kept for later");
  if (outer(*L)) {
    if (OwnChoices > 0 || placedByOwn(To)) // `seen[label] = true`
      notWhole("it sets something that outlives its batch", E);
    const bool Tensor = From != None && P.Code.type(From).Kind == TypeKind::Tensor && (!V.Trained || NoGrads > 0);
    if (From != None && V.reducible() && isPart(To)) // `losses[i] = loss`, `centers[k] = x.mean(0)`
      V = Tensor ? demandReplicated(From, V, "kept beyond its step") : nonLinear(V, From, "kept beyond its step");
    else if (!V.replicated())
      notWhole("it keeps a value of one batch for later", E);
  }
  bool Part = isPart(To);
  ir::ExprId By = Part ? None : From; // no more than a part was made of that
  if (ofContainer(To)) {
    const Value Others = read(*L, E);
    if (V.replicated() && !Others.replicated()) // what another element was assigned
      By = Others.AssignedBy;
    // `if (sums.count(name)) sums[name] += x; else sums[name] = x;`: no part can wait where a whole starts the sum.
    if (Others.Kind == Placement::Partial && !Others.Fresh && V.reducible() && outer(*L) && From != None &&
        P.Code.type(From).number()) {
      Restart |= EachStep.insert(*L).second;
      Restart |= CoerceAtAssign.insert(From).second;
    }
    const ir::ExprId Holder = P.Code.Exprs[P.unconverted(To)].Object;
    if (Part)
      V = fillsPlace(Others, eval(To), V) ? Others : withPart(*L, Others, V);
    else
      V = Holder == None ? join(Others, V) : amongItems(P.Code.type(Holder), Others, V, From);
    if (Part && V.Kind == Placement::Unknown && Others.Kind == Placement::Sharded && writtenByNumber(*L))
      return V;
  }
  if (From != None && !Part && V.replicated() && moves(From, *L))
    keepsShape(V, read(*L, E));
  points(*L, From);
  separate(*L);
  const bool Copies = From != None && !Part && !ofContainer(To) && Divergent == 0 && !PointsTo.count(*L);
  State Fields = Copies ? fieldsOf(From) : State();
  if (From != None && ofContainer(To) && P.Code.type(To).Own)
    Fields = amongFields(*L, fieldsOf(From));
  const Value Written = V;
  if (Within)
    eval(To);
  write(*L, V, By);
  if (Target.Kind != ExprKind::Ref)
    seenBehindNames(*L, Written, E);
  takeFields(*L, Fields);
  if (From != None && !Part && !ofContainer(To) && Divergent == 0)
    takeReferences(*L, From);
  if (Within)
    wroteInto(To, Written, E);
  return V;
}

} // namespace migrate
