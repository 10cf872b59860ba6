//===- InterpreterCounts.cpp - Numbers of rows ----------------------------===//
//
// How many rows something has is told by names: equal names, equal numbers. What the program writes for such a number,
// a batch size in a shape or a range, counts all rows, where a rank that has cut them has fewer.
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

uint32_t Interpreter::named(const std::string &Name) {
  return Names.try_emplace(Name, uint32_t(Names.size() + BatchRows + 1)).first->second;
}

uint32_t Interpreter::counted(uint32_t Name, int64_t Rows) {
  RowCounts[Name] = Rows;
  return Name;
}

/// The name of as many rows as two names are of, 0 if these may differ. What is written out, `torch::ones({8, 3})`, has
/// as many as a window of as many rows, `x.slice(0, i, i + 8)`, of which the last may have fewer.
uint32_t Interpreter::sameRows(uint32_t A, uint32_t B) const {
  if (A == B)
    return A;
  const auto OfA = RowCounts.find(A), OfB = RowCounts.find(B);
  if (OfA == RowCounts.end() || OfB == RowCounts.end() || OfA->second != OfB->second ||
      Exactly.count(A) == Exactly.count(B))
    return 0;
  return Exactly.count(A) ? B : A;
}

/// What tells how many rows lie from one place to another, the 8 of `i` and `i + 8` or `std::min(i + 8, n)`, but for
/// the last of them. None if that isn't written so.
ir::ExprId Interpreter::distance(ir::ExprId From, ir::ExprId To) const {
  const ir::Expr *X = &P.Code.Exprs[P.unconverted(To)];
  if (X->Kind == ExprKind::Ref && X->Var != None)
    if (const ir::ExprId Made = assignedBy({X->Var, {}}); Made != None)
      X = &P.Code.Exprs[P.unconverted(Made)];
  if (X->Name == "std::min" && !X->Args.empty())
    X = &P.Code.Exprs[P.unconverted(X->Args[0])];
  if (X->Kind != ExprKind::Binary || X->Name != "+" || spelled(X->Args[0]) != spelled(From))
    return None;
  return X->Args[1];
}

/// Remembers what tells a number of rows, where that is a number or a variable.
uint32_t Interpreter::toldBy(uint32_t Name, ir::ExprId Count) {
  if (Count == None)
    return Name;
  const ExprKind Kind = P.Code.Exprs[P.unconverted(Count)].Kind;
  if (std::optional<int64_t> Rows = integer(Count))
    counted(Name, *Rows);
  if (Kind == ExprKind::Ref || Kind == ExprKind::Literal)
    Lengths[Name] = Count;
  return Name;
}

/// Of what may have any number of rows: a name of its own.
uint32_t Interpreter::ownRowsName(ir::ExprId E) {
  uint32_t Name = named("e:" + std::to_string(E));
  Uncounted.insert(Name);
  return Name;
}

uint32_t Interpreter::rowsNamed(ir::ExprId Count, int Hops) {
  if (std::optional<int64_t> N = integer(Count))
    return *N < 0    ? 0
           : *N == 1 ? NoRows
           : P.Code.Exprs[P.unconverted(Count)].Kind == ExprKind::Literal && isBatchSize(Count)
               ? *Exactly.insert(counted(named("b:" + std::to_string(*N)), *N))
                      .first // may be a number of features by chance
           : isBatchSize(Count) ? BatchRows
                                : *Exactly.insert(toldBy(named("n:" + std::to_string(*N)), Count)).first;
  // `x.size(0)`: the rows of x.
  const ir::Expr *X = &P.Code.Exprs[P.unconverted(Count)];
  if (X->Kind == ExprKind::Ref && Hops > 0)
    if (ir::ExprId Made = assignedBy({X->Var, {}}); Made != None && P.Code.Exprs[Made].Kind == ExprKind::Call)
      return rowsNamed(Made, Hops - 1);
  StringRef Name = X->Name;
  if (X->Kind == ExprKind::Call && X->Object != None && Name.ends_with("::size") && X->Args.size() == 1 &&
      P.Code.type(X->Object).Kind == TypeKind::Tensor)
    if (std::optional<int64_t> Dim = integer(X->Args[0])) { // positions, features: nothing that a batch has rows of
      const Value &Of = Last[X->Object];
      return *Dim == (Of.Kind == Placement::Sharded ? Of.Dim : 0) ? Of.Rows : NoRows;
    }
  if (X->Kind == ExprKind::Call && X->Object != None && Name.starts_with("std::") && Name.ends_with("::size") &&
      !stepLoop())
    if (lengthNamed(X->Object) == BatchRows)
      return BatchRows;
  return isBatchSize(Count) ? BatchRows : toldBy(named("n:" + spelled(Count)), Count);
}

