//===- InterpreterLists.cpp - What is put into containers -----------------===//
//
// Lists, maps, queues and optionals of tensors and numbers: which methods put something into them, where, and whether
// they hold as much on every rank.
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

bool isCollecting(StringRef Name) {
  return Name.ends_with("::push_back") || Name.ends_with("::emplace_back") || Name.ends_with("::push") ||
         Name.ends_with("::push_front") || Name.ends_with("::emplace_front") || Name.ends_with("::insert") ||
         Name.ends_with("::emplace") || Name.ends_with("::append");
}

/// The same of what may have lain there.
bool replacesItems(const ir::Expr &X) {
  const StringRef Name = X.Name;
  return Name.starts_with("std::") &&
         (Name.ends_with("::assign") || Name.ends_with("::insert_or_assign") || Name.ends_with("::try_emplace") ||
          (Name.ends_with("::resize") && X.Args.size() > 1));
}

/// What lies in a list beside what is put into it. Losses of several batches may be added up there, which are means
/// over other rows.
Value Interpreter::amongItems(const ir::Type &List, const Value &Items, const Value &New, ir::ExprId Item) const {
  auto OfRows = [](const Value &V) {
    return V.Rows > NoRows && (V.Kind == Placement::Mean || (V.Kind == Placement::Partial && V.Fresh));
  };
  const StringRef Type = List.Name;
  const bool Tensors = Type.contains("vector<at::Tensor") || Type.contains("initializer_list<at::Tensor") ||
                       (Type.contains("map<") && Type.contains("at::Tensor")) || Type.contains("ArrayRef<at::Tensor") ||
                       Type.starts_with("at::Tensor[") || Type.starts_with("const at::Tensor[");
  if (Tensors && (Items.Kind == Placement::Mean || New.Kind == Placement::Mean) && OfRows(Items) && OfRows(New) &&
      Items.Rows != New.Rows)
    return Value::unknown("averages over the rows of two batches", Item);
  return Items.same(New) ? New : join(Items, New);
}

/// `losses.push_back(loss)`: in a list that means and parts of sums are put into, each is taken as this rank's part, as
/// in a sum of them. What of this is known when the first comes is known from the next run on.
Value Interpreter::amongLosses(const Location &L, const Value &Items, const Value &New, ir::ExprId Item) {
  auto Part = [](const Value &V) { return V.Kind == Placement::Partial && V.Fresh; };
  auto Other = [](const Value &V) {
    return V.Kind == Placement::Mean || (V.Kind == Placement::Replicated && V.Trained && V.Rank == 0);
  };
  if (P.Code.type(Item).Kind != TypeKind::Tensor)
    return New;
  if ((Part(Items) && Other(New)) || (Other(Items) && Part(New)))
    Restart |= SharedItems.insert(L).second;
  if (!SharedItems.count(L) || !Other(New) || !coerce(Item, "share", New))
    return New;
  Value V = Value::partial(true, Item);
  V.Rank = New.Rank;
  V.Rows = New.Rows;
  V.Trained = New.Trained;
  V.Noisy = New.Noisy;
  return V;
}

/// `std::vector<torch::Tensor> parts{numbers};`, to which rows of a batch are added: what has the same rows is cut.
void Interpreter::cutItems(const Value &Items, const Value &New) {
  const Loop *Step = CutLoops.empty() || Items.AssignedBy == None ? nullptr : stepLoop();
  std::vector<ir::ExprId> Whole;
  if (Step && Items.replicated() && New.Kind == Placement::Sharded)
    collectItems(P, Items.AssignedBy, Whole);
  for (ir::ExprId Item : Whole)
    if (Last.count(Item) && meansRowsOf(Item, Last[Item], New))
      cut(cutPoint(Item, *Step), Step->Statement);
}

ir::ExprId madeBy(const Program &P, ir::ExprId Item) {
  const ir::Expr *X = &P.Code.Exprs[Item = P.unconverted(Item)];
  if (const ir::ExprId Copied = copiedObject(P, Item); Copied != None)
    X = &P.Code.Exprs[Item = P.unconverted(Copied)];
  if (X->Kind == ExprKind::Construct && X->Var != None)
    return Item;
  if (!P.Code.type(Item).tuple())
    return None;
  if (X->Kind == ExprKind::Construct && X->Args.size() == 1 && X->Args[0] != None)
    X = &P.Code.Exprs[Item = P.unconverted(X->Args[0])];
  const bool Makes = X->Kind == ExprKind::Construct || X->Kind == ExprKind::List || X->Name == "std::make_pair" ||
                     X->Name == "std::make_tuple";
  return Makes && !llvm::is_contained(X->Args, None) ? Item : None;
}

