//===- Taught.h - Where functions stand that users have taught ------------===//
#ifndef ACCELERATE_MIGRATE_INFER_TAUGHT_H
#define ACCELERATE_MIGRATE_INFER_TAUGHT_H

#include "infer/Facts.h"
#include "infer/Program.h"
#include "infer/Roles.h"

namespace migrate {

/// Bodies that taught functions run. What they do is known already: nothing in them is edited.
struct TaughtBodies {
  std::set<ir::FuncId> Only; ///< nothing else runs these
  std::set<ir::FuncId>
      Shared; ///< the program runs these by itself, too, and the main process alone for loggers and saves
};
TaughtBodies taughtBodies(const Program &P);

/// Calls of taught loggers and saves go to the main process: facts `main-process-call`, `main-process-save`,
/// `main-process-save-alone` (where one statement is wanted) and `main-process-value`. `Text` is the source.
void mainProcessFacts(const Program &P, const Roles &R, llvm::function_ref<std::string(const ir::Range &)> Text,
                      Facts &Out);

/// Expressions that give a device by a taught function or class, where a `torch::Device` is wanted.
std::vector<ir::ExprId> taughtDevices(const Program &P);

} // namespace migrate

#endif
