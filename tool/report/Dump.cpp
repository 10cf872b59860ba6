//===- Dump.cpp -----------------------------------------------------------===//
#include "report/Dump.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using migrate::ir::ExprKind;

namespace migrate {

static std::string place(const Program &P, const Project &Tree, const ir::Range &R) {
  return R.valid() ? (Tree.display(P.Code.Files[R.File].Path) + ":" + Twine(R.Line)).str() : "?";
}

static void dumpRoles(const Program &P, const Roles &R, const Findings &F, const Project &Tree, raw_ostream &Out) {
  for (const OptimizerRole &O : R.Optimizers) {
    Out << "optimizer " << (O.Var == ir::None ? "?" : P.Code.Vars[O.Var].Name) << " at "
        << place(P, Tree, P.Code.Exprs[O.Made].Where) << "\n";
    for (ir::ExprId M : O.Models)
      Out << "  trains the model at " << place(P, Tree, P.Code.Exprs[M].Where) << " (" << P.Code.type(M).Name << ")\n";
  }
  for (const auto &[Object, L] : R.Loaders) {
    const char *Mode = L.Mode == LoaderMode::Training ? "training"
                       : L.Mode == LoaderMode::Unused ? "unused"
                       : F.Whole.count(Object)        ? "evaluation, shared by whole batches"
                                                      : "evaluation, the same on every rank";
    for (ir::ExprId Made : L.Made)
      Out << "loader (" << Mode << ") at " << place(P, Tree, P.Code.Exprs[Made].Where) << "\n";
    if (L.Foreign)
      Out << "loader (" << Mode << ", not made by make_data_loader)\n";
    for (ir::StmtId Loop : L.Loops)
      Out << "  its loop at " << place(P, Tree, P.Code.Stmts[Loop].Where) << "\n";
  }
}

static void dumpPlacements(const Program &P, const Findings &F, const Project &Tree, raw_ostream &Out) {
  std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, std::string> Lines;
  for (const auto &[E, V] : F.Types) {
    const ir::Expr &X = P.Code.Exprs[E];
    if ((X.Kind != ExprKind::Ref && X.Kind != ExprKind::Assign) || !X.Where.valid() || X.Var == ir::None ||
        V.replicated())
      continue;
    Lines[{Tree.display(P.Code.Files[X.Where.File].Path), X.Where.Line, X.Where.Column, P.Code.Vars[X.Var].Name}] =
        toString(V) + (V.Rank >= 0 ? " of " + std::to_string(V.Rank) + " dimensions" : "") +
        (V.Kind == Placement::Unknown && !V.Why.empty() ? ": " + V.Why : "");
  }
  for (const auto &[E, How] : F.Coercions)
    if (const ir::Range &Where = P.Code.Exprs[E].Where; Where.valid())
      Lines[{Tree.display(P.Code.Files[Where.File].Path), Where.Line, Where.Column, "accelerator"}] = How;
  for (const auto &[Key, Placement] : Lines)
    Out << std::get<0>(Key) << ":" << std::get<1>(Key) << ":" << std::get<2>(Key) << ": " << std::get<3>(Key) << ": "
        << Placement << "\n";
}

void dump(StringRef What, const Program &P, const Roles &R, const Findings &F, const Project &Tree,
          const FileTexts &Texts, raw_ostream &Out) {
  Out << "program " << P.Name << "\n";
  if (What == "roles")
    dumpRoles(P, R, F, Tree, Out);
  else
    dumpPlacements(P, F, Tree, Out);
}

} // namespace migrate
