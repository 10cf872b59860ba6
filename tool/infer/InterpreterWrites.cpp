//===- InterpreterWrites.cpp - What is written in place -------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// What is written to a parameter, a buffer or a gradient, or tells an optimizer how to step, is the same on all ranks.
void Interpreter::intoModel(ir::ExprId From, const Value &V) {
  ++Meetings; // in what they train
  if (V.reducible() || V.Kind == Placement::Own)
    demandReplicated(From, V, "written to what is trained");
  else if (!V.replicated() && !keepsRows(From, V) && !(V.Kind == Placement::Unknown && keepsLaws(From, 4)))
    note("divergent-training", From, V,
         "writes to what is trained a value that " + (V.Why.empty() ? "holds this rank's rows" : V.Why));
}

/// `scale.copy_(1 / x.std(0))`, with no graph: what has the rows that it is computed from along the batch, all of it,
/// is brought together, from the next run on.
bool Interpreter::keepsLaws(ir::ExprId From, int Hops) {
  if (From == None || Hops == 0 || NoGrads == 0)
    return false;
  bool Any = false, All = true;
  P.forEachExpr(From, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    const auto Found = Last.find(Sub);
    if (Found == Last.end() || Found->second.Kind != Placement::Unknown || P.Code.type(Sub).Kind != TypeKind::Tensor)
      return;
    if (X.Kind == ExprKind::Ref) {
      const ir::ExprId Made = madeAs(Sub);
      const bool Kept = Made != Sub && keepsLaws(Made, Hops - 1);
      Any |= Kept;
      All &= Kept;
      return;
    }
    const std::vector<ir::ExprId> Operands = X.Kind == ExprKind::Call ? operandsOf(X) : X.Args;
    for (ir::ExprId Operand : Operands)
      if (auto Of = Operand == None ? Last.end() : Last.find(Operand); Of != Last.end()) {
        const Value &Rows = Of->second;
        if (Rows.Kind != Placement::Sharded)
          continue;
        const bool Kept = keepsRows(Operand, Rows);
        Any |= Kept;
        All &= Kept;
      }
  });
  return Any && All;
}

/// Has rows that outlive their step brought together, from the next run on: every rank keeps all of them.
bool Interpreter::keepsRows(ir::ExprId From, const Value &V) {
  if (From == None || Divergent > 0 || ofOneRank() || !gatherable(From, V) || !P.Code.Exprs[From].Where.Editable)
    return false;
  const bool New = KeptRows.insert(From).second;
  Restart |= New;
  return New;
}

/// Rows that are written into a part of a whole tensor that outlives the step, a queue, a bank of features, and where:
/// `bank.slice(0, at, at + n).copy_(x)`, `bank.index_put_({numbers}, x)`.
bool Interpreter::keepsInPart(ir::ExprId To, ir::ExprId From, const Value &V) {
  auto [Of, Part] = partOfVar(To);
  if (Of == None || !Part || From == None || P.Code.typeOf(Of).Kind != TypeKind::Tensor)
    return false;
  ir::ExprId Root = P.unconverted(To);
  std::vector<ir::ExprId> Places;
  while (P.Code.Exprs[Root].Kind != ExprKind::Ref && P.Code.Exprs[Root].Kind != ExprKind::Field) {
    for (ir::ExprId Arg : P.Code.Exprs[Root].Args)
      if (Arg != None)
        collectItems(P, Arg, Places);
    Root = P.unconverted(P.Code.Exprs[Root].Object);
  }
  std::optional<Location> L = lvalue(Root);
  if (!L || !outer(*L) || !read(*L, Root).replicated())
    return false;
  if (!(KeptRows.count(From) && V.replicated()) && !keepsRows(From, V))
    return false;
  for (ir::ExprId Place : Places) {
    const Value At = eval(Place);
    if (P.Code.type(Place).Kind == TypeKind::Tensor)
      keepsRows(Place, At);
    else if (At.reducible() && numeric(Place)) // of all rows
      demandReplicated(Place, At, "used as a place");
  }
  return true;
}

/// Whether what a call in place makes depends on what it finds, and isn't a sum: `x.mul_(0.9)`.
static bool changesAgain(StringRef Name) {
  Name = Name.rsplit("::").second;
  static const char *const Again[] = {"mul_",         "div_",         "lerp_",    "pow_",  "clamp_",     "addcmul_",
                                      "addcdiv_",     "neg_",         "sqrt_",    "exp_",  "rsub_",      "xor_",
                                      "bitwise_not_", "logical_not_", "sigmoid_", "tanh_", "reciprocal_"};
  return llvm::is_contained(Again, Name);
}

