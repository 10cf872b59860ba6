//===- InterpreterApart.cpp - Functions that training passes by -----------===//
//
// A parser of configuration files or options that a project carries along calls itself through dozens of functions.
// Following every path through them takes minutes and tells nothing: they know neither tensors nor anything that
// differs between ranks, and what is the same on all ranks stays so in them. The small ones that many paths call,
// `trimmed(text)`, are followed once.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Following a function pays off below that many; what a small one sets may matter: `meter.reset()`.
constexpr size_t Many = 40;

/// Whether an expression computes with strings, numbers and containers of them alone.
static bool isApart(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E];
  const ir::Type &T = P.Code.type(E);
  switch (T.Kind) {
  case TypeKind::Tensor:
  case TypeKind::Module:
  case TypeKind::Optimizer:
  case TypeKind::Scheduler:
  case TypeKind::DataLoader:
  case TypeKind::FileStream:
  case TypeKind::Example:
  case TypeKind::Accelerator:
    return false;
  default:
    break;
  }
  if (StringRef(T.Name).contains("at::Tensor") || StringRef(T.Name).contains("torch::"))
    return false;
  if (X.Kind == ExprKind::Ref && X.Var != None && P.Code.Vars[X.Var].Global && !P.Code.typeOf(X.Var).Const)
    return false;
  if (X.Kind != ExprKind::Call && X.Kind != ExprKind::Construct)
    return true;
  StringRef Name = X.Name;
  if (Name.ends_with("::open"))
    return false;
  // What a `std::function` runs came with the arguments or the object, which are looked at.
  const bool IntoText = Name.ends_with("sprintf") || Name.ends_with("snprintf");
  const bool OfItems = Name == "std::remove" && X.Args.size() > 1; // from a list
  return (OfItems || !differsOrChanges(Name)) && !P.Taught.isMainOnly(Name) && !P.Taught.givesBatch(Name) &&
         (IntoText || !Name.contains("print")) && !Name.contains("rand") && !Name.contains("_distribution") &&
         !Name.ends_with("::shuffle") && !Name.ends_with("::sample");
}

/// What a function runs itself, and whether that is apart from training.
const Interpreter::Body &Interpreter::body(ir::FuncId F) const {
  auto [It, New] = Bodies.try_emplace(F);
  if (!New)
    return It->second;
  Body B;
  auto Look = [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    B.Apart = B.Apart && isApart(P, E) && !awaitedFiles().count(E);
    if (X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct)
      llvm::append_range(B.Calls, P.bodies(X));
    if (X.Func != None) {
      B.Calls.push_back(X.Func);
      B.Lambdas = true;
    }
  };
  const ir::Function &Fn = P.Code.Functions[F];
  if (Fn.Body != None)
    P.forEachExprIn(Fn.Body, Look);
  Fn.forEachInit([&](ir::ExprId Init) { P.forEachExpr(Init, Look); });
  return It->second = std::move(B);
}

/// The functions that `F` may run, if none of them knows anything of training.
const std::set<ir::FuncId> *Interpreter::apart(ir::FuncId F) const {
  auto [It, New] = Apart.try_emplace(F);
  std::set<ir::FuncId> &All = It->second;
  if (New) {
    std::vector<ir::FuncId> Next = {F};
    while (!Next.empty()) {
      ir::FuncId G = Next.back();
      Next.pop_back();
      if (!All.insert(G).second)
        continue;
      if (!body(G).Apart) {
        All.clear();
        break;
      }
      llvm::append_range(Next, body(G).Calls);
    }
  }
  return All.empty() ? nullptr : &All;
}

/// Whether a lambda knows what it is given and nothing else: what runs it may be passed by.
bool Interpreter::standsAlone(ir::FuncId F) const {
  auto [It, New] = Alone.try_emplace(F, apart(F) != nullptr);
  if (New && P.Code.Functions[F].Body != None)
    P.forEachExprIn(P.Code.Functions[F].Body, [&, &Stands = It->second](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      const bool Outer = X.Kind == ExprKind::Ref && X.Var != None && P.Code.Vars[X.Var].Function != F;
      Stands = Stands && !Outer && X.Kind != ExprKind::This;
    });
  return It->second;
}

/// Whether nothing that a function apart from training does with `V` tells ranks from each other.
bool Interpreter::sameOnAll(const Value &V) const {
  return V.replicated() && V.Equal == Strength::Exact && !V.Noisy && !V.Iterator && V.Batch == None &&
         llvm::all_of(V.Funcs, [&](ir::FuncId F) { return standsAlone(F); });
}

/// What a call gives that leaves everything as it is: it is apart, and all that it is given is the same on all ranks.
std::optional<Value> Interpreter::passedBy(ir::ExprId E, ir::FuncId F, llvm::ArrayRef<Value> Values,
                                           llvm::ArrayRef<std::optional<Location>> Places,
                                           const std::optional<Location> &This) {
  if (Divergent > 0 || OwnChoices > 0 || OutsideChoices > 0)
    return std::nullopt;
  const std::set<ir::FuncId> *All = apart(F);
  auto Within = [&](const std::optional<Location> &L) { // all that is kept there and beneath
    if (!L)
      return true;
    for (auto It = Current.lower_bound(*L); It != Current.end() && It->first.Root == L->Root; ++It)
      if (!sameOnAll(It->second))
        return false;
    return true;
  };
  auto Same = [&](const Value &V) { return sameOnAll(V); };
  if (!All || !llvm::all_of(Values, Same) || !llvm::all_of(Places, Within) || !Within(This))
    return std::nullopt;
  auto Once = FollowedOnce.find(F);
  if (All->size() < Many && Once == FollowedOnce.end())
    return std::nullopt;
  Out.Reached.insert(All->begin(), All->end());
  return All->size() < Many ? Once->second : Value::of(Placement::Replicated, E);
}

/// Remembers what a call gave, if the next one with equal values on all ranks gives the same: it can write nowhere.
void Interpreter::followed(ir::FuncId F, const ir::Expr &X, llvm::ArrayRef<Value> Values, const Value &Result) {
  auto Same = [&](const Value &V) { return sameOnAll(V) && V.Funcs.empty(); };
  if (!apart(F) || !Same(Result) || !llvm::all_of(Values, Same) || Divergent > 0 || OwnChoices > 0 ||
      OutsideChoices > 0)
    return;
  const ir::Function &Fn = P.Code.Functions[F];
  if (X.Kind != ExprKind::Call || X.Object != None || Fn.Parent != None)
    return;
  for (ir::VarId Param : Fn.Params)
    if (const ir::Type &T = P.Code.typeOf(Param); (T.Reference && !T.Const) || StringRef(T.Name).ends_with("*"))
      return;
  FollowedOnce.emplace(F, Result);
}

} // namespace migrate
