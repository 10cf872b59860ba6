//===- InterpreterLists.cpp - What is put into containers -----------------===//
//
// Lists, maps, queues and optionals of tensors and numbers: which methods put something into them, where, and whether
// they hold as much on every rank.
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

bool isCollecting(StringRef Name) {
  return Name.ends_with("::push_back") || Name.ends_with("::emplace_back") || Name.ends_with("::push") ||
         Name.ends_with("::push_front") || Name.ends_with("::emplace_front") || Name.ends_with("::insert") ||
         Name.ends_with("::emplace") || Name.ends_with("::append");
}

/// The same of what may have lain there.
bool replacesItems(const ir::Expr &X) {
  const StringRef Name = X.Name;
  return Name.starts_with("std::") &&
         (Name.ends_with("::assign") || Name.ends_with("::insert_or_assign") || Name.ends_with("::try_emplace") ||
          (Name.ends_with("::resize") && X.Args.size() > 1));
}

/// What lies in a list beside what is put into it. Losses of several batches may be added up there, which are means
/// over other rows.
Value Interpreter::amongItems(ir::ExprId List, const Value &Items, const Value &New, ir::ExprId Item) const {
  auto OfRows = [](const Value &V) {
    return V.Rows > NoRows && (V.Kind == Placement::Mean || (V.Kind == Placement::Partial && V.Fresh));
  };
  const StringRef Type = P.Code.type(List).Name;
  const bool Tensors = Type.contains("vector<at::Tensor") || Type.contains("initializer_list<at::Tensor") ||
                       (Type.contains("map<") && Type.contains("at::Tensor")) || Type.contains("ArrayRef<at::Tensor") ||
                       Type.starts_with("at::Tensor[") || Type.starts_with("const at::Tensor[");
  if (Tensors && (Items.Kind == Placement::Mean || New.Kind == Placement::Mean) && OfRows(Items) && OfRows(New) &&
      Items.Rows != New.Rows)
    return Value::unknown("averages over the rows of two batches", Item);
  return Items.same(New) ? New : join(Items, New);
}

/// `threads.emplace_back(f, x)` of a `std::vector<std::thread>`.
bool Interpreter::startsThread(const ir::Expr &X) const {
  if (X.Kind != ExprKind::Call || X.Object == None || X.Args.empty() || !isCollecting(X.Name))
    return false;
  const StringRef Holder = P.Code.type(X.Object).Name;
  return Holder.starts_with("std::vector<std::thread") || Holder.starts_with("std::vector<std::jthread");
}

/// Whether the first argument of such a method tells where, or how many: `list.insert(list.end(), x)`,
/// `map.emplace(key, x)`, `list.assign(2, x)`.
bool Interpreter::placesItem(const ir::Expr &X, ir::ExprId First) const {
  const ir::Type &Holder = P.Code.type(X.Object), &T = P.Code.type(First);
  const StringRef Method = StringRef(X.Name).rsplit("::").second;
  const bool Range =
      Method == "assign" || (Method == "insert" && X.Args.size() == 2 && isIterator(P.Code.type(X.Args[1])));
  const bool Keyed = StringRef(Holder.Name).contains("map<") || StringRef(Holder.Name).contains("OrderedDict<");
  const bool Counts = T.number() && (Method == "assign" || Method == "resize");
  return (isIterator(T) && !Range) || Keyed || Counts ||
         (holdsTensors(Holder) && (T.number() || T.Kind == TypeKind::String));
}

/// Whether what a loader hands out is a list of rows, `std::vector<torch::Tensor>` of a data set whose items are
/// tensors that nothing collates, not one of the batch's fields.
bool Interpreter::handsOutRows(const ir::Type &Batch) {
  StringRef Type = Batch.Name;
  Type.consume_front("torch::data::Iterator<");
  if (!Type.starts_with("std::vector<at::Tensor"))
    return false;
  if (!ItemsAreTensors) {
    ItemsAreTensors = false;
    bool Collates = false;
    for (const ir::Function &Fn : P.Code.Functions) {
      Collates |= !Fn.Record.empty() && (Fn.Name == "get_batch" || Fn.Name == "apply_batch");
      *ItemsAreTensors |= !Fn.Record.empty() && Fn.Name == "get" && Fn.Params.size() == 1 && Fn.Result != None &&
                          P.Code.Types[Fn.Result].Kind == TypeKind::Tensor &&
                          P.Code.typeOf(Fn.Params[0]).Kind == TypeKind::Integer;
    }
    *ItemsAreTensors &= !Collates;
  }
  return *ItemsAreTensors;
}

/// Whether a list begins empty, or with what is written out, and so has as many items on every rank as it is given one
/// by one.
bool Interpreter::filledHere(ir::VarId V, int Hops) const {
  if (P.Code.Vars[V].Global || P.Code.Vars[V].Field || P.Code.Vars[V].Param || Hops == 0)
    return false;
  auto It = R.Init.find(V);
  if (It == R.Init.end())
    return true;
  const ir::Expr &X = P.Code.Exprs[It->second];
  ir::FuncId F = X.Kind == ExprKind::Call ? P.callee(X) : None;
  if (F == None)
    return X.Kind == ExprKind::List || (X.Kind == ExprKind::Construct && X.Args.empty());
  return llvm::all_of(P.returned(F), [&](ir::ExprId E) {
    const ir::Expr &Returned = P.Code.Exprs[P.unconverted(E)];
    return Returned.Kind == ExprKind::Ref && filledHere(Returned.Var, Hops - 1);
  });
}

} // namespace migrate
