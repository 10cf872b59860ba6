//===- Structure.cpp - Models and batches ---------------------------------===//
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

Facts Deriver::run() {
  if (F.TooLarge.valid()) {
    Fact X = fact("too-large", P.Main);
    X.Nodes["place"] = F.TooLarge;
    Out.add(X);
    return std::move(Out);
  }
  if (!F.Trains) { // others that share its files may; this one only tells what it doesn't follow
    training();
    return std::move(Out);
  }
  loaders();
  advances();
  openedFiles();
  devices();
  replicas();
  models();
  prepare();
  batches();
  training();
  metrics();
  reading();
  mainProcessFacts(P, R, Text, Out);
  refusals();
  handWrittenGradients();
  for (const auto &[Key, Note] : F.Notes)
    Out.add(Note);
  Out.Reached = F.Reached;
  return std::move(Out);
}

Fact Deriver::fact(const char *Name, ir::FuncId Function) const {
  Fact X;
  X.Name = Name;
  X.Function = Function;
  if (Function == None) // at namespace scope there is no handle
    useTemporaryHandle(X);
  return X;
}

Fact Deriver::factAt(const char *Name, const char *Node, ir::ExprId E) {
  Fact X = fact(Name, functionOf(E));
  X.Nodes[Node] = expr(E).Where;
  return X;
}

/// Functions by expression, since edits need the accelerator of the function that they stand in.
ir::FuncId Deriver::functionOf(ir::ExprId E) {
  if (Owners.empty())
    for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
      P.Code.Functions[Fn].forEachInit(
          [&](ir::ExprId Init) { P.forEachExpr(Init, [&](ir::ExprId Sub) { Owners.try_emplace(Sub, Fn); }); });
      P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) { own(P.Code.Stmts[S].Value, Fn); });
    }
  auto It = Owners.find(E);
  return It == Owners.end() ? None : It->second;
}

void Deriver::own(ir::ExprId E, ir::FuncId Fn) {
  if (E == None)
    return;
  Owners.try_emplace(E, Fn);
  own(expr(E).Object, Fn);
  for (ir::ExprId Arg : expr(E).Args)
    own(Arg, Fn);
}

bool Deriver::sharedOut(ObjectId Loader) const {
  auto It = R.Loaders.find(Loader);
  return It != R.Loaders.end() && !It->second.Foreign && !It->second.Made.empty() && !F.Split.count(Loader) &&
         (It->second.Mode == LoaderMode::Training || F.Whole.count(Loader) || F.ByRows.count(Loader));
}

/// The runtime moves the batches: then every field must have been moved by the program too.
bool Deriver::movesBatches(ObjectId Loader) const {
  return sharedOut(Loader) && (choosesCpu(P) || (Asks && !F.Unmoved.count(Loader)));
}

/// In a constructor's list, before the body.
bool Deriver::inInitializer(ir::ExprId E) {
  ir::FuncId Fn = functionOf(E);
  bool Found = false;
  if (Fn != None)
    P.Code.Functions[Fn].forEachInit(
        [&](ir::ExprId Init) { P.forEachExpr(Init, [&](ir::ExprId Sub) { Found |= Sub == E; }); });
  return Found;
}

void Deriver::loaders() {
  for (const auto &[Object, Role] : R.Loaders) {
    // Only loops that nothing reaches run over it: the rest of such a training stays as it is, too.
    if (!Role.Loops.empty() &&
        llvm::none_of(Role.Loops, [&](ir::StmtId S) { return F.Reached.count(R.FunctionOf.at(S)) != 0; }))
      continue;
    const bool ByRows = (Role.Mode == LoaderMode::Training || F.ByRows.count(Object)) && !F.Split.count(Object);
    const char *Label = ByRows ? "training-loader" : sharedOut(Object) ? "evaluation-loader" : nullptr;
    if (!Label)
      continue;
    for (ir::ExprId Made : Role.Made) {
      bool Selected = llvm::any_of(P.Code.Matches, [&](const ir::RuleMatch &M) {
        return llvm::any_of(M.Nodes, [&](const auto &Node) { return Node.second == Made; });
      });
      if (!Selected && StringRef(expr(Made).Name).starts_with("torch::")) {
        // Its loops are taken for a rank's own: better refused than counted once for each rank.
        Fact A = factAt("ambiguous-placement", "place", Made);
        A.Texts["what"] = "is a loader that no rule can share out";
        Out.add(std::move(A));
        continue;
      }
      Out.label(Made, Label);
    }
  }
}

