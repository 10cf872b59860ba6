//===- Dump.h - What the inference found, beside the source ---------------===//
#ifndef ACCELERATE_MIGRATE_REPORT_DUMP_H
#define ACCELERATE_MIGRATE_REPORT_DUMP_H

#include "infer/Findings.h"
#include "infer/Structure.h"
#include "project/Project.h"
#include "rules/Apply.h"

namespace migrate {

/// Devices, models, criteria, optimizers, schedulers, loaders, losses, accumulators, values that leave their rank,
/// seeds and outputs, with their places.
void dumpRoles(const Program &P, const Roles &R, const Findings &F, const Facts &Known, const RuleSet &Rules,
               const Project &Tree, llvm::raw_ostream &Out);

/// The type of each named value that isn't equal on all ranks, below its source line.
void dumpPlacements(const Program &P, const Findings &F, const Project &Tree, const FileTexts &Texts,
                    llvm::raw_ostream &Out);

} // namespace migrate

#endif
