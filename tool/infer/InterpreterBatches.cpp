//===- InterpreterBatches.cpp - What a step's results have of its batch ---===//
//
// Every result is told the rows that it has, and where they could be cut; what meets the rows of a batch that was cut,
// and has as many, is cut as well.
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

/// A module is given a whole batch that no training made: the loops over such batches are those that could be cut.
void Interpreter::evaluates(ir::ExprId Batch) {
  if (const Loop *Step = stepLoop(); Step && !Step->Trains) {
    cut(cutPoint(Batch, *Step), Step->Statement) || cut(Batch, Step->Statement);
    return;
  }
  for (const Loop &L : llvm::reverse(Loops)) {
    if (L.Trains || L.Loader != None)
      return;
    if (Recording && L.Mode == LoopMode::Plain)
      Out.Evaluates.insert(L.Statement);
  }
}

/// `bags(words, offsets)`: what looks up words that lie one behind the other, with where the rows' begin.
bool Interpreter::looksUpBags(const ir::Expr &X) const {
  StringRef Name = X.Name;
  if (!Name.contains("EmbeddingBag") && !Name.ends_with("embedding_bag"))
    return false;
  if (Name.contains("functional::"))
    return arguments(OperationRow(), X.Args).count("offsets") != 0;
  const size_t Words = Name.ends_with("::forward") ? 0 : 1; // ATen's takes the weight first
  const ir::ExprId Offsets = X.Args.size() > Words + 1 ? X.Args[Words + 1] : None;
  const auto Given = Last.find(Offsets);
  return Given != Last.end() && P.Code.type(Offsets).Kind == TypeKind::Tensor && !Given->second.Nothing;
}

/// What an operation takes row by row has the same rows, whatever they are called; 0 where they have no name.
void Interpreter::meet(const std::vector<ir::ExprId> &Operands) {
  std::optional<uint32_t> First;
  for (ir::ExprId Operand : Operands) {
    const Value &V = Last[Operand];
    if (V.Kind != Placement::Sharded)
      continue;
    const uint32_t Rows = metAs(V.Rows > NoRows ? V.Rows : 0);
    if (First && Rows != metAs(*First))
      MetAs[std::max(Rows, metAs(*First))] = std::min(Rows, metAs(*First));
    First = Rows;
  }
}

/// The one name for all that have met.
uint32_t Interpreter::metAs(uint32_t Rows) const {
  for (auto It = MetAs.find(Rows); It != MetAs.end(); It = MetAs.find(Rows))
    Rows = It->second;
  return Rows;
}

