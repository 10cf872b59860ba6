//===- StructureTraining.cpp - Backwards, metrics, what can't be kept -----===//
#include "infer/Deriver.h"
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// What the rules call a coercion.
static std::string factOf(const std::string &How) {
  if (How == "broadcast")
    return "outside-value";
  if (How == "agreed")
    return "recomputed-value";
  if (How == "flag")
    return "outside-flag";
  return How == "class-weight" || How == "picked-weight" ? How : "metric-" + How;
}

void Deriver::training() {
  for (const auto &[E, How] : F.Backwards) {
    const ir::Expr &Call = expr(E);
    Fact B = fact(How == "sum" ? "backward-sum" : "backward-mean", functionOf(E));
    B.Nodes["call"] = Call.Where;
    B.Nodes["loss"] = expr(Call.Object).Where;
    // What stands between the parentheses, with its comments; other rules may edit there.
    B.Texts["comma"] = B.Texts["more"] = "";
    if (!Call.Args.empty() && Call.CalleeName.valid()) {
      ir::Range Between = Call.Where;
      Between.Begin = Call.CalleeName.End;
      std::string Written = Text(Between);
      size_t Open = Written.find('('), Close = Written.rfind(')');
      if (Open != std::string::npos && Close != std::string::npos && Open < Close) {
        Between.End = Between.Begin + Close;
        Between.Begin += Open + 1;
        B.Nodes["more"] = Between;
        B.Texts["comma"] = ", ";
        B.Texts.erase("more");
      }
    }
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

/// An expression's text, in which batches are this rank's rows as in the expression itself.
std::string Deriver::withCuts(ir::ExprId E) {
  ir::Range Whole = expr(E).Where;
  std::string Source = Text(Whole);
  std::map<uint32_t, uint32_t> Cuts; // by where they begin
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    if (F.Cuts.count(Sub))
      Cuts[expr(Sub).Where.Begin] = expr(Sub).Where.End;
  });
  for (const auto &[Begin, End] : llvm::reverse(Cuts)) {
    Source.insert(End - Whole.Begin, ")");
    Source.insert(Begin - Whole.Begin, "accelerator.shard(");
  }
  return Source;
}

/// Methods of what has rows that a call of the runtime's takes the place of: `x.squeeze()`, `x.grad()`. One text may be
/// run for rows and for what is whole, and stand in several instantiations: then only what is right for all of them is
/// written.
void Deriver::methodsOfRows(const std::map<ir::ExprId, std::set<Placement>> &Calls, const char *Rule,
                            llvm::function_ref<void(ir::ExprId)> Otherwise) {
  std::map<std::pair<uint32_t, uint32_t>, std::set<Placement>> Given;
  auto At = [&](ir::ExprId E) { return std::pair(expr(E).Where.File, expr(E).CalleeName.Begin); };
  for (const auto &[E, Kinds] : Calls)
    Given[At(E)].insert(Kinds.begin(), Kinds.end());
  for (const auto &[E, Kinds] : Calls) {
    const std::set<Placement> &All = Given.at(At(E));
    if (!All.count(Placement::Sharded))
      continue;
    const ir::Expr &Call = expr(E);
    ir::Range Tail = Call.Where; // `.squeeze()`
    Tail.End = Call.CalleeName.Begin;
    size_t Dot = Text(Tail).rfind('.');
    if (Dot == std::string::npos ||
        llvm::any_of(All, [](Placement P) { return P != Placement::Sharded && P != Placement::Own; })) {
      Otherwise(E);
      continue;
    }
    Tail.Begin += Dot;
    Tail.End = Call.Where.End;
    Fact S = fact(Rule, functionOf(E));
    S.Nodes["value"] = expr(Call.Object).Where;
    S.Nodes["tail"] = Tail;
    if (inInitializer(E))
      useTemporaryHandle(S);
    Out.add(std::move(S));
  }
}

