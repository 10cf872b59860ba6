//===- InterpreterShapes.cpp - Operations that are given sizes or places --===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// A batch's tensor: of how many dimensions, if LibTorch's own data sets tell; else as many as this field has.
Value Interpreter::ofField(ir::ExprId E, const Location &L, Value V) {
  // A copy of a field, `auto y = batch.target`, is the field's location.
  if (V.Kind == Placement::Sharded && V.Batch != None && !L.Path.empty() && V.Rank < 0 && V.RankOf == None &&
      P.Code.type(E).Kind == TypeKind::Tensor) {
    V.RankOf = L.Path.back();
    if (auto It = R.Loaders.find(V.Batch); It != R.Loaders.end() && !It->second.Made.empty()) {
      StringRef Loader = P.Code.type(It->second.Made[0]).Name;
      if (Loader.contains("torch::data::datasets::MNIST") && Loader.contains("torch::data::transforms::Stack"))
        V.setRank(P.Code.Vars[L.Path.back()].Name == "data" ? 4 : 1);
    }
  }
  // Whatever was read of one assignment has as many dimensions as all else that was.
  if (V.Kind == Placement::Sharded && V.Batch == None && V.Rank < 0 && V.RankOf == None && V.AssignedBy != None &&
      P.Code.type(E).Kind == TypeKind::Tensor) {
    std::string Place = "r:" + std::to_string(V.AssignedBy) + ":" + std::to_string(L.Root);
    for (ir::VarId Field : L.Path)
      Place += "." + std::to_string(Field);
    V.RankOf = uint32_t(P.Code.Vars.size() + P.Code.Exprs.size()) + named(Place);
    V.RankPlus = 0;
  }
  if (auto It = LeastRank.find(V.RankOf); It != LeastRank.end())
    V.Least = int8_t(std::max<int>(V.Least, It->second + V.RankPlus));
  return V;
}

/// The tensor of `x.sizes()`, or of a variable that is made so; None of anything else.
ir::ExprId Interpreter::shapeOf(ir::ExprId E) const {
  E = P.unconverted(E);
  if (auto Init = R.Init.find(P.Code.Exprs[E].Var); P.Code.Exprs[E].Kind == ExprKind::Ref && Init != R.Init.end())
    E = P.unconverted(Init->second);
  const ir::Expr &X = P.Code.Exprs[E];
  return X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::sizes") ? X.Object : None;
}

/// A tensor is known to have so many dimensions, since it is asked for one of them.
void Interpreter::hasAtLeast(const Value &V, ir::ExprId Tensor, int Dimensions) {
  if (V.RankOf != None) {
    int &Least = LeastRank[V.RankOf];
    Least = std::max(Least, Dimensions - V.RankPlus);
  } else if (Tensor != None && V.Rank < 0) {
    if (std::optional<Location> L = lvalue(Tensor); L && Current.count(*L))
      Current[*L].Least = int8_t(std::max<int>(Current[*L].Least, Dimensions));
  }
}

