//===- Examples.h - `accelerate-migrate test`: the examples in rule files -===//
#ifndef ACCELERATE_MIGRATE_EXAMPLES_H
#define ACCELERATE_MIGRATE_EXAMPLES_H

#include "Driver.h"
#include "lower/Parse.h"
#include "rules/Configuration.h"

namespace migrate {

/// The program that examples stand in which bring none: at the end of a training step.
extern const char *const UsualProgram;

/// Runs the examples of all rules in the folder `Dir`, each in a program of its own that is migrated and verified like
/// any other, and says which failed, with a diff. `Tree` holds the command that they are compiled with.
/// False if some failed.
bool testExamples(const Options &O, llvm::StringRef Dir, const Configurations &Configured, const UnitCommand &Command,
                  const ParseOptions &Parsing, const std::string &Identity, llvm::raw_ostream &Out,
                  llvm::raw_ostream &Err);

} // namespace migrate

#endif
