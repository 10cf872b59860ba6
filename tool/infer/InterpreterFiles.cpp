//===- InterpreterFiles.cpp - Files that a program writes and reads -------===//
//
// The main process alone writes. Where the program also reads what it has written, the others must not be there before
// it, nor may it write over what they still read: all wait for each other where such a file is opened. So they do where
// a folder is listed that the program puts files or folders into.
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

/// What an expression opens, if it does.
static ir::ExprId opened(const Program &P, ir::ExprId E, bool &Writes) {
  const ir::Expr &X = P.Code.Exprs[E];
  StringRef Name = X.Name;
  if ((X.Kind != ExprKind::Construct && X.Kind != ExprKind::Call) || X.Args.empty() || X.Args[0] == None)
    return None;
  if (std::optional<StringRef> Mode = P.fopenMode(E)) {
    Writes = Mode->contains('w') || Mode->contains('a') || Mode->contains('+');
    return X.Args[0];
  }
  // Made by another function: `std::make_unique<std::ofstream>(path)`, `files.emplace_back(path)`, `emplace(key,
  // path)`.
  StringRef Maker = Name.rsplit("::").second, Kept = P.Code.type(X.Object == None ? E : X.Object).Name;
  bool Places = Name == "std::make_unique" || Name == "std::make_shared" || Kept.starts_with("std::optional<") ||
                llvm::is_contained({"emplace", "emplace_back", "emplace_front", "try_emplace"}, Maker);
  if (Places && (Kept.contains("basic_ofstream<") || Kept.contains("basic_ifstream<"))) {
    bool Second = Kept.contains("map<") || (X.Kind == ExprKind::Construct && Kept.starts_with("std::optional<"));
    Writes = Kept.contains("basic_ofstream<");
    return X.Args.size() > Second ? X.Args[Second] : None;
  }
  bool Open = X.Kind == ExprKind::Call && X.Object != None && Name.ends_with("::open");
  if (X.Kind == ExprKind::Call && !Open)
    return None;
  StringRef Type = P.Code.type(Open ? X.Object : E).Name;
  if (!Type.starts_with("std::basic_") || !Type.contains("fstream<"))
    return None;
  StringRef Given = P.Code.type(X.Args[0]).Name;
  if (Given.contains("fstream<")) // moved
    return None;
  Writes = !Type.contains("ifstream<");
  return X.Args[0];
}

/// The folder that an expression lists, if it does.
static ir::ExprId folderOf(const Program &P, ir::ExprId E) {
  const ir::Expr &X = P.Code.Exprs[E];
  const StringRef Type = P.Code.type(E).Name;
  const bool Lists = X.Kind == ExprKind::Construct && Type.starts_with("std::filesystem::") &&
                     Type.ends_with("directory_iterator") && !X.Args.empty() && X.Args[0] != None &&
                     !StringRef(P.Code.type(X.Args[0]).Name).ends_with("directory_iterator");
  return Lists || (X.Name == "opendir" && X.Args.size() == 1) ? X.Args[0] : None;
}

/// Whether a path leads into a folder, both as `pathsOf()` tells them.
static bool within(StringRef Path, StringRef Folder) {
  Path.consume_front("\"");
  Folder.consume_front("\"");
  Folder.consume_back("\"");
  Folder.consume_back("/");
  return !Folder.empty() && Path.consume_front(Folder) && !Path.empty() && StringRef("/ \"").contains(Path[0]) &&
         Path != "\"";
}

