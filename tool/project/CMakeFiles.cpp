//===- CMakeFiles.cpp -----------------------------------------------------===//
#include "project/CMakeFiles.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace migrate {
namespace {

struct Command {
  std::string Name;
  std::vector<std::string> Args;
  size_t Begin = 0, Close = 0; ///< of the name, and of the closing parenthesis
};

/// The commands of a CMake file: names, arguments without quotes, places. Comments and brackets are skipped.
std::vector<Command> commandsIn(StringRef Text) {
  std::vector<Command> Found;
  size_t I = 0;
  auto SkipComment = [&] {
    if (Text.substr(I).starts_with("#[[")) {
      size_t End = Text.find("]]", I);
      I = End == StringRef::npos ? Text.size() : End + 2;
    } else {
      I = std::min(Text.find('\n', I), Text.size());
    }
  };
  while (I < Text.size()) {
    if (Text[I] == '#') {
      SkipComment();
      continue;
    }
    if (!isAlpha(Text[I]) && Text[I] != '_') {
      ++I;
      continue;
    }
    Command C;
    C.Begin = I;
    while (I < Text.size() && (isAlnum(Text[I]) || Text[I] == '_'))
      ++I;
    C.Name = Text.slice(C.Begin, I).lower();
    while (I < Text.size() && (Text[I] == ' ' || Text[I] == '\t'))
      ++I;
    if (I >= Text.size() || Text[I] != '(')
      continue;
    int Depth = 0;
    std::string Arg;
    auto Flush = [&] {
      if (!Arg.empty())
        C.Args.push_back(std::exchange(Arg, ""));
    };
    for (; I < Text.size(); ++I) {
      char Ch = Text[I];
      if (Ch == '#') {
        Flush();
        SkipComment();
        --I;
      } else if (Ch == '"') {
        for (++I; I < Text.size() && Text[I] != '"'; ++I) {
          if (Text[I] == '\\')
            ++I;
          if (I < Text.size())
            Arg += Text[I];
        }
        Flush();
      } else if (Ch == '(') {
        if (Depth++ > 0)
          Arg += Ch;
      } else if (Ch == ')') {
        if (--Depth == 0)
          break;
        Arg += Ch;
      } else if (isSpace(Ch)) {
        Flush();
      } else {
        Arg += Ch;
      }
    }
    Flush();
    C.Close = std::min(I, Text.size());
    Found.push_back(std::move(C));
  }
  return Found;
}

using Variables = std::map<std::string, std::string>; ///< lists with `;` between their items

/// `${NAME}` by what was said before. What a value itself refers to was resolved when it was set, or isn't known:
/// `set(FLAGS "${FLAGS} -Wall")`.
std::string resolve(std::string Arg, const Variables &Known) {
  for (size_t At = 0; (At = Arg.find("${", At)) != std::string::npos;) {
    size_t End = Arg.find('}', At);
    if (End == std::string::npos)
      break;
    auto It = Known.find(Arg.substr(At + 2, End - At - 2));
    if (It == Known.end()) {
      At += 2;
      continue;
    }
    Arg.replace(At, End + 1 - At, It->second);
    At += It->second.size();
  }
  return Arg;
}

std::vector<std::string> resolveAll(ArrayRef<std::string> Args, const Variables &Known) {
  std::vector<std::string> Items;
  for (const std::string &Arg : Args) {
    SmallVector<StringRef> Parts;
    std::string Whole = resolve(Arg, Known);
    StringRef(Whole).split(Parts, ';', -1, /*KeepEmpty=*/false);
    for (StringRef Part : Parts)
      Items.push_back(Part.str());
  }
  return Items;
}

struct Function {
  std::vector<std::string> Params;
  std::vector<Command> Body;
};

/// The files, with what they share: functions, and the variables that a folder hands to those below it.
class Files {
public:
  Files(const Project &P, StringRef Target, const FileTexts &Texts) : P(P), Target(Target), Texts(Texts) {}

