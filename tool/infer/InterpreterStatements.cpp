//===- InterpreterStatements.cpp - Control flow ---------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

Interpreter::State Interpreter::joined(const State &A, const State &B) const {
  State Out = A;
  // A field that one side knows is, on the other, what the whole is there.
  auto WithWhole = [](Value &V, Location L, const State &Other) {
    while (!L.Path.empty()) {
      L.Path.pop_back();
      if (auto Whole = Other.find(L); Whole != Other.end()) {
        if (!Whole->second.replicated())
          V = join(V, Whole->second);
        return;
      }
    }
  };
  for (const auto &[L, V] : B) {
    auto [It, New] = Out.try_emplace(L, V);
    if (New)
      WithWhole(It->second, L, A);
    // What only one side has written was replicated on the other: constants, arguments, members. A tensor that was
    // only declared holds nothing that could disagree.
    if (New) {
      const ir::Type &T = P.Code.typeOf(L.Root);
      if (T.Kind != TypeKind::Tensor && !Depths.count(L.Root))
        It->second = join(Value::of(Placement::Replicated), It->second);
    } else {
      It->second = join(It->second, V);
    }
  }
  for (auto &[L, V] : Out)
    if (!L.Path.empty() && !B.count(L))
      WithWhole(V, L, B);
  for (auto &[L, V] : Out)
    if (!B.count(L) && !Depths.count(L.Root) && P.Code.typeOf(L.Root).Kind != TypeKind::Tensor)
      V = join(V, Value::of(Placement::Replicated));
  return Out;
}

bool Interpreter::sameState(const State &A, const State &B) const {
  if (A.size() != B.size())
    return false;
  for (auto I = A.begin(), J = B.begin(); I != A.end(); ++I, ++J)
    if (I->first != J->first || !I->second.same(J->second))
      return false;
  return true;
}

/// A statement that is a call of what isn't followed: whatever it does with rows, it does with this rank's.
void Interpreter::handedOn(ir::ExprId E, const Value &V) {
  if (E == None || V.Kind != Placement::Unknown || P.Code.Exprs[E].Kind != ExprKind::Call)
    return;
  const ir::Expr &X = P.Code.Exprs[E];
  for (const char *Known : {"at::", "torch::", "c10::", "accelerate::", "std::"})
    if (StringRef(X.Name).starts_with(Known))
      return;
  if (!P.bodies(X).empty())
    return;
  bool Whole = X.Object == None;
  for (ir::ExprId Arg : X.Args)
    if (const Value &Given = Last[Arg]; !Given.replicated())
      Whole &= gathered(Arg, Given);
  if (!Whole)
    demandReplicated(E, V, "handed on");
}

void Interpreter::exec(ir::StmtId Id) {
  if (Id == None || Dead || Restart)
    return;
  const ir::Stmt &S = P.Code.Stmts[Id];
  keepCopies(Id);
  const uint32_t Before = InHand;
  if (S.Kind != StmtKind::Decl)
    Unpacked = None;
  execKind(Id, S);
  const bool Chooses =
      llvm::is_contained({StmtKind::If, StmtKind::Loop, StmtKind::RangeFor, StmtKind::Try, StmtKind::Switch}, S.Kind);
  if (Chooses && InHand != Before) // which way was gone isn't known
    InHand = 0;
}