/// How many numbers `torch::arange(n)` has, from zero on; None of anything else. `Through` looks behind a name.
ir::ExprId Interpreter::rangeOf(ir::ExprId E, bool Through) const {
  const ir::Expr &X = P.Code.Exprs[Through ? madeAs(E) : P.unconverted(E)];
  const bool FromZero = X.Kind == ExprKind::Call && !X.Args.empty() && X.Args[0] != None &&
                        StringRef(X.Name).rsplit("::").second == "arange" &&
                        !(X.Args.size() > 1 && X.Args[1] != None && P.Code.type(X.Args[1]).number());
  return FromZero ? P.unconverted(X.Args[0]) : None;
}

/// What a name was given, if `E` is one.
ir::ExprId Interpreter::madeAs(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
  const ir::ExprId Made = X.Kind == ExprKind::Ref && X.Var != None ? assignedBy({X.Var, {}}) : None;
  return Made == None ? E : P.unconverted(Made);
}

/// `torch::arange(x.size(0))`: the numbers of a batch's rows, or of this rank's.
bool Interpreter::numbersRows(ir::ExprId E) const {
  const ir::ExprId Of = rangeOf(E, /*Through=*/true);
  if (Of == None)
    return false;
  const ir::Expr &Count = P.Code.Exprs[madeAs(Of)];
  return Count.Kind == ExprKind::Call && Count.Object != None && StringRef(Count.Name).ends_with("::size") &&
         Count.Args.size() == 1 && integer(Count.Args[0]) == 0;
}

/// `q.index({torch::arange(batch_size), actions})`: the range tells of each row one, and isn't a part of a batch.
bool Interpreter::picksOfEachRow(const ir::Expr &X, ir::ExprId Operand) const {
  if (X.Kind != ExprKind::Call || !StringRef(X.Name).ends_with("::index") ||
      rangeOf(Operand, /*Through=*/false) == None)
    return false;
  const std::vector<ir::ExprId> Items = indexItems(X);
  return Items.size() > 1 && P.unconverted(Items[0]) == P.unconverted(Operand);
}

/// Whether a number is that of a loader's batch's rows, all of them where they are counted together.
bool Interpreter::allRowsCounted(ir::ExprId Count) {
  return !stepLoop() && P.Code.type(Count).Kind == TypeKind::Integer &&
         (BroughtTogether.count(Count) || countsRows(Count));
}

/// `std::vector<float>(all.begin() + first, all.begin() + last)`: as many as lie between. 0 of anything else.
uint32_t Interpreter::takenBetween(const ir::Expr &Made) {
  if (Made.Kind != ExprKind::Construct || Made.Args.size() < 2)
    return 0;
  ir::ExprId Lists[2], Numbers[2];
  for (size_t I : {0, 1}) {
    if (Made.Args[I] == None)
      return 0;
    const ir::Expr &X = P.Code.Exprs[P.unconverted(Made.Args[I])];
    std::vector<ir::ExprId> Sides = X.Args;
    if (X.Object != None)
      Sides.insert(Sides.begin(), X.Object);
    if (!StringRef(X.Name).ends_with("+") || Sides.size() != 2)
      return 0;
    Lists[I] = Sides[0];
    Numbers[I] = Sides[1];
  }
  if (!StringRef(P.Code.Exprs[P.unconverted(Lists[0])].Name).ends_with("begin") ||
      spelled(Lists[0]) != spelled(Lists[1]))
    return 0;
  const uint32_t Window = named("p:between" + spelled(Numbers[0]) + ";" + spelled(Numbers[1]));
  Windows.insert(Window);
  return toldBy(Window, distance(Numbers[0], Numbers[1]));
}

