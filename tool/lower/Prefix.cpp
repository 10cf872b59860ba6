//===- Prefix.cpp ---------------------------------------------------------===//
#include "lower/Prefix.h"
#include "lower/Instantiate.h"
#include "units/Cache.h"
#include "units/Dependencies.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LockFileManager.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include <chrono>
#include <set>

using namespace llvm;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace migrate {
namespace {

/// Keeps the bodies that call what they are given.
class BodiesRead : public clang::ASTConsumer {
public:
  explicit BodiesRead(const clang::SourceManager &SM) : SM(SM) {}
  bool shouldSkipFunctionBody(clang::Decl *D) override {
    clang::FileID Id = SM.getFileID(SM.getFileLoc(D->getLocation()));
    auto [It, New] = Read.try_emplace(Id, false);
    if (New)
      if (clang::OptionalFileEntryRef Entry = SM.getFileEntryRefForID(Id))
        It->second = callsBack(Entry->getName());
    return !It->second;
  }

private:
  const clang::SourceManager &SM;
  DenseMap<clang::FileID, bool> Read;
};

class PrefixAction : public clang::GeneratePCHAction {
public:
  explicit PrefixAction(std::string Output) : Output(std::move(Output)) {}
  bool BeginInvocation(clang::CompilerInstance &CI) override {
    CI.getFrontendOpts().OutputFile = Output;
    CI.getFrontendOpts().SkipFunctionBodies = true;
    return true;
  }
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &CI, StringRef File) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> Both;
    Both.push_back(std::make_unique<BodiesRead>(CI.getSourceManager()));
    Both.push_back(clang::GeneratePCHAction::CreateASTConsumer(CI, File));
    return Both[1] ? std::make_unique<clang::MultiplexConsumer>(std::move(Both)) : nullptr;
  }

private:
  std::string Output;
};

/// What a unit's first lines include: the text to precompile for it.
class Preamble {
public:
  Preamble(const Project &P, std::vector<std::string> Folders) : P(P), Folders(std::move(Folders)) {}

  /// Empty if the unit doesn't include LibTorch, or behind definitions that can't be repeated before it.
  std::string textFor(const std::string &Source) {
    scan(Source, /*Main=*/true);
    return Torch && !TaintedBeforeTorch ? Text : "";
  }

private:
  void scan(const std::string &File, bool Main) {
    if (!Seen.insert(File).second || !P.owns(File))
      return;
    auto Buffer = MemoryBuffer::getFile(File);
    if (!Buffer)
      return;
    int Conditionals = 0;
    SmallVector<StringRef, 0> Lines;
    (*Buffer)->getBuffer().split(Lines, '\n');
    for (size_t I = 0; I != Lines.size(); ++I) {
      StringRef Line = Lines[I].trim();
      if (!Line.consume_front("#"))
        continue;
      Line = Line.ltrim();
      if (Line.starts_with("if"))
        ++Conditionals;
      else if (Line.starts_with("endif"))
        --Conditionals;
      else if (Line.starts_with("define") || Line.starts_with("undef"))
        definition(Line, Main && Conditionals == 0);
      else if (Line.consume_front("include"))
        include(Line.ltrim(), File, Main && Conditionals == 0);
    }
  }

  void definition(StringRef Line, bool Repeatable) {
    // An include guard's own line defines nothing that anybody else reads.
    bool Guard = !Line.substr(Line.find(' ')).trim().contains(' ') && Line.starts_with("define") && !Repeatable;
    if (Guard)
      return;
    if (Repeatable && !Line.ends_with("\\"))
      Pending += ("#" + Line + "\n").str();
    else
      Tainted = true;
  }