/// The entry of a map that `map.emplace("x", t)` or `map.insert({"x", t})` makes, and what is kept there.
std::pair<ir::VarId, ir::ExprId> Interpreter::entryGiven(const ir::Expr &X, ir::ExprId Arg) const {
  if (X.Args[0] != Arg)
    return {P.entryNamed(X.Args[0]), Arg};
  const ir::ExprId Made = madeBy(P, Arg);
  const std::vector<ir::ExprId> Pair = Made == None ? std::vector<ir::ExprId>() : P.Code.Exprs[Made].Args;
  return Pair.size() == 2 ? std::pair(P.entryNamed(Pair[0]), Pair[1]) : std::pair(None, None);
}

/// What a list gets, and a map under a key: `meters.insert({epoch, meter})`.
static ir::ExprId keptIn(const Program &P, const ir::Expr &X, ir::ExprId Arg) {
  const ir::ExprId Pair = P.Code.type(X.Object).map() ? madeBy(P, Arg) : None;
  return Pair != None && P.Code.Exprs[Pair].Args.size() == 2 ? P.Code.Exprs[Pair].Args[1] : Arg;
}

/// `losses.push_back(x)`: what the list holds then. What outlives the step is that of all ranks.
void Interpreter::collects(ir::ExprId E, const ir::Expr &X, ir::ExprId Arg, Value V) {
  std::optional<Location> L = lvalue(X.Object);
  if (std::optional<Value> Rows = L && StringRef(X.Name).ends_with("_back") ? listed(*L, V) : std::nullopt) {
    write(*L, *Rows, Arg);
    return;
  }
  const auto [Entry, Kept] = P.Code.type(X.Object).namesTensors() ? entryGiven(X, Arg) : std::pair(None, None);
  if (L && Entry != None) {
    L->Path.push_back(Entry);
    Arg = Kept;
    V = Last[Kept];
  }
  bool Outlives = astray(L) || outer(*L);
  if (L && L->Path.empty() && (V.replicated() || !Outlives) && P.Code.type(Arg).Kind == TypeKind::Tensor)
    keepsNames(L->Root, Arg);
  const ir::ExprId Made = Outlives && !V.replicated() && V.Kind != Placement::Own ? madeBy(P, Arg) : None;
  if (const ir::Expr *Of = Made == None ? nullptr : &P.Code.Exprs[Made]; Of && !Of->Args.empty()) {
    for (ir::ExprId Part : Of->Args)
      if (Last[Part].reducible() && numeric(Part))
        Last[Part] = demandReplicated(Part, Last[Part], "collected over the steps");
    if (Of->Var != None) // and so are the fields of the object that it makes, by whatever points to it
      for (auto &[At, Field] : Current)
        if (At.Root == Of->Var && !Field.replicated())
          Field = Field.reducible() ? Value::of(Placement::Replicated, Made)
                                    : Value::unknown("collects rows of several steps", Arg);
    makeParts(Made, *Of); // which are read by themselves, `for (auto &[loss, rows] : history)`
    if (llvm::all_of(Of->Args, [&](ir::ExprId Part) { return Last[Part].replicated() || numeric(Part); }))
      V = Value::of(Placement::Replicated, Arg);
  }
  if (Outlives) {
    notWhole("it collects values of its batches", E);
    if (V.reducible() && numeric(Arg))
      V = demandReplicated(Arg, V, "collected over the steps");
    else if (V.reducible()) // `losses.push_back(loss.detach())`
      V = nonLinear(V, Arg, "collected over the steps");
    else if (V.Kind == Placement::Unknown && gatheredIn(Arg)) // `push_back(x.std().item<float>())`
      V = computedOfAll(Arg);
    else if (kept(Arg, V)) // `predictions.push_back(output.argmax(1))`
      V = Value::of(Placement::Replicated, Arg);
    else if (!V.replicated())
      V = Value::unknown("collects rows of several steps", Arg);
  }
  if (L) {
    // Of objects, each field of all items together.
    State Fields = Outlives ? State() : fieldsOf(keptIn(P, X, Arg));
    Value Items = read(*L, E);
    if (!Outlives && P.Code.type(X.Object).listsTuples()) {
      Items = besideFields(*L, E);
      if (!Fields.empty())
        V = collectsHeld(X, Arg, V, Fields);
    }
    Fields = amongFields(*L, std::move(Fields));
    cutItems(Items, V);
    if (!Outlives && Entry == None)
      V = amongLosses(*L, Items, V, Arg);
    write(*L, Entry != None ? V : amongItems(P.Code.type(X.Object), Items, V, Arg), Arg);
    takeFields(*L, Fields);
  }
}

