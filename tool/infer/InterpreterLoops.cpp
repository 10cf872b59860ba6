//===- InterpreterLoops.cpp - Loops, to a fixpoint ------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// What outer variables hold of this step's rows is of an earlier step from here on.
void Interpreter::markEscaped(int BodyDepth) {
  for (auto &[L, V] : Current) {
    auto Declared = Depths.find(L.Root);
    auto State = Carried.find(L);
    if (V.Kind == Placement::Sharded && State != Carried.end() && V.Batch == None) { // and no earlier batch
      V.Earlier |= State->second;
      continue;
    }
    if (V.Iterator || (Declared != Depths.end() && Declared->second >= BodyDepth))
      continue;
    if (V.Kind == Placement::Mean || V.Kind == Placement::Extent || (V.Kind == Placement::Extreme && !V.Running) ||
        V.Kind == Placement::Sharded || (V.Kind == Placement::Partial && V.Fresh)) {
      V.Was = V.Kind;
      V.Kind = Placement::Escaped;
      V.Batch = None;
    }
  }
}

/// Whether a variable is another name for an object of the project's, whose fields may change meanwhile: a pointer, or
/// a reference to one or to the object.
static bool namesObject(const ir::Type &T) {
  StringRef Name = T.Name;
  const bool Smart = Name.consume_front("std::unique_ptr<") || Name.consume_front("std::shared_ptr<");
  const bool Points = Smart || Name.consume_back("*");
  static const char *const Numbers[] = {"float", "double", "bool",         "char",
                                        "int",   "long",   "unsigned int", "unsigned long"};
  const bool Data = Name.contains("at::Tensor") ||
                    llvm::is_contained(Numbers, Name.take_until([](char C) { return C == ',' || C == '>'; }).rtrim());
  return (Points && !Data) || (T.Reference && (T.Own || T.Kind == TypeKind::Module));
}

/// Whether fields of a container's elements were written one by one: what is true of one isn't of all.
bool Interpreter::knownByFields(ir::ExprId Container) {
  const std::optional<Location> L = lvalue(Container);
  const auto Below = L ? Current.upper_bound(*L) : Current.end();
  return Below != Current.end() && Below->first.Root == L->Root && Below->first.Path.size() > L->Path.size() &&
         std::equal(L->Path.begin(), L->Path.end(), Below->first.Path.begin());
}

/// One pass over a loop's condition, body and increment.
void Interpreter::loopBody(ir::StmtId Id) {
  const RanksHere Around(*this);
  const ir::Stmt &S = P.Code.Stmts[Id];
  Loop &L = Loops.back();
  L.Nexts.clear();
  if (L.Loader != None && L.Mode == LoopMode::Rows)
    InHand = BatchRows;
  const int Met = Meetings;
  Value Decides;
  if (S.Kind == StmtKind::RangeFor) {
    begins(S.Var);
    unname(S.Var);
    Value Item;
    switch (L.Loader == None && L.Mode != LoopMode::Fold ? LoopMode::Plain : L.Mode) {
    case LoopMode::Rows:
      Item = Value::sharded(0, S.Value);
      Item.Batch = L.Loader;
      Item.Listed = handsOutRows(P.Code.typeOf(S.Var));
      break;
    case LoopMode::Whole:
      Item = Value::of(Placement::Own, S.Value);
      Item.Batch = L.Loader;
      break;
    case LoopMode::Fold:
      Item = Value::of(Placement::Own, S.Value);
      break;
    case LoopMode::Switch:
    case LoopMode::Plain:
      Item = eval(S.Value);
      if (L.Loader == None && listsRows(S.Value, Item)) // one row each time, which no batch's rules are for
        note("row-loop", S.Value, Item, rowLoop(Id));
      if (P.Taught.isLoader(P.Code.type(S.Value).Name)) { // a batch of a loader that was taught
        Filled.insert(Item.Rows = named("l:" + spelled(S.Value)));
      } else if (const ir::Type &T = P.Code.typeOf(S.Var);
                 namesObject(T) || (T.Reference && !T.Const && writesTo(S.Children[0], S.Var)) ||
                 knownByFields(S.Value)) {
        if (std::optional<Location> L = lvalue(S.Value)) {
          Alias[S.Var] = *L;
          Elements.insert(S.Var);
        }
      } else if (T.Hold == ir::Holding::Pointer || StringRef(T.Name).ends_with("*") ||
                 StringRef(T.Name).starts_with("std::reference_wrapper<")) {
        // `for (auto *sum : {&a, &b})`
        Elsewhere.insert(S.Var);
      } else if (T.Kind == TypeKind::Tensor && !Alias.count(S.Var)) {
        // Another name of one of them.
        if (std::optional<Location> L = lvalue(S.Value))
          Views[S.Var] = {*L};
      }
      if (P.Code.type(S.Value).Kind == TypeKind::DataLoader)
        Item.Batch = L.Loader;
      if (Item.replicated() && Item.Rows == 0)
        Item.Rows = named("v:" + std::to_string(S.Var));
      if (Item.Choice != None) // how many items there are was chosen
        Decides = Item;
      break;
    }
    if (Decides.recomputed() && (L.Trains || MetUnder.count(S.Value)))
      agreeOnChoice(S.Value, Decides);
    Current[Location{S.Var, {}}] = Item;
    choosing(S.Value, Decides, [&] { exec(S.Children[0]); });
  } else {
    if (L.Mode == LoopMode::Fold) {
      Current[Location{L.Row, {}}] = Value::unknown("is the number of a row on this rank", S.Value);
    } else if (S.Value != None) {
      bool Outside = std::exchange(LoopCondition, true);
      Value C = eval(S.Value);
      LoopCondition = Outside;
      if (Loops.back().Trains || agreesHere(Loops.back().Statement, S.Value, C))
        agree(S.Value, C);
      if (Loops.back().Trains || MetUnder.count(S.Value)) {
        agreeOnChoice(S.Value, C);
        decidesByNoise(S.Value, C);
      }
      Decides = C;
      if (C.Kind == Placement::Extent || C.Kind == Placement::Sharded || C.Kind == Placement::Unknown)
        note("row-loop", S.Value, C, rowLoop(Id));
    }
    choosing(S.Value, Decides, [&] {
      {
        const RanksHere Around(*this); // those that go on with the next round meet the others again
        exec(S.Children[2]);
      }
      for (State &Next : Loops.back().Nexts) {
        Current = Dead ? Next : joined(Current, Next);
        Dead = false;
      }
      Loops.back().Nexts.clear();
      if (Loops.back().Mode != LoopMode::Fold)
        exec(S.Children[1]);
    });
  }
  Loops.back().Meets |= Meetings != Met;
  for (State &Next : Loops.back().Nexts) {
    Current = Dead ? Next : joined(Current, Next);
    Dead = false;
  }
}

