//===- Program.cpp --------------------------------------------------------===//
#include "infer/Program.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;
using migrate::ir::ExprKind;
using migrate::ir::None;

namespace migrate {

bool Program::holds(const ir::Unit &U) const {
  for (size_t I = 0; I != Sources.size(); ++I)
    if (Sources[I] == U.Source && Targets[I] == U.Target)
      return true;
  return false;
}

ir::FuncId Program::callee(const ir::Expr &Call) const {
  auto It = ByUsr.find(Call.Callee);
  if (Call.Callee.empty() || It == ByUsr.end())
    return None;
  return It->second;
}

std::vector<ir::FuncId> Program::bodies(const ir::Expr &Call) const {
  std::vector<ir::FuncId> Found;
  std::vector<std::string> Work = {Call.Callee};
  for (size_t I = 0; I != Work.size() && !Call.Callee.empty(); ++I) {
    if (auto It = ByUsr.find(Work[I]); It != ByUsr.end() && Code.Functions[It->second].Body != None)
      Found.push_back(It->second);
    if (auto It = Overriders.find(Work[I]); It != Overriders.end() && !Call.Direct)
      for (ir::FuncId F : It->second)
        if (!is_contained(Work, Code.Functions[F].Usr))
          Work.push_back(Code.Functions[F].Usr);
  }
  return Found;
}

ir::ExprId Program::unconverted(ir::ExprId E) const {
  while (E != None &&
         (Code.Exprs[E].Kind == ExprKind::Cast ||
          (Code.Exprs[E].Kind == ExprKind::Construct && Code.Exprs[E].Var == None)) &&
         Code.Exprs[E].Args.size() == 1)
    E = Code.Exprs[E].Args[0];
  return E;
}

std::map<std::string, std::vector<ir::FuncId>> Program::instantiations(const std::set<ir::FuncId> &Of) const {
  std::map<std::string, std::vector<ir::FuncId>> Found;
  for (ir::FuncId F : Of)
    if (!Code.Functions[F].Pattern.empty())
      Found[Code.Functions[F].Pattern].push_back(F);
  return Found;
}

const std::vector<ir::StmtId> &Program::statements(ir::FuncId F) const {
  const ir::Stmt &Body = Code.Stmts[Code.Functions[F].Body];
  return Body.Kind == ir::StmtKind::Try ? Code.Stmts[Body.Children[0]].Children : Body.Children;
}

std::vector<ir::ExprId> Program::returned(ir::FuncId F) const {
  std::vector<ir::ExprId> Found;
  forEachStmt(Code.Functions[F].Body, [&](ir::StmtId S) {
    if (const ir::Stmt &X = Code.Stmts[S]; X.Kind == ir::StmtKind::Return && X.Value != None)
      Found.push_back(X.Value);
  });
  return Found;
}

/// The key of `batch["x"]`, `batch.at("x")` of a map of tensors; None of any other expression.
static ir::ExprId keyOf(const ir::Unit &Code, const ir::Expr &X) {
  const bool Picks = X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::at"));
  return Picks && X.Object != None && X.Args.size() == 1 && Code.type(X.Object).namesTensors() ? X.Args[0] : None;
}

ir::VarId Program::entryNamed(ir::ExprId Key) const {
  const ir::Expr &X = Code.Exprs[unconverted(Key)];
  if (X.Kind != ExprKind::Literal)
    return None;
  auto It = Entries.find(X.Name);
  return It == Entries.end() ? None : It->second;
}

ir::VarId Program::entry(const ir::Expr &X) const {
  const ir::ExprId Key = keyOf(Code, X);
  return Key == None ? None : entryNamed(Key);
}

/// Names the entries of maps that a program asks for.
static void nameEntries(Program &P) {
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (const ir::ExprId Key = keyOf(P.Code, P.Code.Exprs[E]); Key != None)
      if (const ir::Expr &X = P.Code.Exprs[P.unconverted(Key)]; X.Kind == ExprKind::Literal)
        if (auto [It, New] = P.Entries.try_emplace(X.Name, P.Code.Vars.size()); New) {
          ir::Var &Entry = P.Code.Vars.emplace_back();
          Entry.Name = "[" + X.Name + "]";
          Entry.Type = P.Code.Exprs[E].Type;
          Entry.Field = true;
        }
}

/// Which part of a pair or tuple an expression asks for.
static std::optional<size_t> partAsked(const ir::Unit &Code, const ir::Expr &X) {
  size_t Index;
  if (StringRef Name = X.Name; X.Kind == ExprKind::Cast && Name.consume_front("part"))
    return Name.getAsInteger(10, Index) ? std::nullopt : std::optional(Index);
  if (X.Kind != ExprKind::Field || X.Object == None || (X.Name != "first" && X.Name != "second"))
    return std::nullopt;
  const StringRef Of = Code.type(X.Object).Name;
  return Of.starts_with("std::pair<") && !Of.starts_with("std::pair<const ") // which a map keeps
             ? std::optional<size_t>(X.Name == "second")
             : std::nullopt;
}

ir::VarId Program::held(size_t Index, const ir::Type &T) const {
  auto It = T.Own ? Held.find({Index, T.Name}) : Held.end();
  return It == Held.end() ? None : It->second;
}

ir::VarId Program::held(const ir::Expr &X) const {
  const std::optional<size_t> Index = X.Type == None ? std::nullopt : partAsked(Code, X);
  return Index ? held(*Index, Code.Types[X.Type]) : None;
}

/// Names the objects in pairs and tuples that a program asks for.
static void nameHeld(Program &P) {
  for (const ir::Expr &X : P.Code.Exprs)
    if (std::optional<size_t> Index = X.Type == None ? std::nullopt : partAsked(P.Code, X))
      if (const ir::Type &T = P.Code.Types[X.Type]; T.Own && !StringRef(T.Name).ends_with("*"))
        if (auto [It, New] = P.Held.try_emplace({*Index, T.Name}, P.Code.Vars.size()); New) {
          ir::Var &Part = P.Code.Vars.emplace_back();
          Part.Name = "[" + std::to_string(*Index) + "]";
          Part.Type = X.Type;
          Part.Field = true;
        }
}

std::optional<StringRef> Program::fopenMode(ir::ExprId E) const {
  const ir::Expr &X = Code.Exprs[E];
  if (X.Kind != ExprKind::Call || (X.Name != "fopen" && X.Name != "std::fopen") || X.Args.size() != 2)
    return std::nullopt;
  const ir::Expr &Mode = Code.Exprs[unconverted(X.Args[1])];
  return Mode.Kind == ExprKind::Literal ? StringRef(Mode.Name) : "";
}

void Program::forEachExpr(ir::ExprId E, function_ref<void(ir::ExprId)> Visit) const {
  if (E == None)
    return;
  const ir::Expr &X = Code.Exprs[E];
  forEachExpr(X.Object, Visit);
  for (ir::ExprId Arg : X.Args)
    forEachExpr(Arg, Visit);
  if (X.Func != None)
    forEachExprIn(Code.Functions[X.Func].Body, Visit);
  Visit(E);
}

void Program::forEachStmt(ir::StmtId S, function_ref<void(ir::StmtId)> Visit) const {
  if (S == None)
    return;
  Visit(S);
  for (ir::StmtId Child : Code.Stmts[S].Children)
    forEachStmt(Child, Visit);
}

void Program::forEachExprIn(ir::StmtId S, function_ref<void(ir::ExprId)> Visit) const {
  forEachStmt(S, [&](ir::StmtId Child) { forEachExpr(Code.Stmts[Child].Value, Visit); });
}

namespace {

/// Appends units to one, renumbering what they hold.
class Joiner {
public:
  explicit Joiner(Program &P) : P(P), To(P.Code) {}

