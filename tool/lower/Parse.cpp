//===- Parse.cpp ----------------------------------------------------------===//
#include "lower/Parse.h"
#include "lower/Instantiate.h"
#include "lower/Lower.h"
#include "lower/Prefix.h"
#include "lower/StandIns.h"
#include "rules/Rule.h"
#include "units/Cache.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Sema/SemaConsumer.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/VirtualFileSystem.h"

using namespace clang;

namespace migrate {
namespace {

/// Keeps errors instead of printing them.
class Recorder : public DiagnosticConsumer {
public:
  explicit Recorder(ir::Unit &Out) : Out(Out) {}
  void HandleDiagnostic(DiagnosticsEngine::Level Level, const Diagnostic &Info) override {
    if (Level < DiagnosticsEngine::Error)
      return;
    llvm::SmallString<128> Message;
    Info.FormatDiagnostic(Message);
    ir::Problem P;
    P.Message = Message.str().str();
    P.Fatal = Level == DiagnosticsEngine::Fatal;
    if (Info.hasSourceManager() && Info.getLocation().isValid()) {
      const SourceManager &SM = Info.getSourceManager();
      SourceLocation Place = SM.getFileLoc(Info.getLocation());
      PresumedLoc Loc = SM.getPresumedLoc(Place);
      if (Loc.isValid()) {
        OptionalFileEntryRef Entry = SM.getFileEntryRefForID(SM.getFileID(Place));
        StringRef Real = Entry ? Entry->getFileEntry().tryGetRealPathName() : "";
        P.Path = realPathOf(Real.empty() ? Loc.getFilename() : Real);
        P.Offset = SM.getFileOffset(Place);
        P.Line = Loc.getLine();
        P.Column = Loc.getColumn();
      }
    }
    Out.Errors.push_back(std::move(P));
  }

private:
  ir::Unit &Out;
};

/// Notes the `#include` lines of project files: a new one goes beside them.
class IncludeRecorder : public PPCallbacks {
public:
  IncludeRecorder(const SourceManager &SM, ProjectFilter InProject, ir::Unit &Out)
      : SM(SM), InProject(InProject), Out(Out) {}
  void InclusionDirective(SourceLocation Hash, const Token &, StringRef Name, bool Angled, CharSourceRange,
                          OptionalFileEntryRef, StringRef, StringRef, const Module *, bool,
                          SrcMgr::CharacteristicKind) override {
    if (!Hash.isFileID())
      return;
    OptionalFileEntryRef Entry = SM.getFileEntryRefForID(SM.getFileID(Hash));
    if (!Entry)
      return;
    std::string Path = realPathOf(Entry->getFileEntry().tryGetRealPathName());
    if (Path.empty() || !InProject(Path))
      return;
    ir::File *File = nullptr;
    for (ir::File &Known : Out.Files)
      if (Known.Path == Path)
        File = &Known;
    if (!File) {
      Out.Files.push_back({Path, true, {}, {}});
      File = &Out.Files.back();
    }
    if (Name.starts_with("c10d/") || Name.contains("csrc/distributed/") || Name == "mpi.h" || Name == "nccl.h")
      Out.Distributed.push_back(
          ("#include <" + Name + "> at " + llvm::Twine(Path) + ":" + llvm::Twine(SM.getSpellingLineNumber(Hash)))
              .str());
    uint32_t Offset = SM.getFileOffset(Hash);
    if (llvm::is_contained(File->Includes, Offset))
      return;
    File->Includes.push_back(Offset);
    File->Spellings.push_back(Angled ? ("<" + Name + ">").str() : ("\"" + Name + "\"").str());
  }

private:
  const SourceManager &SM;
  ProjectFilter InProject;
  ir::Unit &Out;
};

class LoweringConsumer : public SemaConsumer {
public:
  LoweringConsumer(const SourceManager &SM, const RuleSet &Rules, ProjectFilter InProject, ir::Unit &Out)
      : SM(SM), Rules(Rules), InProject(InProject), Out(Out) {}
  void InitializeSema(Sema &Given) override { S = &Given; }
  void ForgetSema() override { S = nullptr; }
  void HandleTranslationUnit(ASTContext &Ctx) override {
    if (S)
      instantiateMethods(*S, InProject);
    lower(Ctx, Rules, InProject, Out);
  }
  /// Only the project's own bodies are read: two thirds of the time of a LibTorch unit is spent in the others.
  bool shouldSkipFunctionBody(Decl *D) override {
    SourceLocation Loc = SM.getFileLoc(D->getLocation());
    FileID Id = SM.getFileID(Loc);
    auto [It, New] = Own.try_emplace(Id, false);
    if (New)
      if (OptionalFileEntryRef Entry = SM.getFileEntryRefForID(Id))
        It->second = InProject(realPathOf(Entry->getFileEntry().tryGetRealPathName())) || callsBack(Entry->getName());
    return !It->second;
  }

private:
  const SourceManager &SM;
  const RuleSet &Rules;
  ProjectFilter InProject;
  ir::Unit &Out;
  Sema *S = nullptr;
  llvm::DenseMap<FileID, bool> Own;
};

class LoweringAction : public ASTFrontendAction {
public:
  LoweringAction(const RuleSet &Rules, ProjectFilter InProject, bool SkipBodies, ir::Unit &Out)
      : Rules(Rules), InProject(InProject), SkipBodies(SkipBodies), Out(Out) {}
  bool BeginInvocation(CompilerInstance &CI) override {
    CI.getFrontendOpts().SkipFunctionBodies = SkipBodies;
    CI.getFrontendOpts().DisableFree = true;    // the process ends soon
    CI.getDiagnostics().setFatalsAsError(true); // a missing header mustn't blind us to the rest
    return true;
  }
  std::unique_ptr<ASTConsumer> CreateASTConsumer(CompilerInstance &CI, StringRef) override {
    CI.getPreprocessor().addPPCallbacks(std::make_unique<IncludeRecorder>(CI.getSourceManager(), InProject, Out));
    return std::make_unique<LoweringConsumer>(CI.getSourceManager(), Rules, InProject, Out);
  }

private:
  const RuleSet &Rules;
  ProjectFilter InProject;
  bool SkipBodies;
  ir::Unit &Out;
};

} // namespace

std::string findResourceDir(llvm::StringRef Explicit, llvm::StringRef Executable) {
  std::vector<std::string> Places;
  if (!Explicit.empty())
    Places = {Explicit.str()};
  else
    Places = {(llvm::sys::path::parent_path(Executable) + "/../lib/clang/" + MIGRATE_CLANG_MAJOR).str(),
              MIGRATE_RESOURCE_DIR};
  for (const std::string &Place : Places)
    if (llvm::sys::fs::exists(Place + "/include/stddef.h"))
      return Place;
  return "";
}

ReadUnit parseUnit(const Project &P, const UnitCommand &Command, const RuleSet &Rules, const ParseOptions &Options,
                   const Overlay &Edited) {
  ReadUnit Result;
  ir::Unit &Out = Result.Unit;
  Out.Source = Command.Source;
  Out.Target = Command.Target;
  auto InProject = [&](llvm::StringRef Path) { return P.owns(Path); };

  llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> FS = withStandIns(llvm::vfs::createPhysicalFileSystem());
  if (std::error_code EC = FS->setCurrentWorkingDirectory(Command.Command.Directory)) {
    Out.Errors.push_back({Command.Source, "its folder can't be entered: " + EC.message(), 0, 0, true});
    return Result;
  }
  std::map<std::string, Dependency> Seen;
  std::string CacheRoot = cacheFolder("");
  auto Ignore = [&](llvm::StringRef Path) {
    return (!CacheRoot.empty() && Path.starts_with(CacheRoot)) || Path.starts_with(StandInFolder);
  };
  auto Files =
      llvm::makeIntrusiveRefCnt<FileManager>(FileSystemOptions(), recording(FS, Edited, InProject, Ignore, Seen));

  std::vector<std::string> Args = Command.Command.CommandLine;
  // Ours stand before the user's, so that theirs win; errors alone are of interest.
  Args.insert(Args.begin() + 1,
              {"-resource-dir=" + Options.ResourceDir, "-fsyntax-only", "-w", "-ferror-limit=0",
               "-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument", "-fno-spell-checking"});
  Args.insert(Args.begin() + 1, std::string("-idirafter") + StandInFolder);
  if (!Options.RuntimeInclude.empty())
    Args.insert(Args.begin() + 1, "-idirafter" + Options.RuntimeInclude);
  std::string Prefix = Options.DistrustPrefix ? "" : precompiledPrefix(P, Command, Args, Options);
  if (!Prefix.empty())
    Args.insert(Args.begin() + 1, {"-include-pch", Prefix, "-fpch-validate-input-files-content"});

  Recorder Diagnostics(Out);
  tooling::ToolInvocation Invocation(Args, std::make_unique<LoweringAction>(Rules, InProject, Options.SkipBodies, Out),
                                     Files.get());
  Invocation.setDiagnosticConsumer(&Diagnostics);
  if (!Invocation.run() && Out.Errors.empty())
    Out.Errors.push_back({Command.Source, "Clang could not read this unit's command", 0, 0, true});
  // LibTorch's headers have changed under the cache, or the file is damaged: they are read as they are, and the next
  // run makes a new one.
  if (!Prefix.empty() && llvm::any_of(Out.Errors, [&](const ir::Problem &E) {
        return llvm::any_of(std::initializer_list<llvm::StringRef>{Prefix, "precompiled", "PCH file", "AST file"},
                            [&](llvm::StringRef Sign) { return llvm::StringRef(E.Message).contains(Sign); });
      })) {
    llvm::sys::fs::remove(Prefix);
    ParseOptions Plain = Options;
    Plain.Precompile = false;
    return parseUnit(P, Command, Rules, Plain, Edited);
  }
  if (Options.DistrustPrefix) // behind it this unit brought the parser down, and it hasn't now
    if (std::string Prefix = precompiledPrefix(P, Command, Args, Options); !Prefix.empty())
      llvm::sys::fs::remove(Prefix);
  for (auto &[Path, D] : Seen)
    (InProject(realPathOf(Path)) ? Result.Own : Result.System).push_back(std::move(D));
  return Result;
}

} // namespace migrate
