//===- Cache.cpp ----------------------------------------------------------===//
#include "units/Cache.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <vector>

using namespace llvm;
namespace fs = llvm::sys::fs;

namespace migrate {

std::string cacheFolder(StringRef Name) {
  SmallString<256> Dir;
  if (!sys::path::cache_directory(Dir))
    return "";
  sys::path::append(Dir, "accelerate-migrate", Name);
  return fs::create_directories(Dir) ? "" : Dir.str().str();
}

std::string cacheKey(ArrayRef<StringRef> Parts) {
  SHA256 Hash;
  for (StringRef Part : Parts) {
    Hash.update(std::to_string(Part.size()));
    Hash.update(StringRef("\0", 1));
    Hash.update(Part);
  }
  return toHex(Hash.final(), /*LowerCase=*/true).substr(0, 32);
}

void touch(StringRef Path) {
  int FD;
  fs::file_status Status;
  if (fs::openFileForRead(Path, FD))
    return;
  if (!fs::status(FD, Status))
    (void)fs::setLastAccessAndModificationTime(FD, std::chrono::system_clock::now(), Status.getLastModificationTime());
  (void)sys::Process::SafelyCloseFileDescriptor(FD);
}

std::unique_ptr<MemoryBuffer> Cache::find(StringRef Key) const {
  if (Folder.empty())
    return nullptr;
  std::string Path = Folder + "/" + Key.str();
  auto Buffer = MemoryBuffer::getFile(Path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!Buffer)
    return nullptr;
  touch(Path);
  return std::move(*Buffer);
}

void Cache::store(StringRef Key, StringRef Bytes) {
  if (Folder.empty())
    return;
  std::string Path = Folder + "/" + Key.str();
  SmallString<256> Temporary;
  int FD;
  if (fs::createUniqueFile(Path + ".%%%%%%%%.new", FD, Temporary))
    return;
  raw_fd_ostream OS(FD, /*shouldClose=*/true);
  OS << Bytes;
  OS.close();
  bool Failed = OS.has_error();
  OS.clear_error();
  if (Failed || fs::rename(Temporary, Path))
    (void)fs::remove(Temporary);
  else
    Stored = true;
}

void Cache::prune(uint64_t Bytes) const {
  if (Folder.empty())
    return;
  struct Entry {
    sys::TimePoint<> Used;
    uint64_t Size;
    std::string Path;
  };
  std::vector<Entry> Entries;
  uint64_t Total = 0;
  std::error_code EC;
  for (fs::directory_iterator It(Folder, EC), End; !EC && It != End; It.increment(EC))
    if (auto Status = It->status()) {
      Entries.push_back({Status->getLastAccessedTime(), Status->getSize(), It->path()});
      Total += Status->getSize();
    }
  if (Total <= Bytes)
    return;
  llvm::sort(Entries, [](const Entry &A, const Entry &B) { return A.Used < B.Used; });
  for (const Entry &E : Entries) {
    if (Total <= Bytes / 4 * 3)
      break;
    if (!fs::remove(E.Path))
      Total -= E.Size;
  }
}

} // namespace migrate
