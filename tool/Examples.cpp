//===- Examples.cpp -------------------------------------------------------===//
#include "Examples.h"
#include "Migrator.h"
#include "Variants.h"
#include "edit/UnifiedDiff.h"
#include "units/Dependencies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace llvm;

namespace migrate {

const char *const UsualProgram = R"cpp(#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>

int main() {
  torch::nn::Linear model(784, 10);
  auto loader = torch::data::make_data_loader(
      torch::data::datasets::MNIST("data").map(torch::data::transforms::Stack<>()), 64);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  for (auto& batch : *loader) {
    optimizer.zero_grad();
    auto output = model(batch.data.view({-1, 784}));
    auto loss = torch::nll_loss(output, batch.target);
    loss.backward();
    optimizer.step();
    {example}
  }
}
)cpp";

namespace {

/// One example or variant of it, as a program in a file.
struct Case {
  const Rule *Of;
  const RuleExample *Example;
  std::string Stem, Path, Text;
  bool Whole;                     ///< the example is the program
  std::optional<Variant> As = {}; ///< it is one
  size_t Original = 0;            ///< of a variant: which case it was made from
  unsigned First = 1, Last = ~0u; ///< lines of the example
};

/// Every line of `Text` behind `Indent`.
std::string indented(StringRef Text, StringRef Indent) {
  std::string Result;
  for (StringRef Rest = Text.rtrim(); !Rest.empty();) {
    auto [Line, Next] = Rest.split('\n');
    Result += Line.trim().empty() ? "\n" : (Indent + Line + "\n").str();
    Rest = Next;
  }
  return Result;
}

/// The lines between the marks, without the indentation of the first mark.
std::string between(StringRef Text) {
  size_t From = Text.find(ExampleBegins), To = Text.find(ExampleEnds);
  if (From == StringRef::npos || To == StringRef::npos || To < From)
    return "the example's place is gone:\n" + Text.str();
  size_t Line = Text.take_front(From).rfind('\n') + 1; // npos + 1 is 0
  StringRef Indent = Text.slice(Line, From);
  std::string Result;
  for (StringRef Rest = Text.slice(From + ExampleBegins.size() + 1, To).rtrim(); !Rest.empty();) {
    auto [Next, More] = Rest.split('\n');
    Next.consume_front(Indent);
    Result += (Next.rtrim() + "\n").str();
    Rest = More;
  }
  return Result;
}

class Tester {
public:
  Tester(const Options &O, StringRef Dir, const Configurations &Configured, raw_ostream &Out, raw_ostream &Err)
      : O(O), Dir(realPathOf(Dir)), Configured(Configured), Out(Out), Err(Err) {}

  bool run(const UnitCommand &Command, const ParseOptions &Parsing, const std::string &Identity) {
    SmallString<128> Folder;
    if (std::error_code EC = sys::fs::createUniqueDirectory("accelerate-migrate-test", Folder)) {
      Err << "accelerate-migrate: error: no temporary folder: " << EC.message() << "\n";
      return false;
    }
    auto Clean = make_scope_exit([&] { sys::fs::remove_directories(Folder); });
    Folder = realPathOf(Folder);
    collect(Folder);
    if (O.Variants)
      collectVariants(Folder);
    if (!configure(Folder))
      return false;
    // Lines stay as rules write them.
    if (!write((Folder + "/.clang-format").str(), "DisableFormat: true\n"))
      return false;
    std::string Said;
    raw_string_ostream SaidOS(Said);
    auto Migrate = [&](ArrayRef<Case> Which) { return migrate(Which, Folder, Command, Parsing, Identity, SaidOS); };
    if (!Cases.empty()) {
      std::optional<Result> First = Migrate(Cases);
      if (!First)
        return false;
      for (const Case &C : Cases)
        if (!C.As)
          check(C, *First);
      if (O.Variants) {
        compareVariants(*First);
        std::vector<Case> Migrated = migratedCases(*First);
        std::optional<Result> Second = Migrated.empty() ? std::nullopt : Migrate(Migrated);
        if (!Migrated.empty() && !Second)
          return false;
        for (const Case &C : Migrated)
          compare(C, outcome(Cases[C.Original], *First), outcome(C, *Second), *Second);
        needlessReasons();
      }
    }
    if (Failed || FailedVariants)
      Err << Said;
    summary();
    return Failed == 0 && FailedVariants == 0;
  }

private:
  void summary() {
    size_t Examples = count_if(Cases, [](const Case &C) { return !C.As; });
    Out << "accelerate-migrate: " << Examples - Failed << " of " << Examples
        << (Examples == 1 ? " example" : " examples") << " of " << Tested << (Tested == 1 ? " rule" : " rules")
        << " hold";
    if (Reasoned)
      Out << "; " << Reasoned << (Reasoned == 1 ? " rule says" : " rules say") << " why there is none";
    if (Without.size())
      Out << "; " << Without.size() << (Without.size() == 1 ? " rule has none: " : " rules have none: ")
          << llvm::join(Without, ", ");
    Out << "\n";
    if (!O.Variants)
      return;
    Out << "accelerate-migrate: " << Variants - FailedVariants << " of " << Variants << " variants hold";
    if (Excused)
      Out << "; " << Excused << (Excused == 1 ? " isn't asked for, for a reason" : " aren't asked for, for reasons");
    Out << "\n";
  }