/// The coercions, and `mine` also in the other instantiations of a template, where it is given what is of one rank's
/// own batch and leaves it as it is: one text, for a training loader and for one that is evaluated.
std::map<ir::ExprId, std::string> Deriver::coercions() {
  std::map<ir::ExprId, std::string> All = F.Coercions;
  auto Key = [&](ir::ExprId E) {
    const ir::Range &At = expr(E).Where;
    return std::tuple(At.File, At.Begin, At.End);
  };
  for (const auto &[Pattern, Functions] : P.instantiations(F.Reached)) {
    if (Functions.size() < 2)
      continue;
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> Mine;
    auto Each = [&](llvm::function_ref<void(ir::ExprId)> Do) {
      for (ir::FuncId Fn : Functions)
        P.forEachExprIn(P.Code.Functions[Fn].Body, Do);
    };
    Each([&](ir::ExprId E) {
      if (auto It = F.Coercions.find(E); It != F.Coercions.end() && It->second == "mine")
        Mine.insert(Key(E));
    });
    Each([&](ir::ExprId E) {
      if (auto Type = F.Types.find(E);
          Type != F.Types.end() && Type->second.Kind == Placement::Own && Mine.count(Key(E)))
        All.try_emplace(E, "mine");
    });
  }
  return All;
}

