//===- Driver.h - The whole run: options in, report and exit code out -----===//
#ifndef ACCELERATE_MIGRATE_DRIVER_H
#define ACCELERATE_MIGRATE_DRIVER_H

#include "edit/WriteTree.h"
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

enum class VerifyMode { None, Parse, Compile, Train };

struct Options {
  std::string BuildDir, RulesDir, ResourceDir, RuntimeInclude, Executable;
  std::vector<std::string> Sources, Flags;
  enum class Format { Diff, Json } Output = Format::Diff;
  VerifyMode Verify = VerifyMode::Parse;
  /// For `VerifyMode::Train`: command lines of the programs ("words", or "program:words" for one of them) and flags of
  /// `accelerate-cpp verify`; the folder that programs run in copies of (the current one if empty); seconds for each
  /// run.
  std::vector<std::string> VerifyArgs;
  std::string VerifyFlags, VerifyCwd;
  unsigned VerifyTimeout = 600;
  bool InPlace = false, AllowDirty = false, AllowErrors = false, Quiet = false, ListRules = false;
  std::vector<std::string> Rules; ///< folders of users' rules
  std::string Config;             ///< in place of the `.accelerate-migrate.yaml` that is found
  bool NoConfig = false;
  bool Test = false;     ///< run the examples of the rules in the folders `Sources`
  bool Variants = false; ///< and these written in other ways
  /// What makes a run quick; each can be left out, and changes nothing but the time.
  bool Prefilter = true, Cache = true, Precompile = true, SkipBodies = true, Isolate = true;
  bool Statistics = false;
  std::string Explain, Dump;
  unsigned Jobs = 0; ///< 0: by cores and memory
};

enum class Verdict { NothingToDo, Migrated, MigratedWithNotes, Refused };
llvm::StringRef toString(Verdict V);

struct ProgramResult {
  std::string Name;
  Verdict What = Verdict::NothingToDo;
  std::vector<std::string> Units;
  std::string Reason;      ///< of a refusal
  bool Incomplete = false; ///< some of it doesn't compile here, and wasn't understood
  size_t Silent = 0;       ///< findings that are switched off
};

struct Result {
  std::vector<ProgramResult> Programs;
  std::vector<Edit> Edits; ///< merged, of all programs that are migrated
  std::vector<Finding> Findings;
  TextChanges Texts;
  std::string StyleIgnored;                  ///< why the project's `.clang-format` wasn't used
  bool Unparsed = false, Unverified = false; ///< of some program
};

/// Runs the tool. Standard output gets the diff or the JSON document, everything else goes to `Err`.
int run(const Options &O, llvm::raw_ostream &Out, llvm::raw_ostream &Err);

} // namespace migrate

#endif
