//===- DumpPlacements.cpp - The type of each value, beside the source -----===//
#include "report/Dump.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using migrate::ir::ExprKind;

namespace migrate {

/// A source line, without the space around it.
static StringRef lineOf(StringRef Text, uint32_t Offset) {
  size_t Begin = Text.take_front(Offset).rfind('\n');
  Begin = Begin == StringRef::npos ? 0 : Begin + 1;
  return Text.substr(Begin).take_until([](char C) { return C == '\n'; }).trim();
}

void dumpPlacements(const Program &P, const Findings &F, const Project &Tree, const FileTexts &Texts,
                    raw_ostream &Out) {
  // By file, line, column and name.
  std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, std::string> Lines;
  std::map<std::pair<std::string, uint32_t>, ir::Range> Places;
  auto Put = [&](const ir::Range &Where, const std::string &Name, std::string What) {
    std::string Path = Tree.display(P.Code.Files[Where.File].Path);
    Places.try_emplace({Path, Where.Line}, Where);
    Lines[{Path, Where.Line, Where.Column, Name}] = std::move(What);
  };
  for (const auto &[E, V] : F.Types) {
    const ir::Expr &X = P.Code.Exprs[E];
    if ((X.Kind != ExprKind::Ref && X.Kind != ExprKind::Assign) || !X.Where.valid() || X.Var == ir::None ||
        V.replicated())
      continue;
    Put(X.Where, P.Code.Vars[X.Var].Name,
        toString(V) + (V.Rank >= 0 ? " of " + std::to_string(V.Rank) + " dimensions" : "") +
            (V.Kind == Placement::Unknown && !V.Why.empty() ? ": " + V.Why : ""));
  }
  for (const auto &[E, How] : F.Coercions)
    if (const ir::Range &Where = P.Code.Exprs[E].Where; Where.valid())
      Put(Where, "accelerator", How);

  Out << "program " << P.Name << "\n";
  std::pair<std::string, uint32_t> Last;
  for (const auto &[Key, Placement] : Lines) {
    const auto &[Path, Line, Column, Name] = Key;
    if (std::pair At(Path, Line); At != Last) {
      const ir::Range &Where = Places.at(At);
      Out << Path << ":" << Line << ": | " << lineOf(Texts(P.Code.Files[Where.File].Path), Where.Begin) << "\n";
      Last = At;
    }
    Out << Path << ":" << Line << ":" << Column << ": " << Name << ": " << Placement << "\n";
  }
}

} // namespace migrate
