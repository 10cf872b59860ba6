//===- Apply.h - Rules turn facts and matches into edits and findings -----===//
#ifndef ACCELERATE_MIGRATE_RULES_APPLY_H
#define ACCELERATE_MIGRATE_RULES_APPLY_H

#include "edit/Edits.h"
#include "infer/Facts.h"
#include "infer/Program.h"
#include "project/Project.h"
#include "rules/Rule.h"

namespace migrate {

/// A place that was looked at and not edited, with the reason.
struct Finding {
  std::string Code, Name, Message;
  Severity Level = Severity::Note;
  std::string Path;
  uint32_t Line = 0, Column = 0;
  bool Incomplete = false; ///< some of the program doesn't compile here: there may be more, or less, to it
  bool Silent = false;     ///< switched off: it isn't reported, but a refusal still refuses
  struct Step {
    std::string Path, What;
    uint32_t Line = 0;
  };
  std::vector<Step> Chain;

  auto key() const { return std::tie(Path, Line, Column, Code, Message); }
};

struct Migration {
  std::vector<Edit> Edits;
  std::vector<Finding> Findings;
  /// Places that a rule selected; each is edited or reported.
  size_t Matches = 0, Edited = 0, Reported = 0;
};

/// Texts by path, read once; an overlay stands before the disk.
using FileTexts = std::function<const std::string &(const std::string &Path)>;

/// Whether what a rule asks for beside its pattern is so at a match.
bool holds(const Rule &R, const ir::RuleMatch &M, const Facts &Known);

Migration applyRules(const Program &P, const Facts &Known, const RuleSet &Rules, const FileTexts &Texts);

} // namespace migrate

#endif
