//===- InterpreterRows.cpp - Batches that no loader made ------------------===//
//
// A slice of a tensor, an index draw, a replay sample, the batch of a loader of the program's own: whole on every rank
// until it is cut. Where the training step's loss is whole, what met the model's values on the way to it is cut, as
// early in the step as it has a place of its own; the run starts again, and what follows types or is reported.
//
// Which other tensors have the batch's rows is told by names for the first dimension's extent: slices with the same
// bounds, rows picked by the same indices, shapes with the same number, fields of the same object.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// An expression by its text: equal texts of equal variables mean equal values within a step.
std::string Interpreter::spelled(ir::ExprId E) const {
  if (E == None)
    return "";
  const ir::Expr &X = P.Code.Exprs[E];
  if ((X.Kind == ExprKind::Cast || X.Kind == ExprKind::Construct || X.Kind == ExprKind::List) && X.Args.size() == 1)
    return spelled(X.Args[0]);
  std::string Text = X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field ? "v" + std::to_string(X.Var) : X.Name;
  if (X.Kind == ExprKind::This && !Frames.empty() &&
      Frames.back().This) { // of which object, `at` of one reader or another
    Text = "o" + std::to_string(Frames.back().This->Root);
    for (ir::VarId Field : Frames.back().This->Path)
      Text += "." + std::to_string(Field);
  }
  if (X.Object != None)
    Text = spelled(X.Object) + "." + Text;
  Text += "(";
  for (ir::ExprId Arg : X.Args)
    Text += spelled(Arg) + ",";
  return Text + ")";
}

/// Whether the rows that `x.index({Slice(a, b)})` picks begin at the same one in every step.
bool Interpreter::startsAtConstant(ir::ExprId E) const {
  bool Constant = true;
  for (ir::ExprId Item : indexItems(P.Code.Exprs[E])) {
    if (!StringRef(P.Code.type(Item).Name).ends_with("indexing::Slice"))
      continue;
    const std::vector<ir::ExprId> &Bounds = P.Code.Exprs[P.unconverted(Item)].Args;
    Constant &= Bounds.empty() || Bounds[0] == None || integer(Bounds[0]) ||
                StringRef(P.Code.Exprs[P.unconverted(Bounds[0])].Name).ends_with("None");
    break; // the rows
  }
  return Constant;
}

/// Whether a whole tensor beside rows of a batch has as many of them, however its own are spelled: what is aligned with
/// the batch's dimension has its extent, or is one row. A window that moves with the steps is taken for rows where the
/// numbers of dimensions aren't known.
bool Interpreter::besideRows(const Value &V, const Value &Local) const {
  if (V.Rows <= NoRows || V.Trained || Local.Dim != 0)
    return false;
  if (V.Rank >= 0 && Local.Rank >= 0)
    return V.Rank == Local.Rank && !Uncounted.count(V.Rows);
  return Windows.count(V.Rows) != 0 && (V.Rank != 1 || Local.Least <= 1);
}

/// Whether both count the rows of items, joined, of lists that one loop fills, or one such rows, and the other the
/// items.
bool Interpreter::joinedAlike(uint32_t A, uint32_t B) const {
  const auto OfA = Joined.find(A), OfB = Joined.find(B);
  if (OfA != Joined.end() && OfB != Joined.end())
    return OfA->second == OfB->second;
  auto Of = [&](uint32_t Name, uint32_t Items) {
    auto It = Joined.find(Name);
    return It != Joined.end() && It->second == Items;
  };
  return Of(A, B) || Of(B, A);
}

/// A vector beside rows of which the number of dimensions isn't known, `weight * error`: numbers for the rows, or for
/// features. What a function of the project's gives in each step is taken for the former, which a remark tells.
bool Interpreter::besideUnknown(ir::ExprId E, const Value &V, const Value &Local, const Loop &Step) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (V.Rank != 1 || V.Rows <= NoRows || V.Trained || Local.Rank >= 0 || Local.Dim != 0 || X.Kind != ExprKind::Ref)
    return false;
  ir::ExprId From = assignedBy({X.Var, {}});
  From = From == None ? None : P.unconverted(From);
  return From != None && P.Code.Exprs[From].Kind == ExprKind::Call && !P.bodies(P.Code.Exprs[From]).empty() &&
         P.Code.Stmts[Step.Statement].Where.contains(P.Code.Exprs[From].Where);
}

