//===- StructureReading.cpp - What runs where data are read ---------------===//
//
// Each rank reads its own rows: draws there are of its own numbers, and what a collation makes of a batch's examples
// together is of the rank's alone.
//
//===----------------------------------------------------------------------===//
#include "infer/Deriver.h"
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether a call draws from LibTorch's generators, or (`Engine`) from one of the program's own.
static bool draws(StringRef Name, bool &Engine) {
  StringRef Last = Name.rsplit("::").second;
  Engine = drawsNumber(Name) || Name == "std::shuffle";
  if (Engine)
    return true;
  if (!Name.starts_with("torch::") && !Name.starts_with("at::"))
    return false;
  static const char *const Draws[] = {"normal",  "normal_", "uniform_",     "bernoulli",  "bernoulli_",  "multinomial",
                                      "poisson", "random_", "exponential_", "geometric_", "log_normal_", "cauchy_"};
  return llvm::is_contained(Draws, Last) ||
         (Last.starts_with("rand") &&
          (Last.size() == 4 || Last == "randn" || Last == "randint" || Last == "randperm" || Last.ends_with("_like")));
}

/// Whether what a generator is made of, in the function or thread that draws from it, is the system's entropy.
static bool seededByEntropy(const Program &P, const Roles &R, ir::FuncId Fn, ir::ExprId Of, int Hops = 4) {
  bool Found = false;
  auto MadeHere = [&](ir::VarId V) { // a function's `static`, too, which is no global that `main` finds made
    const ir::Var &Of = P.Code.Vars[V];
    return Of.Function == Fn || Of.EachThread ||
           (Of.Global && llvm::none_of(P.Code.Globals, [&](const auto &Global) { return Global.first == V; }));
  };
  P.forEachExpr(Of, [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    Found |= StringRef(P.Code.type(E).Name).contains("std::random_device");
    if (auto Init = R.Init.find(X.Var); X.Kind == ExprKind::Ref && Init != R.Init.end() && Hops > 0)
      Found |= MadeHere(X.Var) && seededByEntropy(P, R, Fn, Init->second, Hops - 1);
  });
  return Found;
}

/// What runs where data are read: the overriders in data sets and transforms, the lambdas that transforms are given,
/// and what they call.
std::set<ir::FuncId> Deriver::readers() const {
  std::vector<ir::FuncId> Work;
  for (const auto &Overridden : P.Overriders)
    if (Overridden.first().contains("@N@torch@N@data@N@datasets") ||
        Overridden.first().contains("@N@torch@N@data@N@transforms"))
      Work.insert(Work.end(), Overridden.second.begin(), Overridden.second.end());
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (StringRef(P.Code.type(E).Name).starts_with("torch::data::transforms::") && expr(E).Kind == ExprKind::Construct)
      P.forEachExpr(E, [&](ir::ExprId Sub) {
        if (expr(Sub).Func != None)
          Work.push_back(expr(Sub).Func);
      });
  std::set<ir::FuncId> Seen;
  while (!Work.empty()) {
    ir::FuncId Fn = Work.back();
    Work.pop_back();
    if (Seen.insert(Fn).second)
      P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId E) {
        for (ir::FuncId Called : P.bodies(expr(E)))
          Work.push_back(Called);
      });
  }
  return Seen;
}

/// `++reads_`, `seen_[i] += 1`, `++(*seen)[i]`: a number that outlives the call of `Fn` is counted on.
bool Deriver::countsBeyond(ir::FuncId Fn, const ir::Expr &X) const {
  const bool Steps = X.Kind == ExprKind::Unary && (X.Name == "++" || X.Name == "--");
  const bool Sets = X.Kind == ExprKind::Assign;
  if ((!Steps && !Sets) || X.Args.empty() || X.Args[0] == None || !P.Code.type(X.Args[0]).number())
    return false;
  // (An element that is only set, `cache_[i] = ..`, is a cache's.)
  bool Element = false;
  ir::ExprId Of = P.unconverted(X.Args[0]);
  while (Of != None && expr(Of).Kind != ExprKind::Ref && expr(Of).Kind != ExprKind::Field) {
    const ir::Expr &Part = expr(Of);
    Element = true;
    const ir::ExprId Next = Part.Object != None ? Part.Object : Part.Args.empty() ? None : Part.Args[0];
    Of = Next == None ? None : P.unconverted(Next);
  }
  if (Of == None || (Element && Sets && X.Name == "="))
    return false;
  return expr(Of).Kind == ExprKind::Field || (expr(Of).Var != None && P.Code.Vars[expr(Of).Var].Function != Fn);
}

