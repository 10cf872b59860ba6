//===- InterpreterBranches.cpp - if, switch, try: who goes which way ------===//
//
// A choice that ranks may make differently is a finding where what it leads to matters: training steps, collectives,
// exits, writes to what outlives the step.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/Support/SaveAndRestore.h"

using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;

namespace migrate {

/// Ends the program whatever the other ranks do: the failure contract covers it.
bool Interpreter::failStop(ir::StmtId S) const {
  if (S == None)
    return false;
  const ir::Stmt &X = P.Code.Stmts[S];
  if (X.Kind == StmtKind::Expr && X.Value != None) {
    const ir::Expr &E = P.Code.Exprs[X.Value];
    // An exception that is caught is no end, but a way around what follows.
    return E.NoReturn || (throws(E) && Tries == 0);
  }
  if (X.Kind == StmtKind::Block && !X.Children.empty())
    return failStop(X.Children.back());
  return false;
}

/// Whether a handler ends the job: by what does so anyway, or a `return 1;` of `main`.
bool Interpreter::endsJob(ir::StmtId Handler) const {
  if (Handler == None)
    return false;
  const ir::Stmt &X = P.Code.Stmts[Handler];
  if (X.Kind == StmtKind::Block && !X.Children.empty())
    return endsJob(X.Children.back());
  if (X.Kind == StmtKind::Return && X.Value != None && Frames.back().Function == P.Main) {
    const ir::Expr &Status = P.Code.Exprs[P.unconverted(X.Value)];
    return (Status.Kind == ExprKind::Literal && Status.Name != "0") || Status.Kind == ExprKind::Unary; // `-1`
  }
  return failStop(Handler);
}

/// Whether ranks that disagree about running `S` would part ways: everything but work on this rank's own rows.
bool Interpreter::matters(ir::StmtId S) const { return S != None && !failStop(S); }

/// Whether `S` jumps out of what is around it.
bool Interpreter::leavesStep(ir::StmtId S) const {
  bool Found = false;
  P.forEachStmt(S, [&](ir::StmtId Child) {
    const ir::Stmt &X = P.Code.Stmts[Child];
    Found |= X.Kind == StmtKind::Break || X.Kind == StmtKind::Continue || X.Kind == StmtKind::Return ||
             X.Kind == StmtKind::Goto || (X.Kind == StmtKind::Expr && X.Value != None && throws(P.Code.Exprs[X.Value]));
  });
  return Found;
}

/// Whether a statement ends a loop that it stands in: `break` of the innermost, `return` in the same function.
bool Interpreter::leavesLoops(ir::StmtId S, const Loop &Around) const {
  bool Found = false;
  P.forEachStmt(S, [&](ir::StmtId Child) {
    const ir::Stmt &X = P.Code.Stmts[Child];
    Found |= X.Kind == StmtKind::Break && &Around == &Loops.back();
    Found |= X.Kind == StmtKind::Return && Around.Frame + 1 == Frames.size();
    Found |= X.Kind == StmtKind::Goto || (X.Kind == StmtKind::Expr && X.Value != None && throws(P.Code.Exprs[X.Value]));
  });
  return Found;
}

/// Whether `S` changes what is kept beyond it: assigns, counts, puts something into a list, itself or in what it calls.
bool Interpreter::changesAround(ir::StmtId S, int Hops) const {
  bool Found = false;
  std::set<ir::VarId> Within;
  P.forEachStmt(S, [&](ir::StmtId Child) {
    if (P.Code.Stmts[Child].Var != None)
      Within.insert(P.Code.Stmts[Child].Var);
  });
  auto Outer = [&](ir::ExprId E) {
    for (E = P.unconverted(E); E != None;
         E = P.Code.Exprs[E].Object == None ? None : P.unconverted(P.Code.Exprs[E].Object))
      if (const ir::Expr &X = P.Code.Exprs[E]; X.Kind == ExprKind::Ref)
        return Within.count(X.Var) == 0;
    return true;
  };
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    const llvm::StringRef Name = llvm::StringRef(X.Name).rsplit("::").second;
    if (X.Kind == ExprKind::Assign || (X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--")))
      Found |= Outer(X.Args[0]);
    else if (X.Kind == ExprKind::Call && X.Object != None &&
             llvm::is_contained({"push_back", "emplace_back", "insert", "emplace", "push", "append", "push_front"},
                                Name))
      Found |= Outer(X.Object);
    if (Hops > 0)
      for (ir::FuncId F : P.bodies(X))
        Found |= changesAround(P.Code.Functions[F].Body, Hops - 1);
  });
  return Found;
}

/// Whether `S` gives an optimizer other options: `group.options().set_lr(rate)`, `options.lr() *= 0.5`.
bool Interpreter::setsOptions(ir::StmtId S) const {
  bool Found = false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    const bool Writes = X.Kind == ExprKind::Assign && X.Args[0] != None;
    const ir::Expr &Set = Writes ? P.Code.Exprs[P.unconverted(X.Args[0])] : X;
    Found |= Set.Kind == ExprKind::Call && Set.Object != None && (Writes || !Set.Args.empty()) &&
             ofOptions(P.Code.type(Set.Object));
  });
  return Found;
}