/// The extent of the first dimension of a whole result.
uint32_t Interpreter::rowsOf(ir::ExprId E, const ir::Expr &X, const Operation *Op,
                             const std::vector<ir::ExprId> &Operands) {
  if (X.Kind == ExprKind::Index) {
    uint32_t Each = Last[X.Object].Rows; // what all items of a list have
    if (P.Code.type(X.Object).Kind == TypeKind::Tensor || Each > NoRows)
      return P.Code.type(X.Object).Kind == TypeKind::Tensor ? 0 : Each;
    uint32_t Name = named("i:" + spelled(E));
    Uncounted.insert(Name);
    return Name;
  }
  if (Operands.empty())
    return ownRowsName(E);
  uint32_t First = Last[Operands[0]].Rows;
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (X.Kind == ExprKind::Call && !Op && Name == "register_buffer")
    return Last[Operands.back()].Rows; // what it is given
  if (X.Kind == ExprKind::Call && !Op)
    return ownRowsName(E);
  if (P.Code.type(Operands[0]).Kind != TypeKind::Tensor && P.Code.type(E).Kind == TypeKind::Tensor &&
      StringRef(X.Name).starts_with("std::")) // a field of a tuple
    return First > NoRows ? First : ownRowsName(E);
  std::vector<ir::ExprId> Items; // numbers, in order
  for (ir::ExprId Operand : Operands)
    if (P.Code.type(Operand).Kind == TypeKind::Integer)
      Items.push_back(Operand);
  auto Dim = [&](size_t I) -> std::optional<int64_t> {
    return I < Items.size() ? integer(Items[I]) : std::optional<int64_t>();
  };
  if (Op && (*Op == Operation::Factory || *Op == Operation::Noise)) {
    if (Name == "tensor" || Name == "Tensor" || Name == "scalar_tensor") {
      bool Listed = false; // `torch::tensor({{0, 0}, {0, 1}})`
      if (!X.Args.empty())
        P.forEachExpr(X.Args[0], [&](ir::ExprId Sub) { Listed |= P.Code.Exprs[Sub].Kind == ExprKind::List; });
      std::vector<ir::ExprId> Numbers; // `torch::tensor({0.1})`, one that broadcasts
      if (!X.Args.empty())
        collectItems(P, X.Args[0], Numbers);
      if (Listed && Numbers.size() == 1 && P.Code.type(Numbers[0]).number())
        return NoRows;
      if (uint32_t Length = lengthNamed(X.Args.empty() ? Operands[0] : X.Args[0]))
        return Length;
      return !Listed && P.Code.type(Operands[0]).number() ? NoRows : ownRowsName(E);
    }
    if (makesNumber(X))
      return NoRows;
    for (ir::ExprId Arg : X.Args) // `randint(0, 10, {rows})`: the size, not what it draws
      if (Arg != None && StringRef(P.Code.type(Arg).Name).contains("ArrayRef<")) {
        std::vector<ir::ExprId> Size;
        collectItems(P, Arg, Size);
        if (!Size.empty() && Name == "from_blob" && overWhole(X) && allRowsCounted(Size[0]))
          return BatchRows;
        if (!Size.empty() && P.Code.type(Size[0]).Kind == TypeKind::Integer)
          return rowsNamed(Size[0]);
      }
    if ((Name == "linspace" || Name == "logspace") && X.Args.size() > 2) // from, to, how many
      return rowsNamed(X.Args[2]);
    if (Name == "arange" && Items.size() > 1) { // from one number to another
      uint32_t Window = named("p:arange" + spelled(E));
      if (!Dim(0))
        Windows.insert(Window);
      return Window;
    }
    return Items.empty() ? ownRowsName(E) : rowsNamed(Items.front());
  }
  enum { Keep, Picked, Reduced, Fresh, Other };
  int Kind = llvm::StringSwitch<int>(Name)
                 .Cases("slice", "narrow", "index_select", "index", "unfold", Picked)
                 .Cases("sum", "mean", "max", "min", "argmax", "argmin", Reduced)
                 .Cases("norm", "any", "all", "std", "var", Reduced)
                 .Cases("select", "permute", "transpose", "t", "stack", Fresh)
                 .Case("pad_sequence", Fresh)
                 .Cases("view", "reshape", "flatten", "squeeze", "unsqueeze", Other)
                 .Default(Keep);
  if (Kind == Picked) {
    if (Name != "index" && Dim(0) != 0)
      return First;
    if (std::vector<ir::ExprId> Items = Name == "index" ? indexItems(X) : std::vector<ir::ExprId>(); !Items.empty())
      if (const ir::Expr &Rows = P.Code.Exprs[P.unconverted(Items[0])];
          StringRef(P.Code.type(P.unconverted(Items[0])).Name).ends_with("indexing::Slice") && Rows.Args.empty())
        return First; // all of them
    std::string Text;
    for (ir::ExprId Operand : llvm::drop_begin(Operands)) {
      uint32_t Rows = Last[Operand].Rows;
      bool Tensor = P.Code.type(Operand).Kind == TypeKind::Tensor;
      if (Tensor && Rows > NoRows) // `x.index_select(0, torch::randperm(8))` of 8 rows has as many again
        return Exactly.count(Rows) && sameRows(First, Rows) ? First : Rows;
      Text += spelled(Operand) + ";";
    }
    // As many as a loader's batch has, `table.slice(0, 0, x.size(0))`, counted together.
    if ((Name == "slice" || Name == "narrow") && Items.size() > 2 && Dim(1) == 0 && allRowsCounted(Items[2]))
      return BatchRows;
    uint32_t Window = named("p:" + Name.str() + Text);
    if (Name == "index" ? !startsAtConstant(E) : Items.size() > 1 && !Dim(1))
      Windows.insert(Window);
    if (Items.size() > 2 && (Name == "slice" || Name == "narrow"))
      toldBy(Window, Name == "slice" ? distance(Items[1], Items[2]) : Items[2]);
    if (Items.size() > 2 && Name == "slice" && Dim(1) == 0 &&
        P.Code.Exprs[P.unconverted(Items[2])].Kind == ExprKind::Ref) // `x.slice(0, 0, half)`
      Lengths[Window] = Items[2];
    return Window;
  }
  auto AlsoSpelled = [&] { // of what has the same rows, equal arguments make equal numbers of them
    std::string Text = std::to_string(First) + Name.str();
    for (ir::ExprId Arg : X.Args)
      if (Arg != Operands[0]) // `torch::split(x, 6)` is `x.split(6)`
        Text += (Arg == None ? "" : spelled(Arg)) + ";";
    return Text;
  };
  // `bias.expand({x.size(0), 4})`; of one row, `w.unsqueeze(0).repeat({n, 1})`.
  const bool Spreads = llvm::is_contained({"repeat", "tile", "repeat_interleave"}, Name);
  const auto Known = RowCounts.find(First);
  const bool One = First == NoRows || (Known != RowCounts.end() && Known->second == 1);
  if (!Items.empty() && !Dim(0) && (Name == "expand" || (Spreads && One)))
    return rowsNamed(Items[0]);
  // `grid.repeat({4, 1})`: as many times the rows, or of a vector's.
  if (First > NoRows && Spreads && Dim(0) != 1)
    return named("r:" + AlsoSpelled());
  // Parts of a whole have as many rows as equal parts of what has the same.
  if (llvm::is_contained({"split", "chunk", "tensor_split", "split_with_sizes"}, Name) && First > NoRows &&
      (Items.size() < 2 || Dim(1) == 0)) {
    const uint32_t Part = named("c:" + AlsoSpelled());
    Windows.insert(Part);
    return Part;
  }
  // `x.sum(dims)`, which may be the rows
  const bool Held = Items.empty() && Operands.size() > 1 && P.Code.type(Operands[1]).Kind == TypeKind::Container;
  if (Kind == Reduced && Held)
    return 0;
  if (Kind == Reduced)
    return Items.empty() ? NoRows : Dim(0) == 0 || !Dim(0) ? ownRowsName(E) : First;
  if (Name == "select" && Dim(0) && *Dim(0) > 0) // the same of all rows
    return First;
  // `x.transpose(1, 2)`, `x.permute({0, 2, 1})`: the first dimension stays where it is.
  auto Behind = [&](std::optional<int64_t> D) { return D && (*D > 0 || (*D < 0 && Last[Operands[0]].Rank + *D > 0)); };
  if ((Name == "transpose" && Items.size() == 2 && Behind(Dim(0)) && Behind(Dim(1))) ||
      (Name == "permute" && Dim(0) == 0))
    return First;
  if (Kind == Fresh)
    return Name == "stack" && (Items.empty() || Dim(0) == 0) ? lengthNamed(Operands[0]) : 0;
  if (Name == "view" || Name == "reshape") {
    std::optional<int64_t> N = Dim(0);
    // `torch::tensor(numbers).view({-1, 2})`: of a vector, several numbers for each row
    if (N == -1 && Last[Operands[0]].Rank == 1 &&
        llvm::any_of(llvm::drop_begin(Items), [&](ir::ExprId Size) { return integer(Size) != 1; }))
      return ownRowsName(E);
    return Items.empty() ? 0 : N == -1 ? First : rowsNamed(Items[0]);
  }
  if (Name == "unsqueeze" && Dim(0) == 0) // one, which broadcasts
    return NoRows;
  if (Name == "flatten" || Name == "squeeze" || Name == "unsqueeze")
    return Dim(0) && *Dim(0) == 0 ? 0 : Name == "flatten" && Items.empty() ? 0 : First;
  if (llvm::is_contained({"cat", "concat", "concatenate"}, Name)) {
    if (Dim(0) && *Dim(0) != 0)
      return First;
    // `states.push_back(state.unsqueeze(0))`: as many rows as the list has items
    const uint32_t Length = P.Code.type(Operands[0]).Kind == TypeKind::Container ? lengthNamed(Operands[0]) : 0;
    if (Length && First == NoRows)
      return Length;
    const uint32_t Own = ownRowsName(E);
    if (Length)
      Joined[Own] = Length;
    return Own;
  }
  if (llvm::is_contained({"vstack", "row_stack", "hstack", "dstack"}, Name)) // side by side, of those that have rows
    return Last[Operands[0]].Rank >= 2 && (Name == "hstack" || Name == "dstack") ? First : ownRowsName(E);
  if (Op && (*Op == Operation::Loss || *Op == Operation::ClassLoss))
    return NoRows;
  if (Op && *Op == Operation::Contract)
    return X.Name == "at::embedding" && Operands.size() > 1 ? Last[Operands[1]].Rows : First;
  // Row by row: what has rows at all agrees on them; parameters have none, what is computed with them may. What has
  // fewer dimensions than another is broadcast along its rows.
  int Longest = -1;
  if (meetsRowByRow(X, Op))
    for (ir::ExprId Operand : Operands)
      Longest = std::max<int>(Longest, Last[Operand].Rank);
  for (bool Trained : {false, true}) {
    uint32_t Rows = NoRows;
    for (ir::ExprId Operand : Operands) {
      TypeKind Type = P.Code.type(Operand).Kind;
      uint32_t These = Last[Operand].Rows;
      if ((Type != TypeKind::Tensor && X.Kind != ExprKind::Construct) || These == NoRows ||
          Last[Operand].Trained != Trained || isParameter(Operand) ||
          (Last[Operand].Rank >= 0 && Last[Operand].Rank < Longest))
        continue;
      Rows = Rows == NoRows ? These : sameRows(Rows, These);
    }
    if (Rows != NoRows)
      return Rows;
  }
  return NoRows;
}

