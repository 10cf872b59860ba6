//===- Rule.cpp -----------------------------------------------------------===//
#include "rules/Rule.h"
#include "rules/Yaml.h"
#include "units/Cache.h"
#include "clang/ASTMatchers/Dynamic/Diagnostics.h"
#include "clang/ASTMatchers/Dynamic/Parser.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"
#include <set>

using namespace llvm;

namespace migrate {

static const StringRef SafetyNames[] = {"safe", "review", "manual"};
static const StringRef SeverityNames[] = {"remark", "note", "warning", "refusal"};

StringRef toString(Safety S) { return SafetyNames[static_cast<int>(S)]; }
StringRef toString(Severity S) { return SeverityNames[static_cast<int>(S)]; }

std::optional<Safety> safetyOf(StringRef Name) {
  const StringRef *It = find(SafetyNames, Name);
  return It == std::end(SafetyNames) ? std::nullopt : std::optional(static_cast<Safety>(It - SafetyNames));
}

std::pair<size_t, StringRef> nextWord(StringRef Template, size_t From) {
  for (size_t Open = Template.find('{', From); Open != StringRef::npos; Open = Template.find('{', Open + 1)) {
    StringRef Word =
        Template.substr(Open + 1).take_while([](char C) { return isAlnum(C) || StringRef("_-:").contains(C); });
    if (!Word.empty() && Template.substr(Open + 1 + Word.size()).starts_with("}"))
      return {Open, Word};
  }
  return {StringRef::npos, StringRef()};
}

namespace {

/// Reads one rule, and checks what can be checked of it.
class RuleReader {
public:
  RuleReader(YamlFile &File, const std::vector<Rule> &Known, bool BuiltIn)
      : File(File), Known(Known), BuiltIn(BuiltIn) {}

  Rule read() {
    R.Path = File.path();
    R.BuiltIn = BuiltIn;
    auto Into = [&](std::string &To) { return [&](const YamlValue &V) { To = File.text(V); }; };
    YamlValue Code;
    const YamlValue *Match = nullptr, *Edits = nullptr, *Message = nullptr;
    auto ReadCode = [&](const YamlValue &V) { R.Code = File.text(Code = V); };
    auto ReadName = Into(R.Name), ReadSummary = Into(R.Summary), ReadWhy = Into(R.Why);
    auto ReadSafety = [&](const YamlValue &V) { R.How = static_cast<Safety>(File.choice(V, SafetyNames)); };
    auto ReadSeverity = [&](const YamlValue &V) { R.Level = static_cast<Severity>(File.choice(V, SeverityNames)); };
    auto ReadMatch = [&](const YamlValue &V) { Match = &V, R.Match = File.text(V); };
    auto ReadFact = [&](const YamlValue &V) { fact(V); };
    auto ReadWhere = [&](const YamlValue &V) { File.each(V, [&](const YamlValue &Label) { where(Label); }); };
    auto ReadEdits = [&](const YamlValue &V) { Edits = &V, File.each(V, [&](const YamlValue &E) { edit(E); }); };
    auto ReadMessage = [&](const YamlValue &V) { Message = &V, R.Message = File.text(V); };
    auto ReadReplaces = [&](const YamlValue &V) { replaces(V); };
    auto ReadExamples = [&](const YamlValue &V) { File.each(V, [&](const YamlValue &E) { example(E); }); };
    const YamlValue *NoExample = nullptr;
    auto ReadNoExample = [&](const YamlValue &V) { NoExample = &V, R.NoExample = File.text(V); };
    const YamlValue *NoVariant = nullptr;
    auto ReadNoVariant = [&](const YamlValue &V) { NoVariant = &V, noVariant(V); };
    File.fields(File.root(), {{"code", ReadCode, true},
                              {"name", ReadName, true},
                              {"summary", ReadSummary, true},
                              {"why", ReadWhy, true},
                              {"safety", ReadSafety, true},
                              {"severity", ReadSeverity},
                              {"match", ReadMatch},
                              {"fact", ReadFact},
                              {"where", ReadWhere},
                              {"edits", ReadEdits},
                              {"message", ReadMessage},
                              {"replaces", ReadReplaces},
                              {"examples", ReadExamples},
                              {"no-example", ReadNoExample},
                              {"no-variant", ReadNoVariant}});
    TextPlace Top = File.root().Where;
    if (R.Match.empty() == R.Fact.empty())
      File.fail(Top, "a rule needs either `match` or `fact`");
    if (R.Edits.empty() && R.Message.empty())
      File.fail(Top, "a rule without `edits` needs a `message`");
    if (NoExample && R.Examples.size())
      File.fail(NoExample->Where, "a rule has `examples`, or `no-example` and the reason");
    if (NoVariant && R.Examples.empty())
      File.fail(NoVariant->Where, "`no-variant` tells of `examples`, and there are none");
    code(Code);
    if (Match && R.Match.size()) {
      matcher(*Match);
      if (Edits)
        for (const YamlValue &E : Edits->Items)
          bound(E);
      if (Message)
        words(*Message);
    }
    return std::move(R);
  }

private:
  void code(const YamlValue &V) {
    if (BuiltIn || (is_contained({R.Code, R.Name}, R.Replaces) && !R.Replaces.empty()))
      return;
    static const Regex Own("^[A-Z]{2,8}[0-9]{4}$");
    const Rule *Same = nullptr;
    for (const Rule &Other : Known)
      if (Other.BuiltIn && (Other.Code == R.Code || Other.Name == R.Name))
        Same = &Other;
    bool Replaced = Same && is_contained({Same->Code, Same->Name}, R.Replaces);
    if (Same && !Replaced)
      File.fail(V.Where, "the tool's own rule " + Same->Code + " " + Same->Name +
                             " has this code or name; say `replaces: " + Same->Code +
                             "` to have this one in its place");
    else if (!Same && (!Own.match(R.Code) || StringRef(R.Code).starts_with("AM")))
      File.fail(V.Where, "'" + R.Code +
                             "' isn't a code for rules of your own: two to eight capital letters, not `AM`, and four "
                             "digits, `ACME0001`");
  }