/// Whether a condition looks at the file system, itself or in what it calls.
bool Interpreter::asksFiles(ir::ExprId Condition, int Hops) const {
  bool Asks = false;
  P.forEachExpr(Condition, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    Asks |= isQuery(X.Name);
    if (Hops > 0)
      for (ir::FuncId F : P.bodies(X))
        P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId Inner) { Asks |= asksFiles(Inner, Hops - 1); });
  });
  return Asks;
}

/// Whether ranks that would find different answers, by the clock or in the file system, take the main process's. Of a
/// folder's entries, each host has its own.
bool Interpreter::agreesHere(ir::StmtId Id, ir::ExprId Condition, const Value &V) const {
  if (!V.outside() || FilesDecide || R.reachesBackward(Id))
    return V.outside();
  const bool Files = asksFiles(Condition);
  if (Files && llvm::any_of(Loops, [&](const Loop &L) { return listsFolder(L.Statement); }))
    return false;
  const bool Loop = P.Code.Stmts[Id].Kind == StmtKind::Loop;
  // `while (exists(folder)) ++number;`: one of them makes the first that isn't there, before another has looked.
  if ((Loop && Files) || MetUnder.count(Condition))
    return true;
  return (!Loop && (leavesStep(Id) || sets(Id) || setsOptions(Id))) || (!Files && changesAround(Id));
}

/// Whether `S` gives a variable another value.
bool Interpreter::sets(ir::StmtId S) const {
  bool Found = false;
  P.forEachExprIn(S, [&](ir::ExprId E) { Found |= P.Code.Exprs[E].Kind == ExprKind::Assign; });
  return Found;
}

void Interpreter::execTry(const ir::Stmt &S) {
  State Before = Current;
  const bool Goes = !llvm::all_of(llvm::drop_begin(S.Children), [&](ir::StmtId Handler) { return endsJob(Handler); });
  Tries += Goes;
  exec(S.Children[0]);
  Tries -= Goes;
  // A handler may run after any part of the body.
  State After = Dead ? Before : joined(Before, Current);
  bool BodyDead = std::exchange(Dead, false);
  State Result = BodyDead ? State() : Current;
  bool Any = !BodyDead;
  for (size_t I = 1; I < S.Children.size(); ++I) {
    Current = After;
    Dead = false;
    exec(S.Children[I]);
    if (!Dead) {
      Result = Any ? joined(Result, Current) : Current;
      Any = true;
    }
  }
  Dead = !Any;
  Current = Any ? Result : After;
}

/// `if (ready) sum += x; else sum -= 1;`: no part can wait where the other side adds a whole, or starts with this
/// step's.
void Interpreter::sumsOfParts(const State &A, const State &B) {
  auto Part = [](const Value &V) { return V.Kind == Placement::Partial && !V.Fresh; };
  for (const auto &[L, V] : A) {
    auto Other = B.find(L);
    if (Other == B.end() || !outer(L))
      continue;
    const Value &W = Other->second;
    auto Whole = [](const Value &V) { // or will be, where it is assigned
      return V.Kind == Placement::Replicated ||
             (V.AssignedBy != None && V.reducible() && (V.Kind != Placement::Partial || V.Fresh));
    };
    if ((Part(V) && Whole(W)) || (Part(W) && Whole(V)))
      Restart |= EachStep.insert(L).second;
  }
}

