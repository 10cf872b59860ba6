//===- Apply.cpp ----------------------------------------------------------===//
#include "rules/Apply.h"
#include "infer/Taught.h"
#include "rules/TextPlaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cassert>

using namespace llvm;
using migrate::ir::None;

namespace migrate {
namespace {

class Applier {
public:
  Applier(const Program &P, const Facts &Known, const RuleSet &Rules, const FileTexts &Texts)
      : P(P), Known(Known), Rules(Rules), Texts(Texts), Taught(taughtBodies(P)) {}

  Migration run() {
    for (Fact F : Known.all()) {
      if (!F.Texts.count("accelerator") && aheadOfBody(F))
        F.Texts["accelerator"] = NoHandleYet;
      for (const Rule *R : Rules.byFact(F.Name))
        apply(*R, F);
    }
    for (const ir::RuleMatch &M : P.Code.Matches)
      if (const Rule *R = Rules.byPattern(M.Rule))
        match(*R, M);
    compareInstantiations();
    if (!Out.Edits.empty()) {
      Needs.insert(P.Main); // the first construction decides, before anything is printed
      for (ir::FuncId F : std::set<ir::FuncId>(Needs))
        declare(F);
      includes();
    }
    assert(Out.Matches == Out.Edited + Out.Reported && "a place got lost");
    return std::move(Out);
  }

private:
  const std::string &text(const ir::Range &R) const { return Texts(P.Code.Files[R.File].Path); }
  std::string slice(const ir::Range &R) const { return text(R).substr(R.Begin, R.End - R.Begin); }

  /// `call` or `call:name`, the name of what is called, as written.
  const ir::Range *node(const std::map<std::string, ir::Range> &Nodes, StringRef Name) const {
    auto It = Nodes.find(Name.str());
    return It == Nodes.end() ? nullptr : &It->second;
  }

  static constexpr const char *NoHandleYet = "accelerate::Accelerator()";

  /// Whether a fact is of what a constructor initialises, before its body, where no handle is yet.
  bool aheadOfBody(const Fact &F) const {
    bool Ahead = false;
    if (F.Function != None)
      P.Code.Functions[F.Function].forEachInit([&](ir::ExprId Init) {
        for (const auto &[Name, Where] : F.Nodes)
          Ahead |= Init != None && P.Code.Exprs[Init].Where.contains(Where);
      });
    return Ahead;
  }

  void match(const Rule &R, const ir::RuleMatch &M) {
    if (Taught.Only.count(M.Function))
      return; // the user has said what it does
    Fact F;
    F.Function = M.Function;
    if (M.Function == None) // at namespace scope, before `main` has one
      F.Texts["accelerator"] = NoHandleYet;
    else
      P.Code.Functions[M.Function].forEachInit([&](ir::ExprId Init) {
        P.forEachExpr(Init, [&](ir::ExprId Sub) {
          for (const auto &[Name, E] : M.Nodes)
            if (Sub == E) // before the body, where no handle is yet
              F.Texts["accelerator"] = NoHandleYet;
        });
      });
    if (!holds(R, M, Known))
      return;
    for (const auto &[Name, E] : M.Nodes) {
      F.Nodes[Name] = P.Code.Exprs[E].Where;
      F.Nodes[Name + ":name"] = P.Code.Exprs[E].CalleeName;
    }
    F.Name = R.Name;
    if (!M.Whole) {
      ++Out.Matches;
      ++Out.Reported;
      find(R, F, "part of this code wasn't understood: " + R.Summary, Severity::Refusal);
      return;
    }
    apply(R, F);
  }

  std::string expand(StringRef Template, const Fact &F) {
    std::string Result;
    while (!Template.empty()) {
      auto [Open, Name] = nextWord(Template);
      Result += Template.take_front(Open);
      if (Open == StringRef::npos)
        break;
      Template = Template.drop_front(Open + Name.size() + 2);
      if (auto It = F.Texts.find(Name.str()); It != F.Texts.end())
        Result += It->second;
      else if (Name == "accelerator")
        Result += accelerator(F.Function);
      else if (const ir::Range *R = node(F.Nodes, Name))
        Result += slice(*R);
      else
        Result += ("{" + Name + "}").str();
    }
    return Result;
  }

