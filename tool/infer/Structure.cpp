//===- Structure.cpp ------------------------------------------------------===//
#include "infer/Structure.h"
#include "infer/Taught.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

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

namespace {

class Deriver {
public:
  Deriver(const Program &P, const Roles &R, const Findings &F, SourceText Text) : P(P), R(R), F(F), Text(Text) {}

  Facts run() {
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
    devices();
    models();
    prepare();
    batches();
    training();
    metrics();
    mainProcessFacts(P, R, Text, Out);
    refusals();
    for (const auto &[Key, Note] : F.Notes)
      Out.add(Note);
    Out.Reached = F.Reached;
    return std::move(Out);
  }

private:
  const ir::Expr &expr(ir::ExprId E) const { return P.Code.Exprs[E]; }

  Fact fact(const char *Name, ir::FuncId Function) const {
    Fact X;
    X.Name = Name;
    X.Function = Function;
    return X;
  }

  Fact factAt(const char *Name, const char *Node, ir::ExprId E) {
    Fact X = fact(Name, functionOf(E));
    X.Nodes[Node] = expr(E).Where;
    return X;
  }

  /// Before the body, where no handle is yet.
  static void useTemporaryHandle(Fact &F) { F.Texts["accelerator"] = "accelerate::Accelerator()"; }

