//===- DumpPlacements.cpp - The type of each value, beside the source -----===//
#include "report/Dump.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using migrate::ir::ExprKind;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

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
  auto Type = [](const Value &V) {
    return toString(V) +
           (V.Rank > 0 || (V.Rank == 0 && !V.replicated()) ? " of " + std::to_string(V.Rank) + " dimensions" : "") +
           (V.Kind == Placement::Unknown && !V.Why.empty() ? ": " + V.Why : "");
  };
  // What is whole is told of what holds numbers; models and the like are one on all ranks.
  auto Data = [&](ir::VarId Var, const Value &V) {
    const ir::Type &T = P.Code.typeOf(Var);
    return !P.Code.Vars[Var].Name.empty() &&
           (!V.replicated() || T.number() || T.Kind == TypeKind::Tensor || T.Kind == TypeKind::Container);
  };
  for (const ir::Stmt &S : P.Code.Stmts)
    if (S.Kind == StmtKind::Decl && S.Var != ir::None && S.Value != ir::None && P.Code.Vars[S.Var].Decl.valid())
      if (auto It = F.Types.find(S.Value); It != F.Types.end() && Data(S.Var, It->second))
        Put(P.Code.Vars[S.Var].Decl, P.Code.Vars[S.Var].Name, Type(It->second));
  for (const auto &[E, V] : F.Types) {
    const ir::Expr &X = P.Code.Exprs[E];
    // What is assigned is told where it is named.
    const ir::Expr &Named = X.Kind == ExprKind::Assign ? P.Code.Exprs[X.Args[0]] : X;
    if ((Named.Kind == ExprKind::Ref || Named.Kind == ExprKind::Field) && Named.Where.valid() &&
        Named.Var != ir::None && Data(Named.Var, V))
      Put(Named.Where, P.Code.Vars[Named.Var].Name, Type(V));
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
