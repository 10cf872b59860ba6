//===- InterpreterTogether.cpp - Rows that all others of a batch meet -----===//
//
// A loss that compares the rows of a batch with each other, or scales them by their deviation, needs all of them on
// every rank. They are brought together, with their graph, where the model has made them; what is computed from there
// on is equal on all ranks, and so is its gradient. Right for anything that is a function of the whole batch; tried
// where nothing cheaper was found.
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

/// A tensor of which the ranks' parts, of one shape, make the whole: a mean, a sum, over the rows.
static bool addsUp(const Value &V) { return V.Kind == Placement::Mean || (V.Kind == Placement::Partial && V.Fresh); }
/// Whether it is a largest or smallest of a batch's rows that no gradient goes through.
static bool isExtreme(const Value &V) { return V.Kind == Placement::Extreme && !V.Running && !V.Trained; }

/// What holds the rows of `E` along its first dimension: `E`, what it is a view of, or what the step's variable was
/// made of by the model, so that it is brought together once.
ir::ExprId Interpreter::rowsAt(ir::ExprId E) const {
  ir::ExprId Found = None;
  bool OfView = false; // what a view is of is brought together with its other uses
  // In a loop within the step, it would be each time.
  const bool Again = !Loops.empty() && Loops.back().Mode == LoopMode::Plain;
  for (int Hops = 0; E != None && Hops != 8; ++Hops) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    auto It = Last.find(E);
    bool Largest = Found == None && It != Last.end() && It->second.Kind == Placement::Extreme; // the rows behind it
    if (It == Last.end() || (It->second.Kind != Placement::Sharded && !Largest))
      return Found;
    bool Rows = gatherable(E, It->second), View = X.Kind == ExprKind::Call && isView(X.Name);
    // What a macro writes is named as such, if there is nothing else.
    bool Better = Found == None || !P.Code.Exprs[Found].Where.Editable ||
                  ((OfView || Again || It->second.Trained) && X.Where.Editable);
    if (Rows && Better)
      Found = E;
    OfView = View;
    if (X.Kind == ExprKind::Ref && X.Var != None) {
      // What the program read or cut stays in parts: a model that runs on it has less to do on each rank.
      if (Found != None && !It->second.Trained && !Again)
        return Found;
      auto Named = Alias.find(X.Var);
      E = assignedBy(Named == Alias.end() ? Location{X.Var, {}} : Named->second);
    } else if ((Found == None || View) && X.Kind == ExprKind::Call) {
      E = X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Tensor ? X.Object
          : X.Args.empty()                                                   ? None
                                                                             : X.Args[0];
    } else if (Found == None && X.Kind == ExprKind::Binary) { // `x.max() - 1`
      auto Side = llvm::find_if(X.Args, [&](ir::ExprId Arg) {
        auto Of = Last.find(Arg);
        return Of != Last.end() && (Of->second.Kind == Placement::Extreme || Of->second.Kind == Placement::Sharded);
      });
      E = Side == X.Args.end() ? None : *Side;
    } else {
      return Found;
    }
  }
  return Found;
}

/// What a variable of the step was made of, where that is a tensor to be brought together; else `E`.
ir::ExprId Interpreter::madeAt(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Kind != ExprKind::Ref || X.Var == None || P.Code.type(E).Kind != TypeKind::Tensor)
    return E;
  auto Named = Alias.find(X.Var);
  Location L = Named == Alias.end() ? Location{X.Var, {}} : Named->second;
  ir::ExprId Made = assignedBy(L);
  auto It = Made == None ? Last.end() : Last.find(Made);
  return It != Last.end() && ofStep(L) && (addsUp(It->second) || isExtreme(It->second)) &&
                 P.Code.Exprs[Made].Where.Editable
             ? Made
             : E;
}

/// What a variable of the step was made of, if that is computed from rows of the batch; None of any other.
ir::ExprId Interpreter::madeRows(ir::VarId V) const {
  if (V == None || Alias.count(V) || !ofStep({V, {}}))
    return None;
  const ir::ExprId Made = assignedBy({V, {}});
  const auto Rows = Made == None ? Last.end() : Last.find(Made);
  return Rows != Last.end() && gatherable(Made, Rows->second) && P.Code.Exprs[Made].Where.Editable &&
                 P.Code.Exprs[P.unconverted(Made)].Kind == ExprKind::Call
             ? Made
             : None;
}

ir::ExprId Interpreter::madeRowsOf(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  return X.Kind == ExprKind::Ref ? madeRows(X.Var) : None;
}

