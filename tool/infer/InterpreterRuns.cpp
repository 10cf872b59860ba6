//===- InterpreterRuns.cpp - Run after run, from main ---------------------===//
//
// What one run finds out, the next one knows from its start; once one finds nothing new, what it has recorded holds.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

Findings Interpreter::run() {
  // Each restart takes one more decision, of which there are finitely many; the bound is a safety net.
  for (int Round = 0; Round != 256; ++Round) {
    std::map<uint32_t, Evidence> Kept = std::move(Out.Kept);
    Out = Findings();
    Out.Kept = std::move(Kept);
    Restart = false;
    once();
    if (!Restart)
      wholeArguments();
    if (!Restart)
      wholeDraws();
    if (!Restart)
      onceAlone();
    if (!Restart) // what could be cut is cut: these leaves stay whole
      for (ir::ExprId E : LeafGradients)
        Restart |= WholeGradients.insert(E).second;
    if (!Restart)
      break;
  }
  // What wasn't followed to its end isn't known: the program must not be migrated.
  if ((Restart || Exhausted) && P.Main != None)
    Out.TooLarge = P.Code.Functions[P.Main].Where;
  return std::move(Out);
}

/// Whether another instantiation of the template that `E` stands in has nothing brought together there:
/// `logger << value`, of a loss and of a step's number. They are one text.
bool Interpreter::ofOneInstantiation(ir::ExprId E, const std::string &How) const {
  const auto In = CoercedIn.find(E);
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (In == CoercedIn.end() || P.Code.Functions[In->second].Pattern.empty() || X.Kind != ExprKind::Ref ||
      !llvm::is_contained(P.Code.Functions[In->second].Params, X.Var))
    return false;
  const ir::Range &Text = P.Code.Exprs[E].Where;
  auto Same = [&](ir::FuncId F) {
    return llvm::any_of(Out.Coercions, [&](const auto &Other) {
      const ir::Range &Where = P.Code.Exprs[Other.first].Where;
      const auto Of = CoercedIn.find(Other.first);
      return Of != CoercedIn.end() && Of->second == F && Other.second == How && Where.File == Text.File &&
             Where.Begin == Text.Begin && Where.End == Text.End;
    });
  };
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    if (P.Code.Functions[F].Pattern == P.Code.Functions[In->second].Pattern && !Same(F))
      return true;
  return false;
}

/// Functions that print or compute with values of several placements take them whole, from the next run on: a metric
/// that training and evaluation share is given all rows of a training batch.
void Interpreter::wholeArguments() {
  // `(out << ... << values)`: one text for arguments of all kinds.
  auto OfPack = [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
    if (X.Kind != ExprKind::Ref || X.Var == None || !P.Code.Vars[X.Var].Param || P.Code.Vars[X.Var].Function == None)
      return false;
    const ir::Range &Decl = P.Code.Vars[X.Var].Decl;
    return llvm::any_of(P.Code.Functions[P.Code.Vars[X.Var].Function].Params, [&](ir::VarId Other) {
      const ir::Range &At = P.Code.Vars[Other].Decl;
      return Other != X.Var && At.valid() && At.File == Decl.File && At.Begin == Decl.Begin;
    });
  };
  for (const auto &[E, How] : Out.Coercions) {
    bool Differs = Out.Notes.count({"ambiguous-placement", E}) != 0 || OfPack(E) || ofOneInstantiation(E, How);
    Differs |= !keepsWhole(How) && Out.ambiguous(E, How);
    // `loss += other.loss` of a class of the program's, for a step's and for what an epoch has added up: what the step
    // sets is its part of the sum already.
    if (auto Set = AddendsSet.find(E); Differs && Set != AddendsSet.end()) {
      for (ir::ExprId By : Set->second)
        Restart |= By != None && numeric(By) && PartWhereSet.insert(By).second;
      if (Restart)
        continue;
    }
    bool Apart = How != "share" && How != "mine" && OfOneRank.count(E);
    if (!Differs && !Apart)
      continue;
    if (auto It = GathersIn.find(E); It != GathersIn.end() && GatheredArguments.insert(It->second).second) {
      Restart = true;
      continue;
    }
    auto It = CoercedIn.find(E);
    if (Differs && It != CoercedIn.end() && It->second != P.Main && WholeArguments.insert(It->second).second)
      Restart = true;
  }
  // What both a loop of all ranks and one of each rank's own batches run can't have a collective in it.
  for (const auto &[E, How] : Out.Coercions) {
    auto Apart = How == "share" || How == "mine" || Restart ? OfOneRank.end() : OfOneRank.find(E);
    if (Apart == OfOneRank.end())
      continue;
    if (Apart->second != None)
      notShared(Apart->second, "ranks meet in what it calls", E);
    else
      note("ambiguous-placement", E, Out.Types[E],
           "needs `" + How + "` on one path, and is of one rank's own batch on another");
  }
}

/// What the main process does alone has nothing in it that ranks do together.
void Interpreter::onceAlone() {
  std::set<ir::FuncId> Called;
  std::function<void(ir::ExprId)> Look = [&](ir::ExprId Sub) {
    auto How = Out.Coercions.find(Sub);
    if (How != Out.Coercions.end() && How->second != "share" && How->second != "mine")
      note("divergent-collective", Sub, Out.Types[Sub],
           "is brought together within what the main process does alone; compute it in a statement before");
    for (ir::FuncId F : P.bodies(P.Code.Exprs[Sub]))
      if (Called.insert(F).second)
        P.forEachExprIn(P.Code.Functions[F].Body, Look);
  };
  for (ir::ExprId E : Out.Once)
    P.forEachExpr(E, Look);
  for (ir::StmtId Loop : Out.OnceLoops)
    P.forEachExprIn(Loop, Look);
}

void Interpreter::once() {
  static_cast<OneRun &>(*this) = OneRun();
  if (P.Main == None)
    return;
  Frames.push_back({P.Main, std::nullopt, {}, false, {}, {}, {}});
  Stack.push_back(P.Main);
  Out.Reached.insert(P.Main);
  for (ir::VarId V : P.Code.Functions[P.Main].Params)
    Depths[V] = 0;
  // No rank has met another yet: whatever differs here can't be agreed on. LibTorch's generator doesn't: the runtime
  // gives it the same state on all.
  Divergent = Globals = true;
  for (const auto &[Global, Init] : P.Code.Globals)
    if (madeInThreads(Global)) {
      Value &V = Current[Location{Global, {}}] = Value::of(Placement::Replicated, Init);
      V.Equal = Strength::Outside;
    } else {
      Current[Location{Global, {}}] = eval(Init);
    }
  Divergent = Globals = false;
  for (ir::VarId V = 0; V != P.Code.Vars.size(); ++V) { // `static double history[100];`, zero by the language
    const ir::Type &T = P.Code.typeOf(V);
    const bool Numbers = T.number() || (StringRef(T.Name).ends_with("]") && !StringRef(T.Name).contains("::"));
    if (P.Code.Vars[V].Global && P.Code.Vars[V].Decl.Editable && Numbers)
      Current.try_emplace(Location{V, {}}, Value::of(Placement::Zero, None));
  }
  for (const auto &[List, Filled] : raced())
    if (namedByLoaders().count(List) != 0)
      note("outside-entropy", Filled, Value(),
           "fills a list that loaders read in the order in which threads come (sort it)");
  exec(P.Code.Functions[P.Main].Body);
  atExit();
  if (!Restart)
    beyondRows();
}

} // namespace migrate
