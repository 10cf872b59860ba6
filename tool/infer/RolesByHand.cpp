//===- RolesByHand.cpp - Parameters that the program updates by itself ----===//
//
// `p.sub_(rate * p.grad())`: no optimizer tells what is trained, so the tensors whose gradients are read do. They are
// followed back to the model they are parameters of, or to the leaf tensor itself, through containers, loops and
// functions.
//
//===----------------------------------------------------------------------===//
#include "infer/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// The last of main's statements before training that names a global, directly or in what it calls; the first if none
/// does. None where training is all that main does.
ir::StmtId Roles::behindGlobal(ir::VarId V) const {
  if (P.Main == None || StringRef(P.Code.Vars[V].Usr).contains("@N@") || StringRef(P.Code.Vars[V].Usr).contains("@S@"))
    return None; // its name alone might not name it there
  std::set<ir::FuncId> Seen;
  std::function<bool(ir::ExprId)> Names = [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    bool Found = X.Kind == ExprKind::Ref && X.Var == V;
    for (ir::FuncId F : mayRun(X))
      if (Seen.insert(F).second)
        P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId Inner) { Found |= Names(Inner); });
    return Found;
  };
  ir::StmtId Behind = None;
  for (ir::StmtId Child : P.statements(P.Main)) {
    if (reachesBackward(Child))
      return Behind;
    bool Named = Behind == None;
    Seen.clear();
    P.forEachExprIn(Child, [&](ir::ExprId E) { Named |= Names(E); });
    if (Named)
      Behind = Child;
  }
  return None;
}

/// Whether a loop makes a leaf anew of itself: `w = (w - rate * w.grad()).detach().requires_grad_()`. What was prepared
/// would be another one than is trained.
bool Roles::madeAnew(ir::VarId V) const {
  auto Named = [&](ir::ExprId E) { // `w`, `ps[i]`
    const ir::Expr *X = &P.Code.Exprs[P.unconverted(E)];
    if (X->Object != None && (X->Kind == ExprKind::Index || StringRef(X->Name).ends_with("::operator[]")))
      X = &P.Code.Exprs[P.unconverted(X->Object)];
    return (X->Kind == ExprKind::Ref || X->Kind == ExprKind::Field) && X->Var == V;
  };
  bool Anew = false;
  for (const auto &[Statement, Function] : FunctionOf) {
    const ir::Stmt &X = P.Code.Stmts[Statement];
    if (X.Kind != StmtKind::Expr || X.Value == None)
      continue;
    const ir::Expr &Set = P.Code.Exprs[X.Value];
    if (Set.Kind != ExprKind::Assign || Set.Name != "=" || !Named(Set.Args[0]))
      continue;
    bool OfItself = false, Loops = false;
    P.forEachExpr(Set.Args[1], [&](ir::ExprId E) { OfItself |= P.Code.Exprs[E].Var == V; });
    for (auto Around = ParentOf.find(Statement); Around != ParentOf.end(); Around = ParentOf.find(Around->second)) {
      StmtKind Kind = P.Code.Stmts[Around->second].Kind;
      Loops |= Kind == StmtKind::Loop || Kind == StmtKind::RangeFor;
    }
    Anew |= OfItself && (Loops || !P.Code.Functions[Function].Main);
  }
  return Anew;
}

