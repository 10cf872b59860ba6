//===- Structure.h - Facts for the rules, from roles and placements -------===//
#ifndef ACCELERATE_MIGRATE_INFER_STRUCTURE_H
#define ACCELERATE_MIGRATE_INFER_STRUCTURE_H

#include "infer/Facts.h"
#include "infer/Findings.h"
#include "infer/Program.h"
#include "infer/Roles.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace migrate {

/// The bytes of a range of the program's source.
using SourceText = llvm::function_ref<std::string(const ir::Range &)>;

/// What the rules may act on: where devices are chosen and moves stand, where to prepare, how each backward and each
/// metric is to be written, and what can't be kept. Empty where the program trains nothing.
Facts deriveFacts(const Program &P, const Roles &R, const Findings &F, SourceText Text);

/// Whether the program never leaves the CPU by itself.
bool choosesCpu(const Program &P);

} // namespace migrate

#endif
