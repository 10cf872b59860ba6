//===- InterpreterDraws.cpp - Random numbers for the rows of a batch ------===//
//
// The ranks' generators are equal, and what is drawn for a batch is drawn for all its rows, of which each rank keeps
// its own: by the number that the shape names, by a tensor that it is like, or by all rows of the tensors that say of
// what law the numbers are.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

/// Whether a tensor has another number of rows than the batch, by what it is made of: `x.repeat_interleave(2, 0)`,
/// `x.reshape({-1})` of features, `x.masked_select(mask)`.
bool Interpreter::changesNumber(ir::ExprId E) const {
  static const char *const Changing[] = {"repeat_interleave", "masked_select", "nonzero", "combinations", "unique"};
  static const char *const Adding[] = {"repeat", "tile", "expand", "stack", "unsqueeze"}; // a dimension behind the rows
  for (int Hops = 0; E != None && Hops != 16; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[E = madeAs(E)];
    const StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (Cuts.count(E) || StringRef(X.Name).ends_with("Accelerator::shard")) // the batch, whatever it was taken from
      return false;
    std::vector<ir::ExprId> Numbers;
    for (ir::ExprId Arg : X.Args)
      if (Arg != None && Name != "cat")
        collectItems(P, Arg, Numbers);
    llvm::erase_if(Numbers, [&](ir::ExprId Item) { return P.Code.type(Item).Kind != ir::TypeKind::Integer; });
    const bool Times = (Name == "repeat" || Name == "tile") && !Numbers.empty() && integer(Numbers[0]) != 1;
    const bool Behind = Name == "cat" && (X.Args.size() < 2 || integer(X.Args[1]).value_or(0) == 0);
    const auto Of = X.Object == None ? Last.end() : Last.find(X.Object);
    const bool Rest = (Name == "view" || Name == "reshape") && !Numbers.empty() && integer(Numbers[0]) == -1 &&
                      Of != Last.end() &&
                      ((Numbers.size() == 1 && Of->second.Rank != 1) ||
                       llvm::is_contained(Adding, StringRef(P.Code.Exprs[madeAs(X.Object)].Name).rsplit("::").second));
    if (X.Kind == ExprKind::Call && (llvm::is_contained(Changing, Name) || Times || Behind || Rest))
      return true;
    E = X.Object != None && P.Code.type(X.Object).Kind == ir::TypeKind::Tensor ? X.Object
        : X.Args.empty() || X.Kind == ExprKind::Literal                        ? None
                                                                               : X.Args[0];
  }
  return false;
}

/// A draw whose result has a batch's rows: `Rows` names their number where it stands first in the shape.
void Interpreter::drawForRows(ir::ExprId E, const ir::Expr &X, const Operands &In, ir::ExprId Rows, Value &Result) {
  ir::ExprId Like = In.Exprs.empty() ? None : likeOf(In.Exprs[0]);
  // `at::normal(torch::zeros_like(mean), deviation)`: the other one would stay this rank's.
  bool Alone = llvm::count_if(In.Values, [](const Value &V) { return V.Kind == Placement::Sharded; }) == 1;
  const ir::Expr *Count = Rows == None ? nullptr : &P.Code.Exprs[madeAs(Rows)];
  const bool Sized = Count && llvm::is_contained({"size", "sizes"}, StringRef(Count->Name).rsplit("::").second);
  const ir::ExprId Of = Sized ? Count->Object : Like;
  if (Of != None && changesNumber(Of)) {
    drawsForRows(E, X, Result, /*Several=*/true);
    Result.Noisy = true;
  } else if (Rows != None && Divergent == 0) {
    if (Recording)
      Out.RowNoise[E] = Rows;
    drawn(E, /*Rows=*/true);
  } else if (Like != None && Alone && Last[Like].Kind == Placement::Sharded && Last[Like].Dim == 0 && Divergent == 0) {
    if (Recording)
      Out.RowNoiseLike[E] = Like;
    drawn(E, /*Rows=*/true);
  } else if (drawsFromAll(X, In)) {
    if (Recording)
      Out.OwnRows.insert(E);
    FromAll.insert(E);
    drawn(E, /*Rows=*/true);
  } else {
    drawsForRows(E, X, Result);
    Result.Noisy = true;
  }
}

/// `torch::bernoulli(p)`, `at::normal(mean, deviation)`, `p.multinomial(1)`: brings together what the law of each row's
/// numbers is told by. Draws have no gradient, so that no graph is lost.
bool Interpreter::drawsFromAll(const ir::Expr &X, const Operands &In) {
  if (In.InPlace || Divergent > 0 || StringRef(X.Name).ends_with("randperm"))
    return false;
  auto Rows = [](const Value &V) { return V.Kind == Placement::Sharded; };
  for (size_t I = 0; I != In.Values.size(); ++I)
    if (Rows(In.Values[I]) ? In.Exprs[I] == None || !gatherable(In.Exprs[I], In.Values[I]) : !In.Values[I].replicated())
      return false;
  for (size_t I = 0; I != In.Values.size(); ++I)
    if (Rows(In.Values[I])) {
      if (!gathered(In.Exprs[I], In.Values[I]))
        return false;
      Out.Laws.insert(In.Exprs[I]);
    }
  return llvm::any_of(In.Values, Rows);
}

/// Numbers for the rows of a batch are drawn in a way that isn't made exact.
void Interpreter::drawsForRows(ir::ExprId E, const ir::Expr &X, const Value &V, bool Several) {
  StringRef Name = X.Name;
  std::string What = "draws random numbers for the rows of a batch; ranks would draw the same ones; ";
  if (Name.ends_with("::randperm"))
    What = "shuffles the rows of a batch, of which each rank has its own; `accelerator.own_rows("
           "accelerator.all_gather(x).index_select(0, torch::randperm(accelerator.global_rows(x.size(0)))))` picks "
           "from all";
  else if (Several)
    What += "there are others than the batch's; name what makes them in the shape, `torch::randn({x.size(0) * 5, …})`, "
            "to have them drawn whole";
  else
    What += "name the number of rows in its shape, `torch::randn({x.size(0), …})`, to have it drawn whole";
  note("batch-noise", E, V, What);
}

/// The tensor that `torch::empty_like(x)` is like.
ir::ExprId Interpreter::likeOf(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  bool InPlace;
  const OperationRow *Row = X.Kind == ExprKind::Call ? Table.find(X.Name, InPlace) : nullptr;
  bool Like = Row && Row->Kind == Operation::Like && StringRef(X.Name).ends_with("_like") && !X.Args.empty();
  return Like ? X.Args[0] : None;
}

} // namespace migrate
