//===- Structure.cpp - Devices, models and batches ------------------------===//
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

bool choosesCpu(const Program &P) {
  if (!taughtDevices(P).empty())
    return false;
  for (const ir::Expr &E : P.Code.Exprs) {
    StringRef Name = E.Name;
    if (Name.ends_with("::kCUDA") || Name.ends_with("DeviceType::CUDA") || Name == "at::Tensor::cuda" ||
        Name == "torch::nn::Module::cuda" || (E.Kind == ExprKind::Literal && Name.starts_with("cuda")) ||
        Name == "torch::cuda::is_available" || Name == "accelerate::Accelerator::device")
      return false;
  }
  return true;
}

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
  openedFiles();
  devices();
  models();
  prepare();
  batches();
  training();
  metrics();
  reading();
  mainProcessFacts(P, R, Text, Out);
  refusals();
  for (const auto &[Key, Note] : F.Notes)
    Out.add(Note);
  Out.Reached = F.Reached;
  return std::move(Out);
}

Fact Deriver::fact(const char *Name, ir::FuncId Function) const {
  Fact X;
  X.Name = Name;
  X.Function = Function;
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
  return It != R.Loaders.end() && !It->second.Foreign && !It->second.Made.empty() &&
         (It->second.Mode == LoaderMode::Training || F.Whole.count(Loader));
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
    for (ir::ExprId Made : Role.Made) {
      if (Role.Mode == LoaderMode::Training)
        Out.label(Made, "training-loader");
      else if (sharedOut(Object))
        Out.label(Made, "evaluation-loader");
    }
  }
}

/// What `fopen` is asked for: to write, to read, or what isn't known here.
void Deriver::openedFiles() {
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (std::optional<StringRef> Mode = P.fopenMode(E)) {
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

/// Whether a call runs a function of the project whose result is a device: its return is looked at itself.
bool Deriver::givesDevice(const ir::Expr &X) const {
  ir::FuncId Fn = P.callee(X);
  return Fn != None &&
         (P.Code.Functions[Fn].Result == None || P.Code.Types[P.Code.Functions[Fn].Result].Kind == TypeKind::Device);
}

void Deriver::device(ir::ExprId Value, ir::FuncId Function, bool InInitializer) {
  if (Value == None || mentionsOurs(Value))
    return;
  const ir::Expr *X = &expr(Value);
  if (X->Kind == ExprKind::Cast && X->Args[0] != None) { // torch::Device(kCUDA)
    Value = X->Args[0];
    X = &expr(Value);
  }
  if (X->Kind == ExprKind::Construct) {
    if (X->Args.empty())
      return;
    if (X->Args.size() > 1) { // Device(kCUDA, 0)
      Fact D = fact("device-indexed", Function);
      ir::Range Both = expr(X->Args.front()).Where;
      Both.End = expr(X->Args.back()).Where.End;
      D.Nodes["value"] = Both;
      if (InInitializer)
        useTemporaryHandle(D);
      Out.add(std::move(D));
      return;
    }
    Value = X->Args[0];
    X = &expr(Value);
  }
  // A copy of another device, a result of the project's own function (whose return is looked at itself), the CPU.
  if (P.Code.type(Value).Kind == TypeKind::Device && X->Kind != ExprKind::Conditional)
    return;
  if (StringRef(X->Name).ends_with("kCPU") || (X->Kind == ExprKind::Literal && X->Name == "cpu") || givesDevice(*X))
    return;
  bool Default = X->Kind == ExprKind::Conditional && expr(X->Args[0]).Name == "torch::cuda::is_available" &&
                 StringRef(expr(X->Args[1]).Name).ends_with("kCUDA") &&
                 StringRef(expr(X->Args[2]).Name).ends_with("kCPU");
  bool Named = P.Code.type(Value).Kind == TypeKind::String; // "cuda:0"
  Fact D = fact(Default ? "device-default" : Named ? "device-indexed" : "device-chosen", Function);
  D.Nodes["value"] = X->Where;
  ChosenDevices.push_back(Value);
  if (InInitializer)
    useTemporaryHandle(D);
  Out.add(std::move(D));
}

/// A program that never asks the accelerator for its device keeps its own moves.
void Deriver::devices() {
  for (const ir::Expr &E : P.Code.Exprs)
    Asks |= E.Name == "accelerate::Accelerator::device";
  chooseDevices();
  chooseTaughtDevices();
  for (const Fact &D : Out.all())
    Asks |= StringRef(D.Name).starts_with("device-");
}

/// The device variables that anything is placed by: others are only looked at, or printed.
std::set<ir::VarId> Deriver::placingDevices() const {
  std::set<ir::VarId> Placing;
  auto Use = [&](ir::ExprId E) {
    E = P.unconverted(E);
    if (E != None && P.Code.Exprs[E].Var != None)
      Placing.insert(P.Code.Exprs[E].Var);
  };
  for (const ir::Expr &X : P.Code.Exprs)
    if (X.Kind != ExprKind::Binary && X.Kind != ExprKind::Unary)
      for (size_t I = X.Kind == ExprKind::Assign; I < X.Args.size(); ++I)
        Use(X.Args[I]);
  for (const ir::Stmt &S : P.Code.Stmts)
    if (S.Kind == ir::StmtKind::Return || S.Kind == ir::StmtKind::Decl)
      Use(S.Value);
  for (const ir::Function &Fn : P.Code.Functions)
    Fn.forEachInit(Use);
  return Placing;
}

void Deriver::chooseDevices() {
  const std::set<ir::VarId> Placing = placingDevices();
  for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
    for (const auto &[Field, Init] : P.Code.Functions[Fn].Inits)
      if (P.Code.typeOf(Field).Kind == TypeKind::Device)
        device(Init, Fn, /*InInitializer=*/true);
    P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (X.Kind == StmtKind::Decl && P.Code.typeOf(X.Var).Kind == TypeKind::Device &&
          !P.Code.typeOf(X.Var).Reference && Placing.count(X.Var))
        device(X.Value, Fn);
      if (X.Kind == StmtKind::Return && X.Value != None && P.Code.Functions[Fn].Result != None &&
          P.Code.Types[P.Code.Functions[Fn].Result].Kind == TypeKind::Device)
        device(X.Value, Fn);
      if (X.Kind == StmtKind::Expr && X.Value != None && expr(X.Value).Kind == ExprKind::Assign &&
          expr(X.Value).Args.size() == 2 && expr(X.Value).Args[0] != None &&
          P.Code.type(expr(X.Value).Args[0]).Kind == TypeKind::Device)
        device(expr(X.Value).Args[1], Fn);
    });
  }
}

