//===- Project.cpp --------------------------------------------------------===//
#include "project/Project.h"
#include "clang/Tooling/JSONCompilationDatabase.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
namespace path = llvm::sys::path;
namespace fs = llvm::sys::fs;

namespace migrate {

static const char *const HowToMakeADatabase =
    "make one with `cmake -S . -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON`, or give the flags after `--`";

static Error fail(const Twine &Message) { return createStringError(inconvertibleErrorCode(), Message); }

static std::string realPath(const Twine &P) {
  SmallString<256> Real;
  return fs::real_path(P, Real) ? std::string() : Real.str().str();
}

static bool below(StringRef P, StringRef Dir) {
  return !Dir.empty() && P.starts_with(Dir) && (P.size() == Dir.size() || P[Dir.size()] == '/' || Dir.ends_with("/"));
}

bool Project::owns(StringRef P) const {
  if (!below(P, SourceRoot) || (below(P, BuildDir) && BuildDir != SourceRoot))
    return false;
  // What CMake generates or fetches isn't the user's code.
  return !P.contains("/CMakeFiles/") && !P.contains("/_deps/");
}

std::string Project::display(StringRef P) const {
  if (below(P, DiffRoot))
    return P.drop_front(DiffRoot.size()).ltrim('/').str();
  return P.str();
}

/// The folder with the `compile_commands.json`: `-p`, else the only or the newest `build*/` here.
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
  return Common.str().str();
}

static std::string gitRoot(StringRef Dir) {
  for (SmallString<256> D(Dir); !D.empty(); path::remove_filename(D)) {
    if (fs::exists(D + "/.git"))
      return D.str().str();
    if (!path::has_parent_path(D) || D == "/")
      break;
  }
  return "";
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

/// Drops what only the user's compiler understands, and what changes nothing but the generated code.
static void clean(clang::tooling::CompileCommand &Command) {
  static const StringSet<> WithValue = {"-o", "-MF", "-MT", "-MQ", "-include-pch", "-ccbin", "-Xcompiler"};
  std::vector<std::string> Args;
  for (size_t I = 0; I != Command.CommandLine.size(); ++I) {
    StringRef Arg = Command.CommandLine[I];
    if (WithValue.contains(Arg)) {
      ++I;
      continue;
    }
    // CMake's precompiled header was made by the user's compiler.
    if (Arg == "-include" && I + 1 != Command.CommandLine.size() &&
        StringRef(Command.CommandLine[I + 1]).contains("cmake_pch")) {
      ++I;
      continue;
    }
    if (Arg == "-Winvalid-pch" || Arg == "-c" || Arg.starts_with("-M") || Arg.starts_with("-fsanitize") ||
        Arg.starts_with("-fconcepts") || Arg.starts_with("-fmodules-ts") || Arg.starts_with("-fdeps") ||
        Arg.starts_with("-W") || Arg.starts_with("-O") || Arg.starts_with("-g") || Arg == "-fPIC" || Arg == "-fPIE" ||
        Arg == "-fopenmp")
      continue;
    // A launcher such as ccache stands before the compiler in some databases.
    if (I == 0 && Command.CommandLine.size() > 1 && (Arg.ends_with("ccache") || Arg.ends_with("sccache")) &&
        !StringRef(Command.CommandLine[1]).starts_with("-"))
      continue;
    Args.push_back(Arg.str());
  }
  bool HasStd = any_of(Args, [](StringRef A) { return A.starts_with("-std="); });
  if (!HasStd)
    Args.insert(Args.begin() + 1, "-std=gnu++17"); // GCC's own default
  Command.CommandLine = std::move(Args);
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
    Commands = Database->getAllCompileCommands();
    if (Commands.empty())
      return fail("'" + P.BuildDir + "/compile_commands.json' lists no file; " + HowToMakeADatabase);
  }

  std::vector<std::string> Files;
  for (clang::tooling::CompileCommand &Command : Commands) {
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
    UnitCommand Unit;
    Unit.Target = targetOf(Command);
    clean(Command);
    Unit.Command = Command;
    Unit.Command.Filename = Real;
    Unit.Source = Real;
    Files.push_back(Real);
    P.Units.push_back(std::move(Unit));
  }
  if (P.SourceRoot.empty())
    P.SourceRoot = sourceRoot(P.BuildDir, Files);
  P.SourceRoot = realPath(P.SourceRoot);
  P.DiffRoot = gitRoot(P.SourceRoot);
  if (P.DiffRoot.empty())
    P.DiffRoot = P.SourceRoot;

  erase_if(P.Units, [&](const UnitCommand &Unit) { return !P.owns(Unit.Source); });
  for (const std::string &Source : Sources) {
    std::string Real = realPath(Source);
    if (Real.empty())
      return fail("no such file: '" + Source + "'");
    if (!P.owns(Real))
      return fail("'" + Source + "' is outside the project '" + P.SourceRoot + "'");
    // A header is read through the units that include it, so the whole project is read for it.
    if (path::extension(Real).starts_with(".h"))
      return P;
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
    bool Library = false;
    for (const UnitCommand &Unit : P.Units)
      Library |= !Unit.Target.empty() && !Targets.contains(Unit.Target);
    if (!Library)
      erase_if(P.Units,
               [&](const UnitCommand &Unit) { return !Named.contains(Unit.Source) && !Targets.contains(Unit.Target); });
  }
  stable_sort(P.Units, [](const UnitCommand &A, const UnitCommand &B) {
    return std::tie(A.Source, A.Target) < std::tie(B.Source, B.Target);
  });
  return P;
}

} // namespace migrate