/// Adds to a result what is known of its rows, and where they could be cut.
Value Interpreter::withRows(ir::ExprId E, const ir::Expr &X, const Operation *Op, Value Result) {
  if (Restart)
    return Result;
  bool Loss = Op && (*Op == Operation::Loss || *Op == Operation::ClassLoss);
  bool Module = Op && !Loss && StringRef(X.Name).ends_with("::forward");
  std::vector<ir::ExprId> Operands = operandsOf(X);
  if (Op && *Op == Operation::ClassLoss && StringRef(X.Name).contains_insensitive("ctc") && Operands.size() > 1 &&
      Last[Operands[1]].Rank == 1) // targets one behind the other
    Operands.erase(Operands.begin() + 1);
  if (Result.Kind == Placement::Sharded || Result.reducible())
    meet(Operands);

  bool Leaf = (StringRef(X.Name).ends_with("requires_grad_") || StringRef(X.Name).ends_with("set_requires_grad")) &&
              !R.InputCalls.count(E) && !isPoint(E);
  Result.Trained =
      Module || Leaf || StringRef(X.Name).ends_with("register_parameter") ||
      (Op && (*Op == Operation::Factory || *Op == Operation::Noise) &&
       llvm::any_of(X.Args, [&](ir::ExprId Arg) { return mentions(Arg, "requires_grad", 1); }) && !isPoint(E));
  for (ir::ExprId Operand : Operands)
    Result.Trained |= Last[Operand].Trained || isParameter(Operand);
  // Results of a call that keep no graph are no more the model's than a batch is.
  bool InPlace = StringRef(X.Name).ends_with("_") || StringRef(X.Name).ends_with("=");
  if (P.Code.type(E).number() || StringRef(X.Name).ends_with("::detach") || (NoGrads > 0 && !Leaf && !InPlace) ||
      (Result.reducible() && losesGraph(X)))
    Result.Trained = false;
  if (Leaf && X.Object != None)
    if (std::optional<Location> L = lvalue(X.Object))
      Current[*L].Trained = true;
  for (ir::ExprId Operand : Operands)
    if (const Value &V = Last[Operand]; Result.replicated() && !P.Code.type(E).number()) {
      Result.Forward = Result.Forward == None ? V.Forward : Result.Forward;
      if (Module && Result.Forward == None && V.replicated() && V.Rows != NoRows && V.Rank != 0 && trainsHere())
        Result.Forward = E;
    }
  if (const Loop *Step = Result.Forward == E && taken(By.CutEarly) ? stepLoop() : nullptr)
    InputOf[E] = cutPoint(Operands[0], *Step);

  // Words one behind the other, and where each row's begin: rows are what comes out.
  if (Result.replicated() && looksUpBags(X)) {
    Result.Rows = ownRowsName(E);
    if (const Loop *Step = Result.Trained ? stepLoop() : nullptr)
      Result.Edges = {Edge{E, Step->Statement, Result.Rows, true}};
    return Result;
  }

  // `w.sub_(rate * w.grad())`: what a parameter is changed by is no batch that it meets.
  if (X.Kind == ExprKind::Call && X.Object != None && InPlace && Result.replicated() && R.ofModel(X.Object)) {
    Result.Rows = Last[X.Object].Rows;
    Result.Edges = Last[X.Object].Edges;
    return Result;
  }

  // `bank.slice(0, i, i + n).add_(p)`: all rows were brought together for what outlives the step.
  if (X.Kind == ExprKind::Call && X.Object != None && InPlace && Result.replicated() && !Operands.empty() &&
      llvm::any_of(Operands, [&](ir::ExprId Operand) { return Last[Operand].Kind == Placement::Sharded; }))
    return Result;

  size_t Compares = 2; // operands of a loss that have rows; `triplet_margin_loss` takes three
  if (bool Ignored; Op && *Op == Operation::ClassLoss) {
    if (const OperationRow *Row = Table.find(X.Name, Ignored); Row && !Row->Signatures.empty())
      Compares = Row->Signatures.front().Inputs.size();
    Operands.resize(std::min(Operands.size(), Compares)); // behind them come weights of classes
  }
  // Operands are aligned from the right, and those of fewer dimensions or one row broadcast.
  bool Beside = meetsRowByRow(X, Op);
  // Options hold numbers for the rows, too.
  const bool Crosses = Loss && StringRef(X.Name).contains("functional::binary_cross_entropy");
  if (Crosses || StringRef(X.Name).ends_with("functional::embedding_bag")) {
    const Arguments Given = arguments(OperationRow(), X.Args);
    if (auto Weights = Given.find(Crosses ? "weight" : "per_sample_weights"); Weights != Given.end())
      for (ir::ExprId Weight : Weights->second)
        if (Weight != None && P.Code.type(Weight).Kind == TypeKind::Tensor && Last.count(Weight)) {
          Operands.push_back(Weight);
          Beside = true;
        }
  }
  // An index with the rows of what it picks from.
  bool Picks = Op && *Op == Operation::Lookup && !StringRef(X.Name).ends_with("index_select");
  auto BesideNumber = [&](size_t I) {
    return Loss && Compares == 2 && I < Compares && Operands.size() > 1 && Last[Operands[1 - I]].Rank == 0;
  };
  // A batch that was cut: what has the same rows is cut as well, what may have them must be known.
  uint32_t Batch = 0;
  bool InHand = false; // it was cut before this is evaluated
  const Value *Local = nullptr;
  for (ir::ExprId Operand : Operands)
    if (const Value &V = Last[Operand]; V.Kind == Placement::Sharded) {
      Local = &V;
      InHand |= P.Code.Exprs[Operand].Kind == ExprKind::Ref && !Cuts.count(Operand);
      if (V.Rows > NoRows && (Batch == 0 || V.Dim == 0)) // of a state's rows, which lie along another, less is known
        Batch = V.Rows;
    }
  if (Local && Batch == 0)
    ownRows(Loss ? Compares : 0, Beside, Operands, *Local,
            /*Table=*/Op && (*Op == Operation::Scatter || *Op == Operation::Lookup));
  if (Batch != 0 && !CutLoops.empty()) {
    const Loop *Step = stepLoop();
    for (size_t I = 0; I != Operands.size(); ++I) {
      const Value &V = Last[Operands[I]];
      // One row in front, `y.unsqueeze(0)`, has the batch's behind it where the other has.
      const bool Aligned = Beside || (Op && *Op == Operation::Update);
      const bool Row = V.Rows == NoRows && Aligned && Local->Dim == 1 && V.Rank == Local->Rank;
      if (P.Code.type(Operands[I]).Kind != TypeKind::Tensor || !V.replicated() || (V.Rows == NoRows && !Row) ||
          isParameter(Operands[I]) || picksOfEachRow(X, Operands[I]))
        continue;
      if (taken(By.Together) && V.AllRows) // of all rows, and so is what meets it
        continue;
      // `hits.index_add_(0, classes, …)`: what is added to has places, as many as the batch has rows by chance.
      if (I == 0 && Op && *Op == Operation::Scatter && X.Object != None)
        continue;
      // A filter's or a layer's own dimensions are channels and features.
      StringRef Layer = StringRef(X.Name).rsplit("::").second;
      if (I > 0 && X.Kind == ExprKind::Call && X.Object == None && (Layer.starts_with("conv") || Layer == "linear"))
        continue;
      if (BesideNumber(I)) // a number's target is one
        continue;
      bool Sure =
          (Loss && I < Compares) || (Picks && I > 0) || (Beside && Local->Dim == 0 && cutElsewhere(Operands[I]));
      // Of fewer dimensions, or one: it's broadcast along the batch. Numbers of classes have no dimension for them.
      bool Classes = Op && *Op == Operation::ClassLoss && I < Compares;
      if (!Classes && Local->Rank >= 0 && V.Rank >= 0 && V.Rank < Local->Rank - Local->Dim)
        continue;
      // What steps around this one made with a model is whole there, and has rows to cut here.
      const bool Around = Step && !V.Edges.empty() && V.Rows == Batch &&
                          llvm::none_of(V.Edges, [&](const Edge &E) { return E.Loop == Step->Statement; });
      const bool Equal = V.Rank >= 0 && V.Rank == Local->Rank, Uncertain = V.Rank < 0 || Local->Rank < 0;
      const bool Across = Step && Aligned && Local->Dim > 0 && !V.Trained && (Equal || Uncertain);
      if (Across && besideAcross(Operands[I], Local->Dim, Batch, *Step))
        continue;
      if (Across && Equal) {
        note("unknown-rows", Operands[I], V, "meets the rows of a batch");
      } else if (V.Trained && !Around) {
        // `out.argmax(1).eq(t)` of a model that got what isn't known to be a batch
        const bool Maybe = Beside && V.Forward != None && V.Rows == 0 && V.Rank < 0 && !Local->Trained;
        if (!Module && (V.Rows == Batch || Sure || Maybe))
          note("unknown-rows", Operands[I], V, "meets the rows of a batch");
      } else if (Step && (Sure || V.Rows == Batch || (Beside && joinedAlike(V.Rows, Batch)))) {
        ir::ExprId At = cutPoint(Operands[I], *Step);
        if (!cut(At, Step->Statement))
          cut(Operands[I], Step->Statement);
      } else if (Step && Beside && besideRows(V, *Local)) {
        if (InHand && !Windows.count(V.Rows))
          Restart |= OwnRows.insert(Operands[I]).second;
        else if (ir::ExprId At = cutPoint(Operands[I], *Step); !cut(At, Step->Statement))
          cut(Operands[I], Step->Statement);
      } else if (Step && Beside && besideUnknown(Operands[I], V, *Local, *Step)) {
        Restart |= ForEachRow.insert(Operands[I]).second;
        cut(Operands[I], Step->Statement);
      } else if (Step && Beside && InHand && Uncounted.count(V.Rows) && V.Rank > 0 && V.Rank == Local->Rank &&
                 Local->Dim == 0) {
        // As many rows as the batch, or one: told where it runs.
        Restart |= OwnRows.insert(Operands[I]).second;
      } else if ((V.Rows == 0 || Uncounted.count(V.Rows)) && !Module && V.Kind != Placement::Zero)
        note("unknown-rows", Operands[I], V, "meets the rows of a batch");
    }
    if (Result.Kind == Placement::Sharded || Result.Kind == Placement::Mean || Result.Kind == Placement::Partial)
      Result.Rows = Batch;
    std::vector<ir::ExprId> Shape; // `samples.view({x.size(0), 5})`: of several rows for each, these again
    if (Op && *Op == Operation::Reshape && Result.Kind == Placement::Sharded && !X.Args.empty())
      collectItems(P, X.Args[0], Shape);
    if (!Shape.empty() && Last[Shape[0]].Kind == Placement::Extent && Last[Shape[0]].Rows > NoRows)
      Result.Rows = Last[Shape[0]].Rows;
    return Result;
  }
  if (!Result.replicated())
    return Result;

  Result.Rows = P.Code.type(E).number() ? NoRows : rowsOf(E, X, Op, Operands);
  if (Module && !Operands.empty())
    if (const Value &V = Last[Operands[0]]; V.replicated() && !V.Trained && V.Rows != NoRows && V.Rank != 0 &&
                                            !isParameter(Operands[0]) && !takesOneSample(E, X, *Op, V, Result))
      evaluates(Operands[0]);
  Result.Edges.clear();
  // Of fewer dimensions, it is broadcast along the first: none of its rows is the batch's. A scalar was made of them.
  int Longest = -1;
  for (ir::ExprId Operand : Operands)
    Longest = std::max<int>({Longest, Last[Operand].Rank, Last[Operand].Least});
  if (Result.Trained)
    for (ir::ExprId Operand : Operands)
      if (!Beside || Last[Operand].Rank <= 0 || Last[Operand].Rank == Longest)
        addEdges(Result, Last[Operand]);
  const Loop *Step = Result.Trained ? stepLoop() : nullptr;
  if (!Step)
    return Result;
  for (size_t I = 0; I != Operands.size(); ++I) {
    const Value &V = Last[Operands[I]];
    if (P.Code.type(Operands[I]).Kind != TypeKind::Tensor || !V.replicated() || V.Trained || V.Rows == NoRows ||
        V.Rank == 0 || isParameter(Operands[I]) || numbersRows(Operands[I]) || picksOfEachRow(X, Operands[I]))
      continue;
    if (Module && I == 0 && takesOneSample(E, X, *Op, V, Result))
      continue;
    if (BesideNumber(I))
      continue;
    // `x * mask`, of a window that moves with the steps and a mask that the module holds
    const bool BesideOwn = Beside && Windows.count(V.Rows) && llvm::any_of(Operands, [&](ir::ExprId Other) {
                             return Other != Operands[I] && isParameter(Other);
                           });
    // A loss's target has the rows of what it is compared with, if that has a batch's at all.
    bool Compared =
        Loss && I < Compares && llvm::any_of(Operands, [&](ir::ExprId Other) { return !Last[Other].Edges.empty(); });
    Edge New{cutPoint(Operands[I], *Step), Step->Statement, V.Rows,
             (Module && I == 0) || Compared || BesideOwn || (Picks && I > 0) ||
                 (Op && *Op == Operation::Contract && I == 0)};
    // Tried, and still whole: right where it is used, then.
    if (Cuts.count(New.At))
      New.At = Operands[I];
    Result.Edges.insert(std::lower_bound(Result.Edges.begin(), Result.Edges.end(), New), New);
  }
  Result.Edges.erase(std::unique(Result.Edges.begin(), Result.Edges.end()), Result.Edges.end());
  return Result;
}

