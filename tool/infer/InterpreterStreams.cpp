//===- InterpreterStreams.cpp - Batches that lie along another dimension --===//
//
// A batch that no loader made is cut along its first dimension, until something says where its rows lie: an RNN takes
// time first, a target goes with an output whose rows lie elsewhere. The cut is turned then, and the run starts again.
// States that stand beside a batch have its rows, too: they are cut where they come from, which may be outside the
// loop over the steps, if they are carried from one to the next: every step parts its streams alike.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// `x` of `x.transpose(0, 1)` and `x.permute({1, 0, …})`, whose first two dimensions change places.
ir::ExprId Interpreter::beforeSwap(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  const StringRef Name = StringRef(X.Name).rsplit("::").second;
  const ir::ExprId From = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
  if (X.Kind != ExprKind::Call || From == None || P.Code.type(From).Kind != TypeKind::Tensor)
    return None;
  std::vector<ir::ExprId> Dims;
  for (ir::ExprId Arg : X.Args)
    if (Arg != None && Arg != From)
      collectItems(P, Arg, Dims);
  auto Are = [&](int64_t A, int64_t B) { return Dims.size() >= 2 && integer(Dims[0]) == A && integer(Dims[1]) == B; };
  return (Name == "transpose" && (Are(0, 1) || Are(1, 0))) || (Name == "permute" && Are(1, 0)) ? P.unconverted(From)
                                                                                               : None;
}

/// The tensor whose first two dimensions change places in what is cut here, `one_hot(x.transpose(0, 1))` of what this
/// function was given: its rows lie in front, and what is made for as many rows follows if they are cut there. None if
/// there is none.
ir::ExprId Interpreter::turnedBefore(ir::ExprId At) const {
  static const char *const Keeping[] = {"to", "contiguous", "clone", "detach", "cuda", "one_hot"};
  for (int Hops = 0; Hops != 8; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[At = P.unconverted(At)];
    if (const ir::ExprId From = beforeSwap(At); From != None) {
      const ir::Expr &Of = P.Code.Exprs[From];
      const bool Given = Of.Kind == ExprKind::Ref && Of.Var != None && P.Code.Vars[Of.Var].Param;
      return Given && P.Code.Vars[Of.Var].Function == Frames.back().Function ? From : None;
    }
    if (X.Kind != ExprKind::Call || !llvm::is_contained(Keeping, StringRef(X.Name).rsplit("::").second))
      return None;
    At = X.Object != None ? X.Object : X.Args[0];
  }
  return None;
}

/// Cuts `At` along another dimension from the next run on. False if it isn't cut, or that has been tried.
bool Interpreter::turn(ir::ExprId At, unsigned Dim) {
  auto It = Cuts.find(At);
  if (It == Cuts.end() || It->second == Dim || !Turned.insert(At).second)
    return false;
  It->second = Dim;
  if (const ir::ExprId Source = Dim == 1 ? turnedBefore(At) : None; Source != None)
    if (const Loop *Step = stepLoop()) {
      const ir::ExprId Rows = cutPoint(Source, *Step);
      Cuts.erase(At);
      Cuts[Rows] = 0;
      Turned.insert(Rows);
    }
  // What was cut as having the rows that were taken to lie in front, `torch::full({x.size(0), x.size(0)})`, is looked
  // at again.
  std::erase_if(Cuts, [&](const auto &Cut) { return Cut.first != At && !Turned.count(Cut.first); });
  return Restart = true;
}

