//===- InterpreterCuts.cpp - Where whole batches are cut ------------------===//
//
// What met the model's values on the way to a whole loss is cut as early in the step as it has a place of its own; so
// is what meets the rows of a batch that was cut, and has as many.
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

/// Whether a tensor's method gives the same numbers, elsewhere.
static bool movesOrCopies(StringRef Name) {
  return llvm::is_contained({"to", "cuda", "cpu", "clone", "contiguous", "detach"}, Name);
}

/// The tensor whose rows, all of them and in their order, the result of a call has: its first dimension, alone or
/// merged with those behind it. None if there isn't one, or if its cut is `E`'s business as much.
ir::ExprId Interpreter::carrier(ir::ExprId E, bool Inner, bool ThroughNames) const {
  const ir::Expr &X = P.Code.Exprs[E];
  if (taken(By.CutEarly) && X.Kind == ExprKind::Binary)
    for (ir::ExprId Side : X.Args) {
      auto Sum = Last.find(E), Part = Last.find(Side);
      if (Sum != Last.end() && Part != Last.end() && P.Code.type(Side).Kind == TypeKind::Tensor &&
          Part->second.replicated() && !Part->second.Trained && Part->second.Rows > NoRows &&
          Part->second.Rows == Sum->second.Rows)
        return Side;
    }
  // `-y`, `1 - done`, of one tensor and numbers, in what the step calls
  if (Inner && (X.Kind == ExprKind::Binary || (X.Kind == ExprKind::Unary && X.Name == "-"))) {
    std::vector<ir::ExprId> Sides;
    for (ir::ExprId Side : X.Args)
      if (!P.Code.type(Side).number())
        Sides.push_back(Side);
    auto All = Last.find(E), Side = Sides.size() == 1 ? Last.find(Sides[0]) : Last.end();
    const bool Same = All != Last.end() && Side != Last.end() && P.Code.type(Sides[0]).Kind == TypeKind::Tensor &&
                      Side->second.replicated() && !Side->second.Trained && Side->second.Rows > NoRows &&
                      Side->second.Rows == All->second.Rows;
    return Same ? Sides[0] : None;
  }
  if (X.Kind != ExprKind::Call || StringRef(X.Name).ends_with("::forward"))
    return None;
  ir::ExprId From = X.Object;
  if (From != None && P.Code.type(From).Kind != TypeKind::Tensor && !P.bodies(X).empty()) // `encode(x)` of an object
    From = None;
  Inner |= taken(By.CutEarly);
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (Name == "detach_") // which no view may be
    return None;
  if (Name == "cat" && !X.Args.empty()) { // side by side: of one, the others follow
    std::vector<ir::ExprId> Items;
    collectItems(P, X.Args[0], Items);
    From = Items.empty() ? None : Items[0];
  }
  for (size_t I = 0; From == None && I != X.Args.size(); ++I)
    if (X.Args[I] != None && P.Code.type(X.Args[I]).Kind == TypeKind::Tensor)
      From = X.Args[I];
  if (From == None || P.Code.type(From).Kind != TypeKind::Tensor)
    return None;
  auto Result = Last.find(E), Given = Last.find(From);
  if (Result == Last.end() || Given == Last.end() || !Given->second.replicated() || Given->second.Trained)
    return None;
  if (Inner && Given->second.Rows > NoRows && Given->second.Rows == Result->second.Rows)
    return From;
  // What merges rows before it is moved or copied, here or where it got its name.
  if (movesOrCopies(Name)) {
    ir::ExprId Made = P.unconverted(From);
    if (const ir::Expr &Of = P.Code.Exprs[Made]; Of.Kind == ExprKind::Ref) {
      Made = ThroughNames ? assignedBy({Of.Var, {}}) : None; // once: `x = x.detach()` in a loop gave it its name itself
      Made = Made == None ? None : P.unconverted(Made);
      ThroughNames = false;
    }
    return Made != None && carrier(Made, Inner, ThroughNames) != None ? From : None;
  }
  std::vector<ir::ExprId> Items;
  for (ir::ExprId Arg : X.Args)
    if (Arg != None)
      collectItems(P, Arg, Items);
  llvm::erase_if(Items, [&](ir::ExprId Item) { return P.Code.type(Item).Kind != TypeKind::Integer; });
  auto Starts = [&](int64_t N) { return !Items.empty() && integer(Items[0]) == N; };
  if (Name == "flatten")
    return Items.empty() || Starts(0) ? From : None;
  if ((Name != "view" && Name != "reshape") || Items.empty() ||
      (integer(Items[0]) && !Starts(-1) && !isProduct(Items[0])))
    return None;
  int Before = Given->second.Rank, After = Result->second.Rank;
  return Items.size() == 1 || (Before >= 2 && After >= 0 && After <= Before) ? From : None;
}