/// `if (loss < best) best = loss;`: a number that is a mean or a sum on one side and whole on the
/// other is brought together where it is assigned, from the next run on.
void Interpreter::keptOnOneSide(const State &A, const State &B) {
  for (const auto &[L, V] : A)
    if (auto Other = B.find(L); Other != B.end())
      for (const auto &[Part, Whole] : {std::pair(&V, &Other->second), std::pair(&Other->second, &V)})
        if ((Part->Kind == Placement::Mean || Part->Kind == Placement::Partial || Part->Kind == Placement::Extreme) &&
            Whole->Kind == Placement::Replicated && Part->AssignedBy != None && Divergent == 0 && !ofOneRank() &&
            P.Code.type(Part->AssignedBy).number())
          Restart |= CoerceAtAssign.insert(Part->AssignedBy).second;
}

/// `x.dim() == 1`, of a tensor whose dimensions are counted: a function that takes one state or a batch of them does
/// otherwise for each. None of any other condition.
std::optional<bool> Interpreter::countedAs(const ir::Expr &X) {
  if (X.Kind != ExprKind::Binary || X.Args.size() != 2)
    return std::nullopt;
  for (bool Turned : {false, true}) {
    const ir::ExprId Of = countsDimensions(X.Args[Turned]);
    const std::optional<int64_t> Number = integer(X.Args[!Turned]);
    if (Of == None || !Number)
      continue;
    const int Rank = eval(Of).Rank;
    if (Rank < 0)
      return std::nullopt;
    const int64_t L = Turned ? *Number : Rank, Rt = Turned ? Rank : *Number;
    return X.Name == "=="   ? std::optional(L == Rt)
           : X.Name == "!=" ? std::optional(L != Rt)
           : X.Name == "<"  ? std::optional(L < Rt)
           : X.Name == "<=" ? std::optional(L <= Rt)
           : X.Name == ">"  ? std::optional(L > Rt)
           : X.Name == ">=" ? std::optional(L >= Rt)
                            : std::nullopt;
  }
  return std::nullopt;
}

/// What a flag of the function says here, `if (single) value = value.squeeze(0);`, that it sets on the way. None of one
/// that is only set where it is declared, which someone may set otherwise, or that others may set.
std::optional<bool> Interpreter::flagged(const ir::Expr &X) const {
  if (X.Kind != ExprKind::Ref || X.Var == None || P.Code.typeOf(X.Var).Kind != ir::TypeKind::Bool ||
      P.Code.Vars[X.Var].Param || !Depths.count(X.Var))
    return std::nullopt;
  const ir::FuncId F = Frames.back().Function;
  const ir::ExprId Set = assignedBy({X.Var, {}});
  if (Set == None || P.Code.Vars[X.Var].Function != F || P.Code.Exprs[P.unconverted(Set)].Kind != ExprKind::Literal)
    return std::nullopt;
  bool Again = false, Others = false;
  P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
    const ir::Expr &Of = P.Code.Exprs[E];
    auto IsIt = [&](ir::ExprId Arg) { return Arg != None && P.Code.Exprs[P.unconverted(Arg)].Var == X.Var; };
    Again |= Of.Kind == ExprKind::Assign && Of.Name == "=" && IsIt(Of.Args[0]);
    Others |= Of.Kind == ExprKind::Lambda || (Of.Kind == ExprKind::Unary && Of.Name == "&" && IsIt(Of.Args[0]));
    for (size_t I = 0; Of.Kind == ExprKind::Call && I != Of.Args.size(); ++I)
      Others |= I < 32 && (Of.Writable >> I & 1) && IsIt(Of.Args[I]);
  });
  if (!Again || Others)
    return std::nullopt;
  return P.Code.Exprs[P.unconverted(Set)].Name == "true";
}

/// `if (probs != nullptr)` of a parameter that is given a tensor's address here, or `nullptr`. None of anything else.
std::optional<bool> Interpreter::pointed(const ir::Expr &X) const {
  auto IsNull = [&](ir::ExprId E) { return E != None && P.Code.type(P.unconverted(E)).Name == "std::nullptr_t"; };
  const bool Compares = X.Kind == ExprKind::Binary && (X.Name == "==" || X.Name == "!=") && IsNull(X.Args[1]);
  const ir::Expr &Of = Compares ? P.Code.Exprs[P.unconverted(X.Args[0])] : X;
  if (Of.Kind != ExprKind::Ref || Of.Var == None || !P.Code.Vars[Of.Var].Param || reassigned(Of.Var) ||
      !llvm::StringRef(P.Code.typeOf(Of.Var).Name).ends_with("at::Tensor *"))
    return std::nullopt;
  const ir::ExprId Arg = givenHere(Of.Var);
  if (Arg == None)
    return std::nullopt;
  const ir::Expr &Given = P.Code.Exprs[P.unconverted(Arg)];
  const bool Address = Given.Kind == ExprKind::Unary && Given.Name == "&";
  if (!Address && !IsNull(Arg))
    return std::nullopt;
  return Address == (!Compares || X.Name == "!=");
}

