//===- InterpreterFolds.cpp - Loops over the rows of a training batch -----===//
//
// `for (i = 0; i < x.size(0); ++i)` runs over this rank's rows, a different number on each. What is computed from
// `x[i]` is one row's, as everything in an evaluation loop shared out by whole batches is one batch's; what the loop
// adds up is a partial sum, and its largest and smallest numbers can be told when they are asked for. Anything else
// that outlives a row (a print, a collective, the last one seen) makes it no fold, and the loop is refused.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;

namespace migrate {

/// The variable that an expression names, through conversions.
static ir::VarId namedIn(const Program &P, ir::ExprId E) {
  E = P.unconverted(E);
  return E != None && P.Code.Exprs[E].Kind == ExprKind::Ref ? P.Code.Exprs[E].Var : None;
}

/// `x[i] = batch[i].data`, `x[i].copy_(…)`: fills the row of that number of a tensor that the step has made. A ghost's
/// row is filled, too.
bool Interpreter::fillsRow(const ir::Expr &X, ir::VarId Row) {
  ir::ExprId To = X.Kind == ExprKind::Assign && X.Name == "=" ? X.Args[0] : changesInPlace(X) ? X.Object : None;
  bool Numbered = false;
  while (To != None) {
    const ir::Expr &Of = P.Code.Exprs[To = P.unconverted(To)];
    if (Of.Kind == ExprKind::Ref)
      break;
    std::vector<ir::ExprId> Places;
    for (ir::ExprId Arg : Of.Args)
      if (Arg != None)
        collectItems(P, Arg, Places);
    Numbered |= llvm::any_of(Places, [&](ir::ExprId Place) { return namedIn(P, Place) == Row; });
    To = Of.Object;
  }
  if (To == None || !Numbered || !hasRows(P.Code.type(To)))
    return false;
  const std::optional<Location> L = lvalue(To);
  return L && ofStep(*L);
}

/// Whether a loop counts from zero to this rank's number of rows, and runs through. Its bound is given as `mine`, since
/// a ghost's row is none.
bool Interpreter::folds(ir::StmtId Id, Loop &L) {
  const ir::Stmt &S = P.Code.Stmts[Id];
  bool Each = S.Kind == StmtKind::RangeFor;
  if (S.Value == None || L.Trains || RowLoops.count(Id) || Divergent > 0)
    return false;
  bool InStep = false;
  for (const Loop &Around : Loops) {
    InStep |= Around.Mode == LoopMode::Rows;
    if (Around.ofOneRank()) // rows with rows
      return false;
  }
  if (!InStep)
    return false;
  // From zero by ones to a bound.
  ir::VarId Row = None;
  if (!Each) {
    const ir::Expr &Condition = P.Code.Exprs[S.Value];
    if (Condition.Kind != ExprKind::Binary || (Condition.Name != "<" && Condition.Name != "!="))
      return false;
    Row = namedIn(P, Condition.Args[0]);
    auto Start = Current.find(Location{Row, {}});
    if (Row == None || Start == Current.end() || Start->second.Kind != Placement::Zero)
      return false;
    const ir::Stmt &Step = P.Code.Stmts[S.Children[1] == None ? Id : S.Children[1]];
    const ir::Expr *Counts = Step.Kind == StmtKind::Expr && Step.Value != None ? &P.Code.Exprs[Step.Value] : nullptr;
    if (!Counts || Counts->Kind != ExprKind::Unary || Counts->Name != "++" || namedIn(P, Counts->Args[0]) != Row)
      return false;
  }
  // All of them, with nothing else that moves it.
  bool Plain = true;
  P.forEachStmt(S.Children[Each ? 0 : 2], [&](ir::StmtId Child) {
    const ir::Stmt &X = P.Code.Stmts[Child];
    Plain &= X.Kind != StmtKind::Break && X.Kind != StmtKind::Return;
  });
  P.forEachExprIn(S.Children[Each ? 0 : 2], [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    bool Writes = X.Kind == ExprKind::Assign || (X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--"));
    Plain &= !throws(X) && !(Writes && Row != None && namedIn(P, X.Args[0]) == Row);
    L.Collects |= (X.Object != None && isCollecting(X.Name)) || (Row != None && fillsRow(X, Row));
    // `loss += f(x[i])`: with its graph, which a ghost's row has too.
    if (X.Kind == ExprKind::Assign && (X.Name == "+=" || X.Name == "=") && NoGrads == 0 && X.Args.size() == 2 &&
        P.Code.type(X.Args[0]).Kind == ir::TypeKind::Tensor && namedIn(P, X.Args[0]) != None) {
      std::optional<Location> To = lvalue(X.Args[0]);
      L.Collects |= To && ofStep(*To) && (X.Name == "+=" || addsTo(*To, X.Args[1]));
    }
  });
  if (!Plain)
    return false;
  if (Each) { // over all of a list, ghosts too
    L.Collects = true;
    return listsRows(S.Value, eval(S.Value));
  }
  ir::ExprId Bound = P.Code.Exprs[S.Value].Args[1];
  const ir::Expr &Asked = P.Code.Exprs[P.unconverted(Bound)];
  bool Mine = Asked.Name == "accelerate::Accelerator::mine" && Asked.Args.size() == 1; // migrated already
  Value Rows = eval(Mine ? Asked.Args[0] : Bound);
  if (Rows.Kind != Placement::Extent || Rows.Picked)
    return false;
  if (!Mine && !L.Collects) {
    coerce(Bound, "mine", Rows);
    Out.Bounds.insert(Bound);
  }
  L.Row = Row;
  return true;
}

/// Whether a loop is running over what is one rank's.
bool Interpreter::ofOneRank() const {
  return llvm::any_of(Loops, [](const Loop &L) { return L.ofOneRank(); });
}

/// What is said of a loop over rows that is no fold.
std::string Interpreter::rowLoop(ir::StmtId S) const {
  auto It = RowLoops.find(S);
  return "loops over this rank's rows" + (It == RowLoops.end() ? "" : ", and " + It->second.What);
}

/// Whether `X` picks by `Of` the row of `V` that a fold is at.
bool Interpreter::isRow(const ir::Expr &X, ir::ExprId Of, const Value &V) const {
  if (V.Kind != Placement::Sharded || V.Dim != 0 || V.Picked ||
      (!hasRows(P.Code.type(X.Object)) && !listsRows(X.Object, V)))
    return false;
  ir::VarId Var = namedIn(P, Of);
  return Var != None && llvm::any_of(Loops, [&](const Loop &L) { return L.Mode == LoopMode::Fold && L.Row == Var; });
}

/// Whether a standard algorithm runs over as many items as this rank has rows: over rows, or over a list that was made
/// with their number, `std::vector<int> order(x.size(0))`.
bool Interpreter::overOwnRows(const ir::Expr &X) {
  auto Own = [](const Value &V) { return !V.replicated() && V.Funcs.empty(); };
  return llvm::any_of(X.Args, [&](ir::ExprId Arg) {
    if (Arg == None || Own(eval(Arg)))
      return Arg != None;
    const ir::ExprId List = P.Code.Exprs[P.unconverted(Arg)].Object;
    const ir::Expr *Made = List == None ? nullptr : &P.Code.Exprs[P.unconverted(List)];
    const auto Init = Made && Made->Kind == ExprKind::Ref ? R.Init.find(Made->Var) : R.Init.end();
    return Init != R.Init.end() && llvm::any_of(P.Code.Exprs[Init->second].Args, [&](ir::ExprId Given) {
             return Given != None && eval(Given).Kind == Placement::Extent;
           });
  });
}

/// `Less{scores}`, or a name for it: an object of the project's that is made with a rank's rows.
bool Interpreter::holdsRows(ir::ExprId E) const {
  const ir::Expr *Made = &P.Code.Exprs[E = P.unconverted(E)];
  if (const auto Init = R.Init.find(Made->Var); Made->Kind == ExprKind::Ref && Init != R.Init.end())
    Made = &P.Code.Exprs[E = P.unconverted(Init->second)];
  const bool Object = Made->Kind == ExprKind::Construct || Made->Kind == ExprKind::List;
  return Object && P.Code.type(E).Own && llvm::any_of(Made->Args, [&](ir::ExprId Given) {
           const auto Of = Given == None ? Last.end() : Last.find(Given);
           return Of != Last.end() && Of->second.Kind == Placement::Sharded;
         });
}

/// Rows that are picked by numbers which count all of them, where each rank has only its own: it would read beyond
/// them.
void Interpreter::beyondRows() {
  for (const auto &[E, Steps] : PicksRows)
    if (const ir::ExprId Of = P.Code.Exprs[E].Object;
        SumsRows.count(Steps) && !Out.Coercions.count(Of) && !Out.Coercions.count(P.unconverted(Of)))
      note("row-loop", E, Last[E], "picks rows of a batch by number, where the program counts all of them");
}

/// Whether a number is one of the row that a fold is at, where a pointer finds the numbers of `V` behind each other:
/// `p[row]`, of `[B, columns]` `p[row * columns + column]`.
bool Interpreter::ofRow(ir::ExprId Number, const Value &V) const {
  if (V.Kind != Placement::Sharded || V.Dim != 0 || V.Picked)
    return false;
  auto Counts = [&](ir::ExprId Of) {
    const ir::VarId Var = namedIn(P, Of);
    return Var != None && llvm::any_of(Loops, [&](const Loop &L) { return L.Mode == LoopMode::Fold && L.Row == Var; });
  };
  if (Counts(Number))
    return V.Rank < 2;
  const ir::Expr *X = &P.Code.Exprs[P.unconverted(Number)];
  if (X->Kind == ExprKind::Binary && X->Name == "+" && !Counts(X->Args[1]))
    X = &P.Code.Exprs[P.unconverted(X->Args[0])];
  return X->Kind == ExprKind::Binary && X->Name == "*" && V.Rank != 1 && (Counts(X->Args[0]) || Counts(X->Args[1]));
}

/// Whether `E` is a number that a loop within the step counts up to one that all ranks have.
bool Interpreter::countsInStep(ir::ExprId E) const {
  const ir::VarId Row = namedIn(P, E);
  return Row != None && !taken(By.Together) && llvm::any_of(Loops, [&](const Loop &L) {
           const ir::Stmt &S = P.Code.Stmts[L.Statement];
           if (L.Mode != LoopMode::Plain || S.Kind != StmtKind::Loop || S.Value == None ||
               (stepLoop() == nullptr && !trainsHere()))
             return false;
           const ir::Expr &Condition = P.Code.Exprs[S.Value];
           return Condition.Kind == ExprKind::Binary && namedIn(P, Condition.Args[0]) == Row;
         });
}

/// Cuts what a fold over a cut batch reads the same row of: `reward[row]` beside `state.size(0)`.
bool Interpreter::cutWithFold(const ir::Expr &X, const Value &V) {
  if (!V.replicated() || V.Rows <= NoRows || V.Trained || P.Code.type(X.Object).Kind != ir::TypeKind::Tensor)
    return false;
  ir::VarId Var = namedIn(P, X.Args[0]);
  auto Fold = llvm::find_if(Loops, [&](const Loop &L) { return L.Mode == LoopMode::Fold && L.Row == Var; });
  const Loop *Step = stepLoop();
  if (Var == None || Fold == Loops.end() || !Step)
    return false;
  const ir::Expr &Bound = P.Code.Exprs[P.unconverted(P.Code.Exprs[P.Code.Stmts[Fold->Statement].Value].Args[1])];
  auto Batch = Last.find(Bound.Kind == ExprKind::Call ? Bound.Object : None);
  return Batch != Last.end() && Batch->second.Kind == Placement::Sharded && Batch->second.Rows == V.Rows &&
         cut(cutPoint(X.Object, *Step), Step->Statement);
}

/// The number that a part of a tensor begins with: `i` of `x[i]`, `x.select(0, i)`, `x.index({i, Slice()})`.
ir::ExprId Interpreter::numberIn(const ir::Expr &X) const {
  if (X.Kind == ExprKind::Index)
    return X.Args.size() == 1 ? X.Args[0] : None;
  if (X.Kind != ExprKind::Call || X.Object == None || P.Code.type(X.Object).Kind != ir::TypeKind::Tensor)
    return None;
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (Name == "select" && X.Args.size() == 2 && X.Args[0] != None && integer(X.Args[0]) == 0)
    return X.Args[1];
  std::vector<ir::ExprId> Items = Name == "index" ? indexItems(X) : std::vector<ir::ExprId>();
  return Items.empty() ? None : P.unconverted(Items[0]);
}

/// Whether `To` is in the row of a batch that a fold is at, `target[row][action]`, `padded[row].slice(0, 0, n)`: what
/// is written there stays in it.
bool Interpreter::isOwnRow(ir::ExprId To) {
  while (To != None) {
    To = P.unconverted(To);
    const ir::Expr &X = P.Code.Exprs[To];
    if (X.Object == None || (X.Kind != ExprKind::Index && !(X.Kind == ExprKind::Call && isView(X.Name))))
      return false;
    const ir::ExprId Number = numberIn(X);
    std::optional<Location> L = lvalue(X.Object);
    if (Number != None && L && ofStep(*L) && isRow(X, Number, eval(X.Object)))
      return true;
    To = X.Object;
  }
  return false;
}

static bool ofExamples(StringRef Type) { return Type.starts_with("std::vector<torch::data::Example<"); }

/// Whether the items of `V` are the rows of a batch: of a loader that doesn't stack them, or collected in a fold.
bool Interpreter::listsRows(ir::ExprId E, const Value &V) const {
  StringRef Type = P.Code.type(E).Name;
  // Of a batch as a loader gives it: a list of tensors may be one for each field, one of anything else is of rows.
  bool Examples = ofExamples(Type) ||
                  (V.Batch != None && Type.starts_with("std::vector<") && !Type.starts_with("std::vector<at::Tensor"));
  return V.Kind == Placement::Sharded && (V.Listed || Examples);
}

/// What lies in one row of a batch that is a list of rows: the row that a fold is at, `batch[row].data`, or one of them
/// by its number, `batch[0].data`, `batch.front()`, `batch.data()->data`, `it->data`, of which each rank has another.
std::optional<Value> Interpreter::itemOfRows(ir::ExprId E) {
  if (E == None)
    return std::nullopt;
  E = P.unconverted(E);
  const ir::Expr &X = P.Code.Exprs[E];
  bool Points = X.Kind == ExprKind::Call && X.Object != None && X.Args.empty() &&
                P.Code.type(X.Object).Kind == ir::TypeKind::Container &&
                llvm::is_contained({"begin", "cbegin", "rbegin", "data"}, StringRef(X.Name).rsplit("::").second);
  bool Element = isElement(X) || Points;
  ir::ExprId Of = Element || X.Kind == ExprKind::Field                                      ? X.Object
                  : X.Kind == ExprKind::Unary && X.Name == "*"                              ? X.Args[0]
                  : X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::operator->") ? X.Object
                                                                                            : None;
  if (std::optional<Value> Around = itemOfRows(Of)) // in a row as a whole
    return Around;
  auto Picks = Value::unknown("picks rows of a batch by number", E);
  if (Element && P.Code.type(X.Object).Kind == ir::TypeKind::Container) {
    // Read where it is kept: evaluated at each of its links, a chain would take twice as long with each.
    ir::ExprKind Kind = P.Code.Exprs[X.Object].Kind;
    bool Kept = Kind == ExprKind::Ref || Kind == ExprKind::Field || Kind == ExprKind::Index;
    std::optional<Location> L =
        Kept && !Cuts.count(X.Object) && !Standing.count(X.Object) ? lvalue(X.Object) : std::nullopt;
    if (Value Rows = L ? ofField(X.Object, *L, read(*L, None)) : eval(X.Object); listsRows(X.Object, Rows))
      return X.Args.size() == 1 && isRow(X, X.Args[0], Rows) ? Value::of(Placement::Own, E) : Picks;
  }
  if (X.Kind == ExprKind::Ref && X.Var != None && Elements.count(X.Var)) // `auto it = batch.begin()`
    if (auto To = PointsTo.find(Location{X.Var, {}}); To != PointsTo.end() && To->second.Path.empty())
      if (const Value Rows = read(To->second, None);
          Rows.Kind == Placement::Sharded && (Rows.Listed || ofExamples(P.Code.typeOf(To->second.Root).Name)))
        return Picks;
  return std::nullopt;
}

/// Whether a place was made in the step that runs.
bool Interpreter::ofStep(const Location &L) const {
  auto Declared = Depths.find(L.Root);
  auto Step =
      std::find_if(Loops.rbegin(), Loops.rend(), [](const Loop &Around) { return Around.Mode == LoopMode::Rows; });
  return Declared != Depths.end() && Step != Loops.rend() && Declared->second >= Step->Depth;
}

/// Whether an expression is `l + x` of what lies at `L`.
bool Interpreter::addsTo(const Location &L, ir::ExprId Sum) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Sum)];
  return X.Kind == ExprKind::Binary && X.Name == "+" && namedIn(P, X.Args[0]) != None && lvalue(X.Args[0]) == L;
}

