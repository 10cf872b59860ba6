//===- Prefilter.cpp ------------------------------------------------------===//
#include "units/Prefilter.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cstdlib>

using namespace llvm;

namespace migrate {

bool mayTrain(StringRef Text) {
  // Training needs a `backward` somewhere, or takes gradients itself; the others are what `Lowering::noteDistributed`
  // looks for.
  static const char *const Words[] = {
      "backward",     "autograd::grad", "c10d",        "csrc/distributed",  "mpi.h", "MPI_", "nccl",
      "nn::parallel", "nn/parallel",    "Distributed", "namespace parallel"};
  return any_of(Words, [&](const char *Word) { return Text.contains(Word); });
}

namespace {

enum class Main { None, Conditional, Certain };

/// Whether the text has a `main` outside braces; `Certain` if it's outside conditionals, too (`#ifdef TEST` around a
/// library's own `main` makes no program of it).
Main findMain(StringRef Text) {
  if (!Text.contains("main"))
    return Main::None;
  clang::LangOptions Options;
  Options.CPlusPlus = true;
  SmallString<0> Copy(Text); // the lexer wants a null behind the last byte
  clang::Lexer Lex(clang::SourceLocation(), Options, Copy.c_str(), Copy.c_str(), Copy.c_str() + Copy.size());
  int Braces = 0, Conditionals = 0;
  bool Named = false, Member = false, Directive = false, Word = false;
  Main Found = Main::None;
  clang::Token T;
  for (Lex.LexFromRawLexer(T); T.isNot(clang::tok::eof); Lex.LexFromRawLexer(T)) {
    StringRef Name = T.is(clang::tok::raw_identifier) ? T.getRawIdentifier() : StringRef();
    if (T.isAtStartOfLine())
      Directive = T.is(clang::tok::hash), Word = Directive;
    if (Directive) {
      // `#define PROGRAM int main(` isn't one.
      if (Word && T.isNot(clang::tok::hash)) {
        Conditionals += Name.starts_with("if") ? 1 : Name == "endif" ? -1 : 0;
        Word = false;
      }
      continue;
    }
    Braces += T.is(clang::tok::l_brace) ? 1 : T.is(clang::tok::r_brace) ? -1 : 0;
    if (Named && T.is(clang::tok::l_paren)) {
      if (Conditionals == 0)
        return Main::Certain;
      Found = Main::Conditional;
    }
    Named = Name == "main" && Braces == 0 && !Member;
    Member = T.is(clang::tok::coloncolon);
  }
  return Found;
}

class Scanner {
public:
  explicit Scanner(const Project &P) : P(P) {}

  struct Unit {
    bool Trains = false;
    migrate::Main Main = Main::None;
    std::vector<std::string> Parts; ///< real paths of these files, its own first
  };

  /// The file, with the project's files that it includes.
  Unit scan(const UnitCommand &Command) {
    Unit Result;
    std::vector<std::string> Folders, Work = {Command.Source};
    // Whatever names a folder may be one that is searched: there are many flags for that.
    auto Folder = [&](StringRef Name) {
      std::string Path = absolute(Name, Command.Command.Directory);
      if (sys::fs::is_directory(Path) && !is_contained(Folders, Path))
        Folders.push_back(Path);
    };
    for (const char *Variable : {"CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH"}) {
      SmallVector<StringRef, 4> Names;
      StringRef(std::getenv(Variable)).split(Names, ':', -1, /*KeepEmpty=*/false);
      for (StringRef Name : Names)
        Folder(Name);
    }
    std::vector<StringRef> Included;
    const std::vector<std::string> &Args = Command.Command.CommandLine;
    for (size_t I = 1; I < Args.size(); ++I) {
      StringRef Arg = Args[I];
      if (Args[I - 1] == "-include" || Args[I - 1] == "-imacros")
        Included.push_back(Arg);
      Folder(Arg);
      Folder(Arg.split('=').second);
      for (StringRef Flag : {"-I", "-iquote", "-isystem", "-idirafter", "-cxx-isystem"})
        if (StringRef Joined = Arg; Joined.consume_front(Flag))
          Folder(Joined);
    }
    for (StringRef Name : Included) {
      Work.push_back(absolute(Name, Command.Command.Directory));
      for (const std::string &Dir : Folders)
        Work.push_back((Dir + "/" + Name).str());
    }
    StringSet<> Seen;
    std::vector<const File *> Parts;
    for (size_t I = 0; I != Work.size(); ++I) {
      if (!Seen.insert(Work[I]).second)
        continue;
      const File *F = read(Work[I]);
      if (!F)
        continue;
      Result.Trains |= F->Trains;
      Result.Main = std::max(Result.Main, F->Main);
      Parts.push_back(F);
      Result.Parts.push_back(F->Path);
      for (const auto &[Name, Quoted] : F->Includes) {
        if (Quoted)
          Work.push_back((sys::path::parent_path(F->Path) + "/" + Name).str());
        for (const std::string &Dir : Folders)
          Work.push_back(Dir + "/" + Name);
      }
    }
    // What isn't there may be where it trains: the parse says what is missing.
    if (!Result.Trains && any_of(Parts, [](const File *F) { return F->Torch; }))
      Result.Trains = any_of(Parts, [&](const File *F) { return lacks(*F, Folders); });
    return Result;
  }

