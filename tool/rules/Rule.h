//===- Rule.h - Rules are data: one file each in rules/ -------------------===//
//
// A rule selects places, by a pattern in Clang's AST-matcher language (`match`), by a fact that the inference found
// (`fact`), or by both (`match` with `where`), and says what is written there (`edits`) or reported (`message`).
// rules/README.md describes the format for users.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_RULES_RULE_H
#define ACCELERATE_MIGRATE_RULES_RULE_H

#include "clang/ASTMatchers/ASTMatchersInternal.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace migrate {

/// How far an edit can be trusted without reading it; shown with every edit.
enum class Safety { Safe, Review, Manual };
llvm::StringRef toString(Safety S);

/// What a place that is reported instead of edited means for the program.
enum class Severity { Note, Warning, Refusal };
llvm::StringRef toString(Severity S);

struct EditTemplate {
  enum class Kind { Replace, Before, After, Delete } What = Kind::Replace;
  std::string Node; ///< the bound place
  std::string Text; ///< may name other bound places and facts in braces: `{accelerator}.backward({loss})`
};

struct RuleExample {
  std::string Before, After;
};

struct Rule {
  std::string Code, Name, Summary, Why, Message;
  Safety How = Safety::Safe;
  Severity Level = Severity::Note;
  std::string Match;               ///< AST matcher, or empty
  std::string Fact;                ///< fact that selects places, or empty
  std::vector<std::string> Where;  ///< facts that must hold at the matched place
  std::vector<EditTemplate> Edits; ///< empty: the rule reports
  std::vector<RuleExample> Examples;
  std::string Path;
  std::optional<clang::ast_matchers::internal::DynTypedMatcher> Matcher;
};

class RuleSet {
public:
  /// Reads every `*.yaml` below `Dir` but the operation tables. An error names the file, line and column.
  static llvm::Expected<RuleSet> load(llvm::StringRef Dir);

  /// A hash of all that the folder's rules and tables say.
  static std::string digest(llvm::StringRef Dir);

  const std::vector<Rule> &rules() const { return Rules; }
  const Rule *byCode(llvm::StringRef CodeOrName) const;
  /// The rules that a fact of this name drives.
  std::vector<const Rule *> byFact(llvm::StringRef Fact) const;

private:
  std::vector<Rule> Rules;
};

/// The folder that holds the rules: `Explicit`, else beside the installed binary, else the source tree's.
std::string findRulesDir(llvm::StringRef Explicit, llvm::StringRef Executable);

} // namespace migrate

#endif
