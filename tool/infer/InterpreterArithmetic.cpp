//===- InterpreterArithmetic.cpp - Sums, products, comparisons, assignments ===//
#include "infer/Dimensions.h"
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// The accessor `a` of `a.size(0)`; None of anything else.
static ir::ExprId accessor(const Program &P, ir::ExprId Size) {
  const ir::Expr &X = P.Code.Exprs[Size];
  return X.Kind == ExprKind::Call && X.Object != None &&
                 StringRef(P.Code.type(X.Object).Name).contains("TensorAccessor")
             ? X.Object
             : None;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Terms of a tensor that count differently: beside this rank's part of a sum, what is whole or a mean is taken as this
/// rank's part of it, which adds up.
bool Interpreter::sharedBeside(ir::ExprId E, const Value &Part, const Value &Term, ir::ExprId Of) {
  if (E == None || P.Code.type(E).Kind != TypeKind::Tensor || Part.Kind != Placement::Partial || !Part.Fresh ||
      Of == None || integer(Of) || !(Term.replicated() || Term.Kind == Placement::Mean))
    return false;
  const TypeKind Kind = P.Code.type(Of).Kind;
  return (Kind == TypeKind::Tensor || Kind == TypeKind::Floating) && coerce(Of, "share", Term);
}

Value Interpreter::arithmetic(ir::ExprId E, const std::string &Op, const Value &Left, const Value &Right, ir::ExprId LE,
                              ir::ExprId RE) {
  Value L = asNumber(Left), Rt = asNumber(Right);
  L.Batch = Rt.Batch = None;
  if (L.Kind == Placement::Unknown)
    return L;
  if (Rt.Kind == Placement::Unknown)
    return Rt;
  if (L.replicated() && Rt.replicated()) {
    Value V =
        Value::of(L.Kind == Placement::Zero && Rt.Kind == Placement::Zero ? Placement::Zero : Placement::Replicated, E);
    takeRows(V, L, Rt);
    auto Rank = [&](const Value &Side, ir::ExprId X) {
      bool Number = X != None && (P.Code.type(X).number() || StringRef(P.Code.type(X).Name).ends_with("Scalar"));
      return Number ? 0 : int(Side.Rank);
    };
    if (int A = Rank(L, LE), B = Rank(Rt, RE); A >= 0 && B >= 0)
      V.setRank(std::max(A, B));
    return V;
  }
  if (L.Kind == Placement::Own || Rt.Kind == Placement::Own)
    return L.Kind == Placement::Own ? besideItsRows(E, L, Right, Op == "/") : besideItsRows(E, Rt, Left, false);
  bool Integers = E != None && P.Code.type(E).Kind == TypeKind::Integer;
  if (L.Kind == Placement::Sharded || Rt.Kind == Placement::Sharded) {
    const Value &S = L.Kind == Placement::Sharded ? L : Rt, &O = &S == &L ? Rt : L;
    if (O.replicated() || O.Kind == Placement::Sharded) {
      Value V = Op == "cmp" ? broadcast({L, Rt}, E) : besideRows({L, Rt}, E);
      V.Source = V.Kind == Placement::Sharded ? S.Source : V.Source;
      V.Rows = S.Rows;
      return V;
    }
    return Value::unknown("joins rows with " + inWords(O), E);
  }
  // The largest of the ranks' numbers stays that under what grows with it; of anything else it's asked for first.
  const bool LargestOf = L.Kind == Placement::Extreme || Rt.Kind == Placement::Extreme;
  auto Positive = [&](ir::ExprId X) {
    const ir::Expr *Factor = X == None ? nullptr : &P.Code.Exprs[P.unconverted(X)];
    return Factor && Factor->Kind == ExprKind::Literal && StringRef(Factor->Name).find_first_of("123456789") == 0;
  };
  if (L.Kind == Placement::Extreme && Rt.replicated() &&
      (Op == "+" || Op == "-" || ((Op == "*" || Op == "/") && Positive(RE))))
    return L;
  if (Rt.Kind == Placement::Extreme && L.replicated() && (Op == "+" || (Op == "*" && Positive(LE))))
    return Rt;
  if (LargestOf) {
  } else if (Op == "+" || Op == "-") {
    auto OfRows = [](const Value &V) {
      return V.Rows > NoRows && (V.Kind == Placement::Mean || (V.Kind == Placement::Partial && V.Fresh));
    };
    if ((L.Kind == Placement::Mean || Rt.Kind == Placement::Mean) && OfRows(L) && OfRows(Rt) && L.Rows != Rt.Rows)
      return Value::unknown("averages over the rows of two batches", E);
    if (OfRows(L) && OfRows(Rt) && ofOtherBatches(L.Rows, Rt.Rows))
      return Value::unknown("adds up the rows of two batches", E);
    // What the steps have added up so far counts on ghosts too, what this one adds doesn't.
    auto AddedUp = [&](ir::ExprId X) { return X != None && lvalue(X) && outer(*lvalue(X)); };
    // (`mean * count + loss * rows`: of numbers, whatever that was computed of.)
    if (L.Kind == Placement::Partial && Rt.Kind == Placement::Partial && L.Fresh != Rt.Fresh &&
        (L.Fresh ? LE : RE) != None && (AddedUp(L.Fresh ? RE : LE) || numeric(L.Fresh ? LE : RE))) {
      coerce(L.Fresh ? LE : RE, "mine", L.Fresh ? L : Rt);
      return Value::partial(false, E);
    }
    if (L.Kind == Rt.Kind) {
      Value V = L;
      V.Fresh |= Rt.Fresh;
      return V;
    }
    if (L.Kind == Placement::Zero)
      return Rt;
    if (Rt.Kind == Placement::Zero)
      return L;
    for (auto [Mean, Whole, Term] : {std::tuple(&L, &Rt, RE), std::tuple(&Rt, &L, LE)})
      if (Mean->Kind == Placement::Mean && Whole->replicated()) {
        if (Recording && Whole->Trained && Whole->Forward != None && Term != None)
          Out.WholeTerms[Term] = stepLoop() ? stepLoop()->Statement : None;
        return *Mean;
      }
    if (sharedBeside(E, L, Rt, RE))
      return L;
    if (sharedBeside(E, Rt, L, LE))
      return Rt;
  } else if (Op == "*") {
    if (L.replicated())
      return Rt;
    if (Rt.replicated())
      return L;
    // mean * count of its rows = sum
    auto Rows = [](const Value &V) { return V.Kind == Placement::Extent && V.Picked == 0; };
    if ((L.Kind == Placement::Mean && Rows(Right)) || (Rt.Kind == Placement::Mean && Rows(Left))) {
      Value Sum = Value::partial(true, E);
      Sum.Rows = L.Kind == Placement::Mean ? L.Rows : Rt.Rows;
      return Sum;
    }
  } else if (Op == "/") {
    if (Rt.replicated() && !Integers)
      return L;
    // sum / number of rows that a mask picked: the numerator's parts add up once the denominator is whole
    if (L.Kind == Placement::Partial && L.Fresh && Right.Kind == Placement::Extent && Right.Picked && !Integers &&
        RE != None && numeric(RE)) {
      demandReplicated(RE, Right, "divided by");
      return L;
    }
    // sum over rows / number of rows = mean
    if (L.Kind == Placement::Partial && L.Fresh && Right.Kind == Placement::Extent && !Integers) {
      Value Mean = Value::of(Placement::Mean, E);
      Mean.Rows = L.Rows;
      return Mean;
    }
    // A mean over what a mask selects: the numerator's parts add up once the denominator is whole.
    // (Where the training runs the same text, and has a gradient below as well, both are brought together.)
    if (L.Kind == Placement::Partial && L.Fresh && Rt.Kind == Placement::Partial && RE != None &&
        P.Code.type(RE).Kind == TypeKind::Tensor) {
      (Rt.Trained ? TrainedBelow : WholeBelow).insert(RE);
      if (TrainedBelow.count(RE) && WholeBelow.count(RE))
        Restart |= BothBelow.insert(RE).second;
      if (!Rt.Trained && !BothBelow.count(RE) && brought(Rt, RE))
        return L;
    }
  }
  // Anything else: bring each side together first, if both can be.
  auto Can = [&](const Value &V, ir::ExprId X) {
    return V.replicated() ||
           (X != None && V.reducible() && (numeric(X) || (P.Code.type(X).Kind == TypeKind::Tensor && gathers(V)))) ||
           sumOfSteps(X, V);
  };
  if (Can(Left, LE) && Can(Right, RE) && LE != None && RE != None) {
    Value V = Value::of(Placement::Replicated, E);
    V.Trained = L.Trained || Rt.Trained;
    for (const auto &[Side, X] : {std::pair(&Left, LE), std::pair(&Right, RE)})
      if (Side->replicated() || numeric(X) || sumOfSteps(X, *Side))
        demandReplicated(X, *Side, "computed with");
      else if (!brought(*Side, X))
        V = Value::unknown("is computed with where not every rank comes along", E);
    return V;
  }
  return Value::unknown("combines " + inWords(L) + " and " + inWords(Rt) + " with `" + Op + "`", E);
}

/// The project's own operator, which is a function, or a method of what stands in front of it.
Value Interpreter::ownOperator(ir::ExprId E, const ir::Expr &X, ir::FuncId F) {
  ir::Expr Call = X;
  Call.Kind = ExprKind::Call;
  bool Member = !P.Code.Functions[F].Record.empty();
  std::optional<Location> This;
  if (Member) {
    Call.Args.assign(X.Args.begin() + 1, X.Args.end());
    This = lvalue(X.Args[0]);
    if (!This || P.Code.Exprs[X.Args[0]].Kind != ExprKind::Ref) // `total += part` reads what its body does
      eval(X.Args[0]);
  }
  return inlined(E, Call, F, This);
}

/// Whether a condition may hold on some ranks and not on others, and can't be brought together.
bool Interpreter::differs(const Value &Condition) {
  return !Condition.replicated() && !Condition.reducible() && Condition.Kind != Placement::Own;
}

/// `condition ? a : b`: the sides run as those of an `if` do.
Value Interpreter::chosen(ir::ExprId E, const ir::Expr &X) {
  Value C = eval(X.Args[0]);
  const bool Differs = differs(C), Told = C.tellsRanks();
  if (Differs && !Told)
    note("divergent-branch", X.Args[0], C,
         "decides on " + (C.Why.empty() ? "a value that differs between ranks" : "a value that " + C.Why));
  C = nonLinear(C, X.Args[0], "decided on");
  if (MetUnder.count(X.Args[0]))
    agreeOnChoice(X.Args[0], C);
  Value T, F;
  choosing(X.Args[0], C, [&] {
    const RanksApart Sides(*this, Differs, Told);
    T = eval(X.Args[1]);
    F = eval(X.Args[2]);
  });
  if (const Loop *Step = CutLoops.empty() ? nullptr : stepLoop()) // `teacher ? target[t] : predicted`
    for (const auto &[Side, Whole, Local] : {std::tuple(X.Args[1], &T, &F), std::tuple(X.Args[2], &F, &T)})
      if (meansRowsOf(Side, *Whole, *Local))
        cut(cutPoint(Side, *Step), Step->Statement);
  if (Differs && P.Code.type(E).Kind != TypeKind::Void)
    return Value::unknown("is chosen by a value that differs between ranks", E);
  return C.Kind == Placement::Own ? C : join(T, F);
}

Value Interpreter::binary(ir::ExprId E, const ir::Expr &X) {
  if (std::vector<ir::FuncId> Bodies = P.bodies(X); Bodies.size() == 1 && X.Args.size() == 2)
    return ownOperator(E, X, Bodies.front());
  // Output: what is printed must be the original's.
  if (X.Name == "<<" &&
      (P.Code.type(X.Args[0]).Kind == TypeKind::Stream || P.Code.type(X.Args[0]).Kind == TypeKind::FileStream)) {
    eval(X.Args[0]);
    if (P.Code.Exprs[X.Args[1]].Kind == ExprKind::Unknown) // std::endl
      return Value::of(Placement::Replicated, E);
    Value V = eval(X.Args[1]);
    notWhole("its loop prints", E);
    demandReplicated(X.Args[1], V, "printed");
    prettyPrinted(E, X);
    return Value::of(Placement::Replicated, E);
  }
  Value L = eval(X.Args[0]);
  // `ready && train(x)`: what stands behind runs where this rank's own value says so.
  const bool Decides = X.Name == "&&" || X.Name == "||", Differs = Decides && differs(L), Told = L.tellsRanks();
  if (MetUnder.count(X.Args[0]))
    agreeOnChoice(X.Args[0], L);
  Value Rt;
  choosing(X.Args[0], Decides ? L : Value(), [&] {
    const RanksApart Behind(*this, Differs, Told);
    Rt = eval(X.Args[1]);
  });
  if (X.Name == ",")
    return Rt;
  if (X.Name == "+" || X.Name == "-" || X.Name == "*" || X.Name == "/")
    return arithmetic(E, X.Name, L, Rt, X.Args[0], X.Args[1]);
  L.Batch = Rt.Batch = None;
  if (L.Iterator || Rt.Iterator) // every rank sees as many batches
    return Value::of(Placement::Replicated, E);
  if (LoopCondition && (L.Kind == Placement::Extent || Rt.Kind == Placement::Extent)) {
    // A bound stays this rank's; what the loop does is another matter.
    const ir::ExprId Bound = X.Args[L.Kind == Placement::Extent ? 0 : 1], Accessor = accessor(P, madeAs(Bound));
    // (It would be one of a temporary, if what it reads has no name of its own.)
    const ir::ExprId Read = Accessor == None ? None : P.Code.Exprs[madeAs(Accessor)].Object;
    const ir::ExprId All = Accessor == None ? Bound : Read == None ? None : madeRowsOf(Read);
    if (taken(By.Together) && trainsHere() && All != None) { // over all rows, then
      Restart |= BroughtTogether.insert(All).second;
      return Value::of(Placement::Replicated, E);
    }
    note("row-loop", E, L.Kind == Placement::Extent ? L : Rt, rowLoop(Loops.empty() ? None : Loops.back().Statement));
    return Value::of(Placement::Replicated, E);
  }
  // `x.sizes() == y.sizes()`: of a batch's tensors, which have a rank's rows in common.
  auto Sizes = [&](ir::ExprId Of, const Value &V) {
    const ir::Expr &Call = P.Code.Exprs[P.unconverted(Of)];
    return V.Kind == Placement::Extent && Call.Kind == ExprKind::Call && Call.Object != None &&
           P.Code.type(Call.Object).Kind == TypeKind::Tensor;
  };
  if ((X.Name == "==" || X.Name == "!=") && Sizes(X.Args[0], L) && Sizes(X.Args[1], Rt))
    return Value::of(Placement::Replicated, E);
  // Containers of sums and means have as many of them on every rank.
  if (isIterator(P.Code.type(X.Args[0])) && isIterator(P.Code.type(X.Args[1])) && L.alikeInNumber() &&
      Rt.alikeInNumber())
    return Value::of(Placement::Replicated, E);
  L = nonLinear(L, X.Args[0], "compared");
  Rt = nonLinear(Rt, X.Args[1], "compared");
  if (L.replicated() && Rt.replicated()) {
    Value V = Value::of(Placement::Replicated, E);
    if (P.Code.type(E).Kind == TypeKind::Tensor)
      V.takeRank(arithmetic(E, "cmp", L, Rt, X.Args[0], X.Args[1]));
    return V;
  }
  return arithmetic(E, "cmp", L, Rt, X.Args[0], X.Args[1]);
}

//===----------------------------------------------------------------------===//
// Assignment
//===----------------------------------------------------------------------===//

Value Interpreter::accumulate(const Location &L, const Value &Given, ir::ExprId AddendExpr, ir::ExprId E) {
  Value Cur = read(L, E), Addend = Given;
  const ir::Type &Kept = P.Code.typeOf(L.Path.empty() ? L.Root : L.Path.back());
  if (outer(L) && ofOneRank() && Kept.Kind == TypeKind::String) // `text += std::to_string(loss)`
    notWhole("it keeps a value of one batch for later", E);
  if (outer(L) && (Cur.Kind == Placement::Mean || (Cur.Kind == Placement::Partial && Cur.Fresh)) && keepWhole(Cur))
    Cur = Value::of(Placement::Replicated, E);
  // An integer cuts what is added to it: the whole, as in the original, not each rank's part.
  if (AddendExpr != None && outer(L) && Kept.Kind == TypeKind::Integer && Addend.reducible() &&
      Addend.Kind != Placement::Extent && P.Code.type(AddendExpr).Kind == TypeKind::Floating)
    Addend = demandReplicated(AddendExpr, Addend, "added to an integer");
  if (!outer(L) && Addend.Kind != Placement::Zero && sharedBeside(E, Cur, Addend, AddendExpr)) { // `loss += penalty`
    Cur.Trained |= Addend.Trained;
    return Cur;
  }
  // The same text may be run with a mean and with something that is whole: `share` would be wrong for one of them.
  if (Recording && AddendExpr != None && Addend.Kind == Placement::Replicated)
    Out.WholeAddends.insert(AddendExpr);
  // A ghost's row is left out of a step's part, and nothing of what steps have added up.
  if (Recording && AddendExpr != None && Addend.Kind == Placement::Partial && !Addend.Fresh)
    Out.SumAddends.insert(AddendExpr);
  if (Recording && AddendExpr != None && Addend.Kind == Placement::Own)
    Out.OwnAddends.insert(AddendExpr);
  const Loop *Batches = nullptr;
  for (const Loop &Candidate : Loops)
    if (Candidate.accumulates())
      Batches = &Candidate;
  if (!Batches || !outer(L)) {
    if (Recording && AddendExpr != None && Addend.reducible())
      Out.StepAddends.insert(AddendExpr);
    Value Sum = arithmetic(E, "+", Cur, Addend, None, None);
    if (Sum.Kind == Placement::Unknown && Addend.reducible() && AddendExpr != None && numeric(AddendExpr)) {
      demandReplicated(AddendExpr, Addend, "added");
      Sum = Value::of(Placement::Replicated, E);
    }
    return Sum;
  }
  if (Batches->Mode == LoopMode::Fold && Addend.Kind == Placement::Own && MeanTerms.count(Addend.Source)) {
    if (ofStep(L) && (Cur.Kind == Placement::Zero || Cur.Kind == Placement::Mean)) {
      Value Mean = Value::of(Placement::Mean, E);
      Mean.setRank(0);
      Mean.Trained = Addend.Trained || Cur.Trained;
      return Mean;
    }
    notWhole("it adds up shares of its rows to something else", E);
    return Value::unknown("adds up shares of rows in a loop over rows", E);
  }
  if (Batches->Mode == LoopMode::Fold && Batches->Collects && Addend.Kind == Placement::Own && ofStep(L) &&
      (Cur.Kind == Placement::Zero || (Cur.Kind == Placement::Partial && Cur.Fresh))) {
    Value Sum = Value::partial(true, E); // a ghost's row is left out where the step's sums are
    Sum.setRank(0);
    Sum.Trained = Addend.Trained || Cur.Trained;
    return Sum;
  }
  if (Batches->Mode == LoopMode::Fold &&
      (EachStep.count(L) || Batches->Collects || (!Addend.replicated() && Addend.Kind != Placement::Own))) {
    notWhole("it adds up more than its rows", E);
    return Value::unknown("adds up more than rows in a loop over rows", E);
  }
  if (Batches->Mode != LoopMode::Rows) {
    // Each batch, or row, is one rank's, so whatever is added up over them is a partial sum, counters too.
    if (StringRef(Kept.Name).starts_with("std::map<") || StringRef(Kept.Name).starts_with("std::unordered_map<")) {
      notWhole("a rank without a batch would have none of its keys", E);
      return Value::of(Placement::Replicated, E);
    }
    if (Cur.Kind == Placement::Zero || Cur.Kind == Placement::Partial)
      return Value::partial(false, E);
    if (Cur.Kind == Placement::Own)
      return Cur;
    notWhole("it adds to a value that doesn't start at zero", E);
    return Value::of(Placement::Replicated, E);
  }
  bool Sums = !EachStep.count(L) && (Cur.Kind == Placement::Zero || (Cur.Kind == Placement::Partial && !Cur.Fresh));
  switch (Addend.Kind) {
  case Placement::Zero:
    return Cur;
  case Placement::Replicated:
    if (Cur.replicated() || Cur.Kind == Placement::Mean) {
      Value Sum = Cur.Kind == Placement::Zero ? Value::of(Placement::Replicated, E) : Cur;
      joinRows(Sum, Addend);
      return Sum;
    }
    if (Cur.Kind == Placement::Partial && !Cur.Fresh) { // the parts that went before must be brought together, too
      Restart |= EachStep.insert(L).second;
      return Value::of(Placement::Replicated, E);
    }
    break;
  case Placement::Mean:
    if (AddendExpr != None && Sums) {
      // The weight of each step is its own, so it is taken now; the sum over ranks can wait.
      coerce(AddendExpr, "share", Addend);
      AddendsSet[AddendExpr].insert(setBy(Addend, AddendExpr));
      return Value::partial(false, E);
    }
    break;
  case Placement::Extent:
  case Placement::Partial:
    if (AddendExpr != None && Sums) {
      if (Addend.Fresh || Addend.Kind == Placement::Extent) {
        coerce(AddendExpr, "mine", Addend);
        AddendsSet[AddendExpr].insert(setBy(Addend, AddendExpr));
      }
      return Value::partial(false, E);
    }
    break;
  default:
    break;
  }
  const bool Tensor = AddendExpr != None && P.Code.type(AddendExpr).Kind == TypeKind::Tensor &&
                      Cur.Kind == Placement::Replicated && (!Addend.Trained || NoGrads > 0);
  if (Addend.reducible() && AddendExpr != None && (numeric(AddendExpr) || Tensor)) {
    demandReplicated(AddendExpr, Addend, "added to a value that is equal on all ranks");
    return Cur;
  }
  if (Addend.Kind == Placement::Unknown) { // `spread += out.std().item<double>()`: that of all rows
    const bool Whole = Cur.replicated() || Cur.Kind == Placement::Zero;
    return Whole && AddendExpr != None && gatheredIn(AddendExpr) ? computedOfAll(E) : Addend;
  }
  // `mean += p`, of all rows that a batch has: a rank's are fewer.
  const bool Again = Cur.Kind == Placement::Unknown && Cur.Source == E;
  if (Addend.Kind == Placement::Sharded && (Cur.replicated() || Again) && Cur.Rank > 0 &&
      (Addend.Rank < 0 || Addend.Rank == Cur.Rank))
    note("unknown-rows", E, Cur, "has rows of a batch added to it in each step");
  Value Sum = Value::unknown("adds " + inWords(Addend) + " to " + inWords(Cur) + " over the steps", E);
  Sum.takeRank(Cur);
  return Sum;
}

Value Interpreter::assign(ir::ExprId E, const ir::Expr &X) {
  ir::ExprId LE = X.Args[0], RE = X.Args[1];
  placedBy(LE);
  if (std::vector<ir::FuncId> Bodies = P.bodies(X); Bodies.size() == 1)
    return ownOperator(E, X, Bodies.front());
  if (X.Name == "=")
    if (std::optional<Value> Put = putThrough(E, X))
      return *Put;
  auto Ties = [&](ir::ExprId To) {
    StringRef Name = P.Code.Exprs[To].Name;
    return Name == "std::tie" || Name == "std::forward_as_tuple";
  };
  if (X.Name == "=" && Ties(LE) && !Cuts.count(LE)) {
    // Element by element, also of a tuple within. No expression holds one of them.
    auto Take = [&](auto &Self, ir::ExprId To, const Value &V) -> void {
      if (Ties(To)) {
        const std::vector<ir::ExprId> &Args = P.Code.Exprs[To].Args;
        for (size_t I = 0; I != Args.size(); ++I)
          Self(Self, Args[I], To == LE ? part(RE, V, I) : V);
      } else if (!StringRef(P.Code.Exprs[To].Name).ends_with("ignore")) {
        store(E, To, None, V);
      }
    };
    Value V = eval(RE);
    Take(Take, LE, V);
    return V;
  }
  std::optional<Location> L = lvalue(LE);
  if (X.Name == "=") {
    putAt(LE);
    if (std::optional<Value> Extreme = L && !ofContainer(LE) ? extreme(*L, RE) : std::nullopt) {
      write(*L, *Extreme, RE);
      return *Extreme;
    }
    auto Adding = [&](ir::ExprId Addend, const Value &Added) { // as by `+=`, which doesn't read what is added to
      Value Sum = accumulate(*L, Added, Addend, E);
      takeFlags(Sum, Added);
      if (auto Before = Current.find(*L); Before != Current.end())
        takeFlags(Sum, Before->second);
      write(*L, Sum, RE);
      return Sum;
    };
    if (ir::ExprId Addend = L && ofStep(*L) ? addedTo(*L, RE) : None; Addend != None) { // `loss = loss + …` of a row
      return Adding(Addend, eval(Addend));
    }
    auto Around = llvm::find_if(llvm::reverse(Loops), [](const Loop &L) { return L.accumulates(); });
    const Loop *Apart = Around == Loops.rend() ? nullptr : &*Around;
    if (L && outer(*L) && Apart && !ofContainer(LE)) { // `n = n + 1`, over batches or rows
      const ir::Expr &Sum = P.Code.Exprs[P.unconverted(RE)];
      const bool Adds =
          Sum.Kind == ExprKind::Binary && Sum.Name == "+" && (numeric(LE) || holdsTensors(P.Code.type(LE)));
      for (size_t Side : {0, 1})
        if (Adds && lvalue(P.unconverted(Sum.Args[Side])) == L &&
            !dependsOn(Sum.Args[1 - Side], L->Root, Apart->Statement)) {
          const Value Added = eval(Sum.Args[1 - Side]);
          // (A state of rows, `h = h + f(x)`, a weight that is moved: no sums over batches.)
          if (Apart->ofOneRank() || Added.reducible() || (numeric(LE) && Added.replicated()))
            return Adding(Sum.Args[1 - Side], Added);
        }
    }
    if (L && outer(*L) && Apart && Apart->ofOneRank() && !ofContainer(LE)) {
      Value V = eval(RE);
      if (V.replicated() && dependsOn(RE, L->Root, Apart->Statement))
        notWhole("what it sets depends on its batches' number", E);
      return store(E, LE, RE, V);
    }
    Value V = eval(RE);
    if (L && outer(*L) && V.Kind == Placement::Unknown && gatheredIn(RE)) // `last = out.std().item<double>()`
      V = computedOfAll(RE);
    return store(E, LE, RE, V);
  }
  // `x op= y`
  std::string Op = X.Name.substr(0, X.Name.size() - 1);
  if (isElement(P.Code.Exprs[LE]))
    for (ir::ExprId Sub : P.Code.Exprs[LE].Args)
      eval(Sub);
  Value Right = eval(RE);
  if (P.Code.type(LE).Kind == TypeKind::Tensor && R.ofModel(LE) &&
      (L || !Right.replicated())) { // `p -= rate * p.grad()`
    if (!Right.replicated()) {
      intoModel(RE, Right);
      return Value::of(Placement::Replicated, E);
    }
    Value Trained = read(*L, LE); // still the model's, and no zero any more
    if (Trained.Kind == Placement::Zero)
      Trained.Kind = Placement::Replicated;
    if (Trained.replicated()) {
      write(*L, Trained, RE);
      return Trained;
    }
  }
  Value Astray = L ? Value() : eval(LE);
  if (astray(L) || behindNames(*L)) {
    elsewhere(E, RE, Right, /*Changes=*/true);
    if (withinTensor(LE))
      wroteInto(LE, Right, E);
    Value Whole = Value::of(Placement::Replicated, E);
    return Astray.replicated() ? Whole : arithmetic(E, Op, Astray, Whole, LE, RE); // `meter.sum() /= n`
  }
  Value Result;
  if (Op != "+" && Op != "-" && outer(*L)) {
    notWhole("it isn't a sum over its batches", E);
    if (Right.reducible()) // steps weigh differently: what is made of several takes each as a whole
      Right = demandReplicated(RE, Right, "used in a value that outlives its step");
  }
  bool Adds = Op == "+" || Op == "-";
  Value Left = Adds ? Value() : read(*L, LE);
  // `meter.sum() /= meter.count()`, both of several steps: parts add up that all ranks scale alike.
  if ((Op == "*" || Op == "/") && Left.Kind == Placement::Partial && !Left.Fresh && Right.reducible() && numeric(LE))
    Right = demandReplicated(RE, Right, "divided by");
  bool Scales = (Op == "*" || Op == "/") &&
                (Right.replicated() || (Left.Kind == Placement::Mean && Right.Kind == Placement::Extent)); // its sum
  // It is brought together where it was set: here it is written as well.
  if (!Adds && !Scales && Left.reducible() && Left.AssignedBy != None && numeric(Left.AssignedBy))
    Restart |= CoerceAtAssign.insert(Left.AssignedBy).second;
  if (Adds)
    Result = accumulate(*L, Right, RE, E);
  else if (Op == "*" || Op == "/")
    Result = arithmetic(E, Op, Left, Right, LE, RE);
  else
    Result = join(nonLinear(Left, LE, "changed"), nonLinear(Right, RE, "used"));
  const bool Within = withinTensor(LE);
  if (Within && !(Adds && outer(*L))) // `hits[c] += n` over batches doesn't read what it adds up
    eval(LE);
  takeFlags(Result, Right);
  if (auto Before = Current.find(*L); Before != Current.end()) {
    takeFlags(Result, Before->second);
    if (P.Code.type(LE).Kind == TypeKind::Tensor)
      keepsShape(Result, Before->second);
  }
  // A whole tensor isn't made of what is added to it: cut there, it would meet its other rows.
  const bool Changed = Result.replicated() && P.Code.type(LE).Kind == TypeKind::Tensor;
  write(*L, Result, Changed ? None : RE);
  seenBehindNames(*L, Result, E);
  if (Within)
    wroteInto(LE, Right, E);
  return Result;
}

} // namespace migrate