  void find(const Rule &R, const Fact &F, std::string Message, std::optional<Severity> Level = {}) {
    Finding X;
    X.Code = R.Code;
    X.Name = R.Name;
    X.Level = Level.value_or(R.Level);
    X.Message = std::move(Message);
    const ir::Range *At = node(F.Nodes, "place");
    if (!At && !F.Nodes.empty())
      At = &F.Nodes.begin()->second;
    if (At && At->valid()) {
      X.Path = P.Code.Files[At->File].Path;
      X.Line = At->Line;
      X.Column = At->Column;
    }
    for (const Evidence &E : F.Chain)
      if (E.Where.valid())
        X.Chain.push_back({P.Code.Files[E.Where.File].Path, E.What, E.Where.Line});
    if (none_of(Out.Findings, [&](const Finding &Other) { return Other.key() == X.key(); }))
      Out.Findings.push_back(std::move(X));
  }

  void apply(const Rule &R, const Fact &F) {
    if (!R.Edits.empty() && Taught.Only.count(F.Function))
      return;
    ++Out.Matches;
    if (R.Edits.empty()) {
      find(R, F, expand(R.Message, F));
      ++Out.Reported;
      return;
    }
    if (R.How == Safety::Manual) {
      find(R, F, "is left to you, since the safety of this rule is manual here: " + R.Summary, Severity::Refusal);
      ++Out.Reported;
      return;
    }
    if (Taught.Shared.count(F.Function)) {
      Fact X;
      X.Name = "main-process-shared";
      X.Nodes["place"] = F.Nodes.empty() ? ir::Range() : F.Nodes.begin()->second;
      X.Texts["function"] = P.Code.Functions[F.Function].Name;
      ++Out.Reported;
      for (const Rule *Shared : Rules.byFact(X.Name))
        apply(*Shared, X);
      return;
    }
    for (const EditTemplate &T : R.Edits) {
      const ir::Range *At = node(F.Nodes, T.Node);
      if (!At) {
        find(R, F, "this rule edits `" + T.Node + "`, a place that its fact doesn't have: " + R.Summary,
             Severity::Refusal);
        ++Out.Reported;
        return;
      }
      if (!At->valid() || !At->Editable) {
        // A half-edited place is worse than none: without this edit the program can't be migrated.
        find(R, F, "needs an edit in a macro, a header outside the project or generated code: " + R.Summary,
             Severity::Refusal);
        ++Out.Reported;
        return;
      }
    }
    Editing = F.Function;
    for (const EditTemplate &T : R.Edits)
      edit(R, F, T);
    Editing = None;
    ++Out.Edited;
  }

  /// Whether an instantiation isn't edited in code that it has, where another one is. What `if constexpr` leaves out of
  /// it isn't there.
  bool lacks(ir::FuncId In, ir::FuncId Of) {
    return any_of(Written[Of], [&](const auto &Edit) {
      const auto &[Begin, End, Text] = Edit;
      bool There = false;
      if (!Written[In].count(Edit))
        P.forEachExprIn(P.Code.Functions[In].Body, [&, Begin = Begin, End = End](ir::ExprId E) {
          const ir::Range &At = P.Code.Exprs[E].Where;
          There |= At.valid() && At.Begin <= Begin && End <= At.End;
        });
      return There;
    });
  }

  /// A template is edited only where all its instantiations agree.
  void compareInstantiations() {
    for (const auto &[Pattern, Functions] : P.instantiations(Known.Reached))
      for (ir::FuncId F : drop_begin(Functions))
        if (lacks(F, Functions.front()) || lacks(Functions.front(), F)) {
          Fact X;
          X.Name = "instantiations-disagree";
          X.Nodes["place"] = P.Code.Functions[F].Where;
          X.Texts["function"] = P.Code.Functions[F].Name;
          for (const Rule *R : Rules.byFact(X.Name))
            apply(*R, X);
          break;
        }
  }