  std::optional<TargetDefinition> find() {
    std::vector<std::string> Paths = list();
    for (const std::string &Path : Paths) {
      Commands[Path] = commandsIn(Texts(Path));
      gatherFunctions(Commands[Path]);
    }
    for (const std::string &Path : Paths) {
      TargetDefinition Here;
      Here.Path = Path;
      std::string Folder = sys::path::parent_path(Path).str();
      Variables Known = inherited(Folder);
      Known["CMAKE_CURRENT_SOURCE_DIR"] = Known["CMAKE_CURRENT_LIST_DIR"] = Folder;
      Known["CMAKE_SOURCE_DIR"] = P.HomeDir;
      Current = &Here;
      Defined = false;
      Steps = 0;
      run(Commands[Path], Known, std::nullopt, 0);
      ByFolder[Folder] = Known;
      if (Defined)
        return Here;
    }
    return std::nullopt;
  }

private:
  /// Folders before those below them.
  std::vector<std::string> list() const {
    std::vector<std::string> Found;
    std::error_code EC;
    for (sys::fs::recursive_directory_iterator It(P.HomeDir, EC), End; !EC && It != End; It.increment(EC)) {
      StringRef Name = sys::path::filename(It->path());
      if (Name == "CMakeLists.txt" || Name.ends_with(".cmake"))
        Found.push_back(It->path());
      else if (Name.starts_with(".") || Name == "CMakeFiles" || It->path() == P.BuildDir)
        It.no_push();
    }
    auto Depth = [](StringRef Path) { return Path.count('/'); };
    llvm::sort(Found, [&](const std::string &A, const std::string &B) {
      return std::pair(Depth(A), A) < std::pair(Depth(B), B);
    });
    return Found;
  }

  Variables inherited(StringRef Folder) const {
    for (StringRef At = Folder; !At.empty() && At.starts_with(P.HomeDir); At = sys::path::parent_path(At))
      if (auto It = ByFolder.find(At.str()); It != ByFolder.end())
        return It->second;
    return {};
  }

  /// The end of the block that `All[I]` begins: the index of its `endforeach` or `endfunction`.
  static size_t blockEnd(ArrayRef<Command> All, size_t I) {
    const std::string &Begin = All[I].Name, End = "end" + Begin;
    int Depth = 0;
    for (size_t At = I; At != All.size(); ++At) {
      Depth += All[At].Name == Begin;
      Depth -= All[At].Name == End;
      if (Depth == 0)
        return At;
    }
    return All.size();
  }

  void gatherFunctions(ArrayRef<Command> All) {
    for (size_t I = 0; I != All.size(); ++I)
      if ((All[I].Name == "function" || All[I].Name == "macro") && !All[I].Args.empty()) {
        size_t End = blockEnd(All, I);
        Function F;
        F.Params.assign(All[I].Args.begin() + 1, All[I].Args.end());
        F.Body.assign(All.begin() + I + 1, All.begin() + End);
        Functions[StringRef(All[I].Args[0]).lower()] = std::move(F);
      }
  }

  /// `file(GLOB sources *.cpp)`
  std::vector<std::string> glob(ArrayRef<std::string> Patterns, const Variables &Known) const {
    std::vector<std::string> Found;
    for (const std::string &Pattern : resolveAll(Patterns, Known)) {
      SmallString<256> Full(Pattern);
      if (!sys::path::is_absolute(Full)) {
        Full = Known.at("CMAKE_CURRENT_SOURCE_DIR");
        sys::path::append(Full, Pattern);
      }
      Expected<GlobPattern> Glob = GlobPattern::create(sys::path::filename(Full));
      if (!Glob) {
        consumeError(Glob.takeError());
        continue;
      }
      std::error_code EC;
      for (sys::fs::directory_iterator It(sys::path::parent_path(Full), EC), End; !EC && It != End; It.increment(EC))
        if (Glob->match(sys::path::filename(It->path())))
          Found.push_back(It->path());
    }
    llvm::sort(Found);
    return Found;
  }

  /// What a loop runs over; none if that isn't known.
  std::vector<std::string> itemsOf(const Command &Loop, const Variables &Known) const {
    ArrayRef<std::string> Args = ArrayRef(Loop.Args).drop_front();
    if (!Args.empty() && Args[0] == "IN") {
      std::vector<std::string> Items;
      bool Lists = false;
      for (const std::string &Arg : Args.drop_front()) {
        if (Arg == "ITEMS" || Arg == "LISTS")
          Lists = Arg == "LISTS";
        else
          append_range(Items, resolveAll({Lists ? "${" + Arg + "}" : Arg}, Known));
      }
      return Items;
    }
    return resolveAll(Args, Known);
  }

  /// Where text that names the target may be added: behind the loop or call that defines it.
  struct Site {
    size_t Begin, Close;
  };