/// The innermost loop around here that trains, or None.
ir::StmtId Interpreter::trainingSteps() const {
  auto Step = llvm::find_if(llvm::reverse(Loops), [](const Loop &L) { return L.Trains; });
  return Step == Loops.rend() ? None : Step->Statement;
}

/// The innermost loop around here that trains, if its batches aren't a loader's.
const Interpreter::Loop *Interpreter::stepLoop() const {
  for (auto It = Loops.rbegin(); It != Loops.rend(); ++It) {
    if (It->Loader != None)
      return nullptr;
    if (It->Trains || By.Evaluations.count(It->Statement))
      return &*It;
  }
  return nullptr;
}

/// The rows that all parts have of what `X` is one part of: an item of a list, half of a pair.
uint32_t Interpreter::rowsOfAll(const ir::Expr &X) const {
  if (X.Kind == ExprKind::Index) {
    auto List = Last.find(X.Object);
    return List == Last.end() ? 0 : List->second.Rows;
  }
  const ir::Expr &Pair = P.Code.Exprs[X.Object];
  if (X.Kind != ExprKind::Field || Pair.Kind != ExprKind::Ref ||
      !StringRef(P.Code.type(X.Object).Name).starts_with("std::pair<"))
    return 0;
  auto Both = Current.find(Location{Pair.Var, {}});
  return Both == Current.end() ? 0 : Both->second.Rows;
}

