//===- RolesOptimizers.cpp - What optimizers train ------------------------===//
#include "infer/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

void Roles::findOptimizers() {
  auto Consider = [&](ir::ExprId Value, ir::VarId Var, ir::FuncId F, ir::StmtId S, ir::ExprId Target = None) {
    if (Value == None)
      return;
    if (P.Code.type(Value).Kind != TypeKind::Optimizer)
      return;
    // `adam ? std::unique_ptr<Optimizer>(…) : …` is one of both.
    std::vector<ir::ExprId> Sides;
    sidesOf(Value, Sides);
    auto Makes = [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      return (X.Kind == ExprKind::Construct && !X.Args.empty() && P.Code.type(X.Args[0]).Kind != TypeKind::Optimizer) ||
             (X.Kind == ExprKind::Call && StringRef(X.Name).starts_with("std::make_"));
    };
    // A helper that makes one, or one of several that a table holds, `makers.at(name)(net->parameters())`: what it is
    // given are its models.
    auto Helps = [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      auto OfModel = [&](ir::ExprId Arg) { return !modelsIn(Arg, F, 2).empty(); };
      return X.Kind == ExprKind::Call && !P.Code.typeOf(Var).Reference &&
             (!P.bodies(X).empty() || llvm::any_of(X.Args, OfModel));
    };
    // `optimizer = nullptr` makes none.
    auto Empties = [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      return X.Kind == ExprKind::Construct && X.Args.size() == 1 && P.Code.type(X.Args[0]).Name == "std::nullptr_t";
    };
    if (llvm::all_of(Sides, Empties) ||
        !llvm::all_of(Sides, [&](ir::ExprId Side) { return Makes(Side) || Helps(Side); }))
      return;
    OptimizerRole O;
    O.Made = Value;
    O.Var = Var;
    O.Function = F;
    O.Statement = S;
    O.Target = Target;
    auto Add = [&](ir::ExprId Model) {
      if (llvm::none_of(O.Models, [&](ir::ExprId Known) { return object(Known) == object(Model); }))
        O.Models.push_back(Model);
    };
    for (ir::ExprId Side : Sides)
      for (ir::ExprId Arg : P.Code.Exprs[Side].Args) {
        llvm::for_each(modelsIn(Arg, F, 2), Add);
        // `*model`, `model`
        const ir::Expr *Given = &P.Code.Exprs[Arg];
        ir::ExprId Model = Arg;
        while ((Given->Kind == ExprKind::Unary || Given->Kind == ExprKind::Cast ||
                (Given->Kind == ExprKind::Call && StringRef(Given->Name).ends_with("::operator*"))) &&
               (Given->Object != None || !Given->Args.empty())) {
          Model = Given->Object != None ? Given->Object : Given->Args[0];
          Given = &P.Code.Exprs[Model];
        }
        if (Helps(Side) && P.Code.type(Model).Kind == TypeKind::Module)
          Add(Model);
      }
    for (ir::ExprId Model : O.Models)
      Models.insert(object(Model));
    Optimizers.push_back(std::move(O));
  };
  if (P.Main != None) // at namespace scope, and static members: made before `main`
    for (const auto &[Global, Value] : P.Code.Globals)
      Consider(Value, Global, P.Main, None);
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
    for (const auto &[Field, Value] : P.Code.Functions[F].Inits)
      Consider(Value, Field, F, None);
    P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (X.Kind == StmtKind::Decl) {
        Consider(X.Value, X.Var, F, S);
        for (const auto &[Member, Made] : membersGiven(X.Value)) {
          const size_t Before = Optimizers.size();
          Consider(Made, Member, F, S);
          for (size_t I = Before; I != Optimizers.size(); ++I)
            Optimizers[I].Holder = X.Var;
        }
        if (P.keepsScheduler(X.Var))
          Schedulers.push_back(S);
      } else if (X.Kind == StmtKind::Expr && X.Value != None) {
        const ir::Expr &E = P.Code.Exprs[X.Value];
        if (E.Kind == ExprKind::Assign && E.Name == "=" && E.Args.size() == 2 && E.Args[0] != None) {
          const ir::Expr *To = &P.Code.Exprs[E.Args[0]]; // `opts["a"] = …`
          while (To->Var == None && To->Kind == ExprKind::Index && To->Object != None)
            To = &P.Code.Exprs[To->Object];
          if (To->Var != None)
            Consider(E.Args[1], To->Var, F, S, E.Args[0]);
        }
      }
    });
  }
  // What a helper returns is prepared where it arrives.
  llvm::erase_if(Optimizers, [&](const OptimizerRole &Inner) {
    ObjectId Result = P.Code.Vars.size() + P.Code.Exprs.size() + Inner.Function;
    return find(Result) == find(Inner.Var) && llvm::any_of(Optimizers, [&](const OptimizerRole &Outer) {
             return Outer.Function != Inner.Function && find(Outer.Var) == find(Inner.Var);
           });
  });
}