  void emit(const Rule &R, const ir::Range &At, uint32_t Begin, uint32_t End, std::string Text, Edit::Side Side,
            uint32_t Size) {
    Edit E;
    E.Path = P.Code.Files[At.File].Path;
    E.Begin = Begin;
    E.End = End;
    E.Text = std::move(Text);
    E.Where = Side;
    E.NodeSize = Size;
    E.Opened = Side == Edit::Side::Closes ? Opened : "";
    E.Code = R.Code;
    E.Name = R.Name;
    E.Safety = toString(R.How).str();
    E.Line = At.Line;
    if (Editing != None)
      Written[Editing].insert({E.Begin, E.End, E.Text});
    Out.Edits.push_back(std::move(E));
  }

  void edit(const Rule &R, const Fact &F, const EditTemplate &T) {
    const ir::Range At = *node(F.Nodes, T.Node);
    const std::string &Source = text(At);
    uint32_t Size = At.End - At.Begin;
    if (StringRef(T.Text).contains("{accelerator}") && !F.Texts.count("accelerator")) {
      Needs.insert(holder(F.Function));
      auto [It, New] = Earliest.try_emplace(holder(F.Function), At.Begin);
      It->second = std::min(It->second, At.Begin);
    }
    switch (T.What) {
    case EditTemplate::Kind::Before: {
      std::string Written = withIndent(expand(T.Text, F), At);
      uint32_t Place = StringRef(Written).contains('\n') ? aboveSuppressions(Source, At.Begin) : At.Begin;
      emit(R, At, Place, Place, std::move(Written), Edit::Side::Opens, Size);
      return;
    }
    case EditTemplate::Kind::After: {
      // A new line goes behind the comment that ends this one.
      uint32_t End = At.End, Rest = End;
      while (Rest < Source.size() && (Source[Rest] == ' ' || Source[Rest] == '\t'))
        ++Rest;
      if (StringRef(T.Text).starts_with("\n") && StringRef(Source).substr(Rest).starts_with("//")) {
        End = std::min<size_t>(Source.find('\n', Rest), Source.size());
        if (End > 0 && Source[End - 1] == '\r')
          --End;
      }
      if (F.Name == "prepare")
        End = behindConditional(Source, End);
      emit(R, At, End, End, withIndent(expand(T.Text, F), At), Edit::Side::Closes, Size);
      return;
    }
    case EditTemplate::Kind::Delete: {
      // With its line, if it stands alone there.
      uint32_t Begin = At.Begin, End = At.End;
      while (Begin > 0 && (Source[Begin - 1] == ' ' || Source[Begin - 1] == '\t'))
        --Begin;
      uint32_t Rest = End;
      while (Rest < Source.size() && (Source[Rest] == ' ' || Source[Rest] == '\t' || Source[Rest] == '\r'))
        ++Rest;
      bool Alone = (Begin == 0 || Source[Begin - 1] == '\n') && (Rest == Source.size() || Source[Rest] == '\n');
      emit(R, At, Alone ? Begin : At.Begin, Alone ? std::min<uint32_t>(Rest + 1, Source.size()) : At.End, "",
           Edit::Side::Replaces, Size);
      return;
    }
    case EditTemplate::Kind::Replace:
      break;
    }
    // A template that names a part of what it replaces edits around that part, which other rules may edit too.
    StringRef Template = T.Text;
    uint32_t From = At.Begin;
    std::string Pending;
    bool Opening = true;
    while (true) {
      auto [Head, Name, Tail] = nextPart(Template, F, At, From);
      Pending += expand(withIndent(Head.str(), At), F);
      if (Name.empty()) {
        piece(R, At, From, At.End, Pending, Opening, Size);
        Opened.clear();
        return;
      }
      const ir::Range *Part = node(F.Nodes, Name);
      piece(R, At, From, Part->Begin, Pending, true, Size);
      Opened = Opened.empty() ? Pending : Opened;
      Pending.clear();
      Opening = false;
      From = Part->End;
      Template = Tail;
    }
  }

