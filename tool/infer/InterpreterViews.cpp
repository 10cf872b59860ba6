//===- InterpreterViews.cpp - Several names of what lies in one place -----===//
//
// A view, an accessor, a tensor over a vector's numbers, a list of tensors that have names: what is written through one
// name is read through the others.
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

/// What a tensor lies in: of a view, an alias, an accessor, one of a list, what was made over numbers.
std::optional<Location> Interpreter::viewed(ir::ExprId E) {
  E = P.unconverted(E);
  const ir::Expr &X = P.Code.Exprs[E];
  if (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::from_blob") && !X.Args.empty()) {
    std::optional<Location> L = behind(X.Args[0]);
    return L && PointsTo.count(*L) ? PointsTo.at(*L) : L;
  }
  ir::ExprId Of = None;
  if (X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && X.Object != None))
    Of = X.Object;
  else if (X.Kind == ExprKind::Call && !X.Args.empty())
    Of = X.Args[0];
  if (Of == None)
    return std::nullopt;
  if (isElement(X) && P.Code.type(E).Kind == TypeKind::Tensor && P.Code.type(Of).Kind == TypeKind::Container)
    return lvalue(Of);
  bool Views = X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && isView(X.Name));
  if (!Views || P.Code.type(Of).Kind != TypeKind::Tensor)
    return std::nullopt;
  if (std::optional<Location> L = viewed(Of))
    return L;
  return lvalue(Of);
}

/// `List` is given tensors that have names: `std::vector<torch::Tensor> sums = {loss, hits};`.
void Interpreter::keepsNames(ir::VarId List, ir::ExprId Items) {
  std::vector<ir::ExprId> Found;
  collectItems(P, Items, Found);
  for (ir::ExprId Item : Found)
    if (const ir::ExprId From = Item == None ? None : copied(Item); From != None)
      if (std::optional<Location> L = lvalue(From); L && L->Root != List)
        Views[List].insert(*L);
}

/// `V` is another tensor from here on: no view, and nothing is a view of it.
void Interpreter::anew(ir::VarId V) {
  Views.erase(V);
  for (auto &[Name, In] : Views)
    std::erase_if(In, [&](const Location &L) { return L.Root == V && L.Path.empty(); });
}

/// Whether what is written in place to `L` is written to what outlives the step and has another name: its sums would
/// have to be that one's.
bool Interpreter::behindNames(const Location &L) const {
  auto It = Views.find(L.Root);
  return It != Views.end() && llvm::any_of(It->second, [&](const Location &In) { return outer(In); });
}

/// What a getter leads to: `Meter &loss() { return loss_; }`, `return meter.get();`, `return &meter;`.
std::optional<Location> Interpreter::givenBy(const ir::Expr &X) {
  const ir::FuncId F = P.callee(X);
  if (F == None || X.Object == None || P.bodies(X).size() != 1 || P.Code.Functions[F].Result == None)
    return std::nullopt;
  const ir::Type &Result = P.Code.Types[P.Code.Functions[F].Result];
  const std::vector<ir::ExprId> Returned = P.returned(F);
  if (Returned.size() != 1 || !(Result.Reference || StringRef(Result.Name).ends_with("*")))
    return std::nullopt;
  for (ir::ExprId E = Returned[0]; P.Code.Exprs[E].Kind != ExprKind::This;) {
    const ir::Expr &Step = P.Code.Exprs[E];
    const bool Gets = Step.Kind == ExprKind::Call && Step.Object != None && StringRef(Step.Name).starts_with("std::") &&
                      StringRef(Step.Name).ends_with("::get");
    const bool Leads = Step.Kind == ExprKind::Unary && (Step.Name == "*" || Step.Name == "&");
    if (Step.Kind == ExprKind::Field || Gets)
      E = Step.Object;
    else if (Leads || Step.Kind == ExprKind::Cast)
      E = Step.Args[0];
    else
      return std::nullopt;
    if (E == None)
      return std::nullopt;
  }
  std::optional<Location> This = lvalue(X.Object);
  if (!This)
    return std::nullopt;
  if (PointsTo.count(*This))
    This = PointsTo.at(*This);
  std::swap(Frames.back().This, This);
  std::optional<Location> Given = named(Returned[0]);
  std::swap(Frames.back().This, This);
  return Given;
}

/// Whether a part of a tensor is one of what this step has made, whatever names it has.
bool Interpreter::ofThisStep(ir::ExprId Part) {
  const Location L = {partOfVar(Part).first, {}};
  return L.Root != None && !P.Code.Vars[L.Root].Field && !Alias.count(L.Root) && !outer(L) && !behindNames(L);
}

/// The other names of what lies at `L` see what was written there. Which rows, or which part, isn't followed.
void Interpreter::seenBehindNames(const Location &L, const Value &Written, ir::ExprId E) {
  if (Written.replicated() || Views.empty())
    return;
  std::set<Location> Places = {L};
  const bool View = L.Path.empty() && Views.count(L.Root);
  if (View)
    Places.insert(Views.at(L.Root).begin(), Views.at(L.Root).end());
  auto Sees = [&](const Location &Other) {
    auto It = Current.find(Other);
    if (It == Current.end() || !It->second.replicated())
      return;
    const Value Whole = It->second;
    if (Written.Kind == Placement::Own || (Written.Kind == Placement::Unknown && !Written.amongOthers()))
      It->second = Written;
    else
      It->second = Value::unknown("lies in `" + migrate::spelled(P, L) + "`, which is written under that name", E);
    It->second.Rows = Whole.Rows;
    It->second.takeRank(Whole);
  };
  for (const auto &[Name, In] : Views)
    if (Name != L.Root && llvm::any_of(In, [&](const Location &Of) { return Places.count(Of) != 0; }))
      Sees({Name, {}});
  if (View)
    for (const Location &In : Views.at(L.Root))
      Sees(In);
}

} // namespace migrate