  /// Migrates the programs of cases; none if they can't be written.
  std::optional<Result> migrate(ArrayRef<Case> Which, StringRef Folder, const UnitCommand &Command,
                                const ParseOptions &Parsing, const std::string &Identity, raw_ostream &Said) {
    Project Tree;
    Tree.HomeDir = Tree.SourceRoot = Tree.DiffRoot = Folder.str();
    for (const Case &C : Which) {
      if (!write(C.Path, C.Text))
        return std::nullopt;
      UnitCommand Unit = Command;
      for (std::string &Arg : drop_begin(Unit.Command.CommandLine)) {
        SmallString<256> Full(Arg);
        sys::fs::make_absolute(Command.Command.Directory, Full);
        if (Arg == Command.Source || realPathOf(Full) == Command.Source)
          Arg = C.Path;
      }
      Unit.Source = Unit.Command.Filename = C.Path;
      Unit.Target.clear();
      Tree.Units.push_back(std::move(Unit));
    }
    std::string Printed;
    raw_string_ostream PrintedOS(Printed);
    ReaderOptions Reading{Parsing, /*Prefilter=*/false, O.Cache, O.Isolate, O.Jobs, Identity + Here->patternsDigest()};
    StatusLine Status(Err, !O.Quiet);
    Reader Units(Tree, Here->patterns(), Reading, Status);
    return Migrator(O, Tree, *Here, Parsing, Units, PrintedOS, Said).run();
  }

  bool write(const std::string &Path, StringRef Text) {
    std::error_code EC;
    raw_fd_ostream File(Path, EC);
    File << Text;
    File.close();
    if (EC || File.has_error()) {
      Err << "accelerate-migrate: error: '" << Path << "' can't be written\n";
      File.clear_error();
      return false;
    }
    return true;
  }

  /// Writes the configurations of examples, and reads them as those of any program.
  bool configure(StringRef Folder) {
    std::vector<std::string> Sources;
    for (const Case &C : Cases) {
      Sources.push_back(C.Path);
      StringRef Own = sys::path::parent_path(C.Path);
      if (Own != Folder && (sys::fs::create_directory(Own) ||
                            !write((Own + "/.accelerate-migrate.yaml").str(), C.Example->Configuration)))
        return false;
    }
    ConfigurationOptions Found = Configured.options();
    Found.Ignore = O.NoConfig;
    Here.emplace(std::move(Found), Folder);
    Here->find(Sources);
    if (Error E = Here->load()) {
      Err << "accelerate-migrate: error: in the configuration of an example: " << llvm::toString(std::move(E)) << "\n";
      return false;
    }
    return true;
  }

  /// With a configuration of its own it has a folder of its own, which holds it.
  static std::string pathOf(const Case &C, StringRef Folder) {
    return (Folder + "/" + (C.Example->Configuration.empty() ? "" : C.Stem + "/") + C.Stem + ".cpp").str();
  }

