//===- StructurePrepare.cpp - Where to prepare ----------------------------===//
#include "infer/Deriver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

ir::StmtId Deriver::blockOf(ir::StmtId S) const {
  auto It = R.ParentOf.find(S);
  while (It != R.ParentOf.end() && P.Code.Stmts[It->second].Transparent)
    It = R.ParentOf.find(It->second);
  return It == R.ParentOf.end() ? None : It->second;
}

/// The list of statements around one: the body of an `if` without braces stands for the `if`.
ir::StmtId Deriver::listOf(ir::StmtId S) const {
  ir::StmtId List = blockOf(S);
  while (List != None && P.Code.Stmts[List].Kind != StmtKind::Block)
    List = blockOf(List);
  return List;
}

bool Deriver::trains(ir::StmtId S) const {
  if (R.reachesBackward(S))
    return true;
  bool Found = false;
  P.forEachStmt(S, [&](ir::StmtId Child) {
    const ir::Stmt &X = P.Code.Stmts[Child];
    Found |= X.Kind == StmtKind::RangeFor && X.Value != None && P.Code.type(X.Value).Kind == TypeKind::DataLoader;
  });
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    Found |= X.Kind == ExprKind::Call && X.Object != None && StringRef(X.Name).ends_with("::step") &&
             P.Code.type(X.Object).Kind == TypeKind::Optimizer;
  });
  return Found;
}

bool Deriver::preparedAlready(ObjectId Object) const {
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (expr(E).Name == "accelerate::Accelerator::prepare")
      for (ir::ExprId Arg : expr(E).Args)
        if (R.object(Arg) == Object)
          return true;
  return false;
}

/// Whether an optimizer that runs is made by a constructor's initialisers that nothing calls by name: of the items of
/// `std::vector<Member> members(3)`.
bool Deriver::constructs(const OptimizerRole &O) const {
  if (O.Statement != None || P.Code.Functions[O.Function].BodyBegin == 0)
    return false;
  return llvm::any_of(F.Reached, [&](ir::FuncId Fn) {
    bool Steps = false;
    P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId E) {
      Steps |= expr(E).Kind == ExprKind::Call && expr(E).Object != None &&
               StringRef(expr(E).Name).ends_with("::step") && P.Code.type(expr(E).Object).Kind == TypeKind::Optimizer &&
               R.object(expr(E).Object) == R.objectOfVar(O.Var);
    });
    return Steps;
  });
}

/// Where members are prepared that a constructor's initialisers make: in its body. Where nobody wrote one, in the
/// methods that train, as far as no other of them calls them; preparing once more what is prepared does nothing.
std::vector<ir::FuncId> Deriver::preparesIn(ir::FuncId Makes, const std::set<ObjectId> &Involved) const {
  const ir::Function &Ctor = P.Code.Functions[Makes];
  if (Ctor.BodyBegin != 0)
    return {Makes};
  std::vector<ir::FuncId> Train;
  std::set<ir::FuncId> Called;
  for (ir::FuncId Fn : F.Reached) {
    const ir::Function &Method = P.Code.Functions[Fn];
    if (Method.Record != Ctor.Record || Fn == Makes || Method.Body == None || !trains(Method.Body) ||
        !touches(Method.Body, Involved))
      continue;
    Train.push_back(Fn);
    P.forEachExprIn(Method.Body, [&](ir::ExprId E) {
      for (ir::FuncId Inner : P.bodies(expr(E)))
        if (Inner != Fn)
          Called.insert(Inner);
    });
  }
  llvm::erase_if(Train, [&](ir::FuncId Fn) { return Called.count(Fn) != 0; });
  // Where they only step, and somebody else runs the backward pass before, it would come too late.
  if (llvm::none_of(Train, [&](ir::FuncId Fn) { return R.reachesBackward(P.Code.Functions[Fn].Body); }))
    return {};
  return Train;
}