/// Tensors side by side, or behind each other.
Value Interpreter::concatenated(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In,
                                const Dimensions &Dims, const Arguments &Args) {
  const Value &First = In.Tensors.empty() ? In.Values[0] : In.Tensors[0];
  Value Result = First;
  Result.Batch = None;
  Result.Iterator = false;
  if (llvm::none_of(In.Values, [](const Value &V) { return V.Kind == Placement::Sharded; })) {
    std::vector<ir::ExprId> Items;
    if (!In.Exprs.empty()) {
      ir::ExprId List = P.unconverted(In.Exprs[0]);
      if (auto Init = R.Init.find(P.Code.Exprs[List].Var); P.Code.Exprs[List].Kind == ExprKind::Ref)
        List = Init == R.Init.end() ? None : Init->second; // `std::vector<torch::Tensor> terms = {…}`
      if (List != None)
        collectItems(P, P.unconverted(List), Items);
    }
    llvm::erase_if(Items, [&](ir::ExprId Item) { return P.Code.type(Item).Kind != TypeKind::Tensor; });
    if (!Items.empty())
      Result.forgetRank();
    // As many dimensions as each of them; some add those that are missing.
    const StringRef Plain = StringRef(X.Name).rsplit("::").second;
    const int Least = Plain == "dstack"                                                    ? 3
                      : llvm::is_contained({"vstack", "row_stack", "column_stack"}, Plain) ? 2
                                                                                           : 0;
    for (ir::ExprId Item : Items)
      if (Last[Item].Rank >= 0)
        Result.setRank(std::max<int>(Last[Item].Rank, Least));
    // `stack({weights.sum(), output.sum()})`: beside what is whole, a part of a sum isn't one of the whole.
    if (llvm::any_of(Items, [&](ir::ExprId Item) { return Last[Item].Kind == Placement::Replicated; }))
      for (ir::ExprId Item : Items)
        if (const Value V = Last[Item]; V.Kind == Placement::Partial || V.Kind == Placement::Extreme) {
          const Value Whole = nonLinear(V, Item, "put beside what is equal on all ranks");
          if (!Whole.replicated())
            return Whole;
          Result.Kind = Placement::Replicated;
          Result.Trained |= Whole.Trained;
        }
    if (Row.Kind == Operation::Stack)
      Result.addToRank(1);
    return Result;
  }
  // A whole tensor beside this rank's rows has more rows than they.
  std::vector<Value> Items;
  std::vector<ir::ExprId> Rows;
  bool Keeps = false; // `all = torch::cat({all, rows})`: the rows of all steps
  std::function<void(ir::ExprId)> Look = [&](ir::ExprId Item) {
    if (P.Code.type(Item).Kind == TypeKind::Tensor) {
      Items.push_back(eval(Item));
      std::optional<Location> L = lvalue(Item);
      if (Items.back().Kind == Placement::Sharded)
        Rows.push_back(Item);
      else
        Keeps |= L && outer(*L) && Items.back().replicated();
    } else {
      for (ir::ExprId Sub : P.Code.Exprs[Item].Args)
        Look(Sub);
    }
  };
  if (P.Code.Exprs[In.Exprs[0]].Kind != ExprKind::Ref)
    Look(In.Exprs[0]);
  if (Keeps && Row.Kind == Operation::Cat && Dims.Known == std::vector<int64_t>{0} &&
      llvm::all_of(Rows, [&](auto At) { return kept(At, Last[At]); })) {
    Result = Value::of(Placement::Replicated, E);
    Result.takeRank(First);
    return Result;
  }
  if (llvm::any_of(Items, [](const Value &V) { return V.Kind != Placement::Sharded; }))
    return Value::unknown("puts rows of a batch beside something that isn't cut like them", E);
  if (Row.Kind == Operation::Stack && Result.Listed && Dims.Known.size() == 1 && Dims.Known[0] == 0) {
    Result.Listed = false;
    Result.forgetRank();
    Result.Least = 1;
    Result.RankOf = rankOf(E);
    return Result;
  }
  if (Result.Listed)
    return Value::unknown("puts a batch's rows beside each other otherwise than along a first dimension", E);
  if (!Items.empty())
    Result = broadcast(Items, E);
  if (Result.Kind == Placement::Unknown)
    return Result;
  if (Dims.Unknown || Dims.Known.empty())
    return Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E);
  if (Row.Kind == Operation::Stack)
    return unsqueezed(Result, Dims.Known[0], E);
  if (std::optional<int64_t> Least = number(Row, Args, "least"); Least && Result.Least < *Least)
    return Value::unknown("puts tensors beside each other of which it isn't known how many dimensions they have", E);
  if (locate(Result, Dims.Known[0]) == Side::Batch)
    return Value::unknown("puts batches behind each other along their rows", E);
  return along(Result, Dims.Known, E, X.Name);
}

/// Element by element. Where it isn't known how many dimensions rows have that meet, they are taken to meet row by row,
/// which is said: `[B, 1]` beside `[B]` is every row with every row.
Value Interpreter::besideRows(llvm::ArrayRef<Value> Values, ir::ExprId E) {
  Value Result = broadcast(Values, E);
  const Value *Rows = nullptr;
  for (const Value &V : Values)
    if (V.Kind == Placement::Sharded) {
      if (Rows && Result.Kind == Placement::Sharded && !comparable(*Rows, V))
        note("assumed-ranks", E, Result,
             "joins the rows of two tensors that are taken to have equal numbers of dimensions; make sure of that "
             "(`[B, 1]` beside `[B]` joins every row with every row)");
      Rows = &V;
    }
  return Result;
}