/// `action.defined()`, `!noise.has_value()`, `action.numel() == 0`: what is asked for, and whether it is that it's
/// there.
static std::pair<ir::ExprId, bool> asksFor(const Program &P, ir::ExprId Condition, bool Counted) {
  const ir::Expr &X = P.Code.Exprs[Condition];
  const llvm::StringRef Name = X.Name;
  if (X.Kind == ExprKind::Binary && X.Args.size() == 2 && (Name == "==" || Name == "!=" || Name == ">")) {
    const ir::Expr &Zero = P.Code.Exprs[P.unconverted(X.Args[1])];
    if (Zero.Kind != ExprKind::Literal || Zero.Name != "0")
      return {None, false};
    return {asksFor(P, P.unconverted(X.Args[0]), /*Counted=*/true).first, Name != "=="};
  }
  if (X.Kind != ExprKind::Call || X.Object == None)
    return {None, false};
  const bool Asks =
      Name.ends_with("::numel") || (!Counted && (Name.ends_with("::defined") || Name.ends_with("::has_value")));
  return {Asks ? P.unconverted(X.Object) : None, true};
}

/// Whether `is_training()` is asked of what was told to evaluate, in a loop over one rank's own batches.
bool Interpreter::isEvaluated(const ir::Expr &X) {
  if (!Evaluated || !ofOneRank() || X.Kind != ExprKind::Call || !llvm::StringRef(X.Name).ends_with("::is_training"))
    return false;
  const bool OfThis = X.Object == None || P.Code.Exprs[P.unconverted(X.Object)].Kind == ExprKind::This;
  const std::optional<Location> Of = OfThis ? Frames.back().This : lvalue(X.Object);
  return Of && Of->Root == Evaluated->Root && Of->Path.size() >= Evaluated->Path.size() &&
         std::equal(Evaluated->Path.begin(), Evaluated->Path.end(), Of->Path.begin());
}

/// Whether a parameter was given something: `if (!action.defined()) action = …` of a function that samples for some
/// callers and looks at what others have sampled. None where that isn't known.
std::optional<bool> Interpreter::given(ir::ExprId Condition) {
  Condition = P.unconverted(Condition);
  const ir::Expr &X = P.Code.Exprs[Condition];
  if (X.Kind == ExprKind::Binary && (X.Name == "&&" || X.Name == "||"))
    if (const std::optional<bool> First = given(X.Args[0]); First && *First == (X.Name == "||"))
      return First;
  if (isEvaluated(X))
    return false;
  if (X.Kind == ExprKind::Unary && X.Name == "!") {
    const std::optional<bool> Given = given(X.Args[0]);
    return Given ? std::optional(!*Given) : std::nullopt;
  }
  if (const std::optional<bool> Counted = countedAs(X))
    return Counted;
  if (const std::optional<bool> Flag = flagged(X))
    return Flag;
  if (const std::optional<bool> There = pointed(X))
    return There;
  const auto [Asked, IfThere] = asksFor(P, Condition, /*Counted=*/false);
  if (Asked == None)
    return std::nullopt;
  const ir::Expr &Of = P.Code.Exprs[Asked];
  if (Of.Kind != ExprKind::Ref || Of.Var == None || !P.Code.Vars[Of.Var].Param ||
      !llvm::StringRef(P.Code.type(Asked).Name).contains("at::Tensor"))
    return std::nullopt;
  const ir::Function &Fn = P.Code.Functions[Frames.back().Function];
  const size_t I = llvm::find(Fn.Params, Of.Var) - Fn.Params.begin();
  if (I >= Frames.back().Args.size())
    return std::nullopt;
  // A gradient may not be there.
  const bool Gradient = llvm::StringRef(P.Code.Exprs[P.unconverted(Frames.back().Args[I])].Name).contains("grad");
  const Value V = eval(Asked);
  if (V.Nothing)
    return !IfThere;
  if (V.MayLack || Gradient || V.Kind == Placement::Unknown)
    return std::nullopt;
  // A whole that isn't known to be rows of something may have none, and what a mask has picked, too.
  const bool Counts = X.Kind == ExprKind::Binary || llvm::StringRef(X.Name).ends_with("::numel");
  if (Counts && (V.Picked || (V.Kind != Placement::Sharded && V.Rows <= NoRows)))
    return std::nullopt;
  return IfThere;
}

