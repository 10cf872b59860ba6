//===- Dump.h - What the inference found, beside the source ---------------===//
#ifndef ACCELERATE_MIGRATE_REPORT_DUMP_H
#define ACCELERATE_MIGRATE_REPORT_DUMP_H

#include "infer/Interpreter.h"
#include "infer/Structure.h"
#include "project/Project.h"
#include "rules/Apply.h"

namespace migrate {

/// `roles`: models, optimizers, loaders with their places. `placements`: the type of each named value, by line.
void dump(llvm::StringRef What, const Program &P, const Roles &R, const Findings &F, const Project &Tree,
          const FileTexts &Texts, llvm::raw_ostream &Out);

} // namespace migrate

#endif