/// Members are prepared behind what the body still does to them before it trains: parameters that are replaced later
/// would be others.
void Deriver::prepareMembers(ir::FuncId In, Members All) {
  Prepared.insert(All.Involved.begin(), All.Involved.end());
  Fact Prep = fact("prepare-in-constructor", In);
  const ir::Function &Fn = P.Code.Functions[In];
  std::set<ObjectId> &Involved = All.Involved;
  std::vector<std::string> &Objects = All.Objects;
  const std::set<ObjectId> Optimizers = Involved;
  const std::vector<ir::StmtId> &Body = P.statements(In);
  const size_t Train = firstTraining(Body, 0);
  auto Add = [&](ir::VarId Scheduler, ir::ExprId Made) { // of this optimizer
    bool Its = false;
    P.forEachExpr(Made, [&](ir::ExprId E) {
      Its |= (expr(E).Kind == ExprKind::Ref || expr(E).Kind == ExprKind::Field) && expr(E).Var != None &&
             Optimizers.count(R.object(E)) != 0;
    });
    if (Scheduler != None && Its && Involved.insert(R.objectOfVar(Scheduler)).second)
      Objects.push_back(P.Code.Vars[Scheduler].Name);
  };
  for (const auto &[Field, Value] : Fn.Inits)
    Add(keptScheduler(Field), Value);
  for (size_t I = 0; I != Train; ++I)
    Add(assignedScheduler(Body[I]), P.Code.Stmts[Body[I]].Value);
  // A parameter of the member's name, which the member was moved from.
  for (const auto &[Field, Value] : Fn.Inits)
    for (std::string &Object : Objects)
      if (Object == P.Code.Vars[Field].Name &&
          llvm::any_of(Fn.Params, [&](ir::VarId Param) { return P.Code.Vars[Param].Name == Object; }))
        Object = "this->" + Object;
  Prep.Texts["objects"] = llvm::join(Objects, ", ");
  if (std::optional<size_t> Last = lastTouch(Body, 0, Train, Involved)) {
    Prep.Name = "prepare";
    Prep.Nodes["statement"] = P.Code.Stmts[Body[*Last]].Where;
  } else {
    ir::Range At = Fn.Where;
    At.Begin = At.End = Fn.BodyBegin;
    Prep.Nodes["place"] = At;
    Prep.Texts["behind"] = Fn.Where.End == Fn.BodyBegin + 1 ? "\n" : ""; // `{}`
  }
  Out.add(std::move(Prep));
}

/// Leaves that are trained by hand, members of an object whose constructor nobody wrote and of which no method runs the
/// backward pass: prepared where the object is declared. False if that isn't found.
bool Deriver::prepareOf(ir::FuncId Ctor, const Members &All) {
  bool Found = false;
  for (const auto &[V, Statement] : R.DeclarationOf) {
    const ir::Stmt &X = P.Code.Stmts[Statement];
    if (X.Kind != StmtKind::Decl || X.Value == None || !F.Reached.count(R.FunctionOf.at(Statement)) ||
        expr(X.Value).Kind != ExprKind::Construct || P.callee(expr(X.Value)) != Ctor)
      continue;
    Fact Prep = fact("prepare", R.FunctionOf.at(Statement));
    std::vector<std::string> Objects;
    for (const std::string &Object : All.Objects)
      Objects.push_back(P.Code.Vars[V].Name + "." + Object);
    Prep.Texts["objects"] = llvm::join(Objects, ", ");
    ir::StmtId Block = listOf(Statement);
    const std::vector<ir::StmtId> &Children = P.Code.Stmts[Block].Children;
    const size_t First = childWith(Block, Statement);
    const size_t Last = lastTouch(Children, First, firstTraining(Children, First + 1), All.Involved).value_or(First);
    Prep.Nodes["statement"] = P.Code.Stmts[Children[Last]].Where;
    Prepared.insert(All.Involved.begin(), All.Involved.end());
    Out.add(std::move(Prep));
    Found = true;
  }
  return Found;
}

/// The namespaces and classes that hold what a USR names, `c:@N@app@S@Data@loader`: `app::Data::`; none of a function's
/// static variable.
std::string scopeOf(StringRef Usr) {
  llvm::SmallVector<StringRef> Parts;
  Usr.split(Parts, '@');
  if (llvm::is_contained(Parts, "F"))
    return "";
  std::string Scope;
  for (size_t I = 0; I + 2 < Parts.size(); ++I)
    if (Parts[I] == "N" || Parts[I] == "S")
      Scope += Parts[++I].str() + "::";
  return Scope;
}