  std::vector<Dependency> Read;

private:
  struct File {
    std::string Path;
    bool Trains = false, Torch = false;
    migrate::Main Main = Main::None;
    std::vector<std::pair<std::string, bool>> Includes; ///< name, in quotes
  };

  static std::string absolute(StringRef Path, StringRef Folder) {
    SmallString<256> Full(Path);
    sys::fs::make_absolute(Folder, Full);
    return Full.str().str();
  }

  /// Whether an include in quotes leads to no file, of whomever.
  static bool lacks(const File &F, const std::vector<std::string> &Folders) {
    return any_of(F.Includes, [&](const auto &Include) {
      const auto &[Name, Quoted] = Include;
      auto In = [&Name = Name](StringRef Folder) { return sys::fs::exists(Folder + "/" + Name); };
      return Quoted && !sys::path::is_absolute(Name) && !In(sys::path::parent_path(F.Path)) && !any_of(Folders, In) &&
             !In("/usr/local/include") && !In("/usr/include");
    });
  }

  /// None if it isn't a file of the project.
  const File *read(const std::string &Path) {
    auto [It, New] = Files.try_emplace(Path);
    if (!New)
      return It->second.get();
    // A file has many names; what is missing is looked for under the one that was asked for.
    SmallString<256> Clean(realPathOf(Path));
    if (Clean == Path)
      sys::path::remove_dots(Clean, /*remove_dot_dot=*/true);
    if (!P.owns(Clean))
      return nullptr;
    auto Buffer = MemoryBuffer::getFile(Clean, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!Buffer) {
      Read.push_back(
          {sys::fs::is_directory(Clean) ? Dependency::Kind::Folder : Dependency::Kind::Missing, Clean.str().str(), {}});
      return nullptr;
    }
    StringRef Text = (*Buffer)->getBuffer();
    Read.push_back(Dependency::text(Clean, Text));
    It->second = std::make_unique<File>();
    It->second->Path = Clean.str().str();
    It->second->Trains = mayTrain(Text);
    It->second->Torch = Text.contains("torch");
    It->second->Main = findMain(Text);
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

bool hasMain(const std::string &Source) {
  auto Buffer = MemoryBuffer::getFile(Source, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  return Buffer && findMain((*Buffer)->getBuffer()) != Main::None;
}

std::map<std::string, std::set<std::string>> includingTargets(const Project &P) {
  Scanner S(P);
  std::map<std::string, std::set<std::string>> Result;
  for (const UnitCommand &Command : P.Units) {
    const Scanner::Unit U = S.scan(Command);
    for (const std::string &Part : U.Parts)
      if (Part != Command.Source && !Command.Target.empty())
        Result[Part].insert(Command.Target);
  }
  return Result;
}

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
    T.Main |= U.Main == Main::Certain;
    Units.push_back(U);
  }
  // CUDA sources aren't read, but their programs are looked at.
  for (const UnitCommand &Command : P.CudaUnits)
    if (S.scan(Command).Trains)
      Targets[Command.Target].Trains = true;
  // A library may train for any program that links it.
  bool LibraryTrains = any_of(Targets, [](const auto &T) { return T.second.Trains && !T.second.Main; });
  bool AnyTrains = any_of(Targets, [](const auto &T) { return T.second.Trains; });
  for (size_t I = 0; I != P.Units.size(); ++I) {
    const UnitCommand &Command = P.Units[I];
    const Target &T = Targets[Command.Target.empty() ? Command.Source : Command.Target];
    Result.Skip[I] = !AnyTrains || (T.Main && !T.Trains && !LibraryTrains);
    if (Result.Skip[I] && Units[I].Main != Main::None)
      Result.Programs.push_back(I);
  }
  Result.Read = std::move(S.Read);
  return Result;
}

} // namespace migrate
