//===- Prefix.h - LibTorch's headers, parsed once for all units -----------===//
//
// Nine tenths of the time of a LibTorch unit go into `<torch/torch.h>`. A precompiled header of it, made with function
// bodies skipped, lies in the user's cache folder and is shared by all units with the same flags: a unit then costs a
// thirtieth (0.3 s instead of 12). It is made when first needed, under a lock, and named by all that it depends on, so
// that a stale one is never read.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_LOWER_PREFIX_H
#define ACCELERATE_MIGRATE_LOWER_PREFIX_H

#include "lower/Parse.h"

namespace migrate {

/// The precompiled header for a unit with these flags (the compiler's name first, the source last), or empty if the
/// unit doesn't include LibTorch, includes it behind macros that could change it, or the header can't be made: the
/// unit is then parsed as it is.
std::string precompiledPrefix(const Project &P, const UnitCommand &Command, const std::vector<std::string> &Args,
                              const ParseOptions &Options);

} // namespace migrate

#endif