  void collect(StringRef Folder) {
    for (const Rule &R : Configured.of("").Rules.rules()) {
      if (realPathOf(sys::path::parent_path(R.Path)) != Dir)
        continue;
      if (!R.Examples.empty())
        ++Tested;
      else if (!R.NoExample.empty())
        ++Reasoned;
      else
        Without.push_back(R.Code + " " + R.Name);
      for (const RuleExample &E : R.Examples) {
        Case C{&R, &E, (R.Code + "_" + Twine(E.Line)).str(), "", "", false};
        C.Path = pathOf(C, Folder);
        C.Whole = E.Around.empty() && StringRef(E.Before).contains("main(");
        if (C.Whole) {
          C.Text = E.Before;
        } else {
          StringRef Around = E.Around.empty() ? UsualProgram : StringRef(E.Around);
          auto [Head, Tail] = Around.split("{example}");
          size_t Line = Head.rfind('\n') + 1; // npos + 1 is 0
          StringRef Indent = Head.substr(Line);
          C.First = Head.count('\n') + 2;
          std::string Example = indented(E.Before, Indent);
          C.Last = C.First + StringRef(Example).count('\n') - 1;
          C.Text = (Head + ExampleBegins + "\n" + Example + Indent + ExampleEnds + Tail).str();
        }
        Cases.push_back(std::move(C));
      }
    }
  }

  void collectVariants(StringRef Folder) {
    for (size_t I = 0, Originals = Cases.size(); I != Originals; ++I) {
      if (Cases[I].Example->After == Cases[I].Example->Before) // however it is written, nothing of it is the rule's
        continue;
      for (size_t V = 0; V != std::size(VariantNames); ++V) {
        Case C = Cases[I];
        C.As = static_cast<Variant>(V);
        C.Original = I;
        if (C.As == Variant::Again) // once it is migrated
          continue;
        std::optional<std::string> Text = written(*C.As, C.Text, C.Of->Code);
        if (!Text) {
          if (C.Of->NoVariant.count(*C.As)) {
            ++Excused;
            Impossible.insert({C.Of, *C.As});
          } else {
            ++Variants;
            failed(C, "it can't be written so; say why in `no-variant`");
          }
          continue;
        }
        C.Stem += ("_" + VariantNames[V]).str();
        C.Path = pathOf(C, Folder);
        C.Text = std::move(*Text);
        Cases.push_back(std::move(C));
      }
    }
  }

  /// The examples that were migrated, to be migrated again.
  std::vector<Case> migratedCases(const Result &Final) const {
    std::vector<Case> Migrated;
    for (size_t I = 0; I != Cases.size(); ++I)
      if (auto Edited = Final.Texts.find(Cases[I].Path); !Cases[I].As && Edited != Final.Texts.end()) {
        Case C = Cases[I];
        C.As = Variant::Again;
        C.Original = I;
        C.Text = Edited->second.second;
        Migrated.push_back(std::move(C));
      }
    return Migrated;
  }

  static ExampleOutcome outcome(const Case &C, const Result &Final) {
    ExampleOutcome O;
    O.Before = O.Now = C.Text;
    if (auto Edited = Final.Texts.find(C.Path); Edited != Final.Texts.end()) {
      O.Now = Edited->second.second;
      O.Edited = true;
    }
    copy_if(Final.Findings, std::back_inserter(O.Findings), [&](const Finding &F) { return F.Path == C.Path; });
    for (const ProgramResult &P : Final.Programs)
      if (is_contained(P.Units, C.Path)) {
        O.What = P.What;
        O.Reason = P.Reason;
      }
    return O;
  }

  void compareVariants(const Result &Final) {
    for (const Case &C : Cases)
      if (C.As)
        compare(C, outcome(Cases[C.Original], Final), outcome(C, Final), Final);
  }

  void compare(const Case &C, const ExampleOutcome &Example, const ExampleOutcome &Other, const Result &Final) {
    std::string Why = whatIsWrong(*C.As, *C.Of, *C.Example, Example, Other);
    if (C.Of->NoVariant.count(*C.As)) {
      ++Excused;
      if (!Why.empty())
        Impossible.insert({C.Of, *C.As});
      return;
    }
    ++Variants;
    if (Why.empty())
      return;
    failed(C, Why);
    told(C, Final);
  }

