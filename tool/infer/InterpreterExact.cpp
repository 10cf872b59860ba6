//===- InterpreterExact.cpp - Floats that every rank computes for itself --===//
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
  case Operation::Loss:
  case Operation::ClassLoss:
  case Operation::EinSum:
  case Operation::TensorDot:
  case Operation::CoupledModule:
    return true;
  case Operation::Coupled: // but for what picks, sorts or compares
    return !llvm::is_contained({"msort", "nonzero", "argwhere", "masked_select", "unique_dim", "unique_consecutive",
                                "equal", "masked_scatter", "combinations"},
                               Name);
  case Operation::AlongDim:
    return Name.contains_insensitive("softm") || Name.starts_with("cum") || Name == "logcumsumexp" ||
           Name == "normalize";
  case Operation::OverDim:
    return !llvm::is_contained({"max", "min", "amax", "amin", "aminmax", "argmax", "argmin", "all", "any", "median",
                                "nanmedian", "mode", "kthvalue", "unbind"},
                               Name);
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
  if (X.Kind == ExprKind::Call && tellsShape(Name)) {
    auto Of = X.Object == None ? Last.end() : Last.find(X.Object);
    const ir::ExprId By = Of == Last.end() ? None : Of->second.Choice;
    const bool List = X.Object != None && P.Code.type(X.Object).Kind != TypeKind::Tensor; // filled under a condition
    if (V.recomputed() && By == None)
      V.makeExact();
    if (By == None || !(List || picksRows(By)))
      return;
    weaken(V, Of->second); // `scores.index({scores > 0}).size(0)`
    if (List)
      return;
    V.Choice = E;
    ChoiceLoop[E] = Loops.empty() ? None : Loops.back().Statement;
    return;
  }
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
    if (Kind == TypeKind::Iterator && Of.Choice == None) // where it stands in a list, not what it finds there
      return;
    FromFloats |= Kind == TypeKind::Tensor || Kind == TypeKind::Floating;
    weaken(V, Of);
  };
  Take(X.Object);
  for (ir::ExprId Arg : X.Name == "," ? llvm::ArrayRef(X.Args).take_back() : llvm::ArrayRef(X.Args))
    Take(Arg);
  if (V.recomputed() && V.Choice == None && picksRows(E))
    V.Choice = E;
  const ir::Type &T = P.Code.type(E);
  const bool Whole = T.Kind == TypeKind::Integer || T.Kind == TypeKind::Bool;
  // What an earlier choice alone made differ, an action that moves an environment, was that one.
  if (!Whole || !FromFloats || V.Equal != Strength::Recomputed || V.Choice != None)
    return;
  // `mask.sum().item<int64_t>()`: integers were added up.
  if (T.Kind == TypeKind::Integer && X.Kind == ExprKind::Call && X.Object != None && Name == "item") {
    const ir::Expr &Sum = P.Code.Exprs[P.unconverted(X.Object)];
    if (StringRef(Sum.Name).ends_with("::sum") && Sum.Object != None && Last[Sum.Object].Equal == Strength::Exact) {
      V.makeExact();
      return;
    }
  }
  if (!agreeable(E))
    return;
  V.Choice = E;
  ChoiceLoop[E] = Loops.empty() ? None : Loops.back().Statement;
}

/// Whether how many rows `E` has depends on its numbers: rows that a mask picks, positions of what isn't zero.
bool Interpreter::picksRows(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  StringRef Name = StringRef(X.Name).substr(StringRef(X.Name).rfind(':') + 1);
  if (X.Kind != ExprKind::Call || P.Code.type(E).Kind == TypeKind::Void)
    return false;
  return llvm::is_contained({"index", "masked_select", "nonzero", "argwhere", "where", "unique", "_unique",
                             "unique_consecutive", "unique_dim"},
                            Name);
}