/// Whether `E` is what the loop adds up, `l += e`, `l = l + e`, to something that outlives its row.
bool Interpreter::addedUp(ir::ExprId E) {
  bool Found = false;
  P.forEachExprIn(Loops.back().Statement, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    const bool Adds = StringRef(X.Name).ends_with("+=") && X.Args.size() + (X.Object != None) == 2;
    if (!Adds && !(X.Kind == ExprKind::Assign && X.Name == "="))
      return;
    const std::optional<Location> To = lvalue(X.Object != None ? X.Object : X.Args[0]);
    ir::ExprId Addend = X.Args.back();
    if (!To || !outer(*To) || (!Adds && !addsTo(*To, Addend)))
      return;
    if (!Adds)
      Addend = P.Code.Exprs[P.unconverted(Addend)].Args[1];
    Found |= P.unconverted(Addend) == P.unconverted(E);
  });
  return Found;
}

/// A row beside what all rows of its batch tell: `loss += f(x[i]) / x.size(0)` is a mean over them. Anything else has
/// to be computed with that of all ranks' rows.
Value Interpreter::besideItsRows(ir::ExprId E, Value Row, const Value &Other, bool Divides) {
  if (Other.Kind == Placement::Sharded && CutAhead.count(Other.Rows)) {
    for (const Loop &L : Loops)
      if (L.Mode == LoopMode::Whole && R.Loaders.count(L.Loader))
        Out.BesideStates.insert(L.Loader);
    note("unknown-rows", E, Other, "goes through with a state that is cut ahead for a training's batches");
  }
  if (Other.reducible() && OwnCalls > 0)
    note("row-loop", E, Other,
         "is needed from all ranks in what a standard algorithm calls for each of this rank's rows");
  if (!Other.reducible() || OwnCalls > 0 || Loops.empty() || Loops.back().Mode != LoopMode::Fold)
    return Row;
  if (Divides && Other.Kind == Placement::Extent && E != None && addedUp(E)) {
    MeanTerms.insert(E);
    Row.Source = E;
  } else {
    notWhole("it computes a row with what all rows of its batch tell", E);
  }
  return Row;
}