void Interpreter::execKind(ir::StmtId Id, const ir::Stmt &S) {
  switch (S.Kind) {
  case StmtKind::Block:
  case StmtKind::Threads:
  case StmtKind::Other: {
    int Before = NoGrads;
    Threads += S.Kind == StmtKind::Threads;
    for (ir::StmtId Child : S.Children)
      exec(Child);
    Threads -= S.Kind == StmtKind::Threads;
    if (S.Kind == StmtKind::Block)
      NoGrads = Before;
    return;
  }
  case StmtKind::Expr:
    Statements.insert(S.Value);
    handedOn(S.Value, eval(S.Value));
    if (S.Value != None && throws(P.Code.Exprs[S.Value]) && Tries > 0) // what a handler reads isn't followed
      P.forEachExpr(S.Value, [&](ir::ExprId Made) {
        if (P.Code.Exprs[Made].Kind == ExprKind::Construct || P.Code.Exprs[Made].Kind == ExprKind::List)
          for (ir::ExprId Arg : P.Code.Exprs[Made].Args)
            if (Arg != None && (numeric(Arg) || P.Code.type(Arg).Kind == TypeKind::Tensor) && Last.count(Arg))
              demandReplicated(Arg, Last[Arg], "thrown");
      });
    if (S.Value != None && (P.Code.Exprs[S.Value].NoReturn || throws(P.Code.Exprs[S.Value])))
      Dead = true;
    return;
  case StmtKind::Decl:
    declare(S.Var, S.Value, Id);
    if (S.Value != None && !StringRef(P.Code.Exprs[S.Value].Name).starts_with("part"))
      Unpacked = S.Value; // once, also where it writes to what it is given
    return;
  case StmtKind::If:
    execIf(S, Id);
    return;
  case StmtKind::Loop:
  case StmtKind::RangeFor:
    execLoop(Id);
    return;
  case StmtKind::Try:
    execTry(S);
    return;
  case StmtKind::Switch:
    execSwitch(Id);
    return;
  case StmtKind::Return: {
    Frame &F = Frames.back();
    const ir::Expr *Given = S.Value == None ? nullptr : &P.Code.Exprs[S.Value];
    const ir::TypeId Result = P.Code.Functions[F.Function].Result;
    const bool Itself = Given && Given->Kind == ExprKind::Unary && Given->Name == "*" && // `return *this;`
                        P.Code.Exprs[Given->Args[0]].Kind == ExprKind::This && Result != None &&
                        P.Code.Types[Result].Reference;
    Value V = !Given || Itself ? Value::of(Placement::Replicated, S.Value) : eval(S.Value);
    underRecomputed(V);
    if (V.reducible() && CoerceAtReturn.count(S.Value))
      V = demandReplicated(S.Value, V, "returned");
    // A sum of this rank's at one return, the ranks' at another: brought together at both.
    auto Sum = [](const Value &V) { return V.Kind == Placement::Partial || V.Kind == Placement::Extent; };
    if (F.Returned && S.Value != None && numeric(S.Value) &&
        ((Sum(V) && F.Result.Kind == Placement::Replicated) || (Sum(F.Result) && V.Kind == Placement::Replicated)))
      for (ir::ExprId E : P.returned(F.Function))
        Restart |= CoerceAtReturn.insert(E).second;
    if (Divergent > F.Apart && S.Value != None && (V.replicated() || V.reducible()) &&
        (numeric(S.Value) || P.Code.type(S.Value).Kind == TypeKind::Tensor)) // other ranks return something else
      V = Value::unknown(SetApart, S.Value);
    F.Result = F.Returned ? join(F.Result, V) : V;
    const std::vector<Value> *Made = S.Value == None ? nullptr : partsOf(S.Value);
    if (!F.Returned) {
      F.Parts = Made ? *Made : std::vector<Value>();
    } else if (!Made || Made->size() != F.Parts.size()) {
      F.Parts.clear();
    } else {
      for (size_t I = 0; I != Made->size(); ++I)
        F.Parts[I] = join(F.Parts[I], (*Made)[I]);
    }
    // An object by its fields; where several returns don't have them in common, it is what is true of all of them.
    std::optional<Location> L = S.Value == None ? std::nullopt : lvalue(S.Value);
    if (!L && S.Value != None && P.Code.Exprs[P.unconverted(S.Value)].Kind == ExprKind::Construct)
      L = lvalue(P.unconverted(S.Value)); // within another kind of pointer
    State Fields = L ? fieldsAt(*L, S.Value) : S.Value == None ? State() : fieldsMade(S.Value);
    // What isn't named among them is as the object is, not as the sum of its fields.
    if (L && !Fields.empty() && P.Code.type(S.Value).Own)
      if (auto Whole = Current.find(*L); Whole != Current.end())
        Fields[Location{None, {}}] = Whole->second;
    if (V.Nothing) { // `return std::nullopt;`: what is given elsewhere is what there is
      Fields = F.Fields;
    } else if (F.Gives) {
      const bool Same = Fields.size() == F.Fields.size() &&
                        llvm::all_of(Fields, [&](const auto &Field) { return F.Fields.count(Field.first) != 0; });
      for (auto &[Field, Value] : Fields)
        if (Same)
          Value = join(F.Fields.at(Field), Value);
      if (!Same)
        Fields.clear();
    }
    F.Fields = std::move(Fields);
    F.Gives |= !V.Nothing;
    F.Returned = true;
    for (ir::StmtId Destroyed : S.Children)
      exec(Destroyed);
    Frames.back().Returns.push_back(Current);
    for (const Loop &L : Loops)
      if (L.Mode == LoopMode::Whole && L.Statement != None && R.FunctionOf.at(L.Statement) == Frames.back().Function)
        notWhole("it returns from its loop", S.Value);
    Dead = true;
    return;
  }
  case StmtKind::Goto: // what follows may run or not, as behind the `if` that it stands in
    notWhole("it jumps out of what it does", None);
    return;
  case StmtKind::Break:
  case StmtKind::Continue:
    for (ir::StmtId Destroyed : S.Children)
      exec(Destroyed);
    if (!Loops.empty()) {
      size_t At = Loops.size() - 1;
      while (S.Kind == StmtKind::Continue && At > 0 && Loops[At].Mode == LoopMode::Switch)
        --At; // `continue` in a switch means the loop around it
      Loop &L = Loops[At];
      if (L.Mode == LoopMode::Whole && S.Kind == StmtKind::Break)
        notWhole("it leaves its loop early", None);
      (S.Kind == StmtKind::Break ? L.Exits : L.Nexts).push_back(Current);
      Dead = true;
    }
    return;
  }
}