/// Rows of this rank's that are written into a whole tensor, through a view of it: `input.copy_(batch.data)`,
/// `padded.slice(0, 0, n).copy_(x)`. At their places, `accelerator.own_rows(input)`, they can be read there again.
bool Interpreter::intoWhole(ir::ExprId E, ir::ExprId Target) {
  ir::ExprId Root = P.unconverted(Target);
  bool Own = OwnRows.count(Target) != 0 || OwnRows.count(Root) != 0;
  while (!named(Root)) {
    const ir::Expr &X = P.Code.Exprs[Root];
    if (X.Object == None || Cuts.count(Root) ||
        !(X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && isView(X.Name))))
      return false;
    Root = P.unconverted(X.Object);
    Own |= OwnRows.count(Root) != 0;
  }
  const Location L = *named(Root);
  const Value Whole = read(L, Root);
  if (!Own && (Root == P.unconverted(Target) || !Whole.replicated()))
    return false;
  if (!Whole.replicated() && !Whole.amongOthers())
    return false;
  Value Mixed = Value::unknown(Own ? AmongOthers : "is written in part with this rank's rows", E);
  Mixed.Rows = Whole.Rows;
  Mixed.takeRank(Whole);
  write(L, Mixed, None);
  seenBehindNames(L, Mixed, E);
  return true;
}

/// In place, `codes.mul_(0.9).add_(sums)`, or where it is computed from itself, `codes = 0.9 * codes + sums`, what
/// outlives the step keeps its number of rows, and of dimensions.
void Interpreter::keepsShape(Value &Result, const Value &Before) {
  if (Result.Rank < 0 && Before.Rank >= 0)
    Result.takeRank(Before);
  if (Result.replicated() && Result.Rows <= NoRows && Before.replicated() && Before.Rows > NoRows)
    Result.Rows = Before.Rows;
}

/// Whether `E` is computed element by element from what lies at `L`.
bool Interpreter::moves(ir::ExprId E, const Location &L, int Hops) {
  E = P.unconverted(E);
  const ir::Expr &X = P.Code.Exprs[E];
  if (Hops == 0 || P.Code.type(E).Kind != TypeKind::Tensor)
    return false;
  if (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field)
    return lvalue(E) == L;
  bool InPlace;
  const OperationRow *Row = X.Kind == ExprKind::Call && P.callee(X) == None ? Table.find(X.Name, InPlace) : nullptr;
  const bool Each =
      (X.Kind == ExprKind::Binary && llvm::is_contained({"+", "-", "*", "/"}, X.Name)) ||
      (Row && (Row->Kind == Operation::Update || Row->Kind == Operation::RowWise)) ||
      llvm::is_contained(
          {"accelerate::Accelerator::sum", "accelerate::Accelerator::mean", "accelerate::Accelerator::share"}, X.Name);
  if (Row && X.Object != None && Each && moves(X.Object, L, Hops - 1))
    return true;
  return Each && llvm::any_of(X.Args, [&](ir::ExprId Arg) { return Arg != None && moves(Arg, L, Hops - 1); });
}

