//===- InterpreterOperations.cpp - The kinds of rules/operations.yaml -----===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

namespace {
/// The placement of what is computed row by row from `Values`.
Value rowWise(const std::vector<Value> &Values, ir::ExprId E) {
  Value Result = Value::of(Placement::Replicated, E);
  for (const Value &V : Values) {
    if (V.Kind == Placement::Unknown || V.Kind == Placement::Own)
      return V;
    if (V.replicated() || V.Kind == Placement::Extent)
      continue;
    if (V.Kind != Placement::Sharded)
      return Value::unknown("is used (as " + toString(V) + ") before its parts on the ranks are brought together", E);
    if (Result.Kind == Placement::Sharded && Result.Dim != V.Dim)
      return Value::unknown("joins rows along different dimensions", E);
    int8_t Rank = Result.Kind == Placement::Sharded ? std::max(Result.Rank, V.Rank) : V.Rank;
    Result = V;
    Result.Rank = Rank;
  }
  Result.Batch = None;
  Result.Iterator = false;
  return Result;
}
} // namespace

/// Whether `E` is the number that a loader was given as its batch size: the same variable, or the same literal.
bool Interpreter::isBatchSize(ir::ExprId E) const {
  const ir::Expr *X = &P.Code.Exprs[E];
  while ((X->Kind == ExprKind::Cast || X->Kind == ExprKind::Construct) && X->Args.size() == 1)
    X = &P.Code.Exprs[X->Args[0]];
  for (const auto &[Object, Role] : R.Loaders)
    for (ir::ExprId Made : Role.Made)
      for (ir::ExprId Arg : P.Code.Exprs[Made].Args) {
        bool Same = false;
        P.forEachExpr(Arg, [&](ir::ExprId Sub) {
          const ir::Expr &Y = P.Code.Exprs[Sub];
          if (X->Kind == ExprKind::Ref || X->Kind == ExprKind::Field)
            Same |= (Y.Kind == ExprKind::Ref || Y.Kind == ExprKind::Field) && Y.Var == X->Var;
          else if (X->Kind == ExprKind::Literal)
            Same |= Y.Kind == ExprKind::Literal && Y.Name == X->Name && P.Code.type(Sub).Kind == TypeKind::Integer;
        });
        if (Same)
          return true;
      }
  return false;
}

/// `x.index({Slice(), -1})`: where the batch's dimension goes, if it is taken whole.
Value Interpreter::indexed(ir::ExprId E, const ir::Expr &X, Value V) {
  std::vector<ir::ExprId> Items;
  std::function<void(ir::ExprId)> Collect = [&](ir::ExprId Arg) {
    const ir::Expr &A = P.Code.Exprs[Arg];
    bool Slice = StringRef(P.Code.type(Arg).Name).ends_with("indexing::Slice");
    if ((A.Kind == ExprKind::List || A.Kind == ExprKind::Construct) && !A.Args.empty() && !Slice)
      for (ir::ExprId Sub : A.Args)
        Collect(Sub);
    else
      Items.push_back(Arg);
  };
  for (ir::ExprId Arg : X.Args)
    Collect(Arg);
  int Dim = 0, To = 0; // dimensions of the operand that are passed, and of the result
  for (ir::ExprId Item : Items) {
    const ir::Expr &A = P.Code.Exprs[Item];
    StringRef Type = P.Code.type(Item).Name;
    if (StringRef(A.Name).ends_with("None") || Type.ends_with("nullopt_t")) {
      ++To;
    } else if (Type.ends_with("indexing::Slice")) {
      if (Dim == V.Dim) {
        if (!A.Args.empty())
          return Value::unknown("takes some rows of a batch by number", E);
        break;
      }
      ++Dim, ++To;
    } else if (P.Code.type(Item).Kind == TypeKind::Integer) {
      if (Dim == V.Dim)
        return Value::unknown("picks rows of a batch by number", E);
      ++Dim;
    } else {
      return Value::unknown("indexes a batch in a way that isn't followed", E);
    }
    if (Dim > V.Dim)
      break;
  }
  V.Dim = V.Dim - Dim + To;
  V.Rank = -1;
  return V;
}