/// `isnan(x).sum()`, of which one rank's will do.
static bool asksForNan(const Program &P, ir::ExprId Count) {
  bool Asks = false;
  P.forEachExpr(Count, [&](ir::ExprId E) {
    const llvm::StringRef Name = llvm::StringRef(P.Code.Exprs[E].Name).rsplit("::").second;
    Asks |= llvm::is_contained({"isnan", "isinf", "isfinite"}, Name);
  });
  return Asks;
}

/// Whether a condition compares a mean or a sum over the batch's rows, `loss > 100`, or counts, `x.size(0) != 8`:
/// a rank's own may be above the limit where the batch's isn't. (What isn't a number, or no rows, is so on any rank as
/// in one process.)
bool Interpreter::comparesMeans(ir::ExprId Condition) const {
  bool Found = false;
  P.forEachExpr(Condition, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    auto [Scope, Plain] = llvm::StringRef(X.Name).rsplit("::");
    llvm::StringRef Name = Plain.empty() ? Scope : Plain;
    Name.consume_front("operator");
    const bool Equals = Name == "==" || Name == "!=";
    if (!Equals && !llvm::is_contained({"<", ">", "<=", ">="}, Name))
      return;
    for (size_t I = 0; I != X.Args.size(); ++I)
      if (auto It = Last.find(X.Args[I]); It != Last.end() && It->second.reducible()) {
        const bool Count = It->second.Kind == Placement::Extent;
        const ir::ExprId With = X.Args.size() == 2 ? X.Args[1 - I] : None;
        // (`x.size(0) == y.size(0)`, `x.size(0) == 0`: as for all rows.)
        const bool Limit = With != None && Last.count(With) && Last.at(With).replicated() && integer(With) != 0 &&
                           P.Code.type(X.Args[I]).number();
        const bool Counts =
            It->second.Kind == Placement::Partial && P.Code.type(X.Args[I]).Kind == ir::TypeKind::Integer;
        Found |= Count ? Limit : !Equals || (Counts && !asksForNan(P, X.Args[I]));
      }
  });
  return Found;
}

/// Whether a condition asks what holds of each row, `!mask.any()`: it may hold of a rank's rows, or of none that it
/// has, where it doesn't of the batch's. (What one row tells, `isnan(x).any()`, is so in one process, too.)
bool Interpreter::asksOfEachRow(ir::ExprId Condition, bool Negated) const {
  Condition = P.unconverted(Condition);
  const ir::Expr &X = P.Code.Exprs[Condition];
  if (X.Kind == ExprKind::Unary && X.Name == "!")
    return asksOfEachRow(X.Args[0], !Negated);
  if ((X.Kind == ExprKind::Binary && (X.Name == "&&" || X.Name == "||")) ||
      (X.Kind == ExprKind::Call && X.Name == "__builtin_expect"))
    return llvm::any_of(X.Args, [&](ir::ExprId Arg) { return asksOfEachRow(Arg, Negated); });
  const auto Asked = Last.find(Condition);
  return Asked != Last.end() && Asked->second.Kind == Placement::Extreme && Asked->second.Largest == Negated &&
         P.Code.type(Condition).Kind == ir::TypeKind::Bool;
}

/// Whether a condition looks at a file that is written, `log.tellp() < limit`, `if (log)`, and ranks haven't agreed.
bool Interpreter::asksOutput(ir::ExprId Condition) const {
  bool Asks = false, Agreed = false;
  P.forEachExpr(Condition, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    const ir::Type &T = P.Code.type(E);
    Asks |= (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) &&
            (T.Kind == ir::TypeKind::FileStream || T.Name == "FILE *" || T.Name == "_IO_FILE *");
    Agreed |= llvm::StringRef(X.Name).starts_with("accelerate::Accelerator::");
  });
  return Asks && !Agreed;
}

