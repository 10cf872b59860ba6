//===- InterpreterFeatures.cpp - How many numbers a row has ---------------===//
//
// Where a layer tells how many numbers it makes of each row, a shape with more of them, `linear(x).view({-1, 2, 4})` of
// rows of four, is seen to put several rows of the batch into one.
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

/// The features that all constructions of a linear layer agree on, or the last layer of a container that has any.
std::optional<int64_t> Interpreter::featuresMade(ir::ExprId Layer) const {
  StringRef Class = P.Code.type(Layer).Name;
  if (Class.contains("Sequential")) {
    const std::vector<ir::ExprId> Children = childrenOf(Layer);
    for (ir::ExprId Child : llvm::reverse(Children)) {
      StringRef Type = P.Code.type(Child).Name;
      if (Type.contains("torch::nn::Linear"))
        return featuresMade(Child);
      constexpr const char *Alike[] = {"ReLU", "ELU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softplus", "Dropout"};
      if (llvm::none_of(Alike, [&](StringRef Layer) { return Type.contains(("torch::nn::" + Layer).str()); }))
        return std::nullopt;
    }
    return std::nullopt;
  }
  const Origins From = origins(Layer);
  std::optional<int64_t> Agreed;
  for (ir::ExprId Made : From.Made) {
    std::vector<ir::ExprId> Given;
    for (ir::ExprId Arg : P.Code.Exprs[Made].Args)
      collectItems(P, Arg, Given);
    // `Linear(8, 4)`, `Linear(LinearOptions(8, 4).bias(false))`
    if (Given.size() == 1)
      P.forEachExpr(Given[0], [&](ir::ExprId Sub) {
        const ir::Expr &X = P.Code.Exprs[Sub];
        if (X.Kind == ExprKind::Construct && X.Args.size() == 2 &&
            StringRef(P.Code.type(Sub).Name).ends_with("LinearOptions"))
          Given = X.Args;
      });
    const std::optional<int64_t> Features = Given.size() == 2 ? integer(Given[1]) : std::nullopt;
    if (!Features || (Agreed && *Agreed != *Features))
      return std::nullopt;
    Agreed = Features;
  }
  return From.Lost ? std::nullopt : Agreed;
}

/// How many numbers each row of `[B, F]` has, as the layer that made it tells.
std::optional<int64_t> Interpreter::featuresOf(ir::ExprId E, int Hops) {
  if (Hops == 0)
    return std::nullopt;
  const ir::Expr &X = P.Code.Exprs[E = madeAs(E)];
  if (X.Kind != ExprKind::Call)
    return std::nullopt;
  StringRef Name = X.Name;
  if (X.Object != None && (Name == "torch::nn::LinearImpl::forward" || Name == "torch::nn::SequentialImpl::forward"))
    return featuresMade(X.Object);
  bool Ignored;
  const OperationRow *Row = Table.find(X.Name, Ignored);
  if (Row && Row->Kind == Operation::RowWise) // `torch::relu(x)`, `x.tanh()`
    if (std::vector<ir::ExprId> Of = operandsOf(X); Of.size() == 1)
      return featuresOf(Of[0], Hops - 1);
  std::optional<int64_t> Agreed; // a function of the program's, such as its own module's forward()
  for (ir::FuncId F : P.bodies(X))
    for (ir::ExprId Returned : P.returned(F)) {
      const std::optional<int64_t> Features = featuresOf(Returned, Hops - 1);
      if (!Features || (Agreed && *Agreed != *Features))
        return std::nullopt;
      Agreed = Features;
    }
  return Agreed;
}

static bool givesShape(StringRef Name) {
  return llvm::is_contained({"view", "reshape", "flatten"}, Name.rsplit("::").second);
}

/// Whether a value was made of something that had been given another shape: rows that were split may be joined again.
bool Interpreter::shapedBefore(ir::ExprId E, int Hops) const {
  bool Shaped = false;
  P.forEachExpr(madeAs(E), [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    Shaped |= X.Kind == ExprKind::Call && givesShape(X.Name);
    if (Hops == 0 || Shaped)
      return;
    if (X.Kind == ExprKind::Ref && P.Code.type(Sub).Kind == TypeKind::Tensor && madeAs(Sub) != Sub)
      Shaped |= shapedBefore(Sub, Hops - 1);
    for (ir::FuncId F : P.bodies(X))
      P.forEachExprIn(P.Code.Functions[F].Body,
                      [&](ir::ExprId Inner) { Shaped |= givesShape(P.Code.Exprs[Inner].Name); });
  });
  return Shaped;
}

/// Whether a shape for rows, `{-1, 2, 4}`, takes several rows of `E` for each.
bool Interpreter::joinsRows(ir::ExprId E, const Value &Of, const std::vector<ir::ExprId> &Shape) {
  if (E == None || (Of.Rank >= 0 && Of.Rank != 2) || Of.Dim != 0 || Shape.size() < 2 || integer(Shape[0]) != -1)
    return false;
  int64_t Each = 1;
  for (ir::ExprId Size : llvm::drop_begin(Shape)) {
    const std::optional<int64_t> N = integer(Size);
    if (!N || *N < 1)
      return false;
    Each *= *N;
  }
  const std::optional<int64_t> Features = featuresOf(E, 6);
  const bool Joins = Features && Each > *Features && !shapedBefore(E, 4);
  if (Joins && Of.Rank < 0)
    note("assumed-ranks", E, Of,
         "has " + std::to_string(*Features) + " features, gets a shape of " + std::to_string(Each) +
             " numbers for each row, and is taken to have a dimension between; make sure of that");
  return Joins && Of.Rank == 2;
}

} // namespace migrate
