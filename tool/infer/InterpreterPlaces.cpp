//===- InterpreterPlaces.cpp - What names what, and what is written there -===//
//
// A variable, a field, an element, what a pointer or an iterator points to: a `Location`. Elements of a container share
// one. What is written through an expression that leads to none could be read again anywhere, so that it has to be the
// same on every rank.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

std::string spelled(const Program &P, const Location &L) {
  std::string Name = P.Code.Vars[L.Root].Name;
  for (ir::VarId Field : L.Path)
    Name += (StringRef(P.Code.Vars[Field].Name).starts_with("[") ? "" : ".") + P.Code.Vars[Field].Name;
  return Name;
}

std::optional<Location> Interpreter::lvalue(ir::ExprId E) {
  if (Cuts.count(E) || OwnRows.count(E) || BroughtTogether.count(E))
    return std::nullopt; // this rank's rows, or all, a tensor of their own
  return named(E);
}

std::optional<Location> Interpreter::named(ir::ExprId E) {
  if (E == None)
    return std::nullopt;
  const ir::Expr &X = P.Code.Exprs[E];
  if (const ir::VarId Entry = P.entry(X); Entry != None) {
    std::optional<Location> Map = lvalue(X.Object);
    if (Map && PointsTo.count(*Map))
      Map = PointsTo.at(*Map);
    if (Map)
      Map->Path.push_back(Entry);
    return Map;
  }
  switch (X.Kind) {
  case ExprKind::Ref: {
    if (auto It = Alias.find(X.Var); It != Alias.end())
      return It->second;
    return Location{X.Var, {}};
  }
  case ExprKind::This:
    return Frames.back().This;
  case ExprKind::Field: {
    std::optional<Location> Base = lvalue(X.Object);
    if (X.Var == None)
      return Base;
    if (isKey(X))
      return std::nullopt;
    if (Base && PointsTo.count(*Base))
      Base = PointsTo.at(*Base);
    // `item.second` of a map: its values share one place, as elements do.
    if (Base && isPairOfMap(X, *Base))
      return Base;
    if (!Base)
      return Location{X.Var, {}}; // some object's field: all of them together
    const ir::VarId Part = P.held(X);
    Base->Path.push_back(Part == None ? X.Var : Part);
    if (P.Code.typeOf(X.Var).Reference && PointsTo.count(*Base))
      return PointsTo.at(*Base);
    return Base;
  }
  case ExprKind::Unary:
    if (X.Name == "*")
      if (std::optional<Location> L = lvalue(withoutOffset(X.Args[0]))) {
        if (PointsTo.count(*L))
          return PointsTo.at(*L);
        if (leadsAstray(X.Args[0], *L))
          return std::nullopt;
      }
    return X.Name == "*" || X.Name == "&" || X.Name == "++" || X.Name == "--" ? lvalue(X.Args[0]) : std::nullopt;
  case ExprKind::Index: {
    std::optional<Location> L = lvalue(X.Object);
    return L && PointsTo.count(*L) ? PointsTo.at(*L) : L;
  }
  case ExprKind::Cast:
    if (const ir::VarId Part = P.held(X); Part != None) {
      std::optional<Location> Tuple = lvalue(X.Args[0]);
      if (Tuple && PointsTo.count(*Tuple))
        Tuple = PointsTo.at(*Tuple);
      if (Tuple)
        Tuple->Path.push_back(Part);
      return Tuple;
    }
    if (StringRef(X.Name).starts_with("part") && (partsOf(X.Args[0]) || knownByFields(X.Args[0])))
      return std::nullopt; // an element with a value of its own
    return lvalue(X.Args[0]);
  case ExprKind::Assign:
    return lvalue(X.Args[0]);
  case ExprKind::Call:
    if ((X.Name == "std::move" || X.Name == "std::forward" || X.Name == "std::ref") && !X.Args.empty())
      return lvalue(X.Args[0]);
    if (X.Object != None &&
        ((StringRef(X.Name).starts_with("std::") && StringRef(X.Name).ends_with("::get")) || isElement(X)))
      return lvalue(X.Object);
    if (X.Object != None &&
        (givesItself(P.callee(X)) || changesInPlace(X))) // `meter.add(x).add(y)`, `x.mul_(a).add_(y)`
      return lvalue(X.Object);
    return X.Var == None ? givenBy(X) : std::optional(Location{X.Var, {}});
  case ExprKind::Binary:
  case ExprKind::Construct:
    return X.Var == None ? std::nullopt : std::optional(Location{X.Var, {}});
  default:
    return std::nullopt;
  }
}

