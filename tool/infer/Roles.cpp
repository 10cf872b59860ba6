//===- Roles.cpp ----------------------------------------------------------===//
#include "infer/Roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

bool isBackward(const ir::Expr &E) {
  return E.Kind == ExprKind::Call && (E.Name == "at::Tensor::backward" || E.Name == "torch::autograd::backward" ||
                                      E.Name == "accelerate::Accelerator::backward");
}

static bool isObject(TypeKind Kind) {
  switch (Kind) {
  case TypeKind::Module:
  case TypeKind::Optimizer:
  case TypeKind::Scheduler:
  case TypeKind::DataLoader:
  case TypeKind::Device:
    return true;
  default:
    return false;
  }
}

Roles::Roles(const Program &P) : P(P) {
  Parent.resize(P.Code.Vars.size() + P.Code.Exprs.size() + P.Code.Functions.size());
  for (ObjectId I = 0; I != Parent.size(); ++I)
    Parent[I] = I;
  indexStatements();
  unifyFlow();
  findBackward();
  findOptimizers();
  findOptimizersPut();
  findOptimizersGiven();
  findUpdatesByHand();
  findPoints();
  findUnread();
  findLoaders();
}

ObjectId Roles::find(ObjectId O) const {
  while (Parent[O] != O)
    O = Parent[O] = Parent[Parent[O]];
  return O;
}

void Roles::unite(ObjectId A, ObjectId B) {
  A = find(A), B = find(B);
  if (A != B)
    Parent[std::max(A, B)] = std::min(A, B);
}

ObjectId Roles::object(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  ObjectId Own = P.Code.Vars.size() + E;
  switch (X.Kind) {
  case ExprKind::Ref:
    return find(X.Var);
  case ExprKind::Field:
    return X.Var == None ? find(Own) : find(X.Var);
  case ExprKind::Cast:
  case ExprKind::Unary:
    return X.Args.empty() || X.Args[0] == None ? find(Own) : object(X.Args[0]);
  case ExprKind::Index:
    return X.Object == None ? find(Own) : object(X.Object);
  case ExprKind::Construct:
    // shared_ptr<Module>(net), Net(net.ptr()): the same object in another wrapping.
    if (!X.Args.empty() && X.Args[0] != None && P.Code.type(X.Args[0]).Kind == P.Code.type(E).Kind)
      return object(X.Args[0]);
    return find(Own);
  case ExprKind::Call: {
    StringRef Name = X.Name;
    if ((Name == "std::move" || Name == "std::forward" || Name == "std::ref" || Name.ends_with("_pointer_cast")) &&
        !X.Args.empty())
      return object(X.Args[0]);
    if ((Name.ends_with("::get") || Name.ends_with("::ptr") || Name.ends_with("::shared_from_this") ||
         Name.ends_with("::operator*") || Name.ends_with("::value") || Name.ends_with("::at") ||
         Name.ends_with("::back") || Name.ends_with("::front")) &&
        X.Object != None)
      return object(X.Object);
    if (std::vector<ir::FuncId> Bodies = P.bodies(X); !Bodies.empty()) // overriders are united
      return find(P.Code.Vars.size() + P.Code.Exprs.size() + Bodies[0]);
    return find(Own);
  }
  default:
    return find(Own);
  }
}

void Roles::indexStatements() {
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
      FunctionOf[S] = F;
      if (P.Code.Stmts[S].Kind == StmtKind::Decl || P.Code.Stmts[S].Kind == StmtKind::RangeFor)
        DeclarationOf.try_emplace(P.Code.Stmts[S].Var, S);
      for (ir::StmtId Child : P.Code.Stmts[S].Children)
        if (Child != None)
          ParentOf[Child] = S;
    });
}

bool Roles::isOneOfList(ir::VarId V) const {
  auto Declared = DeclarationOf.find(V);
  return Declared != DeclarationOf.end() && P.Code.Stmts[Declared->second].Kind == StmtKind::RangeFor;
}

/// What functions are handed on as, `std::function<void(int)>`, `void (*)(int)`, without the star.
static std::string kindOfFunction(StringRef Type) {
  std::string Kind = Type.str();
  if (size_t At = Kind.find("(*)"); At != std::string::npos)
    Kind.erase(At, 3);
  return Kind;
}

