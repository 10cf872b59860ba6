//===- Placement.h - How a value of the original lives on the ranks -------===//
//
// At step k the original has a batch B; rank r has the rows B_r, contiguous slices in rank order. For a value v of the
// original, its placement tells how the ranks' v_r relate to it. The vocabulary is DTensor's (Replicate, Shard,
// Partial); the types are inferred here in code that was written for one device.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_PLACEMENT_H
#define ACCELERATE_MIGRATE_INFER_PLACEMENT_H

#include "ir/Unit.h"
#include <string>
#include <vector>

namespace migrate {

enum class Placement : uint8_t {
  Zero,       ///< a literal zero or an empty tensor: below everything but `Unknown`
  Replicated, ///< v_r = v
  Sharded,    ///< v is the concatenation of v_r along `Dim`
  Extent,     ///< the local number of rows of something sharded; counts as Partial in arithmetic
  Partial,    ///< v = sum of v_r
  Mean,       ///< v = weighted mean of v_r, by the rows of the step
  Extreme,    ///< v = the largest (`Largest`) or smallest of v_r
  Own,        ///< of a batch that only this rank has (evaluation loops are shared by whole batches)
  Escaped,    ///< local to an earlier step: `Was` tells what it was then
  Unknown,    ///< none of these
};

/// How equal a replicated value is.
enum class Strength : uint8_t {
  Exact,      ///< bit for bit: integers, constants, what ranks sent each other
  Recomputed, ///< floats that each rank computed for itself, which may differ in the last bit on unlike hosts
  Outside,    ///< from outside the program, a clock, the system's entropy: each rank has its own
};

/// Where the rows of a batch that no loader made could be cut: a whole value that meets one of the model's.
struct Edge {
  ir::ExprId At = ir::None;   ///< the expression whose value would be cut
  ir::StmtId Loop = ir::None; ///< of the steps
  uint32_t Rows = 0;          ///< as in Value
  bool Sure = false;          ///< what stands there has the batch's rows: a module's input, a loss's target
  auto operator<=>(const Edge &) const = default;
};

/// `Value::Rows` of what has no rows: numbers, scalars.
constexpr uint32_t NoRows = 1;
/// Of what was made with as many rows as a loader was told to put in a batch.
constexpr uint32_t BatchRows = 2;

/// Why it isn't known what the program has asked for: this rank's number, or whether it is the main process.
constexpr const char *OfThisRank = "tells the ranks apart";
/// Why it isn't known what a variable is that some ranks alone set.
constexpr const char *SetApart = "is set under a condition that differs between ranks";

/// Of a whole tensor into which a rank has written its rows, at their places.
constexpr const char *AmongOthers = "holds this rank's rows among others that are no longer right";

struct Value {
  Placement Kind = Placement::Replicated;
  Placement Was = Placement::Replicated; ///< of Escaped
  uint8_t Dim = 0;                       ///< of Sharded
  int8_t RestDim = -1;                   ///< of what stands behind a tuple's first element, -1: as in the first
  bool Listed = false;                   ///< Sharded: a list whose items are the rows
  int8_t Rank = -1;                      ///< number of the tensor's dimensions, -1 if unknown
  int8_t Least = 0;                      ///< it has at least as many
  int8_t RankPlus = 0;                   ///< with `RankOf`: it has so many more than that
  uint32_t RankOf = ir::None;            ///< of unknown rank: the field of a batch that it is computed from
  bool Fresh = false;                    ///< Partial: made in this step, so a ghost row still counts in it
  bool Largest = false;                  ///< of Extreme
  bool Running = false;                  ///< of Extreme: of all steps so far
  bool Woven = false;                    ///< Sharded: merged from dimensions of which the rows' isn't the first
  bool Earlier = false;                  ///< Sharded: of a step before this one, which may have had other rows
  bool Narrowed = false;                 ///< lost dimensions: the batch may be its only one
  bool Iterator = false;                 ///< an iterator over a loader
  Strength Equal = Strength::Exact;      ///< of what is whole
  bool Noisy = false;                    ///< drawn by the same law as the original's, with other numbers
  bool Trained = false;                  ///< whole, and computed with a model's parameters
  bool AllRows = false;                  ///< whole, and made of rows that were brought together
  bool Nothing = false;                  ///< of Zero: an optional that holds nothing, an undefined tensor
  bool MayLack = false;                  ///< on some ways nothing
  uint32_t Picked = 0;              ///< Sharded, Extent: a name for the mask that picked its rows; 0: all of a batch's
  uint32_t Rows = 0;                ///< a name for the first dimension's extent: equal names, equal rows; 0: unknown
  std::vector<Edge> Edges;          ///< whole and trained: where its batch could be cut
  uint32_t Batch = ir::None;        ///< a batch, or a field of it, as the loader of this object handed it out
  ir::ExprId Forward = ir::None;    ///< whole: what a model made of a whole batch, from which it comes
  std::vector<ir::FuncId> Funcs;    ///< of a lambda, a pointer to a function: what it may be
  ir::ExprId Choice = ir::None;     ///< Recomputed: where floats became the integer or flag that it comes from
  ir::ExprId Source = ir::None;     ///< where the placement was born, for evidence
  ir::ExprId AssignedBy = ir::None; ///< the right-hand side that a variable got it from
  std::string Why;                  ///< of Unknown

