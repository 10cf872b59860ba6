//===- InterpreterOurs.cpp - The runtime's own interface ------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SaveAndRestore.h"

using llvm::StringRef;
using migrate::ir::None;

namespace migrate {

/// Our own interface is typed too: a migrated program must come out satisfied.
Value Interpreter::ours(ir::ExprId E, const ir::Expr &X) {
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (Name == "backward") {
    backward(E, X);
    return Value::of(Placement::Replicated, E);
  }
  static const char *const Ranks[] = {"process_index", "local_process_index", "is_main_process",
                                      "is_local_main_process", "is_last_process"};
  if (llvm::is_contained(Ranks, Name))
    return Value::unknown(OfThisRank, E);
  if (isMeeting(X))
    notWhole("ranks meet in its loop", E);
  std::vector<Value> Args;
  const bool Pads = Name == "pad_across_processes" && !X.Args.empty();
  if (Pads)
    PaddedForAll.insert(P.unconverted(X.Args[0]));
  for (ir::ExprId Arg : X.Args)
    Args.push_back(eval(Arg));
  if (Pads)
    return Args[0];
  if (Name == "reduce_")
    for (ir::ExprId Arg : X.Args)
      if (std::optional<Location> L = lvalue(Arg))
        write(*L, Value::of(Placement::Replicated, Arg), Arg);
  auto Runs = [&](const Value &Function) { // without arguments
    ir::Expr Body = X;
    Body.Args.clear();
    return anyOf(E, Body, Function.Funcs, Frames.back().This);
  };
  if (Name == "whole" && !Args.empty() && !Args[0].Funcs.empty()) {
    llvm::SaveAndRestore Whole(Wholes, Wholes + 1);
    return Runs(Args[0]);
  }
  static const char *const OnSome[] = {"on_main_process", "on_local_main_process", "on_last_process", "on_process",
                                       "once"};
  if (llvm::is_contained(OnSome, Name))
    for (const Value &Function : Args)
      if (!Function.Funcs.empty()) {
        llvm::SaveAndRestore Apart(Divergent, Divergent + 1), Chosen(ByRank, ByRank + 1);
        Runs(Function);
        break;
      }
  if (Wholes > 0 && !Args.empty() &&
      llvm::is_contained({"own_rows", "global_rows", "global_like", "share", "mine"}, Name))
    return Args[0];
  if (Name == "own_rows") {
    Value V = Value::sharded(0, E);
    V.setRank(Args.empty() ? -1 : Args[0].Rank);
    V.Least = std::max<int8_t>(V.Least, 1);
    return V;
  }
  if (Name == "squeeze" && !Args.empty()) {
    if (uint32_t Batch = Last[X.Args[0]].Batch; Batch != None) // used where it was read, as by `x.squeeze()`
      Out.Unmoved.insert(Batch);
    Args[0].Batch = None;
    return squeezed(Args[0], {}, E);
  }
  if (Name == "gradient" && !Args.empty()) { // at this rank's rows
    if (uint32_t Batch = Last[X.Args[0]].Batch; Batch != None)
      Out.Unmoved.insert(Batch);
    Args[0].Batch = None;
    return Args[0];
  }
  if (Name == "global_like" && !Args.empty()) { // whole, of the argument's dimensions
    Value V = Value::of(Placement::Replicated, E);
    V.setRank(Args[0].Rank);
    return V;
  }
  if (Name == "all_gather" && !Args.empty()) { // all rows, for a loss that couples them
    Value V = Args[0].replicated() ? Args[0] : Value::of(Placement::Replicated, E);
    V.takeRank(Args[0]);
    V.Trained |= Args[0].Kind == Placement::Sharded;
    return V;
  }
  if (Name == "shard") { // a migrated step on batches of the program's own
    if (const Loop *Step = stepLoop(); Step && CutLoops.insert(Step->Statement).second)
      Restart = true;
    if (!Args.empty() && (Args[0].Kind == Placement::Sharded || Args[0].Kind == Placement::Unknown))
      note("unknown-rows", E, Args[0], "is cut by `shard`, but is made of a rank's own rows already");
    if (const std::vector<Value> *Of = X.Args.empty() ? nullptr : partsOf(X.Args[0]))
      Parts[E] = std::vector<Value>(*Of);
    return rowsCut(E, Args.empty() ? Value() : Args[0],
                   X.Args.size() > 1 ? unsigned(integer(X.Args[1]).value_or(0)) : 0);
  }
  // What another program that shares this file was migrated for may be a sum, where it is a mean here.
  if ((Name == "mine" || Name == "sum") && Args.size() == 1 && Args[0].Kind == Placement::Mean)
    note("ambiguous-placement", X.Args[0], Args[0],
         "is a mean over this rank's rows, and `" + Name.str() + "` is for sums; `" +
             (Name == "mine" ? "share" : "mean") + "` is for means");
  if (Name == "share" && Args.size() == 2 && Args[0].Kind != Placement::Own)
    return Value::partial(true, E);
  if (!Args.empty() && (Name == "share" || (Name == "mine" && !Args[0].replicated())))
    return Args[0].Kind == Placement::Own ? Args[0] : Value::partial(false, E);
  Value Whole = Value::of(Placement::Replicated, E);
  if (!Args.empty() && Args[0].Kind != Placement::Sharded &&
      llvm::is_contained({"sum", "mean", "reduce", "all_reduce"},
                         Name)) { // of what was made over all rows: it has none
    Whole.Rows = NoRows;
    Whole.takeRank(Args[0]);
  }
  if (!Args.empty() && (Name == "gather" || Name == "gather_for_metrics"))
    Whole.takeRank(Args[0]);
  return Whole;
}

} // namespace migrate