  void replaces(const YamlValue &V) {
    R.Replaces = File.text(V);
    if (BuiltIn)
      File.fail(V.Where, "only rules of users replace others");
    else if (none_of(Known, [&](const Rule &Other) {
               return Other.BuiltIn && is_contained({Other.Code, Other.Name}, R.Replaces);
             }))
      File.fail(V.Where, "the tool has no rule '" + R.Replaces + "'; `--list-rules` lists them");
  }

  /// Each fact that the inference finds drives one of the tool's own rules.
  void fact(const YamlValue &V) {
    R.Fact = File.text(V);
    std::set<StringRef> Facts;
    for (const Rule &Other : Known)
      if (Other.BuiltIn && !Other.Fact.empty())
        Facts.insert(Other.Fact);
    if (!BuiltIn && !Facts.count(R.Fact))
      File.fail(V.Where, "unknown fact '" + R.Fact + "'; there are: " + join(Facts, ", "));
  }

  void where(const YamlValue &V) {
    R.Where.push_back(File.text(V));
    std::set<StringRef> Labels;
    for (const Rule &Other : Known)
      if (Other.BuiltIn)
        Labels.insert(Other.Where.begin(), Other.Where.end());
    if (!BuiltIn && !Labels.count(R.Where.back()))
      File.fail(V.Where, "unknown label '" + R.Where.back() + "'; there are: " + join(Labels, ", "));
  }

  void edit(const YamlValue &V) {
    EditTemplate E;
    auto Verb = [&](EditTemplate::Kind What) {
      return [&, What](const YamlValue &Node) {
        if (!E.Node.empty())
          File.fail(Node.Where, "an edit does one thing");
        E.What = What;
        E.Node = File.text(Node);
      };
    };
    auto Replace = Verb(EditTemplate::Kind::Replace), Before = Verb(EditTemplate::Kind::Before),
         After = Verb(EditTemplate::Kind::After), Delete = Verb(EditTemplate::Kind::Delete);
    auto With = [&](const YamlValue &Text) { E.Text = File.text(Text); };
    File.fields(V, {{"replace", Replace}, {"before", Before}, {"after", After}, {"delete", Delete}, {"with", With}});
    if (E.Node.empty())
      File.fail(V.Where, "an edit needs one of replace, before, after, delete");
    R.Edits.push_back(std::move(E));
  }