/// What is written or returned where recomputed values decided whether to.
void Interpreter::underRecomputed(Value &V) const {
  if (!V.replicated())
    return;
  std::optional<ir::ExprId> By;
  for (const Frame &F : Frames)
    By = By ? By : F.LeftBy;
  for (const Loop &L : Loops)
    By = By ? By : L.LeftBy;
  if (!By && !RecomputedChoices.empty())
    By = RecomputedChoices.front();
  if (!By)
    return;
  V.Equal = std::max(V.Equal, Strength::Recomputed);
  V.Choice = *By; // once ranks agree on that, what else it depends on is asked for
}

/// How a statement leaves what is around it.
struct Interpreter::Jumps {
  bool Function = false; ///< by `return`
  bool Try = false;      ///< by an exception, which may be caught further out
  bool Loop = false;     ///< by `break` or `continue`
};

Interpreter::Jumps Interpreter::jumpsOf(ir::StmtId S) const {
  Jumps Found;
  std::function<void(ir::StmtId, bool, bool)> Look = [&](ir::StmtId At, bool InLoop, bool InSwitch) {
    if (At == None || failStop(At))
      return;
    const ir::Stmt &X = P.Code.Stmts[At];
    Found.Function |= X.Kind == StmtKind::Return || X.Kind == StmtKind::Goto;
    Found.Try |= X.Kind == StmtKind::Expr && X.Value != None && throws(P.Code.Exprs[X.Value]);
    Found.Loop |= (X.Kind == StmtKind::Break && !InLoop && !InSwitch) || (X.Kind == StmtKind::Continue && !InLoop);
    const bool Loops = X.Kind == StmtKind::Loop || X.Kind == StmtKind::RangeFor;
    for (ir::StmtId Child : X.Children)
      Look(Child, InLoop || Loops, InSwitch || X.Kind == StmtKind::Switch);
  };
  Look(S, false, false);
  return Found;
}

/// Whether ranks meet in the function around here, where one that returned early would be missed.
bool Interpreter::behindMeets() {
  const ir::FuncId F = Frames.back().Function;
  ReturnsEarly.insert(F);
  return Frames.size() == 1 || MeetsIn.count(F) || R.reachesBackward(P.Code.Functions[F].Body) ||
         llvm::any_of(Loops, [&](const Loop &L) { return L.Frame + 1 == Frames.size() && (L.Trains || L.Meets); });
}

/// Ranks met in a function: who may have returned from it before that is asked about in the next run.
void Interpreter::metIn(ir::FuncId F) {
  if (MeetsIn.insert(F).second)
    Restart |= ReturnsEarly.count(F) != 0;
}

/// The loop that `continue` means here, if any.
Interpreter::Loop *Interpreter::leftLoop() {
  auto It = llvm::find_if(llvm::reverse(Loops), [](const Loop &L) { return L.Mode != LoopMode::Switch; });
  return It == Loops.rend() ? nullptr : &*It;
}

/// The jumps of `S` out of what is around it: whether ranks that don't all make them would wait for each other.
bool Interpreter::leavesOthers(ir::StmtId S) {
  const Jumps Of = jumpsOf(S);
  bool Found = (Of.Function || Of.Try) && behindMeets();
  Found |= Of.Try && Tries > 0;
  if (const Loop *L = Of.Loop ? leftLoop() : nullptr)
    Found |= L->Trains || L->Meets;
  return Found;
}

/// Remembers that `S` may leave what is around it by the condition `C`: what comes behind depends on it.
void Interpreter::leftBy(ir::StmtId S, const Value &C) {
  if (!C.recomputed())
    return;
  const Jumps Of = jumpsOf(S);
  if (Of.Function || Of.Try)
    Frames.back().LeftBy = C.Choice;
  if (Loop *L = Of.Loop ? leftLoop() : nullptr)
    L->LeftBy = C.Choice;
}