  void piece(const Rule &R, const ir::Range &At, uint32_t Begin, uint32_t End, const std::string &Text, bool Opening,
             uint32_t Size) {
    if (Begin == End && Text.empty())
      return;
    emit(R, At, Begin, End, Text,
         Begin != End ? Edit::Side::Replaces
         : Opening    ? Edit::Side::Opens
                      : Edit::Side::Closes,
         Size);
  }

  /// Splits a template at the first `{node}` that lies inside `At` and behind `From`.
  std::tuple<StringRef, StringRef, StringRef> nextPart(StringRef Template, const Fact &F, const ir::Range &At,
                                                       uint32_t From) const {
    for (auto [Open, Name] = nextWord(Template); Open != StringRef::npos;
         std::tie(Open, Name) = nextWord(Template, Open + 1)) {
      const ir::Range *Part = node(F.Nodes, Name);
      if (Part && Part->Editable && At.contains(*Part) && Part->Begin >= From && !F.Texts.count(Name.str()))
        return {Template.take_front(Open), Name, Template.drop_front(Open + Name.size() + 2)};
    }
    return {Template, StringRef(), StringRef()};
  }

  /// Line breaks in inserted text continue with the indentation of the line where it goes, and its line ending.
  std::string withIndent(std::string Inserted, const ir::Range &At) const {
    const std::string &Source = text(At);
    size_t Line = Source.rfind('\n', At.Begin == 0 ? 0 : At.Begin - 1);
    Line = Line == std::string::npos ? 0 : Line + 1;
    size_t Code = Source.find_first_not_of(" \t", Line);
    std::string Indent = Source.substr(Line, Code == std::string::npos ? 0 : Code - Line);
    std::string End = Source.find("\r\n") != std::string::npos ? "\r\n" : "\n";
    std::string Result;
    for (char C : Inserted)
      if (C == '\n')
        Result += End + Indent;
      else
        Result += C;
    return Result;
  }

  //===--------------------------------------------------------------------===//
  // The handle and its header
  //===--------------------------------------------------------------------===//

  /// The accelerator that a function has, or null.
  const ir::Var *ownHandle(ir::FuncId F) const {
    auto Found = find_if(P.Code.Vars, [&](const ir::Var &V) {
      return V.Function == F && V.Type != None && P.Code.Types[V.Type].Kind == ir::TypeKind::Accelerator;
    });
    return Found == P.Code.Vars.end() ? nullptr : &*Found;
  }

  /// The function whose handle `F` uses: of a lambda that takes all that it names by reference, the one around it, if
  /// that doesn't end before its last call.
  ir::FuncId holder(ir::FuncId F) {
    if (F == None)
      return F;
    auto [It, New] = Holders.try_emplace(F, F);
    if (!New)
      return It->second;
    const ir::Function &Fn = P.Code.Functions[F];
    if (ownHandle(F) || Fn.Parent == None)
      return F;
    const ir::Function &Around = P.Code.Functions[Fn.Parent];
    auto Made = find_if(P.Code.Exprs, [&](const ir::Expr &X) { // a generic lambda's instantiations have one text
      const ir::Range *Of =
          X.Kind != ir::ExprKind::Lambda || X.Func == None ? nullptr : &P.Code.Functions[X.Func].Where;
      return Of && Of->File == Fn.Where.File && Of->Begin == Fn.Where.Begin;
    });
    if (Made == P.Code.Exprs.end() || !Made->Where.Editable || !StringRef(slice(Made->Where)).starts_with("[&]") ||
        Around.BodyBegin > Made->Where.Begin || (!Around.Main && !outlived(F)))
      return F;
    return Holders[F] = holder(Fn.Parent);
  }

