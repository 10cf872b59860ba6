//===- Cache.h - Blobs in the user's cache folder -------------------------===//
//
// One file per entry below `$XDG_CACHE_HOME/accelerate-migrate/` (else `~/.cache/...`), named by the hash of what the
// entry depends on. Entries are written whole (temporary file, rename), so that any number of processes may share the
// folder; the least recently used go when it outgrows its bound. Everything here is an aid: a folder that can't be
// made or written means no cache, not an error.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_UNITS_CACHE_H
#define ACCELERATE_MIGRATE_UNITS_CACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace migrate {

/// `$XDG_CACHE_HOME/accelerate-migrate/<Name>`, made if need be; empty if there can't be one.
std::string cacheFolder(llvm::StringRef Name);

/// A name for what these strings say: 32 hexadecimal digits.
std::string cacheKey(llvm::ArrayRef<llvm::StringRef> Parts);

/// Says that an entry is in use, without changing its time of modification.
void touch(llvm::StringRef Path);

class Cache {
public:
  /// Without a folder nothing is found and nothing kept.
  Cache() = default;
  explicit Cache(std::string Folder) : Folder(std::move(Folder)) {}

  std::unique_ptr<llvm::MemoryBuffer> find(llvm::StringRef Key) const;
  void store(llvm::StringRef Key, llvm::StringRef Bytes);
  /// Drops what was used least recently, down to three quarters of `Bytes`, if the folder holds more.
  void prune(uint64_t Bytes) const;
  bool stored() const { return Stored; }

private:
  std::string Folder;
  bool Stored = false;
};

} // namespace migrate

#endif
