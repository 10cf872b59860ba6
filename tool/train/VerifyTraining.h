//===- VerifyTraining.h - Whether what was migrated trains as before ------===//
//
// `--verify=train`: the project is copied twice, once with the edits, configured as the user's build folder is, and
// built; then `accelerate-cpp verify` runs both builds of each migrated program and compares their training.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_TRAIN_VERIFYTRAINING_H
#define ACCELERATE_MIGRATE_TRAIN_VERIFYTRAINING_H

#include "Driver.h"
#include "rules/Configuration.h"
#include "train/CMakeBuild.h"

namespace migrate {

class RunFolder;
class StatusLine;

class TrainingCheck {
public:
  /// Finds what it takes. Errors are for users: a project that CMake hasn't configured, no `accelerate-cpp`, a folder
  /// that isn't there.
  static llvm::Expected<TrainingCheck> prepare(const Options &O, const Project &Tree);

  /// Builds and compares the programs of `Final` that are migrated. If one doesn't train as before, or can't be built,
  /// it is refused, the report goes to `Said`, and no edit of any program is left in `Final`. An error if it can't be
  /// known: the original can't be built, fails or doesn't end.
  llvm::Error run(const Configurations &Configured, Result &Final, StatusLine &Status, llvm::raw_ostream &Said) const;

private:
  TrainingCheck(const Options &O, const Project &Tree, CMakeCache Cache) : O(O), Tree(Tree), Cache(std::move(Cache)) {}

  std::string launcher() const;
  std::string findAccelerate() const;
  std::vector<std::string> flags() const;
  std::vector<std::string> arguments(llvm::StringRef Name) const;
  /// `Document`: the JSON file that `accelerate-cpp verify` has written if they differ.
  llvm::Expected<bool> compare(const std::string &Name, const std::string &Original, const std::string &Migrated,
                               RunFolder &Inputs, const std::string &Work, std::string &Document,
                               llvm::raw_ostream &Said) const;

  const Options &O;
  const Project &Tree;
  CMakeCache Cache;
  std::string Verifier, Folder; ///< accelerate-cpp; what the runs' folders are copies of
};

} // namespace migrate

#endif
