//===- Copies.h - What is built and run without touching the user's files -===//
#ifndef ACCELERATE_MIGRATE_TRAIN_COPIES_H
#define ACCELERATE_MIGRATE_TRAIN_COPIES_H

#include "project/Project.h"
#include <set>

namespace migrate {

/// Copies the project (its git repository, if it lies in one) to `To`: what git tracks or doesn't ignore; without git,
/// all but build folders; and all units of the compile database that it owns. `Without`: a folder that is left out.
llvm::Error copyProject(const Project &Tree, const std::string &To, const std::string &Without);

/// A copy of the folder that programs run in, whose entries the runs share.
class RunFolder {
public:
  /// Copies all of `From` but build folders, git's, and `Without`. More than two GiB are an error: that is no folder
  /// somebody meant.
  static llvm::Expected<RunFolder> copy(const std::string &From, const std::string &To, const std::string &Without);

  /// What runs find in their own folder: paths of the copy's first level.
  std::vector<std::string> entries() const;
  /// Names of the first level that aren't, or have something in them that isn't, as it was copied.
  std::set<std::string> changed() const;
  /// From now on no run finds what has this name on the first level.
  void leaveOut(const std::string &Name);

private:
  std::string Path;
  std::set<std::string> LeftOut;
  std::map<std::string, std::pair<uint64_t, int64_t>> Known; ///< by relative path: size, time of the last change
  std::map<std::string, std::pair<uint64_t, int64_t>> look() const;
};

} // namespace migrate

#endif
