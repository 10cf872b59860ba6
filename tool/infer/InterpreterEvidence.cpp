//===- InterpreterEvidence.cpp - The chain of places behind a finding -----===//
//
// From the place where a value is used back to where its placement was born: through variables to what they were set
// to, through operations to the operand that isn't equal on all ranks, through calls to what they return and were
// given. "The batch comes from here, summed here, set here": what a reader would look for, one place after the other.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"

using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

/// What an operation did to the placement of its operand; empty where it kept it.
static std::string turned(const Value &From, const Value &To) {
  if (From.Kind == To.Kind)
    return "";
  switch (To.Kind) {
  case Placement::Partial:
    return From.Kind == Placement::Sharded ? "summed over the rows here" : "";
  case Placement::Mean:
    return From.Kind == Placement::Sharded ? "averaged over the rows here" : "";
  case Placement::Extreme:
    return "the largest or smallest of the rows is taken here";
  case Placement::Extent:
    return "its number of rows is taken here";
  case Placement::Unknown:
    return To.Why.empty() ? "" : "here it " + To.Why;
  default:
    return "";
  }
}

/// The operand of `E` that explains its placement: one with the same source, else any that isn't whole. Noise of what
/// is whole is explained by a noisy one.
ir::ExprId Interpreter::blamed(ir::ExprId E, const Value &V) const {
  const ir::Expr &X = P.Code.Exprs[E];
  std::vector<ir::ExprId> Operands;
  for (ir::FuncId F : P.bodies(X))
    for (ir::ExprId Given : P.returned(F))
      Operands.push_back(Given);
  Operands.push_back(X.Object);
  Operands.insert(Operands.end(), X.Args.begin(), X.Args.end());
  ir::ExprId Found = None;
  for (ir::ExprId Operand : Operands) {
    auto It = Operand == None || Operand == E ? Last.end() : Last.find(Operand);
    const bool Noise = V.Noisy && V.replicated();
    if (It == Last.end() || (Noise ? !It->second.Noisy : It->second.replicated()))
      continue;
    if (Noise)
      return Operand;
    if (It->second.Source == V.Source)
      return Operand;
    if (Found == None)
      Found = Operand;
  }
  return Found;
}

std::vector<Evidence> Interpreter::evidence(ir::ExprId E, const Value &V) const {
  constexpr int Longest = 64; // expressions, of which a few are worth a step
  std::vector<Evidence> Back;
  auto Step = [&](ir::ExprId At, std::string What) {
    const ir::Range &Where = P.Code.Exprs[At].Where;
    if (!Where.valid())
      return;
    auto Same = llvm::find_if(
        Back, [&](const Evidence &Other) { return Other.Where.File == Where.File && Other.Where.Line == Where.Line; });
    if (Same == Back.end())
      Back.push_back({Where, std::move(What)});
    else if (llvm::StringRef(Same->What).ends_with("gets it here")) // what was done there tells more than its name
      Same->What = std::move(What);
  };
  std::set<ir::ExprId> Seen;
  ir::ExprId At = E;
  Value Now = V;
  const bool Noise = V.Noisy && V.replicated();
  for (int I = 0; I != Longest && At != None && Seen.insert(At).second; ++I) {
    const ir::Expr &X = P.Code.Exprs[At];
    ir::ExprId Next = None;
    std::string What;
    if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None) {
      Next = Now.AssignedBy == None && Noise ? Now.Source : Now.AssignedBy;
      if (Next != None)
        What = "`" + P.Code.Vars[X.Var].Name + "` gets it here";
    } else {
      Next = blamed(At, Now);
    }
    auto It = Next == None ? Last.end() : Last.find(Next);
    if (Noise && (It == Last.end() || !It->second.Noisy)) {
      Step(At, "random numbers are drawn here");
      break;
    }
    if (It == Last.end())
      break;
    if (What.empty() && (At != E || At == Now.Source))
      What = turned(It->second, Now);
    if (!What.empty())
      Step(X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field ? Next : At, What);
    At = Next;
    Now = It->second;
  }
  const ir::Range &Use = P.Code.Exprs[E].Where; // the finding itself tells it
  llvm::erase_if(Back, [&](const Evidence &S) { return S.Where.File == Use.File && S.Where.Line == Use.Line; });
  if (Now.Source != None && Now.Source != E && !Noise) {
    const ir::Range &Born = P.Code.Exprs[Now.Source].Where;
    llvm::erase_if(Back, [&](const Evidence &S) { return S.Where.File == Born.File && S.Where.Line == Born.Line; });
    if (Born.valid())
      Back.push_back({Born, "it comes from here"});
  }
  std::reverse(Back.begin(), Back.end());
  return Back;
}

} // namespace migrate