/// Operands of `...I,...I->...`, distances of vectors: rows of a batch are taken to be vectors, in tensors of equally
/// many dimensions, which is said.
std::vector<Value> Interpreter::featured(llvm::ArrayRef<Signature> Signatures, std::vector<Value> Tensors,
                                         ir::ExprId E) {
  if (Signatures.size() != 1 || Signatures[0].Inputs.size() < 2 ||
      !llvm::all_of(Signatures[0].Inputs, [](const std::string &Input) { return Input == ".I"; }))
    return Tensors;
  const Value *Assumed = nullptr;
  for (Value &V : Tensors)
    if (V.Kind == Placement::Sharded && V.Dim == 0 && V.Rank < 0) {
      V.Least = std::max<int8_t>(V.Least, 2);
      V.RankOf = rankOf(E);
      V.RankPlus = 0;
      Assumed = &V;
    }
  if (Assumed)
    note(
        "assumed-ranks", E, *Assumed,
        "is taken to be given the rows of a batch with features behind them; make sure of that (of `[B]` it would take "
        "the batch for them)");
  return Tensors;
}

/// A shape for all rows of the batch, given to a rank's: it throws there.
Value Interpreter::misshapen(ir::ExprId E, const Value &Rows) {
  const char *What = "has a fixed number where its shape must follow the batch's rows";
  note("ambiguous-placement", E, Rows, What);
  return Value::unknown(What, E);
}

/// The sizes of a shape, or the dimensions, that a constant list names: `const std::vector<int64_t> shape = {-1, 8};`.
std::vector<ir::ExprId> Interpreter::spelledOut(std::vector<ir::ExprId> Given) const {
  const auto Named = Given.size() == 1 ? R.Init.find(P.Code.Exprs[P.unconverted(Given[0])].Var) : R.Init.end();
  if (Named == R.Init.end())
    return Given;
  const ir::Type &T = P.Code.typeOf(Named->first);
  if (T.number() || T.Kind == TypeKind::Tensor || !(T.Const || StringRef(T.Name).contains("ExpandingArray")))
    return Given;
  Given.clear();
  collectItems(P, P.unconverted(Named->second), Given);
  return Given;
}

/// Whether a call is given the shape of a number, `torch::zeros({})`.
bool Interpreter::makesNumber(const ir::Expr &X) const {
  return llvm::any_of(X.Args, [&](ir::ExprId Arg) {
    std::vector<ir::ExprId> Sizes;
    if (Arg == None || !StringRef(P.Code.type(Arg).Name).starts_with("c10::ArrayRef<"))
      return false;
    collectItems(P, Arg, Sizes);
    return Sizes.empty();
  });
}

/// Whether `torch::from_blob(numbers.data(), {rows})` is made over numbers that are the same on all ranks.
bool Interpreter::overWhole(const ir::Expr &X) {
  const std::optional<Location> L = X.Args.empty() || X.Args[0] == None ? std::nullopt : behind(X.Args[0]);
  return L && Current.count(*L) && Current.at(*L).Kind == Placement::Replicated;
}

/// `T * B`
bool Interpreter::isProduct(ir::ExprId Size) const {
  return P.Code.type(Size).Kind == TypeKind::Integer && P.Code.Exprs[madeAs(Size)].Name == "*";
}

/// The first size of a shape, if that is written as a product of numbers and no other is, `{T * B, V}`; else None.
ir::ExprId Interpreter::product(llvm::ArrayRef<ir::ExprId> Shape) {
  const bool First = !Shape.empty() && isProduct(Shape[0]) && eval(Shape[0]).replicated();
  const bool Others = llvm::any_of(llvm::drop_begin(Shape, First),
                                   [&](ir::ExprId Size) { return isProduct(Size) || integer(Size) == -1; });
  return First && !Others ? Shape[0] : None;
}