/// `std::vector<float> v(s.data_ptr<float>(), …)`, `std::count(s.data_ptr<float>(), …)`, `v.insert(v.end(),
/// s.data_ptr<float>(), …)`: numbers of this rank's rows, of which nothing tells any more that they are.
void Interpreter::readsThroughPointers(ir::ExprId E, const ir::Expr &X) {
  const StringRef Does = X.Kind == ExprKind::Construct ? StringRef(P.Code.type(E).Name) : StringRef(X.Name);
  if (!Recording || ofOneRank() || !Does.starts_with("std::") || X.Args.size() < 2 ||
      Does.starts_with("std::basic_ostream") || Does == "std::copy" || Does == "std::copy_n" || Does == "std::memcpy")
    return;
  const bool Inserts = X.Kind == ExprKind::Call && X.Object != None && Does.ends_with("::insert");
  const ir::ExprId From = X.Args[Inserts], Tensor = From == None ? None : pointee(P, From);
  if (Tensor == None)
    return;
  const Value &V = Last[Tensor];
  if (V.Kind != Placement::Sharded)
    return;
  // `scores.insert(scores.end(), p.data_ptr<float>(), …)` for later: all ranks' rows
  if (const ir::ExprId Made = Inserts && trainsHere() ? madeRowsOf(Tensor) : None;
      Made != None && gatherable(Made, Last[Made]) && BroughtTogether.insert(Made).second)
    Restart = true;
  else
    note("row-loop", E, V, "reads this rank's rows through a pointer, by the numbers of all");
}

/// Whether `E` is a permutation of all rows of a batch, `torch::randperm(x.size(0))`.
bool Interpreter::permutes(ir::ExprId E) const {
  for (int Hops = 0; E != None && Hops != 8; ++Hops) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::randperm"))
      return !X.Args.empty() && BroughtTogether.count(X.Args[0]);
    E = X.Kind == ExprKind::Call ? X.Object : X.Kind == ExprKind::Ref && X.Var != None ? assignedBy({X.Var, {}}) : None;
  }
  return false;
}

/// Whether all ranks are in a step of training together.
bool Interpreter::trainsHere() const {
  bool Trains = llvm::any_of(Loops, [](const Loop &L) { return L.Mode == LoopMode::Rows && L.Trains; });
  return Trains && !ofOneRank() && Divergent == 0;
}

/// `torch::autograd::grad({u}, {x})`, or a function of the program's that does so with what it is given.
static bool differentiates(const Program &P, const ir::Expr &X) {
  auto Names = [&](ir::ExprId List, llvm::ArrayRef<ir::VarId> Params) {
    std::vector<ir::ExprId> Items;
    collectItems(P, List, Items);
    return llvm::any_of(
        Items, [&](ir::ExprId Item) { return llvm::is_contained(Params, P.Code.Exprs[P.unconverted(Item)].Var); });
  };
  bool Does = X.Name == "torch::autograd::grad";
  for (ir::FuncId F : P.bodies(X))
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId Sub) {
      const ir::Expr &Y = P.Code.Exprs[Sub];
      const std::vector<ir::VarId> &Params = P.Code.Functions[F].Params;
      Does |= Y.Name == "torch::autograd::grad" && Y.Args.size() > 1 && Names(Y.Args[0], Params) &&
              Names(Y.Args[1], Params);
    });
  return Does;
}

/// Whether `X` runs over the rows that were brought together in what it is called on, `all.std({0})`: it has none then.
bool Interpreter::runsOverAll(const ir::Expr &X) const {
  bool Ignored;
  const OperationRow *Row = X.Kind == ExprKind::Call && X.Object != None ? Table.find(X.Name, Ignored) : nullptr;
  if (!Row || !llvm::is_contained({Operation::Sum, Operation::Mean, Operation::OverDim}, Row->Kind))
    return false;
  const ir::Expr &Of = P.Code.Exprs[P.unconverted(X.Object)];
  const ir::ExprId Named = Of.Kind == ExprKind::Ref && Of.Var != None ? assignedBy({Of.Var, {}}) : None;
  if (!BroughtTogether.count(X.Object) && !BroughtTogether.count(P.unconverted(X.Object)) &&
      (Named == None || !BroughtTogether.count(Named)))
    return false;
  const Dimensions Dims = dimensions(*Row, arguments(*Row, X.Args), X.Object);
  return !Dims.Unknown && llvm::is_contained(Dims.Known, 0);
}

