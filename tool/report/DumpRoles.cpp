//===- DumpRoles.cpp - Which object is what, with its places --------------===//
#include "report/Dump.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {
namespace {

/// Calls that are told by their names alone.
constexpr std::pair<StringLiteral, StringLiteral> Calls[] = {
    {"torch::nn::utils::clip_grad_norm_", "gradients clipped"},
    {"torch::nn::utils::clip_grad_value_", "gradients clipped"},
    {"std::srand", "seed"},
    {"srand", "seed"},
    {"at::manual_seed", "seed"}};

class RolesDump {
public:
  RolesDump(const Program &P, const Roles &R, const Findings &F, const Facts &Known, const RuleSet &Rules,
            const Project &Tree, raw_ostream &Out)
      : P(P), R(R), F(F), Known(Known), Rules(Rules), Tree(Tree), Out(Out) {}

  void run() {
    fromRules("AM02", "device");
    models();
    optimizers();
    schedulers();
    loaders();
    for (const auto &[E, Dim] : F.Cuts)
      line("batch", named(E) + "that no loader made, shared along dimension " + std::to_string(Dim),
           P.Code.Exprs[E].Where);
    flush();
    for (const auto &[E, How] : F.Backwards)
      line("loss", named(P.Code.Exprs[E].Object) + "a " + (How == "sum" ? "sum" : "mean") + " over the batch",
           P.Code.Exprs[E].Where);
    flush();
    for (const auto &[Loop, Places] : F.ReduceAfter)
      for (const Location &L : Places)
        line("accumulator", "`" + spelled(P, L) + "`, reduced behind its loop", P.Code.Stmts[Loop].Where);
    flush();
    calls();
    fromRules("AM05", "value");
    fromRules("AM06", "output");
    fromRules("AM10", "output");
  }

private:
  std::string place(const ir::Range &At) const {
    return At.valid() ? (Tree.display(P.Code.Files[At.File].Path) + ":" + Twine(At.Line)).str() : "?";
  }
  std::string var(ir::VarId V) const { return V == None ? "without a name" : "`" + P.Code.Vars[V].Name + "`"; }
  std::string named(ir::ExprId E) const {
    E = E == None ? None : P.unconverted(E);
    ir::VarId V = E == None ? None : P.Code.Exprs[E].Var;
    return V == None ? "" : var(V) + ", ";
  }
  ir::Range whereOf(ir::ExprId E) const { return E == None ? ir::Range() : P.Code.Exprs[E].Where; }

  /// Lines are kept until all of a kind are known, and come in the order of their places: once where several
  /// instantiations of a template say the same.
  void line(StringRef Role, const std::string &What, const ir::Range &At, std::vector<std::string> Below = {}) {
    std::string Path = At.valid() ? Tree.display(P.Code.Files[At.File].Path) : "";
    Lines[{Path, At.Line, At.Column, (Role + " " + What + " at " + place(At)).str()}] = std::move(Below);
  }
  void flush() {
    for (const auto &[Key, Below] : Lines) {
      Out << std::get<3>(Key) << "\n";
      for (const std::string &More : Below)
        Out << "  " << More << "\n";
    }
    Lines.clear();
  }

  /// Modules that are held by variables of their own; those that are registered in another are parts of that.
  void models() {
    std::set<ObjectId> Seen;
    std::set<ir::VarId> Registered;
    for (const ir::Expr &X : P.Code.Exprs)
      if (StringRef(X.Name).ends_with("::register_module") || StringRef(X.Name).ends_with("::replace_module") ||
          StringRef(X.Name).ends_with("::push_back"))
        for (ir::ExprId Arg : X.Args)
          if (Arg != None && P.Code.type(Arg).Kind == TypeKind::Module)
            P.forEachExpr(Arg, [&](ir::ExprId E) { Registered.insert(P.Code.Exprs[E].Var); });
    for (const ir::Expr &X : P.Code.Exprs)
      if (X.Kind == ir::ExprKind::Assign && X.Args.size() == 2 && X.Args[1] != None && X.Args[0] != None &&
          StringRef(P.Code.Exprs[P.unconverted(X.Args[1])].Name).ends_with("::register_module"))
        Registered.insert(P.Code.Exprs[X.Args[0]].Var);
    for (const auto &[V, Init] : R.Init)
      if (Init != None && StringRef(P.Code.Exprs[P.unconverted(Init)].Name).ends_with("::register_module"))
        Registered.insert(V);
    for (ir::VarId V = 0; V != P.Code.Vars.size(); ++V) {
      const ir::Var &X = P.Code.Vars[V];
      const ir::Type &T = P.Code.typeOf(V);
      if (T.Kind != TypeKind::Module || T.Reference || X.Param || !X.Decl.valid() || Registered.count(V) ||
          !P.Code.Files[X.Decl.File].Project || (X.Function != None && !F.Reached.count(X.Function)))
        continue;
      if (!Seen.insert(R.objectOfVar(V)).second)
        continue;
      bool Trained = R.Models.count(R.objectOfVar(V));
      bool Loss = StringRef(T.Name).contains("Loss");
      line(Loss ? "criterion" : "model",
           var(V) + " (" + T.Name +
               (Loss      ? ")"
                : Trained ? "), trained"
                          : "), not trained"),
           X.Decl);
    }
    flush();
  }

