//===- InterpreterBeside.cpp - Flags that are set beside the training -----===//
//
// A thread or a signal handler sets a flag, `stop = true`, whenever it does: ranks that look at it see it in different
// steps. Where it decides about a step, they agree on what the main process sees. What a thread reads it may read at
// any time: what is written there has to be the same on all ranks from the start.
//
//===----------------------------------------------------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

/// `bool`, `std::atomic<bool>`, `volatile std::sig_atomic_t`: of which a reader sees one value or the other.
static bool isFlag(const ir::Type &T) {
  StringRef Name = T.Name;
  return T.Kind == ir::TypeKind::Bool || T.Kind == ir::TypeKind::Integer || Name.starts_with("std::atomic<") ||
         Name.starts_with("std::atomic_flag");
}

void functionsNamed(const Program &P, ir::ExprId E, std::vector<ir::FuncId> &Into) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  if (X.Kind == ExprKind::Unary && X.Name == "&" && X.Args[0] != None)
    return functionsNamed(P, X.Args[0], Into);
  if (X.Func != None)
    Into.push_back(X.Func);
  else if (ir::FuncId F = X.Kind == ExprKind::Unknown ? P.callee(X) : None; F != None)
    Into.push_back(F);
}

/// `action.sa_handler`, of a `sigaction`.
static bool isHandler(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[P.unconverted(E)];
  return X.Kind == ExprKind::Field && X.Var != None && StringRef(P.Code.Vars[X.Var].Name).contains("sa_handler");
}

/// The functions that threads and tasks are started with.
static std::vector<ir::FuncId> threadsOf(const Program &P) {
  std::vector<ir::FuncId> Result;
  for (const ir::Expr &X : P.Code.Exprs) {
    StringRef Name = X.Name, Type = X.Type == None ? "" : StringRef(P.Code.Types[X.Type].Name);
    bool Runs = Name == "pthread_create" || Name == "std::async" ||
                (X.Kind == ExprKind::Construct && (Type == "std::thread" || Type == "std::jthread")) ||
                (X.Object != None && Name.starts_with("std::vector<std::thread") && isCollecting(Name));
    if (Runs && (X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct))
      for (ir::ExprId Arg : X.Args)
        if (Arg != None)
          functionsNamed(P, Arg, Result);
  }
  return Result;
}

/// The functions that signals are handled by.
static std::vector<ir::FuncId> handlersOf(const Program &P) {
  std::vector<ir::FuncId> Result;
  for (const ir::Expr &X : P.Code.Exprs) {
    if (X.Kind == ExprKind::Call && (X.Name == "signal" || X.Name == "std::signal"))
      for (ir::ExprId Arg : X.Args)
        if (Arg != None)
          functionsNamed(P, Arg, Result);
    if (X.Kind == ExprKind::Assign && isHandler(P, X.Args[0]))
      functionsNamed(P, X.Args[1], Result);
  }
  return Result;
}

/// `Next`, and what these functions call.
static std::set<ir::FuncId> withCallees(const Program &P, std::vector<ir::FuncId> Next) {
  std::set<ir::FuncId> Seen;
  while (!Next.empty()) {
    ir::FuncId F = Next.back();
    Next.pop_back();
    const ir::Function &Fn = P.Code.Functions[F];
    if (Fn.Body == None || !Seen.insert(F).second)
      continue;
    P.forEachExprIn(Fn.Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Kind == ExprKind::Call || X.Kind == ExprKind::Construct)
        llvm::append_range(Next, P.bodies(X));
    });
  }
  return Seen;
}

/// What is written to from functions that threads and signal handlers run.
const std::set<ir::VarId> &Interpreter::setBeside() const {
  if (Beside)
    return *Beside;
  Beside.emplace();
  std::vector<ir::FuncId> Started = threadsOf(P);
  llvm::append_range(Started, handlersOf(P));
  for (ir::FuncId F : withCallees(P, std::move(Started)))
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      ir::ExprId To = None;
      if (X.Kind == ExprKind::Assign && !X.Args.empty()) {
        To = X.Args[0];
      } else if (X.Kind == ExprKind::Call && X.Object != None && StringRef(X.Name).starts_with("std::atomic")) {
        if (llvm::is_contained({"store", "exchange", "operator=", "test_and_set", "clear"},
                               StringRef(X.Name).rsplit("::").second))
          To = X.Object;
      }
      const ir::Expr *Set = To == None ? nullptr : &P.Code.Exprs[P.unconverted(To)];
      if (Set && (Set->Kind == ExprKind::Ref || Set->Kind == ExprKind::Field) && Set->Var != None &&
          isFlag(P.Code.typeOf(Set->Var)) && P.Code.Vars[Set->Var].Function != F)
        Beside->insert(Set->Var);
    });
  return *Beside;
}

/// What threads read that isn't their own, at any time: `std::thread([&] { show(loss); })` beside a training. (One that
/// trains is the thread that ranks meet in.)
const std::set<ir::VarId> &Interpreter::readBeside() const {
  if (ReadIn)
    return *ReadIn;
  ReadIn.emplace();
  std::vector<ir::FuncId> Started = threadsOf(P);
  llvm::erase_if(Started, [&](ir::FuncId F) { return R.reachesBackward(P.Code.Functions[F].Body); });
  for (ir::FuncId F : withCallees(P, std::move(Started)))
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      if (X.Var != None && (X.Kind == ExprKind::Field || (X.Kind == ExprKind::Ref && P.Code.Vars[X.Var].Function != F)))
        ReadIn->insert(X.Var);
    });
  return *ReadIn;
}

/// What functions that loaders call name, in all of a loader's threads; None: the C library's generator.
const std::set<ir::VarId> &Interpreter::namedByLoaders() {
  if (NamedByLoaders)
    return *NamedByLoaders;
  NamedByLoaders.emplace();
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
    if (ofLoaders(F))
      P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
        const ir::Expr &X = P.Code.Exprs[E];
        if (drawsFromLibrary(X.Name))
          NamedByLoaders->insert(None);
        if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None)
          NamedByLoaders->insert(X.Var);
      });
  return *NamedByLoaders;
}

/// Whether a `thread_local` variable is used where data are read or threads run: each makes its own there, and ranks
/// can't meet to agree on what of.
bool Interpreter::madeInThreads(ir::VarId V) {
  return P.Code.Vars[V].EachThread && (readBeside().count(V) != 0 || namedByLoaders().count(V) != 0);
}

/// The handlers that `signal` or `sigaction` is given: those that the struct is set to.
static std::vector<ir::FuncId> handlersAt(const Program &P, ir::ExprId Given) {
  std::vector<ir::FuncId> Named;
  functionsNamed(P, Given, Named);
  for (const ir::Expr &X : P.Code.Exprs)
    if (Named.empty() && X.Kind == ExprKind::Assign && isHandler(P, X.Args[0]))
      functionsNamed(P, X.Args[1], Named);
  return Named;
}

/// Whether a signal handler does no more than set flags, which is followed.
bool Interpreter::setsFlag(ir::ExprId Handler) const {
  const std::vector<ir::FuncId> Named = handlersAt(P, Handler);
  return !Named.empty() && llvm::all_of(Named, [&](ir::FuncId F) {
    bool Sets = false, Other = false;
    P.forEachExprIn(P.Code.Functions[F].Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      Sets |= (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && setBeside().count(X.Var) != 0;
      Other |= X.Kind == ExprKind::Call && !StringRef(X.Name).starts_with("std::atomic");
    });
    return Sets && !Other;
  });
}

} // namespace migrate
