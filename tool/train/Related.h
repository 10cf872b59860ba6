//===- Related.h - Where a difference in training may come from -----------===//
#ifndef ACCELERATE_MIGRATE_TRAIN_RELATED_H
#define ACCELERATE_MIGRATE_TRAIN_RELATED_H

#include "Driver.h"
#include "project/Project.h"

namespace migrate {

/// Names the places where the rules that concern a difference have edited the program, or found something in it.
/// `Document`: the JSON file of `accelerate-cpp verify`, which knows the kind of the difference, and its rules.
void sayRelatedPlaces(llvm::StringRef Document, const Result &Final, const ProgramResult &Program, const Project &Tree,
                      llvm::raw_ostream &Said);

} // namespace migrate

#endif