/// Where the call `X` may write a batch by its argument `I`.
std::optional<Location> Interpreter::written(const ir::Expr &X, size_t I) {
  TypeKind Kind = P.Code.type(X.Args[I]).Kind;
  bool Holds =
      Kind == TypeKind::Tensor || Kind == TypeKind::Example || Kind == TypeKind::Container || Kind == TypeKind::Unknown;
  return Holds && I < 32 && (X.Writable >> I & 1) ? lvalue(X.Args[I]) : std::nullopt;
}

/// A call of a loader that users have taught: what it returns and what it's given to fill is one batch, whole and alike
/// on every rank, and every tensor in it has the batch's rows.
Value Interpreter::yielded(ir::ExprId E, const ir::Expr &X) {
  Value Batch = Value::of(Placement::Replicated, E);
  Batch.Rows = named("l:" + (X.Object == None ? X.Name : spelled(X.Object)));
  Filled.insert(Batch.Rows);
  if (X.Object != None)
    eval(X.Object);
  for (size_t I = 0; I != X.Args.size(); ++I) {
    if (std::optional<Location> L = written(X, I)) {
      write(*L, Batch, None);
      continue;
    }
    Value V = eval(X.Args[I]);
    if (V.reducible() && numeric(X.Args[I]))
      demandReplicated(X.Args[I], V, "given to a loader");
    else if (!V.replicated())
      note("opaque-loader", X.Args[I], V,
           "this loader is given what differs between ranks, so its batches would differ");
  }
  if (P.Code.type(E).number())
    Batch.Rows = NoRows;
  return Batch;
}