/// Whether a function is one that loaders call, a data set's or a transform's, or is called by one: each rank makes
/// such calls for its own rows.
bool Interpreter::ofLoaders(ir::FuncId F) {
  if (!OfLoaders) {
    OfLoaders.emplace();
    std::vector<ir::FuncId> Reached;
    for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn)
      if (llvm::any_of(P.Code.Functions[Fn].Overrides, [](StringRef Usr) { return Usr.contains("@N@torch@N@data@"); }))
        Reached.push_back(Fn);
    auto Lambdas = [&](ir::ExprId E) {
      if (P.Code.Exprs[E].Kind == ExprKind::Lambda && P.Code.Exprs[E].Func != None)
        Reached.push_back(P.Code.Exprs[E].Func);
    };
    for (const ir::Expr &X : P.Code.Exprs)
      if (StringRef(X.Name).starts_with("torch::data::transforms::"))
        for (ir::ExprId Arg : X.Args)
          P.forEachExpr(Arg, Lambdas);
    while (!Reached.empty()) {
      const ir::FuncId Fn = Reached.back();
      Reached.pop_back();
      if (!OfLoaders->insert(Fn).second)
        continue;
      P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId E) {
        Lambdas(E);
        for (ir::FuncId Called : P.bodies(P.Code.Exprs[E]))
          Reached.push_back(Called);
      });
    }
  }
  return OfLoaders->count(F) != 0;
}

/// Whether all ranks come here, and equally often.
bool Interpreter::canMeet() {
  const ir::FuncId F = Frames.back().Function;
  return Divergent == 0 && Threads == 0 && !InThreads.count(F) && !ofLoaders(F);
}

/// Whether `E` is written as what can be sent to other ranks: a number, an enumerator; not an object that is converted.
bool Interpreter::agreeable(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (!P.Code.type(E).number() && P.Code.type(E).Kind != TypeKind::Enum)
    return false;
  if (X.Kind != ExprKind::Call || X.Object == None)
    return true;
  const ir::Range &Object = P.Code.Exprs[X.Object].Where; // of `meter`, which converts to a number
  return Object.File != X.Where.File || Object.Begin != X.Where.Begin || Object.End != X.Where.End;
}

void Interpreter::agreedAt(ir::ExprId E) {
  AgreesIn.insert(Frames.back().Function);
  if (Recording) {
    Out.Coercions.try_emplace(E, "agreed");
    CoercedIn[E] = Frames.back().Function;
  }
  ++Meetings;
}

/// Has the ranks agree on a recomputed value that decides whether they meet: where it became a choice, or here.
void Interpreter::agreeOnChoice(ir::ExprId E, Value &V) {
  if (!V.recomputed() || Divergent > 0 || Threads > 0)
    return;
  E = behindCommas(E);
  const ir::ExprId At = V.Choice;
  const auto Made = ChoiceLoop.find(At);
  const bool Known = At != None && Made != ChoiceLoop.end() && P.unconverted(E) != P.unconverted(At) &&
                     !NotThere.count(At) && !AgreedOn.count(At);
  const bool AsOften = Known && (Made->second == None ||
                                 llvm::any_of(Loops, [&](const Loop &L) { return L.Statement == Made->second; }));
  const bool Here = agreeable(E) && P.Code.Exprs[E].Where.Editable && canMeet();
  if (AsOften || (Known && !Here)) {
    AgreedOn.insert(At);
    Restart = true;
  } else if (!Here) {
    note("assumed-ranks", E, V,
         "decides, where ranks can't agree, on a floating-point number that each rank computes for itself, bit for bit "
         "the same as long as hosts are alike");
  } else if (ofOneRank()) {
    notWhole("ranks agree in it on what to do", E);
  } else {
    agreedAt(E);
  }
  V.makeExact();
}

/// A choice that ranks agree on where it is made, since something behind it asks for that.
void Interpreter::agreedHere(ir::ExprId E, Value &V) {
  if (!AgreedOn.count(E) || (V.replicated() && V.Equal != Strength::Recomputed))
    return;
  // Not all come here, or not with a value of all ranks: where it is asked for, then.
  if (!V.replicated() || !canMeet() || ofOneRank() || !RecomputedChoices.empty()) {
    AgreedOn.erase(E);
    NotThere.insert(E);
    Restart = true;
    return;
  }
  agreedAt(E);
  V.makeExact();
}