/// Has a model or leaf tensor prepared where it is made: declared, assigned once, or a constructor's member. False if
/// that isn't one place.
bool Roles::trainedByHand(ir::VarId V) {
  if (Models.count(find(V)))
    return true;
  if (isTensors(P.Code.typeOf(V)) && madeAnew(V))
    return false;
  OptimizerRole Role;
  Role.Var = V;
  auto Declared = DeclarationOf.find(V);
  if (P.Code.Vars[V].Global) {
    Role.Statement = behindGlobal(V);
    if (Role.Statement == None)
      return false;
  } else if (Declared != DeclarationOf.end()) {
    if (P.Code.Stmts[Declared->second].Kind != StmtKind::Decl)
      return false;
    Role.Statement = Declared->second;
  } else {
    if (!P.Code.Vars[V].Field)
      return false;
    for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
      for (const auto &[Field, Value] : P.Code.Functions[F].Inits)
        if (Field == V && !(P.Code.Exprs[Value].Kind == ExprKind::Construct && P.Code.Exprs[Value].Args.empty())) {
          if (Role.Function != None)
            return false;
          Role.Function = F;
        }
      bool Twice = false;
      P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
        const ir::Stmt &X = P.Code.Stmts[S];
        if (X.Kind != StmtKind::Expr || X.Value == None || P.Code.Exprs[X.Value].Kind != ExprKind::Assign ||
            P.Code.Exprs[X.Value].Name != "=" || P.Code.Exprs[P.Code.Exprs[X.Value].Args[0]].Var != V)
          return;
        Twice |= Role.Function != None;
        Role.Function = F;
        Role.Statement = S;
        Role.Target = P.Code.Exprs[X.Value].Args[0];
      });
      bool Filled = false; // `params.push_back(torch::zeros({n}).requires_grad_());`
      P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
        const ir::Expr &X = P.Code.Exprs[E];
        Filled |= X.Object != None && P.Code.Exprs[P.unconverted(X.Object)].Var == V &&
                  (StringRef(X.Name).ends_with("::push_back") || StringRef(X.Name).ends_with("::emplace_back"));
      });
      if (Twice || (Filled && Role.Function != None && Role.Function != F))
        return false;
      if (Filled)
        Role.Function = F;
    }
    if (Role.Function == None)
      return false;
  }
  if (Role.Statement != None)
    Role.Function = FunctionOf.at(Role.Statement);
  Optimizers.push_back(std::move(Role));
  Models.insert(find(V));
  return true;
}

/// All that a variable or field is made of or assigned, or that is put into it.
std::vector<ir::ExprId> Roles::sourcesOf(ir::VarId V) const {
  std::vector<ir::ExprId> Found;
  auto Add = [&](ir::ExprId Value) { // `std::vector<Tensor> params;` says nothing yet
    const ir::Expr &X = P.Code.Exprs[Value];
    if (!((X.Kind == ExprKind::Construct || X.Kind == ExprKind::List) && X.Args.empty()))
      Found.push_back(Value);
  };
  if (auto Declared = DeclarationOf.find(V); Declared != DeclarationOf.end())
    if (ir::ExprId Value = P.Code.Stmts[Declared->second].Value; Value != None)
      Add(Value);
  for (const auto &[Global, Value] : P.Code.Globals)
    if (Global == V)
      Add(Value);
  if (P.Code.Vars[V].Field)
    for (const ir::Function &F : P.Code.Functions)
      for (const auto &[Field, Value] : F.Inits)
        if (Field == V)
          Add(Value);
  for (const ir::Expr &X : P.Code.Exprs) {
    if (X.Kind == ExprKind::Assign && X.Name == "=" && X.Args.size() == 2 && X.Args[0] != None &&
        P.Code.Exprs[P.unconverted(X.Args[0])].Var == V)
      Add(X.Args[1]);
    if (X.Kind != ExprKind::Call || X.Object == None || P.Code.Exprs[P.unconverted(X.Object)].Var != V)
      continue;
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (Name == "push_back" || Name == "emplace_back")
      llvm::append_range(Found, X.Args);
    if (Name == "insert" && X.Args.size() == 3) // `all.insert(all.end(), some.begin(), some.end())`
      Found.push_back(X.Args[1]);
  }
  return Found;
}

/// Whether a member is a parameter that its module registers: as what it is given, or, in one function, behind that.
bool Roles::isRegistered(ir::VarId V) const {
  std::vector<ir::Range> Registers; // `register_parameter("weight", layer->weight)`
  auto Is = [&](const ir::Expr &X) { return StringRef(X.Name).ends_with("::register_parameter"); };
  for (const ir::Expr &X : P.Code.Exprs)
    if (X.Kind == ExprKind::Call && Is(X) && X.Args.size() > 1 && P.Code.Exprs[P.unconverted(X.Args[1])].Var == V)
      Registers.push_back(X.Where);
  const std::vector<ir::ExprId> Sources = sourcesOf(V);
  return !Sources.empty() && llvm::all_of(Sources, [&](ir::ExprId Source) {
    const ir::Expr &X = P.Code.Exprs[P.unconverted(Source)];
    return Is(X) || llvm::any_of(Registers, [&](const ir::Range &At) {
             return X.Where.File == At.File && X.Where.End <= At.Begin &&
                    llvm::any_of(P.Code.Functions, [&](const ir::Function &F) {
                      return F.Where.contains(X.Where) && F.Where.contains(At);
                    });
           });
  });
}