/// Whether `x.flip(0)`, `x.roll(1, 0)` gives the rows in another order.
bool Interpreter::turnsRows(const ir::Expr &X) const {
  std::vector<ir::ExprId> Dims;
  if (!X.Args.empty())
    collectItems(P, X.Args.back(), Dims);
  return Dims.size() == 1 && integer(Dims[0]) == 0;
}

/// Has what `E` is computed from brought together, from the next run on, if all rows have to be.
void Interpreter::bringTogether(ir::ExprId E, Value &V) {
  const ir::Expr &X = P.Code.Exprs[E];
  // `std::vector<float> values(t.data_ptr<float>(), …)` of all rows
  if (X.Kind == ExprKind::Construct && V.replicated() && StringRef(P.Code.type(E).Name).starts_with("std::vector<"))
    V.AllRows |= llvm::any_of(X.Args, [&](ir::ExprId Arg) { return Arg != None && Last[Arg].AllRows; });
  bool Computes = X.Kind == ExprKind::Binary || X.Kind == ExprKind::Call || X.Kind == ExprKind::Index ||
                  X.Kind == ExprKind::Unary || X.Kind == ExprKind::Conditional;
  if (!Computes || Restart || (V.Kind == Placement::Unknown && writeTargets().count(E)))
    return; // what is written to can't be all rows
  std::vector<ir::ExprId> Operands = operandsOf(X);
  bool Whole = false, Local = false, Unfollowed = false;
  bool Model = X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module;
  for (ir::ExprId Operand : Operands) {
    const Value &Of = Last[Operand];
    Whole |= Of.AllRows && Of.replicated() && Of.Rank != 0 && P.Code.type(Operand).Kind == TypeKind::Tensor;
    Local |= Of.Kind == Placement::Sharded;
    Model |= Of.replicated() && Of.Trained; // `x.matmul(w)`
    Unfollowed |= Of.Kind == Placement::Unknown || Of.Kind == Placement::Own;
  }
  // `torch::eye(n)` of their number, which is a number itself as long as nothing is made of it.
  auto Counts = [&](ir::ExprId Operand) {
    return Last[Operand].AllRows && P.Code.type(Operand).Kind != TypeKind::Tensor;
  };
  auto Tensor = [&](ir::ExprId Operand) { return P.Code.type(Operand).Kind == TypeKind::Tensor; };
  if (Whole && V.replicated() && runsOverAll(X)) {
    V.AllRows = false;
    V.Rows = NoRows;
  } else if (V.replicated())
    V.AllRows |= Whole || (llvm::any_of(Operands, Counts) && (numeric(E) || llvm::none_of(Operands, Tensor)));
  // `x.index_select(0, torch::randperm(x.size(0)))` of all rows: a rank's own of them are a batch again.
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  const bool Permuted =
      ((Name == "index_select" || Name == "index") && Operands.size() >= 2 && permutes(Operands.back())) ||
      ((Name == "flip" || Name == "roll") && !V.Trained && turnsRows(X));
  if (Whole && V.replicated() && X.Object != None && Last[X.Object].AllRows && X.Where.Editable && Permuted &&
      OwnRows.insert(E).second)
    Restart = true;
  bool Stuck = V.Kind == Placement::Unknown && !Unfollowed;
  if (!trainsHere())
    return;
  // `x.select(1, 0).copy_(all)`: of what is written into this rank's rows, its own.
  if (Whole && X.Kind == ExprKind::Call && X.Object != None && Name == "copy_" && !X.Args.empty() &&
      Last[X.Object].Kind == Placement::Sharded && Last[X.Object].Dim == 0) {
    const int Into = Last[X.Object].Rank, From = Last[X.Args[0]].Rank;
    if ((Into < 0 || From < 0 || Into == From) && OwnRows.insert(X.Args[0]).second) {
      Restart = true;
      return;
    }
  }
  if (V.Kind == Placement::Sharded && Model) {
    Out.SharesOut = true;
    if (ir::StmtId Steps = trainingSteps(); Steps != None)
      Out.SharedSteps.insert(Steps);
  }
  // What LibTorch computes. Of another library's functions the user knows more: a row of the table tells it.
  bool Known = X.Kind != ExprKind::Call || StringRef(X.Name).starts_with("at::") ||
               StringRef(X.Name).starts_with("torch::") || StringRef(X.Name).starts_with("c10::") ||
               !P.bodies(X).empty();
  bool Leaf = Name == "grad" || Name == "requires_grad_" || Name == "set_requires_grad"; // itself, not what is like it
  if (!Stuck && !(Whole && Local))
    return;
  // Nothing was computed from what all ranks' `x` are joined into.
  if (!Known || Leaf || differentiates(P, X)) {
    V = Stuck ? V : Value::unknown("joins all rows of a batch with this rank's", E);
    return;
  }
  // A mean over the rows beside the rows: the mean of all of them will do.
  const bool Spreads = llvm::is_contained({"expand", "repeat", "tile", "broadcast_to"}, Name); // to as many rows
  auto Reduces = [&](ir::ExprId Operand) {
    const Value &Of = Last[Operand];
    return (P.Code.type(Operand).Kind == TypeKind::Tensor && (addsUp(Of) || isExtreme(Of))) ||
           (Of.reducible() && numeric(Operand) && !(Spreads && Of.Kind == Placement::Extent));
  };
  bool Reducible = llvm::any_of(Operands, Reduces);
  // A function that the loss is computed in is given all rows of what the model has made, and of what belongs to it:
  // it may be called for other things as well.
  auto Step = llvm::find_if(Loops, [](const Loop &L) { return L.Mode == LoopMode::Rows && L.Trains; });
  for (size_t At = Step->Frame + 1; At < Frames.size() && !Reducible; ++At) {
    auto Made = [&](ir::ExprId Arg) {
      return Arg != None && Last[Arg].Kind == Placement::Sharded && Last[Arg].Trained;
    };
    if (llvm::none_of(Frames[At].Args, Made))
      continue;
    Operands = Frames[At].Args;
    break;
  }
  const bool Points = X.Object != None && pointee(P, E) == X.Object;
  for (ir::ExprId Operand : Operands) {
    if (Operand == None)
      continue;
    if (Points && Operand == X.Object) { // of what has a name: a pointer into what a call returned would dangle
      if (const ir::ExprId Made = madeRowsOf(Operand); Made != None) {
        Restart |= BroughtTogether.insert(Made).second;
      } else {
        V = Value::unknown("points to this rank's rows", E);
        note("row-loop", E, V, V.Why);
      }
      continue;
    }
    ir::ExprId At = Reducible ? (Reduces(Operand) ? madeAt(Operand) : None) : rowsAt(Operand);
    if (At == None)
      continue;
    // What writes into rows would write into others, where they are named; what they are made of may be all.
    const ir::Expr &Rows = P.Code.Exprs[At];
    bool Named = Rows.Kind == ExprKind::Ref || Rows.Kind == ExprKind::Field;
    if (!Named || (!(Name.ends_with("_") && Operand == X.Object) && !writtenInParts(Rows.Var)))
      neededWhole(At);
  }
  if (!Stuck && !Restart)
    V = Value::unknown("joins all rows of a batch with this rank's", E);
  if (Restart || X.Kind != ExprKind::Call || X.Object == None || !Name.ends_with("_"))
    return;
  if (std::optional<Location> L = lvalue(X.Object))
    write(*L, V, E);
  else
    wroteInto(X.Object, V, E);
}