Value Interpreter::reshaped(ir::ExprId E, const ir::Expr &X, const Operands &In, Arguments &Args) {
  Value Result = In.Tensors[0];
  bool Local = Result.Kind == Placement::Sharded;
  if (In.Tensors.size() > 1) { // view_as
    const Value &Like = In.Tensors[1];
    bool Rows = Local && Like.Kind == Placement::Sharded && Result.Dim == 0 && Like.Dim == 0;
    if (Rows)
      return Like;
    if (!Local && Like.replicated()) {
      Result.takeRank(Like);
      return Result;
    }
    if (!Local && Like.Kind == Placement::Sharded && Like.Dim == 0 && ownRowsOf(In.Exprs[0]))
      return Like;
    return misshapen(E, In.Tensors[0]);
  }
  const std::vector<ir::ExprId> Shape = spelledOut(Args["shape"]);
  // Another tensor's sizes, or a list of them: how many dimensions it has isn't known.
  const bool Whole = Shape.size() == 1 && !P.Code.type(Shape[0]).number();
  if (!Local && Result.replicated() && Result.AllRows) { // `out.view({x.size(0), -1})` of all rows: with their number
    for (ir::ExprId Size : Shape)
      if (const Value Of = eval(Size); Whole && Of.Kind == Placement::Extent)
        return Value::unknown("is given the sizes of this rank's rows, and has all", E);
      else if (Of.Kind == Placement::Extent)
        demandReplicated(Size, Of, "a size of all rows");
    Result.Rank = Shape.empty() || Whole ? -1 : int8_t(Shape.size());
    return Result;
  }
  if (!Local) {
    // `y.reshape(out.sizes())`, `targets.view({x.size(0) * length})` of all rows, where the others are a rank's
    const bool Own = Whole ? Last[Shape[0]].Kind == Placement::Extent
                           : !Shape.empty() && Result.replicated() && !Result.Trained && countsRows(Shape[0]);
    if (Own)
      return ownRowsOf(In.Exprs[0]) ? Result : misshapen(E, In.Tensors[0]);
    Result.Rank = Shape.empty() || Whole ? -1 : int8_t(Shape.size());
    return Result;
  }
  // `states.view({layers, directions, x.size(0), features})`: the rows stay a dimension of their own, as far behind.
  if (Result.Dim > 0 && !Whole && !Result.Woven)
    if (auto Rows = llvm::find_if(Shape, [&](ir::ExprId Size) { return eval(Size).Kind == Placement::Extent; });
        Rows != Shape.end() && Rows - Shape.begin() >= Result.Dim) {
      if (Rows - Shape.begin() != Result.Dim)
        note("assumed-ranks", E, Result,
             "is taken to split what stands in front of the rows, in its order; make sure of that");
      Result.Dim = uint8_t(Rows - Shape.begin());
      Result.setRank(Shape.size());
      return Result;
    }
  // `target.view({1, -1})`: all rows lie where the rest goes, behind dimensions of one.
  if (auto Rest = llvm::find_if(Shape, [&](ir::ExprId Size) { return integer(Size) == -1; });
      Result.Dim == 0 && !Whole && !Result.Woven && Rest != Shape.end() && Rest != Shape.begin() &&
      llvm::all_of(Shape, [&](ir::ExprId Size) { return Size == *Rest || integer(Size) == 1; })) {
    Result.Dim = uint8_t(Rest - Shape.begin());
    Result.setRank(Shape.size());
    return Result;
  }
  if (!In.Exprs.empty() && joinsRows(In.Exprs[0], Result, Shape))
    return Value::unknown("puts several rows of a batch into one", E);
  bool Real = !Shape.empty() && (integer(Shape[0]) == -1 || countsRows(Shape[0]));
  // `[T, B, V]` as `{-1, V}`, all that stands in front of what stays: rows of the batch, in another order.
  const ir::ExprId Written = Real || Whole ? None : product(Shape);
  bool Merges = Result.Dim > 0 && (Real || Written != None) && !Whole && !Result.Woven &&
                (Shape.size() == 1 || Result.Rank < 0 || Shape.size() + Result.Dim == size_t(Result.Rank));
  if (Merges) {
    if (Shape.size() > 1 && Result.Rank < 0)
      note("assumed-ranks", E, Result,
           "merges the rows of a batch with what stands in front of them, and is taken to leave alone what stands "
           "behind; make sure of that");
    Result.Dim = 0;
    Result.Woven = true;
  } else if (Result.Dim != 0 || (Result.Woven && Shape.size() != 1)) {
    return Value::unknown("reshapes a batch that isn't cut along its first dimension", E);
  }
  Result.Narrowed = false;
  if (!Real) { // the number of all rows: here this rank's are meant
    const ir::ExprId Count = Shape.empty() || Whole ? None : countIn(Shape[0], Result.Rows);
    ir::ExprId Batch = Count == None ? None : cutNamed(E, Result.Rows);
    if (Batch == None && Count != None && Count == Shape[0] && isBatchSize(Count) && X.Object != None &&
        (P.Code.Exprs[X.Object].Kind == ExprKind::Ref || P.Code.Exprs[X.Object].Kind == ExprKind::Field))
      Batch = X.Object;
    if (Batch == None && Written == None)
      return misshapen(E, In.Tensors[0]);
    if (Recording && Batch != None && (Written == None || !Result.Woven))
      Out.BatchSizes[Count] = Batch;
    else if (Recording)
      Out.BatchSizes[Written] = None;
  }
  if (Whole)
    Result.forgetRank();
  else
    Result.setRank(Shape.size());
  return Result;
}