/// What an iterator or a pointer was before something was added to it.
ir::ExprId Interpreter::withoutOffset(ir::ExprId E) const {
  for (;;) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    auto [Scope, Name] = StringRef(X.Name).rsplit("::");
    bool Moves = llvm::is_contained({"+", "-", "operator+", "operator-", "next", "prev"}, Name.empty() ? Scope : Name);
    ir::ExprId From = X.Object != None ? X.Object : X.Args.empty() ? None : X.Args[0];
    if ((X.Kind != ExprKind::Binary && X.Kind != ExprKind::Call) || !Moves || From == None)
      return E;
    E = From;
  }
}

/// Whether a method returns `*this`, whatever it does.
bool Interpreter::givesItself(ir::FuncId F) const {
  if (F == None)
    return false;
  std::vector<ir::ExprId> Returned = P.returned(F);
  return !Returned.empty() && llvm::all_of(Returned, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    return X.Kind == ExprKind::Unary && X.Name == "*" && P.Code.Exprs[X.Args[0]].Kind == ExprKind::This;
  });
}

/// Whether a field is half of what a map keeps at `Base`.
bool Interpreter::isPairOfMap(const ir::Expr &X, const Location &Base) const {
  StringRef Kept = P.Code.typeOf(Base.Path.empty() ? Base.Root : Base.Path.back()).Name;
  StringRef Field = P.Code.Vars[X.Var].Name;
  return (Field == "first" || Field == "second") && Kept.starts_with("std::") && Kept.contains("map<");
}

/// `item.first` of a map: nothing is added up in it.
bool Interpreter::isKey(const ir::Expr &X) const {
  return X.Kind == ExprKind::Field && X.Var != None && P.Code.Vars[X.Var].Name == "first" &&
         P.Code.typeOf(X.Var).Const && StringRef(P.Code.type(X.Object).Name).starts_with("std::pair<const ");
}

bool isView(StringRef Name) {
  static const llvm::StringSet<> Names = {
      "select",           "slice",     "narrow",     "view",          "view_as",      "reshape",
      "squeeze",          "unsqueeze", "t",          "detach",        "data",         "transpose",
      "permute",          "flatten",   "expand",     "expand_as",     "diagonal",     "alias",
      "unbind",           "split",     "chunk",      "accessor",      "index",        "unfold",
      "swapaxes",         "movedim",   "as_strided", "variable_data", "tensor_split", "packed_accessor32",
      "packed_accessor64"};
  return Names.contains(Name.rsplit("::").second);
}

/// The variable of a tensor that something lies in, and whether it is a part or a pointer, not the tensor itself.
std::pair<ir::VarId, bool> Interpreter::partOfVar(ir::ExprId E) const {
  bool Part = false;
  for (;;) {
    E = P.unconverted(E);
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field)
      return {X.Var, Part};
    bool Views = X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && isView(X.Name));
    if ((!Views && pointee(P, E) == None) || X.Object == None)
      return {None, false};
    Part = true;
    E = X.Object;
  }
}

/// Whether `E` is one row of a tensor by a number that is written out: `x.index_put_({0, 1}, y)`, `x[0] = y`.
static bool putsRow(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  std::vector<ir::ExprId> Items;
  for (ir::ExprId Arg : X.Args)
    if (Arg != None)
      collectItems(P, Arg, Items);
  bool Picks = X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::index"));
  return Picks && !Items.empty() && P.Code.Exprs[P.unconverted(Items[0])].Kind == ExprKind::Literal &&
         P.Code.type(P.unconverted(Items[0])).Kind == TypeKind::Integer;
}

