//===- InterpreterIterators.cpp - Iterators that put, pointers that hide --===//
//
// `*out++ = x` appends to the container that `out` was made of, or prints. What only a pointer within a pair, a tuple
// or a list names is written where nothing follows, so it has to be the same on all ranks at each addition.
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

static bool appends(StringRef Type) {
  return Type.starts_with("std::back_insert_iterator<") || Type.starts_with("std::front_insert_iterator<") ||
         Type.starts_with("std::insert_iterator<");
}

static bool prints(StringRef Type) { return Type.starts_with("std::ostream_iterator<"); }

/// The containers that `std::back_inserter(list)`, or what was made by it, appends to.
void Interpreter::insertsInto(ir::ExprId Iterator, std::set<ir::ExprId> &Into, int Hops) const {
  Iterator = Iterator == None ? None : P.unconverted(Iterator);
  if (Iterator == None || Hops == 0)
    return;
  const ir::Expr &X = P.Code.Exprs[Iterator];
  if (X.Kind == ExprKind::Unary) { // `*out++`
    insertsInto(X.Args[0], Into, Hops - 1);
  } else if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None) {
    for (const std::vector<ir::ExprId> &From : {givenTo(X.Var), R.sourcesOf(X.Var)})
      for (ir::ExprId Source : From)
        insertsInto(Source, Into, Hops - 1);
  } else if (StringRef(X.Name).ends_with("inserter") && !X.Args.empty()) {
    Into.insert(X.Args[0]);
  }
}

/// `*out = x`: what `out` does with it.
std::optional<Value> Interpreter::putThrough(ir::ExprId E, const ir::Expr &X) {
  StringRef Type = P.Code.type(X.Args[0]).Name;
  if (prints(Type)) {
    notWhole("its loop prints", E);
    demandReplicated(X.Args[1], eval(X.Args[1]), "printed");
    return Value::of(Placement::Replicated, E);
  }
  if (!appends(Type))
    return std::nullopt;
  std::set<ir::ExprId> Into;
  insertsInto(X.Args[0], Into, 8);
  if (Into.empty()) {
    elsewhere(E, X.Args[1], eval(X.Args[1]), /*Changes=*/true);
    return Value::of(Placement::Replicated, E);
  }
  ir::Expr Put = X;
  Put.Kind = ExprKind::Call;
  Put.Name = "std::vector::push_back";
  Put.Callee.clear();
  Put.Args = {X.Args[1]};
  for (ir::ExprId Container : Into) {
    Put.Object = Container;
    call(E, Put);
  }
  return Value::of(Placement::Replicated, E);
}

/// `std::copy(sums.begin(), sums.end(), std::ostream_iterator<double>(std::cout, " "))`: prints all that it is given.
bool Interpreter::printsThrough(ir::ExprId E, const ir::Expr &X) {
  auto Out = llvm::find_if(X.Args,
                           [&](ir::ExprId Arg) { return Arg != None && prints(P.Code.type(P.unconverted(Arg)).Name); });
  if (Out == X.Args.end() || X.Kind != ExprKind::Call || !StringRef(X.Name).starts_with("std::"))
    return false;
  notWhole("its loop prints", E);
  for (ir::ExprId Arg : X.Args)
    if (const Value V = Arg == None ? Value() : eval(Arg); !V.replicated() && V.Kind != Placement::Own) {
      if (P.Code.type(Arg).number())
        demandReplicated(Arg, V, "printed");
      else // its ends would be those of two containers
        note("rank-local-use", Arg, V, "is printed, but is " + inWords(V));
    }
  return true;
}

/// What is written to by assignments: numbers, tensors, objects of the project's that may hold such.
static bool mayBeWritten(const ir::Type &T) {
  return T.number() || T.Kind == TypeKind::Tensor || T.Kind == TypeKind::Container ||
         (T.Kind == TypeKind::Unknown && !StringRef(T.Name).starts_with("std::"));
}

