//===- Migrator.h - From units to a verified result -----------------------===//
#ifndef ACCELERATE_MIGRATE_MIGRATOR_H
#define ACCELERATE_MIGRATE_MIGRATOR_H

#include "Driver.h"
#include "rules/Configuration.h"
#include "rules/Suppressions.h"
#include "units/Reader.h"

namespace migrate {

/// The middle of the run: reads the units, links them into programs, decides about each, merges what is to be edited
/// and verifies it. Programs stand or fall one by one: one that is refused, or whose result fails verification, takes
/// only those with it that need the same files to be edited.
class Migrator {
public:
  Migrator(const Options &O, const Project &Tree, const Configurations &Configured, const ParseOptions &Parsing,
           Reader &Units, llvm::raw_ostream &Out, llvm::raw_ostream &Err)
      : O(O), Tree(Tree), Configured(Configured), Parsing(Parsing), Units(Units), Out(Out), Err(Err) {}

  Result run();

  /// The texts that were read beside the units (CMake files).
  const std::map<std::string, std::string> &texts() const { return Disk; }

private:
  struct Plan {
    Program P;
    Migration M;
    ProgramResult Result;
    std::set<ir::FuncId> Reached;
    bool Trains = false;
    bool Broken = false;
    bool migrated() const { return Result.What == Verdict::Migrated || Result.What == Verdict::MigratedWithNotes; }
  };

  const std::string &text(const std::string &Path, const Overlay &Edited);
  std::vector<Plan> analyse(std::vector<ir::Unit> Read, const Overlay &Edited);
  std::vector<std::string> targets(const Program &P, const Migration &M);
  /// What the configuration of a program puts in force: that of the file with its `main`.
  const InForce &inForce(const Program &P) const;
  bool silences(const Rule *R, const std::string &Path, uint32_t Line, llvm::StringRef Code, llvm::StringRef Name);
  std::string silencedEdit(Plan &Of);
  void checkSuppressions(const std::vector<Plan> &Plans);
  void refuseDistributed(const Program &P, Migration &M) const;
  void reportErrors(const std::vector<ir::Unit> &Read);
  void leftOver(const std::vector<ir::Unit> &Unused, const std::vector<Plan> &Plans);
  void cudaUnits(std::vector<Plan> &Plans);
  void decide(Plan &Of);
  void refuse(Plan &Of, llvm::StringRef Code, std::string Message);
  bool ofLibrary(const std::string &Path, const std::vector<Plan> &Plans) const;
  bool disagreements(std::vector<Plan> &Plans);
  llvm::Error merge(const std::vector<Plan> &Plans);
  bool verify(std::vector<Plan> &Plans);
  bool compiles(std::vector<Plan> &Plans, const std::vector<ir::Unit> &Read);

  const Options &O;
  const Project &Tree;
  const Configurations &Configured;
  const ParseOptions &Parsing;
  Reader &Units;
  llvm::raw_ostream &Out, &Err;
  std::map<std::string, std::string> Disk;
  std::map<std::string, Suppressions> Comments;                      ///< by file
  std::set<std::tuple<std::string, unsigned, std::string>> Silenced; ///< suppressions that did: file, line, code
  /// By source and target: what didn't compile before.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> Errors;
  /// By header: whose units include it. Found out when it is asked for.
  std::optional<std::map<std::string, std::set<std::string>>> Including;
  Result Final;
};

} // namespace migrate

#endif