/// The expressions that a state in the step `Step` starts from: what a variable was given before the loop, or what is
/// made in the step.
void Interpreter::origins(ir::ExprId E, const Loop &Step, std::vector<ir::ExprId> &Into, int Hops) {
  static const char *const Passing[] = {"detach", "to", "clone", "contiguous", "data", "detach_", "cuda"};
  for (size_t At = Frames.size() - 1; Hops > 0; --Hops) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (X.Kind == ExprKind::List || X.Kind == ExprKind::Construct || Name == "make_tuple" || Name == "tie") {
      for (ir::ExprId Item : X.Args)
        origins(Item, Step, Into, Hops - 1);
      return;
    }
    if (X.Kind == ExprKind::Call && X.Object != None && llvm::is_contained(Passing, Name)) {
      E = X.Object;
      continue;
    }
    if (X.Kind == ExprKind::Call && (Name == "move" || Name == "forward") && X.Object == None && !X.Args.empty()) {
      E = X.Args[0];
      continue;
    }
    const std::optional<Location> Member = X.Kind == ExprKind::Field ? lvalue(E) : std::nullopt;
    if (!Member && (X.Kind != ExprKind::Ref || X.Var == None)) {
      Into.push_back(E);
      return;
    }
    const ir::Function &Fn = P.Code.Functions[Frames[At].Function];
    if (auto Param = llvm::find(Fn.Params, X.Var); Param != Fn.Params.end()) {
      size_t I = Param - Fn.Params.begin();
      if (At <= Step.Frame || I >= Frames[At].Args.size())
        break;
      E = Frames[At].Args[I];
      --At;
      continue;
    }
    auto Named = Alias.find(X.Var);
    Location L = Member ? *Member : Named == Alias.end() ? Location{X.Var, {}} : Named->second;
    auto Declared = Depths.find(L.Root);
    bool Before = Declared == Depths.end() || Declared->second < Step.Depth;
    // Made anew in each step, `state = net->begin_state(x.size(0))`; not of itself, `state = state.detach()`.
    if (auto Now = Current.find(L); Before && Now != Current.end() && Now->second.AssignedBy != None) {
      bool OfItself = false;
      P.forEachExpr(Now->second.AssignedBy,
                    [&](ir::ExprId Sub) { OfItself |= P.Code.Exprs[Sub].Var == L.Root && L.Root != None; });
      Before = OfItself || !P.Code.Stmts[Step.Statement].Where.contains(P.Code.Exprs[Now->second.AssignedBy].Where);
    }
    const State &From = Before && Step.Entry ? *Step.Entry : Current;
    auto It = From.find(L);
    if (Member && (!Before || It == From.end() || It->second.AssignedBy == None)) {
      Into.push_back(E);
      return;
    }
    ir::ExprId Made = It == From.end() ? None : It->second.AssignedBy;
    if (Made == None)
      break;
    if (Before) { // outside of the steps
      Made = P.unconverted(Made);
      const ir::Expr &Whole = P.Code.Exprs[Made];
      if (Whole.Kind == ExprKind::Construct && !Whole.Where.Editable) // `std::tuple<Tensor, Tensor> state{x, y};`
        for (ir::ExprId Item : Whole.Args)
          origins(Item, Step, Into, Hops - 1);
      else
        Into.push_back(Made);
      return;
    }
    E = Made;
  }
  Into.push_back(None);
}

/// The operands of a call that are tensors, or lists of them.
std::vector<ir::ExprId> Interpreter::tensorsOf(const Operands &In) const {
  std::vector<ir::ExprId> Exprs;
  for (ir::ExprId Operand : In.Exprs)
    if (holdsTensors(P.Code.type(Operand)))
      Exprs.push_back(Operand);
  return Exprs;
}