  void failed(const Case &C, const std::string &Why) {
    ++FailedVariants;
    Out << C.Of->Path << ":" << C.Example->Line << ": " << C.Of->Code << " " << C.Of->Name << ", written with "
        << VariantNames[static_cast<size_t>(*C.As)] << ": " << Why << "\n";
  }

  /// A reason that no example needs is out of date.
  void needlessReasons() {
    for (const Case &C : Cases)
      for (const auto &[V, Why] : C.Of->NoVariant)
        if (!C.As && !Impossible.count({C.Of, V}) && Impossible.insert({C.Of, V}).second) {
          ++Variants;
          ++FailedVariants;
          Out << C.Of->Path << ": " << C.Of->Code << " " << C.Of->Name << ": `no-variant` has a reason for "
              << VariantNames[static_cast<size_t>(V)] << ", and it holds\n";
        }
  }

  /// Whether something at this place is the rule's, in the example.
  template <typename T> static bool within(const Case &C, const T &At) {
    return At.Path == C.Path && At.Code == C.Of->Code && C.First <= At.Line && At.Line <= C.Last;
  }

  void check(const Case &C, const Result &Final) {
    auto Edited = Final.Texts.find(C.Path);
    std::string Now = Edited == Final.Texts.end() ? C.Text : Edited->second.second;
    bool Edits = any_of(Final.Edits, [&](const Edit &E) { return within(C, E); });
    bool Reports = any_of(Final.Findings, [&](const Finding &F) { return within(C, F); });
    const RuleExample &E = *C.Example;
    std::string Before = C.Whole ? E.Before : indented(E.Before, ""), Got = C.Whole ? Now : between(Now);
    std::string After = !E.After ? Before : C.Whole ? *E.After : indented(*E.After, "");
    std::string Why;
    if (!E.After) {
      if (!Reports)
        Why = "nothing is reported";
    } else if (Got != After) {
      Why = "it becomes something else";
    } else if (After == Before) {
      if (Edits || Reports)
        Why = "it isn't left alone";
    } else if (!Edits) {
      Why = "another rule makes it so";
    }
    if (Why.empty())
      return;
    ++Failed;
    Out << C.Of->Path << ":" << E.Line << ": " << C.Of->Code << " " << C.Of->Name << ": " << Why << "\n";
    if (E.After && Got != After)
      Out << unifiedDiff(C.Of->Code + "_" + std::to_string(E.Line) + ".cpp", After, Got);
    told(C, Final);
  }

  /// What was said of a program that isn't as it should be.
  void told(const Case &C, const Result &Final) {
    for (const ProgramResult &P : Final.Programs)
      if (is_contained(P.Units, C.Path))
        Out << "  its program: " << toString(P.What) << (P.Reason.empty() ? "" : " (" + P.Reason + ")") << "\n";
    for (const Finding &F : Final.Findings)
      if (F.Path == C.Path)
        Out << "  line " << F.Line << ": " << toString(F.Level) << ": " << F.Message << " [" << F.Code << " " << F.Name
            << "]\n";
  }

  const Options &O;
  std::string Dir;
  const Configurations &Configured;
  raw_ostream &Out, &Err;
  std::optional<Configurations> Here; ///< what is in force for examples
  std::vector<Case> Cases;
  size_t Failed = 0, Tested = 0, Reasoned = 0;
  size_t Variants = 0, FailedVariants = 0, Excused = 0;
  std::set<std::pair<const Rule *, Variant>> Impossible; ///< what has a reason, and needs it
  std::vector<std::string> Without;
};

} // namespace

bool testExamples(const Options &O, StringRef Dir, const Configurations &Configured, const UnitCommand &Command,
                  const ParseOptions &Parsing, const std::string &Identity, raw_ostream &Out, raw_ostream &Err) {
  return Tester(O, Dir, Configured, Out, Err).run(Command, Parsing, Identity);
}

} // namespace migrate