/// A list that is filled in one place: with every other that is filled there, as long as the rounds of its loop.
uint32_t Interpreter::lengthNamed(ir::ExprId List, int Hops) {
  List = P.unconverted(List);
  const ir::Expr &X = P.Code.Exprs[List];
  // `std::vector<float>(n, 1)`, `std::vector<float>(all.begin() + first, all.begin() + last)`
  auto Made = [&](const ir::Expr &Of) {
    const bool Counted = Of.Kind == ExprKind::Construct && !Of.Args.empty() && Of.Args[0] != None &&
                         P.Code.type(Of.Args[0]).Kind == TypeKind::Integer &&
                         StringRef(P.Code.type(List).Name).starts_with("std::vector<");
    return !Counted ? takenBetween(Of) : allRowsCounted(Of.Args[0]) ? BatchRows : rowsNamed(Of.Args[0]);
  };
  if (const uint32_t Length = Made(X))
    return Length;
  if (Hops == 0)
    return 0;
  // `draw(x.size(0))`: what the function fills
  const std::vector<ir::ExprId> Given =
      X.Kind == ExprKind::Call && P.callee(X) != None ? P.returned(P.callee(X)) : std::vector<ir::ExprId>();
  if (Given.size() == 1 && P.Code.Exprs[P.unconverted(Given[0])].Kind == ExprKind::Ref)
    return lengthNamed(Given[0], Hops - 1);
  if (X.Kind != ExprKind::Ref || X.Var == None || P.Code.type(List).Kind != TypeKind::Container)
    return 0;
  // `column(weights)`: what the function was given
  const std::vector<ir::VarId> &Params = P.Code.Functions[Frames.back().Function].Params;
  if (const size_t I = llvm::find(Params, X.Var) - Params.begin(); I < Params.size() && I < Frames.back().Args.size())
    return Frames.back().Args[I] == None ? 0 : lengthNamed(Frames.back().Args[I], Hops - 1);
  if (auto Init = R.Init.find(X.Var); Init != R.Init.end())
    if (const ir::ExprId From = P.unconverted(Init->second);
        P.Code.Exprs[From].Kind == ExprKind::Call && P.callee(P.Code.Exprs[From]) != None)
      return lengthNamed(From, Hops - 1);
  if (!Filling) {
    Filling.emplace();
    for (const ir::Function &Fn : P.Code.Functions)
      P.forEachStmt(Fn.Body, [&](ir::StmtId S) {
        P.forEachExpr(P.Code.Stmts[S].Value, [&](ir::ExprId E) {
          const ir::Expr &Call = P.Code.Exprs[E];
          if (Call.Kind != ExprKind::Call || Call.Object == None || !isCollecting(Call.Name))
            return;
          auto Block = R.ParentOf.find(S);
          auto [It, New] = Filling->try_emplace(P.Code.Exprs[P.unconverted(Call.Object)].Var,
                                                Block == R.ParentOf.end() ? None : Block->second);
          if (!New)
            It->second = None; // in several places
        });
      });
  }
  auto In = Filling->find(X.Var);
  if (auto Init = R.Init.find(X.Var); In == Filling->end() && Init != R.Init.end())
    if (const uint32_t Length = Made(P.Code.Exprs[Init->second]))
      return Length;
  if (In == Filling->end() || In->second == None)
    return 0;
  ir::StmtId Loop = In->second; // of one without braces
  if (auto Around = R.ParentOf.find(Loop); P.Code.Stmts[Loop].Kind != ir::StmtKind::Loop && Around != R.ParentOf.end())
    Loop = Around->second;
  // As often as a loader's batch has rows, `while (list.size() < x.size(0))`: all of them are counted.
  bool All = false;
  if (P.Code.Stmts[Loop].Kind == ir::StmtKind::Loop)
    P.forEachExpr(P.Code.Stmts[Loop].Value, [&](ir::ExprId E) { All |= allRowsCounted(E); });
  const ir::ExprId Rounds = All ? None : roundsOf(Loop);
  return All ? BatchRows : Rounds != None ? rowsNamed(Rounds) : named("f:" + std::to_string(In->second));
}

