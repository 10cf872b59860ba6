//===- Kinds.h - What expressions and types are, by their names -----------===//
#ifndef ACCELERATE_MIGRATE_INFER_KINDS_H
#define ACCELERATE_MIGRATE_INFER_KINDS_H

#include "infer/Program.h"
#include "llvm/ADT/StringRef.h"
#include <vector>

namespace migrate {

/// The items of `{-1, 320}`, which arrives wrapped in an array reference, an initializer list, a vector.
void collectItems(const Program &P, ir::ExprId Arg, std::vector<ir::ExprId> &Into);

/// The tensor that `t.data_ptr()` points into; None of anything else.
ir::ExprId pointee(const Program &P, ir::ExprId Address);

/// Whether an expression throws.
inline bool throws(const ir::Expr &X) { return X.Kind == ir::ExprKind::Unknown && X.Name == "CXXThrowExpr"; }
/// Whether what a method gives lies in its object.
bool isView(llvm::StringRef Name);
/// `x.add_(y)`: a tensor's method that writes its object, and gives it.
inline bool changesInPlace(const ir::Expr &X) {
  const llvm::StringRef Name = X.Name;
  return X.Kind == ir::ExprKind::Call && X.Object != ir::None && Name.starts_with("at::Tensor::") &&
         Name.ends_with("_") && !Name.ends_with("requires_grad_");
}
/// Whether what an operation gives has no graph, whatever it is given: comparisons, numbers of rows.
bool losesGraph(const ir::Expr &X);
/// Whether a method puts what it is given into its object.
bool isCollecting(llvm::StringRef Name);
/// The same of what may have lain there.
bool replacesItems(const ir::Expr &X);
/// What makes an item of a list of several values that are written with it: `Entry{epoch, loss.item<double>()}`,
/// `{loss.item<double>(), x.size(0)}`, `std::make_pair(a, b)`. None of anything else.
ir::ExprId madeBy(const Program &P, ir::ExprId Item);
/// The functions that `E` names: a lambda, a function, a pointer to one.
void functionsNamed(const Program &P, ir::ExprId E, std::vector<ir::FuncId> &Into);
/// Whether an expression has a function run that it is given: in a thread, by a pool's task, at once.
bool startsTask(const Program &P, ir::ExprId E);
/// The object that `std::make_shared<Log>(Log{step, loss})` copies. None of anything else.
ir::ExprId copiedObject(const Program &P, ir::ExprId E);
/// Whether a function draws a number from the standard library's generators.
bool drawsNumber(llvm::StringRef Name);
bool drawsFromLibrary(llvm::StringRef Name); ///< of C's `rand`

/// Whether a function tells what may differ between processes, or changes what they have in common: clocks, entropy,
/// files.
bool differsOrChanges(llvm::StringRef Name);
bool changesFile(llvm::StringRef Name);
bool makesFolder(llvm::StringRef Name);
bool isQuery(llvm::StringRef Name);
/// Options of optimizers and loaders, and those of layers.
bool ofOptions(const ir::Type &T);
bool ofLayer(const ir::Type &T);
/// `double[10]`, `std::vector<int>`, `std::array<float, 3>`, and such of them.
bool holdsNumbers(llvm::StringRef Type);
/// A pair or tuple that holds lists of numbers, or such, beside tensors.
bool holdsBoth(llvm::StringRef Type);
/// `T<int>` of the rest of a type's name, `T<int>, D>`.
llvm::StringRef firstArgument(llvm::StringRef Rest);
/// An iterator of a container of the standard library.
inline bool isIterator(const ir::Type &T) {
  const llvm::StringRef Name = T.Name;
  return Name.contains("__normal_iterator<") || Name.starts_with("std::_Rb_tree_") || Name.starts_with("std::_List_") ||
         Name.starts_with("std::__detail::_Node_") || Name.starts_with("std::_Deque_iterator<") ||
         Name.starts_with("std::reverse_iterator<");
}
/// What is a tensor, or an accessor of one: its rows are told by their number.
inline bool hasRows(const ir::Type &T) {
  return T.Kind == ir::TypeKind::Tensor || llvm::StringRef(T.Name).contains("TensorAccessor");
}
/// A tensor, or a list or tuple of them.
inline bool holdsTensors(const ir::Type &T) {
  return T.Kind == ir::TypeKind::Tensor ||
         (T.Kind == ir::TypeKind::Container && llvm::StringRef(T.Name).contains("at::Tensor"));
}

} // namespace migrate

#endif