/// What a path may be, told so that equal texts are equal paths.
void Interpreter::pathsOf(ir::ExprId E, std::set<std::string> &Into, int Hops) const {
  E = P.unconverted(E);
  const ir::Expr &X = P.Code.Exprs[E];
  StringRef Name = X.Name;
  if (Into.size() >= 16)
    return;
  if (X.Kind == ExprKind::Conditional)
    return pathsOf(X.Args[1], Into, Hops), pathsOf(X.Args[2], Into, Hops);
  if (X.Kind == ExprKind::Call && Name.starts_with("accelerate::") && !X.Args.empty())
    return pathsOf(X.Args[0], Into, Hops);
  if (X.Kind == ExprKind::Call && X.Object != None &&
      (Name.ends_with("::c_str") || Name.ends_with("::string") || Name.ends_with("::data") || Name.ends_with("::str")))
    return pathsOf(X.Object, Into, Hops);
  bool Joins = (X.Kind == ExprKind::Binary || X.Kind == ExprKind::Call) && X.Object == None && X.Args.size() == 2 &&
               (Name == "+" || Name == "/" || Name.ends_with("operator+") || Name.ends_with("operator/"));
  if (Joins) {
    std::set<std::string> Heads, Tails;
    pathsOf(X.Args[0], Heads, Hops);
    pathsOf(X.Args[1], Tails, Hops);
    for (const std::string &Head : Heads)
      for (const std::string &Tail : Tails)
        Into.insert(Head + " " + Tail);
    return;
  }
  if (X.Kind == ExprKind::Ref && Hops > 0) {
    const ir::Var &V = P.Code.Vars[X.Var];
    if (auto It = R.Init.find(X.Var); It != R.Init.end() && neverChanges(X.Var))
      return pathsOf(It->second, Into, Hops - 1);
    if (V.Param && V.Function != None) {
      const std::vector<ir::VarId> &Params = P.Code.Functions[V.Function].Params;
      size_t I = llvm::find(Params, X.Var) - Params.begin();
      bool Any = false;
      for (const ir::Expr &Call : P.Code.Exprs)
        if ((Call.Kind == ExprKind::Call || Call.Kind == ExprKind::Construct) && I < Call.Args.size() &&
            Call.Args[I] != None && Call.Callee == P.Code.Functions[V.Function].Usr && !Call.Callee.empty())
          Any = true, pathsOf(Call.Args[I], Into, Hops - 1);
      if (Any)
        return;
    }
  }
  Into.insert(X.Kind == ExprKind::Literal ? X.Name : spelled(E));
}

/// Where files are opened that the program both writes and reads, and folders listed or made that it lists and makes
/// something in.
const std::set<ir::ExprId> &Interpreter::awaitedFiles() const {
  if (Awaited)
    return *Awaited;
  Awaited.emplace();
  struct Opened {
    ir::ExprId At;
    bool Writes;
    std::set<std::string> Paths = {};
  };
  std::vector<Opened> Files, Made, Listed;
  auto Add = [&](std::vector<Opened> &To, ir::ExprId Path, Opened O) {
    if (Path == None)
      return;
    pathsOf(Path, O.Paths, 6);
    To.push_back(std::move(O));
  };
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    Opened O{E, false};
    Add(Listed, folderOf(P, E), O);
    Add(Made, makesFolder(X.Name) && !X.Args.empty() ? X.Args[0] : None, O);
    const ir::ExprId Path = opened(P, E, O.Writes);
    Add(Files, Path, O);
  }
  auto Meet = [&](const Opened &Read, const Opened &Write, auto Same) {
    for (const std::string &From : Read.Paths)
      if (llvm::any_of(Write.Paths, [&](const std::string &To) { return Same(To, From); }))
        Awaited->insert({Read.At, Write.At});
  };
  for (const Opened &Write : Files) {
    for (const Opened &Read : Files)
      if (Write.Writes && !Read.Writes)
        Meet(Read, Write, std::equal_to<StringRef>());
    for (const Opened &Folder : Listed)
      if (Write.Writes)
        Meet(Folder, Write, within);
  }
  for (const Opened &Folder : Listed)
    for (const Opened &Inner : Made)
      Meet(Folder, Inner, within);
  return *Awaited;
}