/// How many rounds a loop makes that counts from zero by ones and runs through, `for (int i = 0; i < n; ++i)`; None of
/// any other.
ir::ExprId Interpreter::roundsOf(ir::StmtId Loop) const {
  const ir::Stmt &S = P.Code.Stmts[Loop];
  if (S.Kind != ir::StmtKind::Loop || S.Value == None || S.Children[0] == None || S.Children[1] == None)
    return None;
  auto Names = [&](ir::ExprId E, ir::VarId V) {
    const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
    return X.Kind == ExprKind::Ref && X.Var == V;
  };
  const ir::Stmt &Start = P.Code.Stmts[S.Children[0]], &Step = P.Code.Stmts[S.Children[1]];
  const ir::Expr &Condition = P.Code.Exprs[S.Value];
  if (Start.Kind != ir::StmtKind::Decl || Start.Value == None || integer(Start.Value) != 0 || Step.Value == None ||
      P.Code.Exprs[Step.Value].Kind != ExprKind::Unary || P.Code.Exprs[Step.Value].Name != "++" ||
      !Names(P.Code.Exprs[Step.Value].Args[0], Start.Var) || Condition.Kind != ExprKind::Binary ||
      Condition.Name != "<" || !Names(Condition.Args[0], Start.Var))
    return None;
  bool Through = !writesTo(S.Children[2], Start.Var);
  P.forEachStmt(S.Children[2], [&](ir::StmtId Child) {
    const ir::StmtKind Kind = P.Code.Stmts[Child].Kind;
    Through &= Kind != ir::StmtKind::Break && Kind != ir::StmtKind::Continue && Kind != ir::StmtKind::Return &&
               Kind != ir::StmtKind::Goto;
  });
  return Through ? Condition.Args[1] : None;
}

/// What names the number of all `Rows` in a size: the whole of it, or a factor, `batch * steps`. None if nothing does.
ir::ExprId Interpreter::countIn(ir::ExprId Size, uint32_t Rows) {
  if (P.Code.type(Size).Kind != TypeKind::Integer || StringRef(P.Code.Exprs[madeAs(Size)].Name).ends_with("::size"))
    return None; // it would be this rank's, were its tensor cut earlier
  const auto Count = RowCounts.find(Rows);
  if (isBatchSize(Size) || (Rows > NoRows && eval(Size).replicated() &&
                            (rowsNamed(Size) == Rows || (Count != RowCounts.end() && integer(Size) == Count->second))))
    return Size;
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Size)];
  if (X.Kind == ExprKind::Binary && X.Name == "*")
    for (ir::ExprId Factor : X.Args)
      if (const ir::ExprId Of = countIn(Factor, Rows); Of != None)
        return Of;
  return None;
}

/// Whether a local variable's name is seen at a place.
bool Interpreter::seenAt(ir::VarId V, const ir::Range &At) const {
  const auto Declared = R.DeclarationOf.find(V);
  if (Declared == R.DeclarationOf.end())
    return false;
  const ir::Stmt &S = P.Code.Stmts[Declared->second];
  if (S.Kind == ir::StmtKind::RangeFor)
    return P.Code.Stmts[S.Children[0]].Where.contains(At);
  ir::StmtId Block = Declared->second;
  do {
    auto Around = R.ParentOf.find(Block);
    Block = Around == R.ParentOf.end() ? None : Around->second;
  } while (Block != None && P.Code.Stmts[Block].Transparent);
  return Block != None && P.Code.Stmts[Block].Where.contains(At) && S.Where.End <= At.Begin;
}