/// Whether rows of a tensor are assigned to by their number, `x[i] = y`.
bool Interpreter::filledByNumber(ir::VarId V) const {
  return llvm::any_of(P.Code.Exprs, [&](const ir::Expr &X) {
    return X.Kind == ExprKind::Assign && X.Args[0] != None && partOfVar(X.Args[0]) == std::pair(V, true);
  });
}

/// Whether a pair or tuple holds lists of numbers beside tensors: those would be cut with it, and what they count or
/// pick isn't.
bool holdsBoth(StringRef Type) {
  if (!Type.consume_front("std::pair<") && !Type.consume_front("std::tuple<"))
    return false;
  for (StringRef One = firstArgument(Type); !One.empty(); One = firstArgument(Type)) {
    if (!One.contains("at::Tensor"))
      return true;
    Type = Type.drop_front(One.end() - Type.begin()).ltrim();
    Type.consume_front(",");
  }
  return false;
}

/// `targets.to(device)` of a parameter, in a function that several call: what a step gives it is cut, not what all do.
bool Interpreter::movesParameter(const ir::Expr &X) const {
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (X.Kind != ExprKind::Call || X.Object == None || !movesOrCopies(Name))
    return false;
  const ir::Expr &Of = P.Code.Exprs[P.unconverted(X.Object)];
  return Of.Kind == ExprKind::Ref && Of.Var != None && P.Code.Vars[Of.Var].Param &&
         P.Code.typeOf(Of.Var).Kind == TypeKind::Tensor && R.givenTo(Of.Var).size() > 1;
}

/// `return {x, y.reshape(-1)};`: a function of the program's that gives batches, of which one part has its rows merged
/// with a dimension behind them, and the others haven't. A cut of all would be of other rows.
bool Interpreter::flattensOne(const ir::Expr &Call) const {
  if (Call.Kind != ExprKind::Call)
    return false;
  bool Merged = false, Kept = false;
  for (ir::FuncId F : P.bodies(Call))
    for (ir::ExprId Returned : P.returned(F)) {
      std::vector<ir::ExprId> Items = P.Code.Exprs[P.unconverted(Returned)].Args;
      if (Items.size() == 1 && P.Code.Exprs[P.unconverted(Items[0])].Kind == ExprKind::List)
        Items = P.Code.Exprs[P.unconverted(Items[0])].Args;
      for (ir::ExprId Item : Items.size() < 2 ? std::vector<ir::ExprId>() : Items) {
        Item = Item == None ? None : P.unconverted(Item);
        if (Item == None || P.Code.type(Item).Kind != TypeKind::Tensor)
          continue;
        const ir::Expr &X = P.Code.Exprs[madeAs(Item)];
        StringRef Name = StringRef(X.Name).rsplit("::").second;
        auto After = Last.find(madeAs(Item)), Before = X.Object == None ? Last.end() : Last.find(X.Object);
        const bool Shapes = X.Kind == ExprKind::Call && (Name == "view" || Name == "reshape" || Name == "flatten");
        (Shapes && After != Last.end() && After->second.Rank == 1 &&
                 (Before == Last.end() || Before->second.Rank < 0 || Before->second.Rank > 1)
             ? Merged
             : Kept) = true;
      }
    }
  return Merged && Kept;
}

/// `targets.value()`, `*targets` of a parameter that may hold nothing: the tensor that the call gives for it.
ir::ExprId Interpreter::heldBy(const ir::Expr &X, const Frame &In) const {
  const bool Value = X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::value");
  const bool Star = X.Kind == ExprKind::Unary && X.Name == "*";
  const ir::ExprId Of = Value ? X.Object : Star ? X.Args[0] : None;
  if (Of == None || !StringRef(P.Code.type(Of).Name).contains("optional<"))
    return None;
  const std::vector<ir::VarId> &Params = P.Code.Functions[In.Function].Params;
  const auto Param = llvm::find(Params, P.Code.Exprs[P.unconverted(Of)].Var);
  const size_t I = Param - Params.begin();
  if (Param == Params.end() || I >= In.Args.size() || In.Args[I] == None)
    return None;
  const ir::ExprId Given = P.unconverted(In.Args[I]);
  return P.Code.type(Given).Kind == TypeKind::Tensor ? Given : None;
}