/// Whether all that `E` may stand for was found: parameters of models, leaf tensors.
bool Roles::tracesToParameters(ir::ExprId E, std::set<ir::VarId> &Seen) {
  const ir::Expr &X = P.Code.Exprs[E];
  auto All = [&](const std::vector<ir::ExprId> &Exprs) {
    bool Found = !Exprs.empty();
    for (ir::ExprId Sub : Exprs)
      Found &= tracesToParameters(Sub, Seen);
    return Found;
  };
  if (P.Code.type(E).Kind == TypeKind::Module) {
    if (Models.count(object(E)))
      return true;
    // A part belongs to the whole: `model->layer->weight`.
    if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module)
      return tracesToParameters(X.Object, Seen);
  }
  switch (X.Kind) {
  case ExprKind::Cast:
  case ExprKind::Unary:
  case ExprKind::List:
  case ExprKind::Construct:
    return All(X.Args);
  case ExprKind::Index:
    return tracesToParameters(X.Object, Seen);
  case ExprKind::Field:
    if (X.Var == None || !P.Code.Vars[X.Var].Field || sourcesOf(X.Var).empty()) // `item.second`
      return X.Object != None && tracesToParameters(X.Object, Seen);
    if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module &&
        P.Code.Exprs[P.unconverted(X.Object)].Kind != ExprKind::This && isRegistered(X.Var))
      return tracesToParameters(X.Object, Seen);
    break;
  case ExprKind::Call:
    // `group.params()`: an optimizer's, whatever class of ours it is
    if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Optimizer)
      return true;
    // `joined(a->parameters(), b->parameters())`, `net.params()` of a class that is no module
    if (ir::FuncId F = P.callee(X); F != None && (X.Object == None || P.Code.type(X.Object).Own))
      return All(P.returned(F));
    return X.Object != None ? P.callee(X) == None && tracesToParameters(X.Object, Seen)
                            : StringRef(X.Name).starts_with("std::") && All(X.Args);
  case ExprKind::Ref:
    break;
  default:
    return false;
  }
  ir::VarId V = X.Var;
  if (V == None || !Seen.insert(V).second)
    return V != None;
  TypeKind Kind = P.Code.typeOf(V).Kind;
  if (P.Code.Vars[V].Param) {
    std::vector<ir::ExprId> Given = givenTo(V);
    bool Found = !Given.empty();
    for (ir::ExprId Arg : Given)
      Found &= Arg != None && tracesToParameters(Arg, Seen);
    return Found;
  }
  if (Kind == TypeKind::Module)
    return trainedByHand(V);
  std::vector<ir::ExprId> Sources = sourcesOf(V);
  // What a leaf is made of, or told later, says that it has a gradient.
  bool Leaf = false;
  auto Says = [&](ir::ExprId Sub) { Leaf |= StringRef(P.Code.Exprs[Sub].Name).contains("requires_grad"); };
  for (ir::ExprId Source : Sources)
    P.forEachExpr(Source, [&](ir::ExprId Sub) {
      Says(Sub);
      if (auto Options = Init.find(P.Code.Exprs[Sub].Var); // `auto options = torch::requires_grad();`
          Options != Init.end() && StringRef(P.Code.type(Sub).Name).ends_with("TensorOptions"))
        P.forEachExpr(Options->second, Says);
    });
  for (ir::ExprId Call = 0; Call != P.Code.Exprs.size(); ++Call) {
    const ir::Expr &Y = P.Code.Exprs[Call];
    const bool Asks = P.Code.type(Call).Kind == TypeKind::Bool; // `if (p.requires_grad())`
    Leaf |= Y.Kind == ExprKind::Call && Y.Object != None && P.Code.Exprs[Y.Object].Var == V && !Asks &&
            StringRef(Y.Name).contains("requires_grad");
  }
  if (isTensors(P.Code.typeOf(V)) && Leaf)
    return onlyLookedAt(V) || trainedByHand(V);
  return All(Sources);
}

std::vector<ir::ExprId> Roles::givenTo(ir::VarId Param) const {
  std::vector<ir::ExprId> Given;
  ir::FuncId F = P.Code.Vars[Param].Param ? P.Code.Vars[Param].Function : None;
  auto Calls = CallsOf.find(F);
  if (F == None || Calls == CallsOf.end())
    return Given;
  const std::vector<ir::VarId> &Params = P.Code.Functions[F].Params;
  size_t I = llvm::find(Params, Param) - Params.begin();
  for (ir::ExprId Call : Calls->second) {
    const std::vector<ir::ExprId> &Args = P.Code.Exprs[Call].Args;
    Given.push_back(I < Args.size() ? Args[I] : None);
  }
  return Given;
}