/// The tensor variable that `E` is a plain copy of, or None.
ir::ExprId Interpreter::copied(ir::ExprId E) const {
  while (true) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (P.Code.type(E).Kind != TypeKind::Tensor)
      return None;
    if (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field)
      return E;
    bool Passes = ((X.Kind == ExprKind::Construct || X.Kind == ExprKind::Cast) && X.Args.size() == 1) ||
                  X.Name == "std::move" || X.Name == "std::forward";
    if (!Passes || X.Args.empty() || X.Args[0] == None)
      return None;
    E = X.Args[0];
  }
}

/// Whether an expression is a member, or a member's, of what a call gives.
bool Interpreter::ofCall(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Kind != ExprKind::Field || X.Object == None)
    return false;
  const ExprKind Of = P.Code.Exprs[P.unconverted(X.Object)].Kind;
  return Of == ExprKind::Call || Of == ExprKind::Construct || ofCall(X.Object);
}

/// Whether an expression is a member of what a call gives by value, `step(batch).first`: it has no place of its own.
bool Interpreter::ofTemporary(ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Kind != ExprKind::Field || X.Object == None)
    return false;
  const ir::Expr &Of = P.Code.Exprs[P.unconverted(X.Object)];
  const bool Made = (Of.Kind == ExprKind::Call || Of.Kind == ExprKind::Construct) && Of.Var == None;
  return (Made && !lvalue(X.Object)) || ofTemporary(X.Object);
}

/// A variable is declared here.
void Interpreter::begins(ir::VarId V) {
  Depths[V] = Depth;
  BegunUnder[V] = Divergent;
}