/// Whether operands meet element by element, or vector by vector: `p - y`, `torch::sub(p, y)`, `cosine_similarity(p,
/// y)`.
bool Interpreter::meetsRowByRow(const ir::Expr &X, const Operation *Op) const {
  if (X.Kind == ExprKind::Binary)
    return true;
  bool InPlace;
  if (!Op)
    return false;
  if (*Op == Operation::Update)
    return !changesInPlace(X);
  if (*Op != Operation::Contract)
    return *Op == Operation::RowWise || *Op == Operation::Linear;
  const OperationRow *Row = Table.find(X.Name, InPlace);
  return Row && Row->Signatures.size() == 1 && Row->Signatures[0].Inputs.size() > 1 &&
         llvm::all_of(Row->Signatures[0].Inputs, [](const std::string &Input) { return Input == ".I"; });
}

/// `x.squeeze()`: where a rank has one row, the dimension of the rows would go as well.
void Interpreter::squeezesAll(ir::ExprId E, const ir::Expr &X, const Value &V) {
  bool Rows = V.Kind == Placement::Sharded && V.Dim == 0;
  bool Method = X.Kind == ExprKind::Call && X.Name == "at::Tensor::squeeze" && X.Object != None && X.Where.Editable &&
                P.Code.Exprs[X.Object].Where.Editable;
  if (Method && Recording)
    Out.Squeezes[E].insert(V.Kind);
  if (!Method && Rows)
    note("assumed-ranks", E, V, DropsRows);
}

