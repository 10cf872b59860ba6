//===- InterpreterWhole.cpp - Functions for a batch and for a whole -------===//
//
// The same function may be called for a batch, of which each rank has its own rows, and for what every rank has whole:
// a fixed tensor, a loader that is kept whole, a state of a rollout. Where it draws for the rows, or weights its loss
// by them, the text can be right for one of them only; the calls for the other are told so, `accelerator.whole`.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"

using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

/// Remembers for what a draw is made, or a loss weighted, and by which calls.
void Interpreter::drawn(ir::ExprId E, bool Rows) {
  ++Meetings; // what they have in common goes on
  if (!Recording || Wholes > 0)
    return;
  std::vector<ir::ExprId> Calls;
  for (const Frame &F : Frames)
    if (F.Call != None)
      Calls.push_back(F.Call);
  if (Rows)
    RowDraws.insert(Calls.begin(), Calls.end());
  else
    WholeDraws[E].insert(std::move(Calls));
}

/// Whether ranks bring their rows together in what a call runs, or in its arguments: inside of `whole` there are none.
bool Interpreter::gathersWithin(ir::ExprId Call) const {
  bool Gathers = GathersWithin.count(Call) != 0;
  P.forEachExpr(Call, [&](ir::ExprId E) {
    const auto It = Out.Coercions.find(E);
    Gathers |= It != Out.Coercions.end() && It->second == "all-gather";
  });
  return Gathers;
}

/// Tells the calls for what is whole: the innermost that leads to nothing for rows.
void Interpreter::wholeDraws() {
  for (const auto &[E, Ways] : WholeDraws) {
    bool Loss = Out.ClassWeights.count(E) != 0 || Out.PickedFrom.count(E) != 0;
    const bool Drops = DroppedOfWhole.count(E) != 0;
    if (!Loss && !Drops && !Out.RowNoise.count(E) && !Out.RowNoiseLike.count(E) && !FromAll.count(E))
      continue;
    if (Drops && !DroppedOfRows.count(E)) { // from the stream that all have, which dropout doesn't draw from by itself
      if (gathersWithin(E))
        note("batch-noise", E, Out.Types[E],
             "draws random numbers for all rows of a batch, which are brought together in the same expression; bring "
             "them together in a statement of its own");
      else
        Out.WholeCalls.insert(E);
      continue;
    }
    for (const std::vector<ir::ExprId> &Calls : Ways) {
      auto Told = llvm::find_if(llvm::reverse(Calls), [&](ir::ExprId Call) {
        return !RowDraws.count(Call) && P.Code.Exprs[Call].Kind == ExprKind::Call;
      });
      if (Told != Calls.rend())
        Out.WholeCalls.insert(*Told);
      else if (Loss)
        note("ambiguous-placement", E, Out.Types[E], "needs `share` on one path, and is equal on all ranks on another");
      else
        note("batch-noise", E, Out.Types[E],
             "draws random numbers for the rows of a batch and, elsewhere, for a whole tensor that every rank has; "
             "draw for that in a function of its own");
    }
  }
}

} // namespace migrate
