//===- InterpreterObjects.cpp - Copies of the project's own objects -------===//
//
// A copy of an object has what its fields hold, and its references and pointers name what the object's do.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// What is kept under the names of a map of tensors that is written out, `{{"x", x}, {"y", y}}`.
Interpreter::State Interpreter::entriesMade(ir::ExprId E) {
  State Found;
  if (!P.Code.type(E).namesTensors())
    return Found;
  while (P.Code.Exprs[E].Kind != ExprKind::List && !P.Code.Exprs[E].Args.empty() && P.Code.Exprs[E].Args[0] != None)
    E = P.Code.Exprs[E].Args[0];
  if (P.Code.Exprs[E].Kind == ExprKind::List)
    for (ir::ExprId Item : P.Code.Exprs[E].Args)
      if (const ir::Expr &Pair = P.Code.Exprs[P.unconverted(Item)]; Pair.Args.size() == 2)
        if (const ir::VarId Entry = P.entryNamed(Pair.Args[0]); Entry != None)
          (Found[Location{None, {Entry}}] = Last[Pair.Args[1]]).AssignedBy = Pair.Args[1];
  return Found;
}

/// What a map of tensors keeps under a name that is written out.
std::optional<Value> Interpreter::entry(ir::ExprId E) {
  if (P.entry(P.Code.Exprs[E]) == None)
    return std::nullopt;
  const ir::ExprId Map = P.Code.Exprs[E].Object;
  const std::optional<Location> L = lvalue(E);
  const Value V = eval(Map);
  return L ? read(*L, E) : V;
}

/// What an expression gives, a part of a tuple as well, without the conversions around it.
static ir::ExprId withoutConversions(const Program &P, ir::ExprId E) {
  for (;;) {
    const ir::Expr &X = P.Code.Exprs[E];
    const bool Converts = X.Kind == ExprKind::Cast || (X.Kind == ExprKind::Construct && X.Var == None);
    if (!Converts || X.Args.size() != 1 || X.Args[0] == None || P.held(X) != None)
      return E;
    E = X.Args[0];
  }
}

/// The fields of what has no place yet: what a call returned, a map written out, the objects of a pair or tuple made
/// here.
Interpreter::State Interpreter::fieldsMade(ir::ExprId E) {
  if (const State Made = entriesMade(E); !Made.empty())
    return Made;
  E = withoutConversions(P, E);
  if (const ir::ExprId Copied = copiedObject(P, E); Copied != None)
    return fieldsOf(Copied);
  const auto It = Returned.find(E);
  return It == Returned.end() ? State() : It->second;
}

ir::ExprId copiedObject(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E];
  const bool Makes = X.Name == "std::make_shared" || X.Name == "std::make_unique";
  return Makes && X.Args.size() == 1 && X.Args[0] != None && P.Code.type(X.Args[0]).Own ? X.Args[0] : None;
}

/// The fields of the object that a pair or tuple holds, where `E` asks for it.
Interpreter::State Interpreter::fieldsHeld(ir::ExprId E) {
  E = withoutConversions(P, E);
  const ir::Expr &X = P.Code.Exprs[E];
  const ir::VarId Part = P.held(X);
  if (Part == None)
    return {};
  if (const std::optional<Location> L = lvalue(E))
    return fieldsAt(*L, E);
  State Found;
  for (const auto &[Field, V] : fieldsMade(X.Kind == ExprKind::Cast ? X.Args[0] : X.Object))
    if (Field.Path.size() > 1 && Field.Path[0] == Part)
      Found[Location{None, {Field.Path.begin() + 1, Field.Path.end()}}] = V;
  return Found;
}

/// Remembers the fields of the objects that a pair or tuple is made of.
void Interpreter::holds(ir::ExprId Tuple, const std::vector<ir::ExprId> &Of) {
  bool Asked = false;
  State Fields;
  for (size_t I = 0; I != Of.size(); ++I)
    if (const ir::VarId Part = Of[I] == None ? None : P.held(I, P.Code.type(Of[I])); Part != None) {
      Asked = true;
      for (const auto &[Field, V] : fieldsOf(Of[I]))
        Fields[Field.in({None, {Part}})] = V;
    }
  if (Asked)
    Returned[Tuple] = std::move(Fields);
}

/// What is true of a tuple, or a list of them, but for the objects in it that are known by their fields.
Value Interpreter::besideFields(const Location &L, ir::ExprId E) const {
  const auto Itself = Current.find(L);
  return Itself == Current.end() ? Value::of(Placement::Replicated, E) : Itself->second;
}

/// Which part of a tuple an object becomes, `history.emplace_back(epoch, meter)`.
static ir::VarId partGiven(const Program &P, const ir::Expr &X, ir::ExprId Arg) {
  const size_t Index = llvm::find(X.Args, Arg) - X.Args.begin();
  return X.Args.size() > 1 && StringRef(X.Name).ends_with("::emplace_back") ? P.held(Index, P.Code.type(Arg)) : None;
}

