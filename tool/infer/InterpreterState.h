//===- InterpreterState.h - What the interpreter knows --------------------===//
//
// A run through the program knows the values in hand, and where it is. What it finds out that an earlier place has to
// know, is kept for the next run, which begins anew.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_INTERPRETERSTATE_H
#define ACCELERATE_MIGRATE_INFER_INTERPRETERSTATE_H

#include "infer/Findings.h"
#include "infer/Placement.h"
#include "ir/Unit.h"
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace migrate {

/// Where a way to share out batches is taken: everywhere, or in some loops of training steps.
struct Taken {
  bool Everywhere = false;
  std::set<ir::StmtId> Loops;
};

/// How batches are shared out.
struct Ways {
  Taken CutEarly; ///< batches that the program forms itself are cut where they are formed, not where a model takes them
  Taken Together; ///< rows that all others have to meet are brought together, with their graph, instead of refused
  Taken AtUse;    ///< batches are cut where a model or a loss takes them, and stay whole where they are formed
  /// Evaluation loaders whose batches are cut as a training's are, because ranks meet in what their loops call.
  std::set<uint32_t> ByRows = {};
  /// Training loaders whose batches the program splits by itself: every rank reads them whole, and has its rows of the
  /// parts.
  std::set<uint32_t> Split = {};
  /// Loops over batches that the program forms itself for an evaluation, which are cut as a training's are; as above.
  std::set<ir::StmtId> Evaluations = {};
  /// Batches that the program forms itself and that stay whole, beside others of another length.
  std::set<ir::ExprId> Uncut = {};
  /// Whole values that are cut from the start, along a dimension.
  std::map<ir::ExprId, unsigned> CutToo = {};
};

/// What is known within one run.
struct OneRun {
  using State = std::map<Location, Value>;
  enum class LoopMode { Plain, Rows, Whole, Fold, Switch };
  struct Loop {
    ir::StmtId Statement;
    LoopMode Mode;
    int Depth; ///< of the variables declared in its body
    uint32_t Loader;
    size_t Frame;                                    ///< index of the frame that it runs in
    bool Trains;                                     ///< a backward stands in it, or in what it calls
    std::vector<State> Exits, Nexts;                 ///< states at `break` and `continue`
    ir::VarId Row = ir::None;                        ///< of Fold: the number of this rank's row
    const State *Entry = nullptr;                    ///< in front of it
    bool Meets = false;                              ///< ranks meet in it
    std::optional<ir::ExprId> LeftBy = std::nullopt; ///< the choice behind a recomputed condition to leave it early
    bool Collects = false;                           ///< of Fold: lists the rows, a ghost's too, and so adds nothing up
    /// What it runs over, batches or rows, is one rank's each time.
    bool ofOneRank() const { return Mode == LoopMode::Whole || Mode == LoopMode::Fold; }
    /// It runs over batches, or over the rows of one: what is added up in it, is added up over those.
    bool accumulates() const { return Mode == LoopMode::Rows || ofOneRank(); }
  };
  struct Frame {
    ir::FuncId Function;
    std::optional<Location> This;
    Value Result;
    bool Returned = false;
    std::vector<State> Returns;
    State Fields;                  ///< of the object that it returns, its name left out
    std::vector<ir::ExprId> Args;  ///< of the call
    std::vector<Value> Parts = {}; ///< of the pair or tuple that it returns
    ir::ExprId Call = ir::None;    ///< that it was entered by
    bool Gathers = false;          ///< it was given rows, which can be brought together where it is called
    std::vector<Value> Given = {}; ///< the arguments' values
    std::optional<ir::ExprId> LeftBy = std::nullopt; ///< the choice behind a recomputed condition to return early
    bool Gives = false;                              ///< a return gave something, not `std::nullopt`
    bool OwnPlace = false;                           ///< one rank's own rows tell which object it is a method of
    int Apart = 0;                ///< how many conditions that differ between ranks stood around its call
    int Left = 0, LeftByRank = 0; ///< how many conditions that differ between ranks have let some return early
  };

  State Current;
  int OwnCalls = 0;                                 ///< what is called for each of this rank's rows
  std::set<ir::StmtId> SumsRows;                    ///< steps that count all rows
  std::map<ir::ExprId, ir::StmtId> PicksRows;       ///< rows picked by number, with the loop of the steps
  std::map<ir::StmtId, std::set<uint32_t>> CutRows; ///< `Value::Rows` of what a step has cut
  std::set<uint32_t> CutAhead;                      ///< of what was cut in front of the steps
  std::map<uint32_t, uint32_t> MetAs;               ///< names of the same rows
  ir::ExprId Unpacked = ir::None;                   ///< what the parts of a structured binding that follow are of
  uint32_t InHand = 0;                              ///< of what it has cut last; 0: it depends
  std::map<ir::ExprId, State> Returned;             ///< the fields of what calls returned
  std::map<ir::ExprId, std::vector<Value>> Parts;   ///< the elements of pairs and tuples, by what made them
  std::map<ir::ExprId, Value> Last;                 ///< of each expression, when it was evaluated last
  /// Numbers of a step that are added up, with the right-hand sides that they were set by.
  std::map<ir::ExprId, std::set<ir::ExprId>> AddendsSet;
  std::map<ir::VarId, Location> Alias;
  std::set<ir::VarId> OwnPlaces; ///< names and pointers of elements whose place one rank's own rows tell
  std::set<ir::VarId> Elements;  ///< of Alias: it is one element of that
  std::set<ir::VarId> Elsewhere; ///< references to what isn't followed
  /// Tensors, lists of them and accessors: the tensors, or what they were made over, that they lie in.
  std::map<ir::VarId, std::set<Location>> Views;
  std::set<ir::ExprId> GathersWithin;                 ///< calls within which ranks bring rows together
  std::set<ir::ExprId> DroppedOfRows, DroppedOfWhole; ///< what drops out of rows, and of what every rank has whole
  std::map<ir::ExprId, std::set<std::vector<ir::ExprId>>> WholeDraws; ///< draws and losses of what every rank has, the
                                                                      ///< calls that led there
  std::set<ir::ExprId> RowDraws;                ///< calls that led to draws for the rows of a batch
  std::set<ir::ExprId> FromAll;                 ///< draws for them by tensors that are brought together
  std::set<ir::ExprId> CutInStep, CutElsewhere; ///< cuts that were come to within a training step, and elsewhere
  std::set<ir::ExprId> CutBefore;               ///< cuts that were come to with what was cut before
  std::map<ir::ExprId, ir::ExprId> InputOf;     ///< `Value::Forward`, and where what it is given could be cut
  std::map<ir::ExprId, uint32_t> OfOneRank;     ///< evaluated in a loop over what is one rank's, and its loader
  std::map<ir::VarId, ir::ExprId> Copies;       ///< aliases that are tensors of their own, and what they were made of
  std::map<Location, Location> PointsTo;        ///< pointers, by where they are kept
  std::map<ir::FuncId, std::optional<Location>> MadeIn; ///< lambdas, and the object whose method made them
  std::map<ir::VarId, int> BegunUnder;                  ///< conditions around a declaration that differ between ranks
  std::map<ir::VarId, int> Depths;
  // References to these are held while calls and loops within are run, which add others.
  std::deque<Loop> Loops;
  std::deque<Frame> Frames;
  std::vector<ir::FuncId> Stack;
  std::map<ir::FuncId, Value> Assumption; ///< what functions that call themselves return there
  int Depth = 0;
  int OwnChoices = 0;                          ///< conditions of this rank's own batch around here
  int Tries = 0;                               ///< try blocks around here
  int Wholes = 0;                              ///< calls of `accelerator.whole` around here
  int Threads = 0;                             ///< functions around here that another thread runs
  int NoGrads = 0;                             ///< guards against gradients around here
  int Meetings = 0;                            ///< how often ranks met so far
  std::set<ir::ExprId> LeafGradients;          ///< of leaves that are whole so far, in steps that share
  std::vector<ir::ExprId> RecomputedChoices;   ///< of the conditions around here that ranks haven't agreed on
  std::map<ir::ExprId, ir::StmtId> ChoiceLoop; ///< `Value::Choice`, with the loop around it
  int Divergent = 0;                           ///< how many conditions around here differ between ranks
  int ByRank = 0;                              ///< how many of them ask for the rank
  bool Globals = false;                        ///< what runs before `main`
  bool Read = false;                           ///< a loader has handed out batches
  bool Dead = false, Recording = true, LoopCondition = false;
  std::map<ir::ExprId, Value> Standing;       ///< values that stand for what expressions hold, in modules of containers
  int OutsideChoices = 0;                     ///< branches around that the ranks haven't agreed on
  std::map<ir::FuncId, Value> FollowedOnce;   ///< functions that are apart and write nowhere, with what they give
  std::map<ir::ExprId, ir::FuncId> GathersIn; ///< the innermost function around it that can be given all rows
  std::vector<std::pair<ir::ExprId, ir::FuncId>> AtExit; ///< what runs behind `main`, and where that is asked for
  bool Evaluates = false;                                ///< a module was last told to `eval()`, not to `train()`
  std::optional<Location> Evaluated;                     ///< and which one that was
  /// This rank's rows outlive the step there; whether it started without, so that they are of the step before.
  std::map<Location, bool> Carried;
  std::map<ir::VarId, ir::ExprId> LayerAt; ///< by the variable of a loop over a container: the layer in hand
  std::set<std::pair<ir::StmtId, Location>> WholeAfter; ///< of this run: what is whole behind a loop
  struct Settling {
    State Entry, Head;
  };
  /// What loops within loops came to when they were entered last, by where they stand and what led there.
  std::map<std::vector<int64_t>, Settling> Settled;
};

/// What runs find out for those that follow them, and what is looked up in the program once.
struct OverRuns {
  struct Body {
    bool Apart = true, Lambdas = false;
    std::vector<ir::FuncId> Calls;
  };

  bool Restart = false;                              ///< this run has found out what another has to know from its start
  std::optional<std::set<ir::VarId>> AssignedTo;     ///< variables that are assigned to as a whole
  std::optional<std::set<ir::VarId>> NamedByLoaders; ///< what loaders' functions name; None: the C library's generator
  uint64_t Steps = 0;                                ///< of all rounds
  bool Exhausted = false;
  std::set<uint32_t> KeepWhole; ///< evaluation loaders that can't be shared out
  bool FilesDecide = false;     ///< files are changed where something from outside decides: the ranks agree on all such
  std::set<ir::ExprId> Statements;                    ///< expressions that are statements: nothing uses their value
  std::optional<std::set<ir::VarId>> Parameters;      ///< that are registered as such
  std::optional<std::set<ir::ExprId>> WeightedShares; ///< first arguments of `share(x, weight)`
  std::set<ir::ExprId> PaddedForAll;                  ///< arguments of `pad_across_processes(x)`
  std::optional<std::set<ir::VarId>> InParts;         ///< tensors of which a part is written by another name
  std::optional<bool> Ignored;                        ///< the class that losses leave out is written somewhere
  std::optional<bool> ItemsAreTensors;                ///< of a data set of the project's, which nothing collates
  std::optional<bool> Derivatives;                    ///< at inputs are taken
  std::map<uint32_t, int> LeastRank; ///< by `Value::RankOf`: dimensions that it has at least, since one was asked for
  mutable std::map<ir::VarId, std::vector<ir::ExprId>> OptionCalls; ///< `options.reduction(kSum);`, by variable
  mutable std::optional<std::set<ir::VarId>> Changed;  ///< what is assigned to, or handed to what may write
  mutable std::optional<std::set<ir::ExprId>> Targets; ///< what stands where tensors are written
  mutable std::optional<std::set<ir::VarId>> Hidden;   ///< variables whose address is kept where nothing follows it
  mutable std::optional<std::set<ir::VarId>> Beside;   ///< flags that are set beside the training
  mutable std::optional<std::set<ir::VarId>> ReadIn;   ///< what threads read beside the training
  mutable std::optional<std::map<ir::VarId, ir::ExprId>> Raced; ///< lists that several threads fill, and where
  mutable std::optional<std::set<ir::ExprId>> Awaited;          ///< what opens files that are written and read
  mutable std::optional<std::set<std::string>> Removed;         ///< files that the program removes
  mutable std::map<ir::FuncId, Body> Bodies;
  std::map<ir::StmtId, std::set<ir::VarId>> Rebinds;        ///< what is assigned within a branch or loop
  mutable std::map<ir::FuncId, std::set<ir::FuncId>> Apart; ///< what a function may run; empty if it isn't apart
  mutable std::map<ir::FuncId, bool> Alone;                 ///< lambdas that know only what they are given
  mutable std::map<ir::VarId, std::vector<ir::ExprId>> ModuleInits; ///< what module variables are set to
  mutable bool SettingsKnown = false;
  mutable std::set<ir::ExprId> SetUnderIf;    ///< setters of options under a condition
  mutable bool SaidUnderIf = false;           ///< what was asked for was found in one of these
  std::map<ir::ExprId, ir::FuncId> CoercedIn; ///< the function that ran when a coercion was recorded
  std::set<ir::FuncId> WholeArguments;        ///< functions whose arguments are brought together where they are called
  std::set<ir::FuncId> GatheredArguments;     ///< functions that are given all rows of a batch
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> GatheredTexts; ///< where their arguments are written
  std::set<ir::ExprId> AgreedOn;                                    ///< choices that ranks agree on where they are made
  std::set<ir::ExprId> WholeGradients;           ///< at leaves that stay whole where their rows are shared out
  std::set<ir::ExprId> NotThere;                 ///< choices that not all ranks come to
  std::set<ir::ExprId> MetUnder;                 ///< recomputed conditions under which ranks meet
  std::set<ir::FuncId> MeetsIn;                  ///< functions in which ranks meet
  std::set<ir::FuncId> CallsItself;              ///< functions that were come to within themselves
  std::set<ir::FuncId> ReturnsEarly;             ///< functions that a recomputed condition may leave
  std::set<ir::FuncId> AgreesIn;                 ///< functions in which ranks agree on a choice
  std::set<ir::FuncId> InThreads;                ///< functions that other threads run, too
  std::optional<std::set<ir::FuncId>> OfLoaders; ///< functions that loaders call, as often as each has rows
  std::set<ir::ExprId> Assigned;                 ///< right-hand sides of assignments that outlive their step
  std::map<ir::ExprId, unsigned> Cuts;           ///< whole values of which each rank takes its rows, along a dimension
  std::map<ir::ExprId, ir::ExprId> OwnCounts;    ///< a loader's batch size that means this rank's rows, and their name
  std::set<ir::ExprId> Turned;                   ///< of Cuts: it is known along which
  std::set<ir::ExprId> ForEachRow;               ///< of Cuts: vectors that are taken to hold a number for each row
  std::optional<std::vector<ir::ExprId>> CouplingLayers;
  std::set<ir::ExprId> OwnRows;                           ///< whole values with the rows of the loader's batch in hand
  std::set<ir::StmtId> CutLoops;                          ///< whose steps train on them
  std::map<std::string, uint32_t> Names;                  ///< of `Value::Rows`
  std::optional<std::map<ir::VarId, ir::StmtId>> Filling; ///< lists, and the one block that fills each
  std::map<uint32_t, int64_t> RowCounts;                  ///< by `Value::Rows`, where it is written out
  std::map<uint32_t, ir::ExprId> Lengths;                 ///< and what tells it, a number or a variable
  std::map<uint32_t, uint32_t> Joined;           ///< rows of a list's items, joined, with the number of the items
  std::set<uint32_t> Exactly;                    ///< of these, what has no fewer in a last batch
  std::set<uint32_t> Windows;                    ///< of `Value::Rows`: of rows that begin elsewhere in each step
  std::set<uint32_t> Uncounted;                  ///< of `Value::Rows`: of what may have any number
  std::set<uint32_t> Filled;                     ///< of `Value::Rows`: of all that one call filled or gave
  std::set<ir::ExprId> Fills;                    ///< arguments that a call without a body fills with a batch
  std::map<ir::StmtId, Evidence> RowLoops;       ///< over rows of a training batch, that are no folds, and why
  std::set<Location> SharedItems;                ///< lists of losses that are means and parts of sums
  std::set<Location> EachStep;                   ///< accumulators of parts and of wholes: no part of theirs can wait
  std::set<ir::VarId> OutsideStreams;            ///< streams that a clock or the like was written to
  std::set<ir::ExprId> KeptRows;                 ///< rows that are written to a part of what outlives the step
  std::set<ir::ExprId> BroughtTogether;          ///< rows that meet all others of their batch, and means over them
  std::set<ir::ExprId> TrainedBelow, WholeBelow; ///< denominators that are sums over rows, with a gradient and without
  std::set<ir::ExprId> BothBelow;                ///< those that are both, on several paths
  std::set<ir::ExprId> CoerceAtReturn;           ///< returned values of which another is equal on all ranks
  std::map<ir::ExprId, bool> KeptExtremes;       ///< `x` in `if (x > worst) worst = x;`; the largest?
  std::set<ir::ExprId> NeededForRows;            ///< right-hand sides in loops whose value each row is computed with
  std::set<ir::ExprId> MeanTerms;                ///< `f(row) / rows`, added up over the rows
  std::set<ir::ExprId> PartWhereSet;   ///< right-hand sides that are a part of a sum over the steps from there on
  std::set<ir::ExprId> CoerceAtAssign; ///< right-hand sides whose value escapes its step
};

} // namespace migrate

#endif
