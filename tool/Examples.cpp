//===- Examples.cpp -------------------------------------------------------===//
#include "Examples.h"
#include "Migrator.h"
#include "edit/UnifiedDiff.h"
#include "units/Dependencies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

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

constexpr StringLiteral Begins = "// the example begins", Ends = "// the example ends";

/// One example, as a program in a file.
struct Case {
  const Rule *Of;
  const RuleExample *Example;
  std::string Path, Text;
  bool Whole;                     ///< the example is the program
  unsigned First = 1, Last = ~0u; ///< its lines
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
  size_t From = Text.find(Begins), To = Text.find(Ends);
  if (From == StringRef::npos || To == StringRef::npos || To < From)
    return "the example's place is gone:\n" + Text.str();
  size_t Line = Text.take_front(From).rfind('\n') + 1; // npos + 1 is 0
  StringRef Indent = Text.slice(Line, From);
  std::string Result;
  for (StringRef Rest = Text.slice(From + Begins.size() + 1, To).rtrim(); !Rest.empty();) {
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
    if (!configure(Folder))
      return false;
    Project Tree;
    Tree.SourceRoot = Tree.DiffRoot = Folder.str().str();
    // Lines stay as rules write them.
    if (!write((Folder + "/.clang-format").str(), "DisableFormat: true\n"))
      return false;
    for (const Case &C : Cases) {
      if (!write(C.Path, C.Text))
        return false;
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
    std::string Printed, Said;
    raw_string_ostream PrintedOS(Printed), SaidOS(Said);
    if (!Cases.empty()) {
      ReaderOptions Reading{
          Parsing, /*Prefilter=*/false, O.Cache, O.Isolate, O.Jobs, Identity + Here->patternsDigest()};
      StatusLine Status(Err, !O.Quiet);
      Reader Units(Tree, Here->patterns(), Reading, Status);
      Result Final = Migrator(O, Tree, *Here, Parsing, Units, PrintedOS, SaidOS).run();
      for (const Case &C : Cases)
        check(C, Final, Tree);
    }
    if (Failed)
      Err << Said;
    Out << "accelerate-migrate: " << Cases.size() - Failed << " of " << Cases.size()
        << (Cases.size() == 1 ? " example" : " examples") << " of " << Tested << (Tested == 1 ? " rule" : " rules")
        << " hold";
    if (Reasoned)
      Out << "; " << Reasoned << (Reasoned == 1 ? " rule says" : " rules say") << " why there is none";
    if (Without.size())
      Out << "; " << Without.size() << (Without.size() == 1 ? " rule has none: " : " rules have none: ")
          << llvm::join(Without, ", ");
    Out << "\n";
    return Failed == 0;
  }

private:
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
        std::string Stem = (R.Code + "_" + Twine(E.Line)).str();
        // With a configuration of its own it has a folder of its own, which holds it.
        Case C{&R, &E, (Folder + "/" + (E.Configuration.empty() ? "" : Stem + "/") + Stem + ".cpp").str(), "", false};
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
          C.Text = (Head + Begins + "\n" + Example + Indent + Ends + Tail).str();
        }
        Cases.push_back(std::move(C));
      }
    }
  }

  /// Whether something at this place is the rule's, in the example.
  template <typename T> static bool within(const Case &C, const T &At) {
    return At.Path == C.Path && At.Code == C.Of->Code && C.First <= At.Line && At.Line <= C.Last;
  }

  void check(const Case &C, const Result &Final, const Project &Tree) {
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
  std::vector<std::string> Without;
};

} // namespace

bool testExamples(const Options &O, StringRef Dir, const Configurations &Configured, const UnitCommand &Command,
                  const ParseOptions &Parsing, const std::string &Identity, raw_ostream &Out, raw_ostream &Err) {
  return Tester(O, Dir, Configured, Out, Err).run(Command, Parsing, Identity);
}

} // namespace migrate