/// Whether what an expression names is there where a statement stands, and is the same: not one item of a list after
/// the other, `nets[i]` or `nets.back()` of a loop that is over by then.
bool Deriver::canBeNamed(ir::ExprId E, ir::StmtId At) const {
  if (At == None)
    return true;
  auto Around = [&](ir::StmtId S) {
    for (ir::StmtId Up = At; Up != None; Up = R.ParentOf.count(Up) ? R.ParentOf.at(Up) : None)
      if (Up == S)
        return true;
    return false;
  };
  bool There = true;
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    const ir::VarId V = expr(Sub).Var;
    const auto Declared = V == None ? R.DeclarationOf.end() : R.DeclarationOf.find(V);
    if (Declared != R.DeclarationOf.end() && R.FunctionOf.count(At) && R.FunctionOf.count(Declared->second) &&
        R.FunctionOf.at(At) == R.FunctionOf.at(Declared->second) && !P.Code.Vars[V].Global) {
      const bool Item = P.Code.Stmts[Declared->second].Kind == StmtKind::RangeFor;
      const ir::StmtId Scope = Item ? Declared->second : blockOf(Declared->second);
      There &= Scope == None || Around(Scope);
    }
    if (StringRef(expr(Sub).Name).ends_with("::back"))
      for (ir::StmtId S : P.statements(R.FunctionOf.at(At)))
        There &=
            P.Code.Stmts[S].Kind != StmtKind::Loop || !P.Code.Stmts[S].Where.contains(expr(Sub).Where) || Around(S);
  });
  return There;
}

