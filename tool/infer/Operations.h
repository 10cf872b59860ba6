//===- Operations.h - How operations move placements: data in rules/ ------===//
#ifndef ACCELERATE_MIGRATE_INFER_OPERATIONS_H
#define ACCELERATE_MIGRATE_INFER_OPERATIONS_H

#include "infer/Dimensions.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>

namespace migrate {

/// What an operation does to a batch that is cut by rows; rules/operations.yaml explains each kind.
enum class Operation {
  RowWise,
  Linear,
  Contract,
  Sum,
  Mean,
  AlongDim,
  OverDim,
  Windows,
  Coupled,
  Scatter,
  Lookup,
  Count,
  Loss,
  ClassLoss,
  Reshape,
  Index,
  Select,
  Cat,
  Stack,
  Transpose,
  Permute,
  Unsqueeze,
  Squeeze,
  Flatten,
  Unflatten,
  Expand,
  Pad,
  PadSequence,
  EinSum,
  TensorDot,
  Factory,
  Noise,
  Like,
  NoiseLike,
  Metadata,
  Extent,
  Tuple,
  Item,
  Number,
  Replicated,
  Update,
  Container,
  Wrapper,
  NoiseModule,
  CoupledModule,
};

/// `dim=-1`: a parameter behind the tensors, as the table declares it.
struct Parameter {
  std::string Name;
  bool Optional = false;
  std::vector<int64_t> Default; ///< empty: all dimensions
};

/// What happens on a batch without rows.
enum class OnEmpty { Works, NotANumber, Throws };

struct OperationRow {
  Operation Kind = Operation::RowWise;
  std::vector<Signature> Signatures; ///< alternatives, of Contract and ClassLoss
  std::string Option;                ///< of a module that was given it, `WithOption` holds instead
  std::vector<Signature> WithOption;
  Linearity Of;
  bool DeclaresParameters = false;
  std::vector<Parameter> Parameters;
  OnEmpty Empty = OnEmpty::Works;
  /// The option of a module that makes it draw, keep statistics of its rows, write to its weight; or `always`.
  std::string DropsOut, KeepsStatistics, WritesWeight;

  const Parameter *parameter(llvm::StringRef Name) const;
};

class OperationTable {
public:
  static llvm::Expected<OperationTable> load(llvm::StringRef RulesDir);

  /// Reads the rows of a user's `operations.yaml`, if the folder has one: of own functions, by qualified name. If
  /// `Wins`, a row stands in for one of a folder that was added before, which is an error otherwise.
  llvm::Error add(llvm::StringRef Dir, bool Wins);

  /// The row for a qualified name: `at::Tensor::relu_`, `torch::nn::functional::relu` and `at::relu` are one
  /// operation, `relu`; modules are found by their class, `Conv2d`. `InPlace` tells the trailing underscore.
  const OperationRow *find(llvm::StringRef Qualified, bool &InPlace) const;

  /// The row of a module's class, `torch::nn::Conv2d` or `torch::nn::Conv2dImpl`.
  const OperationRow *module(llvm::StringRef Class) const;

  /// The row that a user wrote for a function, which counts more than the function's body.
  const OperationRow *findOwn(llvm::StringRef Qualified) const {
    auto It = Own.find(Qualified);
    return It == Own.end() ? nullptr : &It->second;
  }

private:
  llvm::StringMap<OperationRow> Rows, Own;
};

} // namespace migrate

#endif
