//===- Git.cpp ------------------------------------------------------------===//
#include "project/Git.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>
#include <optional>

using namespace llvm;

namespace migrate {

/// What `git -C Root ARGS...` prints; no value if it fails.
static std::optional<std::string> git(StringRef Program, StringRef Root, ArrayRef<StringRef> Args) {
  SmallString<128> Output;
  if (sys::fs::createTemporaryFile("accelerate-migrate", "git", Output))
    return std::nullopt;
  FileRemover Remover(Output);
  SmallVector<StringRef, 16> Line = {Program, "-C", Root};
  Line.append(Args.begin(), Args.end());
  if (sys::ExecuteAndWait(Program, Line, std::nullopt, {StringRef(""), StringRef(Output), StringRef("")}) != 0)
    return std::nullopt;
  auto Buffer = MemoryBuffer::getFile(Output);
  return Buffer ? std::optional((*Buffer)->getBuffer().str()) : std::nullopt;
}

std::string gitRoot(StringRef Folder) {
  SmallVector<StringRef, 4> Ceilings;
  if (const char *Variable = std::getenv("GIT_CEILING_DIRECTORIES"))
    StringRef(Variable).split(Ceilings, ':');
  for (StringRef Dir = Folder; !Dir.empty(); Dir = sys::path::parent_path(Dir)) {
    if (sys::fs::exists(Dir + "/.git"))
      return Dir.str();
    if (is_contained(Ceilings, sys::path::parent_path(Dir)))
      break;
  }
  return "";
}

std::string uncommitted(StringRef Root, ArrayRef<std::string> Paths) {
  ErrorOr<std::string> Program = sys::findProgramByName("git");
  if (!Program || !git(*Program, Root, {"rev-parse", "--is-inside-work-tree"}))
    return !gitRoot(Root).empty() ? "git can't say what is committed in '" + Root.str() + "'" : "";
  if (auto Changed = git(*Program, Root, {"status", "--porcelain", "--untracked-files=no"}))
    if (StringRef First = StringRef(*Changed).split('\n').first; !First.empty())
      return "'" + First.drop_front(3).str() + "' has changes that aren't committed";
  for (const std::string &Path : Paths)
    if (!git(*Program, Root, {"ls-files", "--error-unmatch", "--", Path}))
      return "git doesn't know '" + Path + "'";
  return "";
}

std::optional<std::vector<std::string>> workTreeFiles(StringRef Root) {
  ErrorOr<std::string> Program = sys::findProgramByName("git");
  if (!Program || gitRoot(Root).empty())
    return std::nullopt;
  std::vector<std::string> Files;
  const StringRef Tracked[] = {"ls-files", "-z", "--cached", "--recurse-submodules"};
  const StringRef Others[] = {"ls-files", "-z", "--others", "--exclude-standard"};
  for (ArrayRef<StringRef> Args : {ArrayRef(Tracked), ArrayRef(Others)}) {
    std::optional<std::string> Names = git(*Program, Root, Args);
    if (!Names)
      return std::nullopt;
    for (auto [Name, Rest] = StringRef(*Names).split('\0'); !Name.empty(); std::tie(Name, Rest) = Rest.split('\0'))
      Files.push_back(Name.str());
  }
  return Files;
}

} // namespace migrate