/// Whether anything is done with tensors or models behind a statement in its turn of a loop, or in its function.
bool Deriver::worksBehind(ir::StmtId S) const {
  for (auto Up = R.ParentOf.find(S); Up != R.ParentOf.end(); S = Up->second, Up = R.ParentOf.find(S)) {
    const ir::Stmt &X = P.Code.Stmts[Up->second];
    if (X.Kind == StmtKind::Loop || X.Kind == StmtKind::RangeFor)
      return false;
    if (X.Kind != StmtKind::Block)
      continue;
    bool Works = false;
    for (ir::StmtId Behind : llvm::drop_begin(X.Children, childWith(Up->second, S) + 1))
      P.forEachExprIn(Behind, [&](ir::ExprId E) {
        TypeKind Kind = P.Code.type(E).Kind;
        Works |= Kind == TypeKind::Tensor || Kind == TypeKind::Example || Kind == TypeKind::Module ||
                 Kind == TypeKind::Optimizer;
      });
    if (Works)
      return true;
  }
  return true; // a helper that gives the next batch: what is done with it follows
}

/// An iterator over a loader that is shared out fetches when it is advanced, and ranks count by the batch that came
/// last.
void Deriver::advances() {
  for (ir::FuncId Fn : F.Reached)
    P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
      if (P.Code.Stmts[S].Value == None || P.Code.Stmts[S].Kind == StmtKind::Loop)
        return;
      P.forEachExpr(P.Code.Stmts[S].Value, [&](ir::ExprId E) {
        const ir::Expr &X = expr(E);
        if (X.Kind != ExprKind::Unary || X.Name != "++")
          return;
        auto Type = F.Types.find(E);
        if (Type == F.Types.end() || !Type->second.Iterator || Type->second.Kind != Placement::Sharded ||
            !worksBehind(S))
          return;
        Fact O = factAt("opaque-loader", "place", E);
        O.Texts["what"] = "this fetches the next batch before the work on the last one is done, and ranks count by the "
                          "batch that they fetched last; advance the iterator where the step ends";
        Out.add(std::move(O));
      });
    });
}

/// What `fopen` is asked for: to write, to read, or what isn't known here.
void Deriver::openedFiles() {
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (std::optional<StringRef> Mode = P.fopenMode(E)) {
      if (Mode->contains('x') && F.Reached.count(functionOf(E))) { // must not be there, nor is the null device
        Fact N = factAt("one-process", "place", E);
        N.Texts["what"] = "creates a file, which one of the ranks can: let the main process alone do so, "
                          "`if (accelerator.is_main_process())`";
        Out.add(std::move(N));
        continue;
      }
      bool Both = Mode->contains('+') || Mode->empty();
      if (Both || !Mode->starts_with("r"))
        Out.label(E, Both ? "opens-either-way" : "opens-to-write");
    }
}

bool Deriver::mentionsOurs(ir::ExprId E) const {
  bool Found = false;
  P.forEachExpr(E, [&](ir::ExprId Sub) { Found |= StringRef(expr(Sub).Name).starts_with("accelerate::"); });
  return Found;
}

/// Whether a statement runs a model: `net->forward(x)`, `net(x)`, `score(net)` of a function that runs what it is
/// given.
bool Deriver::runs(ir::StmtId S, ObjectId Model) const {
  auto Forward = [&](const ir::Expr &X) {
    StringRef Name = X.Name;
    return X.Kind == ExprKind::Call && X.Object != None &&
           (Name.ends_with("::forward") || Name.ends_with("operator()")) &&
           P.Code.type(X.Object).Kind == TypeKind::Module;
  };
  bool Found = false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    Found |= Forward(X) && R.object(X.Object) == Model;
    if (X.Kind == ExprKind::Call && llvm::any_of(X.Args, [&](ir::ExprId Arg) {
          return Arg != None && P.Code.type(Arg).Kind == TypeKind::Module && R.object(Arg) == Model;
        }))
      for (ir::FuncId Fn : P.bodies(X))
        P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId Inner) { Found |= Forward(expr(Inner)); });
  });
  return Found;
}

/// Whether a statement that touches a model does something, itself or in a function that it gives the model to, or in
/// a constructor as well.
bool Deriver::doesWith(ir::StmtId S, ObjectId Model, bool Constructors,
                       llvm::function_ref<bool(const ir::Expr &)> Does) const {
  bool Found = false;
  if (!touches(S, {Model}))
    return false;
  P.forEachExprIn(S, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    Found |= Does(X);
    const bool Given = llvm::any_of(X.Args, [&](ir::ExprId Arg) {
      return Arg != None && R.object(Arg) == Model && P.Code.type(Arg).Kind == TypeKind::Module;
    });
    if (Given && (X.Kind == ExprKind::Call || (Constructors && X.Kind == ExprKind::Construct)))
      for (ir::FuncId Fn : P.bodies(X))
        P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId Inner) { Found |= Does(expr(Inner)); });
  });
  return Found;
}