/// In a loop over the items of a batch, the `x` of `l + x`.
ir::ExprId Interpreter::addedTo(const Location &L, ir::ExprId Sum) {
  if (Loops.empty() || Loops.back().Mode != LoopMode::Fold || !Loops.back().Collects || !addsTo(L, Sum))
    return None;
  return P.Code.Exprs[P.unconverted(Sum)].Args[1];
}

/// `list.push_back(x)` in a fold, of one row each time: the list has the batch's rows.
std::optional<Value> Interpreter::listed(const Location &L, const Value &Item) {
  if (Loops.empty() || Loops.back().Mode != LoopMode::Fold || !Loops.back().Collects || Item.Kind != Placement::Own ||
      OwnChoices > 0 || Divergent > 0)
    return std::nullopt;
  auto Before = Current.find(L);
  if (!ofStep(L) || Before == Current.end())
    return std::nullopt;
  if (Before->second.Kind != Placement::Zero && !(Before->second.Kind == Placement::Sharded && Before->second.Listed))
    return std::nullopt;
  Value Rows = Value::sharded(0, Item.Source);
  Rows.Listed = true;
  return Rows;
}

/// `if (x > worst) worst = x;` is `worst = std::max(worst, x)`: what is assigned in it, and whether it's the largest.
std::optional<std::pair<ir::ExprId, bool>> Interpreter::keepsExtreme(const ir::Stmt &If) const {
  ir::StmtId Then = If.Children[0];
  if (P.Code.Stmts[Then].Kind == ir::StmtKind::Block && P.Code.Stmts[Then].Children.size() == 1)
    Then = P.Code.Stmts[Then].Children[0];
  const ir::Stmt &S = P.Code.Stmts[Then];
  const ir::Expr &Asked = P.Code.Exprs[P.unconverted(If.Value)];
  if (If.Children[1] != None || S.Kind != ir::StmtKind::Expr || S.Value == None || Asked.Kind != ExprKind::Binary ||
      !llvm::is_contained({"<", "<=", ">", ">="}, Asked.Name))
    return std::nullopt;
  const ir::Expr &Keeps = P.Code.Exprs[P.unconverted(S.Value)];
  if (Keeps.Kind != ExprKind::Assign || Keeps.Name != "=" || namedIn(P, Keeps.Args[0]) == None)
    return std::nullopt;
  auto Same = [&](ir::ExprId A, ir::ExprId B) { return spelled(P.unconverted(A)) == spelled(P.unconverted(B)); };
  for (bool Turned : {false, true})
    if (Same(Asked.Args[Turned], Keeps.Args[1]) && Same(Asked.Args[!Turned], Keeps.Args[0]))
      return std::pair(Keeps.Args[1], (Asked.Name[0] == '>') != Turned);
  return std::nullopt;
}

