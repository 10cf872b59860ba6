//===- Dimensions.cpp -----------------------------------------------------===//
#include "infer/Dimensions.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using llvm::ArrayRef;
using llvm::StringRef;

namespace migrate {

std::optional<Signature> Signature::parse(StringRef Text) {
  auto [In, Out] = Text.split("->");
  if (!Text.contains("->"))
    return std::nullopt;
  Signature S;
  for (auto [Side, Into] : {std::pair(In, &S.Inputs), std::pair(Out, &S.Outputs)}) {
    llvm::SmallVector<StringRef> Parts;
    Side.split(Parts, ',');
    for (StringRef Part : Parts) {
      std::string Labels;
      for (Part = Part.trim(); !Part.empty();)
        if (Part.consume_front("..."))
          Labels += '.';
        else if (llvm::isAlpha(Part[0])) {
          Labels += Part[0];
          Part = Part.drop_front();
        } else {
          return std::nullopt;
        }
      if (llvm::count(Labels, '.') > 1)
        return std::nullopt;
      Into->push_back(Labels);
    }
  }
  return S;
}

Side locate(const Value &V, int64_t N) {
  if (N < 0 && V.Rank >= 0)
    N += V.Rank;
  if (N >= 0)
    return N == V.Dim ? Side::Batch : N < V.Dim ? Side::Before : Side::Behind;
  // The rank isn't known. The last dimension isn't the batch's unless what stood behind it was taken away.
  if (-N < V.Least - V.Dim || (N == -1 && !V.Narrowed))
    return Side::Behind;
  return Side::Unknown;
}

static Value uncounted(const Value &V, ir::ExprId E, const std::string &Name) {
  return Value::unknown("counts dimensions from the end where the batch may be meant (`" + Name + "`)", E);
}

//===----------------------------------------------------------------------===//
// Side by side
//===----------------------------------------------------------------------===//

bool comparable(const Value &A, const Value &B) {
  return (A.Rank >= 0 && B.Rank >= 0) || (A.RankOf != ir::None && A.RankOf == B.RankOf);
}

/// Whether the batch's dimensions of two tensors meet when they are aligned from the right.
static bool aligned(const Value &A, const Value &B) {
  if (A.Rank >= 0 && B.Rank >= 0)
    return A.Rank - A.Dim == B.Rank - B.Dim;
  if (A.RankOf != ir::None && A.RankOf == B.RankOf)
    return A.RankPlus - A.Dim == B.RankPlus - B.Dim;
  if (A.Dim != B.Dim)
    return false;
  // One of the two is longer for certain.
  return !(A.Rank >= 0 && A.Rank < B.Least) && !(B.Rank >= 0 && B.Rank < A.Least);
}

Value broadcast(ArrayRef<Value> Values, ir::ExprId E) {
  Value Result = Value::of(Placement::Replicated, E);
  int Longest = -1;                 // of the replicated ones
  const Value *Uncounted = nullptr; // of which it isn't known how many dimensions it has
  for (const Value &V : Values) {
    if (V.Kind == Placement::Unknown || V.Kind == Placement::Own)
      return V;
    if (V.Kind == Placement::Extent)
      continue;
    if (V.replicated()) {
      Longest = std::max<int>(Longest, V.Rank);
      if (V.Rank < 0)
        Uncounted = &V;
      continue;
    }
    if (V.Kind != Placement::Sharded)
      return Value::unknown("is used (as " + inWords(V) + ") before its parts on the ranks are brought together", E);
    if (Result.Kind != Placement::Sharded) {
      Result = V;
      continue;
    }
    if (Result.Picked != V.Picked)
      return Value::unknown("joins rows that a mask picked with others", E);
    if (Result.Woven != V.Woven)
      return Value::unknown("joins rows with rows in another order", E);
    if (!aligned(Result, V)) {
      if (Result.Dim != V.Dim)
        return Value::unknown("joins rows along different dimensions", E);
      return Value::unknown("joins rows with rows of another number of dimensions, where all of a batch meet all", E);
    }
    int8_t Least = std::max(Result.Least, V.Least);
    const bool Earlier = Result.Earlier && V.Earlier; // beside this step's rows there are as many
    if (Result.Rank < V.Rank)
      Result = V;
    Result.Least = Least;
    Result.Earlier = Earlier;
  }
  if (Result.Kind == Placement::Sharded && Result.Rank >= 0 && Longest > Result.Rank) {
    Result.Dim += Longest - Result.Rank;
    Result.setRank(Longest);
  } else if (Result.replicated() && Uncounted) { // numbers beside it change nothing
    Longest <= 0 ? Result.takeRank(*Uncounted) : Result.forgetRank();
  } else if (Result.replicated()) {
    Result.setRank(Longest);
    Result.Least = 0;
  }
  Result.Batch = ir::None;
  Result.RestDim = -1;
  Result.Iterator = false;
  return Result;
}

namespace {
/// What one choice of ranks leads to.
struct Outcome {
  enum { Rows, Whole, Partial, Coupled, Crossed } Kind = Whole;
  std::vector<int> Dims; ///< of Rows, by output; -1 where it has none
  int Rank = -1;
  std::vector<int> Given; ///< the operands' ranks, as chosen
  bool Assumed = true;    ///< a coupled dimension was met only because a rank isn't known
  bool Narrowed = false;  ///< and dimensions were taken away before

