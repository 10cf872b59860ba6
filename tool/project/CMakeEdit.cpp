//===- CMakeEdit.cpp ------------------------------------------------------===//
#include "project/CMakeEdit.h"
#include "project/CMakeFiles.h"
#include <algorithm>

using namespace llvm;

namespace migrate {

void linkRuntime(const Project &P, const std::string &Target, const RuleSet &Rules, const FileTexts &Texts,
                 Migration &Out) {
  ++Out.Matches;
  std::optional<TargetDefinition> Found = findTarget(P, Target, Texts);
  if (!Found) {
    ++Out.Reported;
    for (const Rule *R : Rules.byFact("cmake-manual")) {
      Finding X;
      X.Code = R->Code;
      X.Name = R->Name;
      X.Level = R->Level;
      X.Message = R->Message;
      if (size_t At = X.Message.find("{target}"); At != std::string::npos)
        X.Message.replace(At, strlen("{target}"), Target.empty() ? "your program" : "`" + Target + "`");
      X.Path = P.HomeDir + "/CMakeLists.txt";
      Out.Findings.push_back(std::move(X));
    }
    return;
  }
  const std::string &Text = Texts(Found->Path);
  const std::string Newline = StringRef(Text).contains("\r\n") ? "\r\n" : "\n";
  auto Add = [&](const Rule &R, size_t At, std::string Line) {
    Edit E;
    E.Path = Found->Path;
    E.Begin = E.End = At;
    E.Text = std::move(Line);
    E.Where = Edit::Side::Closes;
    E.Code = R.Code;
    E.Name = R.Name;
    E.Safety = toString(R.How).str();
    E.Line = 1 + std::count(Text.begin(), Text.begin() + At, '\n');
    Out.Edits.push_back(std::move(E));
  };
  auto LineEnd = [&](size_t At) {
    size_t End = Text.find('\n', At);
    return End == std::string::npos ? Text.size() : End + 1;
  };
  auto Indent = [&](size_t At) {
    size_t Line = Text.rfind('\n', At);
    Line = Line == std::string::npos ? 0 : Line + 1;
    return Text.substr(Line, Text.find_first_not_of(" \t", Line) - Line);
  };
  // Who switches one off links the runtime in a way of their own.
  auto Writes = [](const Rule &R) { return !R.Off && R.How != Safety::Manual && !R.Edits.empty(); };
  for (const Rule *R : Rules.byFact("cmake-package"))
    if (!Found->FindsRuntime && Writes(*R)) {
      // Behind find_package(Torch); before the target where Torch is found elsewhere.
      size_t At = Found->Torch ? LineEnd(Found->Torch->second) : Text.rfind('\n', Found->Begin) + 1;
      Add(*R, At, Indent(Found->Torch ? Found->Torch->first : Found->Begin) + R->Edits.front().Text + Newline);
    }
  for (const Rule *R : Rules.byFact("cmake-link"))
    if (!Found->LinksRuntime && Writes(*R)) {
      const std::string &Library = R->Edits.front().Text;
      if (Found->Links) {
        Add(*R, *Found->Links, " " + Library);
        continue;
      }
      size_t At = LineEnd(Found->Close);
      Add(*R, At,
          (At == Text.size() && !StringRef(Text).ends_with("\n") ? Newline : "") + Indent(Found->Begin) +
              "target_link_libraries(" + Found->Name + (Found->Keywords ? " PRIVATE " : " ") + Library + ")" + Newline);
    }
  ++Out.Edited;
}

} // namespace migrate