/// The optimizer of whose groups `E` is a list of parameters, `opt.param_groups()[0].params()`, `group.params()`.
ir::ExprId Roles::groupedBy(ir::ExprId E) const {
  bool Lists = false;
  for (int Hops = 0; E != None && Hops != 16; ++Hops) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    StringRef Name = X.Name;
    Lists |= Name.ends_with("OptimizerParamGroup::params");
    if (Name.ends_with("::param_groups"))
      return Lists ? X.Object : None;
    if (X.Kind != ExprKind::Ref) {
      E = X.Object;
    } else if (auto Made = Init.find(X.Var); Made != Init.end()) {
      E = Made->second;
    } else if (Lists) { // `for (auto& group : opt.param_groups())`
      auto Over = llvm::find_if(P.Code.Stmts, [&](const ir::Stmt &S) {
        return S.Kind == StmtKind::RangeFor && S.Var == X.Var && X.Var != None;
      });
      E = Over == P.Code.Stmts.end() ? None : Over->Value;
    } else {
      return None;
    }
  }
  return None;
}

/// Optimizers that are made in place: `opt.emplace(net->parameters(), 0.1)`, `opt.reset(new SGD(net->parameters(),
/// 0.1))`, `opts.push_back(std::make_unique<SGD>(net->parameters(), 0.1))`; and what is given to one later.
void Roles::findOptimizersPut() {
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
      if (P.Code.Stmts[S].Kind != StmtKind::Expr || P.Code.Stmts[S].Value == None)
        return;
      ir::ExprId Call = P.Code.Stmts[S].Value;
      const ir::Expr &X = P.Code.Exprs[Call];
      StringRef Name = StringRef(X.Name).rsplit("::").second;
      const bool Assigns = X.Kind == ExprKind::Assign && X.Args.size() == 2 && X.Args[0] != None;
      const bool Adds = X.Object != None && (Name == "push_back" || Name == "emplace_back" || Name == "insert");
      // Parameters that it is given later, `opt.param_groups()[0].params().push_back(p)`: it is prepared again.
      ir::ExprId Target = groupedBy(Assigns ? X.Args[0] : Adds ? X.Object : None);
      const bool Regrouped = Target != None;
      const bool Appends = !Regrouped && (Name == "push_back" || Name == "emplace_back");
      if (!Regrouped) {
        if (X.Kind != ExprKind::Call || X.Object == None || X.Args.empty() ||
            !(Appends || Name == "emplace" || Name == "reset" || Name == "add_param_group"))
          return;
        bool Held = P.Code.type(X.Object).Kind == TypeKind::Optimizer; // by a smart pointer, an optional
        StringRef List = P.Code.type(X.Object).Name;
        bool Listed =
            Appends && List.contains("torch::optim::") && !List.contains("ParamGroup") && !List.contains("Options");
        if (Appends ? !Listed : !Held)
          return;
        Target = X.Object;
      }
      OptimizerRole O;
      O.Made = Call;
      O.Var = P.Code.Exprs[Target].Var;
      O.Function = F;
      O.Statement = S;
      O.Target = Target;
      O.Appended = Appends;
      for (ir::ExprId Arg : X.Args)
        llvm::append_range(O.Models, modelsIn(Arg, F, 2));
      if (O.Var == None || (O.Models.empty() && !Regrouped))
        return;
      for (ir::ExprId Model : O.Models)
        Models.insert(object(Model));
      Optimizers.push_back(std::move(O));
    });
}