  /// Functions by expression, since edits need the accelerator of the function that they stand in.
  ir::FuncId functionOf(ir::ExprId E) {
    if (Owners.empty())
      for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
        for (const auto &[Field, Init] : P.Code.Functions[Fn].Inits)
          P.forEachExpr(Init, [&](ir::ExprId Sub) { Owners.try_emplace(Sub, Fn); });
        P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) { own(P.Code.Stmts[S].Value, Fn); });
      }
    auto It = Owners.find(E);
    return It == Owners.end() ? None : It->second;
  }
  void own(ir::ExprId E, ir::FuncId Fn) {
    if (E == None)
      return;
    Owners.try_emplace(E, Fn);
    own(expr(E).Object, Fn);
    for (ir::ExprId Arg : expr(E).Args)
      own(Arg, Fn);
  }

  bool sharedOut(ObjectId Loader) const {
    auto It = R.Loaders.find(Loader);
    return It != R.Loaders.end() && !It->second.Foreign && !It->second.Made.empty() &&
           (It->second.Mode == LoaderMode::Training || F.Whole.count(Loader));
  }
  /// The runtime moves the batches: then every field must have been moved by the program too.
  bool movesBatches(ObjectId Loader) const {
    return sharedOut(Loader) && (choosesCpu(P) || (Asks && !F.Unmoved.count(Loader)));
  }

  /// In a constructor's list, before the body.
  bool inInitializer(ir::ExprId E) {
    ir::FuncId Fn = functionOf(E);
    bool Found = false;
    if (Fn != None)
      for (const auto &[Field, Init] : P.Code.Functions[Fn].Inits)
        P.forEachExpr(Init, [&](ir::ExprId Sub) { Found |= Sub == E; });
    return Found;
  }

  void loaders() {
    for (const auto &[Object, Role] : R.Loaders)
      for (ir::ExprId Made : Role.Made) {
        if (Role.Mode == LoaderMode::Training)
          Out.label(Made, "training-loader");
        else if (sharedOut(Object))
          Out.label(Made, "evaluation-loader");
      }
  }

  bool mentionsOurs(ir::ExprId E) const {
    bool Found = false;
    P.forEachExpr(E, [&](ir::ExprId Sub) { Found |= StringRef(expr(Sub).Name).starts_with("accelerate::"); });
    return Found;
  }

  void device(ir::ExprId Value, ir::FuncId Function, bool InInitializer = false) {
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
    if (StringRef(X->Name).ends_with("kCPU") || (X->Kind == ExprKind::Literal && X->Name == "cpu") ||
        P.callee(*X) != None)
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
  void devices() {
    for (const ir::Expr &E : P.Code.Exprs)
      Asks |= E.Name == "accelerate::Accelerator::device";
    chooseDevices();
    chooseTaughtDevices();
    for (const Fact &D : Out.all())
      Asks |= StringRef(D.Name).starts_with("device-");
  }

  void chooseDevices() {
    for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
      for (const auto &[Field, Init] : P.Code.Functions[Fn].Inits)
        if (P.Code.typeOf(Field).Kind == TypeKind::Device)
          device(Init, Fn, /*InInitializer=*/true);
      P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
        const ir::Stmt &X = P.Code.Stmts[S];
        if (X.Kind == StmtKind::Decl && P.Code.typeOf(X.Var).Kind == TypeKind::Device &&
            !P.Code.typeOf(X.Var).Reference)
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
  void chooseTaughtDevices() {
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

  void models() {
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
        Fact M = fact("model-move", Fn);
        M.Nodes["statement"] = X.Where;
        Out.add(std::move(M));
        Deleted.insert(S);
      });
  }

  /// Whether `E` moves a batch that comes from loaders which move by themselves: one text may run over several.
  bool moves(ir::ExprId E) const {
    auto It = F.Moves.find(E);
    return It != F.Moves.end() && llvm::all_of(It->second, [&](uint32_t L) { return PreparedLoaders.count(L) != 0; });
  }

  void batches() {
    for (const auto &[E, Loaders] : F.Moves) {
      if (!moves(E))
        continue;
      Fact M = fact("batch-move", functionOf(E));
      M.Nodes["call"] = expr(E).Where;
      M.Nodes["batch"] = expr(expr(E).Object).Where;
      Out.add(std::move(M));
    }
  }

  //===--------------------------------------------------------------------===//
  // Prepare
  //===--------------------------------------------------------------------===//

  struct Preparation {
    ir::FuncId Function;
    ir::StmtId After = None;
    std::vector<std::string> Objects;
  };

  ir::StmtId blockOf(ir::StmtId S) const {
    auto It = R.ParentOf.find(S);
    while (It != R.ParentOf.end() && P.Code.Stmts[It->second].Transparent)
      It = R.ParentOf.find(It->second);
    return It == R.ParentOf.end() ? None : It->second;
  }

  bool trains(ir::StmtId S) const {
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

  bool preparedAlready(ObjectId Object) const {
    for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
      if (expr(E).Name == "accelerate::Accelerator::prepare")
        for (ir::ExprId Arg : expr(E).Args)
          if (R.object(Arg) == Object)
            return true;
    return false;
  }

  void prepare() {
    // Of a block: what trains first behind an optimizer tells which objects are prepared together.
    std::map<std::pair<ir::StmtId, size_t>, Preparation> Together;
    for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
      if (expr(E).Name == "accelerate::Accelerator::prepare")
        for (ir::ExprId Arg : expr(E).Args)
          PreparedLoaders.insert(R.object(Arg));
    for (const OptimizerRole &O : R.Optimizers) {
      if (O.Var == None || !F.Reached.count(O.Function)) // half of a migration would be worse than none
        continue;
      if (preparedAlready(R.objectOfVar(O.Var))) {
        Prepared.insert(R.objectOfVar(O.Var));
        continue;
      }
      std::vector<std::string> Objects;
      for (ir::ExprId Model : O.Models)
        Objects.push_back(expr(Model).Kind == ExprKind::This || !expr(Model).Where.Editable ? "*this"
                                                                                            : Text(expr(Model).Where));
      Objects.push_back(P.Code.Vars[O.Var].Name);
      Prepared.insert(R.objectOfVar(O.Var));
      if (O.Statement == None) { // in a constructor's initialisers
        Fact Prep = fact("prepare-in-constructor", O.Function);
        Prep.Texts["objects"] = llvm::join(Objects, ", ");
        const ir::Function &Fn = P.Code.Functions[O.Function];
        std::set<ObjectId> Involved = {R.objectOfVar(O.Var)};
        for (ir::ExprId Model : O.Models)
          Involved.insert(R.object(Model));
        // Behind what the body still does to them: parameters that are replaced later would be others.
        const std::vector<ir::StmtId> &Body = P.Code.Stmts[Fn.Body].Children;
        if (std::optional<size_t> Last = lastTouch(Body, 0, firstTraining(Body, 0), Involved)) {
          Prep.Name = "prepare";
          Prep.Nodes["statement"] = P.Code.Stmts[Body[*Last]].Where;
          Out.add(std::move(Prep));
          continue;
        }
        ir::Range At = Fn.Where;
        At.Begin = At.End = Fn.BodyBegin;
        Prep.Nodes["place"] = At;
        Prep.Texts["behind"] = Fn.Where.End == Fn.BodyBegin + 1 ? "\n" : ""; // `{}`
        Out.add(std::move(Prep));
        continue;
      }
      ir::StmtId Block = blockOf(O.Statement);
      if (Block == None)
        continue;
      Preparation &Prep = Together[{Block, trainingBehind(Block, O)}];
      Prep.Function = O.Function;
      for (std::string &Object : Objects)
        if (!llvm::is_contained(Prep.Objects, Object))
          Prep.Objects.push_back(Object);
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
        if (Var == None || Made == None || !isMakeDataLoader(expr(Made)) || !isPreparedLoader(Var) ||
            PreparedLoaders.count(R.objectOfVar(Var)))
          return;
        PreparedLoaders.insert(R.objectOfVar(Var));
        Fact Alone = fact("prepare", Fn);
        Alone.Nodes["statement"] = X.Where;
        Alone.Texts["objects"] = Name;
        Out.add(std::move(Alone));
      });
  }

  bool isPreparedLoader(ir::VarId V) const {
    const ir::Type &T = P.Code.typeOf(V);
    return T.Kind == TypeKind::DataLoader && !P.Code.Vars[V].Param && movesBatches(R.objectOfVar(V));
  }

  bool touches(ir::StmtId S, const std::set<ObjectId> &Involved) const {
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

  /// Where training begins in a block, looked for from a statement on; its end if it doesn't.
  size_t firstTraining(const std::vector<ir::StmtId> &Children, size_t From) const {
    while (From < Children.size() && !trains(Children[From]))
      ++From;
    return From;
  }

  /// The number of a block's statement that is or holds another.
  size_t childWith(ir::StmtId Block, ir::StmtId Inner) const {
    const std::vector<ir::StmtId> &Children = P.Code.Stmts[Block].Children;
    return llvm::find_if(Children, [&](ir::StmtId S) { return contains(S, Inner); }) - Children.begin();
  }

  size_t trainingBehind(ir::StmtId Block, const OptimizerRole &O) const {
    return firstTraining(P.Code.Stmts[Block].Children, childWith(Block, O.Statement) + 1);
  }

  /// The last of some statements of a block that touches one of the objects.
  std::optional<size_t> lastTouch(const std::vector<ir::StmtId> &Children, size_t Begin, size_t End,
                                  const std::set<ObjectId> &Involved) const {
    std::optional<size_t> Last;
    for (size_t I = Begin; I < End && I < Children.size(); ++I)
      if (!Deleted.count(Children[I]) && touches(Children[I], Involved))
        Last = I;
    return Last;
  }

  /// Behind the last statement that declares or touches one of the objects, before training begins.
  void place(ir::StmtId Block, size_t Train, Preparation &Prep) {
    const std::vector<ir::StmtId> &Children = P.Code.Stmts[Block].Children;
    std::set<ObjectId> Involved;
    size_t First = Children.size();
    for (const OptimizerRole &O : R.Optimizers) {
      if (O.Statement == None || blockOf(O.Statement) != Block || trainingBehind(Block, O) != Train)
        continue;
      Involved.insert(R.objectOfVar(O.Var));
      for (ir::ExprId Model : O.Models)
        Involved.insert(R.object(Model));
      First = std::min(First, childWith(Block, O.Statement));
    }
    std::vector<std::string> Loaders, Schedulers;
    for (size_t I = 0; I < Train && I < Children.size(); ++I)
      P.forEachStmt(Children[I], [&](ir::StmtId S) {
        const ir::Stmt &X = P.Code.Stmts[S];
        if (X.Kind != StmtKind::Decl || blockOf(S) != Block)
          return;
        // By name: loaders that one function is given are one object.
        if (isPreparedLoader(X.Var) && !preparedAlready(R.objectOfVar(X.Var)) && NamedLoaders.insert(X.Var).second) {
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

  bool contains(ir::StmtId S, ir::StmtId Inner) const {
    bool Found = false;
    P.forEachStmt(S, [&](ir::StmtId Child) { Found |= Child == Inner; });
    return Found;
  }

  //===--------------------------------------------------------------------===//
  // Training and metrics
  //===--------------------------------------------------------------------===//

  void training() {
    for (const auto &[E, How] : F.Backwards) {
      const ir::Expr &Call = expr(E);
      Fact B = fact(How == "sum" ? "backward-sum" : "backward-mean", functionOf(E));
      B.Nodes["call"] = Call.Where;
      B.Nodes["loss"] = expr(Call.Object).Where;
      // What stands between the parentheses, with its comments.
      std::string More;
      if (!Call.Args.empty() && Call.CalleeName.valid()) {
        ir::Range Between = Call.Where;
        Between.Begin = Call.CalleeName.End;
        std::string Written = Text(Between);
        size_t Open = Written.find('('), Close = Written.rfind(')');
        if (Open != std::string::npos && Close != std::string::npos && Open < Close)
          More = ", " + Written.substr(Open + 1, Close - Open - 1);
      }
      B.Texts["more"] = More;
      Out.add(std::move(B));
    }
    // What main never reaches isn't understood. Named on a way from main, but through something that isn't followed,
    // it would be left behind by half of a migration.
    for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
      if (expr(E).Name != "at::Tensor::backward")
        continue;
      ir::FuncId Fn = functionOf(E), Outermost = Fn;
      if (Fn == None || F.Reached.count(Fn))
        continue;
      while (P.Code.Functions[Outermost].Parent != None)
        Outermost = P.Code.Functions[Outermost].Parent;
      Fact U = fact(R.Reachable.count(Outermost) ? "unfollowed-backward" : "unreached-backward", Fn);
      U.Nodes["place"] = expr(E).Where;
      Out.add(std::move(U));
    }
  }

  void metrics() {
    for (const auto &[E, How] : F.Coercions) {
      if (!keepsWhole(How) && F.Satisfied.count(E)) {
        Fact A = factAt("ambiguous-placement", "place", E);
        A.Texts["what"] = "needs `" + How + "` on one path, and is equal on all ranks on another";
        Out.add(std::move(A));
        continue;
      }
      Fact M = fact(How == "broadcast"      ? "outside-value"
                    : How == "class-weight" ? "class-weight"
                                            : ("metric-" + How).c_str(),
                    functionOf(E));
      M.Nodes["value"] = expr(E).Where;
      if (auto It = F.ClassWeights.find(E); It != F.ClassWeights.end()) {
        ir::ExprId Target = It->second.first;
        if (moves(Target)) // the move goes away
          Target = expr(Target).Object;
        std::string Weights = Text(expr(Target).Where);
        for (ir::ExprId W : It->second.second)
          Weights += ", " + Text(expr(W).Where);
        M.Texts["weights"] = Weights;
      }
      if (inInitializer(E))
        useTemporaryHandle(M);
      if (auto It = F.Sinks.find(E); It != F.Sinks.end() && It->second.Source != None)
        M.Chain.push_back({expr(It->second.Source).Where, "it comes from here"});
      Out.add(std::move(M));
    }
    for (const auto &[Loop, Vars] : F.ReduceAfter) {
      Fact M = fact("metric-after-loop", R.FunctionOf.at(Loop));
      M.Nodes["loop"] = P.Code.Stmts[Loop].Where;
      std::vector<std::string> Names;
      for (ir::VarId V : Vars)
        Names.push_back(P.Code.Vars[V].Name);
      M.Texts["values"] = llvm::join(Names, ", ");
      Out.add(std::move(M));
    }
    for (const auto &[E, Rows] : F.RowNoise) {
      Fact N = factAt("row-noise", "draw", E);
      N.Nodes["rows"] = expr(Rows).Where;
      Out.add(std::move(N));
    }
    for (ir::ExprId E : F.OwnRows)
      Out.add(factAt("batch-rows", "value", E));
    for (const auto &[E, Like] : F.RowNoiseLike) {
      Fact N = factAt("row-noise-like", "draw", E);
      N.Nodes["like"] = expr(Like).Where;
      Out.add(std::move(N));
    }
    for (ir::ExprId E : F.Once)
      Out.add(factAt("file-change", "value", E));
    for (ir::ExprId E : F.Cuts)
      Out.add(factAt("own-batch", "batch", E));
    for (const auto &[E, Batch] : F.BatchSizes) {
      Fact B = factAt("batch-size-in-shape", "value", E);
      B.Texts["batch"] = Text(expr(Batch).Where);
      Out.add(std::move(B));
    }
    for (const auto &[Loader, Why] : F.Kept)
      for (ir::ExprId Made : R.Loaders.at(Loader).Made) {
        Fact K = fact("evaluation-kept", functionOf(Made));
        K.Nodes["place"] = expr(Made).Where;
        K.Texts["why"] = Why;
        Out.add(std::move(K));
      }
  }

  void refusals() {
    // A step of an optimizer whose making wasn't found: its gradients would not be reduced.
    for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
      const ir::Expr &X = expr(E);
      if (X.Kind != ExprKind::Call || X.Object == None || !StringRef(X.Name).ends_with("::step") ||
          P.Code.type(X.Object).Kind != TypeKind::Optimizer || !F.Reached.count(functionOf(E)) ||
          Prepared.count(R.object(X.Object)))
        continue;
      Out.add(factAt("unprepared-optimizer", "place", E));
    }
    for (ir::ExprId E : R.Ungraded) {
      if (F.Backwards.empty() || !F.Reached.count(functionOf(E)) || F.Types.count(expr(E).Object) == 0 ||
          !F.Types.at(expr(E).Object).replicated())
        continue;
      Out.add(factAt("unprepared-parameter", "place", E));
    }
    bool Trains = !F.Backwards.empty(), Shared = !F.Cuts.empty();
    for (const auto &[Object, Role] : R.Loaders)
      Shared |= Role.Mode == LoaderMode::Training && !Role.Foreign;
    if (Trains && !Shared) {
      Fact N = fact("nothing-to-share", P.Main);
      N.Nodes["place"] = expr(F.Backwards.begin()->first).Where;
      Out.add(std::move(N));
    }
  }

  const Program &P;
  const Roles &R;
  const Findings &F;
  SourceText Text;
  Facts Out;
  std::map<ir::ExprId, ir::FuncId> Owners;
  std::set<ObjectId> Prepared; ///< optimizers
  std::set<ObjectId> PreparedLoaders;
  std::set<ir::VarId> NamedLoaders; ///< in a `prepare`
  bool Asks = false;
  std::vector<ir::ExprId> ChosenDevices;
  std::set<ir::StmtId> Deleted; ///< moves that `prepare` takes over
};

} // namespace

Facts deriveFacts(const Program &P, const Roles &R, const Findings &F, SourceText Text) {
  return Deriver(P, R, F, Text).run();
}

} // namespace migrate
