//===- InterpreterArguments.cpp - What an operation is given --------------===//
//
// Beside its tensors: positions, and setters of options, by the parameters that its row in rules/operations.yaml names.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/StringRef.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

void collectItems(const Program &P, ir::ExprId Arg, std::vector<ir::ExprId> &Into) {
  const ir::Expr &A = P.Code.Exprs[Arg];
  bool Several = A.Kind == ExprKind::List || ((A.Kind == ExprKind::Construct || A.Kind == ExprKind::Cast) &&
                                              P.Code.type(Arg).Kind != TypeKind::Tensor);
  if (Several) {
    for (ir::ExprId Sub : A.Args)
      collectItems(P, Sub, Into);
    return;
  }
  if (!StringRef(A.Name).ends_with("nullopt"))
    Into.push_back(Arg);
}

/// What stands behind the tensors, by the parameters of the operation's row: positions, and setters of options.
Interpreter::Arguments Interpreter::arguments(const OperationRow &Row, llvm::ArrayRef<ir::ExprId> Given) const {
  std::vector<std::vector<ir::ExprId>> Positions;
  Arguments Result;
  auto IsOptions = [&](ir::ExprId E) {
    StringRef Type = P.Code.type(E).Name;
    return Type.contains("Options") && !Type.ends_with("TensorOptions");
  };
  std::function<void(ir::ExprId, int)> Add = [&](ir::ExprId Arg, int Levels) {
    const ir::Expr &A = P.Code.Exprs[Arg];
    const ir::Type &T = P.Code.type(Arg);
    if (IsOptions(Arg) && Levels > 0) {
      auto Set = [&](const ir::Expr &Call) {
        if (!Call.Args.empty()) {
          std::vector<ir::ExprId> &Items = Result[StringRef(Call.Name).rsplit("::").second.str()];
          Items.clear();
          collectItems(P, Call.Args[0], Items);
        }
      };
      if (A.Kind == ExprKind::Call && A.Object != None) { // a setter: what it is called on was set before
        Add(A.Object, Levels - 1);
        Set(A);
      } else if (A.Kind == ExprKind::Ref || A.Kind == ExprKind::Field) {
        if (auto It = R.Init.find(A.Var); It != R.Init.end())
          Add(It->second, Levels - 1);
        if (auto It = OptionCalls.find(A.Var); It != OptionCalls.end())
          for (ir::ExprId Call : It->second)
            Set(P.Code.Exprs[Call]);
      } else {
        for (ir::ExprId Sub : A.Args)
          Add(Sub, Levels - 1);
      }
      return;
    }
    if (T.Kind == TypeKind::Tensor || T.Kind == TypeKind::Enum || T.Kind == TypeKind::Device ||
        T.Kind == TypeKind::DeviceType || StringRef(T.Name).ends_with("TensorOptions"))
      return;
    if (T.Kind == TypeKind::Container && StringRef(T.Name).contains("at::Tensor"))
      return; // operands
    std::vector<ir::ExprId> Items;
    collectItems(P, Arg, Items);
    if (!Items.empty() && P.Code.type(Items[0]).Kind == TypeKind::Tensor)
      return;
    Positions.push_back(std::move(Items));
  };
  readSettings();
  for (ir::ExprId Arg : Given)
    Add(Arg, 8);
  // `sort(/*stable=*/true, dim)`: no dimension is a bool.
  if (!Row.Parameters.empty() && StringRef(Row.Parameters[0].Name).starts_with("dim") && !Positions.empty() &&
      Positions[0].size() == 1 && P.Code.type(Positions[0][0]).Kind == TypeKind::Bool)
    Positions.erase(Positions.begin());
  for (size_t I = 0; I != Positions.size() && I != Row.Parameters.size(); ++I)
    if (!Positions[I].empty())
      Result.try_emplace(Row.Parameters[I].Name, Positions[I]);
  return Result;
}

/// The dimensions that an operation runs along or over.
Interpreter::Dimensions Interpreter::dimensions(const OperationRow &Row, const Arguments &Args,
                                                ir::ExprId Tensor) const {
  Dimensions D;
  for (const Parameter &Candidate : Row.Parameters) {
    if (Candidate.Name != "dim" && Candidate.Name != "dims")
      continue;
    auto It = Args.find(Candidate.Name);
    if (It == Args.end() || (It->second.size() == 1 && P.Code.type(It->second[0]).Kind == TypeKind::Bool)) {
      D.All = Candidate.Default.empty();
      D.Known = Candidate.Default;
      return D;
    }
    for (ir::ExprId Item : spelledOut(It->second))
      if (auto N = dimension(Item, Tensor))
        D.Known.push_back(*N);
      else
        D.Unknown = true;
    return D;
  }
  D.All = true;
  return D;
}

/// The number that a parameter was given, or its default.
std::optional<int64_t> Interpreter::number(const OperationRow &Row, const Arguments &Args, StringRef Name) const {
  if (auto It = Args.find(Name.str()); It != Args.end())
    return It->second.size() == 1 ? integer(It->second[0]) : std::nullopt;
  const Parameter *Declared = Row.parameter(Name);
  return Declared && !Declared->Default.empty() ? std::optional(Declared->Default[0]) : std::nullopt;
}

} // namespace migrate
