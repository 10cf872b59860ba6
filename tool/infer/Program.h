//===- Program.h - Units joined by USR ------------------------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_PROGRAM_H
#define ACCELERATE_MIGRATE_INFER_PROGRAM_H

#include "infer/Teaching.h"
#include "ir/Unit.h"
#include "project/Project.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace migrate {

/// One program: the units that are linked into it, in one index space. Functions that several units hold (inline
/// ones, template instantiations) stand in it once; fields and globals are one variable each.
struct Program {
  std::string Name; ///< the build target, or the main file's stem
  ir::Unit Code;
  std::vector<std::string> Sources, Targets; ///< of its units, side by side
  bool holds(const ir::Unit &U) const;
  ir::FuncId Main = ir::None;
  Teaching Taught; ///< what its configuration says
  llvm::StringMap<ir::FuncId> ByUsr;
  llvm::StringMap<std::vector<ir::FuncId>> Overriders; ///< by the USR of what they override

  /// The body that a call runs: the function itself, or the override that the object's class has.
  ir::FuncId callee(const ir::Expr &Call) const;
  /// The bodies that a call may run: its own, and those of overriders.
  std::vector<ir::FuncId> bodies(const ir::Expr &Call) const;

  /// Of some functions, those that one template was instantiated to, by where it stands.
  std::map<std::string, std::vector<ir::FuncId>> instantiations(const std::set<ir::FuncId> &Of) const;
  /// The values that a function returns; none of a body that isn't known.
  std::vector<ir::ExprId> returned(ir::FuncId F) const;
  /// The statements of a function's body, `int main() try { … }` included.
  const std::vector<ir::StmtId> &statements(ir::FuncId F) const;
  /// What a map of tensors keeps under a name that is written out, `batch["x"]`, `batch.at("x")`: a variable of its
  /// own, as if the map were a struct. None of any other expression, and of names that nothing asks for.
  ir::VarId entry(const ir::Expr &X) const;
  ir::VarId entryNamed(ir::ExprId Key) const;
  llvm::StringMap<ir::VarId> Entries; ///< by their names, of all maps
  /// An object of the project's that a pair or tuple holds, `std::get<1>(result)`, `result.second`, or a name of
  /// `auto [loss, meter]`: a variable of its own, as if the tuple were a struct. None of any other expression.
  ir::VarId held(const ir::Expr &X) const;
  ir::VarId held(size_t Index, const ir::Type &T) const; ///< None where nothing asks for it
  std::map<std::pair<size_t, std::string>, ir::VarId> Held; ///< by index and type, of all tuples
  /// The mode that a call of `fopen` is given, empty if it isn't written out; unset of any other expression.
  std::optional<llvm::StringRef> fopenMode(ir::ExprId E) const;

  /// What an expression gives, without the conversions and constructions of one value around it.
  ir::ExprId unconverted(ir::ExprId E) const;
  /// Whether a variable or member keeps a scheduler, and isn't another's name.
  bool keepsScheduler(ir::VarId V) const {
    const ir::Type &T = Code.typeOf(V);
    return T.Kind == ir::TypeKind::Scheduler && !T.Reference && !Code.Vars[V].Param;
  }

  void forEachExpr(ir::ExprId E, llvm::function_ref<void(ir::ExprId)> Visit) const;
  void forEachExprIn(ir::StmtId S, llvm::function_ref<void(ir::ExprId)> Visit) const;
  void forEachStmt(ir::StmtId S, llvm::function_ref<void(ir::StmtId)> Visit) const;
};

/// What a program is called whose `main` stands in a source: as its build target, else as the source.
std::string programName(llvm::StringRef Source, llvm::StringRef Target);

/// Sorts units into programs: those of one build target with a `main`, with what other targets' units define for
/// them: of the targets that are linked, where CMake says so (`Project::Targets`), else by the symbols that are needed.
/// Units that belong to no program come back in `Unused`.
std::vector<Program> link(std::vector<ir::Unit> Units, const Project &Tree, std::vector<ir::Unit> &Unused);

} // namespace migrate

#endif
