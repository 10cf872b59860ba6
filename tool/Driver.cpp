//===- Driver.cpp ---------------------------------------------------------===//
#include "Driver.h"
#include "infer/Interpreter.h"
#include "infer/Structure.h"
#include "lower/Parse.h"
#include "project/CMakeEdit.h"
#include "report/Dump.h"
#include "report/Explain.h"
#include "report/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"

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
    Rules = take(RuleSet::load(findRulesDir(O.RulesDir, O.Executable)));
    Table = take(OperationTable::load(findRulesDir(O.RulesDir, O.Executable)));
    if (Failed)
      return Usage;
    if (O.ListRules || !O.Explain.empty())
      return explain(*Rules, O.Explain, Out, Err) ? NothingToDo : Usage;
    Tree = take(openProject(O.BuildDir, O.Sources, O.Flags));
    if (Failed)
      return Usage;
    Parsing.ResourceDir = findResourceDir(O.ResourceDir, O.Executable);
    if (Parsing.ResourceDir.empty()) {
      Err << "accelerate-migrate: error: Clang's own headers aren't found; name their folder with --resource-dir "
             "(`clang-19 -print-resource-dir` prints it)\n";
      return Usage;
    }
    Parsing.Precompile = O.Precompile;
    Parsing.RuntimeInclude = runtimeInclude();
    if (!O.Quiet && !Tree->BuildDir.empty())
      Err << "accelerate-migrate: " << Tree->Units.size() << (Tree->Units.size() == 1 ? " unit" : " units") << " of '"
          << Tree->BuildDir << "/compile_commands.json'\n";
    return migrate();
  }