/// Where a loop stands: the calls that led there, and what the run is told around it.
std::vector<int64_t> Interpreter::standing(ir::StmtId Loop) const {
  std::vector<int64_t> Where = {Loop, Divergent, OwnChoices, Threads, NoGrads, Wholes, Evaluates};
  for (const Frame &F : Frames)
    Where.push_back(F.Call);
  return Where;
}

/// Runs what a loop repeats until nothing changes any more, and once more if that is written down. A loop within
/// others begins with what it came to in their last round; else each of them would double its rounds. Returns what was
/// in front of it.
Interpreter::State Interpreter::repeat(Loop L, llvm::function_ref<void()> Body) {
  State Before = Current;
  if (L.Mode == LoopMode::Rows) {
    carry();
    markEscaped(Depth);
  } else if (L.Mode == LoopMode::Whole &&
             llvm::none_of(Loops, [](const Loop &Around) { return Around.Mode == LoopMode::Rows; })) {
    markEscaped(Depth); // behind an evaluation the last training batch isn't the one in hand: ranks count equally
  }
  State Entry = Current;
  L.Entry = &Entry;
  Settling *Known = Loops.empty() || L.Mode != LoopMode::Plain ? nullptr : &Settled[standing(L.Statement)];
  Loops.push_back(std::move(L));

  bool Recorded = std::exchange(Recording, false);
  State Head = Entry;
  if (Known && !Known->Head.empty() && sameState(joined(Known->Entry, Entry), Entry))
    Head = joined(Entry, Known->Head);
  // What one round finds out may reach the next variable in the next one; beyond any real chain it's a defect of ours.
  for (int Round = 0; !Restart; ++Round) {
    if (Round == 100)
      Exhausted = Restart = true;
    Current = Head;
    Dead = false;
    Loops.back().Exits.clear();
    Body();
    if (Dead)
      Current = Entry;
    if (Loops.back().Mode == LoopMode::Rows)
      markEscaped(Depth);
    cutAlike(Current, Head);
    State Next = joined(Head, Current);
    if (sameState(Next, Head))
      break;
    Head = std::move(Next);
  }
  Recording = Recorded;
  if (Known && !Restart)
    *Known = {Entry, Head};
  if (Recording || Loops.back().Mode == LoopMode::Rows) { // what the last round has found is written down
    Current = Head;
    Dead = false;
    Loops.back().Exits.clear();
    Body();
  }
  bool EndsDead = Dead;
  Dead = false;
  if (Loops.back().Mode == LoopMode::Rows && Loops.back().Loader != None && !EndsDead)
    for (auto &[Kept, V] : Entry) // a loader has a batch, so that what is set in each step isn't an earlier loop's
      if (auto Last = Current.find(Kept); (V.Kind == Placement::Escaped || V.Earlier) && Last != Current.end())
        Before[Kept] = Last->second;
  // Of a loop that isn't entered, the batch in hand is still the one before it.
  State After = EndsDead ? Before : joined(Before, Current);
  for (const State &Exit : Loops.back().Exits)
    After = joined(After, Exit);
  Current = std::move(After);
  // What lambdas have kept of its batches, `later.push_back([loss] { return loss.item<double>(); })`.
  if (Loops.back().Mode == LoopMode::Rows)
    for (auto &[L, V] : Current)
      if (auto Declared = Depths.find(L.Root); Declared != Depths.end() && Declared->second >= Loops.back().Depth &&
                                               !V.Iterator && V.reducible() && !V.Running &&
                                               (V.Kind != Placement::Partial || V.Fresh)) {
        V.Was = V.Kind;
        V.Kind = Placement::Escaped;
      }
  Loops.pop_back();
  return Entry;
}

