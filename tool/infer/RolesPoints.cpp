//===- RolesPoints.cpp - Points at which derivatives are taken ------------===//
//
// `autograd::grad({u}, {x}, …)` of an `x` that is made once, with a gradient, and that nobody trains: the collocation
// points of a differential equation. They are a batch like any other, but derivatives are at the leaf itself, so that
// it is the leaf that has a rank's rows, from where it is made.
//
//===----------------------------------------------------------------------===//
#include "infer/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether an optimizer is given a tensor, alone or in a list.
bool Roles::optimized(ir::VarId V) const {
  std::set<ir::VarId> Seen;
  std::function<bool(ir::ExprId, int)> Names = [&](ir::ExprId E, int Hops) {
    bool Found = false;
    P.forEachExpr(E, [&](ir::ExprId Sub) {
      const ir::VarId Var = P.Code.Exprs[Sub].Var;
      Found |= Var == V;
      if (Var != None && Hops > 0 && isTensors(P.Code.typeOf(Var)) && Seen.insert(Var).second)
        for (ir::ExprId Source : sourcesOf(Var))
          Found |= Source != None && Names(Source, Hops - 1);
    });
    return Found;
  };
  return llvm::any_of(Optimizers, [&](const OptimizerRole &O) { return O.Made != None && Names(O.Made, 4); });
}

/// Whether something is written into a tensor, `x -= rate * g`, `x.data().sub_(step)`: it is trained, in some way.
bool Roles::movedByHand(ir::VarId V) const {
  return llvm::any_of(P.Code.Exprs, [&](const ir::Expr &X) {
    const StringRef Name = X.Name;
    const bool Compound = X.Kind == ExprKind::Assign && Name != "=";
    const bool InPlace = X.Kind == ExprKind::Call && X.Object != None && Name.starts_with("at::Tensor::") &&
                         ((Name.ends_with("_") && !Name.ends_with("requires_grad_")) || Name.ends_with("="));
    ir::ExprId To = Compound ? X.Args[0] : InPlace ? X.Object : None;
    while (To != None && P.Code.Exprs[To = P.unconverted(To)].Kind == ExprKind::Call &&
           StringRef(P.Code.Exprs[To].Name).ends_with("data"))
      To = P.Code.Exprs[To].Object;
    return To != None && P.Code.Exprs[To].Var == V && Name != "at::Tensor::operator=";
  });
}

/// Whether a variable is a leaf at which derivatives may be taken: it has one value, of which its gradient is asked
/// for.
bool Roles::pointAt(ir::VarId V, int Hops) {
  if (V == None || Hops == 0 || P.Code.typeOf(V).Kind != TypeKind::Tensor || Traced.count(V) || optimized(V))
    return false;
  if (Points.count(V))
    return true;
  if (P.Code.Vars[V].Param) {
    ir::ExprId Made = None;
    for (ir::ExprId Arg : givenTo(V)) {
      const ir::VarId From = Arg == None ? None : P.Code.Exprs[P.unconverted(Arg)].Var;
      if (!pointAt(From, Hops - 1) || (Made != None && Made != Points[From]))
        return false;
      Made = Points[From];
    }
    if (Made != None)
      Points[V] = Made;
    return Made != None;
  }
  const std::vector<ir::ExprId> Sources = sourcesOf(V);
  if (Sources.size() != 1 || Sources[0] == None || movedByHand(V))
    return false;
  auto Asks = [&](ir::ExprId E) { return StringRef(P.Code.Exprs[E].Name).contains("requires_grad"); };
  std::set<ir::ExprId> Calls;
  ir::ExprId Made = P.unconverted(Sources[0]);
  P.forEachExpr(Made, [&](ir::ExprId Sub) {
    if (Asks(Sub))
      Calls.insert({Sub, Made}); // `torch::rand({64, 1}, torch::requires_grad())`, which makes the leaf
  });
  while (P.Code.Exprs[Made].Kind == ExprKind::Call && P.Code.Exprs[Made].Object != None && Asks(Made))
    Made = P.Code.Exprs[Made].Object;
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (ir::ExprId Of = P.Code.Exprs[E].Object; Of != None && Asks(E) && P.Code.Exprs[P.unconverted(Of)].Var == V)
      Calls.insert(E);
  if (Calls.empty() || P.Code.Exprs[Made].Kind != ExprKind::Call) {
    if (Calls.empty() && P.Code.Exprs[Made].Kind == ExprKind::Call) // some of the points, `x.index_select(0, some)`
      P.forEachExpr(Made, [&](ir::ExprId Sub) {
        if (P.Code.Exprs[Sub].Kind == ExprKind::Ref || P.Code.Exprs[Sub].Kind == ExprKind::Field)
          if (const ir::VarId Of = P.Code.Exprs[Sub].Var; Of != V && pointAt(Of, Hops - 1))
            Points.erase(Of); // which stay whole
      });
    return false;
  }
  Points[V] = Made;
  PointCalls.insert(Calls.begin(), Calls.end());
  return true;
}

void Roles::findPoints() {
  for (ir::FuncId F : Reachable)
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Name == "torch::autograd::grad" && X.Args.size() > 1 && X.Args[1] != None)
        P.forEachExpr(X.Args[1], [&](ir::ExprId At) {
          if (P.Code.type(At).Kind == TypeKind::Tensor)
            pointAt(P.Code.Exprs[At].Var);
        });
    });
}

} // namespace migrate