/// A name for what a loader hands out, `x` or `batch.data`, that is seen where `At` stands.
ir::ExprId Interpreter::batchSeen(ir::ExprId At, uint32_t Loader) const {
  const ir::Range &Here = P.Code.Exprs[At].Where;
  for (const auto &[E, V] : Last) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (V.Kind != Placement::Sharded || V.Dim != 0 || V.Batch != Loader || P.Code.type(E).Kind != TypeKind::Tensor ||
        !X.Where.Editable)
      continue;
    const ir::Expr &Root = X.Kind == ExprKind::Field && X.Object != None ? P.Code.Exprs[X.Object] : X;
    if (Root.Kind != ExprKind::Ref || Root.Var == None || reassigned(Root.Var))
      continue;
    const std::vector<ir::VarId> &Params = P.Code.Functions[Frames.back().Function].Params;
    if (llvm::is_contained(Params, Root.Var) ? P.Code.Functions[Frames.back().Function].Where.contains(Here)
                                             : seenAt(Root.Var, Here))
      return E;
  }
  return None;
}

/// A name for this rank's rows of a batch, as they were cut, that is seen where `E` stands: by it their number is told.
ir::ExprId Interpreter::cutNamed(ir::ExprId E, uint32_t Rows) const {
  const ir::Range &At = P.Code.Exprs[E].Where;
  for (const auto &[L, V] : Current) {
    if (!L.Path.empty() || V.Kind != Placement::Sharded || V.Dim != 0 || V.Picked || V.Rows <= NoRows ||
        V.Rows != Rows || P.Code.typeOf(L.Root).Kind != TypeKind::Tensor || V.AssignedBy == None ||
        P.Code.Vars[L.Root].Function != Frames.back().Function)
      continue;
    ir::ExprId Made = V.AssignedBy; // `shard(x.slice(0, i, i + 8)).to(device)`
    while (!Cuts.count(Made) && P.Code.Exprs[Made].Kind == ExprKind::Call && P.Code.Exprs[Made].Object != None &&
           llvm::is_contained({"to", "contiguous", "clone", "detach", "cuda", "cpu"},
                              StringRef(P.Code.Exprs[Made].Name).rsplit("::").second))
      Made = P.Code.Exprs[Made].Object;
    if (!Cuts.count(Made) || !seenAt(L.Root, At))
      continue;
    for (ir::ExprId Ref = 0; Ref != P.Code.Exprs.size(); ++Ref)
      if (P.Code.Exprs[Ref].Kind == ExprKind::Ref && P.Code.Exprs[Ref].Var == L.Root &&
          P.Code.Exprs[Ref].Where.Editable)
        return Ref;
  }
  return None;
}

/// The numbers and names in what a loader is made with behind its data: its batch size is among them.
std::vector<ir::ExprId> Interpreter::batchSizes() const {
  std::vector<ir::ExprId> Sizes;
  for (const auto &[Object, Role] : R.Loaders)
    for (ir::ExprId Made : Role.Made)
      for (size_t I = P.Code.Exprs[Made].Args.size() > 1; I < P.Code.Exprs[Made].Args.size(); ++I) {
        std::set<ir::ExprId> Others; // `options.workers(2)`
        P.forEachExpr(P.Code.Exprs[Made].Args[I], [&](ir::ExprId Sub) {
          const ir::Expr &Y = P.Code.Exprs[Sub];
          if (Y.Kind == ExprKind::Call &&
              llvm::is_contained({"workers", "max_jobs", "timeout"}, StringRef(Y.Name).rsplit("::").second))
            for (ir::ExprId Number : Y.Args)
              P.forEachExpr(Number, [&](ir::ExprId Part) { Others.insert(Part); });
        });
        P.forEachExpr(P.Code.Exprs[Made].Args[I], [&](ir::ExprId Sub) {
          const ExprKind Kind = P.Code.Exprs[Sub].Kind;
          const bool Literal = Kind == ExprKind::Literal && P.Code.type(Sub).Kind == TypeKind::Integer;
          if (!Others.count(Sub) && (Literal || Kind == ExprKind::Ref || Kind == ExprKind::Field))
            Sizes.push_back(Sub);
        });
      }
  return Sizes;
}