void Deriver::prepare() {
  // Of a block: what trains first behind an optimizer tells which objects are prepared together.
  std::map<std::pair<ir::StmtId, size_t>, Preparation> Together;
  std::map<ir::FuncId, Members> Leaves; // that are trained by hand, by the constructor that makes them
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (expr(E).Name == "accelerate::Accelerator::prepare")
      for (ir::ExprId Arg : expr(E).Args)
        PreparedLoaders.insert(R.object(Arg));
  for (const OptimizerRole &O : R.Optimizers) {
    if (O.Var == None ||
        !(F.Reached.count(O.Function) || constructs(O))) // half of a migration would be worse than none
      continue;
    if (preparedAlready(R.objectOfVar(O.Var))) {
      Prepared.insert(R.objectOfVar(O.Var));
      continue;
    }
    std::vector<std::string> Objects;
    for (ir::VarId Name : O.Names)
      Objects.push_back(P.Code.Vars[Name].Name);
    auto Spelled = [&](const ir::Expr &Model) -> std::string {
      if (Model.Where.Editable && Model.Kind != ExprKind::This)
        return Text(Model.Where);
      return Model.Kind == ExprKind::Ref ? P.Code.Vars[Model.Var].Name : "*this"; // in a macro; implied
    };
    if (O.Names.empty())
      for (ir::ExprId Model : O.Models)
        if (canBeNamed(Model, O.Statement)) // else its parameters are the optimizer's
          Objects.push_back(Spelled(expr(Model)));
    bool Named = O.Target != None && expr(O.Target).Where.Editable;
    bool Optional = StringRef(P.Code.typeOf(O.Var).Name).starts_with("std::optional<");
    const std::string Holder = O.Holder == None ? "" : P.Code.Vars[O.Holder].Name + ".";
    Objects.push_back((Optional ? "*" : "") + Holder + (Named ? Text(expr(O.Target).Where) : P.Code.Vars[O.Var].Name) +
                      (O.Appended ? ".back()" : ""));
    ir::StmtId In = O.Statement == None ? None : blockOf(O.Statement);
    bool Case = In != None && (P.Code.Stmts[In].Kind == StmtKind::Switch ||
                               (R.ParentOf.count(In) && P.Code.Stmts[R.ParentOf.at(In)].Kind == StmtKind::Switch));
    if (O.Appended || Case) { // at once: another item follows, or another case
      Prepared.insert(R.objectOfVar(O.Var));
      Fact Prep = fact("prepare", O.Function);
      Prep.Nodes["statement"] = P.Code.Stmts[O.Statement].Where;
      Prep.Texts["objects"] = llvm::join(Objects, ", ");
      if (!Case && P.Code.Stmts[In].Kind != StmtKind::Block) // a loop or an `if` without braces
        Prep.Name = "prepare-alone";
      Out.add(std::move(Prep));
      continue;
    }
    if (P.Code.Vars[O.Var].Global) { // prepared in `main`, which may lie in no namespace
      std::vector<ir::VarId> Named = O.Names;
      Named.push_back(O.Var);
      for (ir::ExprId Model : O.Models)
        Named.push_back(expr(Model).Var);
      for (std::string &Object : Objects)
        for (ir::VarId V : Named)
          if (V != None && P.Code.Vars[V].Global && Object == P.Code.Vars[V].Name)
            Object = scopeOf(P.Code.Vars[V].Usr) + Object;
    }
    if (O.Statement == None) { // in a constructor's initialisers
      Members All;
      Members &Of = O.Made == None ? Leaves[O.Function] : All;
      llvm::append_range(Of.Objects, Objects);
      Of.Involved.insert(R.objectOfVar(O.Var));
      for (ir::ExprId Model : O.Models)
        Of.Involved.insert(R.object(Model));
      Of.Var = O.Var;
      if (O.Made != None)
        for (ir::FuncId In : preparesIn(O.Function, {R.objectOfVar(O.Var)}))
          prepareMembers(In, All);
      continue;
    }
    Prepared.insert(R.objectOfVar(O.Var));
    ir::StmtId Block = listOf(O.Statement);
    if (Block == None)
      continue;
    Preparation &Prep = Together[{Block, trainingBehind(Block, O)}];
    Prep.Function = O.Function;
    for (std::string &Object : Objects)
      if (!llvm::is_contained(Prep.Objects, Object))
        Prep.Objects.push_back(Object);
  }
  for (const auto &[Ctor, All] : Leaves) {
    const std::vector<ir::FuncId> In = preparesIn(Ctor, All.Involved);
    for (ir::FuncId Fn : In)
      prepareMembers(Fn, All);
    if (In.empty() && !prepareOf(Ctor, All)) {
      Fact Where = fact("unprepared-parameter", Ctor);
      Where.Nodes["place"] = P.Code.Vars[All.Var].Decl;
      Out.add(std::move(Where));
    }
  }
  for (auto &[Where, Prep] : Together)
    place(Where.first, Where.second, Prep);
  // Loaders that are made where no optimizer is, or into a member.
  for (ir::FuncId Fn : F.Reached)
    P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      ir::VarId Var = None;
      std::string Name;
      ir::ExprId Made = X.Value;
      if (X.Kind == StmtKind::Decl) {
        Var = X.Var;
        Name = P.Code.Vars[Var].Name;
      } else if (X.Kind == StmtKind::Expr && X.Value != None && expr(X.Value).Kind == ExprKind::Assign &&
                 expr(X.Value).Args.size() == 2 && expr(X.Value).Args[0] != None) {
        Var = expr(expr(X.Value).Args[0]).Var;
        Name = Text(expr(expr(X.Value).Args[0]).Where);
        Made = expr(X.Value).Args[1];
      }
      if (Var == None || Made == None || !isMakeDataLoader(expr(Made)) || !isPreparedLoader(Var))
        return;
      // Loaders that one function is given are one object, and each is prepared. One that is handed on is prepared by
      // who gets it.
      ObjectId Object = R.objectOfVar(Var);
      bool First = PreparedLoaders.insert(Object).second;
      if (!NamedLoaders.insert(Var).second || (!First && (preparedAlready(Object) || !trainsBehind(S, Object))))
        return;
      Fact Alone = fact("prepare", Fn);
      Alone.Nodes["statement"] = X.Where;
      Alone.Texts["objects"] = Name;
      Out.add(std::move(Alone));
    });
}

bool Deriver::trainsBehind(ir::StmtId S, ObjectId With) const {
  ir::StmtId Block = blockOf(S);
  if (Block == None)
    return false;
  return llvm::any_of(llvm::drop_begin(P.Code.Stmts[Block].Children, childWith(Block, S) + 1),
                      [&](ir::StmtId Child) { return trains(Child) && touches(Child, {With}); });
}

bool Deriver::isPreparedLoader(ir::VarId V) const {
  const ir::Type &T = P.Code.typeOf(V);
  return T.Kind == TypeKind::DataLoader && !P.Code.Vars[V].Param && movesBatches(R.objectOfVar(V));
}

