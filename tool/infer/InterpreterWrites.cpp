//===- InterpreterWrites.cpp - What is written in place -------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

/// What is written to a parameter, a buffer or a gradient, or tells an optimizer how to step, is the same on all ranks.
void Interpreter::intoModel(ir::ExprId From, const Value &V) {
  if (V.reducible() || V.Kind == Placement::Own)
    demandReplicated(From, V, "written to what is trained");
  else if (!V.replicated())
    note("divergent-training", From, V,
         "writes to what is trained a value that " + (V.Why.empty() ? "holds this rank's rows" : V.Why));
}

/// Whether what a call in place makes depends on what it finds, and isn't a sum: `x.mul_(0.9)`.
static bool changesAgain(StringRef Name) {
  Name = Name.rsplit("::").second;
  static const char *const Again[] = {"mul_",         "div_",         "lerp_",    "pow_",  "clamp_",     "addcmul_",
                                      "addcdiv_",     "neg_",         "sqrt_",    "exp_",  "rsub_",      "xor_",
                                      "bitwise_not_", "logical_not_", "sigmoid_", "tanh_", "reciprocal_"};
  return llvm::is_contained(Again, Name);
}

/// What an operation in place has made of its object.
void Interpreter::writeBack(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In,
                            const Value &Made) {
  Value Result = Made;
  if (changesAgain(X.Name)) {
    ir::ExprId Root = X.Object; // `parameters[i].mul_(0.9)`
    while (Root != None && !lvalue(Root))
      Root = P.Code.Exprs[Root].Object;
    if (Root != None && outer(*lvalue(Root)))
      notWhole("it changes what outlives its batch", E);
  }
  if (std::optional<Location> L = lvalue(X.Object); L && isPart(X.Object)) {
    write(*L, withPart(read(*L, E), Result), None);
  } else if (L) {
    if (Row.Kind == Operation::Scatter && Result.replicated()) // written in part, its shape stays
      Result.takeRank(In.Values[0]);
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

/// `file.write(reinterpret_cast<const char *>(&x), sizeof(x))`: prints what lies there.
void Interpreter::writesBytes(ir::ExprId Address) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Address)];
  if (X.Kind != ExprKind::Unary || X.Name != "&")
    return;
  notWhole("its loop prints", X.Args[0]);
  if (Value V = eval(X.Args[0]); !V.replicated() && V.Kind != Placement::Own)
    note("rank-local-use", X.Args[0], V, "is written, but is " + inWords(V));
}

} // namespace migrate
