//===- Driver.cpp ---------------------------------------------------------===//
#include "Driver.h"
#include "Examples.h"
#include "Migrator.h"
#include "project/Git.h"
#include "report/Explain.h"
#include "report/Report.h"
#include "train/VerifyTraining.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace migrate {

StringRef toString(Verdict V) {
  static const char *const Names[] = {"nothing to do", "migrated", "migrated with notes", "refused"};
  return Names[static_cast<int>(V)];
}

namespace {

class Run {
public:
  Run(const Options &O, raw_ostream &Out, raw_ostream &Err) : O(O), Out(Out), Err(Err) {}

  int operator()() {
    if (O.ListRules || !O.Explain.empty())
      return explainRules();
    if (O.Test)
      return testRules();
    Tree = take(openProject(O.BuildDir, O.Sources, O.Flags));
    if (Failed || !recover())
      return Usage;
    if (O.Verify == VerifyMode::Train)
      if (std::optional<TrainingCheck> Check = take(TrainingCheck::prepare(O, *Tree)))
        Training.emplace(std::move(*Check));
    if (Failed)
      return Usage;
    Configured.emplace(configuration(), Tree->DiffRoot);
    std::vector<std::string> Sources;
    for (const std::vector<UnitCommand> *Units : {&Tree->Units, &Tree->CudaUnits})
      for (const UnitCommand &Unit : *Units)
        Sources.push_back(Unit.Source);
    Configured->find(Sources);
    if (!prepareParsing())
      return Usage;
    if (O.Cache) {
      Runs = Cache(cacheFolder("runs"));
      Lists = Cache(cacheFolder("lists"));
    }
    if (std::optional<int> Code = sayAgain())
      return *Code;
    if (Error E = Configured->load()) {
      error(llvm::toString(std::move(E)));
      return Usage;
    }
    return migrate();
  }

private:
  ConfigurationOptions configuration() const {
    return {findRulesDir(O.RulesDir, O.Executable), O.Rules, O.Config, O.NoConfig};
  }

  /// The rules that are in force for a file in the current folder.
  int explainRules() {
    SmallString<256> Here;
    sys::fs::current_path(Here);
    std::string Source = (realPathOf(Here) + "/source.cpp");
    Configured.emplace(configuration(), "/");
    Configured->find({Source});
    if (Error E = Configured->load()) {
      error(llvm::toString(std::move(E)));
      return Usage;
    }
    return explain(Configured->of(Source), O.Explain, Out, Err) ? NothingToDo : Usage;
  }

  /// `accelerate-migrate test DIR...`
  int testRules() {
    if (O.Sources.empty()) {
      error("`test` wants the folder of the rules: accelerate-migrate test DIR -- FLAGS");
      return Usage;
    }
    UnitCommand Command;
    if (O.Flags.empty()) {
      Tree = take(openProject(O.BuildDir, {}, {}));
      if (Failed)
        return Usage;
      if (Tree->Units.empty()) {
        error("no unit in '" + Tree->BuildDir + "', whose flags would be those of examples; give some after `--`");
        return Usage;
      }
      Command = Tree->Units.front();
    } else {
      SmallString<256> Here;
      sys::fs::current_path(Here);
      Command.Source = Command.Command.Filename = "example.cpp";
      Command.Command.Directory = Here.str();
      Command.Command.CommandLine = {"clang++"};
      append_range(Command.Command.CommandLine, O.Flags);
      Command.Command.CommandLine.push_back(Command.Source);
    }
    bool Held = true;
    for (const std::string &Dir : O.Sources) {
      ConfigurationOptions Options = configuration();
      if (O.Config.empty())
        Options.Ignore = true; // a folder of rules is looked at by itself
      if (realPathOf(Dir) != realPathOf(Options.BuiltIn))
        Options.Folders.push_back(Dir);
      Configured.emplace(Options, "/");
      Configured->find({});
      if (Error E = Configured->load()) {
        error(llvm::toString(std::move(E)));
        return Usage;
      }
      if (!prepareParsing())
        return Usage;
      Held &= testExamples(O, Dir, *Configured, Command, Parsing, Identity, Out, Err);
    }
    return Held ? NothingToDo : Pending;
  }

  bool prepareParsing() {
    Parsing.ResourceDir = findResourceDir(O.ResourceDir, O.Executable);
    if (Parsing.ResourceDir.empty()) {
      Err << "accelerate-migrate: error: Clang's own headers aren't found; name their folder with --resource-dir "
             "(`clang-19 -print-resource-dir` prints it)\n";
      return false;
    }
    Parsing.Precompile = O.Precompile;
    Parsing.SkipBodies = O.SkipBodies;
    Parsing.RuntimeInclude = runtimeInclude();

    Identity = toolIdentity() + Configured->patternsDigest();
    for (const char *Variable : {"CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS"})
      if (const char *Value = std::getenv(Variable)) // Clang reads it
        Identity += std::string(" ") + Variable + "=" + Value;
    return true;
  }