/// Whether something is assigned to a variable, as a whole.
bool Interpreter::assigns(ir::VarId V) {
  if (!AssignedTo) {
    AssignedTo.emplace();
    for (const ir::Expr &X : P.Code.Exprs) {
      const bool Sets = X.Kind == ExprKind::Assign || StringRef(X.Name).ends_with("::operator=");
      if (!Sets || X.Args.empty() || X.Args[0] == None)
        continue;
      if (const ir::Expr &To = P.Code.Exprs[P.unconverted(X.Args[0])]; To.Kind == ExprKind::Ref)
        AssignedTo->insert(To.Var);
    }
  }
  return AssignedTo->count(V) != 0;
}

/// What the function has assigned to its parameter since, `targets = targets.view({-1})`, but for what `Within` is a
/// part of; None if nothing.
ir::ExprId Interpreter::setInside(ir::VarId Param, ir::ExprId Within, const ir::Function &Fn) const {
  const auto Of = Alias.find(Param);
  const ir::ExprId From = assignedBy(Of == Alias.end() ? Location{Param, {}} : Of->second);
  if (From == None || Fn.Body == None || P.Code.type(From).Kind != TypeKind::Tensor)
    return None;
  const ir::Range &Where = P.Code.Exprs[From].Where;
  return P.Code.Stmts[Fn.Body].Where.contains(Where) && !Where.contains(P.Code.Exprs[Within].Where) ? From : None;
}

/// What makes the leaf that `X` names, if it is one that was made in front of the step's loop and at which derivatives
/// are taken: these are at the leaf, of which each rank has its rows from the start.
ir::ExprId Interpreter::pointsAhead(const ir::Expr &X, const Loop &Step) const {
  const auto Made = X.Var == None ? R.Points.end() : R.Points.find(X.Var);
  if (Made == R.Points.end() || (X.Kind != ExprKind::Ref && X.Kind != ExprKind::Field))
    return None;
  return inStep(Made->second, Step) || !P.Code.Exprs[Made->second].Where.Editable ? None : Made->second;
}

/// Whether a template, of which the function is an instantiation that trains, has others that don't: its text is
/// theirs, too, and a cut in it would be in all of them.
bool Interpreter::alsoEvaluates(ir::FuncId F) const {
  const std::string &Pattern = P.Code.Functions[F].Pattern;
  return !Pattern.empty() && R.reachesBackward(P.Code.Functions[F].Body) &&
         llvm::any_of(P.Code.Functions, [&](const ir::Function &Fn) {
           return Fn.Pattern == Pattern && Fn.Body != None && !R.reachesBackward(Fn.Body);
         });
}

/// Whether an expression stands in the step, or in a function that it runs now.
bool Interpreter::inStep(ir::ExprId E, const Loop &Step) const {
  const ir::Range &Where = P.Code.Exprs[E].Where;
  auto Holds = [&](const Frame &F) {
    const ir::StmtId Body = P.Code.Functions[F.Function].Body;
    return Body != None && P.Code.Stmts[Body].Where.contains(Where);
  };
  return P.Code.Stmts[Step.Statement].Where.contains(Where) ||
         std::any_of(Frames.begin() + Step.Frame + 1, Frames.end(), Holds);
}

