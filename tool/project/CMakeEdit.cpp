//===- CMakeEdit.cpp ------------------------------------------------------===//
#include "project/CMakeEdit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
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

/// `${NAME}` by what `set` and `project` said before. What a value itself refers to was resolved when it was set, or
/// isn't known: `set(FLAGS "${FLAGS} -Wall")`.
std::string resolve(std::string Arg, const std::map<std::string, std::string> &Variables) {
  for (size_t At = 0; (At = Arg.find("${", At)) != std::string::npos;) {
    size_t End = Arg.find('}', At);
    if (End == std::string::npos)
      break;
    auto It = Variables.find(Arg.substr(At + 2, End - At - 2));
    if (It == Variables.end()) {
      At += 2;
      continue;
    }
    Arg.replace(At, End + 1 - At, It->second);
    At += It->second.size();
  }
  return Arg;
}

std::vector<std::string> listFiles(const Project &P) {
  std::vector<std::string> Found;
  std::error_code EC;
  for (sys::fs::recursive_directory_iterator It(P.SourceRoot, EC), End; !EC && It != End; It.increment(EC)) {
    StringRef Name = sys::path::filename(It->path());
    if (Name == "CMakeLists.txt" || Name.ends_with(".cmake"))
      Found.push_back(It->path());
    else if (Name.starts_with(".") || Name == "CMakeFiles" || It->path() == P.BuildDir)
      It.no_push();
  }
  llvm::sort(Found);
  return Found;
}

} // namespace

void linkRuntime(const Project &P, const std::string &Target, const RuleSet &Rules, const FileTexts &Texts,
                 Migration &Out) {
  auto Add = [&](const Rule &R, const std::string &Path, size_t At, std::string Text) {
    Edit E;
    E.Path = Path;
    E.Begin = E.End = At;
    E.Text = std::move(Text);
    E.Where = Edit::Side::Closes;
    E.Code = R.Code;
    E.Name = R.Name;
    E.Safety = toString(R.How).str();
    const std::string &Source = Texts(Path);
    E.Line = 1 + std::count(Source.begin(), Source.begin() + At, '\n');
    Out.Edits.push_back(std::move(E));
  };
  // Who switches one off links the runtime in a way of their own.
  auto Writes = [](const Rule &R) { return !R.Off && R.How != Safety::Manual && !R.Edits.empty(); };
  const std::vector<const Rule *> Package = Rules.byFact("cmake-package"), Link = Rules.byFact("cmake-link"),
                                  Manual = Rules.byFact("cmake-manual");
  ++Out.Matches;
  for (const std::string &Path : listFiles(P)) {
    const std::string &Text = Texts(Path);
    StringRef Newline = StringRef(Text).contains("\r\n") ? "\r\n" : "\n";
    std::map<std::string, std::string> Variables;
    const Command *Definition = nullptr, *Links = nullptr, *Torch = nullptr;
    bool HasPackage = false, HasLink = false;
    std::vector<Command> Commands = commandsIn(Text);
    for (const Command &C : Commands) {
      if (C.Args.empty())
        continue;
      if (C.Name == "project")
        Variables["PROJECT_NAME"] = Variables["CMAKE_PROJECT_NAME"] = C.Args[0];
      else if (C.Name == "set" && C.Args.size() == 2)
        Variables[C.Args[0]] = resolve(C.Args[1], Variables);
      else if (C.Name == "find_package" && C.Args[0] == "Torch")
        Torch = &C;
      else if (C.Name == "find_package" && C.Args[0] == "Accelerate")
        HasPackage = true;
      else if ((C.Name == "add_executable" || C.Name == "add_library") && resolve(C.Args[0], Variables) == Target)
        Definition = &C;
      else if (C.Name == "target_link_libraries" && resolve(C.Args[0], Variables) == Target) {
        Links = &C;
        HasLink |= is_contained(C.Args, "Accelerate::accelerate");
      }
    }
    if (!Definition)
      continue;
    auto LineEnd = [&](size_t At) {
      size_t End = Text.find('\n', At);
      return End == std::string::npos ? Text.size() : End + 1;
    };
    auto Indent = [&](size_t At) {
      size_t Line = Text.rfind('\n', At);
      Line = Line == std::string::npos ? 0 : Line + 1;
      return Text.substr(Line, Text.find_first_not_of(" \t", Line) - Line);
    };
    for (const Rule *R : Package)
      if (!HasPackage && Writes(*R)) {
        const Command &After = Torch ? *Torch : *Definition;
        // Behind find_package(Torch); before the target where Torch is found elsewhere.
        size_t At = Torch ? LineEnd(After.Close) : Text.rfind('\n', Definition->Begin) + 1;
        Add(*R, Path, At, Indent(After.Begin) + R->Edits.front().Text + Newline.str());
      }
    for (const Rule *R : Link)
      if (!HasLink && Writes(*R)) {
        StringRef Library = R->Edits.front().Text;
        if (Links)
          Add(*R, Path, Links->Close, (" " + Library).str());
        else
          Add(*R, Path, LineEnd(Definition->Close),
              (LineEnd(Definition->Close) == Text.size() && !StringRef(Text).ends_with("\n") ? Newline.str() : "") +
                  Indent(Definition->Begin) + "target_link_libraries(" + Definition->Args[0] + " " + Library.str() +
                  ")" + Newline.str());
      }
    ++Out.Edited;
    return;
  }
  ++Out.Reported;
  for (const Rule *R : Manual) {
    Finding X;
    X.Code = R->Code;
    X.Name = R->Name;
    X.Level = R->Level;
    X.Message = R->Message;
    if (size_t At = X.Message.find("{target}"); At != std::string::npos)
      X.Message.replace(At, strlen("{target}"), Target.empty() ? "your program" : "`" + Target + "`");
    X.Path = P.SourceRoot + "/CMakeLists.txt";
    Out.Findings.push_back(std::move(X));
  }
}

} // namespace migrate