/// Whether a part of a tensor is written through a view, a pointer or an accessor, here or in what it is handed to:
/// its rows have their places in the whole there.
bool Interpreter::writtenInParts(ir::VarId V) {
  if (!InParts) {
    InParts.emplace();
    std::map<ir::VarId, std::set<ir::VarId>> LiesIn; // parts, by their names
    auto Lies = [&](ir::VarId Name, ir::ExprId In) {
      TypeKind Kind = P.Code.typeOf(Name).Kind;
      auto [Of, Part] = In == None ? std::pair(None, false) : partOfVar(In);
      if (Of == None || P.Code.typeOf(Of).Kind != TypeKind::Tensor)
        return;
      if (Part && Kind != TypeKind::Tensor &&
          (!P.Code.typeOf(Name).number() || P.Code.typeOf(Name).Hold == ir::Holding::Pointer))
        InParts->insert(Of); // a pointer, an accessor
      if (Kind == TypeKind::Tensor)
        LiesIn[Name].insert(Of);
    };
    for (const auto &[Name, Init] : R.Init)
      Lies(Name, Init);
    for (ir::VarId Name = 0; Name != P.Code.Vars.size(); ++Name)
      if (P.Code.Vars[Name].Param && P.Code.typeOf(Name).Kind == TypeKind::Tensor)
        for (ir::ExprId Given : R.givenTo(Name))
          Lies(Name, Given);
    std::set<ir::VarId> Elements; // written one by one, or at once: of a view's name that is a part of another
    for (const ir::Expr &X : P.Code.Exprs) {
      if (X.Kind == ExprKind::Assign && X.Args[0] != None && P.Code.Exprs[X.Args[0]].Kind != ExprKind::Ref) {
        if (auto [Of, Part] = partOfVar(X.Args[0]); Of != None && Part) {
          Elements.insert(Of);
          if (putsRow(P, X.Args[0]))
            InParts->insert(Of);
        }
      } else if (changesInPlace(X)) {
        if (auto [Of, Part] = partOfVar(X.Object); Of != None) {
          Elements.insert(Of);
          if (Part && P.Code.Exprs[P.unconverted(X.Object)].Kind == ExprKind::Call)
            InParts->insert(Of);
        }
      } else if (X.Kind == ExprKind::Call) {
        for (ir::ExprId Arg : X.Args) // `std::memcpy(x.data_ptr(), …)`, `std::copy(…, x.data_ptr<float>())`
          if (Arg != None && pointee(P, Arg) != None)
            if (auto [Of, Part] = partOfVar(Arg); Of != None && Part)
              InParts->insert(Of);
      }
    }
    for (bool More = true; More;) {
      More = false;
      for (const auto &[Name, Wholes] : LiesIn)
        if (Elements.count(Name) || InParts->count(Name))
          for (ir::VarId Of : Wholes)
            More |= Of != Name && InParts->insert(Of).second;
    }
  }
  return InParts->count(V) != 0;
}

/// Whether `X` is one element of its object, a container.
bool Interpreter::isElement(const ir::Expr &X) const {
  if (P.entry(X) != None) // a place of its own
    return false;
  if (X.Kind == ExprKind::Index)
    return true;
  return X.Kind == ExprKind::Call && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Container &&
         llvm::is_contained({"at", "front", "back", "top"}, StringRef(X.Name).rsplit("::").second);
}

/// Whether `E` is some rows of a tensor, `x[i]`.
bool Interpreter::isPart(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  return X.Kind == ExprKind::Index && P.Code.type(X.Object).Kind == TypeKind::Tensor;
}

/// `out[t] = h` of an output with time in front: the rows that are written lie where those of the place lie.
bool Interpreter::fillsPlace(const Value &Whole, const Value &Place, const Value &Written) {
  return Whole.Kind == Placement::Sharded && Place.Kind == Placement::Sharded && Written.Kind == Placement::Sharded &&
         Whole.Dim > Place.Dim && Place.Dim == Written.Dim && !Place.Woven && !Written.Woven && !Written.Picked &&
         !Written.Listed;
}