  void example(const YamlValue &V) {
    RuleExample E;
    E.Line = V.Where.Line;
    auto Before = [&](const YamlValue &Text) { E.Before = File.text(Text); };
    auto After = [&](const YamlValue &Text) { E.After = File.text(Text); };
    auto Around = [&](const YamlValue &Text) {
      E.Around = File.text(Text);
      if (!StringRef(E.Around).contains("{example}"))
        File.fail(Text.Where, "the program around an example has `{example}` on a line of its own");
    };
    auto Configuration = [&](const YamlValue &Text) { E.Configuration = File.text(Text); };
    File.fields(V, {{"before", Before, true}, {"after", After}, {"around", Around}, {"configuration", Configuration}});
    R.Examples.push_back(std::move(E));
  }

  void noVariant(const YamlValue &V) {
    auto Into = [&](Variant Which) {
      return [this, Which](const YamlValue &Why) {
        if ((R.NoVariant[Which] = File.text(Why)).empty())
          File.fail(Why.Where, "say why there is no such variant");
      };
    };
    using Reader = decltype(Into(Variant::Again));
    std::vector<Reader> Readers;
    for (size_t I = 0; I != std::size(VariantNames); ++I)
      Readers.push_back(Into(static_cast<Variant>(I)));
    std::vector<YamlFile::Field> Fields;
    for (size_t I = 0; I != std::size(VariantNames); ++I)
      Fields.push_back({VariantNames[I], Readers[I]});
    File.fields(V, Fields);
  }

  void matcher(const YamlValue &V) {
    using namespace clang::ast_matchers::dynamic;
    // The parser reads one expression and leaves what follows a line break, without an error.
    std::string Line = R.Match;
    std::replace(Line.begin(), Line.end(), '\n', ' ');
    StringRef Code = StringRef(Line).trim();
    size_t Offset = Code.data() - Line.data(); // the parser moves `Code` along
    Diagnostics Diag;
    R.Matcher = Parser::parseMatcherExpression(Code, nullptr, nullptr, &Diag);
    if (R.Matcher)
      return;
    std::string Message = Diag.toString();
    if (!Diag.errors().empty() && !Diag.errors().front().Messages.empty()) {
      SourceLocation At = Diag.errors().front().Messages.front().Range.Start;
      Offset += At.Column > 0 ? At.Column - 1 : 0;
      // "1:17: Matcher not found: foo": that is a column of the joined lines.
      StringRef Rest = StringRef(Message).split('\n').first;
      if (At.Line > 0 && Rest.consume_front(std::to_string(At.Line) + ":" + std::to_string(At.Column) + ": "))
        Message = Rest.str();
    }
    File.fail(V.placeOf(std::min(Offset, R.Match.size())), "`match` is no AST matcher: " + StringRef(Message).trim());
  }

  bool binds(StringRef Name) const {
    Name.consume_back(":name");
    return StringRef(R.Match).contains(("bind(\"" + Name + "\")").str());
  }

  /// The places that an edit names must be bound by the match.
  void bound(const YamlValue &Edit) {
    for (const auto &[Verb, Value] : Edit.Fields)
      if (Verb.Text == "with")
        words(Value);
      else if (!binds(Value.Text))
        File.fail(Value.Where, "the match binds no place '" + Value.Text + "'");
  }

  void words(const YamlValue &Text) {
    for (auto [At, Word] = nextWord(Text.Text); At != StringRef::npos; std::tie(At, Word) = nextWord(Text.Text, At + 1))
      if (Word != "accelerator" && !binds(Word))
        File.fail(Text.placeOf(At), "the match binds no place '" + Word + "'");
  }