/// `std::vector<double> weights(x.size(0))`: a number for each of this rank's rows; where rows are brought together,
/// for each of all.
std::optional<Value> Interpreter::oneForEachRow(ir::ExprId E, const ir::Expr &X) {
  const bool Text = StringRef(P.Code.type(E).Name).starts_with("std::basic_string<");
  if (X.Args.empty() || X.Args[0] == None || P.Code.type(X.Args[0]).Kind != TypeKind::Integer ||
      !(Text || holdsNumbers(P.Code.type(E).Name)))
    return std::nullopt;
  const Value Size = eval(X.Args[0]);
  if (!Size.reducible())
    return std::nullopt;
  if (taken(By.Together) || Text || Size.Kind != Placement::Extent) { // so is any other number of this rank's
    demandReplicated(X.Args[0], Size, "used as a size");
    return Value::of(Placement::Zero, E);
  }
  for (ir::ExprId Each : llvm::drop_begin(X.Args)) // `1.0 / n`
    if (Each != None && numeric(Each))
      if (const Value V = eval(Each); V.reducible())
        demandReplicated(Each, V, "kept for each row");
  Value Rows = Value::sharded(0, E);
  Rows.Listed = true;
  Rows.Rows = Size.Rows;
  return Rows;
}

/// `threads.emplace_back(f, x)` of a `std::vector<std::thread>`.
bool Interpreter::startsThread(const ir::Expr &X) const {
  if (X.Kind != ExprKind::Call || X.Object == None || X.Args.empty() || !isCollecting(X.Name))
    return false;
  const StringRef Holder = P.Code.type(X.Object).Name;
  return Holder.starts_with("std::vector<std::thread") || Holder.starts_with("std::vector<std::jthread");
}

/// Whether the first argument of such a method tells where, or how many: `list.insert(list.end(), x)`,
/// `map.emplace(key, x)`, `list.assign(2, x)`.
bool Interpreter::placesItem(const ir::Expr &X, ir::ExprId First) const {
  const ir::Type &Holder = P.Code.type(X.Object), &T = P.Code.type(First);
  const StringRef Method = StringRef(X.Name).rsplit("::").second;
  const bool Range =
      Method == "assign" || (Method == "insert" && X.Args.size() == 2 && isIterator(P.Code.type(X.Args[1])));
  const bool Keyed = StringRef(Holder.Name).contains("map<") || StringRef(Holder.Name).contains("OrderedDict<");
  const bool Counts = T.number() && (Method == "assign" || Method == "resize");
  return (isIterator(T) && !Range) || Keyed || Counts ||
         (holdsTensors(Holder) && (T.number() || T.Kind == TypeKind::String));
}

/// Whether what a loader hands out is a list of rows, `std::vector<torch::Tensor>` of a data set whose items are
/// tensors that nothing collates, not one of the batch's fields.
bool Interpreter::handsOutRows(const ir::Type &Batch) {
  StringRef Type = Batch.Name;
  Type.consume_front("torch::data::Iterator<");
  if (!Type.starts_with("std::vector<at::Tensor"))
    return false;
  if (!ItemsAreTensors) {
    ItemsAreTensors = false;
    bool Collates = false;
    for (const ir::Function &Fn : P.Code.Functions) {
      Collates |= !Fn.Record.empty() && (Fn.Name == "get_batch" || Fn.Name == "apply_batch");
      *ItemsAreTensors |= !Fn.Record.empty() && Fn.Name == "get" && Fn.Params.size() == 1 && Fn.Result != None &&
                          P.Code.Types[Fn.Result].Kind == TypeKind::Tensor &&
                          P.Code.typeOf(Fn.Params[0]).Kind == TypeKind::Integer;
    }
    *ItemsAreTensors &= !Collates;
  }
  return *ItemsAreTensors;
}

/// Whether a list begins empty, or with what is written out, and so has as many items on every rank as it is given one
/// by one.
bool Interpreter::filledHere(ir::VarId V, int Hops) const {
  if (P.Code.Vars[V].Global || P.Code.Vars[V].Field || P.Code.Vars[V].Param || Hops == 0)
    return false;
  auto It = R.Init.find(V);
  if (It == R.Init.end())
    return true;
  const ir::Expr &X = P.Code.Exprs[It->second];
  ir::FuncId F = X.Kind == ExprKind::Call ? P.callee(X) : None;
  if (F == None)
    return X.Kind == ExprKind::List || (X.Kind == ExprKind::Construct && X.Args.empty());
  return llvm::all_of(P.returned(F), [&](ir::ExprId E) {
    const ir::Expr &Returned = P.Code.Exprs[P.unconverted(E)];
    return Returned.Kind == ExprKind::Ref && filledHere(Returned.Var, Hops - 1);
  });
}

} // namespace migrate
