//===- WriteTree.cpp ------------------------------------------------------===//
#include "edit/WriteTree.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace llvm;
namespace fs = llvm::sys::fs;

namespace migrate {

const char *const WriteFolder = ".accelerate-migrate-write";

namespace {

std::string hashOf(StringRef Text) {
  XXH128_hash_t Hash = xxh3_128bits(arrayRefFromStringRef(Text));
  return utohexstr(Hash.high64, /*LowerCase=*/true, 16) + utohexstr(Hash.low64, /*LowerCase=*/true, 16);
}

std::error_code lastError() { return std::error_code(errno, std::generic_category()); }

std::optional<std::string> textOf(const std::string &Path) {
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!Buffer)
    return std::nullopt;
  return (*Buffer)->getBuffer().str();
}

std::error_code writeFile(const std::string &Path, StringRef Text, mode_t Mode) {
  int FD = open(Path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (FD < 0)
    return lastError();
  std::error_code EC;
  while (!Text.empty() && !EC) {
    ssize_t N = ::write(FD, Text.data(), Text.size());
    if (N < 0 && errno != EINTR)
      EC = lastError();
    Text = Text.drop_front(std::max<ssize_t>(N, 0));
  }
  if (!EC && (fchmod(FD, Mode) || fsync(FD)))
    EC = lastError();
  if (close(FD) && !EC)
    EC = lastError();
  return EC;
}

void syncFolder(StringRef Path) {
  if (int FD = open(Path.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); FD >= 0) {
    (void)fsync(FD);
    close(FD);
  }
}

/// Renames; over a mount's edge the bytes are copied beside the target first.
std::error_code moveInto(const std::string &From, const std::string &To) {
  if (::rename(From.c_str(), To.c_str()) == 0)
    return {};
  if (errno != EXDEV)
    return lastError();
  std::optional<std::string> Text = textOf(From);
  struct stat S;
  if (!Text || stat(From.c_str(), &S))
    return lastError();
  std::string Beside = To + ".new";
  if (std::error_code EC = writeFile(Beside, *Text, S.st_mode & 07777))
    return EC;
  if (::rename(Beside.c_str(), To.c_str()))
    return lastError();
  return fs::remove(From);
}

/// The folder, locked: whoever holds the lock may write in it or remove it.
class Staging {
public:
  explicit Staging(StringRef Root) : Root(Root), Folder((Root + "/" + WriteFolder).str()) {}
  ~Staging() {
    if (Lock >= 0)
      close(Lock);
  }

  std::string part(const Twine &Name) const { return (Folder + "/" + Name).str(); }

  /// Takes the lock, making the folder if `Make`. False if there is no folder.
  Expected<bool> enter(bool Make) {
    while (true) {
      if (Make && mkdir(Folder.c_str(), 0700) && errno != EEXIST)
        return createStringError(lastError(), "'" + Folder + "' can't be made: " + lastError().message());
      Lock = open(part("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (Lock < 0) {
        if (errno == ENOENT && !Make)
          return false;
        if (errno == ENOENT)
          continue; // it has just been removed
        return createStringError(lastError(), "'" + Folder + "' can't be used: " + lastError().message());
      }
      while (flock(Lock, LOCK_EX) && errno == EINTR)
        ;
      // While we waited its owner may have removed it.
      struct stat Ours, There;
      if (fstat(Lock, &Ours) == 0 && stat(part("lock").c_str(), &There) == 0 && Ours.st_ino == There.st_ino &&
          Ours.st_dev == There.st_dev)
        return true;
      close(Lock);
      Lock = -1;
    }
  }

  /// Journal first: without it the rest means nothing.
  void remove() {
    (void)::unlink(part("journal").c_str());
    std::error_code EC;
    for (fs::directory_iterator It(Folder, EC), End; !EC && It != End; It.increment(EC))
      if (sys::path::filename(It->path()) != "lock")
        (void)fs::remove(It->path());
    (void)fs::remove(part("lock"));
    (void)fs::remove(Folder);
  }

  /// Completes or undoes what is here.
  Expected<Recovery> recover() {
    std::optional<std::string> Journal = textOf(part("journal"));
    if (!Journal) {
      remove();
      return Recovery::Undone;
    }
    SmallVector<StringRef, 0> Lines;
    StringRef(*Journal).split(Lines, '\0', -1, /*KeepEmpty=*/false);
    std::vector<size_t> Open;
    for (size_t I = 0; I != Lines.size(); ++I) {
      auto [Before, Rest] = Lines[I].split(' ');
      auto [After, Path] = Rest.split(' ');
      // The folder may have come with somebody's repository: it has no say about files elsewhere.
      SmallString<256> Real;
      if (fs::real_path(sys::path::parent_path(Path), Real) || !StringRef((Real + "/").str()).starts_with(Root + "/"))
        return createStringError(inconvertibleErrorCode(), "'" + Folder + "' wants to write '" + Path +
                                                               "', which is outside the project; remove that folder");
      std::optional<std::string> Now = textOf(Path.str());
      std::string Hash = Now ? hashOf(*Now) : "";
      if (Hash == After)
        continue;
      if (Hash != Before || !fs::exists(part(Twine(I))))
        return createStringError(inconvertibleErrorCode(), "an earlier run was killed while it wrote, and '" + Path +
                                                               "' has been changed since; restore it (`git "
                                                               "checkout`), or remove the folder '" +
                                                               Folder + "' to keep the files as they are");
      Open.push_back(I);
    }
    for (size_t I : Open) {
      std::string Path = Lines[I].split(' ').second.split(' ').second.str();
      if (std::error_code EC = moveInto(part(Twine(I)), Path))
        return createStringError(EC, "'" + Path + "' can't be written: " + EC.message() +
                                         "; the run that began it left the rest in '" + Folder + "'");
    }
    remove();
    return Recovery::Completed;
  }

private:
  std::string Root, Folder;
  int Lock = -1;
};

} // namespace

Error writeTree(StringRef Root, const TextChanges &Changes) {
  Staging Stage(Root);
  Expected<bool> Entered = Stage.enter(/*Make=*/true);
  if (!Entered)
    return joinErrors(Entered.takeError(), createStringError(inconvertibleErrorCode(), "nothing was changed"));
  if (textOf(Stage.part("journal")))
    return createStringError(inconvertibleErrorCode(),
                             "another run was killed just now while it wrote; nothing was changed, run again");
  auto Undo = [&](const std::string &Path, const std::string &Why) {
    Stage.remove();
    return createStringError(inconvertibleErrorCode(),
                             "'" + Path + "' can't be written: " + Why + "; nothing was changed");
  };
  std::string Journal;
  size_t I = 0;
  for (const auto &[Path, Text] : Changes) {
    for (StringRef Needed : {StringRef(Path), sys::path::parent_path(Path)})
      if (std::error_code EC = fs::access(Needed, fs::AccessMode::Write))
        return Undo(Needed.str(), EC.message());
    if (textOf(Path) != Text.first)
      return Undo(Path, "it has been changed while it was being analysed");
    struct stat S;
    if (stat(Path.c_str(), &S))
      return Undo(Path, lastError().message());
    std::string Part = Stage.part(Twine(I++));
    if (std::error_code EC = writeFile(Part, Text.second, S.st_mode & 07777))
      return Undo(Path, EC.message());
    (void)!chown(Part.c_str(), S.st_uid, S.st_gid); // allowed to few; then it's ours, as with any editor
    Journal += hashOf(Text.first) + " " + hashOf(Text.second) + " " + Path + std::string(1, '\0');
  }
  if (std::error_code EC = writeFile(Stage.part("journal.new"), Journal, 0600))
    return Undo(Stage.part("journal"), EC.message());
  if (::rename(Stage.part("journal.new").c_str(), Stage.part("journal").c_str()))
    return Undo(Stage.part("journal"), lastError().message());
  syncFolder(Stage.part(""));
  // From here on it will be done, by us or by the next run.
  Expected<Recovery> Done = Stage.recover();
  return Done ? Error::success() : Done.takeError();
}

Expected<Recovery> recoverTree(StringRef Root) {
  if (!fs::exists(Root + "/" + WriteFolder))
    return Recovery::NothingToDo;
  Staging Stage(Root);
  Expected<bool> Entered = Stage.enter(/*Make=*/false);
  if (!Entered)
    return Entered.takeError();
  return *Entered ? Stage.recover() : Expected<Recovery>(Recovery::NothingToDo);
}

} // namespace migrate