Value Interpreter::operation(ir::ExprId E, const ir::Expr &X, Operation Op, bool InPlace) {
  // The operands, the object first; then the numbers among them tell dimensions.
  std::vector<ir::ExprId> Operands;
  if (X.Object != None && P.Code.type(X.Object).Kind != TypeKind::Module)
    Operands.push_back(X.Object);
  Operands.insert(Operands.end(), X.Args.begin(), X.Args.end());
  std::vector<Value> Values;
  for (ir::ExprId Operand : Operands) {
    Values.push_back(eval(Operand));
    bool Tensor = P.Code.type(Operand).Kind == TypeKind::Tensor;
    if (Values.back().Batch != None && Tensor && Op != Operation::Metadata && Op != Operation::Extent)
      Out.Unmoved.insert(Values.back().Batch);
  }
  if (Values.empty())
    return Value::of(Placement::Replicated, E);
  std::vector<int64_t> Numbers;
  std::vector<ir::ExprId> Shape;
  // `{-1, 320}` arrives wrapped in an array reference, an initializer list, a vector.
  std::function<void(ir::ExprId)> Collect = [&](ir::ExprId Operand) {
    const ir::Expr &A = P.Code.Exprs[Operand];
    bool Several =
        A.Kind == ExprKind::List || (A.Kind == ExprKind::Construct && P.Code.type(Operand).Kind != TypeKind::Tensor);
    if (Several && !A.Args.empty()) {
      for (ir::ExprId Sub : A.Args)
        Collect(Sub);
      return;
    }
    TypeKind Kind = P.Code.type(Operand).Kind;
    if (Kind == TypeKind::Tensor || Kind == TypeKind::Bool)
      return;
    Shape.push_back(Operand);
    if (auto N = integer(Operand))
      Numbers.push_back(*N);
  };
  for (ir::ExprId Operand : llvm::drop_begin(Operands))
    Collect(Operand);
  const Value &First = Values[0];
  Value Result = First;
  Result.Batch = None;
  Result.Iterator = false;
  bool Local = First.Kind == Placement::Sharded;
  int64_t Dim = First.Dim;
  ir::ExprId Maker = X.Object != None ? X.Object : None; // of modules: options stand where they were made

  switch (Op) {
  case Operation::RowWise: {
    Result = rowWise(Values, E);
    StringRef Op = StringRef(X.Name).rsplit("::").second;
    // These take a dimension, which may be the batch's; the width of a one-hot code is the batch's maximum unless
    // given.
    bool Along = (Op == "normalize" && Operands.size() > 1) ||
                 ((Op == "cosine_similarity" || Op == "pairwise_distance") && Operands.size() > 2) ||
                 (Op == "one_hot" && Operands.size() < 2);
    if (Along && Result.Kind == Placement::Sharded)
      Result = Value::unknown("may look at several rows of the batch (`" + X.Name + "`)", E);
    break;
  }
  case Operation::Linear:
  case Operation::Item:
    break;
  case Operation::Update: {
    const char *Sign = StringRef(X.Name).contains("div") ? "/" : StringRef(X.Name).contains("mul") ? "*" : "+";
    if (InPlace && X.Object != None && *Sign == '+' && Values.size() > 1)
      if (std::optional<Location> L = lvalue(X.Object)) {
        Result = accumulate(*L, Values[1], Operands[1], E);
        break;
      }
    Result = Values.size() > 1 ? arithmetic(E, Sign, First, Values[1], Operands[0], Operands[1]) : Result;
    break;
  }
  case Operation::Sum:
  case Operation::Mean: {
    if (!Local)
      break;
    bool OverBatch = Numbers.empty() || llvm::is_contained(Numbers, Dim);
    if (!OverBatch) {
      Result.Dim -= llvm::count_if(Numbers, [&](int64_t N) { return N >= 0 && N < Dim; });
      Result.Rank = -1; // keepdim or not
      Result.Narrowed = true;
      break;
    }
    Result = Op == Operation::Sum ? Value::partial(true, E) : Value::of(Placement::Mean, E);
    break;
  }
  case Operation::AlongDim: {
    // max(a, b) compares two tensors.
    bool TwoTensors = Values.size() == 2 && P.Code.type(Operands[1]).Kind == TypeKind::Tensor && Numbers.empty();
    if (TwoTensors) {
      Result = rowWise(Values, E);
      break;
    }
    if (First.Kind == Placement::Mean || First.Kind == Placement::Partial) {
      Result = rowWise(Values, E);
      break;
    }
    if (First.replicated())
      for (const Value &V : llvm::drop_begin(Values))
        if (V.Kind == Placement::Extent)
          Result = Value::unknown("takes as many rows of a whole as this rank has", E);
    if (!Local)
      break;
    // The dimension comes second in these; left out, it's the last one, or all of them.
    StringRef Along = StringRef(X.Name).rsplit("::").second;
    if (Along == "topk" || Along == "kthvalue" || Along == "roll" || Along == "chunk" || Along == "split" ||
        Along == "repeat_interleave") {
      bool Last = Along == "topk" || Along == "kthvalue";
      if (!Numbers.empty())
        Numbers.erase(Numbers.begin());
      if (Numbers.empty() && Last)
        Numbers.push_back(-1);
    }
    if (!Numbers.empty() && Numbers[0] < 0 && First.Rank < 0 && First.Narrowed) {
      Result =
          Value::unknown("counts dimensions from the end where the batch may be the last one (`" + X.Name + "`)", E);
      break;
    }
    if (Along == "select" || Along == "argmax" || Along == "argmin" || Along == "sum")
      Result.Narrowed = true;
    if (Numbers.empty())
      Result = Value::unknown("looks at all rows of the batch at once (`" + X.Name + "`)", E);
    else if (Numbers[0] == Dim || (Numbers[0] < 0 && First.Rank >= 0 && Numbers[0] + First.Rank == Dim))
      Result = Value::unknown("runs along the batch (`" + X.Name + "`)", E);
    break;
  }
  case Operation::Loss:
  case Operation::LossModule: {
    Value Rows = rowWise(Values, E);
    if (Rows.Kind != Placement::Sharded) {
      Result = Rows;
      break;
    }
    auto Says = [&](const char *Text) {
      bool Found = Op == Operation::LossModule && Maker != None && mentions(Maker, Text);
      for (ir::ExprId Arg : X.Args)
        Found |= P.Code.type(Arg).Kind != TypeKind::Tensor && mentions(Arg, Text, 2);
      return Found;
    };
    bool Weighted = Says("ignore_index") || Says("weight");
    if (Op == Operation::Loss && X.Args.size() > 2 && P.Code.type(X.Args[2]).Kind == TypeKind::Tensor &&
        P.Code.Exprs[X.Args[2]].Kind != ExprKind::List && P.Code.Exprs[X.Args[2]].Kind != ExprKind::Construct)
      Weighted = true;
    if (Says("None") || Says("kNone"))
      Result = Rows;
    else if (Says("Sum") || Says("kSum"))
      Result = Value::partial(true, E);
    else if (Weighted)
      Result = Value::unknown("is a mean weighted by class or index, whose weights differ between ranks", E);
    else
      Result = Value::of(Placement::Mean, E);
    break;
  }
  case Operation::Reshape: {
    if (!Local)
      break;
    bool Real = !Shape.empty() && (integer(Shape[0]) == -1 || Out.Types[Shape[0]].Kind == Placement::Extent ||
                                   eval(Shape[0]).Kind == Placement::Extent);
    if (Shape.empty() && Values.size() > 1 && Values[1].Kind == Placement::Extent)
      Real = true;
    if (Dim != 0)
      Result = Value::unknown("reshapes a batch that isn't cut along its first dimension", E);
    else if (!Real && !Shape.empty() && X.Object != None && isBatchSize(Shape[0]) &&
             (P.Code.Exprs[X.Object].Kind == ExprKind::Ref || P.Code.Exprs[X.Object].Kind == ExprKind::Field)) {
      // The loader's batch size: here the batch's own rows are meant.
      if (Recording)
        Out.BatchSizes[Shape[0]] = X.Object;
      Result.Rank = int8_t(Shape.size());
    } else if (!Real)
      Result = Value::unknown("has a fixed number where its shape must follow the batch's rows", E);
    else
      Result.Rank = Shape.empty() ? -1 : int8_t(Shape.size());
    break;
  }
  case Operation::Index:
    if (Local) {
      Result = indexed(E, X, Result);
    } else if (First.replicated()) {
      // A table looked up by the rows of a batch.
      Result = rowWise(Values, E);
      for (const Value &V : llvm::drop_begin(Values))
        if (V.Kind == Placement::Extent)
          Result = Value::unknown("takes as many rows of a whole as this rank has", E);
    }
    break;
  case Operation::Cat:
  case Operation::Stack: {
    if (!Local)
      break;
    // A whole tensor beside this rank's rows has more rows than they.
    bool Mixed = false;
    std::function<void(ir::ExprId)> Look = [&](ir::ExprId Item) {
      if (P.Code.type(Item).Kind == TypeKind::Tensor)
        Mixed |= !eval(Item).same(First);
      else
        for (ir::ExprId Sub : P.Code.Exprs[Item].Args)
          Look(Sub);
    };
    if (P.Code.Exprs[Operands[0]].Kind != ExprKind::Ref)
      Look(Operands[0]);
    int64_t Along = Numbers.empty() ? 0 : Numbers[0];
    if (Mixed)
      Result = Value::unknown("puts rows of a batch beside something that isn't cut like them", E);
    else if (Op == Operation::Stack && Along >= 0 && Along <= Dim)
      Result.Dim += 1;
    else if (Op == Operation::Cat && (Along == Dim || (Along < 0 && First.Rank >= 0 && Along + First.Rank == Dim)))
      Result = Value::unknown("puts batches behind each other along their rows", E);
    if (Op == Operation::Stack)
      Result.Rank = -1;
    break;
  }
  case Operation::Transpose:
    if (Local && Numbers.size() >= 2) {
      int64_t A = Numbers[0], B = Numbers[1];
      if (A == Dim && B >= 0)
        Result.Dim = B;
      else if (B == Dim && A >= 0)
        Result.Dim = A;
      else if (A == Dim || B == Dim)
        Result = Value::unknown("moves the batch to a dimension counted from the end", E);
    }
    break;
  case Operation::Permute:
    if (Local) {
      auto It = llvm::find(Numbers, Dim);
      if (It == Numbers.end())
        Result = Value::unknown("permutes the batch's dimension in a way that isn't followed", E);
      else
        Result.Dim = It - Numbers.begin();
      Result.Rank = int8_t(Numbers.size());
    }
    break;
  case Operation::Unsqueeze:
    if (Local && !Numbers.empty() && Numbers[0] >= 0 && Numbers[0] <= Dim)
      Result.Dim += 1;
    if (Local && Result.Rank >= 0)
      Result.Rank += 1;
    break;
  case Operation::Squeeze:
    if (Local && !Numbers.empty() && Numbers[0] >= 0) {
      if (Numbers[0] == Dim)
        Result = Value::unknown("squeezes the batch's dimension", E);
      else if (Numbers[0] < Dim)
        Result.Dim -= 1;
    }
    if (Local) {
      Result.Rank = -1; // a dimension that isn't 1 stays
      Result.Narrowed = true;
    }
    break;
  case Operation::Flatten:
    if (Local && Dim != 0)
      Result = Value::unknown("flattens a batch that isn't cut along its first dimension", E);
    else if (Local)
      Result.Rank = !Numbers.empty() && Numbers[0] == 1 && Numbers.size() == 1 ? 2 : -1;
    break;
  case Operation::MatMul: {
    bool AnyLocal = llvm::any_of(Values, [](const Value &V) { return V.Kind == Placement::Sharded; });
    // Three dimensions and more: one product for each row.
    bool Batched = llvm::all_of(Values, [](const Value &V) { return V.Kind == Placement::Sharded && V.Rank >= 3; });
    if (!AnyLocal || Batched || StringRef(X.Name).ends_with("bmm")) {
      Result = rowWise(Values, E);
      break;
    }
    if (Local && Dim == 0 && Values.size() == 2 && Values[1].replicated())
      break;
    Result = Value::unknown("multiplies rows of the batch with each other (`" + X.Name + "`)", E);
    break;
  }
  case Operation::Factory:
  case Operation::Noise: {
    Result = Value::of(Placement::Replicated, E);
    for (const Value &V : Values) {
      if (V.Kind == Placement::Extent)
        Result = Value::sharded(0, E);
      else if (V.Kind == Placement::Own || V.Kind == Placement::Unknown)
        Result = V;
      else if (V.reducible() || V.Kind == Placement::Sharded)
        Result = V;
    }
    Result.Batch = None;
    StringRef Made = StringRef(X.Name).rsplit("::").second;
    if (Result.Kind == Placement::Sharded && (Made == "arange" || Made == "range" || Made == "linspace" ||
                                              Made == "logspace" || Made == "eye" || Made == "randperm"))
      Result = Value::unknown("numbers this rank's rows", E);
    if (Op == Operation::Noise)
      notWhole("it draws random numbers", E);
    bool Zero = X.Name == "at::zeros" || X.Name == "torch::zeros" || X.Name == "at::Tensor::Tensor";
    if (Zero && Result.replicated())
      Result.Kind = Placement::Zero;
    // The rows' number stands first in the shape: drawn whole, own rows kept, it is exact.
    Shape.clear();
    for (ir::ExprId Operand : Operands)
      Collect(Operand);
    if (InPlace && X.Object != None && P.Code.Exprs[X.Object].Kind == ExprKind::Call) {
      // torch::empty(rows).uniform_(): the shape is the factory's.
      bool Ignored;
      Shape.clear();
      if (const Operation *Inner = Table.find(P.Code.Exprs[X.Object].Name, Ignored);
          Inner && *Inner == Operation::Factory)
        for (ir::ExprId Arg : P.Code.Exprs[X.Object].Args)
          Collect(Arg);
    }
    ir::ExprId Rows = None;
    for (ir::ExprId Item : Shape)
      if (eval(Item).Kind == Placement::Extent) {
        if (Rows == None && Item == Shape.front())
          Rows = Item;
        else
          Rows = None;
      }
    if (Op == Operation::Noise && Result.Kind == Placement::Sharded && Rows != None && Divergent == 0) {
      if (Recording)
        Out.RowNoise[E] = Rows;
    } else if (Op == Operation::Noise && Result.Kind == Placement::Sharded)
      note("batch-noise", E, Result, "draws random numbers for the rows of a batch");
    break;
  }
  case Operation::NoiseLike:
    // Dropout is off in evaluation, and the same law where it isn't.
    if (StringRef(X.Name).contains("dropout")) {
      if (Local)
        note("dropout", E, First, "drops out at random");
      break;
    }
    if (Local)
      note("batch-noise", E, First, "draws random numbers for the rows of a batch");
    if (First.Kind == Placement::Own)
      notWhole("it draws random numbers", E);
    break;
  case Operation::Like:
    if (StringRef(X.Name).ends_with("::copy_") && Values.size() > 1)
      Result = Values[1];
    else if (First.reducible())
      Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Replicated:
    // The backward of a rank weights its loss by its rows: what arrives at the batch isn't the original's number.
    if (!First.replicated() && StringRef(X.Name).ends_with("grad")) {
      Result = First.Kind == Placement::Own ? First
                                            : Value::unknown("is the gradient of a batch, which `backward` weights", E);
      break;
    }
    Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Metadata:
    Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Extent:
    if (First.Kind == Placement::Own)
      break;
    if (Local && (Numbers.empty() || Numbers[0] == Dim))
      Result = Value::of(Placement::Extent, E);
    else
      Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Number:
    Result = Value::of(Placement::Replicated, E);
    for (size_t I = 0; I != Values.size(); ++I)
      if (Value V = nonLinear(Values[I], Operands[I], "computed with"); !V.replicated())
        Result = V;
    break;
  case Operation::CoupledModule:
    if (Local)
      note("batch-statistics", E, First, "normalises with the statistics of this rank's rows");
    break;
  case Operation::NoiseModule:
    if (Local)
      note("dropout", E, First, "drops out at random");
    break;
  case Operation::RowModule:
    Result = rowWise(Values, E);
    Result.Narrowed = false; // features come last
    break;
  case Operation::SequenceModule: {
    Result = rowWise(Values, E);
    bool BatchFirst = Maker != None && mentions(Maker, "batch_first");
    if (Result.Kind == Placement::Sharded && Result.Dim != (BatchFirst ? 0 : 1))
      Result =
          Value::unknown("feeds a recurrent or attention module whose batch dimension isn't the one that is cut", E);
    break;
  }
  }
  if (InPlace && X.Object != None) {
    if (std::optional<Location> L = lvalue(X.Object)) {
      write(*L, Result, E);
    } else if (!Result.replicated()) {
      // Through a view: what it was taken from changes.
      ir::ExprId Root = X.Object;
      while (Root != None && !lvalue(Root))
        Root = P.Code.Exprs[Root].Object != None ? P.Code.Exprs[Root].Object
               : P.Code.Exprs[Root].Args.empty() ? None
                                                 : P.Code.Exprs[Root].Args[0];
      if (Root != None)
        if (outer(*lvalue(Root))) {
          notWhole("it writes into a part of something", E);
          write(*lvalue(Root), Value::unknown("is written in part", E), E);
        }
    }
  }
  return Result;
}

} // namespace migrate
