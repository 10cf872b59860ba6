//===- Findings.h - What following a program found out --------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_FINDINGS_H
#define ACCELERATE_MIGRATE_INFER_FINDINGS_H

#include "infer/Facts.h"
#include "infer/Operations.h"
#include "infer/Placement.h"
#include "infer/Program.h"
#include "infer/Roles.h"
#include <map>
#include <set>

namespace migrate {

/// A place that holds a value: a variable, or a field of one.
struct Location {
  ir::VarId Root = ir::None;
  std::vector<ir::VarId> Path;
  /// The same place in the object at `Whole`, of a place in an object that is told from there.
  Location in(const Location &Whole) const {
    Location L = Whole;
    L.Path.insert(L.Path.end(), Path.begin(), Path.end());
    return L;
  }
  auto operator<=>(const Location &) const = default;
};

/// As the program names it, `log.loss`.
std::string spelled(const Program &P, const Location &L);

/// What the runs found out, in the program's terms. Facts for the rules are made of it.
struct Findings {
  std::map<ir::ExprId, std::string> Coercions;  ///< mean, sum, share, mine, reduce
  std::set<ir::ExprId> WholeAddends;            ///< replicated where they were added up
  std::set<ir::ExprId> WholeHere;               ///< replicated on some path, asked for or not
  std::set<ir::ExprId> Bounds;                  ///< of loops over this rank's rows
  std::set<ir::ExprId> SumAddends;              ///< of several steps, where they were added up
  std::map<ir::FuncId, ir::ExprId> WholeLayers; ///< first layers that get all rows, by function
  /// Of a loss, a model's of a batch that all ranks have whole, with the loop of its steps.
  std::map<ir::ExprId, ir::StmtId> WholeTerms;
  std::set<ir::ExprId> WholeForwards;                      ///< of batches of which ranks take their rows behind them
  std::set<ir::ExprId> StepAddends;                        ///< added up within a step, of rows or of parts
  std::set<ir::ExprId> OwnAddends;                         ///< of one rank's own batch where they were added up
  std::map<ir::ExprId, std::vector<Evidence>> Sinks;       ///< why it is coerced there
  std::map<ir::StmtId, std::vector<Location>> ReduceAfter; ///< accumulators, reduced in place behind their loop
  /// What a loop over rows has found and each row is computed with, and how it is brought together behind the loop.
  std::map<ir::StmtId, std::map<Location, std::string>> BroughtAfter;
  std::map<ir::ExprId, std::string> Backwards; ///< mean or sum
  std::map<std::pair<std::string, ir::ExprId>, Fact> Notes;
  std::map<std::pair<std::string, ir::ExprId>, ir::StmtId> NotedIn; ///< the loop of training steps around each, or None
  std::map<ir::ExprId, std::set<uint32_t>> Moves; ///< `x.to(device)` of a batch, with the loaders it comes from
  std::set<uint32_t> Unmoved;                     ///< loaders whose batches are used where they were read
  std::set<uint32_t> Whole;                       ///< loaders shared out by whole batches
  std::set<uint32_t> ByRows;                      ///< evaluation loaders whose batches are cut
  std::map<uint32_t, Evidence> Kept;              ///< evaluation loaders left whole on every rank, and why
  std::set<uint32_t> BesideStates;                ///< evaluation loaders beside whose batches a training's states go
  std::set<uint32_t> Split;                       ///< training loaders that every rank reads whole, to split batches
  std::set<ir::StmtId> Evaluates;                 ///< loops without a training in which a model is given whole batches
  std::map<ir::ExprId, Value> Types;              ///< of every expression, for --dump=placements
  std::map<ir::ExprId, ir::ExprId> RowNoise;      ///< draws for the rows of a batch, with the number of rows
  std::map<ir::ExprId, ir::ExprId> NoiseForEach;  ///< of draws of several rows for each of a batch's, how many
  std::set<ir::ExprId> OwnRows;                   ///< whole values of which this rank's rows are meant
  std::map<ir::ExprId, ir::ExprId> RowNoiseLike;  ///< draws like a batch, with the batch
  /// Losses weighted by class: the target, and what says the weights (a module, or arguments).
  std::map<ir::ExprId, std::pair<ir::ExprId, std::vector<ir::ExprId>>> ClassWeights;
  std::map<ir::ExprId, ir::ExprId> PickedFrom; ///< means over rows that a mask picked, with what they are of
  std::map<ir::ExprId, unsigned> Cuts;         ///< batches that no loader made, and the dimension of their rows: each
                                               ///< rank takes its rows there
  /// Of these, a name for the number of rows, and the loop of the steps that take them; None in front of these.
  std::map<ir::ExprId, std::set<std::pair<uint32_t, ir::StmtId>>> CutRows;
  std::map<uint32_t, int64_t> CutLengths; ///< by this name, where the number is written out
  /// Batches that every rank has whole, beside others of another length, with the loop of the steps.
  std::map<ir::ExprId, ir::StmtId> Uncut;
  /// Batch sizes in shapes, with the batch whose rows are meant; None where LibTorch can count them, `-1`.
  std::map<ir::ExprId, ir::ExprId> BatchSizes;
  std::set<ir::ExprId> Laws;       ///< what draws for rows are made by, brought together
  std::set<ir::ExprId> WholeCalls; ///< that lead to draws for rows elsewhere, and here for what is whole
  /// What methods are called on that the runtime has a call of its own for, if it's a rank's rows: `x.squeeze()`,
  /// `x.grad()`. One text may be run for several.
  std::map<ir::ExprId, std::set<Placement>> Squeezes, RowGradients;
  std::set<ir::ExprId> Once;                ///< calls that change files, for one process to make
  std::set<ir::StmtId> OnceLoops;           ///< loops over a folder that they change, for one process to run
  std::map<ir::ExprId, ir::ExprId> Awaited; ///< what opens files that are written and read, with the path
  std::set<ir::ExprId> ByRank;              ///< what runs only on ranks that the program has chosen by their number
  std::set<ir::FuncId> Reached;
  std::map<ir::ExprId, ir::StmtId> WholeBackwards; ///< of what every rank has whole, with the loop of their steps
  std::set<ir::StmtId> SharedSteps;                ///< loops with a backward of a rank's part
  bool Trains = false;
  bool SharesOut = false; ///< a model runs on a rank's own rows of what is trained on
  ir::Range TooLarge;     ///< `main`, if the program couldn't be followed to its end