void Deriver::metrics() {
  for (const auto &[E, How] : coercions()) {
    if (!keepsWhole(How) && F.ambiguous(E, How)) {
      Fact A = factAt("ambiguous-placement", "place", E);
      A.Texts["what"] = "needs `" + How + "` on one path, and is " +
                        (F.WholeAddends.count(E)  ? "equal on all ranks"
                         : F.SumAddends.count(E)  ? "a sum over several steps"
                         : F.StepAddends.count(E) ? "added up within one step"
                                                  : "equal on all ranks") +
                        " on another";
      Out.add(std::move(A));
      continue;
    }
    Fact M = fact(factOf(How).c_str(), functionOf(E));
    M.Nodes["value"] = expr(E).Where;
    if (auto It = F.ClassWeights.find(E); It != F.ClassWeights.end()) {
      ir::ExprId Target = It->second.first;
      if (moves(Target)) // the move goes away
        Target = expr(Target).Object;
      std::string Weights = withCuts(Target);
      for (ir::ExprId W : It->second.second)
        Weights += ", " + Text(expr(W).Where);
      if (It->second.second.empty()) // each class counts, but those that are ignored
        Weights += ", std::nullopt";
      M.Texts["weights"] = Weights;
    }
    if (How == "pad") { // of `pad_sequence(rows, batch_first, value, side)`
      const std::vector<ir::ExprId> &Args = expr(E).Args;
      auto Given = [&](size_t I) { return Args.size() > I ? Text(expr(Args[I]).Where) : ""; };
      M.Texts["dimension"] = Given(1) == "true" ? "1" : "0";
      M.Texts["padding"] = (Args.size() > 2 ? ", " + Given(2) : "") + (Given(3) == "\"left\"" ? ", true" : "");
    }
    if (auto It = F.PickedFrom.find(E); It != F.PickedFrom.end()) {
      std::string Rows = withCuts(It->second);
      ir::ExprKind Kind = expr(It->second).Kind;
      bool Plain = Kind == ir::ExprKind::Ref || Kind == ir::ExprKind::Field || Kind == ir::ExprKind::Call;
      M.Texts["rows"] = Plain ? Rows : "(" + Rows + ")";
    }
    if (inInitializer(E))
      useTemporaryHandle(M);
    if (auto It = F.Sinks.find(E); It != F.Sinks.end())
      M.Chain = It->second;
    // The name of a global variable is one expression in all instantiations of a template.
    for (ir::FuncId Fn = 0; How == "flag" && M.Function != None && Fn != P.Code.Functions.size(); ++Fn) {
      const std::string &Pattern = P.Code.Functions[M.Function].Pattern;
      if (Fn == M.Function || Pattern.empty() || P.Code.Functions[Fn].Pattern != Pattern)
        continue;
      Fact Same = M;
      Same.Function = Fn;
      Out.add(std::move(Same));
    }
    Out.add(std::move(M));
  }
  for (const auto &[Loop, Places] : F.ReduceAfter) {
    Fact M = fact("metric-after-loop", R.FunctionOf.at(Loop));
    M.Nodes["loop"] = P.Code.Stmts[Loop].Where;
    std::vector<std::string> Names;
    for (const Location &L : Places)
      Names.push_back(spelled(P, L));
    M.Texts["values"] = llvm::join(Names, ", ");
    Out.add(std::move(M));
  }
  for (const auto &[Loop, Places] : F.BroughtAfter)
    for (const auto &[L, How] : Places) {
      Fact M = fact("metric-for-rows", R.FunctionOf.at(Loop));
      M.Nodes["loop"] = P.Code.Stmts[Loop].Where;
      M.Texts["value"] = spelled(P, L);
      M.Texts["how"] = How;
      Out.add(std::move(M));
    }
  for (const auto &[E, Rows] : F.RowNoise) {
    Fact N = factAt("row-noise", "draw", detachedAt(E));
    N.Nodes["rows"] = expr(Rows).Where;
    auto Several = F.NoiseForEach.find(E);
    N.Texts["for-each"] = Several == F.NoiseForEach.end() ? "" : ", " + Text(expr(Several->second).Where);
    Out.add(std::move(N));
  }
  for (ir::ExprId E : F.OwnRows)
    Out.add(factAt("batch-rows", "value", detachedAt(E)));
  for (const auto &[E, Like] : F.RowNoiseLike) {
    Fact N = factAt("row-noise-like", "draw", detachedAt(E));
    N.Nodes["like"] = expr(Like).Where;
    Out.add(std::move(N));
  }
  for (ir::ExprId E : F.WholeCalls)
    Out.add(factAt("whole-call", "call", E));
  for (ir::ExprId E : F.Once) {
    Fact C = factAt("file-change", "value", E);
    if (inInitializer(E))
      useTemporaryHandle(C);
    Out.add(std::move(C));
  }
  for (ir::ExprId E : F.ByRank)
    Out.label(E, "by-rank");
  for (ir::StmtId Loop : F.OnceLoops) {
    const ir::Stmt &S = P.Code.Stmts[Loop];
    Fact C = fact("folder-change", functionOf(S.Value));
    C.Nodes["loop"] = S.Where;
    Out.add(std::move(C));
  }
  for (const auto &[E, Path] : F.Awaited) {
    auto Holds = [&](ir::StmtId Loop) { return P.Code.Stmts[Loop].Where.contains(expr(E).Where); };
    if (llvm::any_of(F.OnceLoops, Holds)) // the main process's alone, for which the others wait
      continue;
    Fact A = fact("awaited-file", functionOf(E)); // a literal may be shared by instantiations
    A.Nodes["path"] = expr(Path).Where;
    Out.add(std::move(A));
  }
  for (const auto &[E, Dim] : F.Cuts) {
    Fact B = factAt("own-batch", "batch", E);
    B.Texts["dimension"] = Dim == 0 ? "" : ", " + std::to_string(Dim);
    Out.add(std::move(B));
  }
  methodsOfRows(F.Squeezes, "row-squeeze", [&](ir::ExprId E) {
    Fact A = factAt("assumed-ranks", "place", E);
    A.Texts["what"] = DropsRows;
    Out.add(std::move(A));
  });
  methodsOfRows(F.RowGradients, "row-gradient", [&](ir::ExprId E) {
    Fact A = factAt("ambiguous-placement", "place", E);
    A.Texts["what"] = "needs `gradient` on one path, and is equal on all ranks on another";
    Out.add(std::move(A));
  });
  for (const auto &[E, Batch] : F.BatchSizes) {
    Fact B = factAt("batch-size-in-shape", "value", E);
    B.Texts["rows"] = Batch == None ? "-1" : Text(expr(Batch).Where) + ".size(0)";
    Out.add(std::move(B));
  }
  for (uint32_t Loader : F.Split)
    for (ir::ExprId Made : R.Loaders.at(Loader).Made)
      Out.add(factAt("training-kept", "place", Made));
  for (const auto &[Loader, Kept] : F.Kept)
    for (ir::ExprId Made : R.Loaders.at(Loader).Made) {
      Fact K = fact("evaluation-kept", functionOf(Made));
      K.Nodes["place"] = expr(Made).Where;
      K.Texts["why"] = Kept.What;
      if (Kept.Where.valid())
        K.Chain.push_back({Kept.Where, Kept.What + " here"});
      Out.add(std::move(K));
    }
}