/// What an operation in place has made of its object.
void Interpreter::writeBack(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In,
                            const Value &Made) {
  if (R.InputCalls.count(E)) // `x.requires_grad_()`: its rows stay what they are
    return;
  if ((Made.Kind == Placement::Own || Made.replicated()) && isOwnRow(X.Object))
    return;
  if (std::optional<Location> L = lvalue(X.Object))
    seenBehindNames(*L, Made, E);
  if (X.Name == "at::Tensor::copy_" && In.Exprs.size() > 1 && keepsInPart(X.Object, In.Exprs[1], In.Values[1]))
    return;
  if (Made.Kind == Placement::Sharded && !Last[X.Object].replicated() && intoWhole(E, X.Object))
    return;
  Value Result = Made;
  if (changesAgain(X.Name)) {
    ir::ExprId Root = X.Object; // `parameters[i].mul_(0.9)`
    while (Root != None && !lvalue(Root))
      Root = P.Code.Exprs[Root].Object;
    if (Root != None && outer(*lvalue(Root)))
      notWhole("it changes what outlives its batch", E);
  }
  if (std::optional<Location> L = lvalue(X.Object); L && Result.Kind == Placement::Own && outer(*L))
    notWhole("it keeps a value of one batch for later", E);
  if (std::optional<Location> L = lvalue(X.Object); L && isPart(X.Object)) {
    const Value Part = Last[X.Object];
    const Value Whole = read(*L, E);
    write(*L, fillsPlace(Whole, Part, Result) ? Whole : withPart(*L, Whole, Result), None);
    if (Part.Kind == Placement::Unknown)
      wroteInto(X.Object, Result, E);
  } else if (L) {
    if ((Row.Kind == Operation::Scatter || Row.Kind == Operation::AlongDim) && Result.replicated() &&
        In.Values[0].replicated()) { // written in part, its shape stays
      Result.takeRank(In.Values[0]);
      Result.Rows = In.Values[0].Rows;
    }
    keepsShape(Result, In.Values[0]);
    write(*L, Result, E);
    wroteInto(X.Object, Result, E); // of which it is a view
  } else if (Result.replicated() && Result.Trained && !Result.Edges.empty()) {
    // `out.select(1, t).copy_(h)`: what a forward() fills step by step is the model's, of the same batch.
    ir::ExprId Root = X.Object;
    while (Root != None && !lvalue(Root))
      Root = P.Code.Exprs[Root].Object;
    if (Root == None || outer(*lvalue(Root)))
      return;
    Value Filled = read(*lvalue(Root), E);
    if (!Filled.replicated())
      return;
    Filled.Trained = true;
    addEdges(Filled, Result);
    write(*lvalue(Root), Filled, None);
  } else if (!Result.replicated() || In.Values[0].Kind == Placement::Unknown) {
    // Through a view: what it was taken from changes.
    ir::ExprId Root = X.Object;
    while (Root != None && !lvalue(Root))
      Root = P.Code.Exprs[Root].Object != None ? P.Code.Exprs[Root].Object
             : P.Code.Exprs[Root].Args.empty() ? None
                                               : P.Code.Exprs[Root].Args[0];
    if (Root != None) {
      if (outer(*lvalue(Root))) {
        notWhole("it writes into a part of something", E);
        write(*lvalue(Root), Value::unknown("is written in part", E), E);
      } else {
        wroteInto(X.Object, Result, E);
        if (Result.Kind == Placement::Own && read(*lvalue(Root), E).replicated()) // `row.narrow(0, 0, n).copy_(one)`
          write(*lvalue(Root), Result, E);
      }
    }
  }
}

/// Whether the value of `E` comes from `V`, directly or through what the loop sets: `int k = n + m; n = k;`.
bool Interpreter::dependsOn(ir::ExprId E, ir::VarId V, ir::StmtId Loop) const {
  std::set<ir::VarId> Seen;
  std::function<bool(ir::ExprId)> Look = [&](ir::ExprId From) {
    bool Found = false;
    P.forEachExpr(From, [&](ir::ExprId Sub) {
      const ir::Expr &X = P.Code.Exprs[Sub];
      if (Found || (X.Kind != ExprKind::Ref && X.Kind != ExprKind::Field) || X.Var == None)
        return;
      Found = X.Var == V;
      if (Found || !Seen.insert(X.Var).second)
        return;
      const ir::ExprId Made = assignedBy({X.Var, {}});
      if (Made != None && P.Code.Stmts[Loop].Where.contains(P.Code.Exprs[Made].Where))
        Found = Look(Made);
    });
    return Found;
  };
  return Look(E);
}

/// The object that an iterator or a pointer leads into: `v.begin() + 1`, `v.data()`, `&v[0]`, `std::back_inserter(v)`.
std::optional<Location> Interpreter::behind(ir::ExprId Iterator) {
  for (int Hops = 0; Iterator != None && Hops != 8; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[Iterator = P.unconverted(Iterator)];
    if (X.Object == None && X.Args.empty())
      return lvalue(Iterator);
    if (std::optional<Location> L = X.Kind == ExprKind::Field ? lvalue(Iterator) : std::nullopt)
      return L;
    Iterator = X.Object != None ? X.Object : X.Args[0];
  }
  return std::nullopt;
}