/// Functions and classes of which the user says that they give a device.
void Deriver::chooseTaughtDevices() {
  std::set<ir::ExprId> Done;
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (expr(E).Name == "accelerate::Accelerator::device")
      P.forEachExpr(E, [&](ir::ExprId Sub) { Done.insert(Sub); });
  for (ir::ExprId E : ChosenDevices)
    P.forEachExpr(E, [&](ir::ExprId Sub) { Done.insert(Sub); });
  for (ir::ExprId E : taughtDevices(P)) {
    if (!Done.insert(E).second || functionOf(E) == None)
      continue;
    Fact D = factAt("device-chosen", "value", E);
    if (inInitializer(E))
      useTemporaryHandle(D);
    Out.add(std::move(D));
  }
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

/// Whether `prepare` follows on a model's move wherever that stands: not if it is moved to and fro in each epoch, nor
/// if its optimizer is made under a condition.
bool Deriver::preparedBehind(ir::StmtId S, ObjectId Model, ir::FuncId Fn) const {
  bool Here = false, Behind = false;
  for (const OptimizerRole &O : R.Optimizers) {
    if (O.Statement == None || O.Function != Fn ||
        llvm::none_of(O.Models, [&](ir::ExprId M) { return R.object(M) == Model; }))
      continue;
    Here = true;
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
  return true;
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
      TypeKind Kind = P.Code.type(Call.Args[0]).Kind;
      if ((Kind != TypeKind::Device && Kind != TypeKind::DeviceType) || mentionsOurs(X.Value))
        return;
      for (ir::ExprId Arg : llvm::drop_begin(Call.Args))
        if (P.Code.type(Arg).Kind != TypeKind::Bool)
          return;
      if (StringRef(expr(Call.Args[0]).Name).ends_with("kCPU"))
        return;
      // Without it an `if` without braces would take the next statement.
      if (auto Parent = R.ParentOf.find(S);
          Parent == R.ParentOf.end() || P.Code.Stmts[Parent->second].Kind != StmtKind::Block)
        return;
      if (!preparedBehind(S, R.object(Call.Object), Fn))
        return;
      // It is run before `prepare`, which stands behind all that is done with it.
      const std::vector<ir::StmtId> &Block = P.Code.Stmts[R.ParentOf.at(S)].Children;
      auto Next = llvm::find(Block, S);
      if (std::any_of(Next, Block.begin() + firstTraining(Block, Next - Block.begin()),
                      [&](ir::StmtId Other) { return runs(Other, R.object(Call.Object)); }))
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

void Deriver::batches() {
  for (const auto &[E, Loaders] : F.Moves) {
    if (!moves(E))
      continue;
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
