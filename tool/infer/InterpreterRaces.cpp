//===- InterpreterRaces.cpp - Lists that several threads fill -------------===//
//
// Workers that put what they found into one list, under a lock, put it there in the order in which they end: another
// one in each process, even of equal items. Rows that are cut from such a list are other rows on each rank.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;

namespace migrate {

namespace {

/// A function that several threads run at once, or that one of those calls.
struct Runs {
  ir::FuncId Function;
  bool Shares; ///< whether they all have the same `this`
  auto operator<=>(const Runs &) const = default;
};

class Races {
  const Program &P;
  std::map<ir::VarId, ir::ExprId> Raced;          ///< where they are filled
  std::map<ir::VarId, std::set<ir::VarId>> Given; ///< by parameter, `std::ref(results)`
  std::vector<Runs> Next;

  /// Whether items that are put into it in another order lie in another order, and aren't tasks.
  static bool keepsOrder(const ir::Type &T) {
    const StringRef Name = T.Name, Outer = Name.take_until([](char C) { return C == '<'; });
    return !Outer.ends_with("map") && !Outer.ends_with("set") && !Name.starts_with("std::vector<std::thread") &&
           !Name.contains("std::function<") && !Name.contains("std::packaged_task<") && !Name.contains("std::future<");
  }

  /// The lists of all threads that `E` may name in `F`; none of a thread's own.
  std::set<ir::VarId> shared(ir::ExprId E, const Runs &F) const {
    const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
    if (X.Kind == ExprKind::Unary && X.Name == "*" && X.Args[0] != None)
      return shared(X.Args[0], F);
    if (X.Var == None || (X.Kind != ExprKind::Ref && X.Kind != ExprKind::Field))
      return {};
    if (X.Kind == ExprKind::Field)
      return isShared(X.Object, F) ? std::set{X.Var} : std::set<ir::VarId>();
    if (auto Passed = Given.find(X.Var); Passed != Given.end())
      return Passed->second;
    const ir::Var &V = P.Code.Vars[X.Var];
    return V.Function != F.Function || V.Global ? std::set{X.Var} : std::set<ir::VarId>();
  }

  /// Whether an object is the same one in all threads.
  bool isShared(ir::ExprId Object, const Runs &F) const {
    if (Object == None || P.Code.Exprs[P.unconverted(Object)].Kind == ExprKind::This)
      return F.Shares;
    return !shared(Object, F).empty();
  }

  void collects(ir::ExprId E, const Runs &F) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Call && X.Object != None && isCollecting(X.Name) && keepsOrder(P.Code.type(X.Object)))
      for (ir::VarId List : shared(X.Object, F))
        Raced.emplace(List, E);
  }

  /// What `std::thread(f, std::ref(x))` and the like start.
  void start(llvm::ArrayRef<ir::ExprId> Args) {
    for (size_t I = 0; I != Args.size(); ++I) {
      if (Args[I] == None)
        continue;
      const ir::Expr &Arg = P.Code.Exprs[P.unconverted(Args[I])];
      if (Arg.Name == "std::bind")
        return start(Arg.Args);
      std::vector<ir::FuncId> Named;
      functionsNamed(P, Args[I], Named);
      for (ir::FuncId F : Named) {
        const ir::Function &Fn = P.Code.Functions[F];
        const bool Method = Arg.Kind != ExprKind::Lambda && !Fn.Record.empty();
        const ir::ExprId Of = I + 1 < Args.size() ? Args[I + 1] : None;
        Next.push_back({F, !Method || (Of != None && P.Code.Exprs[P.unconverted(Of)].Kind == ExprKind::This)});
        for (size_t Param = 0; Param < Fn.Params.size() && I + 1 + Method + Param < Args.size(); ++Param)
          pass(Fn.Params[Param], Args[I + 1 + Method + Param]);
      }
      if (!Named.empty())
        return;
    }
  }

  /// `std::ref(results)`, `&results`: another name of it.
  void pass(ir::VarId Param, ir::ExprId Arg) {
    if (Arg == None)
      return;
    const ir::Expr &X = P.Code.Exprs[P.unconverted(Arg)];
    const bool Names = X.Name == "std::ref" || (X.Kind == ExprKind::Unary && X.Name == "&");
    if (!Names || X.Args.empty() || X.Args[0] == None)
      return;
    if (const ir::Expr &List = P.Code.Exprs[P.unconverted(X.Args[0])];
        (List.Kind == ExprKind::Ref || List.Kind == ExprKind::Field) && List.Var != None)
      Given[Param].insert(List.Var);
  }

  static bool startsOne(const Program &P, const ir::Expr &X) {
    const StringRef Type = X.Type == None ? "" : StringRef(P.Code.Types[X.Type].Name);
    return X.Name == "std::async" ||
           (X.Kind == ExprKind::Construct && !X.Args.empty() && (Type == "std::thread" || Type == "std::jthread"));
  }