/// A call that isn't followed and was given rows, or a value of one rank's own batch, which it may write to what
/// outlives the step: the object of a method that isn't const, what it is given to write to, where an algorithm's
/// iterators lead. What changes an object in a loop over batches, or rows, that only one rank has, depends on their
/// number, whatever it is given: `count.fetch_add(1)`.
void Interpreter::writesThrough(ir::ExprId E, const ir::Expr &X, bool FromOwn, bool FromRows) {
  StringRef Name = X.Name, Plain = Name.substr(Name.rfind(':') + 1);
  const bool Library = Name.starts_with("std::") || !Name.contains("::");
  static const char *const Algorithms[] = {"copy",           "copy_n",         "copy_if",
                                           "copy_backward",  "move",           "move_backward",
                                           "transform",      "fill",           "fill_n",
                                           "generate",       "generate_n",     "swap",
                                           "exchange",       "swap_ranges",    "memcpy",
                                           "memmove",        "memset",         "replace",
                                           "replace_if",     "partial_sum",    "merge",
                                           "inclusive_scan", "exclusive_scan", "iota",
                                           "set_union",      "replace_copy",   "adjacent_difference"};
  static const char *const Looks[] = {"at",     "begin", "end",     "find",        "data",        "front",
                                      "back",   "get",   "value",   "lower_bound", "upper_bound", "operator[]",
                                      "rbegin", "rend",  "reserve", "load"};
  std::vector<ir::ExprId> To;
  const bool Algorithm = X.Object == None && Library && llvm::is_contained(Algorithms, Plain);
  if (Algorithm)
    To.assign(X.Args.begin(), X.Args.end());
  else
    for (size_t I = 0; I != std::min<size_t>(X.Args.size(), 32); ++I)
      if ((X.Writable >> I & 1) && X.Args[I] != None && P.Code.type(X.Args[I]).Kind != TypeKind::Module)
        To.push_back(X.Args[I]);
  const TypeKind Object = X.Object == None ? TypeKind::Unknown : P.Code.type(X.Object).Kind;
  // `options.hidden_size()` gives a reference, which can be read.
  const bool Option = X.Args.empty() && X.Object != None && ofLayer(P.Code.type(X.Object));
  if (X.Object != None && X.Changes && !Option && !llvm::is_contained(Looks, Plain) && Object != TypeKind::Tensor &&
      Object != TypeKind::Module && Object != TypeKind::Optimizer && Object != TypeKind::Accelerator)
    To.push_back(X.Object);
  // Numbers of rows, and their order, are those of all: `std::iota(ids.begin(), ids.end(), 0)`.
  static const char *const ByNumber[] = {"iota",        "shuffle",        "random_shuffle",
                                         "partial_sum", "inclusive_scan", "exclusive_scan"};
  if (Library && !X.Args.empty() && X.Args[0] != None && llvm::is_contained(ByNumber, Plain))
    if (std::optional<Location> L = behind(X.Args[0]); L && Current.count(*L) && Current.at(*L).Listed)
      note("row-loop", E, Current.at(*L), "numbers or orders this rank's rows (`" + X.Name + "`)");
  // What an algorithm writes in the step is of the rows that it reads: `std::transform(b, e, out, f)`.
  static const char *const InPlace[] = {"fill", "fill_n", "generate", "generate_n", "replace", "replace_if"};
  const size_t Reads = llvm::is_contained(InPlace, Plain) ? 0 : 2;
  for (size_t I = Reads; Algorithm && FromRows && I < To.size(); ++I)
    if (StringRef(P.Code.type(To[I]).Name).contains("iterator"))
      if (std::optional<Location> L = behind(To[I]); L && !outer(*L))
        write(*L, Value::unknown("is written by `" + X.Name + "`, which isn't followed", E), E);
  for (ir::ExprId Place : To) {
    auto Known = Last.find(Place);
    if (Known != Last.end() && !Known->second.replicated()) // what it is made of
      continue;
    std::optional<Location> L = behind(Place);
    if (!L || !outer(*L))
      continue;
    const bool Apart = llvm::any_of(Loops, [](const Loop &L) { return L.Mode == LoopMode::Whole; });
    if (FromOwn)
      notWhole("it keeps a value of one batch for later", E);
    else if (!FromRows && (Place != X.Object || !(Apart || Library)))
      continue;
    else if (!FromRows)
      notWhole("it changes what outlives its batch", E);
    else
      write(*L, Value::unknown("is written by `" + X.Name + "`, which isn't followed", E), E);
  }
}