/// `lstm(x, {h, c})` beside a loader's batch, of states that are made in its step with the loader's batch size,
/// `torch::zeros({layers, batch_size, features})`, `begin_state(batch_size)`: by it this rank's rows are meant. True if
/// that takes another run.
bool Interpreter::sizedByBatch(llvm::ArrayRef<Signature> Signatures, const Operands &In) {
  auto Step = llvm::find_if(llvm::reverse(Loops), [](const Loop &L) { return L.Mode == LoopMode::Rows; });
  const std::vector<ir::ExprId> Exprs = tensorsOf(In);
  if (Step == Loops.rend() || Restart || Exprs.size() != In.Tensors.size())
    return false;
  for (const Signature &S : Signatures)
    for (size_t I = 0; I < std::min(In.Tensors.size(), S.Inputs.size()); ++I) {
      const Value &Rows = In.Tensors[I];
      if (Rows.Kind != Placement::Sharded || Rows.Picked || Rows.Dim >= S.Inputs[I].size() ||
          !llvm::isLower(S.Inputs[I][Rows.Dim]))
        continue;
      for (size_t J = 0; J < std::min(In.Tensors.size(), S.Inputs.size()); ++J) {
        if (!In.Tensors[J].replicated() || S.Inputs[J].find(S.Inputs[I][Rows.Dim]) == std::string::npos ||
            P.Code.type(Exprs[J]).Kind == TypeKind::Module)
          continue;
        std::vector<ir::ExprId> Starts;
        origins(Exprs[J], *Step, Starts, 32);
        // Made once, in front of the loop, with the rows that each of its batches has: the states of this rank's. (An
        // RNN takes no other number of them.)
        for (ir::ExprId Start : Starts)
          if (In.Maker != None && J > 0 && Start != None && P.Code.Exprs[Start].Where.Editable &&
              holdsTensors(P.Code.type(Start)) &&
              !P.Code.Stmts[Step->Statement].Where.contains(P.Code.Exprs[Start].Where) &&
              Cuts.try_emplace(Start, S.Inputs[J].find(S.Inputs[I][Rows.Dim])).second) {
            Turned.insert(Start);
            Restart = true;
          }
        for (ir::ExprId Start : Starts)
          P.forEachExpr(Start, [&](ir::ExprId Size) {
            const bool Named = P.Code.Exprs[Size].Kind != ExprKind::Literal && P.unconverted(Size) == Size;
            if (Named && P.Code.type(Size).Kind == TypeKind::Integer && isBatchSize(Size))
              if (const ir::ExprId Batch = batchSeen(Size, Step->Loader); Batch != None)
                Restart |= OwnCounts.try_emplace(Size, Batch).second;
          });
      }
    }
  return Restart;
}

/// Has the operands of a call that takes rows lie as it takes them. True if that takes another run.
bool Interpreter::realigned(llvm::ArrayRef<Signature> Signatures, const Operands &In) {
  const Loop *Step = stepLoop();
  if (!Step || Restart)
    return false;
  const std::vector<ir::ExprId> Exprs = tensorsOf(In);
  if (Exprs.size() != In.Tensors.size())
    return false;
  for (const Signature &S : Signatures) {
    char Batch = 0;
    bool Fits = true;
    for (size_t I = 0; I != In.Tensors.size() && I != S.Inputs.size(); ++I) {
      const Value &V = In.Tensors[I];
      const std::string &Labels = S.Inputs[I];
      Fits &= V.Rank < 0 || V.Rank == int(Labels.size());
      if (!Fits || V.Kind != Placement::Sharded || V.Dim >= Labels.size() || Labels.find('.') != std::string::npos)
        continue;
      auto Rows = llvm::find_if(Labels, [](char Letter) { return llvm::isLower(Letter); });
      if (Rows == Labels.end())
        continue;
      if (llvm::isUpper(Labels[V.Dim]) && turn(V.Source, Rows - Labels.begin()))
        return true;
      Batch = *Rows;
    }
    if (!Fits || Batch == 0)
      continue;
    bool Any = false;
    for (size_t I = 0; I != In.Tensors.size() && I != S.Inputs.size(); ++I) {
      size_t Dim = S.Inputs[I].find(Batch);
      if (!In.Tensors[I].replicated() || Dim == std::string::npos || P.Code.type(Exprs[I]).Kind == TypeKind::Module)
        continue;
      std::vector<ir::ExprId> Starts;
      origins(Exprs[I], *Step, Starts, 32);
      for (ir::ExprId Start : Starts)
        if (Start != None && P.Code.Exprs[Start].Where.Editable && !Cuts.count(Start)) {
          Any |= cut(Start, Step->Statement, Dim);
          Turned.insert(Start);
        }
    }
    if (Any)
      return true;
  }
  return false;
}

