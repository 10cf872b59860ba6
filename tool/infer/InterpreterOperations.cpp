//===- InterpreterOperations.cpp - The kinds of rules/operations.yaml -----===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether a call divides by its second operand, `loss / rows`.
static bool divides(const ir::Expr &X) {
  const StringRef Name = StringRef(X.Name).contains("::") ? StringRef(X.Name).rsplit("::").second : StringRef(X.Name);
  return Name == "/" || Name == "operator/" || Name == "div" || Name == "divide" || Name == "true_divide";
}

static Value lookedAt(ir::ExprId E, const std::string &Name) {
  return Value::unknown("looks at all rows of the batch at once (`" + Name + "`)", E);
}

/// Whether a layer computes with parameters of its own: what costs time.
static bool hasParameters(StringRef Forward) {
  StringRef Class = Forward.drop_back(strlen("::forward")).rsplit("::").second;
  return llvm::any_of(llvm::ArrayRef<const char *>({"Linear", "Bilinear", "Conv", "LSTM", "GRU", "RNN", "Multihead",
                                                    "Transformer", "Embedding"}),
                      [&](const char *Kind) { return Class.starts_with(Kind); });
}

Value Interpreter::apply(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In) {
  std::vector<ir::ExprId> Given = In.Maker != None || In.Exprs.empty() || X.Object == None
                                      ? In.Exprs
                                      : std::vector<ir::ExprId>(In.Exprs.begin() + 1, In.Exprs.end());
  Given.insert(Given.end(), In.Bound.begin(), In.Bound.end());
  if (In.Maker != None)
    for (ir::ExprId Made : constructions(In.Maker))
      Given.insert(Given.end(), P.Code.Exprs[Made].Args.begin(), P.Code.Exprs[Made].Args.end());
  Arguments Args = arguments(Row, Given);
  const std::optional<int64_t> Keepdim = Args.count("keepdim") ? number(Row, Args, "keepdim") : 0;
  const std::optional<bool> Keeps = Keepdim ? std::optional(*Keepdim != 0) : std::nullopt;
  const std::vector<Value> &Values = In.Values;
  const Value &First = In.Tensors.empty() ? Values[0] : In.Tensors[0];
  if (In.Maker != None && Recording && First.AllRows && First.replicated() && trainsHere() && hasParameters(X.Name))
    Out.WholeLayers.try_emplace(Frames.back().Function, E);
  Value Result = First;
  Result.Batch = None;
  Result.Iterator = false;
  bool Local = First.Kind == Placement::Sharded;
  bool AnyLocal = llvm::any_of(Values, [](const Value &V) { return V.Kind == Placement::Sharded; });
  const bool Own = First.Kind == Placement::Own;
  if (Own && !Evaluates && (Row.Kind == Operation::CoupledModule || optionGiven(Row.KeepsStatistics, X, In)))
    notWhole("its batches change running statistics (no `eval()` is seen before it)", E);
  if (Own && optionGiven(Row.WritesWeight, X, In))
    notWhole("its batches shorten the rows of a weight that they look up", E);
  if (Row.Kind == Operation::NoiseModule && Own && !Evaluates && !madeWithout(In.Maker, "p"))
    note("dropout", E, First, "drops out at random");
  if (Row.Kind == Operation::Index || Row.Kind == Operation::Select)
    if (ir::ExprId Number = numberIn(X); Number != None && isRow(X, Number, First))
      return Value::of(Placement::Own, E);
  if (Row.Kind == Operation::Index) {
    if (std::optional<Value> Picked = ofEachRow(X, Result))
      return *Picked;
    if (std::optional<Value> Picked = picked(E, indexItems(X), Result))
      return *Picked;
  }
  if (Row.Kind == Operation::Coupled && StringRef(X.Name).ends_with("::masked_select") && In.Exprs.size() == 2)
    if (std::optional<Value> Picked = picked(E, In.Exprs[1], Result)) { // element by element
      Value Beside = besideRows(Values, E);
      Picked->setRank(1);
      return Beside.Kind == Placement::Sharded ? *Picked : Beside;
    }
  // What a rank has for itself, and what isn't known, stays so through anything that computes.
  auto Computes = [](Operation Kind) {
    if (Kind == Operation::Update || Kind == Operation::Scatter) // what is added up may be of one rank's batch
      return false;
    return Kind < Operation::Factory || Kind == Operation::CoupledModule || Kind == Operation::NoiseModule ||
           Kind == Operation::NoiseLike;
  };
  // `layer(x, mask)` of a mask that is of this rank's rows only as long as these are taken to lie in front.
  if (Row.Kind == Operation::Contract && AnyLocal &&
      llvm::any_of(Values, [](const Value &V) { return V.Kind == Placement::Unknown; }) &&
      realigned(Row.Signatures, In))
    return Value::unknown("is cut along another dimension", E);
  if (Computes(Row.Kind))
    for (Placement Kind : {Placement::Unknown, Placement::Own})
      for (const Value &V : Values)
        if (V.Kind == Kind && Row.Kind != Operation::NoiseLike) {
          Result = V;
          for (size_t I = 0; Kind == Placement::Own && I != Values.size(); ++I)
            Result = besideItsRows(E, Result, Values[I], I == 1 && divides(X));
          return Result;
        }
  Dimensions Dims = dimensions(Row, Args, In.Exprs.empty() ? None : In.Exprs[0]);
  if (optionGiven(Row.DropsOut, X, In) && !madeWithout(In.Maker, "dropout")) { // of the rows, if there are any
    auto Rows = llvm::find_if(Values, [](const Value &V) { return V.Kind == Placement::Sharded; });
    dropsOut(E, Rows == Values.end() ? Values.front() : *Rows, Result);
  }
  if (AnyLocal && optionGiven(Row.KeepsStatistics, X, In))
    note("batch-statistics", E, First, "keeps running statistics of this rank's rows, not of the global batch");
  if (AnyLocal && optionGiven(Row.WritesWeight, X, In))
    note("divergent-training", E, First,
         "writes to what is trained: rows of its weight that this rank's batch looks up are shortened (`max_norm`), on "
         "other ranks others");

  switch (Row.Kind) {
  case Operation::RowWise: {
    const bool Places = Values.size() == 1 && StringRef(X.Name).ends_with("::where"); // where it holds
    if (Places && AnyLocal)
      return lookedAt(E, X.Name);
    Value Each = broadcast(Values, E);
    if (Places && Each.replicated())
      Each.setRank(1);
    return Each;
  }
  case Operation::Item:
    Result.setRank(0);
    return Result;
  case Operation::Linear:
    return Result;
  case Operation::Contract: {
    for (const Parameter &Needed : Row.Parameters)
      if (!Needed.Optional && !Args.count(Needed.Name) && AnyLocal)
        return lookedAt(E, X.Name); // the width of a one-hot code is the batch's maximum unless it is given
    if (AnyLocal && looksUpBags(X))
      return Value::unknown("looks up words by places that count those of all rows", E);
    if (AnyLocal && X.Name == "at::isin" && P.Code.type(X.Args[0]).Kind != TypeKind::Tensor)
      return Value::unknown("looks for a number in all rows", E);
    bool Otherwise = !Row.Option.empty() && In.Maker != None && switchedOn(In.Maker, Row.Option);
    bool Features = false;
    const std::vector<Signature> &Signatures = Otherwise ? Row.WithOption : Row.Signatures;
    Value Contracted = contract(Signatures, Row.Of, featured(Signatures, In.Tensors, E), E, X.Name, &Features,
                                /*Layer=*/In.Maker != None);
    if (Contracted.Kind == Placement::Unknown && AnyLocal &&
        (realigned(Signatures, In) || sizedByBatch(Signatures, In)))
      return Contracted;
    if (Features && Contracted.Kind == Placement::Sharded)
      note("assumed-ranks", E, Contracted,
           "is taken to be given features behind its rows; make sure of that (of `[B]` it would take the batch for "
           "them)");
    if (Features && Contracted.Kind == Placement::Partial)
      note("assumed-ranks", E, Contracted, "is taken to sum over the rows of both operands; make sure of that");
    return Contracted;
  }
  case Operation::Update: {
    const char *Sign = StringRef(X.Name).contains("div") ? "/" : StringRef(X.Name).contains("mul") ? "*" : "+";
    if (In.InPlace && X.Object != None && *Sign == '+' && Values.size() > 1)
      if (std::optional<Location> L = lvalue(X.Object)) {
        Value Added = Values[1];
        if (Values.size() > 2 && !Values[2].replicated()) { // `total.add_(loss, x.size(0))`: so many times it
          demandReplicated(In.Exprs[2], Values[2], "used as a factor");
          Added = nonLinear(Added, In.Exprs[1], "added to a value that is equal on all ranks");
        }
        return accumulate(*L, Added, In.Brought ? None : In.Exprs[1], E);
      }
    return Values.size() > 1 ? arithmetic(E, Sign, Values[0], Values[1], In.Exprs[0], In.Exprs[1]) : Result;
  }
  case Operation::Sum:
  case Operation::Mean: {
    if (Dims.Unknown && Local)
      return Value::unknown("runs over dimensions that aren't known here (`" + X.Name + "`)", E);
    bool OverBatch = Dims.All;
    if (Dims.Unknown)
      Result.forgetRank();
    else if (Dims.All)
      Result.setRank(0);
    else
      Result = over(First, Dims.Known, Keeps, OverBatch, E, X.Name);
    if (!Local || !OverBatch || Result.Kind == Placement::Unknown)
      return Result;
    Value Reduced = Row.Kind == Operation::Sum ? Value::partial(true, E) : Value::of(Placement::Mean, E);
    Reduced.Rank = Result.Rank;
    return Reduced;
  }
  case Operation::Windows: {
    Value Cut = First;
    if (!Local) {
      Cut.addToRank(1);
      return Cut;
    }
    if (Dims.Unknown)
      return Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E);
    Cut = along(First, Dims.Known, E, X.Name);
    Cut.addToRank(1);
    return Cut;
  }
  case Operation::AlongDim:
  case Operation::OverDim: {
    const Parameter *Along = Row.Parameters.empty() ? nullptr : &Row.Parameters[0];
    if (In.Tensors.size() == 2 && Along && Along->Name == "dim" && Dims.All)
      return broadcast(Values, E); // max(a, b) compares two tensors
    Value Joined = broadcast(Values, E);
    if (Joined.Kind == Placement::Unknown)
      return Joined;
    StringRef Plain = StringRef(X.Name).rsplit("::").second;
    bool Largest = Plain == "max" || Plain == "amax" || Plain == "any";
    if (Local && Dims.All && In.Tensors.size() == 1 &&
        (Largest || Plain == "min" || Plain == "amin" || Plain == "all")) {
      Value Extreme = Value::of(Placement::Extreme, E);
      Extreme.Largest = Largest;
      Extreme.setRank(0);
      return Extreme;
    }
    if (Local)
      Joined.setRank(First.Rank), Joined.RankOf = First.RankOf, Joined.RankPlus = First.RankPlus,
                                  Joined.Least = First.Least, Joined.Dim = First.Dim, Joined.Narrowed = First.Narrowed;
    // `x.repeat_interleave(2, 0)`: for each row several, behind each other.
    const bool Vector = Dims.All && (First.Rank == 1 || (First.Rank < 0 && First.Least <= 1));
    const bool Rows = Vector || (!Dims.All && !Dims.Unknown && Dims.Known == std::vector<int64_t>{0});
    if (Local && Plain == "repeat_interleave" && Rows && First.Dim == 0 && !First.Picked && In.Tensors.size() == 1) {
      if (Vector && First.Rank < 0)
        note("assumed-ranks", E, First, "is taken to have one number for each row; make sure of that");
      Joined.Narrowed = false;
      return Joined;
    }
    if (Joined.replicated()) {
      for (const Value &V : llvm::drop_begin(Values))
        if (V.Kind == Placement::Extent)
          return asManyRows(E, In, Dims);
      bool OverBatch = false;
      if (Row.Kind == Operation::AlongDim && In.Tensors.size() == 1)
        Joined.takeRank(First);
      else if (Row.Kind == Operation::OverDim && Dims.Unknown)
        Joined.forgetRank();
      else if (Row.Kind == Operation::OverDim && Dims.All)
        Joined.setRank(0);
      else if (Row.Kind == Operation::OverDim)
        Joined.takeRank(over(First, Dims.Known, Keeps, OverBatch, E, X.Name));
      return Joined;
    }
    if (!Local && Row.Kind == Operation::AlongDim)
      return Value::unknown("puts rows of a batch into something that isn't cut like them", E);
    if (Dims.All)
      return lookedAt(E, X.Name);
    if (Dims.Unknown)
      return Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E);
    if (Row.Kind == Operation::AlongDim)
      return along(Joined, Dims.Known, E, X.Name);
    bool Batch;
    Joined = over(Joined, Dims.Known, Keeps, Batch, E, X.Name);
    return Batch ? Value::unknown("runs along the batch (`" + X.Name + "`)", E) : Joined;
  }
  case Operation::Coupled:
    for (const Value &V : Values)
      if (!V.replicated())
        return lookedAt(E, X.Name);
    Result = Value::of(Placement::Replicated, E);
    if (StringRef(X.Name).ends_with("::masked_select"))
      Result.setRank(1);
    return Result;
  case Operation::Scatter:
    return scattered(E, X, In, Dims);
  case Operation::Lookup:
    return lookedUp(E, X, In, Dims);
  case Operation::Count: {
    Value Joined = broadcast(Values, E);
    if (Joined.replicated())
      Joined.setRank(1);
    if (Joined.Kind != Placement::Sharded)
      return Joined;
    bool Fixed = llvm::all_of(Row.Parameters, [&](const Parameter &P) { return Args.count(P.Name) != 0; });
    if (!Fixed || (number(Row, Args, "min") == 0 && number(Row, Args, "max") == 0))
      return Value::unknown("has as many numbers as the largest of this rank's rows says (`" + X.Name + "`)", E);
    Value Counts = Value::partial(true, E);
    Counts.Rank = 1;
    return Counts;
  }
  case Operation::Loss:
  case Operation::ClassLoss:
    return loss(E, X, Row, In);
  case Operation::Reshape:
    return reshaped(E, X, In, Args);
  case Operation::Index:
    if (Local)
      return indexed(E, X, Result);
    if (First.replicated()) {
      // A table looked up by the rows of a batch.
      Result = broadcast(Values, E);
      Result.forgetRank();
      for (const Value &V : llvm::drop_begin(Values))
        if (V.Kind == Placement::Extent)
          return asManyRows(E, In, Dims);
      if (int Rank = First.Rank < 0 ? -1 : rankIndexed(X, First.Rank); Rank >= 0 && Result.replicated())
        Result.setRank(Rank);
    }
    return Result;
  case Operation::Select:
    if (Dims.Known.empty() && Local)
      return Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E);
    return Dims.Known.empty() ? Result : selected(Result, Dims.Known[0], E);
  case Operation::Cat:
  case Operation::Stack:
    return concatenated(E, X, Row, In, Dims, Args);
  case Operation::Transpose: {
    if (First.Rank == 1) // `t()` leaves it
      return Result;
    if (StringRef(X.Name).ends_with("::t") && First.Rank < 0 && First.Least >= 2) // and takes no more than two
      Result.setRank(2);
    std::optional<int64_t> A = number(Row, Args, "dim0"), B = number(Row, Args, "dim1");
    if (!A || !B)
      return Local ? Value::unknown("moves dimensions in a way that isn't followed", E) : Result;
    return transposed(Result, *A, *B, E);
  }
  case Operation::Permute:
    if (Dims.Unknown || Dims.Known.empty())
      return Local ? Value::unknown("permutes the batch's dimension in a way that isn't followed", E) : Result;
    return permuted(Result, Dims.Known, E);
  case Operation::Unsqueeze:
    if (Dims.Known.empty()) {
      Result.addToRank(1);
      return Local ? Value::unknown("runs along a dimension that isn't known here (`" + X.Name + "`)", E) : Result;
    }
    return unsqueezed(Result, Dims.Known[0], E);
  case Operation::Squeeze:
    if (Dims.All && Dims.Known.empty() && P.Code.type(E).Kind == TypeKind::Tensor)
      squeezesAll(E, X, First);
    return Dims.Unknown && Local ? Value::unknown("squeezes a dimension that isn't known here", E)
                                 : squeezed(Result, Dims.Known, E);
  case Operation::Flatten: {
    std::optional<int64_t> From = number(Row, Args, "start"), To = number(Row, Args, "end");
    if (!From || !To) {
      Result.forgetRank();
      return Local ? Value::unknown("flattens dimensions that aren't known here", E) : Result;
    }
    return flattened(Result, *From, *To, E);
  }
  case Operation::Unflatten:
    if (Dims.Known.empty()) {
      Result.forgetRank();
      return Local ? Value::unknown("cuts a dimension that isn't known here", E) : Result;
    }
    return unflattened(Result, Dims.Known[0], Args.count("sizes") ? Args["sizes"].size() : 0, E);
  case Operation::Expand:
    return expanded(E, In, Args);
  case Operation::PadSequence:
    return padded(E, X, First);
  case Operation::Pad: {
    if (!Local)
      return Result;
    const std::vector<ir::ExprId> &Pads = Args["pad"]; // two for each dimension, from the last
    std::vector<int64_t> Last;
    for (size_t I = 0; I + 1 < Pads.size(); I += 2)
      if (integer(Pads[I]) != 0 || integer(Pads[I + 1]) != 0)
        Last.push_back(-1 - int64_t(I / 2));
    if (Pads.size() < 2)
      return Value::unknown("pads dimensions that aren't known here", E);
    return Last.empty() ? Result : along(Result, Last, E, X.Name);
  }
  case Operation::EinSum: {
    const ir::Expr &Text = P.Code.Exprs[In.Exprs[0]];
    std::optional<Signature> S = Signature::parse(Text.Name);
    std::vector<Value> Items;
    std::function<void(ir::ExprId)> Look = [&](ir::ExprId Item) {
      if (P.Code.type(Item).Kind == TypeKind::Tensor)
        Items.push_back(eval(Item));
      else
        for (ir::ExprId Sub : P.Code.Exprs[Item].Args)
          Look(Sub);
    };
    if (In.Exprs.size() > 1)
      Look(In.Exprs[1]);
    if (!AnyLocal && llvm::all_of(Items, [](const Value &V) { return V.replicated(); }))
      return Value::of(Placement::Replicated, E);
    // Its letters say no more than which dimensions meet, so capital ones aren't ours.
    bool Lower = llvm::none_of(Text.Name, [](char C) { return llvm::isUpper(C); });
    if (!S || !Lower || Items.size() != S->Inputs.size())
      return Value::unknown("contracts dimensions in a way that isn't followed (`" + X.Name + "`)", E);
    return contract(*S, {true, true}, Items, E, X.Name);
  }
  case Operation::TensorDot: {
    if (!AnyLocal)
      return broadcast(Values, E);
    // Rows of a batch with a whole tensor: what isn't contracted stays, in order.
    bool Rest = In.Tensors.size() == 2 && Local && In.Tensors[1].replicated() && !Args["dims"].empty();
    int Before = 0;
    for (ir::ExprId Item : Args["dims"]) {
      std::optional<int64_t> N = integer(Item);
      Side Where = N ? locate(First, *N) : Side::Unknown;
      Rest &= Where == Side::Before || Where == Side::Behind;
      Before += Where == Side::Before;
    }
    if (!Rest)
      return Value::unknown("multiplies rows of the batch with each other (`" + X.Name + "`)", E);
    Result.forgetRank();
    Result.Dim -= Before;
    return Result;
  }
  case Operation::Factory:
  case Operation::Noise:
    return made(E, X, Row, In, Args);
  case Operation::NoiseLike:
    // Dropout is off in evaluation, and the same law where it isn't.
    if (StringRef(X.Name).contains("dropout") || StringRef(X.Name).contains("rrelu")) {
      dropsOut(E, First, Result);
      return Result;
    }
    if (const bool Several = Local && !In.Exprs.empty() && changesNumber(In.Exprs[0]);
        Local && !Several && First.Dim == 0 && Divergent == 0 && In.Exprs.size() > 0 &&
        (StringRef(X.Name).ends_with("::randn_like") || StringRef(X.Name).ends_with("::rand_like"))) {
      if (Recording)
        Out.RowNoiseLike[E] = In.Exprs[0];
      drawn(E, /*Rows=*/true);
    } else if (Local) {
      drawsForRows(E, X, First, Several);
      Result.Noisy = true;
    }
    if (!Local)
      notWhole("it draws random numbers", E);
    if (First.replicated())
      drawn(E, /*Rows=*/false);
    return Local && !Row.Parameters.empty() && !Dims.All ? along(Result, Dims.Known, E, X.Name) : Result;
  case Operation::Like:
    if (StringRef(X.Name).ends_with("::copy_") && Values.size() > 1)
      Result = Values[1];
    else if (First.reducible())
      Result = Value::of(Placement::Replicated, E);
    // A sum may begin there: `total.zero_()` behind an epoch, `torch::zeros_like(total)`.
    if (StringRef(X.Name).contains("::zero") && (First.replicated() || First.reducible()) && !In.Tensors.empty())
      Result.Kind = Placement::Zero;
    return Result;
  case Operation::Replicated:
    if (StringRef(X.Name).ends_with("grad")) {
      const ir::VarId Leaf = X.Object == None ? None : P.Code.Exprs[P.unconverted(X.Object)].Var;
      if (!First.replicated())
        return gradientOfRows(E, X, First);
      if (X.Name == "at::Tensor::grad" && Leaf != None && R.isInputLeaf(Leaf) && !P.Code.Vars[Leaf].Param &&
          llvm::any_of(Loops, [&](const Loop &L) { return Out.SharedSteps.count(L.Statement) != 0; }))
        LeafGradients.insert(E);
      if (WholeGradients.count(E))
        return Value::unknown("is the gradient at a whole of which each rank has used its rows", E);
      if (Recording && X.Name == "at::Tensor::grad")
        Out.RowGradients[E].insert(First.Kind); // also where other runs have rows
    }
    for (size_t I = 0; I != Values.size(); ++I) // `clip_grad_norm_(parameters, limit)`
      if (P.Code.type(In.Exprs[I]).number())
        intoModel(In.Exprs[I], Values[I]);
    return Value::of(Placement::Replicated, E);
  case Operation::Metadata:
    return Value::of(Placement::Replicated, E);
  case Operation::Extent:
    if (First.Kind == Placement::Own || First.Kind == Placement::Unknown)
      return Result;
    if (Local && Dims.Known.size() == 1 && locate(First, Dims.Known[0]) == Side::Unknown)
      return Value::unknown("is a size counted from the end where the batch may be meant", E);
    if ((Local || First.replicated()) && Dims.Known.size() == 1 && Dims.Known[0] >= 0) // it would throw otherwise
      hasAtLeast(First, X.Object, int(Dims.Known[0]) + 1);
    if (Local && !Dims.Unknown && (Dims.All || locate(First, Dims.Known[0]) == Side::Batch)) {
      Value Rows = First; // with the dimensions, for shapes that are taken over whole
      Rows.Kind = Placement::Extent;
      Rows.Source = E;
      Rows.Batch = None;
      return Rows;
    }
    return Local && Dims.Unknown ? Value::unknown("is the size of a dimension that isn't known here", E)
                                 : Value::of(Placement::Replicated, E);
  case Operation::Tuple:
    Result = Value::of(Placement::Replicated, E);
    for (const Value &V : Values)
      if (!V.replicated())
        Result = Result.replicated() || Result.same(V) ? V : join(Result, V);
    return Result;
  case Operation::Number:
    Result = Value::of(Placement::Replicated, E);
    for (size_t I = 0; I != Values.size(); ++I)
      if (Value V = nonLinear(Values[I], In.Exprs[I], "computed with"); !V.replicated())
        Result = V;
    return Result;
  case Operation::CoupledModule:
    if (Local && First.Dim != 0)
      return Value::unknown("runs along the batch (`" + X.Name + "`)", E);
    if (Local)
      note("batch-statistics", E, First,
           "normalises with the statistics of this rank's rows, not of the global batch; every rank needs two rows of "
           "every batch");
    return Result;
  case Operation::NoiseModule:
    if (!madeWithout(In.Maker, "p")) // LibTorch draws nothing for it
      dropsOut(E, First, Result);
    return Result;
  case Operation::Container:
  case Operation::Wrapper:
    return contained(E, X, Row, In);
  }
  return Result;
}

} // namespace migrate