bool Deriver::touches(ir::StmtId S, const std::set<ObjectId> &Involved) const {
  bool Touches = false;
  P.forEachStmt(S, [&](ir::StmtId Child) {
    const ir::Stmt &X = P.Code.Stmts[Child];
    if (X.Kind == StmtKind::Decl)
      Touches |= Involved.count(R.objectOfVar(X.Var)) != 0;
    P.forEachExpr(X.Value, [&](ir::ExprId E) {
      if (expr(E).Kind == ExprKind::Ref || expr(E).Kind == ExprKind::Field)
        Touches |= Involved.count(R.object(E)) != 0;
    });
  });
  return Touches;
}

/// Whether something in a statement is computed by a model, by functions that it calls, too.
bool Deriver::computesByModel(ir::StmtId S, int Hops) const {
  bool Found = false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    const ir::Type &T = P.Code.type(E);
    if (Found || X.Kind != ExprKind::Call || T.number() || T.Kind == TypeKind::Void)
      return;
    const StringRef Name = StringRef(X.Name).rsplit("::").second;
    Found = X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module && T.Kind != TypeKind::Module &&
            !llvm::is_contained({"parameters", "named_parameters", "buffers", "named_buffers"}, Name);
    if (Hops > 0)
      for (ir::FuncId F : P.bodies(X))
        Found |= computesByModel(P.Code.Functions[F].Body, Hops - 1);
  });
  return Found;
}

/// Where training begins in a block, looked for from a statement on; its end if it doesn't. What a model computes for
/// the loss, `auto output = model(x);`, is of it.
size_t Deriver::firstTraining(const std::vector<ir::StmtId> &Children, size_t From) const {
  size_t First = From;
  while (First < Children.size() && !trains(Children[First]))
    ++First;
  if (First == Children.size())
    return First;
  std::set<ObjectId> Needed;
  auto Names = [&](ir::ExprId E) { return expr(E).Kind == ExprKind::Ref || expr(E).Kind == ExprKind::Field; };
  auto Needs = [&](ir::StmtId S) {
    P.forEachExprIn(S, [&](ir::ExprId E) {
      if (Names(E))
        Needed.insert(R.object(E));
    });
  };
  Needs(Children[First]);
  for (size_t I = First; I-- > From;) {
    bool Gives = false;
    P.forEachStmt(Children[I], [&](ir::StmtId S) {
      if (P.Code.Stmts[S].Kind == StmtKind::Decl)
        Gives |= Needed.count(R.objectOfVar(P.Code.Stmts[S].Var)) != 0;
    });
    P.forEachExprIn(Children[I], [&](ir::ExprId E) {
      if (expr(E).Kind == ExprKind::Assign && expr(E).Args[0] != None)
        P.forEachExpr(expr(E).Args[0], [&](ir::ExprId To) { Gives |= Names(To) && Needed.count(R.object(To)) != 0; });
    });
    if (!Gives)
      continue;
    Needs(Children[I]);
    if (computesByModel(Children[I]))
      First = I;
  }
  return First;
}

/// The number of a block's statement that is or holds another.
size_t Deriver::childWith(ir::StmtId Block, ir::StmtId Inner) const {
  const std::vector<ir::StmtId> &Children = P.Code.Stmts[Block].Children;
  return llvm::find_if(Children, [&](ir::StmtId S) { return contains(S, Inner); }) - Children.begin();
}

size_t Deriver::trainingBehind(ir::StmtId Block, const OptimizerRole &O) const {
  return firstTraining(P.Code.Stmts[Block].Children, childWith(Block, O.Statement) + 1);
}

/// The last of some statements of a block that touches one of the objects.
std::optional<size_t> Deriver::lastTouch(const std::vector<ir::StmtId> &Children, size_t Begin, size_t End,
                                         const std::set<ObjectId> &Involved) const {
  std::optional<size_t> Last;
  for (size_t I = Begin; I < End && I < Children.size(); ++I)
    if (P.Code.Stmts[Children[I]].Kind != StmtKind::Return && !Deleted.count(Children[I]) &&
        touches(Children[I], Involved))
      Last = I;
  return Last;
}

/// Whether a statement moves from one of the objects.
bool Deriver::movesAway(ir::StmtId S, const std::set<ObjectId> &Involved) const {
  bool Moves = false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    Moves |= expr(E).Name == "std::move" && expr(E).Args.size() == 1 && Involved.count(R.object(expr(E).Args[0])) != 0;
  });
  return Moves;
}