private:
  template <typename T> std::optional<T> take(Expected<T> Value) {
    if (Value)
      return std::move(*Value);
    Err << "accelerate-migrate: error: " << llvm::toString(Value.takeError()) << "\n";
    Failed = true;
    return std::nullopt;
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

  /// Units are read side by side, as far as cores and memory go: a LibTorch unit takes about 700 MB.
  std::vector<ir::Unit> parse(const Overlay &Edited) {
    std::vector<ir::Unit> Units(Tree->Units.size());
    unsigned Jobs =
        O.Jobs ? O.Jobs : std::max(1u, std::min<unsigned>(hardware_concurrency().compute_thread_count(), 8));
    DefaultThreadPool Pool(hardware_concurrency(Jobs));
    for (size_t I = 0; I != Units.size(); ++I)
      Pool.async([&, I] { Units[I] = parseUnit(*Tree, Tree->Units[I], *Rules, Parsing, Edited); });
    Pool.wait();
    return Units;
  }

  const std::string &text(const std::string &Path, const Overlay &Edited) {
    if (auto It = Edited.find(Path); It != Edited.end())
      return It->second;
    auto [It, New] = Disk.try_emplace(Path);
    if (New)
      if (auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false, /*RequiresNullTerminator=*/false))
        It->second = (*Buffer)->getBuffer().str();
    return It->second;
  }

  /// Analyses the programs in `Units` and applies the rules to each.
  std::vector<std::pair<Program, Migration>> analyse(std::vector<ir::Unit> Units, const Overlay &Edited,
                                                     std::vector<std::string> &Unused) {
    std::vector<std::pair<Program, Migration>> Result;
    FileTexts Texts = [&](const std::string &Path) -> const std::string & { return text(Path, Edited); };
    for (Program &P : link(std::move(Units), Unused)) {
      Roles R(P);
      Findings F = Interpreter(P, R, *Table).run();
      auto Slice = [&](const ir::Range &Where) {
        return Where.valid() ? Texts(P.Code.Files[Where.File].Path).substr(Where.Begin, Where.End - Where.Begin) : "";
      };
      if (!O.Dump.empty() && Edited.empty())
        dump(O.Dump, P, R, F, *Tree, Texts, Out);
      Migration M;
      if (trains(P)) {
        M = applyRules(P, deriveFacts(P, R, F, Slice), *Rules, Texts);
        if (distributed(P, M))
          M.Edits.clear();
        if (!M.Edits.empty() && !Tree->BuildDir.empty())
          for (const std::string &Target : targets(P, M))
            linkRuntime(*Tree, Target, *Rules, Texts, M);
      }
      Result.emplace_back(std::move(P), std::move(M));
    }
    return Result;
  }

  static bool trains(const Program &P) {
    return !P.Code.Distributed.empty() || any_of(P.Code.Exprs, [](const ir::Expr &E) { return isBackward(E); });
  }

  /// The program's own target, and those of libraries whose sources are edited.
  std::vector<std::string> targets(const Program &P, const Migration &M) {
    std::vector<std::string> Names;
    for (const UnitCommand &Unit : Tree->Units) {
      bool Edited = any_of(M.Edits, [&](const Edit &E) { return E.Path == Unit.Source; });
      bool Main = is_contained(P.Sources, Unit.Source) && Unit.Target == P.Name;
      if ((Main || (Edited && is_contained(P.Sources, Unit.Source))) && !is_contained(Names, Unit.Target))
        Names.push_back(Unit.Target);
    }
    return Names;
  }

  /// True if the program shares its work out by itself; then that is all there is to say about it.
  bool distributed(const Program &P, Migration &M) {
    if (P.Code.Distributed.empty())
      return false;
    M.Findings.clear();
    for (const Rule *R : Rules->byFact("distributed-already")) {
      Finding X;
      X.Code = R->Code;
      X.Name = R->Name;
      X.Level = R->Level;
      StringRef Place = P.Code.Distributed.front();
      auto [Name, Where] = Place.split(" at ");
      X.Message = R->Message + ": `" + Name.str() + "`";
      auto [Path, Line] = Where.rsplit(':');
      X.Path = Path.str();
      Line.getAsInteger(10, X.Line);
      X.Column = 1;
      M.Findings.push_back(std::move(X));
    }
    return true;
  }

  int migrate() {
    std::vector<ir::Unit> Units = parse({});
    std::set<std::string> Broken;
    for (const ir::Unit &U : Units)
      if (!U.Errors.empty())
        Broken.insert(U.Source);
    reportErrors(Units);

    std::vector<std::string> Unused;
    auto Programs = analyse(std::move(Units), {}, Unused);
    if (!O.Dump.empty())
      return NothingToDo;
    for (auto &[P, M] : Programs) {
      ProgramResult Result;
      Result.Name = P.Name;
      Result.Units = P.Sources;
      const Finding *Refusal = nullptr;
      for (const Finding &F : M.Findings)
        if (F.Level == Severity::Refusal && !Refusal)
          Refusal = &F;
      bool Parses = none_of(P.Sources, [&](const std::string &S) { return Broken.count(S) != 0; });
      if (!Parses && P.Code.Distributed.empty()) {
        Result.What = Verdict::Refused;
        Result.Reason = "it doesn't parse";
        M.Edits.clear();
        M.Findings.clear(); // of half of a program
      } else if (Refusal) {
        Result.What = Verdict::Refused;
        Result.Reason = Refusal->Code + " " + Refusal->Name + " at " + Tree->display(Refusal->Path) + ":" +
                        std::to_string(Refusal->Line);
        M.Edits.clear();
      } else if (M.Edits.empty()) {
        Result.What = Verdict::NothingToDo;
      } else {
        Result.What = M.Findings.empty() ? Verdict::Migrated : Verdict::MigratedWithNotes;
      }
      append_range(Final.Edits, M.Edits);
      for (Finding &F : M.Findings)
        if (none_of(Final.Findings, [&](const Finding &Other) { return Other.key() == F.key(); }))
          Final.Findings.push_back(std::move(F));
      Final.Programs.push_back(std::move(Result));
    }
    disagreements(Programs);
    if (Error E = mergeEdits(Final.Edits)) {
      fail("AM0902", llvm::toString(std::move(E)));
      return finish(Unverified);
    }
    Overlay Edited;
    for (const Edit &E : Final.Edits)
      if (!Edited.count(E.Path)) {
        const std::string &Before = text(E.Path, {});
        Edited[E.Path] = applyEdits(Before, Final.Edits, E.Path);
        Final.Texts[E.Path] = {Before, Edited[E.Path]};
      }
    if (O.Verify && !Edited.empty() && !verify(Edited))
      return finish(Unverified);
    if (!Broken.empty())
      return finish(Unparsed);
    bool Pending =
        !Final.Edits.empty() || any_of(Final.Findings, [](const Finding &F) { return F.Level != Severity::Note; });
    return finish(Pending ? ExitCode::Pending : NothingToDo);
  }

  /// Two programs that share a file must want the same of it.
  void disagreements(const std::vector<std::pair<Program, Migration>> &Programs) {
    for (size_t I = 0; I != Programs.size(); ++I)
      for (size_t J = I + 1; J != Programs.size(); ++J) {
        std::map<std::string, std::set<std::tuple<uint32_t, uint32_t, std::string>>> Of[2];
        for (int Side = 0; Side != 2; ++Side)
          for (const Edit &E : Programs[Side ? J : I].second.Edits)
            if (!StringRef(E.Path).ends_with(".txt"))
              Of[Side][E.Path].insert({E.Begin, E.End, E.Text});
        auto Shares = [&](const Program &P, const std::string &Path) {
          return any_of(P.Code.Files, [&](const ir::File &F) { return F.Path == Path; });
        };
        for (int Side = 0; Side != 2; ++Side)
          for (const auto &[Path, Edits] : Of[Side]) {
            const auto &[Other, OtherMigration] = Programs[Side ? I : J];
            if (!Shares(Other, Path) || !trains(Other) || Of[!Side][Path] == Edits)
              continue;
            fail("AM0903", "programs `" + Programs[I].first.Name + "` and `" + Programs[J].first.Name +
                               "` need different edits in " + Tree->display(Path));
            return;
          }
      }
  }

  /// Nothing is written: the reason is a finding, every program with edits is refused.
  void fail(const std::string &Code, const std::string &Message) {
    Finding X;
    X.Code = Code;
    if (const Rule *R = Rules->byCode(Code))
      X.Name = R->Name;
    X.Level = Severity::Refusal;
    X.Message = Message;
    Final.Findings.push_back(X);
    Final.Edits.clear();
    Final.Texts.clear();
    for (ProgramResult &P : Final.Programs)
      if (P.What == Verdict::Migrated || P.What == Verdict::MigratedWithNotes) {
        P.What = Verdict::Refused;
        P.Reason = Code + " " + X.Name;
      }
  }

  /// The edited text is parsed again, in memory: it must compile, and migrating it must change nothing.
  bool verify(const Overlay &Edited) {
    if (Parsing.RuntimeInclude.empty()) {
      fail("AM0901", "the runtime's headers aren't found, so the result can't be checked; name their folder with "
                     "--runtime-include, or use --no-verify");
      return false;
    }
    std::vector<ir::Unit> Units = parse(Edited);
    for (const ir::Unit &U : Units)
      if (!U.Errors.empty() && !reported(U.Source)) {
        const ir::Problem &E = U.Errors.front();
        fail("AM0901", "the edited program doesn't compile: " + Tree->display(E.Path) + ":" + std::to_string(E.Line) +
                           ": " + E.Message);
        return false;
      }
    std::vector<std::string> Unused;
    for (const auto &[P, M] : analyse(std::move(Units), Edited, Unused)) {
      for (const Edit &E : M.Edits) {
        fail("AM0904", "a second migration of `" + P.Name + "` would edit " + Tree->display(E.Path) + ":" +
                           std::to_string(E.Line) + " again (" + E.Code + " " + E.Name + ")");
        return false;
      }
      for (const Finding &F : M.Findings)
        if (F.Level == Severity::Refusal && M.Edits.empty() && migrated(P.Name)) {
          fail("AM0904", "the migrated `" + P.Name + "` isn't satisfied: " + F.Message + " (" + Tree->display(F.Path) +
                             ":" + std::to_string(F.Line) + ")");
          return false;
        }
    }
    return true;
  }

  bool migrated(const std::string &Name) const {
    return any_of(Final.Programs, [&](const ProgramResult &P) {
      return P.Name == Name && (P.What == Verdict::Migrated || P.What == Verdict::MigratedWithNotes);
    });
  }

  void reportErrors(const std::vector<ir::Unit> &Units) {
    for (const ir::Unit &U : Units) {
      for (const ir::Problem &E : ArrayRef(U.Errors).take_front(5))
        Err << Tree->display(E.Path.empty() ? U.Source : E.Path) << ":" << E.Line << ":" << E.Column
            << ": error: " << E.Message << "\n";
      if (U.Errors.empty())
        continue;
      Err << "accelerate-migrate: error: '" << Tree->display(U.Source) << "' doesn't parse (" << U.Errors.size()
          << (U.Errors.size() == 1 ? " error" : " errors") << "); build it first, then migrate it\n";
      Reported.insert(U.Source);
    }
  }
  bool reported(const std::string &Source) const { return Reported.count(Source) != 0; }

  int finish(int Code) {
    llvm::stable_sort(Final.Findings, [](const Finding &A, const Finding &B) { return A.key() < B.key(); });
    bool Applied = false;
    if (O.InPlace && Code == Pending && !Final.Texts.empty()) {
      if (!write())
        return Usage;
      Applied = true;
      Code = any_of(Final.Findings, [](const Finding &F) { return F.Level != Severity::Note; }) ? Pending : NothingToDo;
    }
    if (O.Output == Options::Format::Json)
      printJson(Final, *Tree, Out);
    else if (!O.InPlace)
      printDiff(Final, *Tree, Out);
    if (!O.Quiet)
      printSummary(Final, *Tree, Applied, Err);
    Out.flush();
    return Code;
  }

  /// All files or none: each text is written beside its file first, then all are renamed.
  bool write() {
    std::vector<std::pair<std::string, std::string>> Renames;
    auto Undo = [&](const std::string &Path, std::error_code EC) {
      for (const auto &[Temporary, Target] : Renames)
        sys::fs::remove(Temporary);
      Err << "accelerate-migrate: error: '" << Tree->display(Path) << "' can't be written: " << EC.message()
          << "; nothing was changed\n";
      return false;
    };
    for (const auto &[Path, Text] : Final.Texts) {
      if (std::error_code EC = sys::fs::access(Path, sys::fs::AccessMode::Write))
        return Undo(Path, EC);
      SmallString<256> Temporary;
      int FD;
      if (std::error_code EC = sys::fs::createUniqueFile(Path + ".%%%%%%%%.migrate", FD, Temporary))
        return Undo(Path, EC);
      Renames.emplace_back(Temporary.str().str(), Path);
      raw_fd_ostream OS(FD, /*shouldClose=*/true);
      OS << Text.second;
      OS.close();
      if (OS.has_error()) {
        std::error_code EC = OS.error();
        OS.clear_error();
        return Undo(Path, EC);
      }
      if (auto Permissions = sys::fs::getPermissions(Path))
        sys::fs::setPermissions(Temporary, *Permissions);
    }
    for (const auto &[Temporary, Path] : Renames)
      if (std::error_code EC = sys::fs::rename(Temporary, Path))
        return Undo(Path, EC);
    return true;
  }

  const Options &O;
  raw_ostream &Out, &Err;
  std::optional<RuleSet> Rules;
  std::optional<OperationTable> Table;
  std::optional<Project> Tree;
  ParseOptions Parsing;
  std::map<std::string, std::string> Disk;
  std::set<std::string> Reported;
  Result Final;
  bool Failed = false;
};

} // namespace

int run(const Options &O, raw_ostream &Out, raw_ostream &Err) { return Run(O, Out, Err)(); }

} // namespace migrate
