//===- Explain.cpp --------------------------------------------------------===//
#include "report/Explain.h"

using namespace llvm;

namespace migrate {

/// Where a rule comes from, if it isn't the tool's own, and whether it is in force.
static std::string origin(const Rule &R, const InForce &Here) {
  std::string Text;
  if (!R.BuiltIn)
    Text = R.Path + (R.Replaces.empty() ? "" : ", in place of " + R.Replaces);
  if (R.Off)
    Text += (Text.empty() ? "off in " : ", off in ") + Here.Configuration;
  return Text;
}

bool explain(const InForce &Here, StringRef CodeOrName, raw_ostream &Out, raw_ostream &Err) {
  if (CodeOrName.empty()) {
    for (const Rule &R : Here.Rules.rules()) {
      Out << R.Code << "  " << left_justify(R.Name, 26) << "  " << R.Summary;
      if (std::string From = origin(R, Here); !From.empty())
        Out << " [" << From << "]";
      Out << "\n";
    }
    return true;
  }
  const Rule *R = Here.Rules.byCode(CodeOrName);
  if (!R) {
    Err << "accelerate-migrate: error: no rule '" << CodeOrName << "'; `--list-rules` lists them\n";
    return false;
  }
  Out << "# " << R->Code << " " << R->Name << "\n\n" << R->Summary << "\n\n";
  if (std::string From = origin(*R, Here); !From.empty())
    Out << "From: " << From << "\n\n";
  if (R->Edits.empty())
    Out << "Reported as: " << toString(R->Level) << "\n\n";
  else
    Out << "Safety: " << toString(R->How) << "\n\n";
  Out << "## Why\n\n" << StringRef(R->Why).trim() << "\n";
  for (const RuleExample &E : R->Examples) {
    Out << "\n## Example\n\n";
    if (!E.Configuration.empty())
      Out << "With this `.accelerate-migrate.yaml`\n\n```yaml\n" << StringRef(E.Configuration).rtrim() << "\n```\n\n";
    Out << "```cpp\n" << StringRef(E.Before).rtrim() << "\n```\n";
    if (!E.After)
      Out << "\nis reported.\n";
    else if (*E.After == E.Before)
      Out << "\nstays as it is.\n";
    else
      Out << "\nbecomes\n\n```cpp\n" << StringRef(*E.After).rtrim() << "\n```\n";
  }
  if (!R->NoExample.empty())
    Out << "\n## Example\n\nNone: " << StringRef(R->NoExample).trim() << ".\n";
  return true;
}

} // namespace migrate