/// `worst = std::max(worst, x)` of what only this rank has: the largest so far of what it has seen.
std::optional<Value> Interpreter::extreme(const Location &L, ir::ExprId From) {
  const ir::Expr &X = P.Code.Exprs[From];
  if (!ofOneRank() || !outer(L) || Divergent > 0)
    return std::nullopt;
  auto Of = [&](ir::ExprId Seen, bool Largest) -> std::optional<Value> {
    Value Before = read(L, From);
    bool Fits =
        Before.replicated() || (Before.Kind == Placement::Extreme && Before.Running && Before.Largest == Largest);
    if (!Fits || eval(Seen).Kind != Placement::Own)
      return std::nullopt;
    Value Result = Value::of(Placement::Extreme, From);
    Result.Largest = Largest;
    Result.Running = true;
    Result.setRank(0);
    return Result;
  };
  if (auto Kept = KeptExtremes.find(From); Kept != KeptExtremes.end())
    return Of(From, Kept->second);
  bool Largest = X.Name == "std::max" || X.Name == "std::fmax";
  if (X.Kind != ExprKind::Call || X.Args.size() != 2 || !(Largest || X.Name == "std::min" || X.Name == "std::fmin"))
    return std::nullopt;
  for (size_t I : {0, 1}) {
    if (namedIn(P, X.Args[I]) == None || lvalue(X.Args[I]) != L)
      continue;
    return Of(X.Args[1 - I], Largest);
  }
  return std::nullopt;
}

} // namespace migrate
