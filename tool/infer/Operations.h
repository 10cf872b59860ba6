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

  /// Reads the rows of a user's `operations.yaml`, if the folder has one: of own functions, by qualified name. If
  /// `Wins`, a row stands in for one of a folder that was added before, which is an error otherwise.
  llvm::Error add(llvm::StringRef Dir, bool Wins);

  /// The row for a qualified name: `at::Tensor::relu_`, `torch::nn::functional::relu` and `at::relu` are one
  /// operation, `relu`; modules are found by their class, `Conv2d`. `InPlace` tells the trailing underscore.
  const Operation *find(llvm::StringRef Qualified, bool &InPlace) const;

  /// The row that a user wrote for a function, which counts more than the function's body.
  const Operation *findOwn(llvm::StringRef Qualified) const {
    auto It = Own.find(Qualified);
    return It == Own.end() ? nullptr : &It->second;
  }

private:
  llvm::StringMap<Operation> Rows, Own;
};

} // namespace migrate

#endif
