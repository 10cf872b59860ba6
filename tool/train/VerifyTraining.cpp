//===- VerifyTraining.cpp -------------------------------------------------===//
#include "train/VerifyTraining.h"
#include "project/Support.h"
#include "report/StatusLine.h"
#include "train/Copies.h"
#include "train/Process.h"
#include "train/Related.h"
#include "units/Workers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/StringSaver.h"

using namespace llvm;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace migrate {

namespace {

/// Our own folder below the system's temporary one; it goes unless there is something to show in it.
struct WorkFolder {
  std::string Path;
  bool Keep = false;
  ~WorkFolder() {
    if (!Path.empty() && !Keep)
      fs::remove_directories(Path);
  }
};

} // namespace

/// Beside the tool, else on the PATH.
static std::string findLauncher(StringRef Executable) {
  const StringRef Beside[] = {path::parent_path(Executable)};
  for (ArrayRef<StringRef> Places : {ArrayRef(Beside), ArrayRef<StringRef>()})
    if (ErrorOr<std::string> Found = sys::findProgramByName("accelerate-cpp", Places))
      return realPath(*Found);
  return "";
}

Expected<TrainingCheck> TrainingCheck::prepare(const Options &O, const Project &Tree) {
  // Many projects link the database of their build folder into the source folder.
  std::string Database = realPath(Tree.BuildDir + "/compile_commands.json");
  Expected<CMakeCache> Cache = CMakeCache::read(Database.empty() ? Tree.BuildDir : path::parent_path(Database).str());
  if (!Cache)
    return fail("--verify=train builds CMake projects, and this is none: " + llvm::toString(Cache.takeError()) +
                ". Build it before and after, and compare both with `accelerate-cpp verify --original PROGRAM "
                "--migrated PROGRAM -- ARGUMENTS`");
  if (Cache->program().empty())
    return fail("--verify=train builds with CMake, and there is none: neither '" + Cache->get("CMAKE_COMMAND") +
                "', which has configured the project, nor cmake on the PATH");
  TrainingCheck Check(O, Tree, std::move(*Cache));
  Check.Verifier = findLauncher(O.Executable);
  if (Check.Verifier.empty())
    return fail("--verify=train runs accelerate-cpp, which is neither beside '" + O.Executable +
                "' nor on the PATH; install it with the runtime, or put its folder on the PATH");
  Check.Folder = realPath(O.VerifyCwd.empty() ? "." : O.VerifyCwd);
  if (Check.Folder.empty() || !fs::is_directory(Check.Folder))
    return fail("--verify-cwd: there is no folder '" + O.VerifyCwd + "'");
  return Check;
}

/// An entry of the cache that names the runtime's CMake package beside the launcher, installed or just built, for users
/// who haven't told CMake of it yet.
std::string TrainingCheck::findAccelerate() const {
  if (!Cache.get("Accelerate_DIR").empty())
    return "";
  StringRef Prefix = path::parent_path(path::parent_path(Verifier));
  std::vector<std::string> Places = {(Prefix + "/runtime").str()};
  std::error_code EC;
  for (fs::directory_iterator It(Prefix, EC), End; !EC && It != End; It.increment(EC))
    if (path::filename(It->path()).starts_with("lib")) {
      Places.push_back(It->path() + "/cmake/Accelerate");
      std::error_code Inner; // lib/x86_64-linux-gnu
      for (fs::directory_iterator Sub(It->path(), Inner); !Inner && Sub != End; Sub.increment(Inner))
        Places.push_back(Sub->path() + "/cmake/Accelerate");
    }
  for (const std::string &Place : Places)
    if (fs::exists(Place + "/AccelerateConfig.cmake"))
      return "set(Accelerate_DIR [=[" + Place + "]=] CACHE PATH \"\")\n";
  return "";
}

/// As a shell splits them.
static std::vector<std::string> words(StringRef Text) {
  BumpPtrAllocator Memory;
  StringSaver Saver(Memory);
  SmallVector<const char *, 16> Words;
  cl::TokenizeGNUCommandLine(Text, Saver, Words);
  return {Words.begin(), Words.end()};
}

/// Those that are for this program, else those that are for all.
std::vector<std::string> TrainingCheck::arguments(StringRef Name) const {
  std::string All;
  for (StringRef Text : O.VerifyArgs) {
    StringRef Target = Text.split(':').first;
    if (Target == Name && Text.contains(':'))
      return words(Text.drop_front(Name.size() + 1));
    if (!Text.contains(':') || none_of(Tree.Units, [&](const UnitCommand &Unit) { return Unit.Target == Target; }))
      All = Text.str();
  }
  return words(All);
}

/// Of `accelerate-cpp verify`. It runs in another folder than the user, so files are named by their whole paths; `-` is
/// standard output.
std::vector<std::string> TrainingCheck::flags() const {
  std::vector<std::string> Flags = words(O.VerifyFlags);
  auto Absolute = [](StringRef File) {
    if (File == "-")
      return File.str();
    SmallString<256> Path(File);
    fs::make_absolute(Path);
    return Path.str().str();
  };
  for (size_t I = 0; I != Flags.size(); ++I)
    for (StringRef Name : {"--json", "--html", "--link", "--recorder"})
      if (Flags[I] == Name && I + 1 != Flags.size())
        Flags[I + 1] = Absolute(Flags[I + 1]);
      else if (StringRef Value = Flags[I]; Value.consume_front(Name) && Value.consume_front("="))
        Flags[I] = (Name + "=" + Absolute(Value)).str();
  return Flags;
}

/// Whether both train alike; what `accelerate-cpp verify` says if not goes to `Said`.
Expected<bool> TrainingCheck::compare(const std::string &Name, const std::string &Original, const std::string &Migrated,
                                      RunFolder &Inputs, const std::string &Work, std::string &Document,
                                      raw_ostream &Said) const {
  const std::vector<std::string> Flags = flags();
  std::string LeftOut;
  for (unsigned Round = 1;; ++Round) {
    const std::string Runs = Work + "/runs-" + std::to_string(Round) + "/" + Name;
    if (std::error_code EC = fs::create_directories(Runs))
      return fail("'" + Runs + "' can't be made: " + EC.message());
    std::vector<std::string> Command = {Verifier, "verify", "--original", Original,    "--migrated",
                                        Migrated, "--work", Runs,         "--timeout", std::to_string(O.VerifyTimeout)};
    Document = Runs + ".json";
    Command.push_back("--json=" + Document); // beside the user's, if there is one
    append_range(Command, Flags);
    for (const std::string &Entry : Inputs.entries())
      Command.push_back("--link=" + Entry);
    Command.push_back("--");
    append_range(Command, arguments(Name));
    // Each run has the limit; there are the original (twice, if in doubt), one alone, and one for each of --ranks.
    Expected<Ended> Done = runProcess(Command, Runs + ".txt", 12 * O.VerifyTimeout + 300);
    if (!Done)
      return Done.takeError();
    // Runs that write what others read can't be compared.
    if (std::set<std::string> Changed = Inputs.changed(); !Changed.empty()) {
      if (Round == 2)
        return fail("`" + Name + "` can't be compared: its runs write to '" + *Changed.begin() + "' in the copy of '" +
                    Folder + "' that they share; name a folder without it with --verify-cwd");
      for (const std::string &Entry : Changed)
        Inputs.leaveOut(Entry);
      LeftOut = " without '" + llvm::join(Changed, "', '") + "' of '" + Folder + "', where its runs write";
      continue;
    }
    const bool Printed = is_contained(Flags, "-") || is_contained(Flags, "--json=-");
    if (Done->Code == 4 || (Done->Code == 0 && Printed))
      Said << Done->Output;
    if (Done->Code == 0)
      return true;
    if (Done->Code != 4)
      return fail("`" + Name + "` can't be compared" + LeftOut + ": accelerate-cpp verify: " + Done->describe());
    return false;
  }
}

static void refuse(const Configurations &Configured, Result &Final, ProgramResult &Program, StringRef Code,
                   const Twine &Message) {
  Finding X;
  X.Code = Code.str();
  if (const Rule *R = Configured.of(Program.Units.empty() ? "" : Program.Units.front()).Rules.byCode(Code))
    X.Name = R->Name;
  X.Level = Severity::Refusal;
  X.Message = Message.str();
  Program.What = Verdict::Refused;
  Program.Reason = X.Code + " " + X.Name;
  Final.Findings.push_back(std::move(X));
}

Error TrainingCheck::run(const Configurations &Configured, Result &Final, StatusLine &Status, raw_ostream &Said) const {
  Interruptible Guard;
  SmallString<128> Path;
  if (std::error_code EC = fs::createUniqueDirectory("accelerate-migrate-train", Path))
    return fail("no temporary folder can be made: " + EC.message());
  WorkFolder Work{realPath(Path)};
  std::vector<ProgramResult *> Programs;
  for (ProgramResult &Program : Final.Programs)
    if (Program.What == Verdict::Migrated || Program.What == Verdict::MigratedWithNotes)
      Programs.push_back(&Program);
  size_t Step = 0;
  auto Show = [&](const Twine &What) { Status.show(++Step, 3 + 3 * Programs.size(), What); };

  Show("copying " + Tree.DiffRoot);
  Expected<RunFolder> Inputs = RunFolder::copy(Folder, Work.Path + "/inputs", Work.Path);
  if (!Inputs)
    return Inputs.takeError();
  const std::string Source = StringRef(Tree.HomeDir).drop_front(Tree.DiffRoot.size()).str();
  std::vector<CMakeBuild> Builds;
  for (const char *Kind : {"original", "migrated"}) {
    const std::string Own = Work.Path + "/" + Kind, Copy = Own + "/source";
    if (Error E = copyProject(Tree, Copy, Work.Path))
      return E;
    if (!Builds.empty())
      for (const auto &[File, Text] : Final.Texts) {
        std::error_code EC;
        raw_fd_ostream OS(Copy + File.substr(Tree.DiffRoot.size()), EC);
        OS << Text.second;
        OS.close();
        if (EC || (EC = OS.error())) {
          OS.clear_error();
          return fail("the edited '" + Tree.display(File) + "' can't be written to the copy: " + EC.message());
        }
      }
    Show("configuring the " + Twine(Kind) + " project");
    const unsigned Jobs = O.Jobs ? O.Jobs : jobsFor(uint64_t(2) << 30);
    if (Error E = Builds.emplace_back(Cache, Copy + Source, Own, std::max(1U, Jobs)).configure(findAccelerate()))
      return fail("a copy of the " + Twine(Kind) + " project can't be configured: " + llvm::toString(std::move(E)));
  }

  std::string Agree;
  for (ProgramResult *Program : Programs) {
    const std::string &Name = Program->Name;
    Show("building the original " + Name);
    Expected<std::string> Original = Builds[0].build(Name);
    if (!Original)
      return fail("a copy of the original `" + Name + "` can't be built: " + llvm::toString(Original.takeError()));
    Show("building the migrated " + Name);
    Expected<std::string> Migrated = Builds[1].build(Name);
    if (!Migrated && Interruptible::interrupted())
      return Migrated.takeError();
    if (!Migrated) {
      Said << "accelerate-migrate: " << llvm::toString(Migrated.takeError()) << "\n";
      refuse(Configured, Final, *Program, "AM0901", "the migrated `" + Name + "` can't be built");
      continue;
    }
    Show("training " + Name);
    std::string Document;
    Expected<bool> Same = compare(Name, *Original, *Migrated, *Inputs, Work.Path, Document, Said);
    if (!Same)
      return Same.takeError();
    if (*Same) {
      Agree += "accelerate-migrate: " + Name + ": the migrated program trains as the original does\n";
      continue;
    }
    sayRelatedPlaces(Document, Final, *Program, Tree, Said);
    refuse(Configured, Final, *Program, "AM0909",
           "the migrated `" + Name + "` doesn't train as the original does" +
               (Program->What == Verdict::MigratedWithNotes ? ", which may be what its notes say" : ""));
  }
  if (!O.Quiet)
    Said << Agree;
  auto Refused = find_if(Programs, [](const ProgramResult *Program) { return Program->What == Verdict::Refused; });
  if (Refused == Programs.end())
    return Error::success();
  // All of it was tried together, so that all or nothing of it is written.
  for (ProgramResult *Program : Programs)
    if (std::exchange(Program->What, Verdict::Refused) != Verdict::Refused)
      Program->Reason = "it trains as before, but `" + (*Refused)->Name + "`, which was tried with it, doesn't";
  Final.Edits.clear();
  Final.Texts.clear();
  Final.Unverified = Work.Keep = true;
  llvm::stable_sort(Final.Findings, [](const Finding &A, const Finding &B) { return A.key() < B.key(); });
  Said << "accelerate-migrate: what was built and run is kept in '" << Work.Path << "'\n";
  return Error::success();
}

} // namespace migrate