/// `if (flipped) x = -x;` of an `x` that is another tensor's handle: where the branch isn't taken, it stays that.
void Interpreter::keepCopies(ir::StmtId Id) {
  using ir::StmtKind;
  StmtKind Kind = P.Code.Stmts[Id].Kind;
  if (Copies.empty() || (Kind != StmtKind::If && Kind != StmtKind::Loop && Kind != StmtKind::RangeFor &&
                         Kind != StmtKind::Switch && Kind != StmtKind::Try))
    return;
  auto [It, New] = Rebinds.try_emplace(Id);
  if (New)
    P.forEachExprIn(Id, [&, &Found = It->second](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Kind == ExprKind::Assign && X.Args[0] != None && P.Code.Exprs[X.Args[0]].Kind == ExprKind::Ref)
        Found.insert(P.Code.Exprs[X.Args[0]].Var);
    });
  for (ir::VarId V : It->second)
    if (Copies.count(V)) {
      Value Of = read(Alias.at(V), None);
      Of.AssignedBy = None;
      Current[Location{V, {}}] = Of;
    }
}

/// What stands where something is written: `x[0]` and `x` of `x[0].zero_()`, `x.slice(1, 0, 2) = y`.
const std::set<ir::ExprId> &Interpreter::writeTargets() const {
  if (Targets)
    return *Targets;
  Targets.emplace();
  auto Add = [&](ir::ExprId E) {
    while (E != None && Targets->insert(E).second) {
      const ir::Expr &X = P.Code.Exprs[E];
      bool Wraps = X.Kind == ExprKind::Cast || X.Kind == ExprKind::Unary || X.Kind == ExprKind::Construct;
      E = X.Object != None ? X.Object : Wraps && !X.Args.empty() ? X.Args[0] : None;
    }
  };
  for (const ir::Expr &X : P.Code.Exprs) {
    if (X.Kind == ExprKind::Assign)
      Add(X.Args[0]);
    else if (changesInPlace(X))
      Add(X.Object);
  }
  return *Targets;
}

/// Whether `E` is a part of a tensor, by number, as a view, or through an accessor.
bool Interpreter::withinTensor(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Container) // another tensor of a list
    return false;
  auto [Of, Part] = partOfVar(E);
  return Of != None && Part && (P.Code.typeOf(Of).Kind == TypeKind::Tensor || Views.count(Of));
}

/// All rows that were brought together, written into this rank's: `first.copy_(output)` takes its own of them, from the
/// next run on.
bool Interpreter::takesOwn(ir::ExprId E, const Value &Into) {
  const ir::Expr &X = P.Code.Exprs[E];
  ir::ExprId From = X.Kind == ExprKind::Assign && X.Name == "="                                    ? X.Args[1]
                    : X.Kind == ExprKind::Call && X.Name == "at::Tensor::copy_" && !X.Args.empty() ? X.Args[0]
                                                                                                   : None;
  if (From == None || !P.Code.Exprs[From].Where.Editable || Into.Dim != 0 || Into.Woven || Into.Picked)
    return false;
  const bool New = OwnRows.insert(From).second;
  Restart |= New;
  return New;
}

/// Some rows of what a step's variable holds are written to by their number among all, `target[i] = reward`: it holds
/// all of them, from the next run on, where rows are brought together.
bool Interpreter::writtenByNumber(const Location &L) {
  const ir::ExprId Made = L.Path.empty() && taken(By.Together) && trainsHere() ? madeRows(L.Root) : None;
  if (Made != None)
    neededWhole(Made);
  return Restart;
}