/// How many rows have a name, as the program writes it; nothing if it doesn't.
std::string Interpreter::lengthOf(uint32_t Rows) const {
  const auto Length = Lengths.find(Rows);
  if (Length == Lengths.end())
    return "";
  const auto Known = RowCounts.find(Rows);
  return Known != RowCounts.end() ? std::to_string(Known->second)
                                  : "`" + P.Code.Vars[P.Code.Exprs[P.unconverted(Length->second)].Var].Name + "`";
}

/// Whether a step shares out both, as batches that aren't one: ranks have other parts of them, and some may have none
/// of one alone.
bool Interpreter::ofOtherBatches(uint32_t A, uint32_t B) {
  const bool Named = metAs(A) != 0 && metAs(B) != 0;
  const Loop *Step = A == B || (Named && metAs(A) == metAs(B)) ? nullptr : stepLoop();
  if (!Step || !CutRows[Step->Statement].count(A) || !CutRows[Step->Statement].count(B))
    return false;
  // The 8 of `slice(0, i, i + 8)` are fewer at an end, which needn't be the other's.
  const std::string One = lengthOf(A), Other = lengthOf(B);
  if (!One.empty() && One == Other && Exactly.count(A) && Exactly.count(B))
    return false;
  return One.empty() || Other.empty() || One == Other ? Named : true;
}

