//===- Dependencies.cpp ---------------------------------------------------===//
#include "units/Dependencies.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace migrate {

using Kind = Dependency::Kind;

Dependency Dependency::text(StringRef Path, StringRef Bytes) {
  XXH128_hash_t Hash = xxh3_128bits(arrayRefFromStringRef(Bytes));
  return {Kind::Text, Path.str(), {Hash.low64, Hash.high64}};
}

static Dependency fromStatus(StringRef Path, const vfs::Status &S) {
  if (S.isDirectory())
    return {Kind::Folder, Path.str(), {}};
  return {Kind::Stat,
          Path.str(),
          {S.getSize(), static_cast<uint64_t>(S.getLastModificationTime().time_since_epoch().count())}};
}

namespace {

/// A file whose text has been read, so that what the parser sees is what was noted.
class LoadedFile : public vfs::File {
public:
  LoadedFile(vfs::Status S, std::unique_ptr<MemoryBuffer> Text) : S(std::move(S)), Text(std::move(Text)) {}
  ErrorOr<vfs::Status> status() override { return S; }
  ErrorOr<std::unique_ptr<MemoryBuffer>> getBuffer(const Twine &Name, int64_t, bool, bool) override {
    return MemoryBuffer::getMemBufferCopy(Text->getBuffer(), Name);
  }
  std::error_code close() override { return {}; }

private:
  vfs::Status S;
  std::unique_ptr<MemoryBuffer> Text;
};

class RecordingFileSystem : public vfs::ProxyFileSystem {
public:
  RecordingFileSystem(IntrusiveRefCntPtr<vfs::FileSystem> Base, const Overlay &Edited,
                      std::function<bool(StringRef)> Own, std::function<bool(StringRef)> Ignore,
                      std::map<std::string, Dependency> &Seen)
      : ProxyFileSystem(std::move(Base)), Edited(Edited), Own(std::move(Own)), Ignore(std::move(Ignore)), Seen(Seen) {}

  ErrorOr<vfs::Status> status(const Twine &Path) override {
    ErrorOr<vfs::Status> S = ProxyFileSystem::status(Path);
    note(Path, S);
    if (S && !S->isDirectory() && !Edited.empty())
      if (auto Text = Edited.find(realPathOf(absolute(Path))); Text != Edited.end())
        return vfs::Status::copyWithNewSize(*S, Text->second.size());
    return S;
  }

  ErrorOr<std::unique_ptr<vfs::File>> openFileForRead(const Twine &Path) override {
    ErrorOr<std::unique_ptr<vfs::File>> File = ProxyFileSystem::openFileForRead(Path);
    if (!File) {
      note(Path, File.getError());
      return File;
    }
    ErrorOr<vfs::Status> S = (*File)->status();
    SmallString<256> Full = absolute(Path);
    std::string Real = realPathOf(Full);
    if (!S || S->isDirectory() || Ignore(Full) || !Own(Real)) {
      note(Path, S);
      return File;
    }
    if (auto Text = Edited.find(Real); Text != Edited.end()) {
      Seen[Full.str().str()] = Dependency::text(Full, Text->second);
      return std::make_unique<LoadedFile>(vfs::Status::copyWithNewSize(*S, Text->second.size()),
                                          MemoryBuffer::getMemBufferCopy(Text->second, Full));
    }
    auto Text = (*File)->getBuffer(Full, S->getSize(), /*RequiresNullTerminator=*/false);
    if (!Text)
      return Text.getError();
    Seen[Full.str().str()] = Dependency::text(Full, (*Text)->getBuffer());
    return std::make_unique<LoadedFile>(*S, std::move(*Text));
  }

private:
  SmallString<256> absolute(const Twine &Path) const {
    SmallString<256> Full;
    Path.toVector(Full);
    if (!sys::path::is_absolute(Full))
      (void)makeAbsolute(Full);
    return Full;
  }

  void note(const Twine &Path, const ErrorOr<vfs::Status> &S) {
    SmallString<256> Full = absolute(Path);
    if (Ignore(Full))
      return;
    auto [It, New] = Seen.try_emplace(Full.str().str());
    if (New)
      It->second = S ? fromStatus(Full, *S) : Dependency{Kind::Missing, Full.str().str(), {}};
  }

  const Overlay &Edited;
  std::function<bool(StringRef)> Own, Ignore;
  std::map<std::string, Dependency> &Seen;
};

} // namespace

std::string realPathOf(StringRef Path) {
  SmallString<256> Real;
  return sys::fs::real_path(Path, Real) ? Path.str() : Real.str().str();
}

IntrusiveRefCntPtr<vfs::FileSystem> recording(IntrusiveRefCntPtr<vfs::FileSystem> Base, const Overlay &Edited,
                                              std::function<bool(StringRef)> Own, std::function<bool(StringRef)> Ignore,
                                              std::map<std::string, Dependency> &Seen) {
  return makeIntrusiveRefCnt<RecordingFileSystem>(std::move(Base), Edited, std::move(Own), std::move(Ignore), Seen);
}

bool DependencyCheck::holds(const Dependency &D) {
  SmallString<256> Key(D.Path);
  Key += '\0';
  Key += static_cast<char>(D.What);
  Key.append(StringRef(reinterpret_cast<const char *>(D.Hash), sizeof(D.Hash)));
  auto [It, New] = Known.try_emplace(Key, false);
  if (!New)
    return It->second;
  if (Edited)
    if (auto Text = Edited->find(D.What == Kind::Text ? realPathOf(D.Path) : D.Path); Text != Edited->end()) {
      Dependency Now = Dependency::text(D.Path, Text->second);
      return It->second = D.What == Kind::Text && equal(D.Hash, Now.Hash);
    }
  if (D.What == Kind::Text) {
    auto Buffer = MemoryBuffer::getFile(D.Path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    return It->second = Buffer && equal(D.Hash, Dependency::text(D.Path, (*Buffer)->getBuffer()).Hash);
  }
  sys::fs::file_status S;
  if (sys::fs::status(D.Path, S))
    return It->second = D.What == Kind::Missing && !sys::fs::exists(S);
  switch (D.What) {
  case Kind::Folder:
    return It->second = S.type() == sys::fs::file_type::directory_file;
  case Kind::Stat:
    return It->second = S.getSize() == D.Hash[0] &&
                        static_cast<uint64_t>(S.getLastModificationTime().time_since_epoch().count()) == D.Hash[1];
  default:
    return It->second = false;
  }
}

bool DependencyCheck::hold(const std::vector<Dependency> &List) {
  return all_of(List, [&](const Dependency &D) { return holds(D); });
}

} // namespace migrate
