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
std::optional<Safety> safetyOf(llvm::StringRef Name);

/// What a place that is reported instead of edited means for the program.
/// A remark names a benign assumption, and changes no verdict.
enum class Severity { Remark, Note, Warning, Refusal };
llvm::StringRef toString(Severity S);

struct EditTemplate {
  enum class Kind { Replace, Before, After, Delete } What = Kind::Replace;
  std::string Node; ///< the bound place
  std::string Text; ///< may name other bound places and facts in braces: `{accelerator}.backward({loss})`
};

/// Code that the rule is about: `Before` becomes `After`; if they are equal it's left alone, and without an `After`
/// it's reported. `accelerate-migrate test` shows that this is so.
struct RuleExample {
  std::string Before;
  std::optional<std::string> After;
  std::string Around;        ///< the program with a line `{example}`; empty: the usual one (Examples.h)
  std::string Configuration; ///< the text of its `.accelerate-migrate.yaml`, or empty
  unsigned Line = 0;         ///< in the rule's file
};

/// Ways to write an example's program that must make no difference (Variants.h).
enum class Variant { Again, Comments, Template, Instantiations, Macro, MacroArgument, Untrained, Suppressed };
inline constexpr llvm::StringLiteral VariantNames[] = {"again", "comments",       "template",  "instantiations",
                                                       "macro", "macro-argument", "untrained", "suppressed"};

struct Rule {
  std::string Code, Name, Summary, Why, Message;
  Safety How = Safety::Safe;
  Severity Level = Severity::Note;
  std::string Match;               ///< AST matcher, or empty
  std::string Fact;                ///< fact that selects places, or empty
  std::vector<std::string> Where;  ///< facts that must hold at the matched place
  std::vector<EditTemplate> Edits; ///< empty: the rule reports
  std::vector<RuleExample> Examples;
  std::string NoExample;                    ///< why no single program can show it
  std::map<Variant, std::string> NoVariant; ///< why its examples can't be written so
  std::string Path;
  std::string Replaces; ///< code or name of the tool's own rule that this one stands for
  bool BuiltIn = true;
  bool Off = false;     ///< its findings are silent; a program that needs its edits is left alone
  uint32_t Pattern = 0; ///< `ir::RuleMatch::Rule` of its places
  std::optional<clang::ast_matchers::internal::DynTypedMatcher> Matcher;

  /// Whether both can't be in one set: two of the tool's own, or two of the user's.
  bool clashes(const Rule &O) const {
    return BuiltIn == O.BuiltIn && (Code == O.Code || Name == O.Name || (!Replaces.empty() && Replaces == O.Replaces));
  }
};

class RuleSet {
public:
  /// Reads every `*.yaml` of `Dir` but the operation table. An error names the file, line and column.
  static llvm::Expected<RuleSet> load(llvm::StringRef Dir);

  /// Reads the rules of a user's folder, beside the tool's own. If `Wins`, they stand in for rules of folders that were
  /// added before where the two have one code or name, which is an error otherwise.
  llvm::Error add(llvm::StringRef Dir, bool Wins);
  /// Takes out what users' rules replace; the last step.
  void replace();

  /// A hash of all that the folder's rules and tables say.
  static std::string digest(llvm::StringRef Dir);

  /// All rules of several sets, each file's once; numbers their patterns.
  static RuleSet join(llvm::ArrayRef<RuleSet *> Sets);

  const std::vector<Rule> &rules() const { return Rules; }
  std::vector<Rule> &rules() { return Rules; }
  const Rule *byCode(llvm::StringRef CodeOrName) const;
  /// The rules that a fact of this name drives.
  std::vector<const Rule *> byFact(llvm::StringRef Fact) const;
  /// The rule that matches of a pattern belong to; null if it isn't in this set.
  const Rule *byPattern(uint32_t Pattern) const;

private:
  llvm::Expected<Rule> read(llvm::StringRef Path, bool BuiltIn, bool Wins) const;

  std::vector<Rule> Rules;
};

/// The folder that holds the rules: `Explicit`, else beside the installed binary, else the source tree's.
std::string findRulesDir(llvm::StringRef Explicit, llvm::StringRef Executable);

/// The next `{word}` of a template at or behind `From`: its offset, `npos` if there is none, and the word.
std::pair<size_t, llvm::StringRef> nextWord(llvm::StringRef Template, size_t From = 0);

} // namespace migrate

#endif
