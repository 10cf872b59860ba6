//===- Dependencies.h - What a unit was read from -------------------------===//
//
// A unit is read through a file system that notes what the parser asks of it, files that don't exist included: had a
// header appeared since in a folder that is searched earlier, the unit would mean something else.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_UNITS_DEPENDENCIES_H
#define ACCELERATE_MIGRATE_UNITS_DEPENDENCIES_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/VirtualFileSystem.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace migrate {

/// Texts that stand for files without being written: what a migration would make of them.
using Overlay = std::map<std::string, std::string>;

struct Dependency {
  enum class Kind : uint8_t { Missing, Folder, Text, Stat } What = Kind::Missing;
  std::string Path;      ///< absolute
  uint64_t Hash[2] = {}; ///< of a text: of its bytes. Of a stat: size, and time of modification in nanoseconds

  static Dependency text(llvm::StringRef Path, llvm::StringRef Bytes);
  bool operator<(const Dependency &O) const { return Path < O.Path; }
};

/// The path without symbolic links, `.` and `..`: one file has many names. As it is, if there is no such file.
std::string realPathOf(llvm::StringRef Path);

/// `Base` with the texts of `Edited` (by real path) in place of the files', noting in `Seen` what is asked of it. Files
/// whose real path `Own` says yes to are noted by their text, others by size and time; what `Ignore` says yes to isn't
/// noted.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> recording(llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> Base,
                                                          const Overlay &Edited,
                                                          std::function<bool(llvm::StringRef)> Own,
                                                          std::function<bool(llvm::StringRef)> Ignore,
                                                          std::map<std::string, Dependency> &Seen);

/// Whether things still are as they were. What has been looked at once isn't looked at again.
class DependencyCheck {
public:
  DependencyCheck() = default;
  /// With texts that stand before the disk; they must outlive the check.
  explicit DependencyCheck(const Overlay &Edited) : Edited(&Edited) {}
  bool holds(const Dependency &D);
  bool hold(const std::vector<Dependency> &List);

private:
  const Overlay *Edited = nullptr;
  llvm::StringMap<bool> Known; ///< by kind, hashes and path
};

} // namespace migrate

#endif