/// Whether a statement writes into a model's parameters, `model->weight.mul_(x)`, itself or in what it gives the model
/// to: where they lie, and which generator draws for them, is meant as it stands.
bool Deriver::writesParameters(ir::StmtId S, ObjectId Model) const {
  auto Writes = [&](const ir::Expr &X) {
    const StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (X.Kind == ExprKind::Assign)
      return X.Name != "=" && R.ofModel(X.Args[0]);
    if (X.Kind != ExprKind::Call)
      return false;
    if (StringRef(X.Name).contains("nn::init::"))
      return !X.Args.empty() && X.Args[0] != None && R.ofModel(X.Args[0]);
    return Name.ends_with("_") && Name != "requires_grad_" && X.Object != None && R.ofModel(X.Object);
  };
  return doesWith(S, Model, /*Constructors=*/false, Writes);
}

/// Whether a statement asks where a model lies, itself or in what it gives the model to: `model->fc->weight.options()`,
/// `model->clone()`, `Trainer trainer(model)`.
bool Deriver::asksPlace(ir::StmtId S, ObjectId Model) const {
  auto Asks = [&](const ir::Expr &X) {
    const StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (X.Kind != ExprKind::Call || X.Object == None)
      return false;
    return P.Code.type(X.Object).Kind == TypeKind::Module
               ? Name == "clone"
               : llvm::is_contained({"device", "options", "clone", "is_cuda", "get_device"}, Name) &&
                     R.ofModel(X.Object);
  };
  return doesWith(S, Model, /*Constructors=*/true, Asks);
}

/// Whether two names are of objects that were made one by one, whatever both are given to.
bool Deriver::madeApart(ir::ExprId A, ir::ExprId B) const {
  auto Made = [&](ir::ExprId E) { // the variable that it was made into
    const ir::Expr &X = expr(P.unconverted(E));
    if (X.Kind != ExprKind::Ref || X.Var == None || P.Code.typeOf(X.Var).Reference)
      return None;
    const auto Declared = R.DeclarationOf.find(X.Var);
    const ir::ExprId Value = Declared == R.DeclarationOf.end() ? None : P.Code.Stmts[Declared->second].Value;
    bool Copies = Value == None;
    if (Value != None)
      P.forEachExpr(Value, [&](ir::ExprId Sub) {
        Copies |= expr(Sub).Kind == ExprKind::Ref && P.Code.type(Sub).Kind == TypeKind::Module;
      });
    return Copies ? None : X.Var;
  };
  const ir::VarId OfA = Made(A), OfB = Made(B);
  return OfA != None && OfB != None && OfA != OfB;
}

/// Whether `prepare` follows on a model's move wherever that stands: not if it is moved to and fro in each epoch, nor
/// if its optimizer is made under a condition.
bool Deriver::preparedBehind(ir::StmtId S, ir::ExprId Moved, ir::FuncId Fn) const {
  const ObjectId Model = R.object(Moved);
  bool Here = false, Behind = false;
  for (const OptimizerRole &O : R.Optimizers) {
    if (llvm::any_of(O.Models, [&](ir::ExprId M) { return R.object(M) == Model; }) &&
        llvm::all_of(O.Models, [&](ir::ExprId M) { return R.object(M) != Model || madeApart(M, Moved); })) {
      Here = true; // another model that is given to the same class
      continue;
    }
    if (O.Function != Fn || llvm::none_of(O.Models, [&](ir::ExprId M) { return R.object(M) == Model; }))
      continue;
    Here = true;
    if (O.Statement == None) { // in a constructor's list
      Behind = true;
      continue;
    }
    const std::vector<ir::StmtId> &Block = P.Code.Stmts[R.ParentOf.at(S)].Children;
    bool Trained = false; // by another optimizer, in front of this one
    for (size_t I = llvm::find(Block, S) - Block.begin() + 1; I < Block.size() && !Trained; ++I) {
      if (Block[I] == None)
        continue;
      bool Holds = contains(Block[I], O.Statement);
      Behind |= Holds && P.Code.Stmts[Block[I]].Kind != StmtKind::If;
      Trained = !Behind && trains(Block[I]) && touches(Block[I], {Model});
    }
  }
  if (Here)
    return Behind;
  for (auto Around = R.ParentOf.find(S); Around != R.ParentOf.end(); Around = R.ParentOf.find(Around->second))
    if (ir::StmtId Outer = Around->second;
        (P.Code.Stmts[Outer].Kind == StmtKind::Loop || P.Code.Stmts[Outer].Kind == StmtKind::RangeFor) &&
        R.reachesBackward(Outer))
      return false;
  // Where another function trains, and so prepares: the move stays unless that is run here, whatever the program is
  // asked to do.
  const std::vector<ir::StmtId> &Block = P.Code.Stmts[R.ParentOf.at(S)].Children;
  const size_t Train = firstTraining(Block, llvm::find(Block, S) - Block.begin() + 1);
  return Train < Block.size() && P.Code.Stmts[Block[Train]].Kind != StmtKind::If;
}