/// Whether `E` is the number that a loader was given as its batch size: the same variable, or the same literal.
bool Interpreter::isBatchSize(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  const bool Named = X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field;
  return (Named || X.Kind == ExprKind::Literal) && llvm::any_of(batchSizes(), [&](ir::ExprId Size) {
           const ir::Expr &Y = P.Code.Exprs[Size];
           return Named ? Y.Kind != ExprKind::Literal && Y.Var == X.Var
                        : Y.Kind == ExprKind::Literal && Y.Name == X.Name;
         });
}

/// Whether so many rows, written as a number, are as many as a loader was told to put in a batch.
bool Interpreter::asManyAsBatch(uint32_t Rows) const {
  const auto Count = RowCounts.find(Rows);
  return Count != RowCounts.end() && Exactly.count(Rows) &&
         llvm::any_of(batchSizes(), [&](ir::ExprId Size) { return integer(Size) == Count->second; });
}

/// Whether a size is this rank's number of rows, or a multiple of it: `x.size(0) * x.size(1)`.
bool Interpreter::countsRows(ir::ExprId E, int Hops) {
  if (eval(E).Kind == Placement::Extent)
    return true;
  const ir::Expr &X = P.Code.Exprs[E];
  if (Hops == 0)
    return false;
  if ((X.Kind == ExprKind::Cast || X.Kind == ExprKind::Construct || X.Kind == ExprKind::List) && X.Args.size() == 1)
    return countsRows(X.Args[0], Hops);
  if (X.Kind == ExprKind::Ref) {
    ir::ExprId Made = assignedBy({X.Var, {}});
    return Made != None && countsRows(Made, Hops - 1);
  }
  if (X.Kind != ExprKind::Binary || X.Name != "*")
    return false;
  for (auto [Rows, Times] : {std::pair(X.Args[0], X.Args[1]), std::pair(X.Args[1], X.Args[0])})
    if (eval(Times).replicated() && countsRows(Rows, Hops - 1))
      return true;
  return false;
}

/// `q.index({torch::arange(q.size(0)), action})`: of each row, one.
std::optional<Value> Interpreter::ofEachRow(const ir::Expr &X, Value V) {
  std::vector<ir::ExprId> Items = indexItems(X);
  if (V.Kind != Placement::Sharded || V.Dim != 0 || Items.size() < 2 ||
      !llvm::all_of(llvm::drop_begin(Items), [&](ir::ExprId Item) {
        Value Of = eval(Item);
        return P.Code.type(Item).Kind == TypeKind::Tensor && Of.Kind == Placement::Sharded && Of.Dim == 0;
      }))
    return std::nullopt;
  if (!numbersRows(Items[0])) { // the number of all rows, written out: here this rank's are meant
    const ir::ExprId Count = rangeOf(Items[0], /*Through=*/false);
    const Value All = eval(Items[0]);
    auto Named = llvm::find_if(Items, [&](ir::ExprId Of) { return P.Code.Exprs[Of].Kind == ExprKind::Ref; });
    if (Count == None || !All.replicated() || countIn(Count, V.Rows) != Count)
      return std::nullopt;
    ir::ExprId Batch = cutNamed(Count, V.Rows);
    Batch = Batch == None && Named != Items.end() ? *Named : Batch;
    if (Batch == None)
      return std::nullopt;
    if (Recording)
      Out.BatchSizes[Count] = Batch;
  }
  V.addToRank(1 - int(Items.size()));
  V.Narrowed = true;
  return V;
}

/// `x.size(0) * 5`, several rows for each of this rank's: how many, and in `Rows` what names the number of these. None
/// of anything else.
ir::ExprId Interpreter::forEachOfRows(ir::ExprId Size, ir::ExprId &Rows) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(Size)];
  if (X.Kind != ExprKind::Binary || X.Name != "*")
    return None;
  for (size_t I : {0, 1}) {
    const ir::Expr &Each = P.Code.Exprs[P.unconverted(X.Args[1 - I])];
    if (eval(X.Args[I]).Kind == Placement::Extent && eval(X.Args[1 - I]).replicated() &&
        llvm::is_contained({ExprKind::Literal, ExprKind::Ref, ExprKind::Field}, Each.Kind)) {
      Rows = X.Args[I];
      return X.Args[1 - I];
    }
  }
  return None;
}

} // namespace migrate