/// Draws where a data set reads a sample, or a transform changes it: each rank makes them for its own rows. Examples
/// that a collation joins along their rows: ranks are weighed by examples.
void Deriver::reading() {
  bool Shared = llvm::any_of(R.Loaders, [&](const auto &Role) { return sharedOut(Role.first); });
  if (!F.Split.empty())
    for (ir::FuncId Fn : readers())
      P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId E) {
        if (bool Engine; draws(expr(E).Name, Engine)) {
          Fact D = factAt("ambiguous-placement", "place", E);
          D.Texts["what"] =
              "is drawn by each rank where it reads batches whole, to have its rows of the parts that the "
              "program splits them into; ranks may draw other ones";
          Out.add(std::move(D));
        }
      });
  if (F.Backwards.empty() || !Shared)
    return;
  for (ir::FuncId Fn : readers()) {
    leavesOut(Fn);
    padsByHand(Fn);
    P.forEachExprIn(P.Code.Functions[Fn].Body, [&](ir::ExprId E) {
      const ir::Expr &X = expr(E);
      bool Engine = false;
      if (draws(X.Name, Engine)) {
        Fact D = fact("data-draw", Fn);
        D.Nodes["place"] = X.Where;
        D.Texts["what"] =
            Engine && !seededByEntropy(P, R, Fn, E)
                ? "ranks draw for their own rows, each from a copy of the same generator, so that their rows get equal "
                  "numbers; seed it with `accelerator.process_index()` as well"
                : "ranks draw for their own rows, other numbers than one process";
        Out.add(std::move(D));
      }
      if (std::string What = togetherIn(Fn, X); !What.empty()) {
        Fact C = factAt("collation", "place", E);
        C.Texts["what"] = What;
        Out.add(std::move(C));
      }
      if (changesRows(Fn, X)) {
        Fact D = factAt("data-draw", "place", E);
        D.Texts["what"] = "this changes the data set's own rows, and each rank those that it reads: in the next epoch "
                          "it finds others changed than one process does; change a copy, `x.clone()`";
        Out.add(std::move(D));
      }
      if (isGet(Fn) && countsBeyond(Fn, X)) {
        Fact D = factAt("data-draw", "place", E);
        D.Texts["what"] = "ranks read their own rows, and each counts for itself what the data set changes here";
        Out.add(std::move(D));
      }
    });
  }
}

static bool collates(const Program &P, const ir::Function &Fn);

/// The variable that a tensor written in place is a view of, through names of views.
static ir::VarId viewOf(const Program &P, const Roles &R, ir::ExprId E, int Hops = 8) {
  for (; E != None && Hops != 0; --Hops) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    const bool Row = X.Kind == ExprKind::Index || (X.Kind == ExprKind::Call && (isView(X.Name) || changesInPlace(X)));
    if (X.Kind == ExprKind::Field && P.Code.Exprs[X.Object].Kind == ExprKind::This)
      return X.Var;
    if (X.Kind == ExprKind::Field || Row) {
      E = X.Object;
      continue;
    }
    if (X.Kind != ExprKind::Ref || X.Var == None || P.Code.Vars[X.Var].Param || P.Code.Vars[X.Var].Field)
      return X.Kind == ExprKind::Ref ? X.Var : None;
    const auto Init = R.Init.find(X.Var);
    E = Init == R.Init.end() ? None : Init->second;
  }
  return None;
}

/// Whether a data set hands out its own rows, `{images_[i], labels_[i]}`, as LibTorch's do that lie in memory.
bool Deriver::handsOutViews() const {
  bool Any = false, Views = false;
  for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
    if (!isGet(Fn))
      continue;
    Any = true;
    for (ir::ExprId Returned : P.returned(Fn))
      P.forEachExpr(Returned, [&](ir::ExprId E) {
        const ir::VarId Of = P.Code.type(E).Kind == TypeKind::Tensor ? viewOf(P, R, E) : None;
        Views |= Of != None && P.Code.Vars[Of].Field;
      });
  }
  return Views || !Any;
}

/// `input.sub_(mean)` of what a data set hands out, `images_[i].mul_(x)`: the rows are written where they lie.
bool Deriver::changesRows(ir::FuncId Fn, const ir::Expr &X) const {
  if (!changesInPlace(X) || changesInPlace(expr(P.unconverted(X.Object)))) // said at the first
    return false;
  const ir::VarId Of = viewOf(P, R, X.Object);
  if (Of == None)
    return false;
  const std::vector<ir::VarId> &Params = P.Code.Functions[Fn].Params;
  return (P.Code.Vars[Of].Field && isGet(Fn)) ||
         (!collates(P, P.Code.Functions[Fn]) && llvm::is_contained(Params, Of) && handsOutViews());
}

