//===- Report.h - One small file per output format ------------------------===//
#ifndef ACCELERATE_MIGRATE_REPORT_REPORT_H
#define ACCELERATE_MIGRATE_REPORT_REPORT_H

#include "Driver.h"
#include "project/Project.h"

namespace migrate {

/// The unified diff of all files.
void printDiff(const Result &R, const Project &P, llvm::raw_ostream &Out);
/// Findings in the form of compilers' diagnostics, then a line per program.
void printSummary(const Result &R, const Project &P, bool Applied, llvm::raw_ostream &Err);
/// One document: schema, programs, edits, findings. README.md describes it.
void printJson(const Result &R, const Project &P, llvm::raw_ostream &Out);

} // namespace migrate

#endif