/// `optimizer.step(closure)` of L-BFGS outside of all loops that train is one itself: it runs its closure many times.
void Interpreter::runsMany(ir::FuncId Closure, llvm::function_ref<void()> Run) {
  const ir::StmtId Body = P.Code.Functions[Closure].Body;
  if (Body == None || trainingSteps() != None || !R.reachesBackward(Body))
    return Run();
  Depth += 2;
  const LoopMode Mode = CutLoops.count(Body) ? LoopMode::Rows : LoopMode::Plain;
  repeat({Body, Mode, Depth, None, Frames.size() - 1, /*Trains=*/true, {}, {}}, Run);
  Depth -= 2;
}

/// The layers that a loop walks, `for (auto &layer : *layers)`, or none.
std::vector<ir::ExprId> Interpreter::layersWalked(const ir::Stmt &Loop) const {
  const bool Any = Loop.Kind == ir::StmtKind::RangeFor && P.Code.typeOf(Loop.Var).Kind == TypeKind::Module &&
                   StringRef(P.Code.typeOf(Loop.Var).Name).contains("AnyModule");
  return Any ? childrenOf(holder(Loop.Value)) : std::vector<ir::ExprId>();
}

/// A loop over a container's layers, `x = layer.forward(x)`: one round for each of them, in their order, since each
/// gives what the next one takes. Returns what was in front of it.
Interpreter::State Interpreter::walk(Loop L, const std::vector<ir::ExprId> &Layers) {
  const ir::StmtId Id = L.Statement;
  const State Entry = Current;
  L.Entry = &Entry;
  Loops.push_back(std::move(L));
  for (ir::ExprId Layer : Layers) {
    if (Dead || Restart)
      break;
    LayerAt[P.Code.Stmts[Id].Var] = Layer;
    loopBody(Id);
  }
  for (const State &Exit : Loops.back().Exits) {
    Current = Dead ? Exit : joined(Current, Exit);
    Dead = false;
  }
  Loops.pop_back();
  return Entry;
}

void Interpreter::execLoop(ir::StmtId Id) {
  const ir::Stmt &S = P.Code.Stmts[Id];
  ++Depth;
  if (S.Kind == StmtKind::Loop)
    exec(S.Children[0]);

  Loop L{Id, LoopMode::Plain, Depth + (S.Kind == StmtKind::Loop), None, Frames.size() - 1, R.reachesBackward(Id), {},
         {}};
  ++Depth;
  L.Depth = Depth;
  for (const auto &[Object, Role] : R.Loaders) {
    if (std::find(Role.Loops.begin(), Role.Loops.end(), Id) == Role.Loops.end() || By.Split.count(Object))
      continue;
    L.Loader = Object;
    if (Role.Foreign)
      note("opaque-loader", S.Value, Value(), "its batches come from a loader that can't be shared out yet");
    else if (Role.Mode == LoaderMode::Training || By.ByRows.count(Object))
      L.Mode = LoopMode::Rows;
    else if (Divergent > 0)
      notShared(Object, "not every rank comes to its loop", S.Value);
    else if (!KeepWhole.count(Object)) {
      L.Mode = LoopMode::Whole;
      Out.Whole.insert(Object);
    }
  }
  Meetings += L.Loader != None;
  Read |= L.Loader != None;
  if (CutLoops.count(Id) && L.Loader == None)
    L.Mode = LoopMode::Rows;
  else if (L.Loader == None && folds(Id, L))
    L.Mode = LoopMode::Fold;
  const std::vector<ir::ExprId> Layers = layersWalked(S);
  const State Entry = Layers.empty() ? repeat(std::move(L), [&] { loopBody(Id); }) : walk(std::move(L), Layers);
  --Depth;
  reduceAfter(Id, Entry);
  --Depth;
}

} // namespace migrate