/// Drops out at random, from a stream of each rank's own.
void Interpreter::dropsOut(ir::ExprId E, const Value &Of, Value &V) {
  if (Of.Kind == Placement::Sharded) {
    note("dropout", E, Of, "drops out at random");
    drawn(E, /*Rows=*/true);
    DroppedOfRows.insert(E);
  }
  if (Evaluates)
    return;
  // Of what is whole all ranks drop out the same, inside of `accelerator.whole`.
  if (V.replicated() && Of.replicated() && Divergent == 0 && Threads == 0 && !ofOneRank()) {
    DroppedOfWhole.insert(E);
    drawn(E, /*Rows=*/false);
    return;
  }
  V.Noisy = true;
  if (V.replicated())
    V.Equal = Strength::Outside;
}

/// Told of a number that decides about the training, if the original's other draws may decide otherwise.
void Interpreter::decidesByNoise(ir::ExprId E, const Value &V) {
  if (V.Noisy)
    note("noisy-decision", E, V, "decides about the training, and comes from random numbers other than the original's");
}

/// What a call does to gradients, generators or files that ranks have in common; null if nothing.
static const char *changesShared(const ir::Expr &X, bool Saves) {
  StringRef Name = X.Name;
  if (Saves || Name == "torch::save" || Name.ends_with("::save_to"))
    return "saves";
  if (Name.ends_with("::zero_grad"))
    return "clears gradients";
  if (Name == "torch::manual_seed" || Name == "at::manual_seed")
    return "seeds the generator that ranks have in common";
  return nullptr;
}

/// What ranks do together, or all must do alike: a collective, a step, another rate, a draw from what they have in
/// common.
bool Interpreter::isMeeting(const ir::Expr &X) const {
  StringRef Name = X.Name;
  if (X.Kind != ExprKind::Call)
    return false;
  if (Name.consume_front("accelerate::Accelerator::"))
    return llvm::is_contained({"backward",
                               "reduce",
                               "reduce_",
                               "mean",
                               "sum",
                               "max",
                               "min",
                               "gather",
                               "all_gather",
                               "all_reduce",
                               "all_mean",
                               "gather_for_metrics",
                               "pad_across_processes",
                               "broadcast",
                               "save",
                               "once",
                               "on_main_process",
                               "wait_for_everyone",
                               "global_rows",
                               "global_like",
                               "check_trigger"},
                              Name);
  if (Name.ends_with("::step") && X.Object != None)
    return P.Code.type(X.Object).Kind == TypeKind::Optimizer || P.Code.type(X.Object).Kind == TypeKind::Scheduler;
  const bool Setting = Name.starts_with("torch::optim::") && Name.contains("Options::") && !X.Args.empty();
  return Setting || isBackward(X) || changesShared(X, P.Taught.isSave(Name));
}

/// A refusal where not every rank comes along, but what they have in common changes: gradients, generators, files.
void Interpreter::meetsAlone(ir::ExprId E, const ir::Expr &X) {
  const char *Does = X.Kind == ExprKind::Call ? changesShared(X, P.Taught.isSave(X.Name)) : nullptr;
  const bool Stream = Does && llvm::any_of(X.Args, [&](ir::ExprId Arg) { // `torch::save(model, bytes)`: no file
                        return Arg != None && StringRef(P.Code.type(Arg).Name).contains("stream");
                      });
  if (Does && !Stream && !(ByRank > 0 && StringRef(Does) == "saves"))
    note("divergent-training", E, Value(), std::string(Does) + " where not every rank comes along");
  if (StringRef(X.Name).starts_with("accelerate::") && isMeeting(X) && !StringRef(X.Name).ends_with("on_main_process"))
    note("divergent-training", E, Value(), "is a call that all ranks make together, where not every rank comes along");
}

} // namespace migrate