  template <typename T> std::optional<T> take(Expected<T> Value) {
    if (Value)
      return std::move(*Value);
    error(llvm::toString(Value.takeError()));
    return std::nullopt;
  }
  void error(const Twine &Message) {
    Err << "accelerate-migrate: error: " << Message << "\n";
    Failed = true;
  }

  /// Where `accelerate/accelerate.h` lies: beside the installed binary, else in the source tree.
  std::string runtimeInclude() const {
    std::vector<std::string> Places = {(sys::path::parent_path(O.Executable) + "/../include").str(),
                                       MIGRATE_RUNTIME_INCLUDE};
    if (!O.RuntimeInclude.empty())
      Places = {O.RuntimeInclude};
    for (const std::string &Place : Places)
      if (sys::fs::exists(Place + "/accelerate/accelerate.h"))
        return Place;
    return "";
  }

  /// Another build of the tool may see other things in the same sources.
  std::string toolIdentity() const {
    sys::fs::file_status Status;
    if (sys::fs::status(O.Executable, Status))
      return MIGRATE_VERSION;
    return MIGRATE_VERSION " " + std::to_string(Status.getSize()) + " " +
           std::to_string(Status.getLastModificationTime().time_since_epoch().count()) + " ";
  }

  /// A run that was killed while it wrote is undone or completed before anything is read.
  bool recover() {
    Expected<Recovery> Done = recoverTree(Tree->SourceRoot);
    if (!Done) {
      error(llvm::toString(Done.takeError()));
      return false;
    }
    if (*Done != Recovery::NothingToDo && !O.Quiet)
      Err << "accelerate-migrate: an earlier run was killed while it wrote; its edits are "
          << (*Done == Recovery::Completed ? "completed" : "undone") << "\n";
    return true;
  }

  /// Everything that a run's output depends on, beside the files that it reads.
  std::string runKey() const {
    std::vector<std::string> Owned = {
        Identity,
        Configured->digest(),
        Tree->HomeDir,
        Tree->SourceRoot,
        Tree->BuildDir,
        Tree->DiffRoot,
        Parsing.ResourceDir,
        Parsing.RuntimeInclude,
        std::to_string(static_cast<int>(O.Output)) + std::to_string(static_cast<int>(O.Verify)),
        std::string({O.AllowErrors ? 'e' : ' ', O.Quiet ? 'q' : ' ', O.Precompile ? 'p' : ' ', O.SkipBodies ? 's' : ' ',
                     O.Prefilter ? 'f' : ' '})};
    append_range(Owned, Tree->Notes);
    for (const UnitCommand &Unit : Tree->Units) {
      Owned.insert(Owned.end(), {Unit.Source, Unit.Target, Unit.Command.Directory});
      append_range(Owned, Unit.Command.CommandLine);
    }
    for (const auto &[Name, Uses] : Tree->Targets) {
      Owned.push_back("target " + Name);
      append_range(Owned, Uses);
    }
    std::vector<StringRef> Parts(Owned.begin(), Owned.end());
    return cacheKey(Parts);
  }

  /// An unchanged tree gets the answer that it got before.
  std::optional<int> sayAgain() {
    // Training depends on more than a key can hold: compilers, libraries, data.
    if (!O.Cache || !O.Dump.empty() || Training)
      return std::nullopt;
    Key = runKey();
    std::unique_ptr<MemoryBuffer> Bytes = Runs.find(Key);
    std::optional<StoredRun> Known = Bytes ? deserialiseRun(Bytes->getBuffer()) : std::nullopt;
    // What is to be written must be known edit by edit.
    if (!Known || (O.InPlace && Known->Edits))
      return std::nullopt;
    DependencyCheck Check;
    if (!Check.hold(Known->Own) ||
        !all_of(Known->System, [&](const std::string &List) { return Reader::listHolds(Lists, List, Check); }))
      return std::nullopt;
    Out << Known->Out;
    Err << Known->Err;
    if (O.Statistics)
      Err << "accelerate-migrate: nothing has changed since the last run\n";
    return Known->Code;
  }

