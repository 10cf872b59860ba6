//===- TextPlaces.h - Where in a text new lines go ------------------------===//
#ifndef ACCELERATE_MIGRATE_RULES_TEXTPLACES_H
#define ACCELERATE_MIGRATE_RULES_TEXTPLACES_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace migrate {

/// Behind the `#endif` of the conditional that has nothing more behind `End`: the other builds prepare as well.
uint32_t behindConditional(llvm::StringRef Source, uint32_t End);

/// New lines go above the comments that switch rules off in the next one.
uint32_t aboveSuppressions(llvm::StringRef Source, uint32_t Begin);

/// Where a file's own lines begin, behind a byte order mark, comments, and `#pragma once` or an include guard.
uint32_t behindGuard(llvm::StringRef Source);

} // namespace migrate

#endif