/// What a call without a body, in a step on the program's own batches, does to variables that were declared empty: it
/// fills them. The tensors of one object have the same rows; of two objects that isn't known.
void Interpreter::fill(ir::ExprId E, const ir::Expr &X) {
  if (!stepLoop())
    return;
  std::vector<Location> Empty;
  for (size_t I = 0; I != X.Args.size(); ++I)
    if (std::optional<Location> L = written(X, I))
      if (Fills.count(X.Args[I]) || read(*L, X.Args[I]).Kind == Placement::Zero) {
        Fills.insert(X.Args[I]);
        Empty.push_back(*L);
      }
  for (const Location &L : Empty) {
    Value Batch = Value::of(Placement::Replicated, E);
    if (Empty.size() == 1)
      Filled.insert(Batch.Rows = ownRowsName(E));
    write(L, Batch, None);
  }
}

/// What a call without a body is given to write to, `torch::load(targets, path)`, holds something from then on.
void Interpreter::readsInto(ir::ExprId E, const ir::Expr &X) {
  if (StringRef(X.Name).starts_with("std::")) // `std::tie`, `std::move`
    return;
  for (size_t I = 0; I != X.Args.size(); ++I)
    if (std::optional<Location> L = written(X, I); L && holdsTensors(P.Code.type(X.Args[I])))
      if (const Value V = read(*L, X.Args[I]); V.Kind == Placement::Zero && !V.Trained) { // no leaf's `torch::load`
        Value Read = Value::of(Placement::Replicated, E);
        Read.Rows = ownRowsName(E);
        write(*L, Read, None);
      }
}