  void remember(const std::string &Printed, const std::string &Said, int Code, const Reader &Units,
                const std::map<std::string, std::string> &Read) {
    if (!O.Cache || !O.Dump.empty() || Training || !Units.sources().Known || Code == Usage)
      return;
    StoredRun R;
    R.Out = Printed;
    R.Err = Said;
    R.Code = Code;
    R.Edits = !Final.Edits.empty();
    R.System.assign(Units.sources().System.begin(), Units.sources().System.end());
    std::map<std::string, Dependency> Own;
    for (const Dependency &D : Units.sources().Own)
      Own[D.Path] = D;
    for (const auto &[Path, Text] : Read)
      Own[Path] =
          sys::fs::exists(Path) ? Dependency::text(Path, Text) : Dependency{Dependency::Kind::Missing, Path, {}};
    // A target that is defined some day will have to be linked.
    for (const UnitCommand &Unit : Tree->Units)
      for (StringRef Dir = sys::path::parent_path(Unit.Source); Dir.starts_with(Tree->SourceRoot) && !Dir.empty();
           Dir = sys::path::parent_path(Dir))
        if (std::string List = (Dir + "/CMakeLists.txt").str(); !sys::fs::exists(List))
          Own[List] = {Dependency::Kind::Missing, List, {}};
    // A style that comes or goes changes how touched lines look.
    for (const auto &[Path, Text] : Final.Texts)
      for (StringRef Dir = sys::path::parent_path(Path); Dir.starts_with(Tree->DiffRoot) && !Dir.empty();
           Dir = sys::path::parent_path(Dir))
        for (const char *Name : {"/.clang-format", "/_clang-format"}) {
          std::string Style = (Dir + Name).str();
          auto Buffer = MemoryBuffer::getFile(Style, /*IsText=*/false, /*RequiresNullTerminator=*/false);
          Own[Style] = Buffer ? Dependency::text(Style, (*Buffer)->getBuffer())
                              : Dependency{Dependency::Kind::Missing, Style, {}};
        }
    for (auto &[Path, D] : Own)
      R.Own.push_back(std::move(D));
    Runs.store(Key, serialise(R));
    Runs.prune(64u << 20);
  }

  int migrate() {
    std::string Printed, Said;
    raw_string_ostream PrintedOS(Printed), SaidOS(Said);
    SaidOS.enable_colors(false);
    if (!O.Quiet) {
      if (!Tree->BuildDir.empty())
        SaidOS << "accelerate-migrate: " << Tree->Units.size() << (Tree->Units.size() == 1 ? " unit" : " units")
               << " of '" << Tree->BuildDir << "/compile_commands.json'\n";
      for (const std::string &Note : Tree->Notes)
        SaidOS << "accelerate-migrate: " << Note << "\n";
    }
    ReaderOptions Reading{Parsing, O.Prefilter, O.Cache, O.Isolate, O.Jobs, Identity};
    StatusLine Status(Err, !O.Quiet);
    Reader Units(*Tree, Configured->patterns(), Reading, Status);
    Migrator M(O, *Tree, *Configured, Parsing, Units, PrintedOS, SaidOS);
    Final = M.run();
    if (Training && !Final.Texts.empty())
      if (Error E = Training->run(*Configured, Final, Status, SaidOS)) {
        Status.clear();
        Err << Said;
        error(llvm::toString(std::move(E)) + "; nothing was changed");
        return Usage;
      }
    Status.clear();
    int Code = finish(PrintedOS, SaidOS);
    Out << Printed;
    Err << Said;
    if (O.Statistics)
      Err << "accelerate-migrate: units parsed " << Units.statistics().Parsed << ", from the cache "
          << Units.statistics().Cached << ", without training " << Units.statistics().Skipped << "\n";
    if (!Applied && !Failed)
      remember(Printed, Said, Code, Units, M.texts());
    Out.flush();
    return Code;
  }

  int finish(raw_ostream &Printed, raw_ostream &Said) {
    bool Waits = any_of(Final.Findings, [](const Finding &F) { return F.Level > Severity::Note; });
    if (O.InPlace && !Final.Texts.empty()) {
      if (!write())
        return Usage;
      Applied = true;
    }
    if (O.Output == Options::Format::Json)
      printJson(Final, *Tree, Printed);
    else if (!O.InPlace)
      printDiff(Final, *Tree, Printed);
    if (!O.Quiet)
      printSummary(Final, *Tree, Applied, Said);
    if (Final.Unverified)
      return Unverified;
    if (Final.Unparsed)
      return Unparsed;
    return Waits || (!Final.Edits.empty() && !Applied) ? Pending : NothingToDo;
  }

  bool write() {
    if (!O.AllowDirty) {
      std::vector<std::string> Paths;
      for (const auto &[Path, Text] : Final.Texts)
        Paths.push_back(Path);
      if (std::string Why = uncommitted(Tree->SourceRoot, Paths); !Why.empty()) {
        error(Why + ": commit first, so that git can take the edits back, or use --allow-dirty; nothing was changed");
        return false;
      }
    }
    if (Error E = writeTree(Tree->SourceRoot, Final.Texts)) {
      error(llvm::toString(std::move(E)));
      return false;
    }
    return true;
  }

  const Options &O;
  raw_ostream &Out, &Err;
  std::optional<Project> Tree;
  std::optional<TrainingCheck> Training;
  std::optional<Configurations> Configured;
  ParseOptions Parsing;
  std::string Identity, Key;
  Cache Runs, Lists;
  Result Final;
  bool Failed = false, Applied = false;
};

} // namespace

int run(const Options &O, raw_ostream &Out, raw_ostream &Err) { return Run(O, Out, Err)(); }

} // namespace migrate