  void optimizers() {
    for (const OptimizerRole &O : R.Optimizers) {
      std::vector<std::string> Below;
      for (ir::ExprId M : O.Models)
        Below.push_back("trains " + named(M) + P.Code.type(M).Name + ", at " + place(whereOf(M)));
      ObjectId Object = O.Made != None ? R.object(O.Made) : None;
      for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
        const ir::Expr &X = P.Code.Exprs[E];
        if (Object != None && X.Object != None && StringRef(X.Name).ends_with("::step") &&
            P.Code.type(X.Object).Kind == TypeKind::Optimizer && R.object(X.Object) == Object) {
          std::string Step = "steps at " + place(X.Where);
          if (!is_contained(Below, Step))
            Below.push_back(Step);
        }
      }
      if (O.Made == None)
        line("updates by hand", "of " + var(O.Var), O.Statement == None ? ir::Range() : P.Code.Stmts[O.Statement].Where,
             Below);
      else
        line("optimizer", var(O.Var) + " (" + P.Code.type(O.Made).Name + ")", whereOf(O.Made), Below);
    }
    flush();
  }

  /// Variables and members that keep one.
  void schedulers() {
    for (ir::VarId V = 0; V != P.Code.Vars.size(); ++V) {
      const ir::Var &X = P.Code.Vars[V];
      if (P.keepsScheduler(V) && X.Decl.valid() && P.Code.Files[X.Decl.File].Project &&
          (X.Function == None || F.Reached.count(X.Function)))
        line("scheduler", var(V) + " (" + P.Code.typeOf(V).Name + ")", X.Decl);
    }
    flush();
  }

  void loaders() {
    for (const auto &[Object, L] : R.Loaders) {
      const char *Mode = L.Mode == LoaderMode::Training ? "training"
                         : L.Mode == LoaderMode::Unused ? "unused"
                         : F.ByRows.count(Object)       ? "evaluation, cut by rows"
                         : F.Whole.count(Object)        ? "evaluation, shared by whole batches"
                                                        : "evaluation, the same on every rank";
      std::vector<std::string> Below;
      for (ir::StmtId Loop : L.Loops)
        Below.push_back("its loop at " + place(P.Code.Stmts[Loop].Where));
      for (ir::ExprId Made : L.Made)
        line("loader", std::string("(") + Mode + ")", whereOf(Made), Below);
      if (L.Foreign)
        line("loader", std::string("(") + Mode + ", not made by make_data_loader)",
             L.Loops.empty() ? ir::Range() : P.Code.Stmts[L.Loops.front()].Where, Below);
    }
    flush();
  }

  void calls() {
    for (const ir::Expr &X : P.Code.Exprs)
      for (const auto &[Name, Role] : Calls)
        if (X.Name == Name && X.Where.valid())
          line(Role, "by `" + StringRef(X.Name).rsplit("::").second.str() + "`", X.Where);
    flush();
  }

  /// The places that rules of a family of codes select, whether by a fact or by a pattern, with the rules' own words.
  void fromRules(StringRef Family, StringRef Role) {
    for (const Fact &X : Known.all())
      for (const Rule *Selected : Rules.byFact(X.Name))
        if (StringRef(Selected->Code).starts_with(Family) && !X.Nodes.empty() &&
            X.Name != "metric-after-loop") // told as accumulators
          line(Role, Selected->Summary + " [" + Selected->Code + "]", X.Nodes.begin()->second);
    for (const ir::RuleMatch &M : P.Code.Matches)
      if (const Rule *Selected = Rules.byPattern(M.Rule);
          Selected && StringRef(Selected->Code).starts_with(Family) && !M.Nodes.empty() &&
          (M.Function == None || F.Reached.count(M.Function)) && holds(*Selected, M, Known))
        line(Role, Selected->Summary + " [" + Selected->Code + "]", whereOf(M.Nodes.begin()->second));
    flush();
  }

  const Program &P;
  const Roles &R;
  const Findings &F;
  const Facts &Known;
  const RuleSet &Rules;
  const Project &Tree;
  raw_ostream &Out;
  std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, std::vector<std::string>> Lines;
};

} // namespace

void dumpRoles(const Program &P, const Roles &R, const Findings &F, const Facts &Known, const RuleSet &Rules,
               const Project &Tree, raw_ostream &Out) {
  Out << "program " << P.Name << "\n";
  RolesDump(P, R, F, Known, Rules, Tree, Out).run();
}

} // namespace migrate
