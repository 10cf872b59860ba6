//===- Rule.cpp -----------------------------------------------------------===//
#include "rules/Rule.h"
#include "units/Cache.h"
#include "clang/ASTMatchers/Dynamic/Diagnostics.h"
#include "clang/ASTMatchers/Dynamic/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/YAMLTraits.h"

using namespace llvm;

LLVM_YAML_IS_SEQUENCE_VECTOR(migrate::EditTemplate)
LLVM_YAML_IS_SEQUENCE_VECTOR(migrate::RuleExample)

namespace llvm::yaml {

template <> struct ScalarEnumerationTraits<migrate::Safety> {
  static void enumeration(IO &Io, migrate::Safety &S) {
    Io.enumCase(S, "safe", migrate::Safety::Safe);
    Io.enumCase(S, "review", migrate::Safety::Review);
    Io.enumCase(S, "manual", migrate::Safety::Manual);
  }
};

template <> struct ScalarEnumerationTraits<migrate::Severity> {
  static void enumeration(IO &Io, migrate::Severity &S) {
    Io.enumCase(S, "note", migrate::Severity::Note);
    Io.enumCase(S, "warning", migrate::Severity::Warning);
    Io.enumCase(S, "refusal", migrate::Severity::Refusal);
  }
};

template <> struct MappingTraits<migrate::EditTemplate> {
  static void mapping(IO &Io, migrate::EditTemplate &E) {
    using Kind = migrate::EditTemplate::Kind;
    static const std::pair<const char *, Kind> Verbs[] = {
        {"replace", Kind::Replace}, {"before", Kind::Before}, {"after", Kind::After}, {"delete", Kind::Delete}};
    for (const auto &[Verb, What] : Verbs) {
      std::string Node;
      Io.mapOptional(Verb, Node);
      if (!Node.empty()) {
        E.What = What;
        E.Node = Node;
      }
    }
    Io.mapOptional("with", E.Text);
    if (E.Node.empty())
      Io.setError("an edit needs one of replace, before, after, delete");
  }
};

template <> struct MappingTraits<migrate::RuleExample> {
  static void mapping(IO &Io, migrate::RuleExample &E) {
    Io.mapRequired("before", E.Before);
    Io.mapRequired("after", E.After);
  }
};

template <> struct MappingTraits<migrate::Rule> {
  static void mapping(IO &Io, migrate::Rule &R) {
    Io.mapRequired("code", R.Code);
    Io.mapRequired("name", R.Name);
    Io.mapRequired("summary", R.Summary);
    Io.mapRequired("why", R.Why);
    Io.mapRequired("safety", R.How);
    Io.mapOptional("severity", R.Level, migrate::Severity::Note);
    Io.mapOptional("match", R.Match);
    Io.mapOptional("fact", R.Fact);
    Io.mapOptional("where", R.Where);
    Io.mapOptional("edits", R.Edits);
    Io.mapOptional("message", R.Message);
    Io.mapOptional("examples", R.Examples);
    if (R.Match.empty() == R.Fact.empty())
      Io.setError("a rule needs either `match` or `fact`");
    if (R.Edits.empty() && R.Message.empty())
      Io.setError("a rule without `edits` needs a `message`");
  }
};

} // namespace llvm::yaml