  /// `at::parallel_for(0, n, 1, f)`, `std::for_each(std::execution::par, first, last, f)`
  static bool runsParallel(const Program &P, const ir::Expr &X) {
    return X.Name == "at::parallel_for" || X.Name == "at::launch" || X.Name == "tbb::parallel_for" ||
           (StringRef(X.Name).starts_with("std::") && !X.Args.empty() && X.Args[0] != None &&
            StringRef(P.Code.type(X.Args[0]).Name).contains("execution::"));
  }

  /// Whether a method is one of a class that keeps a list of threads, a pool: it runs what it is given in one of them.
  bool ofPool(ir::FuncId F) const {
    const ir::Function &Fn = P.Code.Functions[F];
    return !Fn.Record.empty() && llvm::any_of(P.Code.Vars, [&](const ir::Var &V) {
      const StringRef Usr = V.Usr;
      const size_t Class = Usr.find("@FI@");
      return V.Field && Class != StringRef::npos && V.Type != None &&
             StringRef(P.Code.Types[V.Type].Name).starts_with("std::vector<std::thread") &&
             StringRef(Fn.Usr).starts_with((Usr.take_front(Class) + "@F").str());
    });
  }

  void startedBy(const ir::Expr &X) {
    const bool Collected = X.Kind == ExprKind::Call && X.Object != None && isCollecting(X.Name);
    if (Collected && StringRef(P.Code.type(X.Object).Name).starts_with("std::vector<std::thread"))
      start(X.Args); // `threads.emplace_back(f, x)`
    // `jobs.push_back(std::async(f))`, `threads[i] = std::thread(f)`
    const bool Placed = X.Kind == ExprKind::Assign && X.Args.size() == 2 && X.Args[0] != None &&
                        P.Code.Exprs[P.unconverted(X.Args[0])].Kind != ExprKind::Ref &&
                        P.Code.Exprs[P.unconverted(X.Args[0])].Kind != ExprKind::Field;
    if (Collected || Placed)
      for (ir::ExprId Arg : X.Args)
        if (Arg != None)
          P.forEachExpr(Arg, [&](ir::ExprId Sub) {
            if (const ir::Expr &Starts = P.Code.Exprs[Sub]; startsOne(P, Starts))
              start(Starts.Args);
          });
    if (X.Kind != ExprKind::Call)
      return;
    const ir::FuncId Called = P.callee(X);
    if (runsParallel(P, X) || (Called != None && ofPool(Called)))
      start(X.Args); // `pool.enqueue([&] { … })`
  }

public:
  explicit Races(const Program &P) : P(P) {}

  std::map<ir::VarId, ir::ExprId> lists() {
    for (const ir::Expr &X : P.Code.Exprs)
      startedBy(X);
    std::set<Runs> Seen;
    while (!Next.empty()) {
      const Runs F = Next.back();
      Next.pop_back();
      if (P.Code.Functions[F.Function].Body == None || !Seen.insert(F).second)
        continue;
      P.forEachExprIn(P.Code.Functions[F.Function].Body, [&](ir::ExprId E) {
        collects(E, F);
        const ir::Expr &X = P.Code.Exprs[E];
        if (X.Kind == ExprKind::Call)
          for (ir::FuncId Called : P.bodies(X))
            Next.push_back({Called, isShared(X.Object, F)});
      });
    }
    for (ir::StmtId S = 0; S != P.Code.Stmts.size(); ++S) // OpenMP's
      if (P.Code.Stmts[S].Kind == StmtKind::Threads)
        P.forEachExprIn(S, [&](ir::ExprId E) {
          const ir::Expr &X = P.Code.Exprs[E];
          const ir::Expr *List = X.Object == None ? nullptr : &P.Code.Exprs[P.unconverted(X.Object)];
          const bool Named =
              List && (List->Kind == ExprKind::Ref || List->Kind == ExprKind::Field) && List->Var != None;
          if (Named && !P.Code.Stmts[S].Where.contains(P.Code.Vars[List->Var].Decl))
            collects(E, {None, true});
        });
    for (const ir::Expr &X : P.Code.Exprs) // what is sorted lies as it does everywhere
      if (StringRef(X.Name).starts_with("std::") && StringRef(X.Name).ends_with("sort")) {
        auto Sorted = [&](ir::ExprId Sub) { Raced.erase(P.Code.Exprs[Sub].Var); };
        if (X.Object != None)
          P.forEachExpr(X.Object, Sorted);
        for (ir::ExprId Arg : X.Args)
          if (Arg != None)
            P.forEachExpr(Arg, Sorted);
      }
    return Raced;
  }
};

} // namespace

/// Lists that several threads fill, and where one is.
const std::map<ir::VarId, ir::ExprId> &Interpreter::raced() const {
  if (!Raced)
    Raced = Races(P).lists();
  return *Raced;
}

} // namespace migrate
