//===- Copies.cpp ---------------------------------------------------------===//
//
// std::filesystem, unlike LLVM's, keeps the permissions of what it copies: projects run scripts when they are built.
//
//===----------------------------------------------------------------------===//
#include "train/Copies.h"
#include "project/Git.h"
#include "project/Support.h"
#include <filesystem>

using namespace llvm;
namespace fs = std::filesystem;

namespace migrate {

static bool isLeftOut(const fs::path &Folder, const std::string &Without) {
  std::error_code EC;
  return Folder.filename() == ".git" || Folder == Without || fs::exists(Folder / "CMakeCache.txt", EC);
}

/// A link that leads out of `Root` leads to the same place from the copy.
static std::error_code copyLink(const fs::path &From, const fs::path &To, const fs::path &Root) {
  std::error_code EC;
  fs::path Target = fs::read_symlink(From, EC);
  if (EC)
    return EC;
  fs::path Place = (From.parent_path() / Target).lexically_normal();
  fs::path Inside = Place.lexically_relative(Root);
  if (Inside.empty() || *Inside.begin() == "..")
    Target = Place;
  fs::create_symlink(Target, To, EC);
  return EC;
}

static Error copyFile(const fs::path &From, const fs::path &To, const fs::path &Root) {
  std::error_code EC;
  fs::create_directories(To.parent_path(), EC);
  if (!EC && fs::is_symlink(From, EC))
    EC = copyLink(From, To, Root);
  else if (!EC)
    fs::copy_file(From, To, fs::copy_options::overwrite_existing, EC);
  return EC ? fail("'" + From.string() + "' can't be copied to '" + To.string() + "': " + EC.message())
            : Error::success();
}

static Error copyFolder(const fs::path &From, const fs::path &To, const std::string &Without, uint64_t Most) {
  std::error_code EC;
  uint64_t Bytes = 0;
  fs::create_directories(To, EC);
  fs::recursive_directory_iterator It(From, EC), End;
  for (; !EC && It != End; It.increment(EC)) {
    const fs::path &Path = It->path();
    fs::path Copy = To / Path.lexically_relative(From);
    std::error_code Unknown;
    if (!It->is_symlink(Unknown) && It->is_directory(Unknown)) {
      if (isLeftOut(Path, Without))
        It.disable_recursion_pending();
      else
        fs::create_directories(Copy, EC);
      continue;
    }
    if (!It->is_symlink(Unknown) && !It->is_regular_file(Unknown))
      continue; // sockets and the like
    if (!It->is_symlink(Unknown))
      Bytes += It->file_size(Unknown);
    if (Bytes > Most)
      return fail("'" + From.string() + "' has more than " + Twine(Most >> 30) +
                  " GiB, and programs run in a copy of it; name a smaller folder with --verify-cwd, and data by "
                  "their whole path in --verify-args");
    if (Error E = copyFile(Path, Copy, From))
      return E;
  }
  return EC ? fail("'" + From.string() + "' can't be copied to '" + To.string() + "': " + EC.message())
            : Error::success();
}

Error copyProject(const Project &Tree, const std::string &To, const std::string &Without) {
  const fs::path Root = Tree.DiffRoot;
  std::set<std::string> Files;
  if (std::optional<std::vector<std::string>> Known = workTreeFiles(Tree.DiffRoot))
    Files.insert(Known->begin(), Known->end());
  else if (Error E = copyFolder(Root, To, Without, ~uint64_t(0)))
    return E;
  // A source that git ignores is built all the same.
  for (const UnitCommand &Unit : Tree.Units)
    Files.insert(fs::path(Unit.Source).lexically_relative(Root).string());
  for (const std::string &Name : Files) {
    const fs::path Path = (Root / Name).lexically_normal();
    std::error_code EC;
    bool Left = false;
    for (fs::path Folder = Path.parent_path(); !Left && Folder != Root && Folder.has_relative_path();
         Folder = Folder.parent_path())
      Left = isLeftOut(Folder, Without);
    if (Left || !fs::exists(fs::symlink_status(Path, EC)))
      continue; // of a build folder that isn't ignored, or removed and not committed
    Error E =
        fs::is_directory(Path, EC) && !fs::is_symlink(Path, EC) // a repository inside this one
            ? copyFolder(Path.has_filename() ? Path : Path.parent_path(), fs::path(To) / Name, Without, ~uint64_t(0))
            : copyFile(Path, fs::path(To) / Name, Root);
    if (E)
      return E;
  }
  return Error::success();
}

Expected<RunFolder> RunFolder::copy(const std::string &From, const std::string &To, const std::string &Without) {
  if (Error E = copyFolder(From, To, Without, uint64_t(2) << 30))
    return E;
  RunFolder Copy;
  Copy.Path = To;
  Copy.Known = Copy.look();
  return Copy;
}

std::map<std::string, std::pair<uint64_t, int64_t>> RunFolder::look() const {
  std::map<std::string, std::pair<uint64_t, int64_t>> Found;
  std::error_code EC;
  for (fs::recursive_directory_iterator It(Path, EC), End; !EC && It != End; It.increment(EC)) {
    std::error_code Unknown;
    if (!It->is_symlink(Unknown) && It->is_regular_file(Unknown))
      Found[It->path().lexically_relative(Path).string()] = {It->file_size(Unknown),
                                                             It->last_write_time(Unknown).time_since_epoch().count()};
  }
  return Found;
}

std::vector<std::string> RunFolder::entries() const {
  std::vector<std::string> Found;
  std::error_code EC;
  for (fs::directory_iterator It(Path, EC), End; !EC && It != End; It.increment(EC))
    if (!LeftOut.count(It->path().filename().string()) && fs::exists(It->path(), EC))
      Found.push_back(It->path().string());
  std::sort(Found.begin(), Found.end());
  return Found;
}

std::set<std::string> RunFolder::changed() const {
  std::set<std::string> Names;
  auto Now = look();
  auto Compare = [&](const auto &These, const auto &Those) {
    for (const auto &[File, State] : These)
      if (auto Other = Those.find(File); Other == Those.end() || Other->second != State)
        Names.insert(fs::path(File).begin()->string());
  };
  Compare(Now, Known);
  Compare(Known, Now);
  for (const std::string &Name : LeftOut)
    Names.erase(Name);
  return Names;
}

void RunFolder::leaveOut(const std::string &Name) { LeftOut.insert(Name); }

} // namespace migrate
