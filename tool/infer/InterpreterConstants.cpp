//===- InterpreterConstants.cpp - Numbers that the program's text tells ---===//
//
// Dimensions and options, `x.mean(dim_, keepdim)`, that are literals, variables that never change, what functions are
// given wherever they are called, or members that are set where their object is made.
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

/// Whether a variable keeps what it was declared with: nothing assigns to it, counts it up, or may write to it.
bool Interpreter::neverChanges(ir::VarId V) const {
  return P.Code.Vars[V].Field || P.Code.Vars[V].Param ? P.Code.typeOf(V).Const : !reassigned(V);
}

/// Whether a variable or field is assigned to somewhere, or handed to what may write to it.
bool Interpreter::reassigned(ir::VarId V) const {
  if (!Changed) {
    Changed.emplace();
    auto Changes = [&](ir::ExprId E) {
      E = E == None ? None : P.unconverted(E);
      if (E != None && (P.Code.Exprs[E].Kind == ExprKind::Ref || P.Code.Exprs[E].Kind == ExprKind::Field))
        Changed->insert(P.Code.Exprs[E].Var);
    };
    for (const ir::Expr &X : P.Code.Exprs) {
      if (X.Kind == ExprKind::Assign || X.Kind == ExprKind::Unknown ||
          (X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--" || X.Name == "&")))
        llvm::for_each(llvm::ArrayRef(X.Args).take_front(X.Kind == ExprKind::Assign ? 1 : X.Args.size()), Changes);
      if (X.Kind == ExprKind::Binary && X.Name == ">>") // `std::cin >> n`
        Changes(X.Args[1]);
      for (size_t I = 0; I != X.Args.size(); ++I)
        if ((X.Writable >> std::min<size_t>(I, 31)) & 1)
          Changes(X.Args[I]);
    }
    for (const ir::Stmt &S : P.Code.Stmts)
      if (S.Kind == ir::StmtKind::Decl && P.Code.typeOf(S.Var).Reference && !P.Code.typeOf(S.Var).Const)
        Changes(S.Value);
  }
  return Changed->count(V) != 0;
}

std::optional<int64_t> Interpreter::integer(ir::ExprId E, int Hops) const {
  const ir::Expr &X = P.Code.Exprs[E];
  if (X.Kind == ExprKind::Unary && X.Name == "-")
    if (auto V = integer(X.Args[0], Hops))
      return -*V;
  if (X.Kind == ExprKind::Binary && (X.Name == "+" || X.Name == "-"))
    if (auto L = integer(X.Args[0], Hops), R = L ? integer(X.Args[1], Hops) : std::nullopt; R)
      return X.Name == "+" ? *L + *R : *L - *R;
  int64_t Result;
  if (X.Kind == ExprKind::Literal && P.Code.type(E).Kind == TypeKind::Integer &&
      !StringRef(X.Name).getAsInteger(10, Result))
    return Result;
  if (X.Kind == ExprKind::Literal && (X.Name == "true" || X.Name == "false"))
    return X.Name == "true";
  if ((X.Kind == ExprKind::Cast || X.Kind == ExprKind::List || X.Kind == ExprKind::Construct) && X.Args.size() == 1)
    return integer(X.Args[0], Hops);
  if (ir::ExprId Tensor = countsDimensions(E); Tensor != None)
    if (auto It = Last.find(Tensor); It != Last.end() && It->second.Kind == Placement::Sharded && It->second.Rank >= 0)
      return It->second.Rank;
  if (X.Kind == ExprKind::Ref && X.Var != None)
    if (auto It = R.Init.find(X.Var); It != R.Init.end() && neverChanges(X.Var))
      return integer(It->second, Hops);
  // `x.mean(dim)` in a function that is called with one
  constexpr int Deep = 8; // through functions that call each other
  if (X.Kind == ExprKind::Ref && X.Var != None && P.Code.Vars[X.Var].Param && Hops != Deep && !reassigned(X.Var)) {
    std::optional<int64_t> One;
    for (const ir::ExprId Given : givenTo(X.Var)) {
      const std::optional<int64_t> Of = integer(Given, Hops + 1);
      if (!Of || (One && One != Of))
        return std::nullopt;
      One = Of;
    }
    return One;
  }
  return X.Kind == ExprKind::Field && Hops != Deep ? memberInteger(X, Hops + 1) : std::nullopt;
}

/// A member that is set where its object is made, and never again, `x.mean(dim_)`.
std::optional<int64_t> Interpreter::memberInteger(const ir::Expr &X, int Hops) const {
  if (X.Var == None || reassigned(X.Var))
    return std::nullopt;
  const bool OfThis = X.Object == None || P.Code.Exprs[X.Object].Kind == ExprKind::This;
  const std::optional<Location> &This = Frames.back().This;
  const ir::VarId Object = !OfThis              ? P.Code.Exprs[P.unconverted(X.Object)].Var
                           : !This              ? None
                           : This->Path.empty() ? This->Root
                                                : This->Path.back();
  const auto Made = R.Init.find(Object);
  const ir::Expr *By = Made == R.Init.end() ? nullptr : &P.Code.Exprs[P.unconverted(Made->second)];
  const ir::FuncId Constructor = By && By->Kind == ExprKind::Construct ? P.callee(*By) : None;
  std::optional<int64_t> One;
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
    if (Constructor != None && F != Constructor)
      continue;
    const ir::Function &Fn = P.Code.Functions[F];
    for (const auto &[Member, Init] : Fn.Inits) {
      if (Member != X.Var)
        continue;
      const ir::ExprId Named = P.unconverted(Init);
      const size_t I = llvm::find(Fn.Params, P.Code.Exprs[Named].Var) - Fn.Params.begin();
      const bool Given = F == Constructor && P.Code.Exprs[Named].Kind == ExprKind::Ref && I < Fn.Params.size();
      const std::optional<int64_t> Of = !Given                ? integer(Init, Hops)
                                        : I < By->Args.size() ? integer(By->Args[I], Hops)
                                                              : std::nullopt;
      if (!Of || (One && One != Of) || Fn.BodyBegin == 0) // `Config{2}` sets others where nobody wrote a constructor
        return std::nullopt;
      One = Of;
    }
  }
  return One;
}

/// The tensor of `x.dim()`, `x.sizes().size()`.
ir::ExprId Interpreter::countsDimensions(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Kind == ExprKind::Call && X.Object != None && StringRef(X.Name).ends_with("::size") && X.Args.empty())
    if (const ir::Expr &Of = P.Code.Exprs[P.unconverted(X.Object)]; StringRef(Of.Name).ends_with("::sizes"))
      return Of.Object;
  bool Counts = X.Kind == ExprKind::Call && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Tensor &&
                (StringRef(X.Name).ends_with("::dim") || StringRef(X.Name).ends_with("::ndimension"));
  return Counts ? X.Object : None;
}

/// A dimension of `Tensor`, from the end where it is counted from there: `x.size(x.dim() - 1)`.
std::optional<int64_t> Interpreter::dimension(ir::ExprId E, ir::ExprId Tensor) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (Tensor != None && X.Kind == ExprKind::Binary && X.Name == "-")
    if (ir::ExprId Of = countsDimensions(X.Args[0]); Of != None)
      if (const ir::Expr &A = P.Code.Exprs[P.unconverted(Of)], &B = P.Code.Exprs[P.unconverted(Tensor)];
          A.Kind == ExprKind::Ref && B.Kind == ExprKind::Ref && A.Var == B.Var)
        if (auto Behind = integer(X.Args[1]); Behind && *Behind > 0)
          return -*Behind;
  return integer(E);
}

} // namespace migrate
