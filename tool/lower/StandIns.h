//===- StandIns.h - Headers that another compiler brings itself -----------===//
//
// Programs are read with Clang, whatever they are built with. GCC has `omp.h` in a folder of its own that Clang can't
// read; where no other is found, one of declarations alone stands in, which is all that reading a program takes.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_LOWER_STANDINS_H
#define ACCELERATE_MIGRATE_LOWER_STANDINS_H

#include "llvm/Support/VirtualFileSystem.h"

namespace migrate {

/// The folder to look in behind all others: `-idirafter`.
constexpr const char *StandInFolder = "/accelerate-migrate-stand-ins";

/// `Base` with that folder.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> withStandIns(llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> Base);

} // namespace migrate

#endif