  void include(StringRef Name, const std::string &File, bool Repeatable) {
    bool Quoted = Name.consume_front("\"");
    if (!Quoted && !Name.consume_front("<"))
      return;
    Name = Name.take_until([](char C) { return C == '"' || C == '>'; });
    if (!Name.starts_with("torch/")) {
      if (std::string Found = find(Name, Quoted ? path::parent_path(File) : ""); Found.empty())
        return; // not there: the unit itself will say so
      else if (P.owns(Found))
        return scan(Found, /*Main=*/false);
    }
    if (Name.starts_with("torch/") && !Torch) {
      Torch = true;
      TaintedBeforeTorch = Tainted;
      append("torch/torch.h");
    }
    // Other libraries' headers of the main file: one precompiled header for each set of them.
    StringRef Folder = Name.split('/').first;
    static const StringSet<> Cheap = {"sys", "bits", "linux", "arpa", "net", "netinet", "experimental", "accelerate"};
    if (Repeatable && !Tainted && Name.contains('/') && Name != "torch/torch.h" && !Cheap.contains(Folder))
      append(Name);
  }

  std::string find(StringRef Name, StringRef Beside) const {
    if (!Beside.empty() && fs::exists(Beside + "/" + Name))
      return realPathOf((Beside + "/" + Name).str());
    for (const std::string &Folder : Folders)
      if (fs::exists(Folder + "/" + Name))
        return realPathOf(Folder + "/" + Name.str());
    return "";
  }

  void append(StringRef Name) {
    Text += Pending;
    Pending.clear();
    Text += ("#include <" + Name + ">\n").str();
  }

  const Project &P;
  std::vector<std::string> Folders;
  std::set<std::string> Seen;
  std::string Text, Pending;
  bool Torch = false, Tainted = false, TaintedBeforeTorch = false;
};

/// Everything that the header's contents depend on.
std::string keyOf(ArrayRef<std::string> Args, StringRef Text, StringRef Torch) {
  std::string Stamp;
  fs::file_status Status;
  if (!fs::status(Torch, Status))
    Stamp = std::to_string(Status.getSize()) + " " +
            std::to_string(Status.getLastModificationTime().time_since_epoch().count());
  std::vector<StringRef> Parts = {"prefix 3 " MIGRATE_VERSION, Text, Stamp};
  append_range(Parts, Args);
  return cacheKey(Parts);
}

/// Within the last hour. Headers that couldn't be precompiled can't be soon after; by then somebody may have mended them.
bool modifiedLately(const Twine &Path) {
  fs::file_status Status;
  return !fs::status(Path, Status) &&
         std::chrono::system_clock::now() - Status.getLastModificationTime() < std::chrono::hours(1);
}

/// The cache keeps those used last: each of LibTorch is some 90 MB. What a run that was killed has begun goes too.
void prune(StringRef Dir) {
  constexpr uint64_t Room = uint64_t(1) << 30;
  struct Kept {
    sys::TimePoint<> Used;
    std::string Path;
    uint64_t Size;
  };
  std::vector<Kept> Found;
  std::error_code EC;
  for (fs::directory_iterator It(Dir, EC), End; !EC && It != End; It.increment(EC)) {
    StringRef Path = It->path();
    auto Status = It->status();
    if (!Status)
      continue;
    if (Path.ends_with(".pch"))
      Found.push_back({Status->getLastAccessedTime(), Path.str(), Status->getSize()});
    else if ((Path.ends_with(".failed") || Path.ends_with(".tmp")) && !modifiedLately(Path))
      fs::remove(Path);
  }
  llvm::sort(Found, [](const Kept &A, const Kept &B) { return A.Used > B.Used; });
  uint64_t Size = 0;
  for (const Kept &One : Found)
    if ((Size += One.Size) > Room) {
      fs::remove(One.Path);
      fs::remove(StringRef(One.Path).drop_back(4) + ".h");
    }
}

void writeFile(const std::string &Path, StringRef Text, std::error_code &EC) {
  raw_fd_ostream OS(Path, EC);
  if (!EC)
    OS << Text;
}