/// Rows are brought together from the next run on. What was cut to meet them as a rank's own is looked at anew.
void Interpreter::neededWhole(ir::ExprId Rows) {
  if (!BroughtTogether.insert(Rows).second)
    return;
  Restart = true;
  Cuts = By.CutToo;
  CutLoops.clear();
}

/// What `E` is, where it has been found to be needed as a whole.
Value Interpreter::allOf(ir::ExprId E, Value V) {
  if (V.Kind == Placement::Sharded && gatherable(E, V) && coerce(E, "all-gather", V)) {
    for (const Frame &F : Frames)
      if (F.Call != None && Recording)
        GathersWithin.insert(F.Call);
    Value All = Value::of(Placement::Replicated, E);
    All.takeRank(V);
    All.Trained = V.Trained;
    All.AllRows = true;
    return All;
  }
  if (V.reducible() && numeric(E)) {
    Value Count = demandReplicated(E, V, "computed with");
    Count.AllRows = V.Kind == Placement::Extent;
    return Count;
  }
  if (P.Code.type(E).Kind == TypeKind::Tensor && isExtreme(V)) { // `x / x.max()`
    Value Most = demandReplicated(E, V, "computed with");
    Most.takeRank(V);
    Most.Rows = NoRows;
    return Most;
  }
  if (P.Code.type(E).Kind == TypeKind::Tensor && addsUp(V) && bringParts(V, E)) {
    Value All = Value::of(Placement::Replicated, E);
    All.Trained = V.Trained;
    All.takeRank(V);
    All.Rows = NoRows;
    return All;
  }
  return V;
}

} // namespace migrate