bool Roles::ofModel(ir::ExprId E) const {
  for (int Hops = 0; Hops != 16 && E != None; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    bool OfModule = X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module;
    switch (X.Kind) {
    case ExprKind::Field:
      if ((OfModule && P.Code.type(E).Kind == TypeKind::Tensor) || Traced.count(X.Var))
        return true;
      E = X.Object; // `item.value`, `pair.second`
      break;
    case ExprKind::Index:
      E = X.Object;
      break;
    case ExprKind::Unary:
      E = X.Args.empty() ? None : X.Args[0];
      break;
    case ExprKind::Call:
      if (OfModule)
        return Name == "parameters" || Name == "named_parameters" || Name == "buffers" || Name == "named_buffers";
      if (!llvm::is_contained({"data", "grad", "mutable_grad", "detach", "select", "slice", "narrow", "view", "index",
                               "value", "at", "back", "front", "variable_data", "operator*", "operator->",
                               "operator[]"},
                              Name) &&
          !Name.ends_with("_"))
        return false;
      E = X.Object;
      break;
    case ExprKind::Ref: {
      if (X.Var == None || P.Code.typeOf(X.Var).Kind == TypeKind::Module)
        return false;
      if ((P.Code.typeOf(X.Var).Kind == TypeKind::Tensor && Models.count(find(X.Var))) || Traced.count(X.Var))
        return true;
      auto Declared = DeclarationOf.find(X.Var);
      E = Declared == DeclarationOf.end() ? None : P.Code.Stmts[Declared->second].Value;
      break;
    }
    default:
      return false;
    }
  }
  return false;
}

/// Whether a local leaf is made anew for each reading of its gradient: no loop in between could train it.
bool Roles::madeInStep(ir::VarId V, ir::ExprId Gradient) const {
  auto Declared = DeclarationOf.find(V);
  if (Declared == DeclarationOf.end() || P.Code.typeOf(V).Kind != TypeKind::Tensor || P.Code.typeOf(V).Reference)
    return false;
  // `auto p = params[i];`, `auto p = this->weight;` is another name of what was made elsewhere.
  if (const ir::ExprId Value = P.Code.Stmts[Declared->second].Value; Value != None) {
    const ir::Expr &Made = P.Code.Exprs[P.unconverted(Value)];
    const bool Element = Made.Object != None && P.Code.type(Made.Object).Kind == TypeKind::Container &&
                         (Made.Kind == ExprKind::Index || Made.Kind == ExprKind::Call);
    if (Element || Made.Kind == ExprKind::Field)
      return false;
  }
  auto Loops = [&](ir::StmtId S) {
    StmtKind Kind = P.Code.Stmts[S].Kind;
    return Kind == StmtKind::Loop || Kind == StmtKind::RangeFor;
  };
  auto Parent = [&](ir::StmtId S) {
    auto It = ParentOf.find(S);
    return It == ParentOf.end() ? None : It->second;
  };
  ir::StmtId Around = Parent(Declared->second);
  while (Around != None && !Loops(Around))
    Around = Parent(Around);
  const ir::Function &F = P.Code.Functions[FunctionOf.at(Declared->second)];
  if (Around == None && F.Main)
    return false; // made once
  ir::StmtId Whole = Around == None ? F.Body : Around;
  bool Within = false, Nested = false;
  P.forEachExprIn(Whole, [&](ir::ExprId E) { Within |= E == Gradient; });
  P.forEachStmt(Whole, [&](ir::StmtId S) {
    if (S != Whole && Loops(S))
      P.forEachExprIn(S, [&](ir::ExprId E) { Nested |= E == Gradient; });
  });
  return Within && !Nested;
}

/// Whether a local tensor or a parameter is made of a loader's batch.
bool Roles::ofBatch(ir::VarId V) const {
  std::set<ir::VarId> Seen;
  std::function<bool(ir::VarId)> Look = [&](ir::VarId Var) {
    if (Var == None || !Seen.insert(Var).second || P.Code.Vars[Var].Field || P.Code.Vars[Var].Global)
      return false;
    if (P.Code.typeOf(Var).Kind == TypeKind::Example)
      return true;
    std::vector<ir::ExprId> Sources = sourcesOf(Var);
    llvm::append_range(Sources, givenTo(Var));
    bool Found = false;
    for (ir::ExprId Source : Sources)
      if (Source != None)
        P.forEachExpr(Source, [&](ir::ExprId E) {
          const ir::Expr &X = P.Code.Exprs[E];
          Found |= P.Code.type(E).Kind == TypeKind::Example || (X.Kind == ExprKind::Ref && Look(X.Var));
        });
    return Found;
  };
  return P.Code.typeOf(V).Kind == TypeKind::Tensor && Look(V);
}