/// Remembers a lambda or function that something is given, by its type.
void Roles::hand(const ir::Type &To, ir::ExprId From) {
  if (From == None || !(StringRef(To.Name).starts_with("std::function<") || StringRef(To.Name).contains("(*)")))
    return;
  const ir::Expr *Given = &P.Code.Exprs[P.unconverted(From)];
  if (Given->Kind == ExprKind::Unary && Given->Name == "&")
    Given = &P.Code.Exprs[Given->Args[0]];
  ir::FuncId F = Given->Func != None ? Given->Func : Given->Kind == ExprKind::Unknown ? P.callee(*Given) : None;
  if (F != None)
    Handed[kindOfFunction(To.Name)].push_back(F);
}

/// What puts an object into a list, or into a map behind its key.
static bool putsItems(StringRef Name) {
  StringRef Method = Name.substr(Name.rfind(':') + 1);
  return Name.starts_with("std::") &&
         llvm::is_contained({"push_back", "emplace_back", "insert", "emplace", "try_emplace", "insert_or_assign"},
                            Method);
}

/// Assignments, arguments and results make two expressions the same object.
void Roles::unifyFlow() {
  auto Flow = [&](ObjectId To, TypeKind Kind, ir::ExprId From) {
    if (From != None && isObject(Kind))
      unite(To, object(From));
  };
  std::map<ir::VarId, ir::ExprId> Over; // names of a container's items
  for (const auto &[Global, Value] : P.Code.Globals) {
    Init.try_emplace(Global, Value);
    hand(P.Code.typeOf(Global), Value);
    Flow(Global, P.Code.typeOf(Global).Kind, Value);
  }
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
    const ir::Function &Fn = P.Code.Functions[F];
    for (const auto &[Field, Value] : Fn.Inits) {
      Init.try_emplace(Field, Value);
      hand(P.Code.typeOf(Field), Value);
      Flow(Field, P.Code.typeOf(Field).Kind, Value);
    }
    P.forEachStmt(Fn.Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (X.Kind == StmtKind::Decl && X.Value != None) {
        Init.try_emplace(X.Var, X.Value);
        hand(P.Code.typeOf(X.Var), X.Value);
        Flow(X.Var, P.Code.typeOf(X.Var).Kind, X.Value);
      }
      if (X.Kind == StmtKind::Return && X.Value != None)
        Flow(P.Code.Vars.size() + P.Code.Exprs.size() + F, P.Code.type(X.Value).Kind, X.Value);
      if (X.Kind == StmtKind::RangeFor && X.Value != None) {
        Over.emplace(X.Var, X.Value);
        if (isObject(P.Code.typeOf(X.Var).Kind))
          unite(X.Var, object(X.Value));
      }
    });
  }
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Assign && X.Name == "=" && X.Args.size() == 2 && X.Args[0] != None)
      hand(P.Code.type(X.Args[0]), X.Args[1]);
    if (X.Kind == ExprKind::Assign && X.Name == "=" && X.Args.size() == 2 && X.Args[0] != None)
      Flow(object(X.Args[0]), P.Code.type(X.Args[0]).Kind, X.Args[1]);
    // `train ? *loader : *held_out`: one loop runs over either, so both are shared out alike.
    if (X.Kind == ExprKind::Conditional)
      for (ir::ExprId Side : llvm::drop_begin(X.Args))
        Flow(object(E), P.Code.type(E).Kind, Side);
    // `for (auto &[phase, loader] : loaders)`, `loaders.find(phase)->second`: what lies in the map
    if (X.Kind == ExprKind::Field && X.Name == "second" && X.Object != None && isObject(P.Code.type(E).Kind)) {
      const ir::Expr *Item = &P.Code.Exprs[P.unconverted(X.Object)];
      if (auto It = Over.find(Item->Var); Item->Kind == ExprKind::Ref && It != Over.end())
        unite(X.Var, object(It->second));
      if (auto It = Init.find(Item->Var); Item->Kind == ExprKind::Ref && It != Init.end())
        Item = &P.Code.Exprs[P.unconverted(It->second)];
      if (Item->Kind == ExprKind::Call && Item->Object != None &&
          StringRef(P.Code.type(Item->Object).Name).contains("map<"))
        unite(X.Var, object(Item->Object));
    }
    if (X.Kind != ExprKind::Call && X.Kind != ExprKind::Construct)
      continue;
    for (ir::FuncId F : P.bodies(X)) {
      unite(P.Code.Vars.size() + P.Code.Exprs.size() + F, P.Code.Vars.size() + P.Code.Exprs.size() + P.bodies(X)[0]);
      CallsOf[F].push_back(E);
      const ir::Function &Fn = P.Code.Functions[F];
      for (size_t I = 0; I < Fn.Params.size() && I < X.Args.size(); ++I)
        hand(P.Code.typeOf(Fn.Params[I]), X.Args[I]);
      for (size_t I = 0; I < Fn.Params.size() && I < X.Args.size(); ++I)
        Flow(Fn.Params[I], P.Code.typeOf(Fn.Params[I]).Kind, X.Args[I]);
    }
    // containers of objects: what is put in is what comes out
    if (X.Object != None && putsItems(X.Name))
      for (ir::ExprId Arg : X.Args)
        P.forEachExpr(Arg, [&](ir::ExprId Item) { // `loaders.insert({"train", std::move(loader)})`
          const bool Pair = StringRef(P.Code.type(Arg).Name).starts_with("std::pair<");
          if (Item == Arg || Pair)
            Flow(object(X.Object), P.Code.type(Item).Kind, Item);
        });
    // `std::optional`: `loader.emplace(make_data_loader(…))`
    if (X.Object != None && X.Args.size() == 1 && StringRef(X.Name).ends_with("::emplace") && X.Args[0] != None &&
        P.Code.type(X.Object).Kind == P.Code.type(X.Args[0]).Kind)
      Flow(object(X.Object), P.Code.type(X.Args[0]).Kind, X.Args[0]);
  }
}