/// A tensor of which some rows are written: it has as many as before.
Value Interpreter::withPart(const Location &L, const Value &Whole, const Value &Part) const {
  Value V = join(Whole, Part);
  // A row of a tensor has other rows than the tensor has, such as a step's in a game that is replayed: no batch to cut.
  if (Whole.replicated() && Part.replicated() && !Part.Trained && P.Code.typeOf(L.Root).Kind == TypeKind::Tensor)
    V.Edges = Whole.Edges;
  V.Rows = Whole.Rows;
  V.takeRank(Whole); // `states[i] = state`
  return V;
}

/// Whether what is written to `L` is written to where it can't be followed.
bool Interpreter::astray(const std::optional<Location> &L) const {
  auto IsHidden = [&](ir::VarId V) { return hidden().count(V) || (Threads == 0 && readBeside().count(V)); };
  return !L || Elsewhere.count(L->Root) || P.Code.Vars[L->Root].Field || // of some object
         IsHidden(L->Root) || llvm::any_of(L->Path, IsHidden);
}

/// Whether a place holds where something else is: copies of it name the same thing.
bool Interpreter::holdsAddress(const Location &L) const {
  const ir::Type &T = P.Code.typeOf(L.Path.empty() ? L.Root : L.Path.back());
  return StringRef(T.Name).ends_with("*") || StringRef(T.Name).starts_with("std::shared_ptr<") ||
         (T.Kind == TypeKind::Module && T.Hold == ir::Holding::Holder);
}

/// What a field holds that is read through a pointer of which it isn't known where it points, an element of a list of
/// pointers, a copy of one, what a call gave: of all objects that have such a field, together. Nothing if it is known.
std::optional<Value> Interpreter::behindUnknown(const Location &L) const {
  const ir::VarId Field = L.Path.empty() ? L.Root : L.Path.back();
  const ir::Type &T = P.Code.typeOf(Field);
  if (Current.count(L) || (L.Path.empty() && !P.Code.Vars[Field].Field) ||
      (!T.number() && T.Kind != TypeKind::Tensor && T.Kind != TypeKind::Container))
    return std::nullopt;
  auto Pointers = [&](ir::VarId V) {
    StringRef Type = P.Code.typeOf(V).Name;
    return Type.contains('*') || Type.contains("std::shared_ptr<") || Type.contains("std::reference_wrapper<");
  };
  bool Unknown = L.Path.empty(); // some object's
  for (Location At{L.Root, {}}; At.Path.size() < L.Path.size(); At.Path.push_back(L.Path[At.Path.size()]))
    Unknown |= Pointers(At.Path.empty() ? At.Root : At.Path.back()) && !PointsTo.count(At);
  std::optional<Value> All;
  for (const auto &[Known, V] : Current)
    if (Unknown && !Known.Path.empty() && Known.Path.back() == Field && V.Kind != Placement::Zero)
      All = All ? join(*All, V) : V;
  return All && !All->replicated() ? All : std::nullopt;
}

/// Whether what is written to `To` is written to one element of a container, and the others stay as they are.
bool Interpreter::ofContainer(ir::ExprId To) const {
  while (To != None) {
    const ir::Expr &X = P.Code.Exprs[To];
    if (isElement(X))
      return true;
    if (X.Kind == ExprKind::Ref)
      return Elements.count(X.Var) != 0;
    To = X.Kind == ExprKind::Field                               ? X.Object
         : X.Kind == ExprKind::Unary || X.Kind == ExprKind::Cast ? X.Args[0]
                                                                 : None;
  }
  return false;
}

/// Declared outside the loop over batches that is running: what is written there outlives the step.
bool Interpreter::outer(const Location &L) const {
  for (auto It = Loops.rbegin(); It != Loops.rend(); ++It)
    if (It->accumulates()) {
      auto Declared = Depths.find(L.Root);
      return Declared == Depths.end() || Declared->second < It->Depth;
    }
  return false;
}

