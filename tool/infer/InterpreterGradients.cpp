//===- InterpreterGradients.cpp - Gradients at a batch's rows -------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

/// `x.grad()` of a tensor that has a batch's rows, as adversarial training and saliency ask for. It has the rows of x,
/// and is too large by the number of ranks: the runtime's `gradient(x)` isn't.
Value Interpreter::gradientOfRows(ir::ExprId E, const ir::Expr &X, const Value &Of) {
  if (Of.Kind == Placement::Own)
    return Of;
  Value Result = Of;
  Result.Source = E;
  Result.Batch = None;
  Result.Trained = false;
  bool Reads = Of.Kind == Placement::Sharded && X.Name == "at::Tensor::grad" && X.Object != None && X.Where.Editable &&
               P.Code.Exprs[X.Object].Where.Editable;
  if (!Reads)
    return Value::unknown("is the gradient of a batch, which `backward` weights", E);
  for (const auto &[Cut, Dim] : Cuts) {
    bool Leaf = false;
    P.forEachExpr(Cut, [&, At = Cut](ir::ExprId Sub) { Leaf |= Sub != At && R.InputCalls.count(Sub); });
    if (Leaf && llvm::is_contained(R.sourcesOf(P.Code.Exprs[P.unconverted(X.Object)].Var), Cut))
      return Value::unknown("is the gradient at a part of a leaf, which is none; ask for it behind the part, by "
                            "`requires_grad_()`",
                            E);
  }
  if (writeTargets().count(E)) {
    // Zero is zero on whatever scale.
    bool Zeroed = llvm::any_of(P.Code.Exprs, [&](const ir::Expr &Y) {
      return Y.Kind == ExprKind::Call && Y.Object == E && StringRef(Y.Name).ends_with("::zero_");
    });
    return Zeroed ? Result : Value::unknown("is the gradient of a batch, written in place", E);
  }
  if (Recording)
    Out.RowGradients[E].insert(Of.Kind);
  return Result;
}

} // namespace migrate
