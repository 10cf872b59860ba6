//===- CMakeBuild.cpp -----------------------------------------------------===//
#include "train/CMakeBuild.h"
#include "project/FileApi.h"
#include "project/Support.h"
#include "train/Process.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace migrate {

// Nobody waits longer, and nothing hangs for good.
static constexpr unsigned ConfigureSeconds = 900, BuildSeconds = 4 * 3600;

Expected<CMakeCache> CMakeCache::read(StringRef Folder) {
  CMakeCache Cache;
  Cache.Folder = Folder.str();
  auto Buffer = MemoryBuffer::getFile(Folder + "/CMakeCache.txt");
  if (!Buffer)
    return fail("there is no CMakeCache.txt in '" + Folder + "'");
  for (line_iterator It(**Buffer, /*SkipBlanks=*/true, '#'); !It.is_at_eof(); ++It) {
    StringRef Line = It->rtrim('\r'), Name;
    if (Line.starts_with("//"))
      continue;
    if (Line.consume_front("\"")) { // a name with a colon
      std::tie(Name, Line) = Line.split('"');
      Line.consume_front(":");
    } else {
      std::tie(Name, Line) = Line.split(':');
    }
    auto [Type, Value] = Line.split('=');
    // So are values written that begin or end with a blank.
    if (Value.size() >= 2 && Value.starts_with("'") && Value.ends_with("'"))
      Value = Value.drop_front().drop_back();
    Cache.Entries.push_back({Name.str(), Type.str(), Value.str()});
  }
  if (Cache.get("CMAKE_HOME_DIRECTORY").empty() || Cache.get("CMAKE_GENERATOR").empty())
    return fail("the CMakeCache.txt in '" + Folder + "' has no CMAKE_HOME_DIRECTORY and CMAKE_GENERATOR");
  return Cache;
}

std::string CMakeCache::get(StringRef Name) const {
  for (const Entry &E : Entries)
    if (E.Name == Name)
      return StringRef(E.Value).ends_with("NOTFOUND") ? "" : E.Value;
  return "";
}

std::string CMakeCache::program() const {
  if (std::string Same = get("CMAKE_COMMAND"); sys::fs::can_execute(Same))
    return Same;
  ErrorOr<std::string> Found = sys::findProgramByName("cmake");
  return Found ? *Found : "";
}

/// `Path` below `To` if it is `From`, or below it; else empty.
static std::string moved(StringRef Path, StringRef From, StringRef To) {
  if (From.empty() || !Path.consume_front(From) || (!Path.empty() && Path.front() != '/'))
    return "";
  return (To + Path).str();
}

std::string CMakeCache::relocate(StringRef Value, StringRef Source, StringRef Build) const {
  const std::string Home = get("CMAKE_HOME_DIRECTORY"), Folders[] = {Folder, get("CMAKE_CACHEFILE_DIR")},
                    Sources[] = {Home, realPath(Home)};
  std::string Result;
  while (!Value.empty()) {
    // Lists, and flags such as -I/a/b. A path begins with its first slash.
    size_t Length = std::min(Value.find_first_of("; \"'=,:"), Value.size());
    StringRef Word = Value.take_front(Length);
    StringRef Flag = Word.take_front(std::min(Word.find('/'), Word.size())), Path = Word.drop_front(Flag.size());
    std::string New;
    for (const std::string &From : Folders)
      if (New.empty() && From != Home && !sys::fs::is_regular_file(Path)) // as a toolchain file by Conan is
        New = moved(Path, From, Build);
    for (const std::string &From : Sources)
      if (New.empty())
        if (std::string There = moved(Path, From, Source); sys::fs::exists(There))
          New = There;
    Result += (Flag + (New.empty() ? Path : StringRef(New))).str();
    Value = Value.drop_front(Length);
    if (!Value.empty()) {
      Result += Value.front();
      Value = Value.drop_front();
    }
  }
  return Result;
}

std::string CMakeCache::initialCache(StringRef Source, StringRef Build) const {
  std::string Script;
  for (const Entry &E : Entries) {
    if (E.Type == "INTERNAL" || E.Type == "STATIC" || StringRef(E.Value).ends_with("NOTFOUND"))
      continue;
    std::string Value = relocate(E.Value, Source, Build);
    std::string Level = "=";
    while (StringRef(Value).contains("]" + Level))
      Level += "=";
    Script += "set(\"" + E.Name + "\" [" + Level + "[" + Value + "]" + Level + "] CACHE " +
              (E.Type == "UNINITIALIZED" ? "STRING" : E.Type) + " \"\")\n";
  }
  return Script;
}

CMakeBuild::CMakeBuild(const CMakeCache &Cache, std::string Source, std::string Work, unsigned Jobs)
    : Cache(Cache), Source(std::move(Source)), Work(std::move(Work)), Build(this->Work + "/build"),
      CMake(Cache.program()), Jobs(Jobs) {}

static Error write(const std::string &Path, StringRef Text) {
  std::error_code EC = sys::fs::create_directories(sys::path::parent_path(Path));
  if (EC)
    return fail("'" + Path + "' can't be written: " + EC.message());
  raw_fd_ostream OS(Path, EC);
  if (!EC) {
    OS << Text;
    OS.close();
    EC = OS.error();
    OS.clear_error();
  }
  return EC ? fail("'" + Path + "' can't be written: " + EC.message()) : Error::success();
}

Error CMakeBuild::configure(StringRef More) {
  const std::string Script = Work + "/initial-cache.cmake";
  if (Error E = write(Script, Cache.initialCache(Source, Build) + More.str()))
    return E;
  // What the targets' programs are called.
  if (Error E = write(Build + "/.cmake/api/v1/query/codemodel-v2", ""))
    return E;
  std::vector<std::string> Command = {
      CMake, "-C", Script, "-S", Source, "-B", Build, "-G", Cache.get("CMAKE_GENERATOR")};
  for (const auto &[Flag, Name] : {std::pair{"-A", "CMAKE_GENERATOR_PLATFORM"}, {"-T", "CMAKE_GENERATOR_TOOLSET"}})
    if (std::string Value = Cache.get(Name); !Value.empty())
      Command.insert(Command.end(), {Flag, Value});
  return run(std::move(Command), ConfigureSeconds);
}

Expected<std::string> CMakeBuild::build(const std::string &Target) {
  std::map<std::string, std::string> Programs = programsOf(Build);
  auto Program = Programs.find(Target);
  if (Program == Programs.end())
    return fail("`" + Target + "` is no executable target of the CMake project");
  std::vector<std::string> Command = {CMake, "--build", Build, "--target", Target, "-j", std::to_string(Jobs)};
  // Of several configurations in one folder, the first, as its path above.
  if (std::string Types = Cache.get("CMAKE_CONFIGURATION_TYPES"); !Types.empty())
    Command.insert(Command.end(), {"--config", StringRef(Types).split(';').first.str()});
  if (Error E = run(std::move(Command), BuildSeconds))
    return E;
  return Program->second;
}

Error CMakeBuild::run(std::vector<std::string> Command, unsigned Seconds) {
  Expected<Ended> Result = runProcess(Command, Work + "/log-" + std::to_string(++Steps) + ".txt", Seconds);
  if (!Result)
    return Result.takeError();
  return Result->Code == 0 ? Error::success() : fail("`" + join(Command, " ") + "`: " + Result->describe());
}

} // namespace migrate