/// `if (std::tm *now = std::localtime(&time))`, `if (!now)`: not what a clock tells, but whether there is an answer.
/// Files are another matter, as they may be there for one rank alone.
static bool asksForNull(const Program &P, ir::ExprId Condition) {
  const ir::Expr *X = &P.Code.Exprs[P.unconverted(Condition)];
  const bool Not = X->Kind == ExprKind::Unary && X->Name == "!";
  const bool Compares = X->Kind == ExprKind::Binary && (X->Name == "==" || X->Name == "!=") &&
                        llvm::StringRef(P.Code.type(P.unconverted(X->Args[1])).Name).contains("nullptr");
  const ir::ExprId Asked = P.unconverted(Not || Compares ? X->Args[0] : Condition);
  const llvm::StringRef Type = P.Code.type(Asked).Name;
  return Type.ends_with("*") && !Type.contains("FILE");
}

void Interpreter::execIf(const ir::Stmt &S, ir::StmtId Id) {
  ir::StmtId Then = S.Children[0], Else = S.Children[1];
  if (failStop(Then) && !matters(Else)) {
    // `if (rename(from, to) != 0) exit(1);`, `if (exists(folder)) exit(1);`: of several processes, one succeeds.
    bool Changes = false;
    P.forEachExpr(S.Value, [&](ir::ExprId E) { Changes |= changesFile(P.Code.Exprs[E].Name); });
    const bool MayBeThere = isQuery(P.Code.Exprs[P.unconverted(S.Value)].Name);
    bool Recorded = std::exchange(Recording, Recording && (Changes || MayBeThere));
    State Before = Current;
    const Value Found = eval(S.Value);
    if (MayBeThere)
      agree(S.Value, Found);
    else if (Changes) { // `!exists(folder) && !create_directory(folder)`: all come along, or none
      std::set<ir::ExprId> Agreed;
      P.forEachExpr(S.Value, [&](ir::ExprId E) {
        if (llvm::StringRef(P.Code.Exprs[E].Name).starts_with("accelerate::"))
          P.forEachExpr(E, [&](ir::ExprId Sub) { Agreed.insert(Sub); });
      });
      P.forEachExpr(S.Value, [&](ir::ExprId E) {
        if (auto Asked = Last.find(E); Asked != Last.end() && isQuery(P.Code.Exprs[E].Name) && !Agreed.count(E))
          agree(E, Asked->second);
      });
    }
    Current = Before;
    Recording = Recorded;
    if (!comparesMeans(S.Value) && !asksOfEachRow(S.Value, /*Negated=*/false))
      return;
  }
  if (const std::optional<bool> Known = given(S.Value)) {
    exec(*Known ? Then : Else);
    return;
  }
  const auto Kept = ofOneRank() ? keepsExtreme(S) : std::nullopt;
  const bool OfRows = Kept && eval(Kept->first).Kind == Placement::Own;
  if (OfRows)
    KeptExtremes.insert(*Kept);
  Value C = OfRows ? Value::of(Placement::Own, S.Value) : eval(S.Value);
  if (C.outside() && asksForNull(P, S.Value))
    C.Equal = Strength::Exact;
  if (C.Kind == Placement::Unknown && gatheredIn(S.Value))
    C = computedOfAll(S.Value);
  // Ranks meet under it, or train: where the main process writes a file, and where it can't, the others write nowhere.
  const bool Written = C.replicated() && asksOutput(S.Value);
  if (Written && (MetUnder.count(S.Value) || R.reachesBackward(Id)))
    C.Equal = Strength::Outside;
  const bool Agreed = agreesHere(Id, S.Value, C);
  if (Agreed)
    agree(S.Value, C);
  llvm::SaveAndRestore Choice(OutsideChoices, OutsideChoices + (C.outside() && !Agreed));
  if (C.recomputed() || C.Noisy) {
    const bool Parts = R.reachesBackward(Id) || leavesOthers(Then) || leavesOthers(Else);
    if (Parts || MetUnder.count(S.Value))
      agreeOnChoice(S.Value, C);
    if (Parts)
      decidesByNoise(S.Value, C);
    leftBy(Then, C);
    leftBy(Else, C);
  }
  bool Differs = false, OwnChoice = C.Kind == Placement::Own;
  if (OwnChoice) {
    // Of this rank's own batch: folds under it are folds of its batches.
  } else if (!C.replicated()) {
    if (C.reducible())
      C = demandReplicated(S.Value, C, "decided on");
    else {
      Differs = true;
      bool Trains = R.reachesBackward(Id) || setsOptions(Id);
      // Around a backward that the other ranks wait in. What is left of a round, or of a function, they do alone, and
      // it is looked at as such.
      if (leavesStep(Id)) {
        for (const Loop &Around : Loops)
          if (!C.tellsRanks() || leavesLoops(Id, Around))
            Trains |= R.reachesBackward(Around.Statement);
        bool Jumps = false;
        P.forEachStmt(Id, [&](ir::StmtId Child) { Jumps |= P.Code.Stmts[Child].Kind == StmtKind::Goto; });
        Trains |= Jumps && R.reachesBackward(P.Code.Functions[Frames.back().Function].Body);
      }
      if (Trains || !C.tellsRanks())
        note(Trains ? "divergent-training" : "divergent-branch", S.Value, C,
             "decides on " + (C.Why.empty() ? "a value that differs between ranks" : "a value that " + C.Why));
    }
  }
  const bool Told = C.tellsRanks();
  OwnChoices += OwnChoice;
  State Before = Current, AfterThen;
  bool ThenDead = false;
  const int Met = Meetings;
  choosing(S.Value, C, [&] {
    const RanksApart Sides(*this, Differs, Told);
    exec(Then);
    AfterThen = std::exchange(Current, Before);
    ThenDead = std::exchange(Dead, false);
    exec(Else);
  });
  if (Written && Meetings != Met)
    Restart |= MetUnder.insert(S.Value).second;
  bool ElseDead = Dead;
  Dead = ThenDead && ElseDead;
  if (!ThenDead && !ElseDead) {
    sumsOfParts(AfterThen, Current);
    keptOnOneSide(AfterThen, Current);
    cutAlike(AfterThen, Current);
  }
  if (ThenDead && !ElseDead)
    ; // Current is the else side's
  else if (!ThenDead && ElseDead)
    Current = AfterThen;
  else
    Current = joined(AfterThen, Current);
  OwnChoices -= OwnChoice;
  if (Differs && ThenDead != ElseDead)
    leftApart(ThenDead ? Then : Else, Told);
}

