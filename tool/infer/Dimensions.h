//===- Dimensions.h - Where an operation takes the batch's dimension ------===//
//
// The kinds of rules/operations.yaml that are about dimensions, on placements alone. Where the rank of a tensor isn't
// known, every rank that it may have is tried: what holds for all of them holds.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_DIMENSIONS_H
#define ACCELERATE_MIGRATE_INFER_DIMENSIONS_H

#include "infer/Placement.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace migrate {

/// `...i,oi->...o`: the dimensions of operands and results by letters; `.` stands for `...` here.
struct Signature {
  std::vector<std::string> Inputs, Outputs;

  static std::optional<Signature> parse(llvm::StringRef Text);
};

/// A dimension of a call that may be counted from the end, beside the batch's.
enum class Side { Before, Batch, Behind, Unknown };
Side locate(const Value &V, int64_t N);

/// Whether it is known how many dimensions two tensors have beside each other.
bool comparable(const Value &A, const Value &B);

/// Element by element, aligned from the right.
Value broadcast(llvm::ArrayRef<Value> Values, ir::ExprId E);

struct Linearity {
  bool Linear = false; ///< in each operand: sums stay sums
  bool Affine = false; ///< means stay means
};

/// By signatures, of which the ranks choose. With `Features`, rows of unknown rank that meet a whole table of weights are
/// taken to have features behind them, and so is what lost some dimensions before a `Layer`; it becomes true then.
Value contract(llvm::ArrayRef<Signature> Signatures, Linearity L, llvm::ArrayRef<Value> Operands, ir::ExprId E,
               const std::string &Name, bool *Features = nullptr, bool Layer = false);

/// Along `Dims` all rows are looked at; they stay.
Value along(Value V, llvm::ArrayRef<int64_t> Dims, ir::ExprId E, const std::string &Name);

/// `Dims` are gone, or 1 if `Keep`; unset if it isn't known. True in `Batch` if the batch's is among them.
Value over(Value V, llvm::ArrayRef<int64_t> Dims, std::optional<bool> Keep, bool &Batch, ir::ExprId E,
           const std::string &Name);

Value transposed(Value V, int64_t A, int64_t B, ir::ExprId E);
Value permuted(Value V, llvm::ArrayRef<int64_t> Dims, ir::ExprId E);
Value unsqueezed(Value V, int64_t Dim, ir::ExprId E);
Value squeezed(Value V, llvm::ArrayRef<int64_t> Dims, ir::ExprId E);
Value flattened(Value V, int64_t First, int64_t Last, ir::ExprId E);
Value unflattened(Value V, int64_t Dim, unsigned Into, ir::ExprId E);
/// One index of `Dim` is taken.
Value selected(Value V, int64_t Dim, ir::ExprId E);

} // namespace migrate

#endif