  void run(ArrayRef<Command> All, Variables &Known, std::optional<Site> From, int Depth) {
    int Conditions = 0;
    for (size_t I = 0; I < All.size() && Depth < 8 && ++Steps < 100000; ++I) {
      const Command &C = All[I];
      Conditions += C.Name == "if";
      Conditions -= C.Name == "endif";
      if (C.Name == "function" || C.Name == "macro") {
        I = blockEnd(All, I);
        continue;
      }
      if (C.Args.empty())
        continue;
      std::string First = resolve(C.Args[0], Known);
      if (C.Name == "foreach") {
        size_t End = blockEnd(All, I);
        if (End == All.size())
          return;
        Site Loop = From.value_or(Site{C.Begin, All[End].Close});
        for (const std::string &Item : itemsOf(C, Known)) {
          Known[C.Args[0]] = Item;
          run(All.slice(I + 1, End - I - 1), Known, Loop, Depth + 1);
        }
        Known.erase(C.Args[0]);
        I = End;
      } else if (C.Name == "project") {
        Known["PROJECT_NAME"] = First;
        Known.try_emplace("CMAKE_PROJECT_NAME", First);
        Known["PROJECT_SOURCE_DIR"] = Known["CMAKE_CURRENT_SOURCE_DIR"];
      } else if (C.Name == "set" && C.Args.size() > 1) {
        ArrayRef<std::string> Values = ArrayRef(C.Args).drop_front();
        Known[C.Args[0]] = join(resolveAll(Values.take_until([](const std::string &Arg) {
                                  return Arg == "CACHE" || Arg == "PARENT_SCOPE";
                                }),
                                           Known),
                                ";");
      } else if (C.Name == "list" && C.Args.size() > 2 && C.Args[0] == "APPEND") {
        std::string &List = Known[C.Args[1]];
        List += (List.empty() ? "" : ";") + join(resolveAll(ArrayRef(C.Args).drop_front(2), Known), ";");
      } else if (C.Name == "get_filename_component" && C.Args.size() > 2) {
        std::string Path = resolve(C.Args[1], Known);
        if (C.Args[2] == "NAME_WE")
          Known[C.Args[0]] = sys::path::filename(Path).split('.').first.str();
        else if (C.Args[2] == "NAME" || C.Args[2] == "NAME_WLE")
          Known[C.Args[0]] = (C.Args[2] == "NAME" ? sys::path::filename(Path) : sys::path::stem(Path)).str();
      } else if (C.Name == "file" && C.Args.size() > 2 && C.Args[0] == "GLOB") {
        ArrayRef<std::string> Patterns = ArrayRef(C.Args).drop_front(2);
        bool Relative = Patterns[0] == "RELATIVE" && Patterns.size() > 2;
        Patterns = Patterns.drop_front(Relative ? 2 : Patterns[0] == "CONFIGURE_DEPENDS");
        std::vector<std::string> Found = glob(Patterns, Known);
        if (Relative)
          for (std::string &Path : Found)
            Path = sys::path::filename(Path).str();
        Known[C.Args[1]] = join(Found, ";");
      } else if (C.Name == "find_package" && First == "Torch") {
        if (!From && (Conditions == 0 || !Current->Torch)) // rather one that is always looked for
          Current->Torch = {C.Begin, C.Close};
      } else if (C.Name == "find_package" && First == "Accelerate") {
        Current->FindsRuntime = true;
      } else if ((C.Name == "add_executable" || C.Name == "add_library") && First == Target) {
        Defined = true;
        Current->ByName = From.has_value();
        Current->Name = From ? Target.str() : C.Args[0];
        Current->Begin = From ? From->Begin : C.Begin;
        Current->Close = From ? From->Close : C.Close;
      } else if (C.Name == "target_link_libraries" && First == Target) {
        if (!From)
          Current->Links = C.Close;
        Current->Keywords |= any_of(C.Args, [](const std::string &Arg) {
          return Arg == "PRIVATE" || Arg == "PUBLIC" || Arg == "INTERFACE";
        });
        Current->LinksRuntime |= is_contained(C.Args, "Accelerate::accelerate");
      } else if (auto It = Functions.find(C.Name); It != Functions.end()) {
        Variables Within = Known;
        std::vector<std::string> Args = resolveAll(C.Args, Known);
        for (size_t A = 0; A != Args.size(); ++A) {
          Within["ARGV" + std::to_string(A)] = Args[A];
          if (A < It->second.Params.size())
            Within[It->second.Params[A]] = Args[A];
        }
        Within["ARGV"] = join(Args, ";");
        Within["ARGN"] = join(ArrayRef(Args).drop_front(std::min(Args.size(), It->second.Params.size())), ";");
        run(It->second.Body, Within, From.value_or(Site{C.Begin, C.Close}), Depth + 1);
      }
    }
  }

  const Project &P;
  StringRef Target;
  const FileTexts &Texts;
  std::map<std::string, std::vector<Command>> Commands; ///< by path
  std::map<std::string, Function> Functions;
  std::map<std::string, Variables> ByFolder;
  TargetDefinition *Current = nullptr;
  bool Defined = false;
  int Steps = 0;
};

} // namespace

std::optional<TargetDefinition> findTarget(const Project &P, StringRef Target, const FileTexts &Texts) {
  return Files(P, Target, Texts).find();
}

} // namespace migrate