void Interpreter::declare(ir::VarId V, ir::ExprId Init, ir::StmtId S) {
  if (P.Code.Vars[V].Global) { // static: made once, and outlives every loop
    Depths[V] = -1;
    if (Current.count(Location{V, {}})) { // what it was made of was seen, but maybe not for good
      if (Recording && Init != None)
        eval(Init);
      return;
    }
  } else {
    begins(V);
  }
  const ir::Type &T = P.Code.typeOf(V);
  unname(V);
  OwnPlaces.erase(V);
  PointsTo.erase(Location{V, {}});
  Current.erase(Location{V, {}});
  NoGrads += StringRef(T.Name).ends_with("NoGradGuard") || StringRef(T.Name).ends_with("InferenceMode");
  if (Init == None) {
    Current[Location{V, {}}] = Value::of(Placement::Zero);
    return;
  }
  const ir::Expr &X = P.Code.Exprs[Init];
  if (T.Reference) {
    if (isInput(Init))
      readsInput(Init);
    const bool Part = T.Kind == TypeKind::Tensor && isPart(P.unconverted(Init)); // `const auto &first = x[0]`
    if (std::optional<Location> L = lvalue(Init); L && !Part && !ofTemporary(Init)) {
      Value Named = eval(Init);
      if (itemOfRows(Init)) { // `auto& first = batch[0]`
        Current[Location{V, {}}] = Named;
        return;
      }
      Alias[V] = *L;
      if (ofContainer(Init))
        Elements.insert(V);
      if (!T.Const && placedByOwn(P.unconverted(Init)))
        OwnPlaces.insert(V);
      return;
    }
    if (!T.Const)
      Elsewhere.insert(V);
  }
  points(Location{V, {}}, Init);
  if (X.Kind == ExprKind::Unary && X.Name == "&" && placedByOwn(X.Args[0])) // `int *flag = &seen[label]`
    OwnPlaces.insert(V);
  if (StringRef(T.Name).starts_with("std::reference_wrapper<"))
    if (std::optional<Location> L = lvalue(P.unconverted(Init))) {
      eval(Init);
      Alias[V] = *L;
      return;
    }
  if (std::optional<Location> Base = viewed(Init); Base && Base->Root != V)
    Views[V] = {*Base};
  if (T.Kind == TypeKind::Container && holdsTensors(T))
    keepsNames(V, Init);
  // A tensor is a reference: what is written into its copy is written into it.
  if (ir::ExprId From = copied(Init); T.Kind == TypeKind::Tensor && From != None)
    if (std::optional<Location> L = lvalue(From); L && L->Root != V && !itemOfRows(From) && !ofTemporary(From)) {
      eval(Init);
      Alias[V] = *L;
      Copies[V] = Init;
      return;
    }
  Value Made;
  if (X.Kind == ExprKind::Construct)
    if (ir::FuncId F = P.callee(X); F != None) {
      // An object of the project's own: its constructor writes the fields.
      Made = inlined(Init, X, F, Location{V, {}});
      if (X.Args.empty()) // what it leaves alone is empty
        Current.try_emplace(Location{V, {}}, Value::of(Placement::Zero, Init));
      return;
    }
  Made = eval(Init);
  // `double total = 0`, `std::vector<float> losses;`, `torch::Tensor loss;`
  if (X.Kind == ExprKind::Construct && X.Args.empty() && !Made.Nothing)
    Made = Value::of(Placement::Zero, Init);
  Made = asSet(Init, std::move(Made), "changed");
  Made.AssignedBy = Init;
  Current[Location{V, {}}] = Made;
  copyObject(Location{V, {}}, Init);
  ir::ExprId Call = Init;
  while (P.Code.Exprs[Call].Kind == ExprKind::Construct && P.Code.Exprs[Call].Args.size() == 1 &&
         P.Code.Exprs[Call].Var == None)
    Call = P.Code.Exprs[Call].Args[0];
  if (auto It = Returned.find(Call); It != Returned.end())
    for (const auto &[Field, Value] : It->second)
      Current[Location{V, Field.Path}] = Value;
}

} // namespace migrate