/// Variables whose address something keeps that isn't followed: `std::pair<double *, int>{&total, 0}`,
/// `std::vector<Meter *>{&a, &b}`, `{std::ref(a)}`; owners of what a list of shared pointers owns as well.
const std::set<ir::VarId> &Interpreter::hidden() const {
  if (Hidden)
    return *Hidden;
  Hidden.emplace();
  auto Name = [&](ir::ExprId Of) {
    const ir::Expr &X = P.Code.Exprs[Of];
    if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None && mayBeWritten(P.Code.type(Of)))
      Hidden->insert(X.Var);
  };
  // `Referred`: what is kept there are references, `std::vector<std::reference_wrapper<double>>{a, b}`.
  auto Keep = [&](auto &Self, ir::ExprId Arg, bool Referred, int Hops) -> void {
    Arg = Arg == None ? None : P.unconverted(Arg);
    if (Arg == None || Hops == 0)
      return;
    const ir::Expr &X = P.Code.Exprs[Arg];
    const StringRef Type = P.Code.type(Arg).Name;
    const bool Address = (X.Kind == ExprKind::Unary && X.Name == "&") || X.Name == "std::ref";
    if (X.Kind == ExprKind::List ||
        (X.Kind == ExprKind::Construct && (X.Args.size() > 1 || P.callee(X) != None))) { // an object, by its fields
      for (ir::ExprId Item : X.Args)
        Self(Self, Item, Referred, Hops - 1);
    } else if (Address && X.Args.size() == 1) {
      Name(X.Args[0]);
    } else if (Referred && P.Code.type(Arg).Kind != TypeKind::Unknown) {
      Name(Arg);
    } else if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None &&
               P.Code.type(Arg).Kind == TypeKind::Unknown) {
      if (Type.starts_with("std::shared_ptr<"))
        Hidden->insert(X.Var);
      else if (Type.ends_with("*")) // `void add(Meter *m) { meters.push_back(m); }`
        for (const std::vector<ir::ExprId> &From : {R.givenTo(X.Var), R.sourcesOf(X.Var)})
          for (ir::ExprId Source : From)
            Self(Self, Source, Referred, Hops - 1);
    }
  };
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    StringRef Type = P.Code.type(E).Name;
    const bool Makes = (X.Kind == ExprKind::Construct || X.Kind == ExprKind::List) && P.callee(X) == None &&
                       !Type.starts_with("std::reference_wrapper<") && !Type.ends_with("*");
    const bool Referred = Type.contains("std::reference_wrapper<") || (Type.starts_with("std::") && Type.contains('&'));
    // (`std::vector<Column>{{"loss", &loss}}`, whose fields aren't followed as one object's are.)
    const bool Several = Type.ends_with("]") || Type.starts_with("std::vector<") || Type.starts_with("std::array<") ||
                         Type.starts_with("std::initializer_list<");
    if ((Makes && (Type.contains('*') || Referred || Several || Type.contains("std::shared_ptr<"))) ||
        isCollecting(X.Name) || X.Name == "std::make_pair" || X.Name == "std::make_tuple")
      for (ir::ExprId Arg : X.Args)
        Keep(Keep, Arg, Referred && Makes, 4);
    const bool Assigns = (X.Kind == ExprKind::Assign || StringRef(X.Name).ends_with("::operator=")) && !X.Args.empty();
    const ir::ExprId To = !Assigns ? None : P.unconverted(X.Object != None ? X.Object : X.Args[0]);
    if (To != None && (isElement(P.Code.Exprs[To]) || P.Code.Exprs[To].Kind == ExprKind::Index)) // `meters[name] = &m`
      Keep(Keep, X.Args.back(), /*Referred=*/false, 4);
  }
  return *Hidden;
}

/// Whether `Pointer` lies in an object of another library's, a pair or a tuple, and where it points isn't known.
bool Interpreter::leadsAstray(ir::ExprId Pointer, const Location &L) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Pointer)];
  return X.Kind == ExprKind::Field && StringRef(P.Code.type(Pointer).Name).ends_with("*") && !PointsTo.count(L) &&
         X.Object != None && StringRef(P.Code.type(X.Object).Name).starts_with("std::");
}

/// `std::memcpy(list.data(), …)` into a list with a number for each of this rank's rows: what is copied is of all
/// ranks'.
void Interpreter::overflows(ir::ExprId E, const ir::Expr &X) {
  StringRef Name = X.Name;
  Name.consume_front("std::");
  if (X.Kind != ExprKind::Call || X.Object != None || X.Args.size() != 3 || (Name != "memcpy" && Name != "memmove"))
    return;
  ir::ExprId To = P.unconverted(X.Args[0]);
  if (P.Code.Exprs[To].Kind == ExprKind::Unary && P.Code.Exprs[To].Name == "&")
    To = P.unconverted(P.Code.Exprs[To].Args[0]);
  const ir::ExprId List = P.Code.Exprs[To].Object;
  if (List == None || !holdsNumbers(P.Code.type(List).Name))
    return;
  if (const Value V = eval(List); V.Kind == Placement::Sharded)
    note("row-loop", E, V, "copies numbers of all ranks' rows to where one has its own");
}

} // namespace migrate