namespace migrate {

StringRef toString(Safety S) {
  static const char *const Names[] = {"safe", "review", "manual"};
  return Names[static_cast<int>(S)];
}

StringRef toString(Severity S) {
  static const char *const Names[] = {"note", "warning", "refusal"};
  return Names[static_cast<int>(S)];
}

static Error parseMatcher(Rule &R) {
  using namespace clang::ast_matchers::dynamic;
  // The parser reads one expression and leaves what follows a line break, without an error.
  std::string Line = R.Match;
  std::replace(Line.begin(), Line.end(), '\n', ' ');
  StringRef Code = StringRef(Line).trim();
  Diagnostics Diag;
  std::optional<clang::ast_matchers::internal::DynTypedMatcher> Matcher =
      Parser::parseMatcherExpression(Code, nullptr, nullptr, &Diag);
  if (!Matcher)
    return createStringError(inconvertibleErrorCode(),
                             "'" + R.Path + "': `match` of " + R.Code + " is no AST matcher: " + Diag.toStringFull());
  R.Matcher = std::move(Matcher);
  return Error::success();
}

static Error loadRule(StringRef Path, std::vector<Rule> &Out) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return createStringError(Buffer.getError(), "'" + Path + "' can't be read");
  std::string Message;
  yaml::Input In((*Buffer)->getBuffer(), nullptr,
                 [](const SMDiagnostic &D, void *Ctx) {
                   raw_string_ostream OS(*static_cast<std::string *>(Ctx));
                   OS << D.getLineNo() << ":" << D.getColumnNo() + 1 << ": " << D.getMessage() << "\n";
                 },
                 &Message);
  Rule R;
  // `>>` takes it for granted that there is a document.
  if (yaml::Input Probe((*Buffer)->getBuffer(), nullptr, [](const SMDiagnostic &, void *) {});
      !Probe.setCurrentDocument() && !Probe.error())
    return createStringError(inconvertibleErrorCode(), Path + ":1:1: no rule in this file");
  In >> R;
  if (In.error())
    return createStringError(In.error(), Path + ":" + StringRef(Message).split('\n').first);
  R.Path = Path.str();
  if (!R.Match.empty())
    if (Error E = parseMatcher(R))
      return E;
  for (const Rule &Other : Out)
    if (Other.Code == R.Code || Other.Name == R.Name)
      return createStringError(inconvertibleErrorCode(), "'" + Path + "' and '" + Other.Path +
                                                             "' have the same code or name (" + R.Code + " " + R.Name +
                                                             ")");
  Out.push_back(std::move(R));
  return Error::success();
}

Expected<RuleSet> RuleSet::load(StringRef Dir) {
  RuleSet Set;
  std::vector<std::string> Paths;
  std::error_code EC;
  for (sys::fs::directory_iterator It(Dir, EC), End; !EC && It != End; It.increment(EC))
    if (StringRef(It->path()).ends_with(".yaml") && sys::path::filename(It->path()) != "operations.yaml")
      Paths.push_back(It->path());
  if (EC || Paths.empty())
    return createStringError(inconvertibleErrorCode(), "no rules in '" + Dir + "'; name their folder with --rules-dir");
  sort(Paths);
  for (const std::string &Path : Paths)
    if (Error E = loadRule(Path, Set.Rules))
      return E;
  sort(Set.Rules, [](const Rule &A, const Rule &B) { return A.Code < B.Code; });
  return Set;
}

std::string RuleSet::digest(StringRef Dir) {
  std::map<std::string, std::string> Texts;
  std::error_code EC;
  for (sys::fs::directory_iterator It(Dir, EC), End; !EC && It != End; It.increment(EC))
    if (StringRef(It->path()).ends_with(".yaml"))
      if (auto Buffer = MemoryBuffer::getFile(It->path()))
        Texts[It->path()] = (*Buffer)->getBuffer();
  std::vector<StringRef> Parts;
  for (const auto &[Path, Text] : Texts)
    Parts.insert(Parts.end(), {Path, Text});
  return cacheKey(Parts);
}

const Rule *RuleSet::byCode(StringRef CodeOrName) const {
  for (const Rule &R : Rules)
    if (R.Code == CodeOrName || R.Name == CodeOrName)
      return &R;
  return nullptr;
}

std::vector<const Rule *> RuleSet::byFact(StringRef Fact) const {
  std::vector<const Rule *> Found;
  for (const Rule &R : Rules)
    if (R.Fact == Fact)
      Found.push_back(&R);
  return Found;
}

std::string findRulesDir(StringRef Explicit, StringRef Executable) {
  if (!Explicit.empty())
    return Explicit.str();
  std::string Installed = (sys::path::parent_path(Executable) + "/../share/accelerate-migrate/rules").str();
  return sys::fs::is_directory(Installed) ? Installed : MIGRATE_RULES_DIR;
}

} // namespace migrate