/// The functions that a call may run: also through what it was handed.
std::vector<ir::FuncId> Roles::mayRun(const ir::Expr &X) const {
  std::vector<ir::FuncId> Found = P.bodies(X);
  if (Found.empty() && X.Kind == ExprKind::Call && X.Object != None &&
      (X.Name.empty() || StringRef(X.Name).ends_with("operator()")))
    if (auto It = Handed.find(kindOfFunction(P.Code.type(X.Object).Name)); It != Handed.end())
      Found = It->second;
  return Found;
}

void Roles::findBackward() {
  std::map<ir::FuncId, std::set<ir::FuncId>> Callers;
  std::vector<ir::FuncId> Work;
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
    auto Visit = [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (isBackward(X) && Backward.insert(F).second)
        Work.push_back(F);
      if (X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct)
        for (ir::FuncId Callee : mayRun(X))
          Callers[Callee].insert(F);
    };
    P.Code.Functions[F].forEachInit([&](ir::ExprId Init) { P.forEachExpr(Init, Visit); });
    P.forEachExprIn(P.Code.Functions[F].Body, Visit);
  }
  // Functions whose name is used at all on some way from main, called or handed on.
  if (P.Main != None) {
    std::vector<ir::FuncId> Found = {P.Main};
    Reachable.insert(P.Main);
    for (size_t I = 0; I != Found.size(); ++I) {
      auto Visit = [&](ir::ExprId E) {
        for (ir::FuncId Callee : P.bodies(P.Code.Exprs[E]))
          if (Reachable.insert(Callee).second)
            Found.push_back(Callee);
      };
      P.forEachExprIn(P.Code.Functions[Found[I]].Body, Visit);
      P.Code.Functions[Found[I]].forEachInit([&](ir::ExprId Init) { P.forEachExpr(Init, Visit); });
    }
  }
  while (!Work.empty()) {
    ir::FuncId F = Work.back();
    Work.pop_back();
    for (ir::FuncId Caller : Callers[F])
      if (Backward.insert(Caller).second)
        Work.push_back(Caller);
  }
}

bool Roles::reachesBackward(ir::StmtId S) const {
  bool Found = false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (isBackward(X))
      Found = true;
    else if (X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct)
      for (ir::FuncId F : mayRun(X))
        Found |= Backward.count(F) != 0;
  });
  return Found;
}