/// The variable, if it keeps a scheduler of its own.
ir::VarId Deriver::keptScheduler(ir::VarId V) const {
  return P.keepsScheduler(V) && !StringRef(P.Code.typeOf(V).Name).starts_with("std::optional<") ? V : None;
}

/// The scheduler that a statement makes: `scheduler_ = std::make_unique<StepLR>(*optimizer_, 1)`.
ir::VarId Deriver::assignedScheduler(ir::StmtId S) const {
  const ir::Stmt &X = P.Code.Stmts[S];
  if (X.Kind != StmtKind::Expr || X.Value == None || expr(X.Value).Kind != ExprKind::Assign ||
      expr(X.Value).Name != "=" || expr(X.Value).Args[0] == None)
    return None;
  const ir::Expr &To = expr(expr(X.Value).Args[0]);
  const bool Own = To.Kind == ExprKind::Ref ||
                   (To.Kind == ExprKind::Field && To.Object != None && expr(To.Object).Kind == ExprKind::This);
  return Own && To.Var != None ? keptScheduler(To.Var) : None;
}

/// Behind the last statement that declares or touches one of the objects, before training begins.
void Deriver::place(ir::StmtId Block, size_t Train, Preparation &Prep) {
  const std::vector<ir::StmtId> &Children = P.Code.Stmts[Block].Children;
  std::set<ObjectId> Involved;
  size_t First = Children.size();
  for (const OptimizerRole &O : R.Optimizers) {
    if (O.Statement == None || listOf(O.Statement) != Block || trainingBehind(Block, O) != Train)
      continue;
    Involved.insert(R.objectOfVar(O.Var));
    for (ir::ExprId Model : O.Models)
      Involved.insert(R.object(Model));
    First = std::min(First, childWith(Block, O.Statement));
  }
  // Before `std::move(optimizer)` gives it to somebody else.
  for (size_t I = First + 1; I < Train && I < Children.size(); ++I)
    if (movesAway(Children[I], Involved))
      Train = I;
  std::set<ir::VarId> Moved; // `loaders["train"] = std::move(loader);`: prepared where it's made
  for (size_t I = 0; I < Train && I < Children.size(); ++I)
    P.forEachExprIn(Children[I], [&](ir::ExprId E) {
      if (expr(E).Name == "std::move" && expr(E).Args.size() == 1)
        Moved.insert(expr(expr(E).Args[0]).Var);
    });
  std::vector<std::string> Loaders, Schedulers;
  for (size_t I = 0; I < Train && I < Children.size(); ++I)
    P.forEachStmt(Children[I], [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (blockOf(S) != Block)
        return;
      if (ir::VarId Made = assignedScheduler(S); Made != None && I > First) {
        if (Involved.insert(R.objectOfVar(Made)).second)
          Schedulers.push_back(P.Code.Vars[Made].Name);
      }
      if (X.Kind != StmtKind::Decl)
        return;
      // By name: loaders that one function is given are one object.
      if (isPreparedLoader(X.Var) && !Moved.count(X.Var) && !preparedAlready(R.objectOfVar(X.Var)) &&
          NamedLoaders.insert(X.Var).second) {
        Loaders.push_back(P.Code.Vars[X.Var].Name);
        PreparedLoaders.insert(R.objectOfVar(X.Var));
        Involved.insert(R.objectOfVar(X.Var));
      }
      if (llvm::is_contained(R.Schedulers, S) && I > First) {
        Schedulers.push_back(P.Code.Vars[X.Var].Name);
        Involved.insert(R.objectOfVar(X.Var));
      }
    });
  size_t Last = lastTouch(Children, First, Train, Involved).value_or(First);
  llvm::append_range(Prep.Objects, Loaders);
  llvm::append_range(Prep.Objects, Schedulers);
  Fact X = fact("prepare", Prep.Function);
  X.Nodes["statement"] = P.Code.Stmts[Children[Last]].Where;
  X.Texts["objects"] = llvm::join(Prep.Objects, ", ");
  Out.add(std::move(X));
}

bool Deriver::contains(ir::StmtId S, ir::StmtId Inner) const {
  bool Found = false;
  P.forEachStmt(S, [&](ir::StmtId Child) { Found |= Child == Inner; });
  return Found;
}

} // namespace migrate