/// Optimizers that are made in the argument of a call, `Trainer t(net, std::make_unique<SGD>(net->parameters(), 0.1))`:
/// they have a name in the function that is called, the member's where it is a constructor that keeps them.
void Roles::findOptimizersGiven() {
  auto KeptAs = [&](const ir::Function &Fn, ObjectId Object) {
    for (const auto &[Field, Value] : Fn.Inits)
      if (find(Field) == Object)
        return Field;
    for (ir::VarId Param : Fn.Params)
      if (find(Param) == Object)
        return Param;
    return None;
  };
  auto Consider = [&](ir::ExprId Arg, ir::VarId Param, ir::FuncId Given, ir::FuncId From) {
    const ir::Expr *Made = &P.Code.Exprs[Arg]; // within conversions to another kind of pointer
    while ((Made->Kind == ExprKind::Construct || Made->Kind == ExprKind::Cast) && Made->Args.size() == 1 &&
           Made->Args[0] != None && P.Code.type(Made->Args[0]).Kind == TypeKind::Optimizer)
      Made = &P.Code.Exprs[Made->Args[0]];
    auto Makes = [](const ir::Expr &X) {
      return X.Kind == ExprKind::Construct || StringRef(X.Name).starts_with("std::make_");
    };
    if (Made->Kind == ExprKind::Call && Made->Name == "std::move" && Made->Args.size() == 1)
      Made = &P.Code.Exprs[Made->Args[0]];
    const bool Here = Makes(*Made);
    std::vector<ir::FuncId> Makers = P.bodies(*Made); // `Trainer trainer(model, optimizerOf(model))`
    if (!Here && Makers.empty())
      return;
    OptimizerRole O;
    O.Made = Arg;
    O.Var = KeptAs(P.Code.Functions[Given], find(Param));
    O.Function = Given;
    auto ModelsOf = [&](const ir::Expr &Optimizer, ir::FuncId F) {
      for (ir::ExprId Of : Optimizer.Args)
        llvm::append_range(O.Models, modelsIn(Of, F, 2));
    };
    if (Here)
      ModelsOf(*Made, From);
    else
      for (ir::FuncId Maker : Makers)
        P.forEachExprIn(P.Code.Functions[Maker].Body, [&](ir::ExprId E) {
          if (P.Code.type(E).Kind == TypeKind::Optimizer && Makes(P.Code.Exprs[E]))
            ModelsOf(P.Code.Exprs[E], Maker);
        });
    for (ir::ExprId Model : O.Models)
      O.Names.push_back(KeptAs(P.Code.Functions[Given], object(Model)));
    bool Again = llvm::any_of(Optimizers, [&](const OptimizerRole &Known) { return find(Known.Var) == find(O.Var); });
    if (O.Models.empty() || Again || llvm::is_contained(O.Names, None))
      return;
    for (ir::ExprId Model : O.Models)
      Models.insert(object(Model));
    Optimizers.push_back(std::move(O));
  };
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
    auto Visit = [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Kind != ExprKind::Call && X.Kind != ExprKind::Construct)
        return;
      for (ir::FuncId Given : P.bodies(X)) {
        const std::vector<ir::VarId> &Params = P.Code.Functions[Given].Params;
        for (size_t I = 0; I < Params.size() && I < X.Args.size(); ++I)
          if (X.Args[I] != None && P.Code.typeOf(Params[I]).Kind == TypeKind::Optimizer)
            Consider(X.Args[I], Params[I], Given, F);
      }
    };
    P.Code.Functions[F].forEachInit([&](ir::ExprId Init) { P.forEachExpr(Init, Visit); });
    P.forEachExprIn(P.Code.Functions[F].Body, Visit);
  }
}

} // namespace migrate