/// `expand({-1, 5})`, `repeat({1, 5})`: where the batch's dimension is written, it must be left as it is.
Value Interpreter::expanded(ir::ExprId E, const Operands &In, Arguments &Args) {
  Value Result = In.Tensors[0];
  bool Repeats = Args.count("repeats") != 0;
  const std::vector<ir::ExprId> &Sizes = Args[Repeats ? "repeats" : "sizes"];
  if (Sizes.size() == 1 && P.Code.type(Sizes[0]).Kind == TypeKind::Container) { // of which the number isn't told
    const ir::Expr &Of = P.Code.Exprs[P.unconverted(Sizes[0])];
    if (!Repeats && Of.Object != None && Of.Name == "at::Tensor::sizes") // as `expand_as`
      return besideRows({Result, eval(Of.Object)}, E);
    if (!Result.replicated() || !eval(Sizes[0]).replicated())
      return Value::unknown("is given sizes that aren't followed", E);
    Result.forgetRank();
    return Result;
  }
  if (Result.Kind == Placement::Sharded) {
    int Dim = Result.Rank < 0 ? Result.Dim : Result.Dim + int(Sizes.size()) - Result.Rank;
    if (Dim < 0 || Dim >= int(Sizes.size()))
      return Value::unknown("is given sizes that aren't followed", E);
    bool Kept = integer(Sizes[Dim]) == (Repeats ? 1 : -1);
    if (!Repeats && eval(Sizes[Dim]).Kind == Placement::Extent)
      Kept = true;
    if (const ir::ExprId Count = Kept || Repeats ? None : countIn(Sizes[Dim], Result.Rows); Count == Sizes[Dim])
      if (const ir::ExprId Batch = cutNamed(E, Result.Rows); Batch != None) {
        Kept = true;
        if (Recording)
          Out.BatchSizes[Count] = Batch;
      }
    if (!Kept)
      return Repeats ? Value::unknown("repeats the rows of a batch", E) : misshapen(E, Result);
    Result.Dim = Dim;
    Result.setRank(Sizes.size());
    return Result;
  }
  if (!Result.replicated())
    return broadcast(In.Values, E);
  Result = Value::of(Placement::Replicated, E);
  for (size_t I = 0; I != Sizes.size(); ++I)
    if (Value V = eval(Sizes[I]); !V.replicated()) {
      if (V.Kind != Placement::Extent || Result.Kind == Placement::Sharded ||
          P.Code.type(Sizes[I]).Kind == TypeKind::Container)
        return Value::unknown("is given sizes that aren't followed", E);
      Result = Value::sharded(I, E);
    }
  Result.setRank(Sizes.empty() ? -1 : int(Sizes.size()));
  return Result;
}

/// The number of dimensions of a tensor that is made of `Data`: a vector of numbers has one, `{{1, 2}, {3, 4}}` two; -1
/// if that can't be told.
int Interpreter::braces(ir::ExprId Data) const {
  while (P.Code.Exprs[Data].Kind != ExprKind::List && P.Code.Exprs[Data].Args.size() == 1 &&
         (P.Code.Exprs[Data].Kind == ExprKind::Construct || P.Code.Exprs[Data].Kind == ExprKind::Cast))
    Data = P.Code.Exprs[Data].Args[0];
  const ir::Expr &X = P.Code.Exprs[Data];
  if (P.Code.type(Data).number())
    return 0;
  if (StringRef Type = P.Code.type(Data).Name; Type.starts_with("std::vector<") || Type.starts_with("c10::ArrayRef<"))
    return 1;
  int Inner = X.Kind == ExprKind::List && !X.Args.empty() ? braces(X.Args[0]) : -1;
  return Inner < 0 ? -1 : Inner + 1;
}