  static Value of(Placement Kind, ir::ExprId Source = ir::None) {
    Value V;
    V.Kind = Kind;
    V.Source = Source;
    return V;
  }
  static Value sharded(unsigned Dim, ir::ExprId Source) {
    Value V = of(Placement::Sharded, Source);
    V.Dim = Dim;
    return V;
  }
  static Value partial(bool Fresh, ir::ExprId Source) {
    Value V = of(Placement::Partial, Source);
    V.Fresh = Fresh;
    return V;
  }
  static Value unknown(std::string Why, ir::ExprId Source) {
    Value V = of(Placement::Unknown, Source);
    V.Why = std::move(Why);
    return V;
  }

  static Value nothing(ir::ExprId Source) {
    Value V = of(Placement::Zero, Source);
    V.Nothing = true;
    return V;
  }

  void setRank(int N) {
    Rank = Least = int8_t(N);
    RankOf = ir::None;
    RankPlus = 0;
  }
  /// As many dimensions as `O`, whatever is known of them.
  void takeRank(const Value &O) {
    Rank = O.Rank;
    Least = O.Least;
    RankOf = O.RankOf;
    RankPlus = O.RankPlus;
  }
  void addToRank(int N) {
    Rank = Rank < 0 ? Rank : int8_t(Rank + N);
    RankPlus += N;
    Least = int8_t(Least + N < 0 ? 0 : Least + N);
  }
  void forgetRank() {
    setRank(-1);
    Least = 0;
  }

  /// By it the program lets some ranks do what others don't.
  bool tellsRanks() const { return Kind == Placement::Unknown && Why == OfThisRank; }
  /// A whole tensor in which this rank's rows are right, and no others.
  bool amongOthers() const { return Kind == Placement::Unknown && Why == AmongOthers; }
  bool replicated() const { return Kind == Placement::Replicated || Kind == Placement::Zero; }
  bool outside() const { return Equal == Strength::Outside; }
  bool recomputed() const { return replicated() && Equal == Strength::Recomputed; }
  /// Ranks have agreed on it.
  void makeExact() {
    Equal = Strength::Exact;
    Choice = ir::None;
  }
  /// A number or tensor that a collective can make replicated.
  bool reducible() const {
    return Kind == Placement::Partial || Kind == Placement::Mean || Kind == Placement::Extent ||
           Kind == Placement::Extreme;
  }
  /// Of a container: it has as many items on every rank, whatever they are there.
  bool alikeInNumber() const { return replicated() || (reducible() && Kind != Placement::Extent); }
  /// Equal as types (evidence aside): what a fixpoint compares.
  bool same(const Value &O) const {
    return Kind == O.Kind && Was == O.Was && Dim == O.Dim && RestDim == O.RestDim && Rank == O.Rank &&
           Least == O.Least && RankPlus == O.RankPlus && RankOf == O.RankOf && Narrowed == O.Narrowed &&
           Woven == O.Woven && Earlier == O.Earlier && Fresh == O.Fresh && Batch == O.Batch && Trained == O.Trained &&
           AllRows == O.AllRows && Rows == O.Rows && Edges == O.Edges && Equal == O.Equal && Noisy == O.Noisy &&
           Choice == O.Choice && Largest == O.Largest && Running == O.Running && Listed == O.Listed &&
           Picked == O.Picked && Nothing == O.Nothing && MayLack == O.MayLack && Funcs == O.Funcs;
  }
};

/// Adds the places where `From` could be cut to those of `To`.
void addEdges(Value &To, const Value &From);
/// Adds the functions that `From` may be to those that `To` may be.
void addFuncs(Value &To, const Value &From);
/// Gives `To` what two values that it is made of know of their rows, edges and origin.
void takeRows(Value &To, const Value &A, const Value &B);
/// As little equal, and as noisy, as both.
void weaken(Value &To, const Value &From);
/// The same of what was computed with `From`: only what is whole is more or less equal.
void takeFlags(Value &To, const Value &From);
/// Adds what `From` knows of them to what `To` knows.
void joinRows(Value &To, const Value &From);

/// The least placement that both have; Unknown if there is none.
Value join(const Value &A, const Value &B);

/// `R`, `R recomputed`, `S(0)`, `W` (rows, woven with others' places), `P`, `A noisy`, … as `--dump=placements` prints
/// it.
std::string toString(const Value &V);
/// The same for messages.
std::string inWords(const Value &V);

/// The value as one computes with it: an extent is a partial sum then.
Value asNumber(Value V);

} // namespace migrate

#endif