  /// Whether an expression that is coerced needs nothing, or another thing, where its text is run for something else.
  /// `mine` leaves numbers of one rank's own batch as they are.
  bool ambiguous(ir::ExprId E, const std::string &How) const {
    bool Sums = How != "mine" && How != "share"; // `share` is also what a constant needs beside a part of a sum
    // Calls that draw for what is whole are told so.
    return WholeAddends.count(E) || (Bounds.count(E) && WholeHere.count(E)) || (!Sums && SumAddends.count(E)) ||
           (Sums && WholeHere.count(E) && !Laws.count(E)) || (How != "mine" && OwnAddends.count(E)) ||
           (How == "share" && StepAddends.count(E));
  }
};

/// What `squeeze()` does to rows, in the words of a remark.
constexpr const char *DropsRows =
    "drops the dimension of the rows as well where a rank has one: name the one that is meant, `squeeze(1)`";

/// Whether a coercion of a value that is equal on all ranks gives that value again.
inline bool keepsWhole(llvm::StringRef How) {
  return How == "mean" || How == "broadcast" || How == "agreed" || How == "flag" || How == "max" || How == "min" ||
         How == "all-mean" || How == "class-weight" || How == "picked-weight";
}

/// Follows a program from `main`.
Findings infer(const Program &P, const Roles &R, const OperationTable &Table);

} // namespace migrate

#endif
