//===- InterpreterCalls.cpp - Calls and operations ------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SaveAndRestore.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

static bool isPrint(StringRef Name) {
  static const llvm::StringSet<> Names = {"printf",       "std::printf",  "fprintf",    "std::fprintf", "puts",
                                          "std::puts",    "fputs",        "std::fputs", "snprintf",     "std::snprintf",
                                          "sprintf",      "std::sprintf", "fmt::print", "fmt::println", "std::print",
                                          "std::println", "fmt::format",  "std::format"};
  return Names.contains(Name);
}

bool drawsFromLibrary(StringRef Name) { return Name == "rand" || Name == "std::rand" || Name == "random"; }

bool drawsNumber(StringRef Name) {
  return Name == "rand" || Name == "std::rand" || Name == "drand48" ||
         (Name.ends_with("operator()") && (Name.contains("_distribution") || Name.contains("_engine")));
}

/// `std::for_each`, `std::transform`, `std::sort`: runs a function that it is given, here and now.
static bool isAlgorithm(const ir::Expr &X) {
  StringRef Name = X.Name;
  return X.Kind == ExprKind::Call && X.Object == None && Name.consume_front("std::") &&
         !llvm::is_contained({"async", "bind", "function", "make_shared", "make_unique", "move", "forward", "ref"},
                             Name);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Value Interpreter::call(ir::ExprId E, const ir::Expr &X) {
  StringRef Last = StringRef(X.Name).rsplit("::").second;
  bool Writes = Last == "set_data" || (Last.ends_with("_") && Last != "requires_grad_");
  // `bias.add_(x)`, `torch::nn::init::constant_(bias, x)`
  ir::ExprId Into = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
  if (Writes && X.Kind == ExprKind::Call && Into != None && P.Code.type(Into).Kind == TypeKind::Tensor &&
      R.ofModel(Into))
    for (ir::ExprId Arg : X.Args)
      if (Arg != None && Arg != Into)
        intoModel(Arg, eval(Arg));
  Meetings += isMeeting(X);
  if (Divergent > 0 && !Globals)
    meetsAlone(E, X);
  if (StringRef(X.Name).starts_with("accelerate::"))
    return ours(E, X);
  if (drawsNumber(X.Name) && ofOneRank())
    notWhole("it draws random numbers, the same on each rank", E);
  if (isBackward(X)) {
    backward(E, X);
    return Value::of(Placement::Replicated, E);
  }
  if (std::optional<Value> V = special(E, X))
    return *V;
  if (const OperationRow *Own = Table.findOwn(X.Name))
    return withRows(E, X, &Own->Kind, operation(E, X, *Own, /*InPlace=*/false));
  if (std::vector<ir::FuncId> Bodies = P.bodies(X); !Bodies.empty())
    return dispatched(E, X, Bodies);
  if (X.Kind == ExprKind::Call && X.Object != None && (X.Name.empty() || StringRef(X.Name).ends_with("operator()"))) {
    // What nobody has seen gives nothing that is followed; in a chain, `options("a", 1)("b", 2)`, each link would be
    // evaluated twice as often as the next.
    const ir::Expr &Object = P.Code.Exprs[P.unconverted(X.Object)];
    if (Object.Kind != ExprKind::Call || !P.bodies(Object).empty() || StringRef(Object.Name).starts_with("std::"))
      if (Value Callee = eval(X.Object); !Callee.Funcs.empty())
        return anyOf(E, X, Callee.Funcs, Frames.back().This);
  }
  if (X.Kind == ExprKind::Call && Last == "requires_grad" && P.Code.type(E).Kind == TypeKind::Bool)
    return Value::of(Placement::Replicated, E); // not `x.requires_grad_()`, which gives x
  bool InPlace;
  // `std::sqrt` of a double is the C library's, by name.
  bool Numbers = X.Kind == ExprKind::Call && X.Object == None && !StringRef(X.Name).contains("::") &&
                 P.Code.type(E).number() && !X.Args.empty() &&
                 llvm::all_of(X.Args, [&](ir::ExprId Arg) { return Arg != None && P.Code.type(Arg).number(); });
  if (const OperationRow *Row = Table.find(Numbers ? "std::" + X.Name : X.Name, InPlace)) {
    const Value Made = withRows(E, X, &Row->Kind, operation(E, X, *Row, InPlace));
    if (std::optional<Location> L = InPlace && X.Object != None && Made.replicated() ? lvalue(X.Object) : std::nullopt)
      if (auto At = Current.find(*L);
          At != Current.end() && At->second.replicated()) { // `sim.masked_fill_(same, -1e9)`
        addEdges(At->second, Made);
        At->second.Trained |= Made.Trained;
        At->second.AllRows |= this->Last[X.Object].AllRows;
      }
    return Made;
  }
  if (StringRef Name = X.Name; X.Object == None && Name.consume_back("_out") && Name.starts_with("at::") &&
                               !X.Args.empty()) { // `torch::add_out(sum, sum, x)`
    ir::Expr Result = X;
    Result.Name = Name.str();
    Result.Args.erase(Result.Args.begin());
    Result.Writable >>= 1;
    const Value Made = call(E, Result);
    if (std::optional<Location> L = lvalue(X.Args[0]))
      seenBehindNames(*L, Made, E);
    return store(E, X.Args[0], None, Made);
  }
  Value V = withRows(E, X, nullptr, unknownCall(E, X));
  // In place: what an unknown operation made of its object isn't known either.
  StringRef Name = X.Name;
  if (V.Kind == Placement::Unknown && Name.starts_with("at::Tensor::") && Name.ends_with("_"))
    if (std::optional<Location> L = lvalue(X.Object))
      write(*L, V, E);
  return V;
}

/// Calls whose meaning isn't an operation on values.
std::optional<Value> Interpreter::special(ir::ExprId E, const ir::Expr &X) {
  StringRef Name = X.Name;
  if (isPrint(Name)) {
    for (ir::ExprId Arg : X.Args)
      demandReplicated(Arg, eval(Arg), "printed");
    notWhole("its loop prints", E);
    return Value::of(Placement::Replicated, E);
  }
  if (X.Kind == ExprKind::Call && P.Taught.isMainOnly(Name)) {
    bool Saves = P.Taught.isSave(Name);
    for (ir::ExprId Arg : X.Args)
      demandReplicated(Arg, eval(Arg), Saves ? "saved" : "logged");
    notWhole(Saves ? "its loop saves" : "its loop logs", E);
    return Value::of(Placement::Replicated, E);
  }
  if (X.Kind == ExprKind::Call && P.Taught.givesBatch(Name))
    return yielded(E, X);
  if (Name == "at::Tensor::index_copy_")
    if (std::optional<Value> Table = copiedAt(E, X))
      return Table;
  if (Name == "at::Tensor::index_put_")
    if (std::optional<Value> Sum = addedAt(E, X))
      return Sum;
  if (Name == "torch::jit::Module::forward" && !X.Args.empty())
    return scripted(E, eval(X.Args[0]));
  if (Name == "c10::IValue::toTensor" && X.Object != None)
    return eval(X.Object);
  if (Name == "std::move" || Name == "std::forward" || Name == "std::ref" || Name == "std::cref" ||
      Name == "std::as_const")
    return eval(X.Args[0]);
  if (Name == "std::swap" && X.Args.size() == 2)
    return swapped(E, X.Args[0], X.Args[1]);
  if (Name.starts_with("std::") && Name.ends_with("::swap") && X.Object != None && X.Args.size() == 1)
    return swapped(E, X.Object, X.Args[0]);
  if (Name.ends_with("::set_data") && X.Object != None && X.Args.size() == 1 && !R.ofModel(X.Object))
    return store(E, X.Object, X.Args[0], eval(X.Args[0]));
  if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::DataLoader &&
      (Name.ends_with("::begin") || Name.ends_with("::end"))) {
    ObjectId Loader = R.object(X.Object);
    auto It = R.Loaders.find(Loader);
    Value V = Value::of(Placement::Replicated, E);
    if (By.Split.count(Loader))
      return V;
    if (It != R.Loaders.end() && (It->second.Mode == LoaderMode::Training || By.ByRows.count(Loader)))
      V = Value::sharded(0, E);
    else if (It != R.Loaders.end() && It->second.Mode == LoaderMode::Evaluation && !KeepWhole.count(Loader))
      V = Value::of(Placement::Own, E);
    V.Listed = V.Kind == Placement::Sharded && handsOutRows(P.Code.type(E));
    V.Batch = Loader;
    V.Iterator = true;
    return V;
  }
  if (Name == "std::distance" && X.Args.size() == 2) {
    Value Begin = eval(X.Args[0]);
    eval(X.Args[1]);
    if (Begin.Iterator && Begin.Kind == Placement::Own)
      notShared(Begin.Batch, "its batches are counted", E);
    if (Begin.Iterator)
      return Value::of(Placement::Replicated, E);
  }
  if (printsThrough(E, X))
    return Value::of(Placement::Replicated, E);
  bool File = Name.starts_with("std::") && Name.ends_with("::write") && X.Object != None && X.Args.size() == 2;
  if (File || Name == "fwrite" || Name == "std::fwrite")
    writesBytes(X.Args[0]);
  if (X.Kind == ExprKind::Call && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module &&
      (Name.ends_with("::eval") || Name.ends_with("::train")) && P.bodies(X).empty()) {
    bool Off = !X.Args.empty() && P.Code.Exprs[X.Args[0]].Name == "false";
    Evaluates = Name.ends_with("::eval") || Off;
    Evaluated = Evaluates ? lvalue(X.Object) : std::nullopt;
  }
  if (Name.starts_with("std::optional") &&
      Name.ends_with("::has_value")) { // what it holds doesn't tell, but who set it
    Value V = eval(X.Object);
    return V.Kind == Placement::Own || V.Why == SetApart ? V : Value::of(Placement::Replicated, E);
  }
  if (Name.starts_with("std::atomic<") && Name.ends_with("::load") && X.Object != None)
    return eval(X.Object);
  if (Name.starts_with("std::optional") && Name.ends_with("::reset"))
    return store(E, X.Object, None, Value::nothing(E));
  if (Name == "at::Tensor::to" || Name == "at::Tensor::cuda") {
    Value V = eval(X.Object);
    bool Device = Name == "at::Tensor::cuda" && X.Args.empty();
    for (size_t I = 0; I != X.Args.size(); ++I) {
      TypeKind Kind = P.Code.type(X.Args[I]).Kind;
      const ir::Expr &To = P.Code.Exprs[X.Args[I]];
      // `x.to(torch::Device(torch::kCUDA, 0))` becomes this rank's where it stands, and stays.
      bool Numbered =
          (To.Kind == ExprKind::Construct && To.Args.size() == 2) || To.Name == "accelerate::Accelerator::device";
      if (I == 0 && (Kind == TypeKind::Device || Kind == TypeKind::DeviceType) && !Numbered &&
          !StringRef(To.Name).ends_with("kCPU"))
        Device = true;
      else if (Kind != TypeKind::Bool)
        Device = false;
      eval(X.Args[I]);
    }
    if (V.Batch != None) {
      if (Device && Recording)
        Out.Moves[E].insert(V.Batch);
      else if (!Device)
        Out.Unmoved.insert(V.Batch);
    }
    V.Batch = None;
    return V;
  }
  if (Name == "torch::autograd::grad")
    return gradients(E, X);
  if (Name == "std::exchange" && X.Args.size() == 2)
    if (const std::optional<Location> L = lvalue(X.Args[0]); L && !astray(L) && !behindNames(*L)) {
      const Value Before = read(*L, E);
      store(E, X.Args[0], X.Args[1], eval(X.Args[1]));
      return Before;
    }
  if (startsTask(P, E))
    return started(E, X);
  overflows(E, X);
  if (Name == "atexit" || Name == "std::atexit" || Name == "at_quick_exit" || Name == "std::at_quick_exit") {
    for (ir::ExprId Arg : X.Args)
      for (ir::FuncId F : eval(Arg).Funcs)
        AtExit.emplace_back(E, F);
    return Value::of(Placement::Replicated, E);
  }
  if (startsThread(X)) {
    ir::Expr Made = X; // `threads.emplace_back([&] { … })`
    Made.Object = None;
    if (std::optional<Value> Of = started(E, Made))
      return Of;
  }
  if (Name.ends_with("::step") && X.Object != None &&
      (P.Code.type(X.Object).Kind == TypeKind::Optimizer || P.Code.type(X.Object).Kind == TypeKind::Scheduler)) {
    ownSchedule(E, X);
    if (const std::vector<ir::FuncId> Own = P.bodies(X); !Own.empty()) { // an optimizer of the program's
      const Value Loss = anyOf(E, X, Own, lvalue(X.Object));
      notWhole("its loop steps", E);
      if (Divergent > 0)
        note("divergent-training", E, Value(), "steps where not every rank comes along");
      return Loss;
    }
    for (ir::ExprId Arg : X.Args) {
      Value V = eval(Arg);
      if (!V.Funcs.empty()) { // a closure that computes the loss, and trains
        if (!StringRef(P.Code.type(X.Object).Name).contains("LBFGS"))
          return anyOf(E, X, V.Funcs, Frames.back().This);
        Value Loss;
        runsMany(V.Funcs.front(), [&] { Loss = anyOf(E, X, V.Funcs, Frames.back().This); });
        // It decides on the loss how far to go, and whether to go on.
        for (ir::FuncId Closure : V.Funcs)
          for (ir::ExprId Given : P.returned(Closure)) {
            if (const Value &Of = Last[Given]; !Of.replicated() && !Of.reducible())
              note("divergent-training", Given, Of, "decides on a loss of which every rank has its own");
            Loss = demandReplicated(Given, Last[Given], "what the optimizer decides on");
          }
        return Loss;
      } else
        V = demandReplicated(Arg, V, "given to a scheduler"), agreeOnChoice(Arg, V);
    }
    notWhole("its loop steps", E);
    if (Divergent > 0)
      note("divergent-training", E, Value(), "steps where not every rank comes along");
    return Value::of(Placement::Replicated, E);
  }
  if (X.Kind == ExprKind::Call && (X.Object == None || Name.starts_with("torch::jit::") || writesByLibrary(X)))
    changesFiles(E, X);
  if (Name == "torch::load" && X.Args.size() > 1)
    agreeOnPath(X.Args[1]);
  if (Name == "torch::serialize::OutputArchive::write" || Name == "torch::jit::pickle_save" ||
      Name == "torch::pickle_save") {
    notWhole("its loop saves", E);
    if (X.Object != None)
      eval(X.Object);
    for (ir::ExprId Arg : X.Args)
      demandReplicated(Arg, eval(Arg), "saved");
    return Value::of(Placement::Replicated, E);
  }
  if (Name == "torch::save") {
    notWhole("its loop saves", E);
    for (ir::ExprId Arg : X.Args)
      demandReplicated(Arg, eval(Arg), "saved");
    if (X.Args.size() > 1)
      agreeOnPath(X.Args[1]);
    return Value::of(Placement::Replicated, E);
  }
  return std::nullopt;
}