/// A leaf that is an input, whose gradient is asked for; the calls that ask.
void Roles::inputAt(ir::VarId V) {
  if (!Inputs.insert(V).second)
    return;
  auto Asks = [&](ir::ExprId E) { return StringRef(P.Code.Exprs[E].Name).contains("requires_grad"); };
  for (ir::ExprId Source : sourcesOf(V))
    P.forEachExpr(Source, [&](ir::ExprId Sub) {
      if (Asks(Sub))
        InputCalls.insert(Sub);
    });
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (ir::ExprId Of = P.Code.Exprs[E].Object; Of != None && Asks(E) && P.Code.Exprs[P.unconverted(Of)].Var == V)
      InputCalls.insert(E);
}

void Roles::findUpdatesByHand() {
  const bool ByGrad = llvm::none_of(P.Code.Exprs, isBackward); // else what isn't a model's are inputs, mostly
  for (ir::FuncId F : Reachable)
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      StringRef Name = StringRef(X.Name).rsplit("::").second;
      if (ByGrad && X.Name == "torch::autograd::grad" && X.Args.size() > 1 && X.Args[1] != None)
        if (std::set<ir::VarId> Seen; tracesToParameters(X.Args[1], Seen))
          Traced.insert(Seen.begin(), Seen.end());
      if (X.Kind != ExprKind::Call || X.Object == None || (Name != "grad" && Name != "mutable_grad") ||
          P.Code.type(X.Object).Kind != TypeKind::Tensor)
        return;
      if (ir::VarId V = P.Code.Exprs[P.unconverted(X.Object)].Var; V != None && (madeInStep(V, E) || ofBatch(V))) {
        inputAt(V);
        return;
      }
      std::set<ir::VarId> Seen;
      // Where the optimizer that has the model prepared comes later, nothing is prepared here yet.
      const bool Later = !Optimizers.empty() && llvm::all_of(Optimizers, [&](const OptimizerRole &O) {
        if (O.Made == None)
          return false;
        const ir::Range &Made = P.Code.Exprs[O.Made].Where;
        return (O.Function == F && X.Where.End <= Made.Begin) ||
               llvm::any_of(P.statements(O.Function), [&](ir::StmtId S) {
                 return P.Code.Stmts[S].Where.End <= Made.Begin && reachesBackward(S);
               });
      });
      const bool Found = tracesToParameters(X.Object, Seen);
      auto OfModel = [&](ir::ExprId From) {
        bool Of = false;
        P.forEachExpr(From, [&](ir::ExprId Sub) {
          Of |= P.Code.type(Sub).Kind == TypeKind::Module && Models.count(object(Sub));
        });
        return Of;
      };
      const bool Prepared =
          OfModel(X.Object) || llvm::any_of(Seen, [&](ir::VarId V) { return llvm::any_of(sourcesOf(V), OfModel); });
      if (Found && !(Later && Prepared))
        Traced.insert(Seen.begin(), Seen.end());
      else
        Ungraded.push_back(E);
    });
}

/// Leaves that ask for a gradient which nobody reads, `x.set_requires_grad(true)` of the inputs: they stay inputs.
void Roles::findUnread() {
  if (Optimizers.empty() || !Ungraded.empty()) // whatever is trained by hand was found
    return;
  std::set<ir::VarId> Kept; // as a module's parameter
  for (const ir::Expr &X : P.Code.Exprs)
    if (StringRef(X.Name).ends_with("::register_parameter"))
      for (ir::ExprId Arg : X.Args)
        P.forEachExpr(Arg, [&](ir::ExprId Sub) { Kept.insert(P.Code.Exprs[Sub].Var); });
  for (ir::FuncId F : Reachable)
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Kind != ExprKind::Call || X.Object == None || !StringRef(X.Name).contains("requires_grad"))
        return;
      const ir::Expr &Of = P.Code.Exprs[P.unconverted(X.Object)];
      const ir::VarId V = Of.Kind == ExprKind::Ref ? Of.Var : None;
      if (V != None && P.Code.typeOf(V).Kind == TypeKind::Tensor && !P.Code.Vars[V].Param && !P.Code.Vars[V].Global &&
          !Kept.count(V) && !Traced.count(V) && !Points.count(V) && !Models.count(find(V)) && !optimized(V) &&
          !movedByHand(V) && P.Code.type(E).Kind != TypeKind::Bool)
        inputAt(V);
    });
}

} // namespace migrate
