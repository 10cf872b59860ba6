//===- Driver.h - The whole run: options in, report and exit code out -----===//
#ifndef ACCELERATE_MIGRATE_DRIVER_H
#define ACCELERATE_MIGRATE_DRIVER_H

#include "rules/Apply.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace migrate {

/// Exit codes are a promise (README.md lists them).
enum ExitCode {
  NothingToDo = 0, ///< nothing to do, or everything applied
  Pending = 1,     ///< edits or findings wait
  Usage = 2,       ///< usage, configuration or rule error
  Unparsed = 3,    ///< a unit could not be parsed
  Unverified = 4,  ///< the result failed verification
};

struct Options {
  std::string BuildDir, RulesDir, ResourceDir, RuntimeInclude, Executable;
  std::vector<std::string> Sources, Flags;
  enum class Format { Diff, Json } Output = Format::Diff;
  bool InPlace = false, Verify = true, Precompile = true, Quiet = false, ListRules = false;
  std::string Explain, Dump;
  unsigned Jobs = 0; ///< 0: by cores and memory
};

enum class Verdict { NothingToDo, Migrated, MigratedWithNotes, Refused };
llvm::StringRef toString(Verdict V);

struct ProgramResult {
  std::string Name;
  Verdict What = Verdict::NothingToDo;
  std::vector<std::string> Units;
  std::string Reason; ///< of a refusal
};

struct Result {
  std::vector<ProgramResult> Programs;
  std::vector<Edit> Edits; ///< merged, of all programs that are migrated
  std::vector<Finding> Findings;
  std::map<std::string, std::pair<std::string, std::string>> Texts; ///< path -> before, after
};

/// Runs the tool. Standard output gets the diff or the JSON document, everything else goes to `Err`.
int run(const Options &O, llvm::raw_ostream &Out, llvm::raw_ostream &Err);

} // namespace migrate

#endif
