//===- Variants.h - The program of an example, written in other ways ------===//
//
// What a rule does must not depend on how its example happens to be written. Each variant is made from the example's
// program, is migrated like it, and is compared with what became of it.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_VARIANTS_H
#define ACCELERATE_MIGRATE_VARIANTS_H

#include "Driver.h"
#include "rules/Rule.h"

namespace migrate {

/// Comments around an example in its program; a program without them is the example.
inline constexpr llvm::StringLiteral ExampleBegins = "// the example begins", ExampleEnds = "// the example ends";

/// What became of one program.
struct ExampleOutcome {
  std::string Before, Now;
  std::vector<Finding> Findings;
  bool Edited = false;
  Verdict What = Verdict::NothingToDo;
  std::string Reason;
};

/// The first and last line of the example in its program.
std::pair<unsigned, unsigned> exampleLines(llvm::StringRef Program);

/// The program of an example of the rule `Code`, written otherwise; none if that can't be done to it.
std::optional<std::string> written(Variant V, llvm::StringRef Program, llvm::StringRef Code);

/// What is wrong with that of a variant, beside that of the example itself; empty if nothing is. For `Variant::Again`
/// it is that of the migrated program.
std::string whatIsWrong(Variant V, const Rule &R, const RuleExample &E, const ExampleOutcome &Example,
                        const ExampleOutcome &Other);

} // namespace migrate

#endif