  bool same(const Outcome &O) const { return Kind == O.Kind && Dims == O.Dims; }
};

/// A dimension by its letter, or in `...` by its place from the right.
struct Label {
  char Letter = 0;
  int FromRight = 0;
  bool operator==(const Label &) const = default;
};

Label labelOf(const std::string &Labels, int Rank, int Dim) {
  size_t Dots = Labels.find('.');
  if (Dots == std::string::npos)
    return {Labels[Dim], 0};
  int Behind = Labels.size() - Dots - 1;
  if (Dim < int(Dots))
    return {Labels[Dim], 0};
  if (Dim >= Rank - Behind)
    return {Labels[Labels.size() - (Rank - Dim)], 0};
  return {'.', Rank - Behind - 1 - Dim};
}

bool fits(const std::string &Labels, int Rank) {
  return Labels.find('.') == std::string::npos ? Rank == int(Labels.size()) : Rank + 1 >= int(Labels.size());
}

/// \param Added  the first operand is added to what the others make, and may have one row for all
std::optional<Outcome> tryRanks(const Signature &S, ArrayRef<Value> Operands, ArrayRef<int> Ranks, bool Added) {
  Outcome Out;
  std::optional<Label> Batch;
  int Ellipsis = 0; // the longest `...`
  for (size_t I = 0; I != Operands.size(); ++I) {
    bool Local = Operands[I].Kind == Placement::Sharded;
    if (I >= S.Inputs.size()) {
      if (Local)
        return std::nullopt;
      continue;
    }
    const std::string &Labels = S.Inputs[I];
    if (Ranks[I] >= 0 && !fits(Labels, Ranks[I]))
      return std::nullopt;
    if (Ranks[I] >= 0 && Labels.find('.') != std::string::npos)
      Ellipsis = std::max<int>(Ellipsis, Ranks[I] + 1 - Labels.size());
    if (!Local)
      continue;
    if (Operands[I].Dim >= Ranks[I])
      return std::nullopt;
    Label L = labelOf(Labels, Ranks[I], Operands[I].Dim);
    if (llvm::isUpper(L.Letter)) {
      Out.Kind = Outcome::Coupled;
      Out.Assumed &= Operands[I].Rank < 0;
      Out.Narrowed |= Operands[I].Narrowed;
      return Out;
    }
    if (Batch && !(*Batch == L)) {
      Out.Kind = Outcome::Crossed;
      Out.Assumed = false;
      return Out;
    }
    Batch = L;
  }
  for (const std::string &Labels : S.Outputs) {
    size_t Dots = Labels.find('.');
    int Rank = Labels.size() + (Dots == std::string::npos ? 0 : Ellipsis - 1);
    if (&Labels == &S.Outputs.front())
      Out.Rank = Rank;
    int Dim = -1;
    for (int D = 0; Batch && D != Rank; ++D)
      if (labelOf(Labels, Rank, D) == *Batch)
        Dim = D;
    Out.Dims.push_back(Dim);
  }
  if (!Batch)
    return Out;
  Out.Kind = Out.Dims.front() >= 0 ? Outcome::Rows : Outcome::Partial;
  if (Batch->Letter == '.')
    return Out;
  // Whoever has the letter must be cut along it: a whole tensor has other rows there.
  for (size_t I = 0; I != Operands.size() && I != S.Inputs.size(); ++I) {
    size_t Times = llvm::count(S.Inputs[I], Batch->Letter);
    if (Added && I == 0 && Operands[I].replicated() && Operands[I].Rows == NoRows)
      continue;
    if (Times > 1 || (Times == 1 && Operands[I].Kind != Placement::Sharded && !Operands[I].Nothing)) {
      Out.Kind = Outcome::Crossed;
      Out.Assumed = llvm::all_of(Operands, [](const Value &V) { return V.Kind != Placement::Sharded || V.Rank < 0; });
    }
  }
  return Out;
}
} // namespace

Value contract(ArrayRef<Signature> Signatures, Linearity L, ArrayRef<Value> Operands, ir::ExprId E,
               const std::string &Name, bool *Features, bool Layer) {
  const Value *Reducible = nullptr;
  bool AnyLocal = false, Narrowed = false;
  for (const Value &V : Operands) {
    if (V.Kind == Placement::Unknown || V.Kind == Placement::Own)
      return V;
    AnyLocal |= V.Kind == Placement::Sharded;
    Narrowed |= V.Narrowed;
    if (V.Kind == Placement::Partial || V.Kind == Placement::Mean) {
      if (Reducible || !(V.Kind == Placement::Mean ? L.Affine || L.Linear : L.Linear))
        return Value::unknown("is used (as " + inWords(V) + ") before its parts on the ranks are brought together", E);
      Reducible = &V;
    }
  }
  const Value *Rows = nullptr;
  for (const Value &V : Operands)
    if (V.Kind == Placement::Sharded) {
      if (Rows && Rows->Woven != V.Woven)
        return Value::unknown("joins rows with rows in another order", E);
      Rows = &V;
    }
  if (Reducible && AnyLocal)
    return Value::unknown("joins rows with " + inWords(*Reducible), E);

  // All ranks that the operands may have. What is replicated and unknown is taken as long as its letters.
  std::vector<Outcome> Outcomes;
  llvm::SmallVector<int> Ranks(Operands.size(), -1);
  for (const Signature &S : Signatures) {
    auto Try = [&](auto &Self, size_t I) -> void {
      if (I == Operands.size()) {
        if (std::optional<Outcome> O = tryRanks(S, Operands, Ranks, L.Affine)) {
          O->Given.assign(Ranks.begin(), Ranks.end());
          Outcomes.push_back(std::move(*O));
        }
        return;
      }
      const Value &V = Operands[I];
      Ranks[I] = V.Rank;
      if (V.Rank >= 0 || V.Kind != Placement::Sharded)
        return Self(Self, I + 1);
      // Of the same unknown rank as an operand before.
      for (size_t J = 0; J != I && V.RankOf != ir::None; ++J)
        if (const Value &O = Operands[J]; O.Kind == Placement::Sharded && O.Rank < 0 && O.RankOf == V.RankOf) {
          Ranks[I] = Ranks[J] - O.RankPlus + V.RankPlus;
          return Self(Self, I + 1);
        }
      int Least = std::max<int>({V.Least, V.Dim + 1, I < S.Inputs.size() ? int(S.Inputs[I].size()) - 1 : 0});
      for (Ranks[I] = Least; Ranks[I] != Least + 4; ++Ranks[I])
        Self(Self, I + 1);
    };
    Try(Try, 0);
  }
  // A layer's features aren't the batch, and neither is what a table of weights is multiplied with, unless nothing else
  // is left.
  auto Meets = [](const Outcome &O) { return O.Kind == Outcome::Coupled || O.Kind == Outcome::Crossed; };
  // (A matrix may be the batch with its features: `linalg_svd(out)`.)
  const bool Matrix =
      (Signatures.size() == 1 && Signatures[0].Inputs.size() == 1 && Signatures[0].Inputs[0] == ".IJ") ||
      (StringRef(Name).ends_with("scaled_dot_product_attention") && Operands[0].Kind == Placement::Sharded &&
       Operands[0].Dim > 0); // `attention(out.unsqueeze(0), ..)`
  if (!Matrix && !llvm::all_of(Outcomes, Meets))
    llvm::erase_if(Outcomes, [&](const Outcome &O) {
      bool Said = O.Narrowed || O.Kind == Outcome::Crossed;
      if (!Meets(O) || !O.Assumed || (Said && !Features) || (O.Narrowed && !Layer))
        return false;
      if (Said)
        *Features = true;
      return true;
    });
  // Rows that lie where they are summed over on one side, `codes.t().matmul(z)`, meet the rows of the other there.
  auto Sums = [](const Outcome &O) { return O.Kind == Outcome::Partial; };
  const bool Told = llvm::any_of(Operands, [](const Value &V) { return V.Kind == Placement::Sharded && V.Rank >= 0; });
  if (Features && Told && L.Linear && llvm::any_of(Outcomes, Sums) &&
      llvm::all_of(Outcomes, [&](const Outcome &O) { return Sums(O) || O.Kind == Outcome::Crossed; })) {
    const size_t All = Outcomes.size();
    llvm::erase_if(Outcomes, [&](const Outcome &O) { return !Sums(O); });
    *Features |= Outcomes.size() != All;
  }
  Value Result = Value::of(Placement::Replicated, E);
  // A mask for each row and head of attention, `[B * heads, T, S]`: of other rows than an operand that is cut.
  for (size_t I = 0; I != Operands.size() && AnyLocal && Outcomes.empty(); ++I)
    if (const Value &V = Operands[I]; V.Kind == Placement::Replicated && !V.Nothing && V.Rank > 2 && I > 0 &&
                                      llvm::all_of(Signatures, [&](const Signature &S) {
                                        return I < S.Inputs.size() && S.Inputs[I].find('.') == std::string::npos &&
                                               V.Rank > int(S.Inputs[I].size());
                                      }))
      return Value::unknown(
          "is given one operand cut by rows and another with more dimensions than `" + Name + "` shares among rows", E);
  if (Outcomes.empty() && llvm::any_of(Operands, [](const Value &V) { return V.Rank >= 0; })) {
    // LibTorch would throw: what was counted is wrong.
    std::vector<Value> Uncounted(Operands.begin(), Operands.end());
    for (Value &V : Uncounted)
      V.forgetRank();
    return contract(Signatures, L, Uncounted, E, Name, Features, Layer);
  }
  if (Outcomes.empty())
    return AnyLocal    ? Value::unknown("has another number of dimensions than `" + Name + "` takes rows with", E)
           : Reducible ? *Reducible
                       : Result;
  const Outcome &First = Outcomes.front();
  bool OneRank = true;
  for (const Outcome &O : Outcomes) {
    OneRank &= O.Rank == First.Rank;
    if (O.Kind == Outcome::Coupled)
      return Value::unknown("runs along the batch (`" + Name + "`)", E);
    if (O.Kind == Outcome::Crossed || !O.same(First) || (O.Kind == Outcome::Partial && !L.Linear))
      return Value::unknown("multiplies rows of the batch with each other (`" + Name + "`)", E);
  }
  if (First.Kind == Outcome::Partial) {
    Result = Value::partial(true, E);
  } else if (First.Kind == Outcome::Rows) {
    Result = Value::sharded(First.Dims.front(), E);
    for (const Value &V : Operands)
      if (V.Kind == Placement::Sharded) {
        Result.Source = V.Source;
        Result.Woven = V.Woven;
        break;
      }
    if (First.Dims.size() > 1 && First.Dims[1] != First.Dims[0])
      Result.RestDim = int8_t(First.Dims[1]);
  } else if (Reducible) {
    Result = *Reducible;
    Result.forgetRank();
  }
  // It has lost dimensions: the batch may be its only one.
  for (const Outcome &O : Outcomes)
    for (size_t I = 0; I != Operands.size(); ++I)
      Result.Narrowed |= Operands[I].Kind == Placement::Sharded && O.Rank < O.Given[I];
  // What stands behind a tuple's first element has a rank of its own.
  for (const Signature &S : Signatures)
    if (llvm::any_of(S.Outputs, [&](const std::string &O) { return O.size() != S.Outputs.front().size(); }))
      return Result;
  // A whole of which it isn't known how many dimensions it has keeps those that it has at least, `embedding(tokens)`.
  if (const Signature &S = Signatures.front(); Result.replicated() && Signatures.size() == 1 && !Operands.empty() &&
                                               Operands[0].Rank < 0 && !S.Inputs.empty() && S.Inputs[0][0] == '.' &&
                                               S.Outputs.front()[0] == '.') {
    const int Least = Operands[0].Least + int(S.Outputs.front().size()) - int(S.Inputs[0].size());
    Result.Least = int8_t(std::max(Least, 0));
    return Result;
  }
  // Of one operand, the result's rank follows from its own.
  bool Follows = false;
  for (size_t I = 0; I != Operands.size() && I != Signatures.front().Inputs.size(); ++I)
    if ((Operands[I].Kind == Placement::Sharded || !AnyLocal) && Operands[I].Rank < 0 &&
        Signatures.front().Inputs[I].find('.') != std::string::npos)
      Follows = true;
  Result.Least = First.Rank;
  for (const Outcome &O : Outcomes)
    Result.Least = std::min<int8_t>(Result.Least, O.Rank);
  if (OneRank && !Follows)
    Result.setRank(First.Rank);
  else
    for (size_t I = 0; I != Operands.size() && Result.RankOf == ir::None; ++I) {
      const Value &V = Operands[I];
      int More = First.Rank - First.Given[I];
      if (V.Kind == Placement::Sharded && V.Rank < 0 && V.RankOf != ir::None &&
          llvm::all_of(Outcomes, [&](const Outcome &O) { return O.Rank - O.Given[I] == More; })) {
        Result.RankOf = V.RankOf;
        Result.RankPlus = int8_t(V.RankPlus + More);
      }
    }
  return Result;
}

//===----------------------------------------------------------------------===//
// Along some dimensions
//===----------------------------------------------------------------------===//

Value along(Value V, ArrayRef<int64_t> Dims, ir::ExprId E, const std::string &Name) {
  if (V.Kind != Placement::Sharded)
    return V;
  for (int64_t N : Dims)
    switch (locate(V, N)) {
    case Side::Batch:
      return Value::unknown("runs along the batch (`" + Name + "`)", E);
    case Side::Unknown:
      return uncounted(V, E, Name);
    default:
      V.Least = std::max<int8_t>(V.Least, N < 0 ? 0 : int8_t(N + 1)); // it has this dimension
      break;
    }
  return V;
}

Value over(Value V, ArrayRef<int64_t> Dims, std::optional<bool> Keep, bool &Batch, ir::ExprId E,
           const std::string &Name) {
  int Before = 0;
  Batch = false;
  if (V.Kind == Placement::Sharded)
    for (int64_t N : Dims)
      switch (locate(V, N)) {
      case Side::Batch:
        Batch = true;
        break;
      case Side::Before:
        ++Before;
        break;
      case Side::Unknown:
        return uncounted(V, E, Name);
      case Side::Behind:
        break;
      }
  if (!Keep && Before > 0 && !Batch)
    return Value::unknown("drops dimensions or keeps them, which isn't known here (`" + Name + "`)", E);
  if (Keep && *Keep)
    return V;
  int8_t Least = V.Least - int(Dims.size());
  if (Keep)
    V.addToRank(-int(Dims.size()));
  else
    V.forgetRank();
  V.Least = std::max<int8_t>(Least, 0);
  V.Dim -= Batch ? 0 : Before;
  V.Narrowed = true;
  return V;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// From the front, if that can be told.
static int64_t fromFront(const Value &V, int64_t N) { return N < 0 && V.Rank >= 0 ? N + V.Rank : N; }

Value transposed(Value V, int64_t A, int64_t B, ir::ExprId E) {
  if (V.Kind != Placement::Sharded)
    return V;
  Side OfA = locate(V, A), OfB = locate(V, B);
  if (OfA == Side::Unknown || OfB == Side::Unknown)
    return uncounted(V, E, "transpose");
  int64_t To = OfA == Side::Batch ? fromFront(V, B) : OfB == Side::Batch ? fromFront(V, A) : int64_t(V.Dim);
  if (To < 0)
    return Value::unknown("moves the batch to a dimension counted from the end", E);
  V.Dim = To;
  V.Least = std::max<int8_t>({V.Least, int8_t(V.Dim + 1), int8_t(std::max(A, B) + 1)});
  return V;
}

Value permuted(Value V, ArrayRef<int64_t> Dims, ir::ExprId E) {
  V.setRank(Dims.size());
  if (V.Kind != Placement::Sharded)
    return V;
  for (size_t I = 0; I != Dims.size(); ++I)
    if (fromFront(V, Dims[I]) == V.Dim) {
      V.Dim = I;
      return V;
    }
  return Value::unknown("permutes the batch's dimension in a way that isn't followed", E);
}

Value unsqueezed(Value V, int64_t Dim, ir::ExprId E) {
  if (V.Kind == Placement::Sharded) {
    int64_t At = Dim < 0 && V.Rank >= 0 ? Dim + V.Rank + 1 : Dim;
    if (At < -1 && -At > V.Least - V.Dim)
      return uncounted(V, E, "unsqueeze");
    if (At >= 0 && At <= V.Dim)
      V.Dim += 1;
  }
  V.addToRank(1);
  V.Least = std::max<int8_t>(V.Least, V.Dim + 1);
  return V;
}

Value squeezed(Value V, ArrayRef<int64_t> Dims, ir::ExprId E) {
  if (V.Kind != Placement::Sharded) {
    if (Dims.empty() || V.Rank < 0)
      V.forgetRank();
    else
      V.addToRank(-int(Dims.size())); // as below
    return V;
  }
  int Before = 0;
  for (int64_t N : Dims)
    switch (locate(V, N)) {
    case Side::Batch:
      return Value::unknown("squeezes the batch's dimension", E);
    case Side::Unknown:
      return uncounted(V, E, "squeeze");
    case Side::Before:
      ++Before;
      break;
    case Side::Behind:
      break;
    }
  // A dimension that isn't 1 stays; who names one means that it goes.
  if (Dims.empty())
    V.forgetRank();
  else
    V.addToRank(-int(Dims.size()));
  V.Dim -= Before;
  V.Least = V.Dim + 1;
  V.Narrowed = true;
  return V;
}

Value flattened(Value V, int64_t First, int64_t Last, ir::ExprId E) {
  if (V.Kind != Placement::Sharded) {
    V.forgetRank();
    return V;
  }
  Side From = locate(V, First), To = locate(V, Last);
  int64_t F = fromFront(V, First), L = fromFront(V, Last);
  if (To == Side::Unknown && First == 0 && Last == -1)
    To = Side::Behind; // all of it
  if (From == Side::Unknown || To == Side::Unknown)
    return uncounted(V, E, "flatten");
  if (From == Side::Before && To != Side::Before) {
    if (F != 0 || V.Woven)
      return Value::unknown("flattens a batch that isn't cut along its first dimension", E);
    V.Dim = 0;
    V.Woven = true;
  }
  if (To == Side::Before && F >= 0 && L >= 0)
    V.Dim -= L - F;
  if (F >= 0 && Last == -1)
    V.setRank(F + 1);
  else if (F >= 0 && L >= 0)
    V.addToRank(F - L);
  else
    V.forgetRank();
  V.Narrowed = From == Side::Batch || V.Woven;
  return V;
}

Value unflattened(Value V, int64_t Dim, unsigned Into, ir::ExprId E) {
  if (V.Kind == Placement::Sharded)
    switch (locate(V, Dim)) {
    case Side::Batch:
      return Value::unknown("cuts the batch's dimension in parts", E);
    case Side::Unknown:
      return uncounted(V, E, "unflatten");
    case Side::Before:
      V.Dim += Into - 1;
      break;
    case Side::Behind:
      break;
    }
  if (Into == 0)
    V.forgetRank();
  else
    V.addToRank(int(Into) - 1);
  return V;
}

Value selected(Value V, int64_t Dim, ir::ExprId E) {
  if (V.Kind != Placement::Sharded) {
    V.addToRank(-1);
    return V;
  }
  Side Where = locate(V, Dim);
  if (Where == Side::Batch)
    return Value::unknown("picks rows of a batch by number", E);
  if (Where == Side::Unknown)
    return uncounted(V, E, "select");
  V.Dim -= Where == Side::Before;
  V.addToRank(-1);
  V.Least = std::max<int8_t>(V.Least, V.Dim + 1);
  V.Narrowed = true;
  return V;
}

} // namespace migrate