bool build(const std::vector<std::string> &Args, StringRef Directory, const std::string &Header,
           const std::string &Out) {
  std::vector<std::string> Line = Args;
  // A library that is installed again without a change leaves it valid.
  Line.insert(Line.end(), {"-fpch-validate-input-files-content", "-x", "c++-header", Header});
  auto FS = vfs::createPhysicalFileSystem();
  if (FS->setCurrentWorkingDirectory(Directory))
    return false;
  auto Files = makeIntrusiveRefCnt<clang::FileManager>(clang::FileSystemOptions(), std::move(FS));
  clang::IgnoringDiagConsumer Quiet;
  clang::tooling::ToolInvocation Invocation(Line, std::make_unique<PrefixAction>(Out), Files.get());
  Invocation.setDiagnosticConsumer(&Quiet);
  return Invocation.run() && fs::exists(Out);
}

} // namespace

std::string precompiledPrefix(const Project &P, const UnitCommand &Command, const std::vector<std::string> &AllArgs,
                              const ParseOptions &Options) {
  if (!Options.Precompile)
    return "";
  std::vector<std::string> Args, Folders;
  std::string Torch;
  for (size_t I = 0; I + 1 < AllArgs.size(); ++I) { // the last is the source
    StringRef Arg = AllArgs[I], Dir;
    if (Arg.starts_with("-idirafter"))
      continue; // the runtime's headers
    bool Apart = Arg == "-isystem" || Arg == "-I";
    if (Apart && I + 2 < AllArgs.size())
      Dir = AllArgs[I + 1];
    else if (!Arg.consume_front("-isystem"))
      Arg.consume_front("-I");
    if (!Apart && Arg.size() != AllArgs[I].size())
      Dir = Arg;
    if (!Dir.empty()) {
      SmallString<256> Folder(Dir);
      fs::make_absolute(Command.Command.Directory, Folder);
      Folders.push_back(Folder.str().str());
      if (Torch.empty() && fs::exists(Folder + "/torch/torch.h"))
        Torch = (Folder + "/torch/torch.h").str();
      // The project's own folders differ from target to target; other libraries' headers don't look there.
      if (P.owns(realPathOf(Folder)) && !fs::exists(Folder + "/torch/torch.h")) {
        I += Apart;
        continue;
      }
      if (Apart)
        Args.push_back(AllArgs[I++]);
      Args.push_back(Apart ? Folder.str().str() : (StringRef(AllArgs[I]).drop_back(Dir.size()) + Folder).str());
      continue;
    }
    Args.push_back(AllArgs[I]);
  }
  std::string Text = Preamble(P, Folders).textFor(Command.Source);
  if (Text.empty())
    return "";
  std::string Dir = cacheFolder("pch");
  if (Torch.empty() || Dir.empty())
    return "";
  const std::string Plain = "#include <torch/torch.h>\n";
  std::string Base = Dir + "/" + keyOf(Args, Text, Torch), Out = Base + ".pch", Failed = Base + ".failed";
  while (!fs::exists(Out)) {
    if (modifiedLately(Failed)) {
      // Some other library's header may be the reason.
      if (Text == Plain)
        return "";
      Text = Plain;
      Base = Dir + "/" + keyOf(Args, Text, Torch), Out = Base + ".pch", Failed = Base + ".failed";
      continue;
    }
    LockFileManager Lock(Out);
    if (Lock == LockFileManager::LFS_Shared) {
      Lock.waitForUnlock(120);
      continue; // made by the other process, or given up: then it's our turn
    }
    std::error_code EC;
    writeFile(Base + ".h", Text, EC);
    std::string Temporary = Out + "." + std::to_string(sys::Process::getProcessId());
    if (EC || !build(Args, Command.Command.Directory, Base + ".h", Temporary) || fs::rename(Temporary, Out)) {
      fs::remove(Temporary);
      fs::remove(Base + ".h");
      writeFile(Failed, "", EC);
      continue;
    }
    prune(Dir);
  }
  touch(Out);
  return Out;
}

} // namespace migrate
