//===- Taught.cpp ---------------------------------------------------------===//
#include "infer/Taught.h"
#include "llvm/ADT/STLExtras.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

static bool isTaught(const Program &P, ir::FuncId F) {
  StringRef Name = P.Code.Functions[F].Qualified;
  return P.Taught.isMainOnly(Name) || P.Taught.givesDevice(Name);
}

/// The functions that `From` may run, those left out that `Stop` says yes to.
static std::set<ir::FuncId> reachable(const Program &P, std::vector<ir::FuncId> From,
                                      llvm::function_ref<bool(ir::FuncId)> Stop) {
  std::set<ir::FuncId> Found(From.begin(), From.end());
  auto Visit = [&](ir::ExprId E) {
    std::vector<ir::FuncId> Named = P.bodies(P.Code.Exprs[E]);
    if (P.Code.Exprs[E].Func != None) // a lambda
      Named.push_back(P.Code.Exprs[E].Func);
    for (ir::FuncId F : Named)
      if (!Stop(F) && Found.insert(F).second)
        From.push_back(F);
  };
  for (size_t I = 0; I != From.size(); ++I) {
    P.forEachExprIn(P.Code.Functions[From[I]].Body, Visit);
    P.Code.Functions[From[I]].forEachInit([&](ir::ExprId Init) { P.forEachExpr(Init, Visit); });
  }
  return Found;
}

TaughtBodies taughtBodies(const Program &P) {
  TaughtBodies Result;
  std::vector<ir::FuncId> Taught;
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    if (isTaught(P, F))
      Taught.push_back(F);
  if (Taught.empty() || P.Main == None)
    return Result;
  std::set<ir::FuncId> Own = reachable(P, {P.Main}, [&](ir::FuncId F) { return isTaught(P, F); });
  for (ir::FuncId F : reachable(P, Taught, [](ir::FuncId) { return false; }))
    if (!Own.count(F))
      Result.Only.insert(F);
  // Devices are every rank's.
  llvm::erase_if(Taught, [&](ir::FuncId F) { return !P.Taught.isMainOnly(P.Code.Functions[F].Qualified); });
  for (ir::FuncId F : reachable(P, Taught, [](ir::FuncId) { return false; }))
    if (Own.count(F))
      Result.Shared.insert(F);
  return Result;
}

namespace {

class CallFinder {
public:
  CallFinder(const Program &P, const Roles &R, llvm::function_ref<std::string(const ir::Range &)> Text, Facts &Out)
      : P(P), R(R), Text(Text), Out(Out) {}

  void run() {
    if (P.Taught.Loggers.empty() && P.Taught.Saves.empty())
      return;
    // What is the main process's business already.
    std::set<ir::FuncId> Known = taughtBodies(P).Only;
    for (const ir::Expr &E : P.Code.Exprs)
      if (E.Name == "accelerate::Accelerator::on_main_process" && !E.Args.empty())
        P.forEachExpr(E.Args[0], [&](ir::ExprId Sub) { Known.insert(P.Code.Exprs[Sub].Func); });
    for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
      if (Known.count(F))
        continue;
      std::set<ir::ExprId> Statements;
      P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
        const ir::Stmt &X = P.Code.Stmts[S];
        if (X.Kind != StmtKind::Expr || X.Value == None || !taught(X.Value))
          return;
        Statements.insert(X.Value);
        if (!guarded(S))
          statement(F, S);
      });
      P.forEachStmt(P.Code.Functions[F].Body, [&](ir::StmtId S) {
        ownExprs(P.Code.Stmts[S].Value, [&](ir::ExprId E) {
          if (!taught(E) || Statements.count(E) || guarded(S))
            return;
          Fact V = fact("main-process-value", F);
          V.Nodes["place"] = P.Code.Exprs[E].Where;
          V.Texts["function"] = P.Code.Exprs[E].Name;
          Out.add(std::move(V));
        });
      });
    }
  }