Value Interpreter::read(const Location &L, ir::ExprId E) {
  // A whole of fields that were written one by one: what is true of all of them.
  std::optional<Value> Fields;
  const ir::Type &Holder = P.Code.typeOf(L.Path.empty() ? L.Root : L.Path.back());
  for (auto It = Current.upper_bound(L); It != Current.end() && It->first.Root == L.Root; ++It) {
    const std::vector<ir::VarId> &Path = It->first.Path;
    if (Path.size() <= L.Path.size() || !std::equal(L.Path.begin(), L.Path.end(), Path.begin()))
      continue;
    Value Field = asNumber(It->second);
    Field.Batch = None;
    if (Holder.namesTensors())
      Fields = Fields ? amongItems(Holder, *Fields, Field, E) : Field;
    else if (!Field.replicated())
      Fields = Fields ? join(*Fields, Field) : Field;
  }
  if (auto Others = Current.find(L); Fields && Holder.namesTensors() && Others != Current.end()) // under other names
    Fields = amongItems(Holder, *Fields, Others->second, E);
  if (Fields)
    return *Fields;
  if (const std::optional<Value> Any = behindUnknown(L))
    return *Any;
  for (Location At = L;; At.Path.pop_back()) {
    if (auto It = Current.find(At); It != Current.end()) {
      Value V = It->second;
      if (V.replicated() && At.Path.size() + 1 == L.Path.size()) // of a pair that a call returned
        if (const Value *Half = half(V.AssignedBy, L.Path.back()))
          return *Half;
      if (V.Kind != Placement::Escaped)
        return V;
      if (keepWhole(V) || cutStart(At, V))
        return Value::of(Placement::Replicated, E);
      return Value::unknown("is kept beyond the step whose rows it was made of", V.Source);
    }
    if (At.Path.empty())
      return Value::of(Placement::Replicated);
  }
}

/// What is kept there, and in its fields, is no more.
void Interpreter::forget(const Location &L) {
  for (auto It = Current.lower_bound(L); It != Current.end() && It->first.Root == L.Root;)
    if (It->first.Path.size() >= L.Path.size() && std::equal(L.Path.begin(), L.Path.end(), It->first.Path.begin()))
      It = Current.erase(It);
    else
      ++It;
}

/// `L` becomes another tensor: copies of it stay what it was.
void Interpreter::separate(const Location &L) {
  std::vector<ir::VarId> Apart;
  for (const auto &[V, Made] : Copies) {
    const Location &Named = Alias.at(V);
    if (Named.Root == L.Root && Named.Path.size() >= L.Path.size() &&
        std::equal(L.Path.begin(), L.Path.end(), Named.Path.begin()))
      Apart.push_back(V);
  }
  for (ir::VarId V : Apart) {
    Current[Location{V, {}}] = read(Alias.at(V), None);
    Alias.erase(V);
    Copies.erase(V);
  }
}

/// `p = &x`
void Interpreter::points(const Location &L, ir::ExprId To) {
  PointsTo.erase(L);
  if (To == None)
    return;
  bool Address = holdsAddress(L);
  To = Address ? P.unconverted(To) : To;
  const ir::Type &Holder = P.Code.typeOf(L.Path.empty() ? L.Root : L.Path.back());
  if (Holder.Hold == ir::Holding::Holder && P.Code.type(To).Name != Holder.Name)
    return; // `Decoder decoder(encoder)` makes one
  const ir::Expr &X = P.Code.Exprs[To];
  if (X.Kind == ExprKind::Unary && X.Name == "&") {
    if (std::optional<Location> Target = lvalue(X.Args[0]))
      PointsTo.emplace(L, *Target);
  } else if (X.Kind == ExprKind::Call && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Container &&
             llvm::is_contained({"begin", "end", "find", "data"}, StringRef(X.Name).rsplit("::").second)) {
    if (std::optional<Location> Target = lvalue(X.Object)) {
      PointsTo.emplace(L, *Target);
      Elements.insert(L.Root);
    }
  } else if (std::optional<Location> From = X.Kind == ExprKind::Construct ? std::nullopt : lvalue(To)) {
    if (PointsTo.count(*From))
      PointsTo.emplace(L, PointsTo.at(*From));
    else if (Address && *From != L)
      PointsTo.emplace(L, *From); // an array, or another pointer to the same
  }
  if (!Address)
    return;
  if (P.Code.type(To).Kind == TypeKind::Module || PointsTo.count(L) || makes(To))
    Elsewhere.erase(L.Root);
  else
    Elsewhere.insert(L.Root); // to what others may know
}

} // namespace migrate