void Deriver::models() {
  for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn)
    P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (X.Kind != StmtKind::Expr || X.Value == None || !Asks)
        return;
      const ir::Expr &Call = expr(X.Value);
      if (Call.Kind != ExprKind::Call || Call.Object == None || Call.Args.empty() ||
          !StringRef(Call.Name).ends_with("::to") || !R.isTrainedModel(Call.Object))
        return;
      // A class's own `to` moves more than `prepare` knows of, unless it overrides the one that it calls.
      if (llvm::any_of(P.bodies(Call), [&](ir::FuncId To) { return P.Code.Functions[To].Overrides.empty(); }))
        return;
      TypeKind Kind = P.Code.type(Call.Args[0]).Kind;
      if ((Kind != TypeKind::Device && Kind != TypeKind::DeviceType) || mentionsOurs(X.Value))
        return;
      for (ir::ExprId Arg : llvm::drop_begin(Call.Args))
        if (P.Code.type(Arg).Kind != TypeKind::Bool)
          return;
      if (StringRef(expr(Call.Args[0]).Name).ends_with("kCPU") || holdsIndexed(X.Where))
        return;
      // Without it an `if` without braces would take the next statement.
      if (auto Parent = R.ParentOf.find(S);
          Parent == R.ParentOf.end() || P.Code.Stmts[Parent->second].Kind != StmtKind::Block)
        return;
      if (!preparedBehind(S, Call.Object, Fn))
        return;
      // It is run before `prepare`, which stands behind all that is done with it.
      const std::vector<ir::StmtId> &Block = P.Code.Stmts[R.ParentOf.at(S)].Children;
      auto Next = llvm::find(Block, S);
      if (std::any_of(Next, Block.begin() + firstTraining(Block, Next - Block.begin()), [&](ir::StmtId Other) {
            const ObjectId Model = R.object(Call.Object);
            return runs(Other, Model) || writesParameters(Other, Model) || asksPlace(Other, Model);
          }))
        return;
      Fact M = fact("model-move", Fn);
      M.Nodes["statement"] = X.Where;
      Out.add(std::move(M));
      Deleted.insert(S);
    });
}

/// Whether `E` moves a batch that comes from loaders which move by themselves: one text may run over several.
bool Deriver::moves(ir::ExprId E) const {
  auto It = F.Moves.find(E);
  return It != F.Moves.end() && llvm::all_of(It->second, [&](uint32_t L) { return PreparedLoaders.count(L) != 0; });
}

/// The statement `x = x.to(device);` that does nothing but move `E` to where it lies, or None.
ir::StmtId Deriver::movesAlone(ir::ExprId E) const {
  const ir::VarId Moved = expr(P.unconverted(expr(E).Object)).Var;
  auto Alone = [&](const auto &Known) {
    const auto &[S, Parent] = Known;
    const ir::Stmt &X = P.Code.Stmts[S];
    if (X.Kind != StmtKind::Expr || X.Value == None || P.Code.Stmts[Parent].Kind != StmtKind::Block ||
        !X.Where.Editable)
      return false;
    const ir::Expr &Set = expr(X.Value);
    return Set.Kind == ExprKind::Assign && Set.Name == "=" && Set.Args.size() == 2 && P.unconverted(Set.Args[1]) == E &&
           expr(Set.Args[0]).Kind == ExprKind::Ref && expr(Set.Args[0]).Var == Moved;
  };
  const bool Named = expr(P.unconverted(expr(E).Object)).Kind == ExprKind::Ref && Moved != None;
  const auto It = Named ? llvm::find_if(R.ParentOf, Alone) : R.ParentOf.end();
  return It == R.ParentOf.end() ? None : It->first;
}

void Deriver::batches() {
  for (const auto &[E, Loaders] : F.Moves) {
    if (!moves(E))
      continue;
    if (const ir::StmtId Statement = movesAlone(E); Statement != None) {
      Fact M = fact("batch-move-alone", functionOf(E));
      M.Nodes["statement"] = P.Code.Stmts[Statement].Where;
      Out.add(std::move(M));
      Deleted.insert(Statement);
      continue;
    }
    Fact M = fact("batch-move", functionOf(E));
    M.Nodes["call"] = expr(E).Where;
    M.Nodes["batch"] = expr(expr(E).Object).Where;
    Out.add(std::move(M));
  }
}

Facts deriveFacts(const Program &P, const Roles &R, const Findings &F, SourceText Text) {
  return Deriver(P, R, F, Text).run();
}

} // namespace migrate