private:
  static Fact fact(const char *Name, ir::FuncId F) {
    Fact X;
    X.Name = Name;
    X.Function = F;
    return X;
  }

  bool taught(ir::ExprId E) const {
    return P.Code.Exprs[E].Kind == ExprKind::Call && P.Taught.isMainOnly(P.Code.Exprs[E].Name);
  }

  /// Without the bodies of lambdas, which are functions of their own.
  void ownExprs(ir::ExprId E, llvm::function_ref<void(ir::ExprId)> Visit) const {
    if (E == None)
      return;
    ownExprs(P.Code.Exprs[E].Object, Visit);
    for (ir::ExprId Arg : P.Code.Exprs[E].Args)
      ownExprs(Arg, Visit);
    Visit(E);
  }

  /// Under a condition that asks which process this is.
  bool guarded(ir::StmtId S) const {
    for (auto It = R.ParentOf.find(S); It != R.ParentOf.end(); It = R.ParentOf.find(It->second)) {
      const ir::Stmt &X = P.Code.Stmts[It->second];
      bool Asks = false;
      if (X.Kind == StmtKind::If)
        P.forEachExpr(X.Value, [&](ir::ExprId E) {
          Asks |= StringRef(P.Code.Exprs[E].Name).starts_with("accelerate::Accelerator::is_");
        });
      if (Asks)
        return true;
    }
    return false;
  }

  void statement(ir::FuncId F, ir::StmtId S) {
    const ir::Stmt &X = P.Code.Stmts[S];
    const ir::Expr &Call = P.Code.Exprs[X.Value];
    auto Parent = R.ParentOf.find(S);
    bool InBlock = Parent != R.ParentOf.end() && P.Code.Stmts[Parent->second].Kind == StmtKind::Block;
    bool Saves = P.Taught.isSave(Call.Name);
    Fact M = fact(!Saves ? "main-process-call" : InBlock ? "main-process-save" : "main-process-save-alone", F);
    M.Nodes["call"] = Call.Where;
    M.Nodes["statement"] = X.Where;
    // The callee as written, with its object and template arguments, up to the parenthesis.
    ir::Range Callee = Call.Where, Arguments = Call.Where;
    Callee.End = Call.CalleeName.valid() ? Call.CalleeName.End
                 : Call.Object != None   ? P.Code.Exprs[Call.Object].Where.End
                                         : Call.Where.Begin;
    ir::Range Behind = Call.Where;
    Behind.Begin = Callee.End;
    std::string Written = Text(Behind);
    size_t Open = 0;
    for (int Depth = 0; Open < Written.size() && (Written[Open] != '(' || Depth > 0); ++Open)
      Depth += (Written[Open] == '<') - (Written[Open] == '>');
    Callee.End += StringRef(Written).take_front(Open).rtrim().size();
    // From the first argument to the last, or nothing before the closing parenthesis.
    Arguments.Begin = Arguments.End = Call.Where.End - 1;
    if (!Call.Args.empty()) {
      Arguments.Begin = P.Code.Exprs[Call.Args.front()].Where.Begin;
      Arguments.End = P.Code.Exprs[Call.Args.back()].Where.End;
    }
    for (ir::ExprId Arg : Call.Args)
      Arguments.Editable &= P.Code.Exprs[Arg].Where.Editable;
    M.Nodes["callee"] = Callee;
    M.Nodes["arguments"] = Arguments;
    M.Texts["comma"] = Call.Args.empty() ? "" : ", ";
    Out.add(std::move(M));
  }

  const Program &P;
  const Roles &R;
  llvm::function_ref<std::string(const ir::Range &)> Text;
  Facts &Out;
};

} // namespace

void mainProcessFacts(const Program &P, const Roles &R, llvm::function_ref<std::string(const ir::Range &)> Text,
                      Facts &Out) {
  CallFinder(P, R, Text, Out).run();
}

std::vector<ir::ExprId> taughtDevices(const Program &P) {
  std::vector<ir::ExprId> Found;
  if (P.Taught.Devices.empty())
    return Found;
  auto IsDevice = [&](TypeKind Kind) { return Kind == TypeKind::Device || Kind == TypeKind::DeviceType; };
  auto Converts = [&](ir::ExprId E) { return E != None && P.Taught.isDevice(P.Code.type(E).Name); };
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Call && P.Taught.givesDevice(X.Name) && IsDevice(P.Code.type(E).Kind))
      Found.push_back(E);
    if (X.Kind != ExprKind::Call && X.Kind != ExprKind::Construct)
      continue;
    if (StringRef(X.Name).starts_with("accelerate::"))
      continue;
    // An object of a taught class that becomes a device: `torch::Device(gpu)`, `x.to(gpu)`, `train(model, gpu)`.
    std::vector<ir::FuncId> Bodies = P.bodies(X);
    for (size_t I = 0; I != X.Args.size(); ++I) {
      bool Wanted = IsDevice(P.Code.type(E).Kind) || (I == 0 && StringRef(X.Name).ends_with("::to"));
      for (ir::FuncId F : Bodies)
        Wanted |= I < P.Code.Functions[F].Params.size() && IsDevice(P.Code.typeOf(P.Code.Functions[F].Params[I]).Kind);
      if (Wanted && Converts(X.Args[I]))
        Found.push_back(X.Args[I]);
    }
  }
  return Found;
}

} // namespace migrate