/// A collation that leaves examples out: `if (!example.target.defined()) continue;`
void Deriver::leavesOut(ir::FuncId Fn) {
  if (P.Code.Functions[Fn].Name != "apply_batch")
    return;
  P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
    const ir::Stmt &If = P.Code.Stmts[S];
    if (If.Kind != ir::StmtKind::If || If.Children.empty() || (If.Children.size() > 1 && If.Children[1] != None))
      return;
    bool Skips = false;
    P.forEachStmt(If.Children[0],
                  [&](ir::StmtId Child) { Skips |= P.Code.Stmts[Child].Kind == ir::StmtKind::Continue; });
    P.forEachExprIn(If.Children[0], [&](ir::ExprId E) {
      Skips |= StringRef(expr(E).Name).ends_with("::push_back") || StringRef(expr(E).Name).ends_with("::emplace_back");
    });
    if (!Skips)
      return;
    Fact C = factAt("collation", "place", If.Value);
    C.Texts["what"] =
        "what this leaves out is missing from one rank's rows, while ranks are weighed by the examples that "
        "were read";
    Out.add(std::move(C));
  });
}

/// Whether `Fn` reads one sample.
bool Deriver::isGet(ir::FuncId Fn) const {
  const ir::Function &Get = P.Code.Functions[Fn];
  return Get.Name == "get" &&
         llvm::any_of(Get.Overrides, [](StringRef Usr) { return Usr.contains("@N@torch@N@data@N@datasets"); });
}

/// Whether a function has the name of one that makes a batch of examples.
static bool isCollation(const ir::Function &Fn) {
  return Fn.Name == "apply_batch" || Fn.Name == "get_batch" || Fn.Name == "operator()";
}

/// Whether it is given several.
static bool collates(const Program &P, const ir::Function &Fn) {
  if (!isCollation(Fn) || Fn.Params.empty())
    return false;
  StringRef Given = P.Code.typeOf(Fn.Params[0]).Name;
  return Given.starts_with("std::vector<") || Given.contains("ArrayRef<");
}

static const char *const PadsToItsLongest =
    "each rank pads its own examples to the longest of them; a mean over all positions has another denominator, unless "
    "a mask leaves the padding out";

static const char *const MeetsOwn =
    "this meets others of each rank's own examples, not of the batch; do so with the batch's rows in the step, where "
    "they are brought together";

/// What a call in a collation makes of a batch's examples together, or nothing.
std::string Deriver::togetherIn(ir::FuncId Fn, const ir::Expr &X) const {
  const ir::Function &Collation = P.Code.Functions[Fn];
  StringRef Name = X.Name;
  if (Name == "torch::nn::utils::rnn::pad_sequence")
    return isCollation(Collation) ? PadsToItsLongest : "";
  // `examples[(i + 1) % examples.size()]`: another one, which may be another rank's.
  if (X.Kind == ExprKind::Index && X.Args.size() == 1 && collates(P, Collation) &&
      expr(P.unconverted(X.Object)).Var == Collation.Params[0] &&
      expr(P.unconverted(X.Args[0])).Kind == ExprKind::Binary)
    return MeetsOwn;
  if (X.Kind != ExprKind::Call || !Name.consume_front("at::") || !collates(P, Collation))
    return "";
  Name.consume_front("Tensor::");
  if (Name == "roll" || Name == "flip" || Name == "flipud")
    return MeetsOwn;
  static const char *const Over[] = {"mean", "std",  "var",    "sum",      "max",      "min",  "amax",
                                     "amin", "norm", "median", "std_mean", "var_mean", "prod", "softmax"};
  size_t First = X.Object == None ? 1 : 0;
  const ir::Expr *Dim = X.Args.size() > First ? &expr(P.unconverted(X.Args[First])) : nullptr;
  bool Along = !Dim || (Dim->Kind == ExprKind::Literal && Dim->Name == "0");
  if (Along && llvm::is_contained(Over, Name))
    return "this is of each rank's own examples, not of the batch";
  if (!Along || (Name != "cat" && Name != "concat" && Name != "concatenate"))
    return "";
  bool Listed = false; // `{views, views}`: as many of each example
  if (X.Object == None && !X.Args.empty())
    P.forEachExpr(X.Args[0], [&](ir::ExprId E) { Listed |= expr(E).Kind == ExprKind::List; });
  bool Rows = !Listed; // `list.push_back(example.data.unsqueeze(0))`
  P.forEachExprIn(Collation.Body, [&](ir::ExprId E) {
    StringRef Made = StringRef(expr(E).Name).rsplit("::").second;
    Rows &= Made != "unsqueeze" && Made != "unsqueeze_" && Made != "view" && Made != "reshape";
  });
  return Rows ? "this joins the rows of the examples; ranks are weighed by examples, so a mean over the rows is the "
                "same "
                "only if every example brings as many (else pass the number of rows to `backward` as the weight)"
              : "";
}

