//===- Text.cpp -----------------------------------------------------------===//
#include "edit/UnifiedDiff.h"
#include "report/Report.h"

using namespace llvm;

namespace migrate {

void printDiff(const Result &R, const Project &P, raw_ostream &Out) {
  for (const auto &[Path, Text] : R.Texts)
    Out << unifiedDiff(P.display(Path), Text.first, Text.second);
}

void printSummary(const Result &R, const Project &P, bool Applied, raw_ostream &Err) {
  for (const Finding &F : R.Findings) {
    Err << (F.Path.empty() ? "accelerate-migrate" : P.display(F.Path));
    if (F.Line)
      Err << ":" << F.Line << ":" << F.Column;
    Err << ": " << toString(F.Level) << ": " << F.Message << " [" << F.Code << " " << F.Name << "]"
        << (F.Incomplete ? " (analysis incomplete: the program doesn't parse)" : "") << "\n";
    for (const Finding::Step &S : F.Chain)
      Err << "  " << P.display(S.Path) << ":" << S.Line << ": " << S.What << "\n";
  }
  if (!R.StyleIgnored.empty())
    Err << "accelerate-migrate: touched lines aren't formatted: " << R.StyleIgnored << "\n";
  for (const ProgramResult &Program : R.Programs) {
    Err << "accelerate-migrate: " << Program.Name << ": " << toString(Program.What);
    if (!Program.Reason.empty())
      Err << " (" << Program.Reason << ")";
    else if (Program.Incomplete)
      Err << " (analysis incomplete: it doesn't parse)";
    if (Program.Silent)
      Err << ", " << Program.Silent << (Program.Silent == 1 ? " finding" : " findings") << " switched off";
    Err << "\n";
  }
  if (!R.Edits.empty())
    Err << "accelerate-migrate: " << R.Edits.size() << (R.Edits.size() == 1 ? " edit in " : " edits in ")
        << R.Texts.size() << (R.Texts.size() == 1 ? " file" : " files") << (Applied ? ", written" : "") << "\n";
}

} // namespace migrate
