//===- InterpreterStarted.cpp - Functions that run otherwise than in turn -===//
//
// A recursive function is followed once: what it returns for rows is assumed where it calls itself, and confirmed when
// it is left. A function that a thread or task runs is followed where that is started; ranks can't meet in it. What
// LibTorch or the C library calls back is followed where that is caused.
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

static std::string recursive(const ir::Function &F) { return "passes through the recursive function `" + F.Name + "`"; }

/// A call of a function that runs already: of rows it is assumed to make rows, as where it was entered.
Value Interpreter::again(ir::ExprId E, ir::FuncId F, const std::vector<Value> &Given) {
  Value Unknown = Value::unknown(recursive(P.Code.Functions[F]), E);
  auto Entered = std::find_if(Frames.rbegin(), Frames.rend(), [&](const Frame &Of) { return Of.Function == F; });
  if (Entered == Frames.rend() || Entered->Given.size() != Given.size() || P.Code.type(E).Kind != TypeKind::Tensor)
    return Unknown;
  const Value *Rows = nullptr;
  for (size_t I = 0; I != Given.size(); ++I) {
    const Value &Outer = Entered->Given[I], &Inner = Given[I];
    bool Local = Inner.Kind == Placement::Sharded;
    if (!(Inner.replicated() && Outer.replicated()) &&
        !(Local && Outer.Kind == Inner.Kind && Outer.Dim == Inner.Dim && Outer.Woven == Inner.Woven))
      return Unknown;
    if (Local)
      Rows = &Inner;
  }
  if (!Rows)
    return Unknown;
  Value Assumed = Value::sharded(Rows->Dim, E);
  Assumed.Woven = Rows->Woven;
  Assumed.Rows = Rows->Rows;
  Assumed.Trained = true;
  Assumption.insert_or_assign(F, Assumed);
  return Assumed;
}

/// What a function has returned, if it is what was assumed where it called itself.
Value Interpreter::confirmed(ir::ExprId E, ir::FuncId F, const Value &Result) {
  auto Known = Assumption.find(F);
  if (Known == Assumption.end() || llvm::is_contained(Stack, F))
    return Result;
  Value Assumed = Known->second;
  Assumption.erase(Known);
  if (Result.Kind == Assumed.Kind && Result.Dim == Assumed.Dim && Result.Woven == Assumed.Woven)
    return Result;
  return Value::unknown(recursive(P.Code.Functions[F]), E);
}

/// A draw from the system's entropy in what `F` runs.
ir::ExprId Interpreter::entropyIn(ir::FuncId F) const {
  std::set<ir::FuncId> Seen;
  std::vector<ir::FuncId> Next = {F};
  ir::ExprId Found = None;
  while (!Next.empty() && Found == None) {
    const ir::FuncId G = Next.back();
    Next.pop_back();
    if (!Seen.insert(G).second || P.Code.Functions[G].Body == None)
      continue;
    P.forEachExprIn(P.Code.Functions[G].Body, [&](ir::ExprId E) {
      if (P.Code.Exprs[E].Name == "std::random_device::operator()")
        Found = E;
      llvm::append_range(Next, P.bodies(P.Code.Exprs[E]));
    });
  }
  return Found;
}

bool startsTask(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E];
  const bool Makes = X.Kind == ExprKind::Construct || X.Name == "std::make_shared" || X.Name == "std::make_unique";
  return X.Name == "std::async" || X.Name == "std::invoke" || X.Name == "std::thread::thread" ||
         X.Name == "std::jthread::jthread" ||
         (Makes && StringRef(P.Code.type(E).Name).contains("std::packaged_task<") && !X.Args.empty() &&
          X.Args[0] != None);
}

