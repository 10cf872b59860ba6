//===- Json.cpp -----------------------------------------------------------===//
#include "llvm/Support/JSON.h"
#include "report/Report.h"

using namespace llvm;

namespace migrate {

void printJson(const Result &R, const Project &P, raw_ostream &Out) {
  json::OStream J(Out, 2);
  // Sources may hold any bytes; JSON holds UTF-8.
  auto Text = [](StringRef S) { return json::fixUTF8(S); };
  J.object([&] {
    J.attribute("schema", 1);
    J.attributeArray("programs", [&] {
      for (const ProgramResult &Program : R.Programs)
        J.object([&] {
          J.attribute("name", Program.Name);
          J.attribute("verdict", toString(Program.What));
          if (!Program.Reason.empty())
            J.attribute("reason", Text(Program.Reason));
          if (Program.Incomplete)
            J.attribute("incomplete", true);
          if (Program.Silent)
            J.attribute("switched_off", int64_t(Program.Silent));
          J.attributeArray("units", [&] {
            for (const std::string &Unit : Program.Units)
              J.value(Text(P.display(Unit)));
          });
        });
    });
    J.attributeArray("edits", [&] {
      for (const Edit &E : R.Edits)
        J.object([&] {
          J.attribute("code", E.Code);
          J.attribute("name", E.Name);
          J.attribute("safety", E.Safety);
          J.attribute("file", Text(P.display(E.Path)));
          J.attribute("line", E.Line);
          J.attribute("offset", E.Begin);
          J.attribute("length", E.End - E.Begin);
          J.attribute("text", Text(E.Text));
        });
    });
    J.attributeArray("findings", [&] {
      for (const Finding &F : R.Findings)
        J.object([&] {
          J.attribute("code", F.Code);
          J.attribute("name", F.Name);
          J.attribute("severity", toString(F.Level));
          J.attribute("file", Text(P.display(F.Path)));
          J.attribute("line", F.Line);
          J.attribute("column", F.Column);
          J.attribute("message", Text(F.Message));
          if (F.Incomplete)
            J.attribute("incomplete", true);
          if (!F.Chain.empty())
            J.attributeArray("evidence", [&] {
              for (const Finding::Step &S : F.Chain)
                J.object([&] {
                  J.attribute("file", Text(P.display(S.Path)));
                  J.attribute("line", S.Line);
                  J.attribute("message", Text(S.What));
                });
            });
        });
    });
  });
  Out << "\n";
}

} // namespace migrate