/// The `X` of each `X.parameters()` in `E`, also where the parameters were collected in a variable first.
std::vector<ir::ExprId> Roles::modelsIn(ir::ExprId E, ir::FuncId F, int Depth) const {
  std::vector<ir::ExprId> Found;
  auto Add = [&](ir::ExprId Model) {
    for (ir::ExprId Known : Found)
      if (object(Known) == object(Model))
        return;
    Found.push_back(Model);
  };
  std::set<ir::VarId> Through;
  auto Look = [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    if (X.Kind == ExprKind::Call && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module &&
        (StringRef(X.Name).ends_with("::parameters") || StringRef(X.Name).ends_with("::named_parameters")))
      Add(X.Object);
    // `{words->weight}`: it is its module that knows whether gradients are sparse.
    if (X.Kind == ExprKind::Field && X.Name == "weight" && X.Object != None &&
        StringRef(P.Code.type(X.Object).Name).starts_with("torch::nn::Embedding") &&
        P.Code.Exprs[P.unconverted(X.Object)].Kind == ExprKind::Ref)
      Add(P.unconverted(X.Object));
    if (X.Kind == ExprKind::Ref && X.Var != None && P.Code.type(Sub).Kind == TypeKind::Container)
      Through.insert(X.Var);
  };
  P.forEachExpr(E, Look);
  if (Depth > 0 && F != None)
    for (ir::VarId V : std::set<ir::VarId>(Through))
      P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
        const ir::Stmt &X = P.Code.Stmts[S];
        if (X.Value == None || X.Kind == StmtKind::RangeFor)
          return;
        bool Mentions = X.Kind == StmtKind::Decl && X.Var == V;
        std::set<ir::VarId> Others;
        P.forEachExpr(X.Value, [&](ir::ExprId Sub) {
          if (const ir::Expr &Named = P.Code.Exprs[Sub]; Named.Kind == ExprKind::Ref) {
            Mentions |= Named.Var == V;
            Others.insert(Named.Var);
          }
        });
        if (!Mentions || (X.Kind != StmtKind::Decl && X.Kind != StmtKind::Expr))
          return;
        for (ir::ExprId Model : modelsIn(X.Value, F, Depth - 1))
          Add(Model);
        // `for (auto &p : net->parameters()) all.push_back(p);`
        for (auto Loop = ParentOf.find(S); Loop != ParentOf.end(); Loop = ParentOf.find(Loop->second))
          if (const ir::Stmt &Around = P.Code.Stmts[Loop->second];
              Around.Kind == StmtKind::RangeFor && Others.count(Around.Var))
            for (ir::ExprId Model : modelsIn(Around.Value, F, Depth - 1))
              if (!isOneOfList(P.Code.Exprs[P.unconverted(Model)]
                                   .Var)) // `for (auto &net : nets)` around it: none of them has a name here
                Add(Model);
      });
  return Found;
}

/// What `E` may be, without conversions: itself, or the sides of a choice.
void Roles::sidesOf(ir::ExprId E, std::vector<ir::ExprId> &Into) const {
  const ir::Expr *X = &P.Code.Exprs[E];
  while ((X->Kind == ExprKind::Construct || X->Kind == ExprKind::Cast || X->Name == "std::move") &&
         X->Args.size() == 1 && X->Args[0] != None && P.Code.type(X->Args[0]).Kind == P.Code.type(E).Kind)
    X = &P.Code.Exprs[E = X->Args[0]];
  if (X->Kind == ExprKind::Conditional)
    for (ir::ExprId Side : llvm::drop_begin(X->Args))
      sidesOf(Side, Into);
  else
    Into.push_back(E);
}

/// What each member of an aggregate is given in its braces, `Agent agent{net, std::make_unique<Adam>(…)};`.
std::vector<std::pair<ir::VarId, ir::ExprId>> Roles::membersGiven(ir::ExprId Made) const {
  std::vector<std::pair<ir::VarId, ir::ExprId>> Given;
  Made = Made == None ? None : P.unconverted(Made);
  if (Made == None || !StringRef(P.Code.Exprs[Made].Callee).starts_with("aggregate:"))
    return Given;
  const std::vector<ir::ExprId> &Args = P.Code.Exprs[Made].Args;
  for (ir::FuncId F : P.bodies(P.Code.Exprs[Made]))
    for (const auto &[Member, Init] : P.Code.Functions[F].Inits) {
      const std::vector<ir::VarId> &Params = P.Code.Functions[F].Params;
      const size_t I = llvm::find(Params, P.Code.Exprs[Init].Var) - Params.begin();
      if (I < Params.size() && I < Args.size())
        Given.emplace_back(Member, Args[I]);
    }
  return Given;
}

bool Roles::isTrainedModel(ir::ExprId E) const {
  return P.Code.type(E).Kind == TypeKind::Module && Models.count(object(E));
}

} // namespace migrate
