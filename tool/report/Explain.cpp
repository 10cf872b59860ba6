//===- Explain.cpp --------------------------------------------------------===//
#include "report/Explain.h"

using namespace llvm;

namespace migrate {

bool explain(const RuleSet &Rules, StringRef CodeOrName, raw_ostream &Out, raw_ostream &Err) {
  if (CodeOrName.empty()) {
    for (const Rule &R : Rules.rules())
      Out << R.Code << "  " << left_justify(R.Name, 26) << "  " << R.Summary << "\n";
    return true;
  }
  const Rule *R = Rules.byCode(CodeOrName);
  if (!R) {
    Err << "accelerate-migrate: error: no rule '" << CodeOrName << "'; `--list-rules` lists them\n";
    return false;
  }
  Out << "# " << R->Code << " " << R->Name << "\n\n" << R->Summary << "\n\n";
  if (R->Edits.empty())
    Out << "Reported as: " << toString(R->Level) << "\n\n";
  else
    Out << "Safety: " << toString(R->How) << "\n\n";
  Out << "## Why\n\n" << StringRef(R->Why).trim() << "\n";
  for (const RuleExample &E : R->Examples)
    Out << "\n## Example\n\n```cpp\n"
        << StringRef(E.Before).rtrim() << "\n```\n\nbecomes\n\n```cpp\n"
        << StringRef(E.After).rtrim() << "\n```\n";
  return true;
}

} // namespace migrate
