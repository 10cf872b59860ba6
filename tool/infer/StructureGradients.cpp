//===- StructureGradients.cpp - Gradients that a program computes itself --===//
//
// The backward of a torch::autograd::Function runs on the gradients at this rank's rows, on the scale of its part of
// the loss. A linear function of each row's gradient is the one process's; its norm, its mean over the rows, what is
// rounded or clamped isn't.
//
//===----------------------------------------------------------------------===//
#include "infer/Deriver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <set>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// What depends on the scale of all it is given, or on other rows.
static bool looksAtAll(StringRef Name) {
  static const char *const Names[] = {"norm",   "clamp",   "clamp_",  "clip",   "clip_",       "clamp_max",
                                      "max",    "min",     "amax",    "amin",   "std",         "var",
                                      "sign",   "sign_",   "sgn",     "round",  "round_",      "floor",
                                      "ceil",   "trunc",   "tanh",    "pow",    "sigmoid",     "sqrt",
                                      "exp",    "log",     "softmax", "renorm", "linalg_norm", "linalg_vector_norm",
                                      "median", "topk",    "sort",    "item",   "numel",       "square",
                                      "argmax", "quantile"};
  return llvm::is_contained(Names, Name);
}

/// `g.mean(0)`, `g.mean()`: over the rows, too.
static bool averagesRows(const Program &P, const ir::Expr &X) {
  if (StringRef(X.Name).rsplit("::").second != "mean")
    return false;
  bool Dims = false, Rows = false;
  for (ir::ExprId Arg : X.Args)
    P.forEachExpr(Arg, [&](ir::ExprId E) {
      const bool Number = P.Code.Exprs[E].Kind == ExprKind::Literal && P.Code.type(E).Kind == TypeKind::Integer;
      Dims |= Number;
      Rows |= Number && P.Code.Exprs[E].Name == "0";
    });
  return !Dims || Rows;
}

/// The first place where `Fn`, which is given gradients as its last parameter, computes with them other than linearly,
/// row by row; None if it doesn't.
static ir::ExprId bendsGradients(const Program &P, const ir::Function &Fn) {
  std::set<ir::VarId> Gradients = {Fn.Params.back()};
  std::function<bool(ir::ExprId)> Holds = [&](ir::ExprId E) {
    if (E == None)
      return false;
    const ir::Expr &X = P.Code.Exprs[E];
    static const char *const Tells[] = {"options", "dtype", "scalar_type", "device", "sizes", "dim", "defined"};
    if (X.Kind == ExprKind::Call && X.Object != None &&
        llvm::is_contained(Tells, StringRef(X.Name).rsplit("::").second))
      return false;
    return Gradients.count(X.Var) != 0 || Holds(X.Object) || llvm::any_of(X.Args, Holds);
  };
  for (size_t Before = 0; Before != Gradients.size();) {
    Before = Gradients.size();
    P.forEachStmt(Fn.Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (X.Kind == StmtKind::Decl && X.Value != None && P.Code.typeOf(X.Var).Kind == TypeKind::Tensor &&
          Holds(X.Value))
        Gradients.insert(X.Var);
    });
    P.forEachExprIn(Fn.Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Kind != ExprKind::Assign || !Holds(X.Args[1]) || P.Code.type(X.Args[0]).Kind != TypeKind::Tensor)
        return;
      if (const ir::VarId To = P.Code.Exprs[P.unconverted(X.Args[0])].Var; To != None)
        Gradients.insert(To);
    });
  }
  ir::ExprId Found = None;
  P.forEachExprIn(Fn.Body, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    const StringRef Name = StringRef(X.Name).rsplit("::").second;
    bool Bends = false;
    if (X.Kind == ExprKind::Call && P.bodies(X).empty()) {
      const ir::ExprId Of = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
      Bends = Of != None && Holds(Of) && (looksAtAll(Name) || averagesRows(P, X));
    }
    if (X.Kind == ExprKind::Binary && X.Args.size() == 2 && (X.Name == "*" || X.Name == "/"))
      Bends = Holds(X.Args[1]) && (X.Name == "/" || Holds(X.Args[0]));
    if (Bends && (Found == None || X.Where.Begin < P.Code.Exprs[Found].Where.Begin))
      Found = E;
  });
  return Found;
}

void Deriver::handWrittenGradients() {
  for (const ir::Function &Fn : P.Code.Functions) {
    if (Fn.Name != "backward" || Fn.Record.empty() || Fn.Body == None || Fn.Params.size() != 2 ||
        !StringRef(P.Code.typeOf(Fn.Params[0]).Name).contains("AutogradContext"))
      continue;
    if (const ir::ExprId Place = bendsGradients(P, Fn); Place != None) {
      Fact N = factAt("unsupported-backward", "place", Place);
      N.Texts["what"] = "computes a gradient of this rank's rows alone that isn't linear in each row's";
      Out.add(std::move(N));
    }
  }
}

} // namespace migrate