/// `std::async(f, x)`, `std::thread t(f, x)`, `std::invoke(f, x)`: what runs, with what it is given. Of a task, `f`
/// with what is bound to it.
std::optional<Value> Interpreter::started(ir::ExprId E, const ir::Expr &Starts) {
  const ir::ExprId First = Starts.Args.empty() ? None : Starts.Args[0];
  const bool Bound = First != None && P.Code.Exprs[P.unconverted(First)].Name == "std::bind";
  const ir::Expr &X = Bound ? P.Code.Exprs[P.unconverted(First)] : Starts;
  for (size_t I = 0; I != X.Args.size(); ++I) {
    if (X.Args[I] == None || StringRef(P.Code.type(X.Args[I]).Name) == "std::launch")
      continue;
    Value Function = eval(X.Args[I]);
    bool Beside = Starts.Name != "std::invoke";
    if (Function.Funcs.empty() || llvm::any_of(Function.Funcs, [&](ir::FuncId F) {
          const ir::Function &Fn = P.Code.Functions[F];
          // A method, of an object that follows; training, which belongs to the thread that all ranks are in.
          return !Fn.Record.empty() || (Beside && R.reachesBackward(Fn.Body));
        })) {
      for (ir::FuncId F : Function.Funcs)
        if (const ir::ExprId Draw = Beside ? entropyIn(F) : None; Draw != None)
          note("outside-entropy", Draw, Function, "differs between processes in a thread, where ranks can't meet");
      return std::nullopt;
    }
    ir::Expr Call = X;
    Call.Object = None;
    Call.Args.assign(X.Args.begin() + I + 1, X.Args.end());
    Threads += Beside;
    Value Result = anyOf(E, Call, Function.Funcs, Frames.back().This);
    Threads -= Beside;
    return Result;
  }
  return std::nullopt;
}

/// The methods `Name` of `Object`'s class, of the project's and with so many parameters, which LibTorch calls.
std::vector<ir::FuncId> Interpreter::calledBack(ir::ExprId Object, StringRef Name, size_t Params) const {
  const StringRef Type = P.Code.type(Object).Name;
  std::vector<ir::FuncId> Found;
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    if (const ir::Function &Fn = P.Code.Functions[F]; Fn.Name == Name && !Fn.Record.empty() && Fn.Body != None &&
                                                      Fn.Params.size() == Params && Type.contains(Fn.Record))
      Found.push_back(F);
  return Found;
}

/// `std::cout << report` of a module whose `pretty_print()` LibTorch calls.
void Interpreter::prettyPrinted(ir::ExprId E, const ir::Expr &X) {
  if (P.Code.type(X.Args[1]).Kind != TypeKind::Module)
    return;
  ir::Expr Call = X;
  Call.Args = {X.Args[0]};
  for (ir::FuncId F : calledBack(X.Args[1], "pretty_print", 1))
    anyOf(E, Call, {F}, lvalue(X.Args[1]));
}

/// A scheduler of the program's, whose `get_lrs()` LibTorch calls: all ranks need the same.
void Interpreter::ownSchedule(ir::ExprId E, const ir::Expr &X) {
  ir::Expr Call = X;
  Call.Args.clear();
  for (ir::FuncId F : calledBack(X.Object, "get_lrs", 0)) {
    const Value Rates = anyOf(E, Call, {F}, lvalue(X.Object));
    for (ir::ExprId Given : P.returned(F))
      if (!Rates.replicated())
        note("divergent-training", Given, Rates, "gives each rank another learning rate");
  }
}

/// What runs behind `main`, `std::atexit(report)`, where ranks can't meet any more.
void Interpreter::atExit() {
  for (const State &Returned : AtExit.empty() ? std::vector<State>() : Frames.back().Returns) {
    Current = Dead ? Returned : joined(Current, Returned);
    Dead = false;
  }
  for (const auto &[E, Fn] : llvm::reverse(AtExit)) {
    ir::Expr Call = P.Code.Exprs[E];
    Call.Args.clear();
    const RanksApart Behind(*this, /*Differs=*/true, /*Told=*/false);
    anyOf(E, Call, {Fn}, std::nullopt);
  }
}

} // namespace migrate