/// `std::swap(a, b)`: each gets what the other was made of.
Value Interpreter::swapped(ir::ExprId E, ir::ExprId One, ir::ExprId Other) {
  Value A = eval(One), B = eval(Other);
  auto Made = [&](ir::ExprId Side) {
    std::optional<Location> L = lvalue(Side);
    return L ? assignedBy(*L) : None;
  };
  for (ir::ExprId Side : {One, Other})
    if (std::optional<Location> L = lvalue(Side); L && outer(*L))
      notWhole("it changes what outlives its batch", E);
  ir::ExprId OfA = Made(One), OfB = Made(Other);
  store(E, One, OfB, B);
  store(E, Other, OfA, A);
  return Value::of(Placement::Replicated, E);
}

void Interpreter::backward(ir::ExprId E, const ir::Expr &X) {
  bool Ours = StringRef(X.Name).starts_with("accelerate::");
  ir::ExprId Loss = X.Name == "at::Tensor::backward" ? X.Object : X.Args.empty() ? None : X.Args[0];
  for (ir::ExprId Arg : X.Args)
    if (Arg != Loss)
      eval(Arg);
  if (Loss == None)
    return;
  Value V = eval(Loss);
  if (V.replicated() && !Ours && R.demonstrates(Loss))
    return;
  // `errors.backward(weights)` is the sum of the rows' errors by the rows' weights.
  if (V.Kind == Placement::Sharded && V.Dim == 0 && llvm::any_of(X.Args, [&](ir::ExprId Arg) {
        return Arg != None && Arg != Loss && Last[Arg].Kind == Placement::Sharded && Last[Arg].Dim == 0;
      })) {
    const uint32_t Rows = V.Rows;
    V = Value::partial(true, Loss);
    V.Rows = Rows;
  }
  if (V.outside())
    note("outside-entropy", Loss, V, "goes into the loss and differs between processes");
  Out.Trains = true;
  notWhole("it trains", E);
  if (Divergent > 0)
    note("divergent-training", E, V, "trains where not every rank comes along");
  if (X.Name == "torch::autograd::backward") {
    note("unsupported-backward", E, V, "calls `torch::autograd::backward`");
    return;
  }
  // `loss.backward({}, true, true)`
  if (!Ours && X.Args.size() == 3 && X.Args[2] != None && P.Code.Exprs[X.Args[2]].Name != "false")
    note("unsupported-backward", E, V, "makes a graph of the gradients (`create_graph`), which are all ranks'");
  // (Of rows that were brought together, the batch has been cut.)
  const bool Cut = taken(By.Together) && V.AllRows && !CutLoops.empty();
  if (V.replicated() && !Ours && !Cut && cutBatch(V))
    return;
  const ir::StmtId Steps = trainingSteps();
  if (V.replicated())
    Out.WholeBackwards[E] = Steps;
  else
    Out.SharedSteps.insert(Steps);
  const bool Sum = V.Kind == Placement::Partial && V.Fresh;
  ofOneBatch(Loss, V);
  if (V.replicated() || V.Kind == Placement::Mean || Sum) {
    if (!Recording || Ours)
      return;
    auto [Known, New] = Out.Backwards.try_emplace(E, Sum ? "sum" : "mean");
    if (!New && Known->second != (Sum ? "sum" : "mean"))
      note("ambiguous-placement", Loss, V, "is a mean over the batch on one path, and a sum on another");
  } else {
    std::string Why = V.Why.empty() ? "is " + inWords(V) : V.Why;
    note("coupled-loss", Loss, V, "the loss " + Why);
  }
}