  /// Whether a lambda is a variable that the function around it only calls, or what an algorithm or an optimizer's step
  /// is given.
  bool outlived(ir::FuncId F) const {
    ir::VarId Named = None;
    bool Given = false, Kept = false;
    auto IsIt = [&](ir::ExprId E) {
      return E != None && P.Code.Exprs[P.unconverted(E)].Kind == ir::ExprKind::Lambda &&
             P.Code.Exprs[P.unconverted(E)].Func == F;
    };
    const ir::StmtId Body = P.Code.Functions[P.Code.Functions[F].Parent].Body;
    P.forEachStmt(Body, [&](ir::StmtId S) {
      if (P.Code.Stmts[S].Kind == ir::StmtKind::Decl && IsIt(P.Code.Stmts[S].Value))
        Named = P.Code.Stmts[S].Var;
    });
    P.forEachExprIn(Body, [&](ir::ExprId E) {
      const ir::Expr &X = P.Code.Exprs[E];
      const bool Runs = StringRef(X.Name).ends_with("::step") || StringRef(X.Name).starts_with("std::for_each") ||
                        StringRef(X.Name).starts_with("std::transform") || X.Name == "std::invoke";
      for (ir::ExprId Arg : X.Args) {
        const bool Names = Arg != None && Named != None && P.Code.Exprs[P.unconverted(Arg)].Var == Named;
        (Runs ? Given : Kept) |=
            (X.Kind == ir::ExprKind::Call || X.Kind == ir::ExprKind::Construct || X.Kind == ir::ExprKind::Assign) &&
            (Names || IsIt(Arg));
      }
      Kept |= X.Kind == ir::ExprKind::Lambda && X.Func != F && Named == None; // maybe within another one
    });
    P.forEachStmt(Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      Kept |= X.Kind == ir::StmtKind::Return && X.Value != None && Named != None &&
              P.Code.Exprs[P.unconverted(X.Value)].Var == Named;
    });
    return !Kept && (Named != None || Given);
  }

  /// The name of the accelerator in a function: one that is there, else `accelerator`, unless that is taken.
  std::string accelerator(ir::FuncId F) {
    F = holder(F);
    auto [It, New] = Handles.try_emplace(F);
    if (!New)
      return It->second;
    if (const ir::Var *Own = ownHandle(F)) {
      Present.insert(F);
      return Handles[F] = Own->Name;
    }
    const bool Taken = any_of(P.Code.Vars, [](const ir::Var &V) { return V.Name == "accelerator"; });
    return Handles[F] = Taken ? "accelerate_handle" : "accelerator";
  }

  void declare(ir::FuncId F) {
    if (F == None)
      return;
    std::string Name = accelerator(F);
    if (Present.count(F))
      return;
    const ir::Function &Fn = P.Code.Functions[F];
    Fact Scope;
    Scope.Name = "accelerator-scope";
    Scope.Function = F;
    Scope.Texts["ahead"] = Scope.Texts["behind"] = "";
    ir::Range At = Fn.Where;
    const ir::Stmt *FirstStatement = Fn.Body == None ? nullptr : firstWork(F);
    // A constant before it may be set by an edit.
    bool Early = FirstStatement && Earliest.count(F) && Earliest[F] < FirstStatement->Where.Begin;
    if (Early)
      for (ir::StmtId Child : P.statements(F))
        if (P.Code.Stmts[Child].Where.Begin <= Earliest[F] && Earliest[F] < P.Code.Stmts[Child].Where.End) {
          FirstStatement = &P.Code.Stmts[Child];
          Early = false;
        }
    if (FirstStatement && FirstStatement->Where.Editable && !Early) {
      Scope.Nodes["place"] = FirstStatement->Where;
      // A body on one line stays there.
      StringRef Ahead = StringRef(text(At)).slice(Fn.BodyBegin, FirstStatement->Where.Begin);
      Scope.Texts["behind"] = Ahead.contains('\n') ? "\n" : " ";
    } else {
      // Right behind the brace; the node is the whole body, so that it comes before what else goes there.
      At.Begin = Fn.BodyBegin;
      Scope.Nodes["place"] = At;
      Scope.Texts["ahead"] = "\n  ";
    }
    for (const Rule *R : Rules.byFact("accelerator-scope"))
      apply(*R, Scope);
  }