/// Where the value of `E` has a place of its own in the step: what a variable of the step is made of, or an argument
/// of a function that the step calls; else `E` itself.
ir::ExprId Interpreter::cutPoint(ir::ExprId E, const Loop &Step) {
  if (taken(By.AtUse)) { // in front of what merges its rows, `targets.reshape(-1)`, as the others' are
    for (ir::ExprId From = carrier(E, /*Inner=*/false); From != None; From = carrier(E, /*Inner=*/false))
      E = From;
    return E;
  }
  const ir::Range &Inside = P.Code.Stmts[Step.Statement].Where;
  size_t At = Frames.size() - 1;
  ir::ExprId Item = None; // of a list that has no place of its own in the step
  // An argument for a `torch::Tensor&`, which a cut is none for, and the parameter's name where it is used.
  ir::ExprId Bound = None, Within = None;
  for (int Hops = 0; Hops != 64; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (const ir::ExprId Points = pointsAhead(X, Step); Points != None)
      return Points;
    if (At > Step.Frame && movesParameter(X)) {
      E = P.unconverted(X.Object);
      continue;
    }
    if (P.entry(X) != None) { // `batch["x"]`: what was put there
      const std::optional<Location> L = lvalue(E);
      const ir::ExprId From = L ? assignedBy(*L) : None;
      if (From == None || !inStep(From, Step) || !P.Code.Exprs[From].Where.Editable)
        break;
      E = From;
      continue;
    }
    if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Container && rowsOfAll(X) > NoRows) {
      Item = E;
      E = X.Object;
      continue;
    }
    if (X.Kind == ExprKind::Call && (X.Name == "std::move" || X.Name == "std::forward") && !X.Args.empty()) {
      E = X.Args[0];
      continue;
    }
    if (const ir::ExprId Held = At > Step.Frame ? heldBy(P.Code.Exprs[P.unconverted(E)], Frames[At]) : None;
        Held != None) {
      E = Held;
      --At;
      continue;
    }
    if (X.Kind == ExprKind::Cast && !X.Args.empty() && X.Args[0] != None &&
        P.Code.type(X.Args[0]).Kind == P.Code.type(E).Kind) {
      E = X.Args[0];
      continue;
    }
    if (X.Kind == ExprKind::Call && X.Object != None && R.InputCalls.count(E)) { // a part of a leaf is none
      E = X.Object;
      continue;
    }
    if (ir::ExprId From = carrier(E, At > Step.Frame); From != None) {
      E = From;
      continue;
    }
    if (X.Kind != ExprKind::Ref || X.Var == None || writtenInParts(X.Var))
      break;
    // What a lambda has captured is its maker's.
    if (const ir::FuncId Of = P.Code.Vars[X.Var].Function; Of != None && Of != Frames[At].Function)
      for (size_t I = At; I-- > 0;)
        if (Frames[I].Function == Of) {
          At = I;
          break;
        }
    const ir::Function &Fn = P.Code.Functions[Frames[At].Function];
    auto Param = llvm::find(Fn.Params, X.Var);
    if (Param != Fn.Params.end()) {
      size_t I = Param - Fn.Params.begin();
      if (At <= Step.Frame || I >= Frames[At].Args.size())
        break;
      const ir::Type &T = P.Code.typeOf(X.Var);
      if (T.Reference && !T.Const && assigns(X.Var)) { // what it is given is the caller's no longer
        const ir::ExprId From = setInside(X.Var, E, Fn);
        if (From == None)
          break;
        E = From;
        continue;
      }
      if (Fn.Parent != None &&
          alsoEvaluates(Frames[At - 1].Function)) // `for_batches(data, 8, [&](torch::Tensor x) { … })`
        break;
      if (T.Reference && !T.Const && Frames[At].Args[I] != Bound) {
        Within = E == Bound ? Within : E; // `step(xs[i])`, `forward(x)` in it, both by reference
        Bound = Frames[At].Args[I];
      }
      E = Frames[At].Args[I];
      Item = None;
      --At;
      continue;
    }
    auto Alias = this->Alias.find(X.Var);
    auto Copy = taken(By.CutEarly) ? Copies.find(X.Var) : Copies.end(); // `auto x = batches[i];`
    ir::ExprId From = Copy != Copies.end()
                          ? Copy->second
                          : assignedBy(Alias == this->Alias.end() ? Location{X.Var, {}} : Alias->second);
    if (From == None)
      break;
    const ir::Expr &Made = P.Code.Exprs[From];
    bool InStep = At > Step.Frame || Inside.contains(Made.Where);
    TypeKind Kind = P.Code.type(From).Kind;
    bool Sliceable = Kind == TypeKind::Tensor || Kind == TypeKind::Example ||
                     (Kind == TypeKind::Container && !holdsBoth(P.Code.type(From).Name));
    bool Declared = Made.Kind == ExprKind::Construct && Made.Args.empty(); // and filled later
    Declared |= Made.Kind == ExprKind::Construct && Made.Args.size() == 1 && Made.Args[0] != None &&
                P.Code.Exprs[Made.Args[0]].Kind == ExprKind::List; // `std::vector<torch::Tensor> v{x, y};`
    // `x.sub_(mean)` writes to all rows of x, of which a cut would be a view.
    ir::ExprId Changed = From;
    while (P.Code.Exprs[Changed].Kind == ExprKind::Call && P.Code.Exprs[Changed].Object != None &&
           StringRef(P.Code.Exprs[Changed].Name).ends_with("_"))
      Changed = P.unconverted(P.Code.Exprs[Changed].Object);
    bool InPlace = Changed != From && P.Code.Exprs[Changed].Kind == ExprKind::Ref;
    bool Ignored; // `torch::zeros({16, 3})`, of which rows are written by their number
    const OperationRow *Row = Made.Kind == ExprKind::Call ? Table.find(Made.Name, Ignored) : nullptr;
    bool Filled = Row && Row->Kind == Operation::Factory && filledByNumber(X.Var);
    if (!InStep || !Made.Where.Editable || !Sliceable || Made.Kind == ExprKind::List || Declared || InPlace || Filled)
      break;
    E = From;
    Item = None;
  }
  E = Item != None ? Item : E;
  return E == Bound ? Within : E;
}