/// Whether a leaf is made in front of the training, or anew in each of its steps, by a program that takes derivatives
/// at its inputs: points, not parameters.
bool Interpreter::isPoint(ir::ExprId E) {
  if (R.PointCalls.count(E))
    return true;
  if (!Derivatives)
    Derivatives = llvm::any_of(P.Code.Exprs, [&](const ir::Expr &X) {
      if (X.Name != "torch::autograd::grad" || X.Args.size() < 2)
        return false;
      if (X.Args.size() > 2 && X.Args[2] != None && !P.Code.Exprs[X.Args[2]].Args.empty())
        return true;
      std::vector<ir::ExprId> Of; // `grad({u.sum()}, {x})`: each row's
      collectItems(P, X.Args[0], Of);
      return Of.size() == 1 && P.Code.Exprs[madeAs(Of[0])].Name == "at::Tensor::sum";
    });
  const Loop *Step = *Derivatives ? stepLoop() : nullptr;
  if (!Step)
    return false;
  bool Innermost = true;
  P.forEachStmt(Step->Statement, [&](ir::StmtId S) {
    bool IsLoop = P.Code.Stmts[S].Kind == ir::StmtKind::Loop || P.Code.Stmts[S].Kind == ir::StmtKind::RangeFor;
    Innermost &= S == Step->Statement || !IsLoop || !R.reachesBackward(S);
  });
  return Innermost;
}

/// What an expression computes with, lists of tensors one by one; not the module that does it.
std::vector<ir::ExprId> Interpreter::operandsOf(const ir::Expr &X) const {
  std::vector<ir::ExprId> Operands;
  std::function<void(ir::ExprId)> Collect = [&](ir::ExprId Operand) {
    if (Operand == None)
      return;
    const ir::Expr &A = P.Code.Exprs[Operand];
    bool List =
        A.Kind == ExprKind::List || (A.Kind == ExprKind::Construct && P.Code.type(Operand).Kind != TypeKind::Tensor);
    if (!List || A.Args.empty())
      Operands.push_back(Operand);
    else
      llvm::for_each(A.Args, Collect);
  };
  if (X.Object != None && P.Code.type(X.Object).Kind != TypeKind::Module)
    Collect(X.Object);
  llvm::for_each(X.Args, Collect);
  return Operands;
}

/// Whether a layer is given one sample, such as the state of an environment: its first dimension is one of features.
bool Interpreter::takesOneSample(ir::ExprId E, const ir::Expr &X, Operation Op, const Value &V, const Value &Result) {
  if (Op == Operation::Container)
    return V.Rank == 1 && Result.Rank == 1;
  bool Ignored;
  const OperationRow *Row = Op == Operation::Contract && V.Rank > 0 ? Table.find(X.Name, Ignored) : nullptr;
  if (!Row || Row->Signatures.empty() || Row->Signatures.front().Inputs.size() != 1)
    return false;
  Value Rows = Value::sharded(0, E);
  Rows.setRank(V.Rank);
  return contract(Row->Signatures, Row->Of, {Rows}, E, X.Name).Kind != Placement::Sharded;
}

} // namespace migrate