/// Has a target's rows lie as those of what it is compared with. True if that takes another run.
bool Interpreter::realigned(const Value &A, const Value &B) {
  if (A.Kind != Placement::Sharded || B.Kind != Placement::Sharded || (A.Dim == B.Dim && A.Woven == B.Woven))
    return false;
  for (const auto &[Given, Turns] : {std::pair(&A, &B), std::pair(&B, &A)})
    if (auto It = Cuts.find(Given->Source); It != Cuts.end() && Turned.count(Given->Source))
      if (turn(Turns->Source, Given->Woven ? 1 : It->second))
        return true;
  // `targets.transpose(0, 1)`: what had its first two dimensions change places has its rows where the other has them.
  for (const auto &[Given, Turns] : {std::pair(&A, &B), std::pair(&B, &A)})
    if (Cuts.count(Given->Source) && Cuts.count(Turns->Source) && !Given->Woven && Given->Dim == 1 &&
        beforeSwap(Turns->Source) != None && beforeSwap(Given->Source) == None && turn(Turns->Source, 1))
      return true;
  return false;
}

/// Whether a tensor has one place along a dimension, by what makes it: `positions.unsqueeze(1)`, `torch::zeros({8,
/// 1})`.
bool Interpreter::oneAlong(ir::ExprId E, unsigned Dim, int Hops) {
  E = P.unconverted(E);
  const ir::Expr &X = P.Code.Exprs[E];
  if (Hops == 0)
    return false;
  if (X.Kind == ExprKind::Ref) {
    const ir::ExprId Made = X.Var == None ? None : assignedBy({X.Var, {}});
    return Made != None && oneAlong(Made, Dim, Hops - 1);
  }
  if (X.Kind == ExprKind::Binary)
    return llvm::all_of(X.Args,
                        [&](ir::ExprId Side) { return P.Code.type(Side).number() || oneAlong(Side, Dim, Hops - 1); });
  if (X.Kind != ExprKind::Call)
    return false;
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (Name == "unsqueeze" && !X.Args.empty() && integer(X.Args[0]) == int64_t(Dim))
    return true;
  std::vector<ir::ExprId> Size; // `{8, 1}`
  for (ir::ExprId Arg : X.Args)
    if (Arg != None && Size.empty() && StringRef(P.Code.type(Arg).Name).contains("ArrayRef<"))
      collectItems(P, Arg, Size);
  if (Dim < Size.size() && integer(Size[Dim]) == 1)
    return true;
  static const char *const Keeping[] = {"to",     "contiguous", "detach", "clone", "slice",
                                        "narrow", "exp",        "neg",    "mul",   "div"};
  return X.Object != None && llvm::is_contained(Keeping, Name) && oneAlong(X.Object, Dim, Hops - 1);
}

