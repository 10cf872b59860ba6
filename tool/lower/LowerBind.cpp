//===- LowerBind.cpp - Functions made of functions ------------------------===//
//
// `std::bind(&Trainer::report, this, epoch, _1)` is the lambda that calls it: what is bound is kept where it is made,
// what is left open is its parameters. Functions of libraries are left as calls of `std::bind`.
//
//===----------------------------------------------------------------------===//
#include "lower/Lowering.h"

using namespace clang;

namespace migrate {

using ir::ExprKind;
using ir::None;
using ir::StmtKind;

/// Which parameter `std::placeholders::_1` stands for, from 1; 0 of anything else.
static unsigned placeholder(const Expr *E) {
  const auto *Of = dyn_cast_or_null<ClassTemplateSpecializationDecl>(E->getType()->getAsCXXRecordDecl());
  return Of && Of->isInStdNamespace() && (Of->getName() == "_Placeholder" || Of->getName() == "__ph")
             ? unsigned(Of->getTemplateArgs()[0].getAsIntegral().getExtValue())
             : 0;
}

/// What a function is named by, `f`, `&f`, `&C::f`.
static const FunctionDecl *named(const Expr *E) {
  E = E->IgnoreParenImpCasts();
  if (const auto *Address = dyn_cast<UnaryOperator>(E); Address && Address->getOpcode() == UO_AddrOf)
    E = Address->getSubExpr()->IgnoreParenImpCasts();
  const auto *Ref = dyn_cast<DeclRefExpr>(E);
  return Ref ? dyn_cast<FunctionDecl>(Ref->getDecl()) : nullptr;
}

/// How an object of a class is called, if there is one way only.
static const FunctionDecl *callOperator(const CXXRecordDecl *Record) {
  if (!Record || !Record->hasDefinition())
    return nullptr;
  const FunctionDecl *Found = nullptr;
  for (const CXXMethodDecl *Method : Record->methods())
    if (Method->getOverloadedOperator() == OO_Call && std::exchange(Found, Method))
      return nullptr;
  return Found;
}

/// `std::ref(x)`, of a method's object `&x`, too: `x` itself.
static const Expr *itself(const Expr *E, bool OfMethod) {
  E = E->IgnoreParenImpCasts();
  if (const auto *Address = dyn_cast<UnaryOperator>(E); OfMethod && Address && Address->getOpcode() == UO_AddrOf)
    return Address->getSubExpr();
  const auto *Call = dyn_cast<CallExpr>(E);
  const FunctionDecl *F = Call ? Call->getDirectCallee() : nullptr;
  return F && F->isInStdNamespace() && F->getDeclName().isIdentifier() &&
                 (F->getName() == "ref" || F->getName() == "cref")
             ? Call->getArg(0)
             : nullptr;
}

/// Code that nobody wrote, for what `E` makes: no edit may touch it.
ir::ExprId Lowering::madeUp(ExprKind Kind, const Expr *E, ir::TypeId Type) {
  ir::ExprId Id = make(Kind, E);
  Out.Exprs[Id].Type = Type;
  Out.Exprs[Id].Where.Editable = false;
  return Id;
}

ir::ExprId Lowering::namedAs(ir::VarId Var, const Expr *E) {
  ir::ExprId Id = madeUp(ExprKind::Ref, E, Out.Vars[Var].Type);
  Out.Exprs[Id].Var = Var;
  return Id;
}

ir::ExprId Lowering::bound(const CallExpr *E) {
  const Expr *Callable = E->getArg(0)->IgnoreParenImpCasts();
  const FunctionDecl *Does = named(Callable);
  const FunctionDecl *Target = Does ? Does : callOperator(Callable->getType()->getAsCXXRecordDecl());
  if (!Target || !inProject(Target->getLocation()))
    return None;
  const auto *Method = Does ? dyn_cast<CXXMethodDecl>(Does) : nullptr;
  const bool OfObject = Method && !Method->isStatic();
  const bool Front = E->getDirectCallee()->getName() == "bind_front";
  if (OfObject && E->getNumArgs() < 2)
    return None;

  ir::ExprId Lambda = make(ExprKind::Lambda, E);
  const ir::FuncId F = Out.Functions.size();
  Out.Functions.emplace_back();
  Out.Functions[F].Usr = "bound:" + std::to_string(F) + ":" + Out.Source;
  Out.Functions[F].Parent = Current;
  Out.Functions[F].Result = typeId(Target->getReturnType());
  Out.Functions[F].Where = rangeOf(E->getSourceRange());
  Out.Functions[F].Where.Editable = false;
  auto NewVar = [&](ir::TypeId Type, ir::FuncId Of) {
    ir::Var V;
    V.Type = Type;
    V.Function = Of;
    V.Param = Of == F;
    Out.Vars.push_back(V);
    return ir::VarId(Out.Vars.size() - 1);
  };
  std::vector<ir::ExprId> Kept, Given;
  std::vector<ir::VarId> Open; // by the placeholder's number
  auto Leave = [&](unsigned Number, QualType Type) {
    while (Open.size() < Number)
      Open.push_back(None);
    if (Open[Number - 1] == None)
      Open[Number - 1] = NewVar(typeId(Type), F);
    Given.push_back(namedAs(Open[Number - 1], E));
  };
  auto ParamType = [&](unsigned I, const Expr *Arg) {
    return I < Target->getNumParams() ? Target->getParamDecl(I)->getType() : Arg->getType();
  };
  ir::ExprId Object = Does ? None : expr(Callable);
  for (unsigned I = 1; I != E->getNumArgs(); ++I) {
    const Expr *Arg = E->getArg(I);
    const bool Of = OfObject && I == 1;
    if (unsigned Number = placeholder(Arg)) {
      Leave(Number, Of ? Ctx.getRecordType(Method->getParent()) : ParamType(I - 1 - OfObject, Arg));
    } else if (const Expr *Whole = itself(Arg, Of)) {
      Given.push_back(expr(Whole));
    } else if (ir::ExprId Value = expr(Arg);
               Of || !Out.type(Value).number() || Arg->IgnoreParenImpCasts()->isEvaluatable(Ctx)) {
      Given.push_back(Value);
    } else { // a number is kept as it is here
      const ir::VarId Var = NewVar(Out.Exprs[Value].Type, Current);
      const ir::ExprId To = namedAs(Var, Arg);
      const ir::ExprId Set = madeUp(ExprKind::Assign, Arg, Out.Exprs[Value].Type);
      Out.Exprs[Set].Name = "=";
      Out.Exprs[Set].Args = {To, Value};
      Kept.push_back(Set);
      Given.push_back(namedAs(Var, Arg));
    }
  }
  for (unsigned I = Given.size() - OfObject, Number = 1; Front && I < Target->getNumParams(); ++I)
    Leave(Number++, Target->getParamDecl(I)->getType());
  if (OfObject) {
    Object = Given.front();
    Given.erase(Given.begin());
  }
  // The method of an object that is kept by copy changes what nothing follows.
  const bool Copied = OfObject && !Method->isConst() && !placeholder(E->getArg(1)) && !itself(E->getArg(1), OfObject) &&
                      ownRecord(E->getArg(1)->getType());
  for (ir::VarId &Var : Open)
    if (Var == None)
      Var = NewVar(typeId(Ctx.IntTy), F);

  ir::ExprId Call = madeUp(ExprKind::Call, E, Out.Functions[F].Result);
  setCallee(Call, Target);
  Out.Exprs[Call].Object = Object;
  Out.Exprs[Call].Args = Given;
  ir::Stmt Body, Runs;
  Runs.Kind = Target->getReturnType()->isVoidType() ? StmtKind::Expr : StmtKind::Return;
  Runs.Value = Call;
  Runs.Where = Body.Where = Out.Functions[F].Where;
  Out.Stmts.push_back(Runs);
  Body.Kind = StmtKind::Block;
  Body.Children = {ir::StmtId(Out.Stmts.size() - 1)};
  Out.Stmts.push_back(Body);
  Out.Functions[F].Params = Open;
  Out.Functions[F].Body = Out.Stmts.size() - 1;
  Out.Exprs[Lambda].Args = Kept;
  Out.Exprs[Lambda].Func = Copied ? None : F;
  return Lambda;
}

} // namespace migrate
