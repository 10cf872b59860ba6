//===- Project.cpp --------------------------------------------------------===//
#include "project/Project.h"
#include "project/FileApi.h"
#include "project/Git.h"
#include "project/Support.h"
#include "clang/Driver/Options.h"
#include "clang/Tooling/JSONCompilationDatabase.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
namespace path = llvm::sys::path;
namespace fs = llvm::sys::fs;

namespace migrate {

static const char *const HowToMakeADatabase =
    "make one with `cmake -S . -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON`, or give the flags after `--`";

static bool below(StringRef P, StringRef Dir) {
  return !Dir.empty() && P.starts_with(Dir) && (P.size() == Dir.size() || P[Dir.size()] == '/' || Dir.ends_with("/"));
}

/// What CMake generates or fetches isn't the user's code.
static bool generated(StringRef P) { return P.contains("/CMakeFiles/") || P.contains("/_deps/"); }

bool Project::owns(StringRef P) const {
  if (!below(P, SourceRoot) || (below(P, BuildDir) && BuildDir != SourceRoot))
    return false;
  if (generated(P)) // nor is a copy of the runtime in their tree the user's code
    return false;
  for (StringRef Dir = path::parent_path(P); Dir.size() > SourceRoot.size(); Dir = path::parent_path(Dir))
    for (const char *Header : {"/include/accelerate/accelerate.h", "/runtime/include/accelerate/accelerate.h"})
      if (fs::exists(Dir + Header))
        return false;
  return true;
}

std::string Project::display(StringRef P) const {
  if (below(P, DiffRoot))
    return P.drop_front(DiffRoot.size()).ltrim('/').str();
  return P.str();
}

/// The build folders that the presets in the current folder name (cmake-presets(7)).
static std::vector<std::string> presetFolders() {
  struct Preset {
    std::string BinaryDir;
    std::vector<std::string> Inherits;
  };
  std::map<std::string, Preset> Presets;
  for (const char *Name : {"CMakePresets.json", "CMakeUserPresets.json"}) {
    auto Buffer = MemoryBuffer::getFile(Name);
    if (!Buffer)
      continue;
    Expected<json::Value> Value = json::parse((*Buffer)->getBuffer());
    const json::Object *Root = Value ? Value->getAsObject() : nullptr;
    if (!Value)
      consumeError(Value.takeError());
    const json::Array *Configure = Root ? Root->getArray("configurePresets") : nullptr;
    if (!Configure)
      continue;
    for (const json::Value &Entry : *Configure) {
      const json::Object *Object = Entry.getAsObject();
      if (!Object)
        continue;
      Preset &P = Presets[Object->getString("name").value_or("").str()];
      P.BinaryDir = Object->getString("binaryDir").value_or("").str();
      if (std::optional<StringRef> Base = Object->getString("inherits"))
        P.Inherits.push_back(Base->str());
      else if (const json::Array *Bases = Object->getArray("inherits"))
        for (const json::Value &Base : *Bases)
          P.Inherits.push_back(Base.getAsString().value_or("").str());
    }
  }
  std::vector<std::string> Folders;
  for (const auto &[Name, Own] : Presets) {
    // The nearest base that says where.
    std::string Dir = Own.BinaryDir;
    std::vector<std::string> Bases = Own.Inherits;
    for (size_t I = 0; I != Bases.size() && Dir.empty() && I < 64; ++I)
      if (auto Base = Presets.find(Bases[I]); Base != Presets.end()) {
        Dir = Base->second.BinaryDir;
        append_range(Bases, std::vector<std::string>(Base->second.Inherits));
      }
    for (const auto &[Macro, Text] : {std::pair<StringRef, StringRef>{"${sourceDir}", "."}, {"${presetName}", Name}})
      for (size_t At = Dir.find(Macro); At != std::string::npos; At = Dir.find(Macro, At + Text.size()))
        Dir.replace(At, Macro.size(), Text.str());
    if (!Dir.empty())
      Folders.push_back(Dir);
  }
  return Folders;
}

/// The folder with the `compile_commands.json`: `-p`, else the only one here, in `build*/` or where a preset builds.
static Expected<std::string> findDatabase(StringRef BuildDir) {
  if (!BuildDir.empty()) {
    SmallString<256> File(BuildDir);
    if (path::filename(File) != "compile_commands.json")
      path::append(File, "compile_commands.json");
    if (!fs::exists(File))
      return fail("no compile database at '" + File + "'; " + HowToMakeADatabase);
    return realPath(path::parent_path(File).empty() ? "." : path::parent_path(File));
  }
  std::vector<std::string> Found;
  if (fs::exists("compile_commands.json"))
    Found.push_back(".");
  std::error_code EC;
  for (fs::directory_iterator It(".", EC), End; !EC && It != End; It.increment(EC)) {
    StringRef Name = path::filename(It->path());
    if (!Name.starts_with("build") && !Name.starts_with("cmake-build") && Name != "out")
      continue;
    if (fs::exists(It->path() + "/compile_commands.json"))
      Found.push_back(It->path());
    std::error_code Inner;
    for (fs::directory_iterator Sub(It->path(), Inner), SubEnd; !Inner && Sub != SubEnd; Sub.increment(Inner))
      if (fs::exists(Sub->path() + "/compile_commands.json"))
        Found.push_back(Sub->path());
  }
  for (const std::string &Folder : presetFolders())
    if (fs::exists(Folder + "/compile_commands.json") &&
        none_of(Found, [&](const std::string &Other) { return fs::equivalent(Folder, Other); }))
      Found.push_back(Folder);
  if (Found.empty())
    return fail(Twine("no compile database here or in build*/; ") + HowToMakeADatabase);
  if (Found.size() > 1)
    return fail("several compile databases (" + join(Found, ", ") + "); choose one with `-p`");
  return realPath(Found.front());
}

/// The source folder of a CMake build, or the folder that holds all of `Files`.
static std::string sourceRoot(StringRef BuildDir, ArrayRef<std::string> Files) {
  if (auto Cache = MemoryBuffer::getFile(BuildDir + "/CMakeCache.txt"))
    for (line_iterator It(**Cache); !It.is_at_eof(); ++It)
      if (StringRef Line = *It; Line.consume_front("CMAKE_HOME_DIRECTORY:INTERNAL="))
        return realPath(Line);
  SmallString<256> Common;
  for (StringRef File : Files) {
    StringRef Dir = path::parent_path(File);
    if (Common.empty())
      Common = Dir;
    while (!below(Dir, Common) && path::has_parent_path(Common))
      path::remove_filename(Common);
  }
  // Other builds than CMake's: a compile database at the root of the sources, or in a folder beside `src` and
  // `include`.
  if (below(Common, BuildDir))
    return BuildDir.str();
  const StringRef Parent = path::parent_path(BuildDir);
  if (!below(Common, Parent) || Parent.size() <= 1)
    return Common.str().str();
  const std::string Repository = gitRoot(Common); // of several that lie there, the one that is built
  return Repository != Parent && below(Repository, Parent) ? Repository : Parent.str();
}

/// `.../CMakeFiles/<target>.dir/...` in the object's path, as CMake's generators write it.
static std::string targetOf(const clang::tooling::CompileCommand &Command) {
  std::string Object = Command.Output;
  for (size_t I = 0; Object.empty() && I + 1 < Command.CommandLine.size(); ++I)
    if (Command.CommandLine[I] == "-o")
      Object = Command.CommandLine[I + 1];
  size_t Begin = Object.find("CMakeFiles/");
  if (Begin == std::string::npos)
    return "";
  Begin += strlen("CMakeFiles/");
  size_t End = Object.find(".dir/", Begin);
  return End == std::string::npos ? "" : Object.substr(Begin, End - Begin);
}

/// Drops flags that Clang's driver doesn't know (GCC's own), and returns them.
static std::vector<std::string> dropUnknown(std::vector<std::string> &Args) {
  SmallVector<const char *, 64> Pointers;
  for (const std::string &Arg : drop_begin(Args))
    Pointers.push_back(Arg.c_str());
  unsigned MissingIndex = 0, MissingCount = 0;
  const opt::InputArgList List = clang::driver::getDriverOptTable().ParseArgs(
      Pointers, MissingIndex, MissingCount, opt::Visibility(clang::driver::options::ClangOption));
  std::vector<std::string> Unknown;
  for (const opt::Arg *A : List.filtered(clang::driver::options::OPT_UNKNOWN))
    Unknown.push_back(A->getAsString(List));
  erase_if(Args, [&](const std::string &Arg) { return is_contained(Unknown, Arg); });
  return Unknown;
}

/// Drops what only the user's compiler understands, and what changes nothing but the generated code. Returns what users
/// should hear of.
static std::vector<std::string> clean(clang::tooling::CompileCommand &Command) {
  static const StringSet<> WithValue = {"-o", "-MF", "-MT", "-MQ", "-MJ", "-include-pch", "-ccbin", "-Xcompiler"};
  std::vector<std::string> Args;
  // `-Xclang -include -Xclang file` is `-include file` by another way.
  auto Passes = [&](size_t I) {
    return I + 1 < Command.CommandLine.size() &&
           (Command.CommandLine[I] == "-Xclang" || Command.CommandLine[I] == "-Xpreprocessor");
  };
  for (size_t I = 0; I != Command.CommandLine.size(); ++I) {
    const size_t First = I;
    I += Passes(I);
    StringRef Arg = Command.CommandLine[I];
    size_t Value = I + 1 + Passes(I + 1);
    StringRef ValueText = Value < Command.CommandLine.size() ? StringRef(Command.CommandLine[Value]) : StringRef();
    // CMake's precompiled header was made by the user's compiler.
    if (WithValue.contains(Arg) || (Arg == "-include" && ValueText.contains("cmake_pch"))) {
      I = Value;
      continue;
    }
    if (Arg == "-Winvalid-pch" || Arg == "-c" || Arg.starts_with("-M") || Arg.starts_with("-fsanitize") ||
        Arg.starts_with("-fconcepts") || Arg.starts_with("-fmodules-ts") || Arg.starts_with("-fdeps") ||
        Arg.starts_with("-W") || Arg.starts_with("-O") || Arg.starts_with("-g") || Arg == "-fPIC" || Arg == "-fPIE" ||
        Arg.starts_with("-fprofile") || Arg.starts_with("-fauto-profile") || Arg.starts_with("-fcs-profile") ||
        Arg.starts_with("-fopenmp"))
      continue;
    // A launcher such as ccache stands before the compiler in some databases.
    if (I == 0 && Command.CommandLine.size() > 1 && (Arg.ends_with("ccache") || Arg.ends_with("sccache")) &&
        !StringRef(Command.CommandLine[1]).starts_with("-"))
      continue;
    for (size_t J = First; J <= I; ++J)
      Args.push_back(Command.CommandLine[J]);
  }
  bool HasStd = any_of(Args, [](StringRef A) { return A.starts_with("-std="); });
  if (!HasStd)
    Args.insert(Args.begin() + 1, "-std=gnu++17"); // GCC's own default
  std::vector<std::string> Unknown = dropUnknown(Args);
  Command.CommandLine = std::move(Args);
  return Unknown;
}

/// LibTorch programs are C++: units in other languages hold nothing for us.
static bool isCxx(StringRef Source) {
  return !StringSwitch<bool>(path::extension(Source))
              .Cases(".c", ".m", ".s", ".S", ".asm", true)
              .Cases(".f", ".F", ".f90", ".F90", ".rc", ".ispc", true)
              .Default(false);
}

static bool isCuda(StringRef Source) {
  StringRef Extension = path::extension(Source);
  return Extension == ".cu" || Extension == ".cuh" || Extension == ".hip";
}

/// Programs of one repository may share folders beside their own, `../../utils`: the source root is what holds all.
static void widenRoot(Project &P) {
  for (const UnitCommand &Unit : P.Units) {
    if (below(Unit.Source, P.SourceRoot) || below(Unit.Source, P.BuildDir) || generated(Unit.Source) ||
        !below(Unit.Source, P.DiffRoot) || gitRoot(path::parent_path(Unit.Source)) != P.DiffRoot)
      continue;
    while (!below(Unit.Source, P.SourceRoot))
      P.SourceRoot = path::parent_path(P.SourceRoot).str();
  }
}

/// Units that aren't the user's to edit aren't read, which is said of those that somebody wrote.
static void leaveOutForeign(Project &P) {
  std::vector<std::string> Outside;
  auto Foreign = [&](const UnitCommand &Unit) {
    if (P.owns(Unit.Source))
      return false;
    if (!below(Unit.Source, P.SourceRoot) && !below(Unit.Source, P.BuildDir) && !generated(Unit.Source))
      Outside.push_back(Unit.Source);
    return true;
  };
  erase_if(P.Units, Foreign);
  erase_if(P.CudaUnits, Foreign);
  if (Outside.empty())
    return;
  P.Notes.push_back(std::to_string(Outside.size()) + (Outside.size() == 1 ? " source" : " sources") +
                    " outside the project '" + P.SourceRoot +
                    (Outside.size() == 1 ? "' isn't read: " : "' aren't read: ") + Outside.front() +
                    (Outside.size() > 1 ? ", ..." : ""));
}

Expected<Project> openProject(StringRef BuildDir, const std::vector<std::string> &Sources,
                              const std::vector<std::string> &Flags) {
  Project P;
  std::vector<clang::tooling::CompileCommand> Commands;
  if (!Flags.empty()) {
    if (Sources.empty())
      return fail("flags were given after `--`, but no source file");
    SmallString<256> Cwd;
    if (std::error_code EC = fs::current_path(Cwd))
      return fail("no current folder: " + EC.message());
    for (const std::string &Source : Sources) {
      std::vector<std::string> Line = {"clang++"};
      Line.insert(Line.end(), Flags.begin(), Flags.end());
      Line.push_back(Source);
      Commands.emplace_back(Cwd, Source, Line, "");
    }
    P.SourceRoot = Cwd.str().str();
  } else {
    Expected<std::string> Dir = findDatabase(BuildDir);
    if (!Dir)
      return Dir.takeError();
    P.BuildDir = *Dir;
    std::string Message;
    auto Database = clang::tooling::JSONCompilationDatabase::loadFromFile(
        P.BuildDir + "/compile_commands.json", Message, clang::tooling::JSONCommandLineSyntax::AutoDetect);
    if (!Database)
      return fail("'" + P.BuildDir + "/compile_commands.json' can't be read: " + Message);
    Commands =
        clang::tooling::expandResponseFiles(std::move(Database), vfs::getRealFileSystem())->getAllCompileCommands();
    if (Commands.empty())
      return fail("'" + P.BuildDir + "/compile_commands.json' lists no file; " + HowToMakeADatabase);
  }

  std::vector<std::string> Files;
  std::map<std::string, unsigned> Unknown; // flags, and how many units have them
  for (clang::tooling::CompileCommand &Command : Commands) {
    if (!isCxx(Command.Filename))
      continue;
    if (Command.CommandLine.size() < 2)
      return fail("'" + P.BuildDir + "/compile_commands.json' has no command for '" + Command.Filename + "'; " +
                  HowToMakeADatabase);
    // Clang takes such a folder as relative to wherever it runs.
    SmallString<256> Directory(Command.Directory);
    fs::make_absolute(P.BuildDir, Directory);
    path::remove_dots(Directory, /*remove_dot_dot=*/true);
    Command.Directory = Directory.str();
    SmallString<256> File(Command.Filename);
    fs::make_absolute(Command.Directory, File);
    std::string Real = realPath(File);
    if (Real.empty()) {
      // Under `--` the user typed the name, and the file is what is missing.
      if (!Flags.empty())
        return fail("no such file: '" + Command.Filename + "'");
      return fail("stale compile database: '" + P.BuildDir + "/compile_commands.json' names '" + File +
                  "', which doesn't exist; configure again with `cmake -B " + P.BuildDir + "`");
    }
    if (!fs::is_regular_file(Real))
      return fail("'" + Real + "' is no regular file");
    UnitCommand Unit;
    Unit.Target = targetOf(Command);
    for (const std::string &Flag : clean(Command))
      Unknown[Flag] += !isCuda(Real);
    Unit.Command = Command;
    Unit.Command.Filename = Real;
    Unit.Source = Real;
    Files.push_back(Real);
    (isCuda(Real) ? P.CudaUnits : P.Units).push_back(std::move(Unit));
  }
  for (const auto &[Flag, Count] : Unknown)
    if (Count != 0)
      P.Notes.push_back("`" + Flag + "` is left out of " + std::to_string(Count) +
                        (Count == 1 ? " unit's" : " units'") + " flags: Clang doesn't know it");
  if (P.SourceRoot.empty())
    P.SourceRoot = sourceRoot(P.BuildDir, Files);
  P.HomeDir = P.SourceRoot = realPath(P.SourceRoot);
  P.DiffRoot = gitRoot(P.SourceRoot);
  if (!P.DiffRoot.empty() && Flags.empty())
    widenRoot(P);
  if (P.DiffRoot.empty())
    P.DiffRoot = P.SourceRoot;
  leaveOutForeign(P);
  if (!P.CudaUnits.empty())
    P.Notes.push_back(std::to_string(P.CudaUnits.size()) +
                      (P.CudaUnits.size() == 1 ? " CUDA source isn't read: " : " CUDA sources aren't read: ") +
                      P.display(P.CudaUnits.front().Source) + (P.CudaUnits.size() > 1 ? ", ..." : ""));
  if (!P.BuildDir.empty())
    P.Targets = targetsOf(P.BuildDir);
  for (const std::string &Source : Sources) {
    std::string Real = realPath(Source);
    if (Real.empty())
      return fail("no such file: '" + Source + "'");
    if (!P.owns(Real))
      return fail("'" + Source + "' is outside the project '" + P.SourceRoot + "'");
    // A header is read through the units that include it, so the whole project is read for it.
    if (path::extension(Real).starts_with(".h"))
      return P;
    if (any_of(P.CudaUnits, [&](const UnitCommand &Unit) { return Unit.Source == Real; }))
      continue;
    if (none_of(P.Units, [&](const UnitCommand &Unit) { return Unit.Source == Real; }))
      return fail("'" + Source + "' is not in the compile database '" + P.BuildDir +
                  "/compile_commands.json'; add it to a target and configure again");
  }
  if (!Sources.empty()) {
    // The rest of the programs that a named unit belongs to is needed to understand it.
    StringSet<> Targets, Named;
    for (const std::string &Source : Sources)
      Named.insert(realPath(Source));
    for (const UnitCommand &Unit : P.Units)
      if (Named.contains(Unit.Source))
        Targets.insert(Unit.Target);
    const StringSet<> OfNamed = Targets;
    // Which other targets those are of, CMake says; else any other one may be a library of theirs.
    for (const auto &[Program, Parts] : P.Targets)
      if (any_of(Parts, [&](const std::string &Part) { return OfNamed.contains(Part); }))
        for (const std::string &Part : Parts)
          Targets.insert(Part);
    bool Library = false;
    for (const UnitCommand &Unit : P.Units)
      Library |= !Unit.Target.empty() && !Targets.contains(Unit.Target) && !P.Targets.count(Unit.Target);
    if (!Library)
      erase_if(P.Units,
               [&](const UnitCommand &Unit) { return !Named.contains(Unit.Source) && !Targets.contains(Unit.Target); });
  }
  stable_sort(P.Units, [](const UnitCommand &A, const UnitCommand &B) {
    return std::tie(A.Source, A.Target) < std::tie(B.Source, B.Target);
  });
  // One unit may stand in the database several times (another configuration, another folder): the first is taken.
  size_t Before = P.Units.size();
  P.Units.erase(std::unique(P.Units.begin(), P.Units.end(),
                            [](const UnitCommand &A, const UnitCommand &B) {
                              return std::tie(A.Source, A.Target) == std::tie(B.Source, B.Target);
                            }),
                P.Units.end());
  if (P.Units.size() != Before)
    P.Notes.push_back("entries of units that stand in the database already are left out: " +
                      std::to_string(Before - P.Units.size()));
  return P;
}

} // namespace migrate