  YamlFile &File;
  const std::vector<Rule> &Known;
  bool BuiltIn;
  Rule R;
};

Expected<std::vector<std::string>> filesIn(StringRef Dir, StringRef Hint) {
  std::vector<std::string> Paths;
  std::error_code EC;
  for (sys::fs::directory_iterator It(Dir, EC), End; !EC && It != End; It.increment(EC))
    if (StringRef(It->path()).ends_with(".yaml"))
      Paths.push_back(It->path());
  if (EC || Paths.empty())
    return createStringError(inconvertibleErrorCode(), "no rules in '" + Dir + "'; " + Hint);
  sort(Paths);
  return Paths;
}

} // namespace

Expected<Rule> RuleSet::read(StringRef Path, bool BuiltIn, bool Wins) const {
  Expected<YamlFile> File = YamlFile::read(Path, "no rule in this file");
  if (!File)
    return File.takeError();
  Rule R = RuleReader(*File, Rules, BuiltIn).read();
  for (const Rule &Other : Rules)
    if (R.clashes(Other) && (!Wins || sys::path::parent_path(Other.Path) == sys::path::parent_path(Path)))
      File->fail(File->root().Where, "'" + Path + "' and '" + Other.Path + "' have the same code or name (" + R.Code +
                                         " " + R.Name + "), or replace the same rule");
  if (Error E = File->takeError())
    return E;
  return R;
}

static void sortRules(std::vector<Rule> &Rules) {
  sort(Rules, [](const Rule &A, const Rule &B) { return std::tie(A.Code, A.Path) < std::tie(B.Code, B.Path); });
}

Expected<RuleSet> RuleSet::load(StringRef Dir) {
  RuleSet Set;
  auto Paths = filesIn(Dir, "name their folder with --rules-dir");
  if (!Paths)
    return Paths.takeError();
  for (const std::string &Path : *Paths) {
    if (sys::path::filename(Path) == "operations.yaml")
      continue;
    Expected<Rule> R = Set.read(Path, /*BuiltIn=*/true, /*Wins=*/false);
    if (!R)
      return R.takeError();
    Set.Rules.push_back(std::move(*R));
  }
  sortRules(Set.Rules);
  for (uint32_t I = 0; I != Set.Rules.size(); ++I)
    Set.Rules[I].Pattern = I;
  return Set;
}

Error RuleSet::add(StringRef Dir, bool Wins) {
  auto Paths = filesIn(Dir, "a folder of rules holds *.yaml files");
  if (!Paths)
    return Paths.takeError();
  for (const std::string &Path : *Paths) {
    if (sys::path::filename(Path) == "operations.yaml")
      continue;
    Expected<Rule> R = read(Path, /*BuiltIn=*/false, Wins);
    if (!R)
      return R.takeError();
    erase_if(Rules, [&](const Rule &Old) { return R->clashes(Old); });
    Rules.push_back(std::move(*R));
  }
  sortRules(Rules);
  return Error::success();
}

void RuleSet::replace() {
  std::set<std::string> Gone;
  for (const Rule &R : Rules)
    if (!R.Replaces.empty())
      Gone.insert(R.Replaces);
  erase_if(Rules, [&](const Rule &R) { return R.BuiltIn && (Gone.count(R.Code) || Gone.count(R.Name)); });
}

RuleSet RuleSet::join(ArrayRef<RuleSet *> Sets) {
  RuleSet All;
  std::map<std::string, uint32_t> Known;
  for (RuleSet *Set : Sets)
    for (Rule &R : Set->Rules) {
      auto [It, New] = Known.try_emplace(R.Path, All.Rules.size());
      R.Pattern = It->second;
      if (New)
        All.Rules.push_back(R);
    }
  return All;
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

const Rule *RuleSet::byPattern(uint32_t Pattern) const {
  for (const Rule &R : Rules)
    if (R.Pattern == Pattern)
      return &R;
  return nullptr;
}

std::string findRulesDir(StringRef Explicit, StringRef Executable) {
  if (!Explicit.empty())
    return Explicit.str();
  std::string Installed = (sys::path::parent_path(Executable) + "/../share/accelerate-migrate/rules").str();
  return sys::fs::is_directory(Installed) ? Installed : MIGRATE_RULES_DIR;
}

} // namespace migrate
