//===- InterpreterWays.cpp - How batches are shared out, tried in turn ----===//
//
// As late as can be, what is computed of a whole batch before stays as it is: its mean, noise of its shape. But where
// the loss then can't be followed (its rows were counted before the cut, `n = x.size(0)`), or what a loop picks of a
// rank's rows by the number of all, an early cut may do; where the program pairs the rows of a batch with each other
// before a model takes them, `x.index_select(0, permutation)`, one where it does. A loss that compares the rows of a
// batch is the one process's where all ranks have them all, as is what a loop picks of them. What suits one training
// needn't suit another of the same program.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::None;

namespace migrate {

/// Whether a way is taken in one of the loops around what is followed.
bool Interpreter::taken(const Taken &Way) const {
  return Way.Everywhere ||
         (!Way.Loops.empty() && llvm::any_of(Loops, [&](const Loop &L) { return Way.Loops.count(L.Statement) != 0; }));
}

static const StringRef Stops[] = {"coupled-loss", "unknown-rows", "row-loop"},
                       Refuses[] = {"coupled-loss",        "unknown-rows",       "row-loop",
                                    "ambiguous-placement", "divergent-training", "divergent-collective"},
                       Differs[] = {"rank-local-use", "divergent-branch"};

static bool has(const Findings &F, llvm::ArrayRef<StringRef> Names) {
  return llvm::any_of(F.Notes, [&](const auto &Note) { return llvm::is_contained(Names, Note.first.first); });
}

/// The loops of training steps in which something was found that stops a training.
static std::set<ir::StmtId> found(const Findings &F, llvm::ArrayRef<StringRef> Names) {
  std::set<ir::StmtId> In;
  for (const auto &[Note, Loop] : F.NotedIn)
    if (llvm::is_contained(Names, Note.first) && F.Notes.count(Note))
      In.insert(Loop);
  return In;
}

static bool goes(const Findings &F) { return !has(F, Refuses) && !F.TooLarge.valid(); }

/// The lengths of which a program's trainings may each keep one, in all combinations; none if these are too many to be
/// tried; and one length for all of them. A batch that is taken in front of the steps is of each training.
static std::vector<std::set<uint32_t>> choices(const Findings &Found) {
  std::map<ir::StmtId, std::set<uint32_t>> Lengths; // by the loop of the steps
  std::set<std::set<uint32_t>> Single;
  for (const auto &[Cut, Taken] : Found.CutRows)
    for (const auto &[Rows, Steps] : Taken) {
      Lengths[Steps].insert(Rows);
      Single.insert({Rows});
    }
  std::set<uint32_t> Ahead;
  if (auto It = Lengths.find(None); It != Lengths.end() && Lengths.size() > 1) {
    Ahead = It->second;
    Lengths.erase(It);
  }
  constexpr size_t Bound = 8;
  std::vector<std::set<uint32_t>> Kept = {{}};
  for (auto &[Step, Of] : Lengths) {
    Of.insert(Ahead.begin(), Ahead.end());
    std::vector<std::set<uint32_t>> With;
    for (const std::set<uint32_t> &Before : Kept)
      for (uint32_t One : Of)
        With.emplace_back(Before).insert(One);
    if (With.size() > Bound)
      return {};
    Kept = std::move(With);
  }
  for (const std::set<uint32_t> &Already : Kept)
    Single.erase(Already);
  if (Kept.size() + Single.size() <= Bound)
    Kept.insert(Kept.end(), Single.begin(), Single.end());
  return Kept;
}

/// How many rows the trainings share out, of each the longest batch. What a step makes is more of a batch than what all
/// steps have in common, conditions at an end, which would have to be much longer.
static int64_t rowsShared(const Program &P, const Findings &F) {
  constexpr int64_t Made = 4, Usual = 8; // the latter where the program doesn't write the number
  std::map<ir::StmtId, int64_t> Longest;
  for (const auto &[Cut, Taken] : F.CutRows)
    for (const auto &[Rows, Steps] : Taken) {
      const bool Named = llvm::is_contained({ir::ExprKind::Ref, ir::ExprKind::Field}, P.Code.Exprs[Cut].Kind);
      const auto Known = F.CutLengths.find(Rows);
      const int64_t Length = Known != F.CutLengths.end() ? Known->second : Named ? 0 : Usual;
      Longest[Steps] = std::max(Longest[Steps], Length * (Named ? 1 : Made));
    }
  int64_t All = 0;
  for (const auto &[Steps, Length] : Longest)
    All += Length;
  return All;
}

/// A step on batches of several lengths, whose parts on the ranks aren't alike: one of them is shared out, the longest
/// that goes, and every rank has the others whole.
static std::optional<Findings> shareOne(const Program &P, const Roles &R, const OperationTable &Table,
                                        const Findings &Found) {
  const std::vector<std::set<uint32_t>> All = choices(Found);
  if (All.size() < 2)
    return std::nullopt;
  std::optional<Findings> Best;
  int64_t Longest = 0;
  for (const std::set<uint32_t> &Kept : All) {
    Ways By;
    for (const auto &[Cut, Taken] : Found.CutRows)
      if (llvm::none_of(Taken, [&](const auto &Rows) { return Kept.count(Rows.first) != 0; }))
        By.Uncut.insert(Cut);
    Findings One = Interpreter(P, R, Table, By).run();
    const int64_t Rows = rowsShared(P, One);
    if (goes(One) && !One.SharedSteps.empty() && !has(One, Differs) && (!Best || Longest < Rows)) {
      for (ir::ExprId Cut : By.Uncut)
        One.Uncut[Cut] = Found.CutRows.at(Cut).begin()->second;
      Best = std::move(One);
      Longest = Rows;
    }
  }
  return Best;
}

/// Whether a step has one batch beside which the others are a few rows: conditions at the ends of an interval.
static bool fewBeside(const Findings &F) {
  int64_t Longest = 0, All = 0;
  for (const auto &[Rows, Length] : F.CutLengths) {
    Longest = std::max(Longest, Length);
    All += Length;
  }
  constexpr int64_t Times = 4;
  return F.CutLengths.size() > 1 && Longest >= Times * (All - Longest);
}

/// The first way to share out the training's batches that goes.
static Findings shareOut(const Program &P, const Roles &R, const OperationTable &Table) {
  auto Follow = [&](const Ways &By) { return Interpreter(P, R, Table, By).run(); };
  Findings Found = Follow({});
  const Taken All{true, {}};
  if (!has(Found, Stops)) {
    if (Found.WholeForwards.empty() || !goes(Found))
      return Found;
    // `y = r + 0.9 * target(next)`, cut behind what a model makes of the batch: the model is given its rows instead.
    Findings Early = Follow({All, {}, {}});
    const bool Better = goes(Early) && Early.Notes.size() <= Found.Notes.size() &&
                        Early.WholeForwards.size() < Found.WholeForwards.size();
    return Better ? Early : Found;
  }
  if (!Found.Cuts.empty()) {
    if (Findings Early = Follow({All, {}, {}}); !has(Early, Stops) && Early.Notes.size() < Found.Notes.size())
      return Early;
    if (Findings AtUse = Follow({{}, {}, All}); goes(AtUse) && !AtUse.Cuts.empty() && !has(AtUse, Differs))
      return AtUse;
  }
  if (fewBeside(Found))
    if (std::optional<Findings> One = shareOne(P, R, Table, Found))
      return *One;
  for (const Taken &Early : {Taken(), All})
    if (Findings Whole = Follow({Early, All, {}}); goes(Whole) && Whole.SharesOut)
      return Whole;
  // Each training by itself: where one is stopped, the first of the other ways in which it isn't. What stops one that
  // none of them helps stays.
  const std::set<ir::StmtId> Stopped = found(Found, Stops);
  constexpr size_t Bound = 8;
  if (Stopped.count(None) || Stopped.size() > Bound)
    return Found;
  Ways By;
  std::optional<Findings> Helped;
  for (ir::StmtId Loop : Stopped)
    for (auto [Early, Together, AtUse] : {std::tuple(true, false, false), std::tuple(false, false, true),
                                          std::tuple(false, true, false), std::tuple(true, true, false)}) {
      Ways Other = By;
      if (Early)
        Other.CutEarly.Loops.insert(Loop);
      if (Together)
        Other.Together.Loops.insert(Loop);
      if (AtUse)
        Other.AtUse.Loops.insert(Loop);
      Findings Now = Follow(Other);
      if (Now.TooLarge.valid() || found(Now, Refuses).count(Loop))
        continue;
      By = Other;
      if (goes(Now) && (Now.SharesOut || By.Together.Loops.empty()))
        return Now;
      Helped = std::move(Now);
      break;
    }
  // Of a training that goes by itself nothing has to be told, beside one that doesn't.
  const bool Fewer = Helped && has(*Helped, Stops) &&
                     llvm::all_of(Helped->Notes, [&](const auto &Note) { return Found.Notes.count(Note.first) != 0; });
  return Fewer ? *Helped : Found;
}

/// Whether one text means several things where it is run for several.
static bool ambiguous(const Findings &F) {
  return has(F, {"ambiguous-placement"}) || llvm::any_of(F.Coercions, [&](const auto &C) {
           return !keepsWhole(C.second) && F.ambiguous(C.first, C.second);
         });
}

/// Whether the rows of a batch were parted as the program counts them, `x.chunk(4)`, which a rank's own rows aren't.
static bool parts(const Program &P, const Findings &F) {
  return llvm::any_of(F.Types, [&](const auto &Typed) {
    const ir::Expr &X = P.Code.Exprs[Typed.first];
    if (StringRef(X.Name).starts_with("accelerate::") && StringRef(X.Name).ends_with("::shard") && !X.Args.empty()) {
      const auto Given = F.Types.find(X.Args[0]); // a migrated program's
      return Given != F.Types.end() && !Given->second.replicated();
    }
    if (X.Kind != ir::ExprKind::Call || Typed.second.Kind != Placement::Unknown ||
        !llvm::is_contained({"chunk", "split", "split_with_sizes", "tensor_split", "slice", "narrow", "index"},
                            StringRef(X.Name).rsplit("::").second))
      return false;
    const ir::ExprId Of = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
    const auto Whole = F.Types.find(Of);
    return Whole != F.Types.end() && Whole->second.Kind == Placement::Sharded && Whole->second.Dim == 0;
  });
}

/// A program that splits a loader's batches by itself, into micro-batches or halves: every rank reads them whole, and
/// has its rows of the parts, where nothing else goes.
static std::optional<Findings> splitBatches(const Program &P, const Roles &R, const OperationTable &Table) {
  std::set<uint32_t> Loaders;
  for (const auto &[Loader, Role] : R.Loaders)
    if (Role.Mode == LoaderMode::Training && !Role.Foreign && !Role.ByRows && !Role.Made.empty())
      Loaders.insert(Loader);
  auto Splits = [&](const std::set<uint32_t> &Which) -> std::optional<Findings> {
    for (const Taken &Early : {Taken(), Taken{true, {}}}) {
      Findings Found = Interpreter(P, R, Table, Ways{Early, {}, {}, {}, Which, {}}).run();
      if (!goes(Found) || has(Found, Differs) || !Found.WholeBackwards.empty())
        continue;
      Found.Split = Which;
      return Found;
    }
    return std::nullopt;
  };
  if (Loaders.size() > 1 && Loaders.size() <= 4)
    for (uint32_t Loader : Loaders)
      if (std::optional<Findings> Found = Splits({Loader}))
        return Found;
  return Loaders.empty() ? std::nullopt : Splits(Loaders);
}

/// Evaluation loaders that one text makes with a training's, `template <class Sampler> auto loader_of(…)`: it can be
/// edited for both alone.
static std::set<uint32_t> madeAlike(const Program &P, const Roles &R) {
  std::set<std::pair<uint32_t, uint32_t>> Texts; // where the training's stand
  auto At = [&](ir::ExprId Made) { return std::pair(P.Code.Exprs[Made].Where.File, P.Code.Exprs[Made].Where.Begin); };
  for (const auto &[Loader, Role] : R.Loaders)
    if (Role.Mode == LoaderMode::Training && !Role.Foreign)
      for (ir::ExprId Made : Role.Made)
        Texts.insert(At(Made));
  std::set<uint32_t> Alike;
  for (const auto &[Loader, Role] : R.Loaders)
    if (Role.Mode == LoaderMode::Evaluation && !Role.Foreign && !Role.ByRows &&
        llvm::any_of(Role.Made, [&](ir::ExprId Made) { return Texts.count(At(Made)) != 0; }))
      Alike.insert(Loader);
  return Alike;
}

/// What other calls give a function that is given this rank's rows in a training, `net.forward(adjacency, x)` of an
/// evaluation: the same rows, whole.
static std::map<ir::ExprId, unsigned> givenWhole(const Program &P, const Findings &F) {
  std::map<ir::ExprId, unsigned> Whole;
  for (const ir::Expr &X : P.Code.Exprs)
    for (size_t I = 0; X.Kind == ir::ExprKind::Call && I != X.Args.size(); ++I) {
      const auto Cut = F.Cuts.find(X.Args[I]);
      const auto Rows = F.CutRows.find(X.Args[I]);
      const std::vector<ir::FuncId> Called = Cut == F.Cuts.end() ? std::vector<ir::FuncId>() : P.bodies(X);
      if (Called.empty() || Rows == F.CutRows.end())
        continue;
      for (const ir::Expr &Other : P.Code.Exprs) {
        if (Other.Kind != ir::ExprKind::Call || Other.Name != X.Name || I >= Other.Args.size() ||
            P.bodies(Other) != Called)
          continue;
        const auto Given = F.Types.find(Other.Args[I]);
        if (Given != F.Types.end() && Given->second.replicated() &&
            llvm::any_of(Rows->second, [&](const auto &Taken) { return Taken.first == Given->second.Rows; }))
          Whole.emplace(Other.Args[I], Cut->second);
      }
    }
  return Whole;
}

/// An evaluation that goes through with the states that a training's batches do, which have a rank's rows: its batches
/// are cut as those are.
static std::optional<Findings> besideStates(const Program &P, const Roles &R, const OperationTable &Table,
                                            const Findings &Found) {
  Ways By;
  for (uint32_t Loader : Found.BesideStates)
    if (!R.Loaders.at(Loader).Foreign)
      By.ByRows.insert(Loader);
  if (By.ByRows.empty())
    return std::nullopt;
  Findings Cut = Interpreter(P, R, Table, By).run();
  if (!goes(Cut) || has(Cut, Differs))
    return std::nullopt;
  Cut.ByRows = By.ByRows;
  return Cut;
}

static Findings inferAll(const Program &P, const Roles &R, const OperationTable &Table) {
  Findings Found = shareOut(P, R, Table);
  if (std::optional<Findings> Cut = besideStates(P, R, Table, Found))
    return *Cut;
  if (has(Found, Stops) && parts(P, Found))
    if (std::optional<Findings> Split = splitBatches(P, R, Table))
      return *Split;
  if (has(Found, {"coupled-loss", "ambiguous-placement"}))
    if (std::optional<Findings> One = shareOne(P, R, Table, Found))
      return *One;
  if (!Found.Cuts.empty() && ambiguous(Found))
    if (std::map<ir::ExprId, unsigned> Whole = givenWhole(P, Found); !Whole.empty())
      for (const Taken &Early : {Taken(), Taken{true, {}}}) {
        Findings Alike = Interpreter(P, R, Table, Ways{Early, {true, {}}, {}, {}, {}, {}, {}, Whole}).run();
        if (goes(Alike) && !ambiguous(Alike) && !has(Alike, Differs))
          return Alike;
      }
  Ways Alike;
  Alike.ByRows = madeAlike(P, R);
  if (!Alike.ByRows.empty() && goes(Found)) {
    Findings Cut = Interpreter(P, R, Table, Alike).run();
    if (goes(Cut) && !ambiguous(Cut) && !has(Cut, Differs)) {
      Cut.ByRows = Alike.ByRows;
      return Cut;
    }
  }
  if ((Found.Kept.empty() && Found.Evaluates.empty()) || !ambiguous(Found))
    return Found;
  // One function for the batches of both: what it computes in the training brings ranks together, and in an evaluation
  // that each runs whole would count rows several times. Of batches that are cut alike it is one thing.
  Ways By;
  for (const auto &[Loader, Why] : Found.Kept)
    if (!R.Loaders.at(Loader).Foreign)
      By.ByRows.insert(Loader);
  auto CutToo = [&](const std::set<ir::StmtId> &Loops) -> std::optional<Findings> {
    By.Evaluations = Loops;
    // (Not where rows have to meet all others, which they are brought together for in steps of a training alone.)
    Findings Cut = Interpreter(P, R, Table, By).run();
    if (!goes(Cut) || ambiguous(Cut) || has(Cut, Differs))
      return std::nullopt;
    Cut.ByRows = By.ByRows;
    return Cut;
  };
  if (!By.ByRows.empty())
    if (std::optional<Findings> Cut = CutToo({}))
      return *Cut;
  constexpr size_t Bound = 8; // loops without a loader: one of them first, each kept whole if that is enough
  if (Found.Evaluates.empty() || Found.Evaluates.size() > Bound)
    return Found;
  for (ir::StmtId Loop : Found.Evaluates)
    if (std::optional<Findings> Cut = CutToo({Loop}))
      return *Cut;
  if (std::optional<Findings> Cut = CutToo(Found.Evaluates))
    return *Cut;
  return Found;
}

Findings infer(const Program &P, const Roles &R, const OperationTable &Table) {
  Findings Found = inferAll(P, R, Table);
  if (R.Points.empty() || (goes(Found) && !has(Found, Differs) && !Found.SharedSteps.empty()))
    return Found;
  Roles Whole = R; // the points as they were made
  Whole.Points.clear();
  Whole.PointCalls.clear();
  return inferAll(P, Whole, Table);
}

} // namespace migrate