/// A collation that pads to a length which it finds among its examples, or orders them: `longest = std::max(longest,
/// x.size(0))`, `pad(x, {0, longest - x.size(0)})`. Where rows of all ranks are brought together, they don't fit then.
void Deriver::padsByHand(ir::FuncId Fn) {
  const ir::Function &Collation = P.Code.Functions[Fn];
  if (!collates(P, Collation))
    return;
  const bool Together =
      llvm::any_of(F.Coercions, [](const auto &How) { return How.second == "all-gather" || How.second == "gather"; });
  ir::ExprId Sorts = None;
  std::set<ir::VarId> Longest, OfFirst; // of the first example: the longest, if they are padded to it
  auto Finds = [&](ir::VarId Var, ir::ExprId From) {
    if (Var == None || From == None || P.Code.typeOf(Var).Kind != TypeKind::Integer)
      return;
    bool Size = false, Largest = false, First = false;
    P.forEachExpr(From, [&](ir::ExprId E) {
      StringRef Name = StringRef(expr(E).Name).rsplit("::").second;
      Size |= Name == "size" || Name == "numel" || Name == "length";
      Largest |= StringRef(expr(E).Name).starts_with("std::max");
      First |= Name == "front" || Name == "back";
    });
    if (Largest)
      Longest.insert(Var);
    if (First && Size)
      OfFirst.insert(Var);
  };
  P.forEachExprIn(Collation.Body, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    if (X.Kind == ExprKind::Assign && X.Args[0] != None)
      Finds(expr(P.unconverted(X.Args[0])).Var, X.Args[1]);
    if (StringRef(X.Name) == "std::sort" || StringRef(X.Name) == "std::stable_sort")
      Sorts = E;
  });
  P.forEachStmt(Collation.Body, [&](ir::StmtId S) {
    const ir::Stmt &X = P.Code.Stmts[S];
    if (X.Kind == StmtKind::Decl)
      Finds(X.Var, X.Value);
    if (X.Kind == StmtKind::If && !X.Children.empty()) // `if (length > longest) longest = length;`
      P.forEachExprIn(X.Children[0], [&](ir::ExprId E) {
        const ir::VarId Set = expr(E).Kind == ExprKind::Assign ? expr(P.unconverted(expr(E).Args[0])).Var : None;
        if (Set != None && P.Code.typeOf(Set).Kind == TypeKind::Integer)
          P.forEachExpr(X.Value, [&](ir::ExprId Compared) {
            if (expr(Compared).Var == Set)
              Longest.insert(Set);
          });
      });
  });
  auto Refuse = [&](ir::ExprId E, const char *What) {
    Fact A = factAt("ambiguous-placement", "place", E);
    A.Texts["what"] = What;
    Out.add(std::move(A));
  };
  bool Pads = false;
  P.forEachExprIn(Collation.Body, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    static const char *const Made[] = {"pad",  "constant_pad_nd", "zeros",     "full",
                                       "ones", "empty",           "new_zeros", "new_full"};
    if (X.Kind != ExprKind::Call || Pads || !llvm::is_contained(Made, Name))
      return;
    for (ir::ExprId Arg : X.Args)
      P.forEachExpr(Arg, [&](ir::ExprId Sub) {
        Pads |= Longest.count(expr(Sub).Var) != 0 || (Name.contains("pad") && OfFirst.count(expr(Sub).Var) != 0);
      });
    if (!Pads)
      return;
    if (Together)
      Refuse(E, "is as wide as the longest of this rank's examples, and rows of all ranks are brought together: they "
                "need one width; pad to one that holds for all batches");
    Fact C = factAt("collation", "place", E);
    C.Texts["what"] = PadsToItsLongest;
    Out.add(std::move(C));
  });
  if (Sorts != None && Together)
    Refuse(Sorts,
           "is an order of this rank's examples alone, and rows of all ranks are brought together: they aren't in it "
           "(`pack_padded_sequence` has `enforce_sorted = false` for that)");
}

} // namespace migrate