/// Whether `E` names what is cut where another expression names it: `loss(out, b.target)`, beside `out.eq(b.target)`.
bool Interpreter::cutElsewhere(ir::ExprId E) const {
  auto Root = [&](ir::ExprId Of) {
    Of = P.unconverted(Of);
    while (Of != None && P.Code.Exprs[Of].Kind == ExprKind::Field)
      Of = P.Code.Exprs[Of].Object == None ? None : P.unconverted(P.Code.Exprs[Of].Object);
    return Of == None || P.Code.Exprs[Of].Kind != ExprKind::Ref ? None : P.Code.Exprs[Of].Var;
  };
  const ir::VarId Var = Root(E);
  const ir::ExprId Made = Var != None ? assignedBy({Var, {}}) : None;
  // It mustn't have been given another value since.
  if (Var == None || (Made == None && R.sourcesOf(Var).size() > 1))
    return false;
  const ir::Range From = Made == None ? ir::Range() : P.Code.Exprs[Made].Where;
  return llvm::any_of(Cuts, [&](const auto &Cut) {
    const ir::Range &Where = P.Code.Exprs[Cut.first].Where;
    return Cut.second == 0 && Cut.first != E && Root(Cut.first) == Var &&
           spelled(P.unconverted(Cut.first)) == spelled(P.unconverted(E)) &&
           (Made == None || (From.File == Where.File && From.Begin < Where.Begin));
  });
}

/// Takes this rank's rows of `At` from the next run on. False if that has been tried.
bool Interpreter::cut(ir::ExprId At, ir::StmtId Loop, unsigned Dim) {
  if (By.Uncut.count(At))
    return false;
  bool New = Cuts.try_emplace(At, Dim).second;
  New |= CutLoops.insert(Loop).second;
  Restart |= New;
  return New;
}

/// Takes this rank's rows of a whole tensor that is given the shape of rows, from the next run on. False if it can't.
bool Interpreter::ownRowsOf(ir::ExprId E) {
  if (E == None || !Last[E].replicated() || Last[E].Trained)
    return false;
  if (const Loop *Step = CutLoops.empty() ? nullptr : stepLoop()) {
    ir::ExprId At = cutPoint(E, *Step);
    return cut(At, Step->Statement) || cut(E, Step->Statement);
  }
  const bool InStep = llvm::any_of(Loops, [](const Loop &L) { return L.Mode == LoopMode::Rows; });
  const bool New = InStep && OwnRows.insert(E).second;
  Restart |= New;
  return New;
}