/// Whether a pointer is a parameter that every call leaves empty: of the instantiation of a function for training and
/// evaluation that evaluates.
bool Deriver::isNull(ir::ExprId Pointer) const {
  ir::VarId Var = expr(P.unconverted(Pointer)).Var;
  std::vector<ir::ExprId> Given = Var == None ? std::vector<ir::ExprId>() : R.givenTo(Var);
  return !Given.empty() && llvm::all_of(Given, [&](ir::ExprId Arg) {
    return Arg != None && P.Code.type(P.unconverted(Arg)).Name == "std::nullptr_t";
  });
}

/// Whether a class of the project is an optimizer, which has its parameters from where it is made.
bool Deriver::ofOptimizer(StringRef Record) const {
  return !Record.empty() && llvm::any_of(P.Code.Types, [&](const ir::Type &T) {
    return T.Kind == TypeKind::Optimizer && StringRef(T.Name).contains(Record);
  });
}

/// `x.detach_()` of what has become `E`: rows of a tensor are a view of it, which can't be detached so.
ir::ExprId Deriver::detachedAt(ir::ExprId E) const {
  for (ir::ExprId Around = 0; Around != P.Code.Exprs.size(); ++Around)
    if (const ir::Expr &X = expr(Around);
        X.Name == "at::Tensor::detach_" && X.Object != None && P.unconverted(X.Object) == E && X.Where.Editable)
      return Around;
  return E;
}

void Deriver::refusals() {
  // A step of an optimizer whose making wasn't found: its gradients would not be reduced.
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = expr(E);
    if (X.Kind != ExprKind::Call || X.Object == None || !StringRef(X.Name).ends_with("::step") ||
        P.Code.type(X.Object).Kind != TypeKind::Optimizer || !F.Reached.count(functionOf(E)) ||
        Prepared.count(R.object(X.Object)) || isNull(X.Object))
      continue;
    Out.add(factAt("unprepared-optimizer", "place", E));
  }
  for (ir::ExprId E : R.Ungraded) {
    if (F.Backwards.empty() || !F.Reached.count(functionOf(E)) || F.Types.count(expr(E).Object) == 0 ||
        !F.Types.at(expr(E).Object).replicated() || ofOptimizer(P.Code.Functions[functionOf(E)].Record))
      continue;
    Out.add(factAt("unprepared-parameter", "place", E));
  }
  bool Trains = !F.Backwards.empty(), Shared = !F.Cuts.empty();
  for (const auto &[Object, Role] : R.Loaders)
    Shared |= Role.Mode == LoaderMode::Training && !Role.Foreign && !F.Split.count(Object);
  // What may be a batch has been refused with its place.
  bool Asked = llvm::any_of(F.Notes, [](const auto &Note) {
    return Note.first.first == "unknown-rows" || Note.first.first == "divergent-training";
  });
  if (Trains && !Shared && !Asked) {
    Fact N = fact("nothing-to-share", P.Main);
    N.Nodes["place"] = expr(F.Backwards.begin()->first).Where;
    Out.add(std::move(N));
  }
  auto NotShared = [&](ir::ExprId E, const char *What) {
    Fact N = factAt("not-shared", "place", E);
    N.Texts["what"] = What;
    Out.add(std::move(N));
  };
  if (Shared) // one training of several
    for (const auto &[E, Steps] : F.WholeBackwards)
      if (!F.SharedSteps.count(Steps))
        NotShared(E, "this training isn't shared out");
  for (ir::ExprId E : F.WholeForwards)
    NotShared(E, "this model gets all rows of a batch, of which each rank takes its own behind it");
  for (const auto &[E, Steps] : F.Uncut)
    NotShared(E, "another batch is shared out, and this one isn't");
  for (const auto &[E, Steps] : F.WholeTerms)
    if (llvm::none_of(F.Uncut, [&, In = Steps](const auto &Batch) { return Batch.second == In; }))
      NotShared(E, "this term of a loss is a model's of a batch that isn't shared out");
  for (const auto &[Fn, E] : F.WholeLayers)
    NotShared(E, "this layer gets all rows of a batch, which are brought together in front of it");
}

} // namespace migrate
