//===- InterpreterOperands.cpp - What operations take, and give -----------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

Value Interpreter::operation(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, bool InPlace) {
  // The operands, the object first.
  Operands In;
  if (X.Object != None && P.Code.type(X.Object).Kind != TypeKind::Module)
    In.Exprs.push_back(X.Object);
  In.Exprs.insert(In.Exprs.end(), X.Args.begin(), X.Args.end());
  size_t Given = In.Exprs.size();
  // An optional tensor that isn't there is as if it weren't given. Of other arguments the place counts.
  auto IsNothing = [&](ir::ExprId Operand) {
    return StringRef(P.Code.type(Operand).Name).contains("at::Tensor") && eval(Operand).Nothing;
  };
  const bool OfNothing = !In.Exprs.empty() && In.Exprs[0] == X.Object && IsNothing(X.Object);
  if (Row.Kind != Operation::Contract) // where each has its place: `attention(q, k, v, {}, true, mask)`
    llvm::erase_if(In.Exprs, IsNothing);
  if (OfNothing || (In.Exprs.empty() && Given > 0))
    return Value::nothing(E); // nobody comes here with nothing in it
  bool Into = InPlace && X.Object != None && R.ofModel(X.Object);
  ir::ExprId Changed = InPlace && !Into ? X.Object : None;
  while (Changed != None && !lvalue(Changed)) { // `bank.slice(0, i, i + n).mul_(0.7).add_(p, 0.3)`
    const ir::Expr &Part = P.Code.Exprs[Changed];
    Changed = isView(Part.Name) || changesInPlace(Part) ? Part.Object : None;
  }
  const std::optional<Location> To = Changed == None ? std::nullopt : lvalue(Changed);
  const bool Behind =
      To && (behindNames(*To) || (Changed != X.Object && X.Name != "at::Tensor::copy_" && outer(*To) && !ofOneRank()));
  // A moving average, a table of prototypes: the step's part goes in as a whole.
  const Value Before = To ? read(*To, E) : Value();
  const bool Moves = To && !Behind && outer(*To) && !ofOneRank() && Before.replicated() &&
                     (Before.Kind == Placement::Replicated || Row.Kind != Operation::Update);
  // `torch::full({}, double(rows))`: a number that a tensor is filled with is that of all ranks.
  const StringRef Plain = StringRef(X.Name).rsplit("::").second;
  const size_t Filler = Plain == "full" || Plain == "full_like" ? 1 : 0;
  const bool Fills = (Filler == 1 || Plain == "fill_") && X.Kind == ExprKind::Call && X.Args.size() > Filler;
  for (ir::ExprId Operand : In.Exprs) {
    In.Values.push_back(eval(Operand));
    Value &V = In.Values.back();
    const ir::Type &T = P.Code.type(Operand);
    const bool Lasts = Plain == "fill_" && X.Object != None && lvalue(X.Object) && outer(*lvalue(X.Object));
    if (Fills && Operand == X.Args[Filler] && T.Kind != TypeKind::Tensor &&
        (V.reducible() || (V.Kind == Placement::Own && Lasts)))
      V = demandReplicated(P.unconverted(Operand), V, "what a tensor is filled with");
    // What isn't linear computes with the whole.
    bool Linear = Row.Kind == Operation::Contract && (Row.Of.Linear || Row.Of.Affine);
    bool Computes = Row.Kind == Operation::RowWise || Row.Kind == Operation::AlongDim ||
                    Row.Kind == Operation::OverDim || Row.Kind == Operation::Windows ||
                    Row.Kind == Operation::Coupled || Row.Kind == Operation::Loss || Row.Kind == Operation::Contract;
    const bool TakesWhole = Computes && !Linear, OverSteps = TakesWhole && sumOfSteps(Operand, V);
    if (OverSteps)
      demandReplicated(Operand, V, "used");
    if (TakesWhole && gathers(V) && losesGraph(X)) // `torch::isnan(loss)` asks for no gradient
      V.Trained = false;
    if (OverSteps || (TakesWhole && brought(V, Operand))) {
      Value Whole = Value::of(Placement::Replicated, Operand);
      Whole.Trained = V.Trained;
      Whole.setRank(V.Rank);
      V = Whole;
    }
    if (Into && Operand != X.Object && !V.replicated()) { // brought together, as call() has demanded
      Value Whole = Value::of(Placement::Replicated, Operand);
      Whole.setRank(V.Rank);
      V = Whole;
    }
    if (Behind && Operand != X.Object && !V.replicated()) {
      if (V.Kind == Placement::Own)
        notWhole("it writes into a part of something", E);
      V = demandReplicated(Operand, V, "written through another name of what outlives the step");
    }
    if (Moves && Operand != X.Object && V.reducible() && T.Kind == TypeKind::Tensor && (!V.Trained || NoGrads > 0))
      V = demandReplicated(Operand, V, "written to what outlives the step");
    if (V.Batch != None && T.Kind == TypeKind::Tensor && Row.Kind != Operation::Metadata &&
        Row.Kind != Operation::Extent)
      Out.Unmoved.insert(V.Batch);
    // Of a list of rows a tensor can be made, and its length be asked.
    if (listsRows(Operand, V) && Row.Kind != Operation::Stack && Row.Kind != Operation::PadSequence &&
        Row.Kind != Operation::Factory && Row.Kind != Operation::Extent)
      V = Value::unknown("is a list of a batch's rows", Operand);
    if (holdsTensors(T))
      In.Tensors.push_back(V);
    else if (V.Rank < 0 && V.replicated() && !StringRef(T.Name).contains("Tensor")) // numbers have no dimensions
      V.setRank(0);
  }
  In.InPlace = InPlace;
  In.Brought = Behind || Moves || Into;
  In.Maker = X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module ? X.Object : None;
  if (In.Values.empty())
    return Value::of(Placement::Replicated, E);
  std::optional<Value> Astray = picksAstray(E, X, Row, In);
  Value Result = Astray ? *Astray : ofPicks(E, X, In, apply(E, X, Row, In));
  rounded(X, Row, In, Result);
  const bool DrawsForAll = Row.Kind == Operation::Noise && Result.replicated();
  if (DrawsForAll && Divergent > 0 && !Globals)
    note("divergent-training", E, Value(),
         "draws from the generator that ranks have in common, where not every rank comes along");
  if (DrawsForAll) // generators that draw other numbers part ways
    for (ir::ExprId Operand : In.Exprs)
      if (Value Size = Last[Operand]; Size.Choice != None || P.Code.type(Operand).Kind == TypeKind::Integer)
        agreeOnChoice(Operand, Size);
  const bool Counts = Result.Kind == Placement::Extent;
  ofItsStep(In.Values, Result);
  if (Counts && Result.Kind == Placement::Unknown) // of which the others may have had another number
    note("ambiguous-placement", E, Result,
         "counts this rank's rows of an earlier step; keep the number of all rows, `x.size(0)`, beside the state");
  Result.Batch = None;
  Result.Iterator = false;
  if (Into && Result.replicated()) { // `w.sub_(rate * w.grad())` is the model's as before
    Result.Trained = In.Values[0].Trained;
    Result.Rows = In.Values[0].Rows;
    Result.Edges = In.Values[0].Edges;
  }
  if (InPlace && X.Object != None)
    writeBack(E, X, Row, In, Result);
  return Result;
}

/// What is made of an earlier step's rows alone is of that step: now there may be others, of other weights.
void Interpreter::ofItsStep(llvm::ArrayRef<Value> Operands, Value &Result) {
  bool Earlier = false;
  for (const Value &V : Operands)
    if (V.Kind == Placement::Sharded) {
      Earlier = V.Earlier;
      if (!Earlier)
        break;
    }
  Result.Earlier = Earlier && Result.Kind == Placement::Sharded;
  if (Earlier && Result.reducible())
    Result = Value::unknown("is made of an earlier step's rows", Result.Source);
}

} // namespace migrate