  /// The first statement of a body that does more than declare a constant.
  const ir::Stmt *firstWork(ir::FuncId F) const {
    for (ir::StmtId Child : P.statements(F)) {
      const ir::Stmt &S = P.Code.Stmts[Child];
      bool Works = S.Kind != ir::StmtKind::Decl || !P.Code.Functions[F].Main;
      P.forEachExpr(S.Value, [&](ir::ExprId E) {
        Works |= P.Code.Exprs[E].Kind == ir::ExprKind::Call || P.Code.Exprs[E].Kind == ir::ExprKind::Construct;
      });
      bool Goes = any_of(Out.Edits, [&](const Edit &E) {
        return E.Text.empty() && E.Path == P.Code.Files[S.Where.File].Path && E.Begin <= S.Where.Begin &&
               S.Where.Begin < E.End;
      });
      if (Works && !(S.Where.valid() && Goes))
        return &S;
    }
    return nullptr;
  }

  /// Files that name our things include our header, beside LibTorch's.
  void includes() {
    std::set<std::string> Paths;
    for (const Edit &E : Out.Edits)
      if (StringRef(E.Text).contains("accelerate::") || usesHandle(E))
        Paths.insert(E.Path);
    for (uint32_t Id = 0; Id != P.Code.Files.size(); ++Id) {
      const ir::File &File = P.Code.Files[Id];
      if (!Paths.count(File.Path) || is_contained(File.Spellings, "<accelerate/accelerate.h>"))
        continue;
      Fact F;
      F.Name = "runtime-include";
      ir::Range At;
      At.File = Id;
      At.Editable = true;
      const std::string &Source = Texts(File.Path);
      // Beside LibTorch's header, else the project's last one, else first.
      auto Torch =
          find_if(File.Spellings, [](StringRef Spelling) { return Spelling.drop_front().starts_with("torch/"); });
      if (Torch != File.Spellings.end())
        At.Begin = File.Includes[Torch - File.Spellings.begin()];
      else if (!File.Includes.empty())
        At.Begin = File.Includes.back();
      else
        At.Begin = behindGuard(Source);
      At.End = At.Begin;
      At.Line = 1 + std::count(Source.begin(), Source.begin() + At.Begin, '\n');
      F.Nodes["place"] = At;
      for (const Rule *R : Rules.byFact("runtime-include"))
        apply(*R, F);
    }
  }

  bool usesHandle(const Edit &E) const {
    for (const auto &[F, Name] : Handles)
      if (StringRef(E.Text).contains(Name + "."))
        return true;
    return false;
  }

  const Program &P;
  const Facts &Known;
  const RuleSet &Rules;
  const FileTexts &Texts;
  const TaughtBodies Taught;
  Migration Out;
  std::set<ir::FuncId> Needs, Present;
  std::map<ir::FuncId, ir::FuncId> Holders;
  std::map<ir::FuncId, std::string> Handles;
  std::map<ir::FuncId, uint32_t> Earliest; ///< first use of the handle, by function
  ir::FuncId Editing = None;
  std::map<ir::FuncId, std::set<std::tuple<uint32_t, uint32_t, std::string>>> Written; ///< by function
  std::string Opened; ///< by the edit at hand, around what it keeps
};

} // namespace

bool holds(const Rule &R, const ir::RuleMatch &M, const Facts &Known) {
  // What the program lets some of the ranks do is its own business.
  if (any_of(M.Nodes, [&](const auto &Node) { return Known.has(Node.second, "by-rank"); }))
    return false;
  auto Call = M.Nodes.find("call");
  return Call == M.Nodes.end() ||
         all_of(R.Where, [&](const std::string &Where) { return Known.has(Call->second, Where); });
}

Migration applyRules(const Program &P, const Facts &Known, const RuleSet &Rules, const FileTexts &Texts) {
  return Applier(P, Known, Rules, Texts).run();
}

} // namespace migrate
