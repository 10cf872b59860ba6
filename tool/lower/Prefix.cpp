//===- Prefix.cpp ---------------------------------------------------------===//
#include "lower/Prefix.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/LockFileManager.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SHA256.h"
#include <mutex>
#include <set>

using namespace llvm;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace migrate {
namespace {

class PrefixAction : public clang::GeneratePCHAction {
public:
  explicit PrefixAction(std::string Output) : Output(std::move(Output)) {}
  bool BeginInvocation(clang::CompilerInstance &CI) override {
    CI.getFrontendOpts().OutputFile = Output;
    CI.getFrontendOpts().SkipFunctionBodies = true;
    return true;
  }

private:
  std::string Output;
};

std::string cacheDir() {
  SmallString<256> Dir;
  if (!path::cache_directory(Dir))
    return "";
  path::append(Dir, "accelerate-migrate", "pch");
  return fs::create_directories(Dir) ? "" : Dir.str().str();
}

/// Whether a file, or a project file that it includes by quotes, includes LibTorch, and nothing is defined before the
/// includes end (a macro might change what LibTorch's headers say).
bool wantsTorch(const Project &P, const std::string &File, bool &Plain, std::set<std::string> &Seen) {
  if (!Seen.insert(File).second || !P.owns(File))
    return false;
  auto Buffer = MemoryBuffer::getFile(File);
  if (!Buffer)
    return false;
  bool Wants = false, Defined = false;
  SmallVector<StringRef, 0> Lines;
  (*Buffer)->getBuffer().split(Lines, '\n');
  for (StringRef Line : Lines) {
    Line = Line.trim();
    if (!Line.consume_front("#"))
      continue;
    Line = Line.ltrim();
    if (Line.starts_with("define") || Line.starts_with("undef")) {
      // An include guard's own line defines nothing that anybody else reads.
      Defined |= Line.contains(' ') && Line.substr(Line.find(' ')).trim().contains(' ');
    } else if (Line.consume_front("include")) {
      Line = Line.ltrim();
      if (Line.starts_with("<torch/") || Line.starts_with("\"torch/")) {
        Wants = true;
        Plain &= !Defined;
      } else if (Line.consume_front("\"")) {
        SmallString<256> Next(path::parent_path(File));
        path::append(Next, Line.take_until([](char C) { return C == '"'; }));
        SmallString<256> Real;
        if (!fs::real_path(Next, Real) && wantsTorch(P, Real.str().str(), Plain, Seen)) {
          Wants = true;
          Plain &= !Defined;
        }
      }
    }
  }
  return Wants;
}

/// Everything that the header's contents depend on.
std::string keyOf(ArrayRef<std::string> Args, StringRef Torch) {
  SHA256 Hash;
  auto Add = [&](StringRef S) {
    Hash.update(S);
    Hash.update(StringRef("\0", 1));
  };
  Add("prefix 1 " MIGRATE_VERSION);
  for (const std::string &Arg : Args)
    Add(Arg);
  fs::file_status Status;
  if (!fs::status(Torch, Status)) {
    Add(std::to_string(Status.getSize()));
    Add(std::to_string(Status.getLastModificationTime().time_since_epoch().count()));
  }
  return toHex(Hash.final(), /*LowerCase=*/true).substr(0, 32);
}

/// The cache keeps the newest few: each is some 90 MB.
void prune(StringRef Dir) {
  constexpr size_t Kept = 6;
  std::vector<std::pair<sys::TimePoint<>, std::string>> Found;
  std::error_code EC;
  for (fs::directory_iterator It(Dir, EC), End; !EC && It != End; It.increment(EC))
    if (StringRef(It->path()).ends_with(".pch"))
      if (auto Status = It->status())
        Found.emplace_back(Status->getLastAccessedTime(), It->path());
  llvm::sort(Found);
  for (size_t I = 0; I + Kept < Found.size(); ++I) {
    fs::remove(Found[I].second);
    fs::remove(StringRef(Found[I].second).drop_back(4) + ".h");
  }
}

bool build(const std::vector<std::string> &Args, StringRef Directory, const std::string &Header,
           const std::string &Out) {
  std::vector<std::string> Line = Args;
  Line.insert(Line.end(), {"-x", "c++-header", Header});
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
  bool Plain = true;
  std::set<std::string> Seen;
  if (!wantsTorch(P, Command.Source, Plain, Seen) || !Plain)
    return "";
  std::vector<std::string> Args;
  std::string Torch;
  for (size_t I = 0; I != AllArgs.size(); ++I) {
    StringRef Arg = AllArgs[I];
    if (I + 1 == AllArgs.size() || Arg.starts_with("-idirafter"))
      continue; // the source; the runtime's headers
    Args.push_back(Arg.str());
    StringRef Dir;
    if ((Arg == "-isystem" || Arg == "-I") && I + 1 != AllArgs.size())
      Dir = AllArgs[I + 1];
    else if (Arg.consume_front("-isystem") || Arg.consume_front("-I"))
      Dir = Arg;
    if (Torch.empty() && !Dir.empty() && fs::exists(Dir + "/torch/torch.h"))
      Torch = (Dir + "/torch/torch.h").str();
  }
  std::string Dir = cacheDir();
  if (Torch.empty() || Dir.empty())
    return "";
  // Relative paths in the flags mean something else in another folder.
  for (const std::string &Arg : Args)
    if (StringRef(Arg).starts_with("-I") && !path::is_absolute(StringRef(Arg).drop_front(2)) && Arg != "-I")
      return "";
  std::string Base = Dir + "/" + keyOf(Args, Torch), Out = Base + ".pch";

  static std::mutex InProcess; // the lock file is between processes
  std::lock_guard<std::mutex> Guard(InProcess);
  static std::set<std::string> Useless;
  if (Useless.count(Out))
    return "";
  while (!fs::exists(Out)) {
    LockFileManager Lock(Out);
    if (Lock == LockFileManager::LFS_Shared) {
      Lock.waitForUnlock(120);
      continue; // made by the other process, or given up: then it's our turn
    }
    std::error_code EC;
    {
      raw_fd_ostream Header(Base + ".h", EC);
      if (!EC)
        Header << "#include <torch/torch.h>\n";
    }
    std::string Temporary = Out + "." + std::to_string(sys::Process::getProcessId());
    if (EC || !build(Args, Command.Command.Directory, Base + ".h", Temporary) || fs::rename(Temporary, Out)) {
      fs::remove(Temporary);
      Useless.insert(Out);
      return "";
    }
    prune(Dir);
  }
  return Out;
}

} // namespace migrate