/// What a call names: a function, or what holds one, `losses.at(name)`.
std::string Interpreter::calledAs(const ir::Expr &X) const {
  return X.Name.empty() && X.Object != None ? spelled(X.Object) : X.Name;
}

/// Options that hold a number for each row: `BCELossOptions().weight(w)`; other losses' weights are of classes.
static bool rowWeights(StringRef Name) {
  return (Name.contains("BCE") && Name.ends_with("Options::weight")) || Name.ends_with("::per_sample_weights");
}

/// `std::accumulate(counts.begin(), counts.end(), 0)`, `std::reduce(counts.begin(), counts.end())`: nothing but the
/// items.
static bool addsItems(const Program &P, const ir::Expr &X) {
  const bool Sum = X.Name == "std::reduce" && X.Args.size() == 2;
  if (Sum || (X.Name != "std::accumulate" && X.Name != "std::reduce") || X.Args.size() != 3)
    return Sum;
  double From;
  const ir::Expr &First = P.Code.Exprs[P.unconverted(X.Args[2])];
  return First.Kind == ExprKind::Literal && !StringRef(First.Name).getAsDouble(From) && From == 0;
}

Value Interpreter::unknownCall(ir::ExprId E, const ir::Expr &X) {
  Value Result = Value::of(Placement::Replicated, E);
  if (X.Object != None) {
    Result = eval(X.Object);
    if (Result.Batch != None && P.Code.type(X.Object).Kind == TypeKind::Tensor)
      Out.Unmoved.insert(Result.Batch);
  }
  // An operation that isn't known writes into its object, or into what it is given to write to.
  if (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("_") && X.Object != None)
    if (std::optional<Location> L = lvalue(X.Object); L && P.Code.type(X.Object).Kind == TypeKind::Tensor)
      for (ir::ExprId Arg : X.Args)
        if (Value V = eval(Arg); !V.replicated())
          write(*L, Value::unknown("is written by `" + X.Name + "`, which isn't in the operation table", E), E);
  bool Collects = X.Object != None && (isCollecting(X.Name) || replacesItems(X));
  if (X.Kind == ExprKind::Call && !Collects) {
    fill(E, X);
    readsInto(E, X);
  }
  bool FromOwn = false, FromRows = false;
  for (ir::ExprId Arg : X.Args) {
    Value V = eval(Arg);
    if (V.Batch != None && P.Code.type(Arg).Kind == TypeKind::Tensor && X.Kind == ExprKind::Call && !Collects)
      Out.Unmoved.insert(V.Batch);
    V.Batch = None;
    passesAddress(X, Arg);
    if (X.Kind == ExprKind::Construct)
      addFuncs(Result, V); // std::function of a lambda
    const bool Batches =
        llvm::any_of(X.Args, [&](ir::ExprId Of) { return Of != None && Last[Of].Iterator && Last[Of].Batch != None; });
    const bool Once = X.Name == "std::apply" || X.Name == "std::visit" || X.Name == "std::invoke";
    auto Trains = [&](ir::FuncId F) { return R.reachesBackward(P.Code.Functions[F].Body); };
    if (!V.Funcs.empty() && isAlgorithm(X) && Batches)
      note("divergent-training", E, V, "runs over a loader's batches in a way that isn't followed; write it as a loop");
    else if (!Once && isAlgorithm(X) && llvm::any_of(V.Funcs, Trains)) // what the steps add up isn't one step's
      note("divergent-training", E, V, "runs the steps of a training in a way that isn't followed; write it as a loop");
    if (isAlgorithm(X) && V.Funcs.empty() && Recording && !ofOneRank() && holdsRows(Arg)) // `std::sort(a, b, Less{x})`
      PicksRows[E] = trainingSteps();
    // `net->apply(visit)` in a step sees what the step has computed; what it does to weights before, all ranks do.
    const bool Visits = StringRef(X.Name).starts_with("torch::nn::Module::") && trainingSteps() != None;
    if (!V.Funcs.empty() && (isAlgorithm(X) || Visits)) { // which calls it with what isn't followed
      if (X.Name == "std::apply" || X.Name == "std::visit")
        for (ir::ExprId Given : X.Args)
          if (const Value Of = Given == Arg ? Value::of(Placement::Replicated) : eval(Given); !Of.replicated())
            Result = Of;
      for (ir::FuncId F : V.Funcs)
        for (ir::VarId Param : P.Code.Functions[F].Params) {
          if (const ir::Type &T = P.Code.typeOf(Param); T.Reference && !T.Const)
            Elsewhere.insert(Param);
          Current[Location{Param, {}}] = Result; // one of the items that it runs over
        }
      ir::Expr Call = X;
      Call.Args.clear();
      llvm::SaveAndRestore Each(OwnCalls, OwnCalls + (!Once && overOwnRows(X)));
      V = anyOf(E, Call, V.Funcs, Frames.back().This);
      takeFlags(Result, V);
    }
    if (Collects && Arg == X.Args[0] && X.Args.size() > 1 && placesItem(X, Arg)) {
      if (V.reducible() && StringRef(X.Name).ends_with("::assign")) // so many
        demandReplicated(Arg, V, "used as a size");
      continue;
    }
    if (Collects) {
      collects(E, X, Arg, V);
      continue;
    }
    if (V.replicated())
      continue;
    FromOwn |= V.Kind == Placement::Own && !V.Iterator;
    FromRows |= V.Kind != Placement::Own && !V.Iterator && !(V.reducible() && P.Code.type(Arg).number());
    if (V.Kind == Placement::Own) {
      Result = V;
    } else if (X.Kind == ExprKind::Construct && P.Code.type(E).Kind == TypeKind::Optimizer &&
               V.Kind == Placement::Sharded) {
      note(
          "divergent-training", Arg, V,
          "trains a tensor that has this rank's rows only, into which the gradients of other ranks' rows would go; "
          "make it with the number of all rows, and take this rank's of it where they meet, `accelerator.own_rows(x)`");
    } else if (X.Kind == ExprKind::Construct) {
      Result = Result.replicated() ? V : amongItems(P.Code.type(E), Result, V, Arg); // a tuple, a vector, an own struct
    } else if (V.reducible() && P.Code.type(Arg).number()) {
      demandReplicated(Arg, V, "passed on");
    } else if (addsItems(P, X) && V.Kind == Placement::Partial && !V.Fresh) {
      Result = V; // counts that wait in an object for their sum
    } else if (rowWeights(X.Name) && V.Kind == Placement::Sharded && V.Dim == 0) {
      Result = V; // the loss takes them beside its rows
    } else if (X.Object != None && StringRef(P.Code.type(X.Object).Name).contains("torch::optim::")) {
      intoModel(Arg, V); // `options.set_lr(…)`
    } else if (X.Kind == ExprKind::Call && X.Object == None && P.Code.type(E).Kind == TypeKind::Unknown &&
               !StringRef(X.Name).starts_with("std::") && !StringRef(X.Name).starts_with("torch::") &&
               gathered(Arg, V)) {
      continue; // `cv::Mat`, made of all rows
    } else if ((V.Kind != Placement::Extent || P.Code.type(Arg).Kind == TypeKind::Container) &&
               Result.Kind != Placement::Unknown) {
      Result = V.Kind == Placement::Unknown
                   ? V
                   : Value::unknown("goes through `" + calledAs(X) + "`, which isn't in the operation table", E);
    }
  }
  // What a `std::bind` or a function from elsewhere does with them isn't known.
  if (X.Kind == ExprKind::Call && StringRef(X.Name).starts_with("std::function<") && (FromOwn || FromRows)) {
    notWhole("it calls a function that isn't followed", E);
    for (ir::ExprId Arg : X.Args)
      if (const Value &V = Last[Arg]; FromRows && !V.replicated() && V.Kind != Placement::Own)
        note("rank-local-use", Arg, V, "is passed to a function that isn't followed, but is " + inWords(V));
  }
  if (X.Kind == ExprKind::Call && !Collects && (FromOwn || FromRows || ofOneRank()))
    writesThrough(E, X, FromOwn, FromRows);
  Result.Batch = None;
  if (!Result.replicated() && Result.Kind != Placement::Own && Result.Kind != Placement::Unknown &&
      X.Kind == ExprKind::Call && X.Object != None) {
    // A method of a container of rows, an accessor of a batch.
    const StringRef Name = X.Name, Method = Name.rsplit("::").second;
    const bool Alike = Result.alikeInNumber();
    // Of tensors, one by one: a batch is told by its rows, a loader's by what it hands out.
    const Value &Whole = Last[X.Object];
    std::optional<Location> List = holdsTensors(P.Code.type(X.Object)) ? lvalue(X.Object) : std::nullopt;
    const bool Items = List && P.Code.type(X.Object).Kind == TypeKind::Container && !listsRows(X.Object, Whole) &&
                       (Whole.Batch == None || filledHere(List->Root));
    if (Method == "size")
      return Value::of(Items || Alike || countsDimensions(E) != None ? Placement::Replicated : Placement::Extent, E);
    if (Items && Method == "empty")
      return Value::of(Placement::Replicated, E);
    if (StringRef Type = P.Code.type(E).Name;
        Type.contains("BCE") || Type.contains("EmbeddingBag")) // `options.weight(w).reduction(torch::kSum)`
      return Result;
    if (Name.ends_with("accessor") || Name.ends_with("accessor32") || Name.ends_with("accessor64"))
      return Result;
    if (Alike && (Method == "empty" || (Name.contains("map<") && (Method == "count" || Method == "contains"))))
      return Value::of(Placement::Replicated, E);
    if (llvm::is_contained({"begin", "end", "cbegin", "cend", "rbegin", "rend", "at", "front", "back"}, Method) ||
        (Method == "find" && Name.contains("map<")) || Method == "value" || Method == "data" || Method == "get")
      return Result;
    if (P.Code.type(E).Kind == TypeKind::Void && !StringRef(P.Code.type(E).Name).ends_with("*"))
      return Value::of(Placement::Replicated, E);
    return Value::unknown("goes through `" + calledAs(X) + "`, which isn't in the operation table", E);
  }
  return Result;
}

} // namespace migrate
