//===- Placement.cpp ------------------------------------------------------===//
#include "infer/Placement.h"
#include <algorithm>
#include <iterator>

namespace migrate {

/// Adds the items of one sorted list to those of another.
template <typename T> static void addTo(std::vector<T> &To, const std::vector<T> &From) {
  if (To == From)
    return;
  std::vector<T> Both;
  std::set_union(To.begin(), To.end(), From.begin(), From.end(), std::back_inserter(Both));
  To = std::move(Both);
}

void addEdges(Value &To, const Value &From) { addTo(To.Edges, From.Edges); }

void addFuncs(Value &To, const Value &From) { addTo(To.Funcs, From.Funcs); }

void weaken(Value &To, const Value &From) {
  To.Noisy |= From.Noisy;
  if (From.Equal == Strength::Exact)
    return;
  To.Choice = To.Equal == Strength::Exact || To.Choice == From.Choice ? From.Choice : ir::None;
  To.Equal = std::max(To.Equal, From.Equal);
}

void takeFlags(Value &To, const Value &From) {
  if (To.replicated() && From.replicated())
    weaken(To, From);
  else
    To.Noisy |= From.Noisy;
}

void joinRows(Value &To, const Value &From) {
  if (To.Rows != From.Rows)
    To.Rows = 0;
  To.Trained |= From.Trained;
  To.AllRows |= From.AllRows;
  weaken(To, From);
  addEdges(To, From);
}

void takeRows(Value &To, const Value &A, const Value &B) {
  To.Rows = A.Rows;
  To.Edges = A.Edges;
  To.Trained = A.Trained;
  To.AllRows = A.AllRows;
  To.Equal = A.Equal;
  To.Noisy = A.Noisy;
  To.Choice = A.Choice;
  joinRows(To, B);
}

static Value joinPlacements(const Value &A, const Value &B) {
  if (A.Kind == Placement::Unknown)
    return A;
  if (B.Kind == Placement::Unknown || A.Kind == Placement::Zero)
    return B;
  if (B.Kind == Placement::Zero)
    return A;
  if (A.Kind == B.Kind) {
    Value V = A;
    V.Batch = A.Batch == B.Batch ? A.Batch : ir::None;
    V.Fresh |= B.Fresh;
    V.Narrowed |= B.Narrowed;
    V.Earlier |= B.Earlier;
    V.Running &= B.Running;
    int8_t Least = std::min(A.Least, B.Least);
    if (A.Rank != B.Rank || A.RankOf != B.RankOf || A.RankPlus != B.RankPlus)
      V.forgetRank();
    V.Least = Least;
    if (A.Kind == Placement::Extreme && A.Largest != B.Largest)
      return Value::unknown("is the largest on one path and the smallest on another", A.Source);
    if (A.Kind == Placement::Sharded && A.Listed != B.Listed)
      return Value::unknown("is a list of rows on one path and a batch on another", A.Source);
    if (A.Picked != B.Picked)
      return Value::unknown("has other rows on one path than on another", A.Source);
    if (A.Kind == Placement::Sharded && A.Woven != B.Woven)
      return Value::unknown("has its rows in another order on one path than on another", A.Source);
    if (A.Kind == Placement::Sharded && (A.Dim != B.Dim || A.RestDim != B.RestDim))
      return Value::unknown("is sharded on two dimensions", A.Source);
    return V;
  }
  if (A.Kind == Placement::Escaped || B.Kind == Placement::Escaped) {
    const Value &E = A.Kind == Placement::Escaped ? A : B, &O = A.Kind == Placement::Escaped ? B : A;
    if (O.Kind == E.Was || O.replicated())
      return E;
  }
  const Value *R = A.Kind == Placement::Replicated ? &A : B.Kind == Placement::Replicated ? &B : nullptr;
  const Value &Other = R == &A ? B : A;
  // Replicated values are means too (of equal values), and own ones; they are no partial sums.
  if (R && (Other.Kind == Placement::Mean || Other.Kind == Placement::Extreme || Other.Kind == Placement::Own))
    return Other;
  return Value::unknown("is " + inWords(A) + " on one path and " + inWords(B) + " on another", Other.Source);
}

/// The same of both, whatever gave it to them.
static Value agreed(const Value &A, const Value &B) {
  Value V = A;
  if (V.Kind == Placement::Replicated && A.AssignedBy != B.AssignedBy) // no one place to cut it where it is made
    V.AssignedBy = ir::None;
  return V;
}

Value join(const Value &A, const Value &B) {
  if (A.same(B))
    return agreed(A, B);
  Value V = A.Kind == B.Kind ? agreed(joinPlacements(A, B), B) : joinPlacements(A, B);
  if (V.replicated() && (A.outside() || B.outside()))
    V.Equal = Strength::Outside;
  V.Nothing = A.Nothing && B.Nothing;
  V.MayLack = A.MayLack || B.MayLack || A.Nothing != B.Nothing;
  addFuncs(V, A);
  addFuncs(V, B);
  if (A.Kind == Placement::Zero || B.Kind == Placement::Zero)
    return V; // an accumulator before its first addition
  takeRows(V, A, B);
  return V;
}

static std::string kindOf(const Value &V) {
  switch (V.Kind) {
  case Placement::Zero:
  case Placement::Replicated:
    return V.outside() ? "R outside" : V.Equal == Strength::Recomputed ? "R recomputed" : "R";
  case Placement::Sharded:
    return V.Woven ? "W" : "S(" + std::to_string(V.Dim) + ")" + (V.Picked ? " picked" : V.Earlier ? " earlier" : "");
  case Placement::Extent:
    return "L";
  case Placement::Partial:
    return "P";
  case Placement::Mean:
    return "A";
  case Placement::Extreme:
    return V.Largest ? "X(max)" : "X(min)";
  case Placement::Own:
    return "own batch";
  case Placement::Escaped:
    return "of an earlier step";
  case Placement::Unknown:
    return "U";
  }
  return "U";
}

std::string toString(const Value &V) { return kindOf(V) + (V.Noisy ? " noisy" : ""); }

std::string inWords(const Value &V) {
  switch (V.Kind) {
  case Placement::Zero:
  case Placement::Replicated:
    return "the same on all ranks";
  case Placement::Sharded:
    return V.Earlier  ? "rows of an earlier step's batch"
           : V.Woven  ? "rows of the batch in another order"
           : V.Picked ? "some rows of the batch"
                      : "rows of the batch";
  case Placement::Extent:
    return "this rank's number of rows";
  case Placement::Partial:
    return "this rank's part of a sum";
  case Placement::Mean:
    return "a mean over this rank's rows";
  case Placement::Extreme:
    return V.Largest ? "the largest of this rank's" : "the smallest of this rank's";
  case Placement::Own:
    return "of a batch that only this rank has";
  case Placement::Escaped:
    return "of an earlier step";
  case Placement::Unknown:
    return "what isn't followed";
  }
  return "what isn't followed";
}

Value asNumber(Value V) {
  if (V.Kind == Placement::Extent) {
    V.Kind = Placement::Partial;
    V.Fresh = true;
    V.Dim = 0;
    V.Picked = 0;
    V.setRank(0);
  }
  return V;
}

} // namespace migrate
