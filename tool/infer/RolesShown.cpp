//===- RolesShown.cpp - Gradients that are shown, not used ----------------===//
//
// Programs of books show what autograd does before they train: a leaf is made, a function of it is differentiated, its
// gradient is printed. Nothing of it is shared out, and no rank waits for another there.
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

bool isTensors(const ir::Type &T) {
  return T.Kind == TypeKind::Tensor || (T.Kind == TypeKind::Container && StringRef(T.Name).contains("at::Tensor"));
}

/// Whether a leaf tensor, or those of a list, are never written to, nor handed on to what may: their gradient is shown.
bool Roles::onlyLookedAt(ir::VarId V, int Depth) const {
  bool Writes = Depth > 8;
  const bool ByValue = P.Code.Vars[V].Param && !P.Code.typeOf(V).Reference; // `x = relu(x)` lets the caller's be
  const bool List = P.Code.typeOf(V).Kind == TypeKind::Container;
  auto Names = [&](ir::ExprId E) { // `w`, `w.data()`, `w[0]`, `w.grad()`
    for (; E != None;) {
      const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
      if (X.Kind == ExprKind::Ref || (X.Kind == ExprKind::Field && X.Var == V))
        return X.Var == V;
      E = X.Object != None ? X.Object : X.Kind == ExprKind::Unary && !X.Args.empty() ? X.Args[0] : None;
    }
    return false;
  };
  auto Held = [&](ir::ExprId E) { // a tensor of it, or the list
    return E != None &&
           (P.Code.type(E).Kind == TypeKind::Tensor || (List && P.Code.type(E).Kind == TypeKind::Container));
  };
  auto MadeLeaf = [&](const ir::Expr &X) { // `e = e.requires_grad_()`
    const ir::Expr &Right = P.Code.Exprs[P.unconverted(X.Args[1])];
    return StringRef(Right.Name).ends_with("requires_grad_") && Right.Object != None &&
           P.Code.Exprs[P.unconverted(Right.Object)].Kind == ExprKind::Ref && Names(Right.Object);
  };
  for (ir::ExprId E = 0; E != P.Code.Exprs.size() && !Writes; ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    bool Setter = Name.ends_with("_") && Name != "requires_grad_";
    if (X.Kind == ExprKind::Assign)
      Writes |= Names(X.Args[0]) && !MadeLeaf(X) &&
                !(ByValue && P.Code.Exprs[P.unconverted(X.Args[0])].Kind == ExprKind::Ref);
    else if (X.Kind == ExprKind::Call && X.Object != None && (Setter || Name == "set_data" || Name == "mutable_grad"))
      Writes |= Names(X.Object);
    for (ir::FuncId F : P.bodies(X))
      for (size_t I = 0; I < std::min(P.Code.Functions[F].Params.size(), X.Args.size()); ++I)
        if (Held(X.Args[I]) && Names(X.Args[I]))
          Writes |= !onlyLookedAt(P.Code.Functions[F].Params[I], Depth + 1);
    // Lists of parameters, what isn't a tensor's operation.
    bool Holds = X.Kind == ExprKind::List || X.Kind == ExprKind::Construct || X.Kind == ExprKind::Unary ||
                 (X.Kind == ExprKind::Call && P.bodies(X).empty() && !StringRef(X.Name).starts_with("at::"));
    bool Prints = StringRef(X.Name).contains("operator<<");
    if (Holds && !Prints)
      for (ir::ExprId Arg : X.Args)
        Writes |= Held(Arg) && P.unconverted(E) == E && Names(Arg) && !(X.Kind == ExprKind::Unary && X.Name != "&");
  }
  // Other names of it: `auto p = w;`, `for (auto& p : list)`
  for (const auto &[Other, Statement] : DeclarationOf) {
    if (Writes)
      break;
    ir::ExprId Value = P.Code.Stmts[Statement].Value;
    if (Other == V || Value == None || !isTensors(P.Code.typeOf(Other)))
      continue;
    ir::ExprId From = P.unconverted(Value);
    const ir::Expr &X = P.Code.Exprs[From];
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (X.Kind == ExprKind::Call && Name != "data" && Name != "at" && Name != "front" && Name != "back" &&
        !Name.ends_with("operator[]") && !Name.ends_with("_"))
      continue;
    Writes |= Held(From) && Names(From) && !onlyLookedAt(Other, Depth + 1);
  }
  return !Writes;
}

/// What may put something into a list: calls that it is given to or whose object it is, `list.insert(list.end(), x)`,
/// `forward(x, list)`, `std::transform(…, list.begin(), f)`.
std::vector<ir::ExprId> Roles::callsWith(ir::VarId List) const {
  auto Names = [&](ir::ExprId E) {
    for (int Hops = 0; E != None && Hops != 8; ++Hops) {
      const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
      if (X.Var == List && (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field))
        return true;
      E = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
    }
    return false;
  };
  std::vector<ir::ExprId> Found;
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Call && !StringRef(X.Name).starts_with("at::") && !X.Args.empty() &&
        ((X.Object != None && Names(X.Object)) || llvm::any_of(X.Args, Names)))
      Found.push_back(E);
  }
  return Found;
}

/// Whether a loss is made of tensors alone that nothing trains: autograd is shown, not used.
bool Roles::demonstrates(ir::ExprId Loss) const {
  std::set<ir::ExprId> Seen;
  std::set<ir::VarId> Vars;
  std::set<ir::FuncId> Functions;
  bool Trains = false;
  std::function<void(ir::ExprId)> Look = [&](ir::ExprId Whole) {
    P.forEachExpr(Whole, [&](ir::ExprId E) {
      if (Trains || !Seen.insert(E).second)
        return;
      const ir::Expr &X = P.Code.Exprs[E];
      TypeKind Kind = P.Code.type(E).Kind;
      Trains |= Kind == TypeKind::Module || Kind == TypeKind::Optimizer;
      std::vector<ir::FuncId> Runs = P.bodies(X);
      if (X.Kind == ExprKind::Lambda && X.Func != None)
        Runs.push_back(X.Func);
      for (ir::FuncId F : Runs)
        if (Functions.insert(F).second)
          P.forEachExprIn(P.Code.Functions[F].Body, Look);
      const bool Field = X.Kind == ExprKind::Field && X.Var != None;
      if ((X.Kind != ExprKind::Ref && !Field) || X.Var == None || !Vars.insert(X.Var).second)
        return;
      const ir::Type &T = P.Code.typeOf(X.Var);
      const bool Plain =
          isTensors(T) || T.Kind == TypeKind::Integer || T.Kind == TypeKind::Floating || T.Kind == TypeKind::Bool;
      Trains |= (P.Code.Vars[X.Var].Global && !T.Const) || Models.count(find(X.Var)) != 0 || (Field && !Plain);
      for (ir::ExprId Source : sourcesOf(X.Var))
        Look(Source);
      for (const ir::Expr &Y : P.Code.Exprs) // `sum += loss`, too
        if (Y.Kind == ExprKind::Assign && P.Code.Exprs[P.unconverted(Y.Args[0])].Var == X.Var)
          Look(Y.Args[1]);
      for (ir::ExprId Arg : givenTo(X.Var))
        Look(Arg);
      if (T.Name != "at::Tensor" && StringRef(T.Name).contains("at::Tensor")) // lists, optionals, queues
        for (ir::ExprId Call : callsWith(X.Var))
          Look(Call);
    });
  };
  Look(Loss);
  return !Trains && llvm::all_of(Vars, [&](ir::VarId V) { return !isTensors(P.Code.typeOf(V)) || onlyLookedAt(V); });
}

} // namespace migrate