/// This rank's rows of a whole value.
Value Interpreter::rowsCut(ir::ExprId E, const Value &Whole, unsigned Dim) {
  Value V = Value::sharded(Dim, E);
  if (flattensOne(P.Code.Exprs[E]))
    note("assumed-ranks", E, V,
         "gives one part flattened beside others, and is taken to have as many rows in all of them; make sure of that");
  if (Whole.Rank >= 0)
    V.setRank(Whole.Rank);
  else if (P.Code.type(E).Kind == TypeKind::Tensor)
    V.RankOf = rankOf(E);
  V.Least = std::max<int8_t>(V.Least, Dim + 1);
  V.Rows = Dim > 0 ? named("s:") : Whole.Rows > NoRows ? Whole.Rows : ownRowsName(E);
  const Loop *Step = stepLoop();
  if (Step)
    CutRows[Step->Statement].insert(V.Rows);
  else
    CutAhead.insert(V.Rows);
  InHand = V.Rows;
  if (Recording) {
    Out.CutRows[E].emplace(V.Rows, Step ? Step->Statement : None);
    if (const auto Length = RowCounts.find(V.Rows); Length != RowCounts.end())
      Out.CutLengths[V.Rows] = Length->second;
  }
  // Of a pair, `accelerator.shard(get_batch())`, each part has dimensions of its own.
  if (const std::vector<Value> *Of = partsOf(E); Of && !holdsBoth(P.Code.type(E).Name)) {
    std::vector<Value> Own(Of->size(), V);
    for (size_t I = 0; I != Own.size(); ++I)
      Own[I].takeRank((*Of)[I]);
    Parts[E] = std::move(Own);
  }
  if (Whole.Forward != None && !Whole.AllRows) {
    if (auto Given = InputOf.find(Whole.Forward); Given != InputOf.end() && Step)
      cut(Given->second, Step->Statement); // in front of it, if that goes
    if (Recording)
      Out.WholeForwards.insert(Whole.Forward);
  }
  return V;
}

/// Cuts what a whole loss was made of. False if there is nothing (more) to cut.
bool Interpreter::cutBatch(const Value &V) {
  // What the steps have in common is no batch beside the points that each makes for itself.
  auto Made = [&](const Edge &E) { return P.Code.Exprs[E.At].Kind != ExprKind::Ref; };
  bool OwnBatch =
      Derivatives.value_or(false) && llvm::any_of(V.Edges, [&](const Edge &E) { return E.Sure && Made(E); });
  // Beside a batch of this loop's steps, what an outer loop made of others may stay whole: a game that is replayed.
  const Loop *Step = stepLoop();
  auto IsBatch = [&](const Edge &E) { return E.Sure && (Made(E) || !OwnBatch); };
  const bool Inner =
      Step && llvm::any_of(V.Edges, [&](const Edge &E) { return IsBatch(E) && E.Loop == Step->Statement; });
  auto Outer = [&](const Edge &E) { return Inner && E.Loop != Step->Statement; };
  std::set<uint32_t> Rows;
  for (const Edge &E : V.Edges)
    if (IsBatch(E) && !Outer(E))
      Rows.insert(E.Rows);
  bool Any = false;
  for (const Edge &E : V.Edges) {
    if (Outer(E) && !Rows.count(E.Rows))
      continue;
    Value Whole = Value::of(Placement::Replicated, E.At);
    // A tree's node: what its branches gave would be cut again.
    const bool Again = llvm::any_of(CallsItself, [&](ir::FuncId F) {
      const ir::StmtId Body = P.Code.Functions[F].Body;
      return Body != None && P.Code.Stmts[Body].Where.contains(P.Code.Exprs[E.At].Where);
    });
    if (Again) {
      note("unknown-rows", E.At, Whole, "is made in a function that calls itself");
    } else if (E.Sure && oneSample(E.At)) {
      note("unknown-rows", E.At, Whole, "seems to be one sample");
    } else if ((!E.Sure && E.Rows == 0) || (E.Sure && pickedByNumber(E.At) && Last[E.At].Rank < 0)) {
      note("unknown-rows", E.At, Whole, "meets the rows of a batch");
    } else if (Rows.count(E.Rows) && (E.Sure || !taken(By.Together))) { // what meets all rows may stay whole
      Any |= cut(E.At, E.Loop);
    }
  }
  return Any;
}

/// Whether the whole `V` that `E` gives has the rows of which `Local` are this rank's, where one stands for the other:
/// it has as many by name, or is written as something that is cut, `target[t]`.
bool Interpreter::meansRowsOf(ir::ExprId E, const Value &V, const Value &Local) const {
  if (E == None || Local.Kind != Placement::Sharded || Local.Dim != 0 || !V.replicated() || V.Trained ||
      P.Code.type(E).Kind != TypeKind::Tensor)
    return false;
  if (V.Rows > NoRows && V.Rows == Local.Rows)
    return true;
  const std::string Text = spelled(P.unconverted(E));
  return V.Rows != NoRows && llvm::any_of(Cuts, [&](const auto &Cut) {
           return Cut.second == 0 && P.Code.type(Cut.first).Kind == TypeKind::Tensor &&
                  P.Code.Exprs[P.unconverted(Cut.first)].Kind != ExprKind::Ref &&
                  spelled(P.unconverted(Cut.first)) == Text;
         });
}