/// `Written` lies now where `Target` does, a tensor or a part of one. This rank's rows are no longer followed if it is
/// of other rows, or lies in rows that were picked by their number.
void Interpreter::wroteInto(ir::ExprId Target, const Value &Written, ir::ExprId E) {
  ir::ExprId Of = P.unconverted(Target);
  while (Of != None && P.Code.Exprs[Of].Kind != ExprKind::Ref && P.Code.Exprs[Of].Kind != ExprKind::Field) {
    const ir::Expr &X = P.Code.Exprs[Of];
    if (StringRef(X.Name).ends_with("::grad")) // no part of it
      return;
    Of = X.Object == None ? None : P.unconverted(X.Object);
  }
  std::optional<Location> L = Of == None ? std::nullopt : lvalue(Of);
  if (!L)
    return;
  const bool Itself = Of == P.unconverted(Target);
  if (auto View = Views.find(L->Root); View != Views.end() && L->Path.empty() && !View->second.empty())
    L = *View->second.begin();
  else if (Itself)
    return; // written as a whole
  if (read(*L, E).Kind != Placement::Sharded)
    return;
  const bool Elements = P.Code.type(Of).Kind != TypeKind::Tensor; // through an accessor or a pointer
  if (Elements || (!Itself && Last[Target].Kind == Placement::Unknown)) {
    if (!writtenByNumber(*L))
      write(*L, Value::unknown("is changed in some of its rows", E), E);
  } else if (Written.Kind == Placement::Unknown)
    write(*L, Written, E);
  else if (Written.replicated() && Written.AllRows && Written.Rank != 0 && !takesOwn(E, read(*L, E)))
    write(*L, Value::unknown("is overwritten with rows of all ranks", E), E);
}

ir::ExprId pointee(const Program &P, ir::ExprId Address) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Address)];
  return X.Kind == ExprKind::Call && StringRef(X.Name).starts_with("at::Tensor") &&
                 StringRef(X.Name).contains("data_ptr")
             ? X.Object
             : None;
}

/// `*loss.data_ptr<float>()`, `sums.data_ptr<float>()[0]`, also by the pointer's name: a number of what is reducible,
/// or of the row that a fold is at.
std::optional<Value> Interpreter::behind(ir::ExprId E, ir::ExprId Pointer, ir::ExprId Number) {
  Pointer = P.unconverted(Pointer);
  if (Pointer == None)
    return std::nullopt;
  if (const ir::Expr &Named = P.Code.Exprs[Pointer]; Named.Kind == ExprKind::Ref && Named.Var != None)
    if (ir::ExprId Made = assignedBy({Named.Var, {}}); Made != None)
      Pointer = P.unconverted(Made);
  const ir::ExprId Tensor = pointee(P, Pointer);
  Value V = Tensor == None ? Value() : eval(Tensor);
  V.Batch = None;
  if (Tensor != None && Number != None && ofRow(Number, V)) {
    if (V.Rank < 0 && P.Code.Exprs[P.unconverted(Number)].Kind == ExprKind::Ref)
      note("assumed-ranks", Pointer, V,
           "is read through a pointer, and is taken to have one number for each row; make sure of that");
    return Value::of(Placement::Own, E);
  }
  if (Tensor != None && V.Kind == Placement::Sharded && !ofOneRank())
    note("row-loop", E, V, "reads this rank's rows through a pointer, by the numbers of all");
  return Tensor != None && V.reducible() ? std::optional(V) : std::nullopt;
}

/// `file.write(reinterpret_cast<const char *>(&x), sizeof(x))`, `fwrite(t.data_ptr(), …)`: prints what lies there.
void Interpreter::writesBytes(ir::ExprId Address) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Address)];
  ir::ExprId Tensor = pointee(P, Address);
  ir::ExprId Of = Tensor != None                               ? Tensor
                  : X.Kind == ExprKind::Unary && X.Name == "&" ? X.Args[0]
                  : X.Kind == ExprKind::Ref                    ? P.unconverted(Address)
                                                               : None;
  if (Of == None)
    return;
  notWhole("its loop prints", Of);
  Value V = eval(Of);
  if (V.replicated() || V.Kind == Placement::Own || (Tensor != None && gathered(Tensor, V)))
    return;
  // `float value = loss.item<float>(); fwrite(&value, …)`
  if (broughtWhereSet(V))
    return;
  note("rank-local-use", Of, V, "is written, but is " + inWords(V));
}

/// Rows whose address goes to a function that isn't seen: it finds this rank's there.
void Interpreter::passesAddress(const ir::Expr &X, ir::ExprId Address) {
  StringRef Name = X.Name;
  ir::ExprId Tensor = pointee(P, Address);
  if (Tensor == None || X.Kind != ExprKind::Call || X.Object != None || Name.starts_with("std::") ||
      Name.starts_with("mem"))
    return;
  if (Value V = eval(Tensor); !V.replicated() && V.Kind != Placement::Own)
    note("rank-local-use", Tensor, V, "is passed to `" + X.Name + "`, but is " + inWords(V));
}

} // namespace migrate