/// Some ranks have left on this side, `if (!accelerator.is_main_process()) return;`: what comes is the others' alone,
/// to the end of the loop's body or of the function.
void Interpreter::leftApart(ir::StmtId Side, bool Told) {
  bool Returns = false;
  P.forEachStmt(Side, [&](ir::StmtId Child) { Returns |= P.Code.Stmts[Child].Kind == StmtKind::Return; });
  ++Divergent;
  ByRank += Told;
  if (Returns) {
    ++Frames.back().Left;
    Frames.back().LeftByRank += Told;
  }
}

void Interpreter::execSwitch(ir::StmtId Id) {
  const RanksHere Around(*this);
  const ir::Stmt &S = P.Code.Stmts[Id];
  Value C = eval(S.Value);
  bool Differs = false;
  if (agreesHere(Id, S.Value, C))
    agree(S.Value, C);
  if (C.reducible())
    demandReplicated(S.Value, C, "decided on");
  else if (!C.replicated() && C.Kind != Placement::Own) {
    Differs = true;
    note(R.reachesBackward(Id) ? "divergent-training" : "divergent-branch", S.Value, C,
         "decides on " + (C.Why.empty() ? "a value that differs between ranks" : "a value that " + C.Why));
  }
  if (C.recomputed() && (MetUnder.count(S.Value) || R.reachesBackward(Id) || leavesOthers(Id)))
    agreeOnChoice(S.Value, C);
  leftBy(Id, C);
  State Before = Current;
  Loops.push_back({Id, LoopMode::Switch, Depth, None, Frames.size() - 1, false, {}, {}});
  choosing(S.Value, C, [&] {
    const RanksApart Cases(*this, Differs, C.tellsRanks());
    for (ir::StmtId Child : S.Children) {
      // Any of them may be jumped to, or fallen into.
      Current = Dead ? Before : joined(Current, Before);
      Dead = false;
      exec(Child);
    }
  });
  State After = Dead ? Before : joined(Current, Before);
  for (const State &Exit : Loops.back().Exits)
    After = joined(After, Exit);
  Loops.pop_back();
  Current = std::move(After);
  Dead = false;
}

} // namespace migrate
