//===- Operations.h - How operations move placements: data in rules/ ------===//
#ifndef ACCELERATE_MIGRATE_INFER_OPERATIONS_H
#define ACCELERATE_MIGRATE_INFER_OPERATIONS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>

namespace migrate {

/// What an operation does to a batch that is cut by rows; rules/operations.yaml explains each kind.
enum class Operation {
  RowWise,
  Linear,
  Sum,
  Mean,
  AlongDim,
  Loss,
  Reshape,
  Index,
  Cat,
  Stack,
  Transpose,
  Permute,
  Unsqueeze,
  Squeeze,
  Flatten,
  MatMul,
  Factory,
  Noise,
  Like,
  NoiseLike,
  Metadata,
  Extent,
  Item,
  Number,
  Replicated,
  Update,
  RowModule,
  NoiseModule,
  CoupledModule,
  SequenceModule,
  LossModule,
};

class OperationTable {
public:
  static llvm::Expected<OperationTable> load(llvm::StringRef RulesDir);

  /// The row for a qualified name: `at::Tensor::relu_`, `torch::nn::functional::relu` and `at::relu` are one
  /// operation, `relu`; modules are found by their class, `Conv2d`. `InPlace` tells the trailing underscore.
  const Operation *find(llvm::StringRef Qualified, bool &InPlace) const;

private:
  llvm::StringMap<Operation> Rows;
};

} // namespace migrate

#endif