/// `history.push_back({epoch, meter})`: a tuple with objects is put into a list, `Fields` are theirs. Gives what is
/// true of what stands beside them.
Value Interpreter::collectsHeld(const ir::Expr &X, ir::ExprId Arg, Value V, State &Fields) {
  if (const ir::VarId Part = partGiven(P, X, Arg); Part != None) {
    State Held;
    for (const auto &[Field, Of] : Fields)
      Held[Field.in({None, {Part}})] = Of;
    Fields = std::move(Held);
    return Value::of(Placement::Replicated, Arg);
  }
  const ir::ExprId Tuple = madeBy(P, Arg);
  if (Tuple == None)
    return V;
  V = Value::of(Placement::Replicated, Arg);
  for (size_t I = 0; I != P.Code.Exprs[Tuple].Args.size(); ++I)
    if (const ir::ExprId Of = P.Code.Exprs[Tuple].Args[I]; P.held(I, P.Code.type(Of)) == None)
      V = amongItems(P.Code.type(X.Object), V, Last[Of], Of);
  return V;
}

/// What is known of an object of the project's and its fields one by one, where `E` is no more than its name.
Interpreter::State Interpreter::fieldsOf(ir::ExprId E) {
  State Found;
  if (const State Made = E == None ? Found : entriesMade(E); !Made.empty())
    return Made;
  if (const State Held = E == None ? Found : fieldsHeld(E); !Held.empty())
    return Held;
  const bool Part = E != None && StringRef(P.Code.Exprs[E].Name).starts_with("part"); // of the type of its tuple
  if (E != None && !Part && P.Code.type(E).tuple()) {
    const std::optional<Location> L = lvalue(E);
    return L ? fieldsAt(*L, E) : fieldsMade(E);
  }
  E = P.unconverted(E);
  const bool Map = E != None && P.Code.type(E).namesTensors();
  if (E == None || (P.Code.type(E).Kind != TypeKind::Unknown && !Map) || StringRef(P.Code.type(E).Name).ends_with("*"))
    return Found;
  std::optional<Location> L = lvalue(E);
  if (!L || ofContainer(E) || isPart(E))
    return Found;
  Found = fieldsAt(*L, E);
  if (auto Whole = Current.find(*L); Whole != Current.end() && !Found.empty())
    Found[Location{None, {}}] = Whole->second;
  return Found;
}

/// What is known of the fields of the object at `L`, its name left out; `E` reads them.
Interpreter::State Interpreter::fieldsAt(const Location &L, ir::ExprId E) {
  State Found;
  for (auto It = Current.upper_bound(L); It != Current.end() && It->first.Root == L.Root; ++It) {
    const std::vector<ir::VarId> &Path = It->first.Path;
    if (Path.size() > L.Path.size() && std::equal(L.Path.begin(), L.Path.end(), Path.begin()))
      Found[Location{None, {Path.begin() + L.Path.size(), Path.end()}}] = It->second;
  }
  for (const auto &[Path, Target] : referencesIn(L)) // as they are now
    if (Location Field{None, Path}; !Found.count(Field))
      Found[Field] = read(Target, E);
  return Found;
}

/// Makes the object at `To` a copy of what `From` names.
void Interpreter::copyObject(const Location &To, ir::ExprId From) {
  takeFields(To, fieldsOf(From));
  takeReferences(To, From);
}

/// The references and pointers in an object, by their path in it, and what they name.
std::vector<std::pair<std::vector<ir::VarId>, Location>> Interpreter::referencesIn(const Location &Object) const {
  std::vector<std::pair<std::vector<ir::VarId>, Location>> Found;
  for (auto It = PointsTo.lower_bound(Object); It != PointsTo.end() && It->first.Root == Object.Root; ++It) {
    const std::vector<ir::VarId> &Path = It->first.Path;
    if (Path.size() > Object.Path.size() && std::equal(Object.Path.begin(), Object.Path.end(), Path.begin()))
      Found.push_back({{Path.begin() + Object.Path.size(), Path.end()}, It->second});
  }
  return Found;
}

/// Has the references in a copy of an object name what they name in it.
void Interpreter::takeReferences(const Location &To, ir::ExprId From) {
  From = P.unconverted(From);
  if (From == None || P.Code.type(From).Kind != TypeKind::Unknown || ofContainer(From) || isPart(From))
    return;
  if (std::optional<Location> L = lvalue(From); L && L->Root != To.Root)
    for (auto &[Path, Target] : referencesIn(*L))
      PointsTo.insert_or_assign(Location{None, Path}.in(To), Target);
}

/// The fields of one more object in a list or map, together with those of the objects that are in it.
Interpreter::State Interpreter::amongFields(const Location &List, State Fields) {
  for (auto &[Field, V] : Fields)
    if (auto Known = Current.find(Field.in(List)); Known != Current.end())
      V = join(Known->second, V);
  return Fields;
}

/// Has a copy of an object the same in its fields.
void Interpreter::takeFields(const Location &To, const State &Fields) {
  for (const auto &[Field, V] : Fields)
    Current[Field.in(To)] = V;
}

} // namespace migrate
