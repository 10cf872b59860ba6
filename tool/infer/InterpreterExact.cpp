//===- InterpreterExact.cpp - Floats that every rank computes for itself ---===//
//
// What is whole is exact, bit for bit, or recomputed: a float that each rank computed for itself, which may differ in
// the last bit where hosts, devices or kernels are unlike. That bit is nothing to a sum, and everything to a condition:
// ranks that go different ways around a backward wait for each other forever. Where a recomputed value decides whether
// ranks meet, they agree on the main process's: at the integer or flag that floats were turned into, if that is come to
// as often, else at the condition.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether an operation adds or multiplies in an order that kernels choose. Element by element, and in comparisons,
/// IEEE 754 leaves no choice; functions such as `exp` are taken for exact as long as nothing is added up.
static bool rounds(Operation Kind, StringRef Name) {
  switch (Kind) {
  case Operation::Contract:
  case Operation::Sum:
  case Operation::Mean:
  case Operation::Coupled:
  case Operation::Loss:
  case Operation::ClassLoss:
  case Operation::EinSum:
  case Operation::TensorDot:
  case Operation::CoupledModule:
    return true;
  case Operation::AlongDim:
    return Name.contains_insensitive("softm") || Name.starts_with("cum") || Name == "logcumsumexp" ||
           Name == "normalize";
  case Operation::OverDim:
    return llvm::StringSwitch<bool>(Name)
               .Cases("max", "min", "amax", "amin", "aminmax", "argmax", "argmin", true)
               .Cases("all", "any", "median", "nanmedian", "mode", "kthvalue", "unbind", true)
               .Default(false) == false;
  case Operation::Replicated: // `clip_grad_norm_` gives the norm
    return Name.starts_with("clip_grad_norm");
  default:
    return false;
  }
}

/// What tells nothing of a tensor's or list's numbers.
static bool tellsShape(StringRef Name) {
  return llvm::StringSwitch<bool>(Name)
      .Cases("size", "sizes", "dim", "ndimension", "numel", "defined", "dtype", "scalar_type", "device", "options",
             true)
      .Cases("empty", "length", "has_value", "get_deleter", "use_count", "requires_grad", "is_cuda", "layout", true)
      .Default(false);
}

/// Whether what is added up are comparisons.
static bool counts(const Program &P, const ir::Expr &X) {
  ir::ExprId Of = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
  if (Of == None)
    return false;
  const ir::Expr &Given = P.Code.Exprs[P.unconverted(Of)];
  StringRef Name = StringRef(Given.Name).substr(StringRef(Given.Name).rfind(':') + 1);
  if (P.Code.type(Of).Kind != TypeKind::Tensor)
    return false;
  Name.consume_front("operator");
  return llvm::is_contained({"==", "!=", "<", ">", "<=", ">=", "eq", "ne", "lt", "gt", "le", "ge", "logical_and",
                             "logical_or", "logical_not", "isnan", "isinf"},
                            Name);
}

/// What an operation gives that rounds as each rank's kernels do.
void Interpreter::rounded(const ir::Expr &X, const OperationRow &Row, const Operands &In, Value &Result) {
  StringRef Name = StringRef(X.Name).substr(StringRef(X.Name).rfind(':') + 1);
  if (!Result.replicated() || Wholes > 0 || !rounds(Row.Kind, Name) || (Row.Kind == Operation::Sum && counts(P, X)))
    return;
  if (Row.Kind == Operation::Sum && P.Code.type(In.Exprs.empty() ? None : In.Exprs[0]).number())
    return;
  Value Computed;
  Computed.Equal = Strength::Recomputed;
  weaken(Result, Computed);
}

/// Carries over to `V` what its operands are.
void Interpreter::asItsOperands(ir::ExprId E, const ir::Expr &X, Value &V) {
  switch (X.Kind) {
  case ExprKind::Call:
  case ExprKind::Construct:
    if (P.callee(X) != None || StringRef(X.Name).starts_with("accelerate::"))
      return; // the body tells; what ranks sent each other is exact
    break;
  case ExprKind::Binary:
  case ExprKind::Unary:
  case ExprKind::Cast:
  case ExprKind::List:
  case ExprKind::Index:
  case ExprKind::Conditional:
    break;
  default:
    return;
  }
  StringRef Name = StringRef(X.Name).substr(StringRef(X.Name).rfind(':') + 1);
  if (X.Kind == ExprKind::Call && tellsShape(Name))
    return;
  bool FromFloats = false;
  auto Take = [&](ir::ExprId Operand) {
    if (Operand == None)
      return;
    auto It = Last.find(Operand);
    if (It == Last.end())
      return;
    const Value &Of = It->second;
    V.Noisy |= Of.Noisy;
    if (!V.replicated() || Of.Equal != Strength::Recomputed)
      return;
    const TypeKind Kind = P.Code.type(Operand).Kind;
    FromFloats |= Kind == TypeKind::Tensor || Kind == TypeKind::Floating;
    weaken(V, Of);
  };
  Take(X.Object);
  for (ir::ExprId Arg : X.Args)
    Take(Arg);
  const ir::Type &T = P.Code.type(E);
  const bool Whole = T.Kind == TypeKind::Integer || T.Kind == TypeKind::Bool;
  if (!Whole || !FromFloats || V.Equal != Strength::Recomputed)
    return;
  // `mask.sum().item<int64_t>()`: integers were added up.
  if (T.Kind == TypeKind::Integer && X.Kind == ExprKind::Call && X.Object != None && Name == "item") {
    const ir::Expr &Sum = P.Code.Exprs[P.unconverted(X.Object)];
    if (StringRef(Sum.Name).ends_with("::sum") && Sum.Object != None && Last[Sum.Object].Equal == Strength::Exact) {
      V.makeExact();
      return;
    }
  }
  V.Choice = E;
  ChoiceLoop[E] = Loops.empty() ? None : Loops.back().Statement;
}