/// Whether nothing but its state is asked of a stream or file that `E` opens: `if (std::ifstream("stop").good())`.
bool Interpreter::onlyAsked(ir::ExprId E) const {
  ir::VarId Name = None;
  for (const auto &[V, Statement] : R.DeclarationOf)
    if (ir::ExprId Value = P.Code.Stmts[Statement].Value; Value != None && P.Code.Exprs[Value].Kind != ExprKind::Lambda)
      P.forEachExpr(Value, [&](ir::ExprId Sub) { Name = Sub == E ? V : Name; });
  auto Stream = [&](ir::ExprId Of) {
    for (; Of != None && Of != E && P.Code.Exprs[Of].Kind == ExprKind::Cast; Of = P.Code.Exprs[Of].Args[0])
      ;
    return Of != None && (Of == E || (Name != None && P.Code.Exprs[P.unconverted(Of)].Var == Name));
  };
  bool Asked = false, Read = false;
  for (const ir::Expr &X : P.Code.Exprs) {
    if (X.Kind != ExprKind::Call && X.Kind != ExprKind::Construct)
      continue;
    StringRef Called = StringRef(X.Name).substr(StringRef(X.Name).rfind(':') + 1);
    if (Stream(X.Object) && !Called.starts_with("~"))
      (llvm::is_contained({"good", "is_open", "fail", "operator bool", "operator!", "close"}, Called) ? Asked : Read) =
          true;
    for (ir::ExprId Arg : X.Args)
      if (Stream(Arg))
        (Called == "fclose" ? Asked : Read) = true;
  }
  for (const ir::Stmt &S : P.Code.Stmts) // `if (std::ifstream("stop"))`
    Asked |= (S.Kind == ir::StmtKind::If || S.Kind == ir::StmtKind::Loop) && Stream(S.Value);
  return Asked && !Read;
}

/// Whether an expression names nothing that a training loop around it makes.
bool Interpreter::sameEachStep(ir::ExprId E, int Hops) const {
  bool Same = Hops > 0;
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    if (X.Kind != ExprKind::Ref || X.Var == None || P.Code.Vars[X.Var].Global)
      return;
    if (P.Code.Vars[X.Var].Param)
      for (ir::ExprId Given : R.givenTo(X.Var))
        Same &= Given != None && sameEachStep(Given, Hops - 1);
    const auto Declared = R.DeclarationOf.find(X.Var);
    for (const Loop &L : Loops)
      Same &= !L.Trains || Declared == R.DeclarationOf.end() ||
              !P.Code.Stmts[L.Statement].Where.contains(P.Code.Stmts[Declared->second].Where);
  });
  return Same;
}

/// Whether `E` opens a file by which somebody else tells the program something while it trains: one that it removes
/// behind that, or of which it asks in its steps whether it is there. Ranks look at different moments.
bool Interpreter::polls(ir::ExprId E) const {
  bool Writes = true;
  const ir::ExprId Path = opened(P, E, Writes);
  if (Path == None || Writes)
    return false;
  std::set<std::string> Paths;
  pathsOf(Path, Paths, 6);
  if (!Removed) {
    Removed.emplace();
    for (const ir::Expr &X : P.Code.Exprs)
      if (X.Kind == ExprKind::Call && X.Args.size() == 1 &&
          llvm::is_contained({"remove", "std::remove", "unlink", "std::filesystem::remove"}, X.Name))
        pathsOf(X.Args[0], *Removed, 6);
  }
  if (llvm::any_of(Paths, [&](const std::string &Path) { return Removed->count(Path) != 0; }))
    return true;
  return llvm::any_of(Loops, [](const Loop &L) { return L.Trains; }) && sameEachStep(Path) && onlyAsked(E);
}

void Interpreter::opensFile(ir::ExprId E) {
  if (!awaitedFiles().count(E))
    return;
  notWhole("it reads a file that the program writes", E);
  bool Writes, Waits = false;
  ir::ExprId Path = opened(P, E, Writes);
  if (Path == None)
    Path = folderOf(P, E);
  if (Path == None)
    Path = P.Code.Exprs[E].Args[0]; // of a folder that is made
  P.forEachExpr(Path, [&](ir::ExprId Sub) { Waits |= StringRef(P.Code.Exprs[Sub].Name).ends_with("wait_for_file"); });
  if (!Recording || Divergent > 0 || Waits)
    return;
  const ir::Expr &Given = P.Code.Exprs[Path]; // inside `main_process_file(path)`
  bool Ours = StringRef(Given.Name).ends_with("main_process_file") && !Given.Args.empty();
  Out.Awaited[E] = Ours ? Given.Args[0] : Path;
}

} // namespace migrate