  void add(const ir::Unit &From) {
    std::vector<ir::FileId> Files;
    for (const ir::File &F : From.Files) {
      auto [It, New] = FileIds.try_emplace(F.Path, To.Files.size());
      if (New)
        To.Files.push_back(F);
      Files.push_back(It->second);
    }
    std::vector<ir::TypeId> Types;
    for (const ir::Type &T : From.Types) {
      Types.push_back(To.Types.size());
      To.Types.push_back(T);
    }
    uint32_t Exprs = To.Exprs.size(), Stmts = To.Stmts.size();
    std::vector<ir::FuncId> Funcs;
    std::vector<bool> Fresh;
    for (const ir::Function &F : From.Functions) {
      auto [It, New] = P.ByUsr.try_emplace(F.Usr, To.Functions.size());
      Funcs.push_back(It->second);
      Fresh.push_back(New);
      if (New)
        To.Functions.emplace_back();
    }
    auto File = [&](ir::Range R) {
      if (R.valid())
        R.File = Files[R.File];
      return R;
    };
    std::vector<ir::VarId> Vars;
    for (const ir::Var &V : From.Vars) {
      if (!V.Usr.empty())
        if (auto It = Shared.find(V.Usr); It != Shared.end()) {
          // A unit that only makes it may not need to know what its class is derived from.
          ir::TypeId &Known = To.Vars[It->second].Type;
          if (Known != None && V.Type != None && To.Types[Known].Kind == ir::TypeKind::Unknown)
            Known = Types[V.Type];
          Vars.push_back(It->second);
          continue;
        }
      ir::Var Copy = V;
      Copy.Type = V.Type == None ? None : Types[V.Type];
      Copy.Decl = File(V.Decl);
      Copy.Function = V.Function == None ? None : Funcs[V.Function];
      if (!V.Usr.empty())
        Shared[V.Usr] = To.Vars.size();
      Vars.push_back(To.Vars.size());
      To.Vars.push_back(Copy);
    }
    auto Id = [](uint32_t I, uint32_t Base) { return I == None ? None : I + Base; };
    for (const ir::Expr &E : From.Exprs) {
      ir::Expr X = E;
      X.Type = E.Type == None ? None : Types[E.Type];
      X.Where = File(E.Where);
      X.CalleeName = File(E.CalleeName);
      X.Var = E.Var == None ? None : Vars[E.Var];
      X.Func = E.Func == None ? None : Funcs[E.Func];
      X.Object = Id(E.Object, Exprs);
      for (ir::ExprId &Arg : X.Args)
        Arg = Id(Arg, Exprs);
      To.Exprs.push_back(std::move(X));
    }
    for (const ir::Stmt &S : From.Stmts) {
      ir::Stmt X = S;
      X.Where = File(S.Where);
      X.Value = Id(S.Value, Exprs);
      X.Var = S.Var == None ? None : Vars[S.Var];
      for (ir::StmtId &Child : X.Children)
        Child = Id(Child, Stmts);
      To.Stmts.push_back(std::move(X));
    }
    for (uint32_t I = 0; I != From.Functions.size(); ++I) {
      if (!Fresh[I])
        continue;
      ir::Function F = From.Functions[I];
      for (ir::VarId &V : F.Params)
        V = Vars[V];
      for (ir::ExprId &Base : F.Bases)
        Base = Id(Base, Exprs);
      for (auto &[Field, Value] : F.Inits) {
        Field = Vars[Field];
        Value = Id(Value, Exprs);
      }
      F.Body = Id(F.Body, Stmts);
      F.Result = F.Result == None ? None : Types[F.Result];
      F.Where = File(F.Where);
      F.Parent = F.Parent == None ? None : Funcs[F.Parent];
      if (F.Main)
        P.Main = Funcs[I];
      To.Functions[Funcs[I]] = std::move(F);
    }
    for (const auto &[Global, Value] : From.Globals)
      To.Globals.emplace_back(Vars[Global], Id(Value, Exprs));
    for (const ir::RuleMatch &M : From.Matches) {
      ir::RuleMatch X = M;
      X.Function = M.Function == None ? None : Funcs[M.Function];
      for (auto &[Name, E] : X.Nodes)
        E = Id(E, Exprs);
      To.Matches.push_back(std::move(X));
    }
    To.Errors.insert(To.Errors.end(), From.Errors.begin(), From.Errors.end());
    To.Distributed.insert(To.Distributed.end(), From.Distributed.begin(), From.Distributed.end());
    P.Sources.push_back(From.Source);
    P.Targets.push_back(From.Target);
  }

private:
  Program &P;
  ir::Unit &To;
  std::map<std::string, ir::FileId> FileIds;
  std::map<std::string, ir::VarId> Shared;
};

/// What a unit gives to those that it is linked with.
std::vector<StringRef> defined(const ir::Unit &Unit) {
  std::vector<StringRef> Usrs;
  for (const ir::Function &F : Unit.Functions)
    Usrs.push_back(F.Usr);
  for (const auto &[Global, Value] : Unit.Globals)
    Usrs.push_back(Unit.Vars[Global].Usr);
  return Usrs;
}

/// Which of `Units` the units in `Seed` need, by the functions that they call and the variables of namespace scope that
/// they name, and don't define. `Linked` are the targets that count, null if that isn't known.
std::vector<size_t> closure(const std::vector<ir::Unit> &Units, std::vector<size_t> Seed,
                            const std::set<std::string> *Linked) {
  StringMap<std::vector<size_t>> Definers;
  for (size_t I = 0; I != Units.size(); ++I)
    if (!Units[I].HasMain && (!Linked || Linked->count(Units[I].Target)))
      for (StringRef Usr : defined(Units[I]))
        Definers[Usr].push_back(I);
  std::vector<bool> In(Units.size());
  for (size_t I : Seed)
    In[I] = true;
  for (size_t Next = 0; Next != Seed.size(); ++Next) {
    const ir::Unit &Unit = Units[Seed[Next]];
    StringSet<> Own;
    for (StringRef Usr : defined(Unit))
      Own.insert(Usr);
    for (const ir::Expr &E : Unit.Exprs) {
      const ir::Var *Global = E.Var != None && Unit.Vars[E.Var].Global ? &Unit.Vars[E.Var] : nullptr;
      StringRef Needed = !E.Callee.empty() ? E.Callee : Global ? Global->Usr : StringRef();
      if (Needed.empty() || Own.contains(Needed))
        continue;
      auto It = Definers.find(Needed);
      // Two targets that define one name are two programs' business: only an unambiguous definer is taken, or the
      // linker's choice, the first.
      if (It == Definers.end() || (It->second.size() != 1 && !Linked) || In[It->second.front()])
        continue;
      In[It->second.front()] = true;
      Seed.push_back(It->second.front());
    }
  }
  llvm::sort(Seed);
  return Seed;
}

} // namespace

std::string programName(StringRef Source, StringRef Target) {
  return Target.empty() ? sys::path::stem(Source).str() : Target.str();
}

std::vector<Program> link(std::vector<ir::Unit> Units, const Project &Tree, std::vector<ir::Unit> &Unused) {
  std::vector<Program> Programs;
  std::vector<bool> Used(Units.size());
  for (size_t I = 0; I != Units.size(); ++I) {
    if (!Units[I].HasMain)
      continue;
    std::vector<size_t> Seed = {I};
    for (size_t J = 0; J != Units.size(); ++J)
      if (J != I && !Units[J].HasMain && !Units[I].Target.empty() && Units[J].Target == Units[I].Target)
        Seed.push_back(J);
    Program &P = Programs.emplace_back();
    P.Name = programName(Units[I].Source, Units[I].Target);
    Joiner Join(P);
    auto Linked = Tree.Targets.find(Units[I].Target);
    for (size_t J : closure(Units, Seed, Linked == Tree.Targets.end() ? nullptr : &Linked->second)) {
      Used[J] = true;
      Join.add(Units[J]);
    }
    for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F)
      for (const std::string &Base : P.Code.Functions[F].Overrides)
        P.Overriders[Base].push_back(F);
    nameEntries(P);
    nameHeld(P);
  }
  for (size_t I = 0; I != Units.size(); ++I)
    if (!Used[I])
      Unused.push_back(std::move(Units[I]));
  return Programs;
}

} // namespace migrate