/// A mean is weighed by the rows of the batch that the step has shared out last, and a sum left out where a rank has
/// none of it: of another batch, with other parts on the ranks, it would be something else.
void Interpreter::ofOneBatch(ir::ExprId E, const Value &V) {
  const bool Mean = V.Kind == Placement::Mean;
  const Loop *Step = V.Rows > NoRows && (Mean || (V.Kind == Placement::Partial && V.Fresh)) ? stepLoop() : nullptr;
  if (!Step || InHand == V.Rows)
    return;
  auto Count = [&](uint32_t Rows) { return lengthOf(Rows).empty() ? "" : lengthOf(Rows) + " "; };
  if (CutAhead.count(V.Rows) && metAs(InHand) != metAs(V.Rows) &&
      (lengthOf(V.Rows).empty() || lengthOf(V.Rows) != lengthOf(InHand)))
    note("ambiguous-placement", E, V,
         (Mean ? "is a mean over " : "is a sum over ") + Count(V.Rows) +
             "rows that were cut in front of its loop, and another batch has come since");
  for (uint32_t Other : InHand ? std::set{InHand} : CutRows[Step->Statement])
    if (ofOtherBatches(V.Rows, Other))
      note("ambiguous-placement", E, V,
           (Mean ? "is a mean over " : "is a sum over ") + Count(V.Rows) + "rows in a step that shares out " +
               Count(Other) +
               "others as well, of which ranks have other parts; write it as a sum over its rows, divided by their "
               "number as the bounds tell it, `x.sum() / (end - i)`");
}

} // namespace migrate
