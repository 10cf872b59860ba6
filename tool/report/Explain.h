//===- Explain.h - What a rule does and why, from its file ----------------===//
#ifndef ACCELERATE_MIGRATE_REPORT_EXPLAIN_H
#define ACCELERATE_MIGRATE_REPORT_EXPLAIN_H

#include "rules/Configuration.h"
#include "llvm/Support/raw_ostream.h"

namespace migrate {

/// Prints the page of the rule with this code or name, or the list of all rules if it is empty. False if there is no
/// such rule.
bool explain(const InForce &Here, llvm::StringRef CodeOrName, llvm::raw_ostream &Out, llvm::raw_ostream &Err);

} // namespace migrate

#endif
