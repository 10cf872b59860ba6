//===- CMakeBuild.h - A copy of a CMake project, configured as its user did -===//
#ifndef ACCELERATE_MIGRATE_TRAIN_CMAKEBUILD_H
#define ACCELERATE_MIGRATE_TRAIN_CMAKEBUILD_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <utility>
#include <vector>

namespace migrate {

/// What stands in the `CMakeCache.txt` of a build folder.
class CMakeCache {
public:
  struct Entry {
    std::string Name, Type, Value;
  };

  /// An error if the folder isn't one that CMake has configured.
  static llvm::Expected<CMakeCache> read(llvm::StringRef Folder);

  /// The value of an entry; empty if there is none, or what it looked for wasn't found.
  std::string get(llvm::StringRef Name) const;
  /// The CMake that has written it, else the one on the PATH; empty if there is none.
  std::string program() const;
  /// A script for `cmake -C`: all that the user, an earlier run or a toolchain has set, but what CMake keeps for
  /// itself. Paths below the first of a pair of folders lead below its second instead, if they exist there (source
  /// folder) or aren't files (build folder).
  std::string initialCache(llvm::StringRef Source, llvm::StringRef Build) const;

private:
  std::string relocate(llvm::StringRef Value, llvm::StringRef Source, llvm::StringRef Build) const;

  std::string Folder;
  std::vector<Entry> Entries;
};

/// A build folder of our own for a copy of the project.
class CMakeBuild {
public:
  /// `Work`: an empty folder, which gets `build`, and the logs of what is run.
  CMakeBuild(const CMakeCache &Cache, std::string Source, std::string Work, unsigned Jobs);

  /// Configures it, with `More` in the initial cache. Errors say what CMake said.
  llvm::Error configure(llvm::StringRef More);
  /// Builds an executable target and returns its path. Errors say what the compiler said.
  llvm::Expected<std::string> build(const std::string &Target);

private:
  llvm::Error run(std::vector<std::string> Command, unsigned Seconds);

  const CMakeCache &Cache;
  std::string Source, Work, Build, CMake;
  unsigned Jobs, Steps = 0;
};

} // namespace migrate

#endif
