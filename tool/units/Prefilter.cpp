//===- Prefilter.cpp ------------------------------------------------------===//
#include "units/Prefilter.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace migrate {

bool mayTrain(StringRef Text) {
  // Training needs a `backward` somewhere; the others are what `Lowering::noteDistributed` looks for.
  static const char *const Words[] = {"backward", "c10d",     "csrc/distributed", "mpi.h",
                                      "MPI_",     "nccl",     "nn::parallel",     "nn/parallel",
                                      "Distributed", "namespace parallel"};
  return any_of(Words, [&](const char *Word) { return Text.contains(Word); });
}

namespace {

/// Whether the text has a `main` outside braces and outside conditionals (`#ifdef TEST` around a library's own `main`
/// makes no program of it).
bool definesMain(StringRef Text) {
  clang::LangOptions Options;
  Options.CPlusPlus = true;
  SmallString<0> Copy(Text); // the lexer wants a null behind the last byte
  clang::Lexer Lex(clang::SourceLocation(), Options, Copy.c_str(), Copy.c_str(), Copy.c_str() + Copy.size());
  int Braces = 0, Conditionals = 0;
  bool Main = false, Directive = false;
  clang::Token T;
  for (Lex.LexFromRawLexer(T); T.isNot(clang::tok::eof); Lex.LexFromRawLexer(T)) {
    if (T.is(clang::tok::hash) && T.isAtStartOfLine()) {
      Directive = true;
      continue;
    }
    StringRef Word = T.is(clang::tok::raw_identifier) ? T.getRawIdentifier() : StringRef();
    if (Directive)
      Conditionals += Word.starts_with("if") ? 1 : Word == "endif" ? -1 : 0;
    Directive = false;
    Braces += T.is(clang::tok::l_brace) ? 1 : T.is(clang::tok::r_brace) ? -1 : 0;
    if (Main && T.is(clang::tok::l_paren))
      return true;
    Main = Word == "main" && Braces == 0 && Conditionals == 0;
  }
  return false;
}

class Scanner {
public:
  explicit Scanner(const Project &P) : P(P) {}

  struct Unit {
    bool Trains = false, Main = false;
  };

  /// The file, with the project's files that it includes.
  Unit scan(const UnitCommand &Command) {
    Unit Result;
    SmallVector<std::string, 8> Folders;
    const std::vector<std::string> &Args = Command.Command.CommandLine;
    for (size_t I = 0; I != Args.size(); ++I) {
      StringRef Arg = Args[I];
      for (StringRef Flag : {"-I", "-iquote", "-isystem", "-include"})
        if (Arg == Flag && I + 1 != Args.size())
          Folders.push_back(absolute(Args[I + 1], Command.Command.Directory));
        else if (Arg.starts_with(Flag) && Arg != Flag && Flag != "-include")
          Folders.push_back(absolute(Arg.drop_front(Flag.size()), Command.Command.Directory));
    }
    StringSet<> Seen;
    std::vector<std::string> Work = {Command.Source};
    // A file that the command line includes stands among the folders; as one it holds nothing.
    append_range(Work, Folders);
    for (size_t I = 0; I != Work.size(); ++I) {
      if (!Seen.insert(Work[I]).second)
        continue;
      const File *F = read(Work[I]);
      if (!F)
        continue;
      Result.Trains |= F->Trains;
      Result.Main |= F->Main;
      for (const auto &[Name, Quoted] : F->Includes) {
        if (Quoted)
          Work.push_back((sys::path::parent_path(F->Path) + "/" + Name).str());
        for (const std::string &Folder : Folders)
          Work.push_back(Folder + "/" + Name);
      }
    }
    return Result;
  }

  std::vector<Dependency> Read;

private:
  struct File {
    std::string Path;
    bool Trains = false, Main = false;
    std::vector<std::pair<std::string, bool>> Includes; ///< name, in quotes
  };

  static std::string absolute(StringRef Path, StringRef Folder) {
    SmallString<256> Full(Path);
    sys::fs::make_absolute(Folder, Full);
    return Full.str().str();
  }

  /// None if it isn't a file of the project.
  const File *read(const std::string &Path) {
    auto [It, New] = Files.try_emplace(Path);
    if (!New)
      return It->second.get();
    SmallString<256> Clean(Path);
    sys::path::remove_dots(Clean, /*remove_dot_dot=*/true);
    if (!P.owns(Clean))
      return nullptr;
    auto Buffer = MemoryBuffer::getFile(Clean, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!Buffer) {
      Read.push_back({sys::fs::is_directory(Clean) ? Dependency::Kind::Folder : Dependency::Kind::Missing,
                      Clean.str().str(),
                      {}});
      return nullptr;
    }
    StringRef Text = (*Buffer)->getBuffer();
    Read.push_back(Dependency::text(Clean, Text));
    It->second = std::make_unique<File>();
    It->second->Path = Clean.str().str();
    It->second->Trains = mayTrain(Text);
    It->second->Main = Text.contains("main") && definesMain(Text);
    for (size_t At = Text.find("include"); At != StringRef::npos; At = Text.find("include", At + 1)) {
      // `# include`, also behind a line break that a backslash hides: what precedes isn't looked at.
      StringRef Rest = Text.substr(At + strlen("include"));
      Rest.consume_front("_next");
      Rest = Rest.ltrim(" \t\\\r\n");
      if (Rest.consume_front("\""))
        It->second->Includes.emplace_back(Rest.take_until([](char C) { return C == '"' || C == '\n'; }), true);
      else if (Rest.consume_front("<"))
        It->second->Includes.emplace_back(Rest.take_until([](char C) { return C == '>' || C == '\n'; }), false);
      else if (!Rest.empty() && (isAlpha(Rest[0]) || Rest[0] == '_') && Text.take_front(At).rtrim(" \t").ends_with("#"))
        It->second->Trains = true; // a macro names the file: who knows
    }
    return It->second.get();
  }

  const Project &P;
  StringMap<std::unique_ptr<File>> Files;
};

} // namespace

Prefiltered prefilter(const Project &P) {
  Scanner S(P);
  Prefiltered Result;
  Result.Skip.resize(P.Units.size());
  std::vector<Scanner::Unit> Units;
  struct Target {
    bool Trains = false, Main = false;
  };
  StringMap<Target> Targets;
  for (const UnitCommand &Command : P.Units) {
    Scanner::Unit U = S.scan(Command);
    // Units of no target (flags on the command line) stand for themselves.
    Target &T = Targets[Command.Target.empty() ? Command.Source : Command.Target];
    T.Trains |= U.Trains;
    T.Main |= U.Main;
    Units.push_back(U);
  }
  // A library may train for any program that links it.
  bool LibraryTrains = any_of(Targets, [](const auto &T) { return T.second.Trains && !T.second.Main; });
  bool AnyTrains = any_of(Targets, [](const auto &T) { return T.second.Trains; });
  for (size_t I = 0; I != P.Units.size(); ++I) {
    const UnitCommand &Command = P.Units[I];
    const Target &T = Targets[Command.Target.empty() ? Command.Source : Command.Target];
    Result.Skip[I] = !AnyTrains || (T.Main && !T.Trains && !LibraryTrains);
    if (Result.Skip[I] && Units[I].Main)
      Result.Programs.push_back(I);
  }
  Result.Read = std::move(S.Read);
  return Result;
}

} // namespace migrate