/// A whole tensor beside rows that lie along another dimension than the first, with as many dimensions: it is cut along
/// that where it is picked there, as the batch was, or a vector with the batch's rows is made a row of; or has one
/// place there. False if none of these is known.
bool Interpreter::besideAcross(ir::ExprId E, unsigned Dim, uint32_t Batch, const Loop &Step) {
  E = P.unconverted(E);
  if (isParameter(E) || oneAlong(E, Dim))
    return true;
  if (const ir::Expr &X = P.Code.Exprs[E]; X.Kind == ExprKind::Ref && X.Var != None)
    if (const ir::ExprId Made = assignedBy({X.Var, {}}); Made != None)
      E = P.unconverted(Made);
  const ir::Expr &X = P.Code.Exprs[E];
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (X.Kind == ExprKind::Call && X.Object != None && Dim == 1 &&
      llvm::is_contained({"unsqueeze", "view", "reshape"}, Name)) { // `y.unsqueeze(0)`, `y.view({1, -1})`
    const Value &Of = Last[X.Object];
    std::vector<ir::ExprId> Shape;
    for (ir::ExprId Arg : X.Args)
      collectItems(P, Arg, Shape);
    const bool Row = Name == "unsqueeze" ? Shape.size() == 1 && integer(Shape[0]) == 0
                                         : Shape.size() == 2 && integer(Shape[0]) == 1 && integer(Shape[1]) == -1;
    if (Row && Of.replicated() && !Of.Trained && Of.Rank == 1 && Of.Rows == Batch)
      return cut(cutPoint(X.Object, Step), Step.Statement) || cut(X.Object, Step.Statement);
  }
  if (X.Kind != ExprKind::Call || !llvm::is_contained({"index_select", "slice", "narrow"}, Name) || X.Args.empty() ||
      integer(X.Args[0]) != int64_t(Dim) || Cuts.count(E) || !X.Where.Editable)
    return false;
  Turned.insert(E);
  return cut(E, Step.Statement, Dim);
}

/// What was cut outside of the steps keeps its rows in all of them, and so does a state that the first step starts
/// without.
void Interpreter::carry() {
  for (const auto &[L, V] : Current)
    if (V.Nothing)
      Carried[L] = true;
    else if (V.Kind == Placement::Sharded && V.Source != None &&
             (Cuts.count(V.Source) || P.Code.Exprs[V.Source].Name == "accelerate::Accelerator::shard"))
      Carried[L] = false;
}

/// A state of the program's own, `h = torch::tanh(input(x) + recurrent(h))`: this rank's rows of an earlier step that a
/// step reads. What the first one starts from is cut, from the next run on.
bool Interpreter::cutStart(const Location &L, const Value &Kept) {
  const Loop *Step = CutLoops.empty() || Kept.Was != Placement::Sharded ? nullptr : stepLoop();
  if (!Step || !Step->Entry)
    return false;
  auto Start = Step->Entry->find(L);
  if (Start == Step->Entry->end() || !Start->second.replicated() || Start->second.Trained ||
      Start->second.AssignedBy == None)
    return false;
  const ir::ExprId Made = P.unconverted(Start->second.AssignedBy);
  const bool Empty = P.Code.Exprs[Made].Kind == ExprKind::Construct && P.Code.Exprs[Made].Args.empty();
  if (!P.Code.Exprs[Made].Where.Editable || P.Code.type(Made).Kind != TypeKind::Tensor || Empty)
    return false;
  Turned.insert(Made);
  return cut(Made, Step->Statement, Kept.Dim);
}

/// `pad_sequence(rows, true)`: of rows of all lengths, each padded to the longest of the batch, which may be another
/// rank's. Its rows lie along the second dimension if it isn't told to put them first.
Value Interpreter::padded(ir::ExprId E, const ir::Expr &X, const Value &Rows) {
  Value Result = Rows;
  Result.forgetRank();
  Result.Listed = false;
  if (Rows.Kind != Placement::Sharded)
    return Result;
  if (!Rows.Listed)
    return Value::unknown("pads tensors that aren't the rows of a batch one by one (`" + X.Name + "`)", E);
  const ir::Expr *First = X.Args.size() > 1 ? &P.Code.Exprs[P.unconverted(X.Args[1])] : nullptr;
  const bool Told = First && First->Kind == ExprKind::Literal;
  if (First && !Told)
    return Value::unknown("puts a batch's rows along a dimension that isn't known here (`" + X.Name + "`)", E);
  if (!PaddedForAll.count(E) && !coerce(E, "pad", Rows))
    return Value::unknown("is padded to the longest of this rank's rows, where not every rank comes along", E);
  Result.Dim = Told && First->Name == "true" ? 0 : 1;
  Result.Least = 2;
  Result.RankOf = rankOf(E);
  return Result;
}

} // namespace migrate
