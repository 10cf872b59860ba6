//===- Serialise.h - Units as bytes ---------------------------------------===//
//
// How a unit travels from the process that parsed it, and lies in the cache. The format is private to one build of the
// tool (whoever stores the bytes puts the tool's identity into their key); the bytes carry a checksum.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_UNITS_SERIALISE_H
#define ACCELERATE_MIGRATE_UNITS_SERIALISE_H

#include "ir/Unit.h"
#include "units/Dependencies.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace migrate {

/// A unit that has been read, with what it was read from. Units of one project see the same system headers: the cache
/// keeps their list once, under a name, and `System` is empty there.
struct ReadUnit {
  ir::Unit Unit;
  std::vector<Dependency> Own, System;
  std::string SystemList;
};

std::string serialise(const ReadUnit &U);
/// No value if the bytes are damaged.
std::optional<ReadUnit> deserialise(llvm::StringRef Bytes);

std::string serialise(const std::vector<Dependency> &List);
std::optional<std::vector<Dependency>> deserialiseDependencies(llvm::StringRef Bytes);

/// What a run printed, and what that depends on: said again as long as nothing has changed.
struct StoredRun {
  std::string Out, Err;
  uint32_t Code = 0;
  bool Edits = false; ///< there are some
  std::vector<Dependency> Own;
  std::vector<std::string> System; ///< names of lists
};
std::string serialise(const StoredRun &R);
std::optional<StoredRun> deserialiseRun(llvm::StringRef Bytes);

} // namespace migrate

#endif