/// What is written where recomputed values decided whether to.
void Interpreter::underRecomputed(Value &V) const {
  if (RecomputedChoices == 0 || !V.replicated())
    return;
  V.Equal = std::max(V.Equal, Strength::Recomputed);
  V.Choice = None;
}

/// The jumps of `S` out of what is around it: whether ranks that don't all make them would wait for each other.
bool Interpreter::leavesOthers(ir::StmtId S) const {
  bool Found = false;
  std::function<void(ir::StmtId, bool, bool)> Look = [&](ir::StmtId At, bool InLoop, bool InSwitch) {
    if (At == None || failStop(At))
      return;
    const ir::Stmt &X = P.Code.Stmts[At];
    auto Waits = [](const Loop &L) { return L.Trains || L.Meets; };
    const bool Around = llvm::any_of(Loops, Waits);
    if (X.Kind == StmtKind::Return || X.Kind == StmtKind::Goto)
      Found |= Around || llvm::any_of(Frames, [&](const Frame &F) {
                 return R.reachesBackward(P.Code.Functions[F.Function].Body);
               });
    if ((X.Kind == StmtKind::Break && !InLoop && !InSwitch) || (X.Kind == StmtKind::Continue && !InLoop)) {
      auto It = llvm::find_if(llvm::reverse(Loops), [](const Loop &L) { return L.Mode != LoopMode::Switch; });
      Found |= It != Loops.rend() && Waits(*It);
    }
    const bool Loops = X.Kind == StmtKind::Loop || X.Kind == StmtKind::RangeFor;
    for (ir::StmtId Child : X.Children)
      Look(Child, InLoop || Loops, InSwitch || X.Kind == StmtKind::Switch);
  };
  Look(S, false, false);
  return Found;
}

/// Has the ranks agree on a recomputed value that decides whether they meet: where it became a choice, or here.
void Interpreter::agreeOnChoice(ir::ExprId E, Value &V) {
  if (!V.recomputed() || Divergent > 0 || Threads > 0)
    return;
  const ir::ExprId At = V.Choice;
  auto Once = ChoiceLoop.find(At);
  const bool AsOften =
      At != None && Once != ChoiceLoop.end() &&
      (Once->second == None || llvm::any_of(Loops, [&](const Loop &L) { return L.Statement == Once->second; }));
  if (AsOften && P.unconverted(E) != P.unconverted(At) && !NotThere.count(At) && P.Code.Exprs[At].Where.Editable) {
    Restart |= AgreedOn.insert(At).second;
  } else if (P.Code.type(E).number()) {
    if (ofOneRank())
      notWhole("ranks agree in it on what to do", E);
    else if (!P.Code.Exprs[E].Where.Editable)
      note("assumed-ranks", E, V,
           "decides, within a macro, on a floating-point number that each rank computes for itself, bit for bit the "
           "same as long as hosts are alike");
    else if (Recording)
      Out.Coercions.try_emplace(E, "agreed");
    ++Meetings;
  }
  V.makeExact();
}

/// A choice that ranks agree on where it is made, since something behind it asks for that.
void Interpreter::agreedHere(ir::ExprId E, Value &V) {
  if (!AgreedOn.count(E) || V.Equal != Strength::Recomputed)
    return;
  if (Divergent > 0 || Threads > 0 || ofOneRank() ||
      RecomputedChoices > 0) { // not all come here: where it is asked for, then
    AgreedOn.erase(E);
    Restart |= NotThere.insert(E).second;
    return;
  }
  if (Recording)
    Out.Coercions.try_emplace(E, "agreed");
  ++Meetings;
  V.makeExact();
}

/// Drops out at random, from a stream of each rank's own.
void Interpreter::dropsOut(Value &V) const {
  if (Evaluates)
    return;
  V.Noisy = true;
  if (V.replicated())
    V.Equal = Strength::Outside;
}

/// Told of a number that decides about the training, if the original's other draws may decide otherwise.
void Interpreter::decidesByNoise(ir::ExprId E, const Value &V) {
  if (V.Noisy)
    note("noisy-decision", E, V, "decides about the training, and comes from random numbers other than the original's");
}

/// What ranks do together, or all must do alike: a collective, a step, another rate, a draw from what they have in
/// common.
bool Interpreter::isMeeting(const ir::Expr &X) const {
  StringRef Name = X.Name;
  if (X.Kind != ExprKind::Call)
    return false;
  if (Name.consume_front("accelerate::Accelerator::"))
    return llvm::is_contained({"backward", "reduce", "reduce_", "mean", "sum", "max", "min", "gather", "all_gather",
                               "all_reduce", "all_mean", "gather_for_metrics", "broadcast", "save", "once",
                               "wait_for_everyone", "global_rows", "global_like", "check_trigger"},
                              Name);
  if (Name.ends_with("::step") && X.Object != None)
    return P.Code.type(X.Object).Kind == TypeKind::Optimizer || P.Code.type(X.Object).Kind == TypeKind::Scheduler;
  const bool Setting = Name.starts_with("torch::optim::") && Name.contains("Options::") && !X.Args.empty();
  return Setting || Name.ends_with("::zero_grad") || Name == "torch::save" || Name == "torch::manual_seed" ||
         Name == "at::manual_seed" || isBackward(X) || P.Taught.isSave(Name);
}

} // namespace migrate