/// Two ways to the same place, the end of a round and what it began with, or the sides of a choice: where one leaves
/// this rank's rows in a variable and the other the whole, `token = target.select(1, t)`, its rows are meant.
void Interpreter::cutAlike(const State &A, const State &B) {
  const Loop *Step = CutLoops.empty() ? nullptr : stepLoop();
  if (!Step)
    return;
  for (const auto &[L, V] : A) {
    auto Other = B.find(L);
    if (Other == B.end() || P.Code.Vars[L.Root].Function != Frames.back().Function)
      continue;
    for (const auto &[Whole, Local] : {std::pair(&V, &Other->second), std::pair(&Other->second, &V)})
      if (meansRowsOf(Whole->AssignedBy, *Whole, *Local))
        cut(cutPoint(Whole->AssignedBy, *Step), Step->Statement);
  }
}

/// A whole tensor with as many rows as the loader's batches, beside one of them: this rank's rows of it are meant.
void Interpreter::ownRows(size_t Compares, bool Beside, const std::vector<ir::ExprId> &Operands, const Value &Local,
                          bool Table) {
  const Loop *Step = nullptr;
  for (const Loop &L : Loops)
    if (L.Mode == LoopMode::Rows)
      Step = &L;
  // Rows that lie along another dimension: a whole with as many dimensions must have one place there.
  if (Step && Beside && Local.Dim > 0)
    for (ir::ExprId Operand : Operands) {
      const Value &V = Last[Operand];
      if (P.Code.type(Operand).Kind != TypeKind::Tensor || !V.replicated() || V.Trained || V.Rank < 2 ||
          isParameter(Operand) || oneAlong(Operand, Local.Dim))
        continue;
      if (V.Rank == Local.Rank)
        note("unknown-rows", Operand, V, "meets the rows of a batch");
      else if (Local.Rank < 0)
        note("assumed-ranks", Operand, V, "is taken to have no dimension of the batch's rows; make sure of that");
    }
  if (!Step || Local.Dim != 0)
    return;
  for (size_t I = Table; I < Operands.size(); ++I) { // a table has no rows of the batch, whatever their number
    const Value &V = Last[Operands[I]];
    if (P.Code.type(Operands[I]).Kind != TypeKind::Tensor || !V.replicated() || V.Rows == NoRows ||
        (V.Rank >= 0 && V.Rank < std::max<int>(Local.Rank, Local.Least)))
      continue;
    if (Local.Picked) { // of those that a mask has picked, a rank has any number
      if (V.Rows > NoRows && I < Compares)
        note("unknown-rows", Operands[I], V, "meets rows of a batch that a mask has picked");
      continue;
    }
    if (V.Trained) { // what a model made of as many rows, `critic(maker(noise))`
      bool Aligned = I < Compares || (Beside && V.Rank >= 0 && V.Rank == Local.Rank && !isParameter(Operands[I]));
      if (Aligned && (V.Rows == BatchRows || asManyAsBatch(V.Rows)))
        Restart |= OwnRows.insert(Operands[I]).second;
      continue;
    }
    // Vectors of features may be as long as a batch: beside rows of unknown rank, the name of its size must tell.
    const bool AsMany = V.Rows != BatchRows && asManyAsBatch(V.Rows);
    const int Least = std::max<int>(Local.Least, AsMany ? 2 : 1);
    const bool Rows = (AsMany || V.Rows == BatchRows) && V.Rank >= (Local.Rank >= 0 ? Local.Rank : Least);
    if (AsMany && !Rows && Beside && V.Rank == 1 && Local.Rank < 0 && Local.Least <= 1)
      note("assumed-ranks", Operands[I], V,
           "has as many numbers as a batch has rows, and is taken to have no dimension of these; make sure of that");
    if (Rows || I < Compares || (Beside && besideRows(V, Local))) {
      ir::ExprId At = cutPoint(Operands[I], *Step);
      Restart |= OwnRows.insert(At).second || OwnRows.insert(Operands[I]).second;
    }
  }
}

} // namespace migrate