/// The number of dimensions of what a factory that is given no shape makes; 0 of any other.
static int rankMade(StringRef Factory) {
  if (Factory == "eye" || Factory == "tril_indices" || Factory == "triu_indices")
    return 2;
  return llvm::is_contained({"arange", "range", "linspace", "logspace", "randperm"}, Factory) ||
                 Factory.ends_with("_window")
             ? 1
             : 0;
}

/// Factories and draws: placed by their shape and what they are made of, not by their name.
Value Interpreter::made(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In, Arguments &Args) {
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  bool Draws = Row.Kind == Operation::Noise;
  // `x.new_zeros({3})` has nothing of `x` but its type and device.
  size_t Skip = Name.starts_with("new_") && X.Object != None;
  // Draws take their shape last, behind the numbers of the distribution; the rest takes it where the row says.
  OperationRow Positions;
  Positions.Parameters = {{"0", false, {}}, {"1", false, {}}, {"2", false, {}}, {"3", false, {}}};
  std::vector<ir::ExprId> Shape;
  bool Shaped = Row.parameter("size") != nullptr;
  if (Shaped && !In.InPlace) {
    if (Row.Parameters.size() > 1 && Row.Parameters.back().Name == "size" && Draws) {
      Arguments All = arguments(Positions, X.Args);
      for (const char *At : {"0", "1", "2", "3"})
        if (All.count(At))
          Shape = All[At];
    } else {
      Shape = Args["size"];
    }
  }
  if (In.InPlace && X.Object != None && P.Code.Exprs[X.Object].Kind == ExprKind::Call) {
    // torch::empty(rows).uniform_(): the shape is the factory's.
    bool Ignored;
    const ir::Expr &Inner = P.Code.Exprs[X.Object];
    if (const OperationRow *Made = Table.find(Inner.Name, Ignored);
        Made && Made->Kind == Operation::Factory && Made->parameter("size"))
      Shape = arguments(*Made, Inner.Args)["size"];
  }

  Shape = spelledOut(std::move(Shape));
  Value Result = Value::of(Placement::Replicated, E);
  // `{rows, longest}` of sizes that are known one by one.
  auto Known = [&](size_t I) {
    std::vector<ir::ExprId> Sizes;
    if (Shaped && I < In.Exprs.size() && In.Exprs[I] != None)
      collectItems(P, P.unconverted(In.Exprs[I]), Sizes);
    return Sizes.size() > 1 && llvm::all_of(Sizes, [&](ir::ExprId Size) {
             const Value V = eval(Size);
             return numeric(Size) && (V.replicated() || V.Kind == Placement::Extent || V.Kind == Placement::Extreme);
           });
  };
  for (size_t I = Skip; I < In.Values.size(); ++I)
    if (const Value &V = In.Values[I]; V.Kind == Placement::Own || V.Kind == Placement::Unknown)
      Result = Known(I) ? Result : V;
    else if (V.reducible() && !Shaped && !Row.parameter("data")) // `torch::eye(2 * n)`
      Result = Value::unknown("numbers this rank's rows", E);
    else if (V.Kind == Placement::Sharded || V.Kind == Placement::Partial || V.Kind == Placement::Mean)
      Result = Result.Kind == Placement::Own || Result.Kind == Placement::Unknown ? Result : V;
    else if (V.Kind == Placement::Extent && !Shaped)
      Result = asNumber(V);
  Result.Batch = None;
  Result.Iterator = false;
  ir::ExprId Rows = None;
  if (!In.InPlace && !Shape.empty()) {
    int Extents = 0;
    for (size_t I = 0; I != Shape.size(); ++I) {
      Value V = eval(Shape[I]);
      const bool Sizes = !P.Code.type(Shape[I]).number();
      if (ir::ExprId Each = I == 0 && !Sizes && V.Kind == Placement::Partial ? forEachOfRows(Shape[0], Rows) : None;
          Each != None && Result.Kind != Placement::Unknown) {
        ++Extents;
        Result = Value::sharded(0, E);
        Result.Rows = named("x:" + spelled(Shape[0]));
        Result.Picked = Last[Rows].Picked;
        Result.setRank(Shape.size());
        if (Draws && Recording)
          Out.NoiseForEach[E] = Each;
        continue;
      }
      if (V.Kind == Placement::Extent && Name == "from_blob" && overWhole(X)) { // of numbers for all rows
        demandReplicated(Shape[I], V, "used as a shape");
        Result.setRank(Shape.size());
      } else if (V.Kind == Placement::Extent && Result.Kind != Placement::Unknown) {
        ++Extents;
        Result = Value::sharded(Sizes ? V.Dim : I, E);
        Result.Picked = V.Picked;
        Result.Rows = V.Rows; // the batch's whose size it is
        Rows = I == 0 ? Shape[I] : None;
        if (Sizes)
          Result.takeRank(V);
        else
          Result.setRank(Shape.size());
      } else if (V.Kind == Placement::Extreme && !Sizes) { // as long as the longest of all rows
        demandReplicated(Shape[I], V, "used as a shape");
      } else if (V.Kind == Placement::Partial || V.Kind == Placement::Mean) {
        Result = Value::unknown("has a shape that is computed from this rank's rows", E);
      } else if (V.replicated() && Result.replicated() && !Sizes) {
        Result.setRank(Shape.size());
      } else if (const ir::Expr &Of = P.Code.Exprs[P.unconverted(Shape[I])];
                 Result.replicated() && Of.Object != None && Of.Name == "at::Tensor::sizes") {
        Result.takeRank(eval(Of.Object));
      }
    }
    if (Extents > 1)
      Result = Value::unknown("has the number of this rank's rows in its shape twice", E);
  } else if (const int Rank = rankMade(Name); !In.InPlace && Result.replicated() && Rank > 0) {
    Result.setRank(Rank);
  } else if (!In.InPlace && Shaped && Result.replicated() && makesNumber(X)) {
    Result.setRank(0);
  } else if (In.InPlace) {
    if (!Shape.empty() && eval(Shape[0]).Kind == Placement::Extent)
      Rows = Shape[0];
  }
  if (Name == "tensor" && Result.Listed) {
    Result.Listed = false;
    Result.setRank(1);
  }
  if (Name == "tensor" && Result.replicated() && !X.Args.empty())
    Result.setRank(braces(X.Args[0]));
  if (Draws && Result.replicated()) // `torch::bernoulli(p)`: as many as `p` has
    for (size_t I = 0; I != In.Values.size(); ++I)
      if (In.Exprs[I] != None && P.Code.type(In.Exprs[I]).Kind == TypeKind::Tensor) {
        Result.takeRank(In.Values[I]);
        break;
      }
  if (Draws)
    notWhole("it draws random numbers", E);
  if (Draws && Result.Picked)
    return Value::unknown("is drawn for rows that a mask picked, of which each rank has a number of its own", E);
  if (Draws && Result.replicated())
    drawn(E, /*Rows=*/false);
  bool Zero = X.Name == "at::zeros" || X.Name == "torch::zeros" || X.Name == "at::Tensor::Tensor" ||
              X.Name == "at::Tensor::new_zeros";
  Zero |= (Name == "tensor" || Name == "scalar_tensor") && !In.Values.empty() && In.Exprs[0] != None &&
          P.Code.type(In.Exprs[0]).number() && In.Values[0].Kind == Placement::Zero; // `torch::tensor(0.0)`
  if (Zero && Result.replicated())
    Result.Kind = Placement::Zero;
  bool ByRows = llvm::any_of(llvm::drop_begin(In.Values, Skip), [](const Value &V) { return V.reducible(); });
  if (Draws && ByRows && Result.Kind != Placement::Sharded && Result.Kind != Placement::Own) {
    // Generators that draw as many numbers as each rank has rows part ways, whatever happens to the numbers.
    Value Extent = *llvm::find_if(In.Values, [](const Value &V) { return V.reducible(); });
    drawsForRows(E, X, Extent);
    Result.Noisy = true;
  }
  if (Draws && Result.Kind == Placement::Sharded)
    drawForRows(E, X, In, Rows, Result);
  return Result;
}

} // namespace migrate
