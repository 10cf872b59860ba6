//===- Interpreter.h - Infers placements by running the program abstractly ===//
//
// From `main`, with calls inlined: every expression gets a placement, loops run to a fixpoint. Where a use demands
// another placement than the value has (a print of a mean, an accumulator after its loop), a coercion is recorded;
// where none exists, a note with its evidence. Some decisions can only be made after the fact (an evaluation loop that
// turns out to print can't be shared out; a value that escapes its step must be reduced where it is assigned): they
// are remembered and the run starts again.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_INTERPRETER_H
#define ACCELERATE_MIGRATE_INFER_INTERPRETER_H

#include "infer/Findings.h"
#include "infer/Operations.h"
#include "infer/Placement.h"
#include "infer/Program.h"
#include "infer/Roles.h"
#include <deque>
#include <map>
#include <optional>
#include <set>

namespace migrate {

/// The items of `{-1, 320}`, which arrives wrapped in an array reference, an initializer list, a vector.
void collectItems(const Program &P, ir::ExprId Arg, std::vector<ir::ExprId> &Into);

/// The tensor that `t.data_ptr()` points into; None of anything else.
ir::ExprId pointee(const Program &P, ir::ExprId Address);

/// Whether an expression throws.
inline bool throws(const ir::Expr &X) { return X.Kind == ir::ExprKind::Unknown && X.Name == "CXXThrowExpr"; }
/// Whether what a method gives lies in its object.
bool isView(llvm::StringRef Name);
/// `x.add_(y)`: a tensor's method that writes its object, and gives it.
inline bool changesInPlace(const ir::Expr &X) {
  const llvm::StringRef Name = X.Name;
  return X.Kind == ir::ExprKind::Call && X.Object != ir::None && Name.starts_with("at::Tensor::") &&
         Name.ends_with("_") && !Name.ends_with("requires_grad_");
}
/// Whether what an operation gives has no graph, whatever it is given: comparisons, numbers of rows.
bool losesGraph(const ir::Expr &X);
/// Whether a method puts what it is given into its object.
bool isCollecting(llvm::StringRef Name);
/// The same of what may have lain there.
bool replacesItems(const ir::Expr &X);
/// What makes an item of a list of several values that are written with it: `Entry{epoch, loss.item<double>()}`,
/// `{loss.item<double>(), x.size(0)}`, `std::make_pair(a, b)`. None of anything else.
ir::ExprId madeBy(const Program &P, ir::ExprId Item);
/// Whether a function draws a number from the standard library's generators.
bool drawsNumber(llvm::StringRef Name);
/// Whether a function tells what may differ between processes, or changes what they have in common: clocks, entropy,
/// files.
bool differsOrChanges(llvm::StringRef Name);
bool changesFile(llvm::StringRef Name);
bool makesFolder(llvm::StringRef Name);
bool isQuery(llvm::StringRef Name);
/// Options of optimizers and loaders, and those of layers.
bool ofOptions(const ir::Type &T);
bool ofLayer(const ir::Type &T);
/// `double[10]`, `std::vector<int>`, `std::array<float, 3>`, and such of them.
bool holdsNumbers(llvm::StringRef Type);
/// A pair or tuple that holds lists of numbers, or such, beside tensors.
bool holdsBoth(llvm::StringRef Type);
/// `T<int>` of the rest of a type's name, `T<int>, D>`.
llvm::StringRef firstArgument(llvm::StringRef Rest);
/// An iterator of a container of the standard library.
inline bool isIterator(const ir::Type &T) {
  const llvm::StringRef Name = T.Name;
  return Name.contains("__normal_iterator<") || Name.starts_with("std::_Rb_tree_") || Name.starts_with("std::_List_") ||
         Name.starts_with("std::__detail::_Node_") || Name.starts_with("std::_Deque_iterator<") ||
         Name.starts_with("std::reverse_iterator<");
}
/// What is a tensor, or an accessor of one: its rows are told by their number.
inline bool hasRows(const ir::Type &T) {
  return T.Kind == ir::TypeKind::Tensor || llvm::StringRef(T.Name).contains("TensorAccessor");
}
/// A tensor, or a list or tuple of them.
inline bool holdsTensors(const ir::Type &T) {
  return T.Kind == ir::TypeKind::Tensor ||
         (T.Kind == ir::TypeKind::Container && llvm::StringRef(T.Name).contains("at::Tensor"));
}

/// Where a way to share out batches is taken: everywhere, or in some loops of training steps.
struct Taken {
  bool Everywhere = false;
  std::set<ir::StmtId> Loops;
};

/// How batches are shared out.
struct Ways {
  Taken CutEarly; ///< batches that the program forms itself are cut where they are formed, not where a model takes them
  Taken Together; ///< rows that all others have to meet are brought together, with their graph, instead of refused
  Taken AtUse;    ///< batches are cut where a model or a loss takes them, and stay whole where they are formed
  /// Evaluation loaders whose batches are cut as a training's are, because ranks meet in what their loops call.
  std::set<uint32_t> ByRows = {};
  /// Training loaders whose batches the program splits by itself: every rank reads them whole, and has its rows of the
  /// parts.
  std::set<uint32_t> Split = {};
  /// Loops over batches that the program forms itself for an evaluation, which are cut as a training's are; as above.
  std::set<ir::StmtId> Evaluations = {};
  /// Batches that the program forms itself and that stay whole, beside others of another length.
  std::set<ir::ExprId> Uncut = {};
  /// Whole values that are cut from the start, along a dimension.
  std::map<ir::ExprId, unsigned> CutToo = {};
};

class Interpreter {
public:
  Interpreter(const Program &P, const Roles &R, const OperationTable &Table, const Ways &By)
      : P(P), R(R), Table(Table), By(By), Cuts(By.CutToo) {}
  Findings run();

private:
  using State = std::map<Location, Value>;
  enum class LoopMode { Plain, Rows, Whole, Fold, Switch };
  struct Loop {
    ir::StmtId Statement;
    LoopMode Mode;
    int Depth; ///< of the variables declared in its body
    uint32_t Loader;
    size_t Frame;                                    ///< index of the frame that it runs in
    bool Trains;                                     ///< a backward stands in it, or in what it calls
    std::vector<State> Exits, Nexts;                 ///< states at `break` and `continue`
    ir::VarId Row = ir::None;                        ///< of Fold: the number of this rank's row
    const State *Entry = nullptr;                    ///< in front of it
    bool Meets = false;                              ///< ranks meet in it
    std::optional<ir::ExprId> LeftBy = std::nullopt; ///< the choice behind a recomputed condition to leave it early
    bool Collects = false;                           ///< of Fold: lists the rows, a ghost's too, and so adds nothing up
    /// What it runs over, batches or rows, is one rank's each time.
    bool ofOneRank() const { return Mode == LoopMode::Whole || Mode == LoopMode::Fold; }
    /// It runs over batches, or over the rows of one: what is added up in it, is added up over those.
    bool accumulates() const { return Mode == LoopMode::Rows || ofOneRank(); }
  };
  struct Frame {
    ir::FuncId Function;
    std::optional<Location> This;
    Value Result;
    bool Returned = false;
    std::vector<State> Returns;
    State Fields;                  ///< of the object that it returns, its name left out
    std::vector<ir::ExprId> Args;  ///< of the call
    std::vector<Value> Parts = {}; ///< of the pair or tuple that it returns
    ir::ExprId Call = ir::None;    ///< that it was entered by
    bool Gathers = false;          ///< it was given rows, which can be brought together where it is called
    std::vector<Value> Given = {}; ///< the arguments' values
    std::optional<ir::ExprId> LeftBy = std::nullopt; ///< the choice behind a recomputed condition to return early
    bool Gives = false;                              ///< a return gave something, not `std::nullopt`
    int Apart = 0;                ///< how many conditions that differ between ranks stood around its call
    int Left = 0, LeftByRank = 0; ///< how many conditions that differ between ranks have let some return early
  };

  void once();
  void atExit();
  void onceAlone();

  // Statements (InterpreterStatements.cpp)
  void exec(ir::StmtId S);
  void execKind(ir::StmtId Id, const ir::Stmt &S);
  void handedOn(ir::ExprId E, const Value &V);
  void sumsOfParts(const State &A, const State &B);
  void keptOnOneSide(const State &A, const State &B);
  /// Behind a loop's body, a switch or a function all ranks are together as they were ahead of it, but for those that
  /// have returned from the function in it.
  class RanksHere {
  public:
    explicit RanksHere(Interpreter &In)
        : In(In), Frame(In.Frames.size() - 1), Divergent(In.Divergent - In.Frames.back().Left),
          ByRank(In.ByRank - In.Frames.back().LeftByRank) {}
    ~RanksHere() {
      In.Divergent = Divergent + In.Frames[Frame].Left;
      In.ByRank = ByRank + In.Frames[Frame].LeftByRank;
    }

  private:
    Interpreter &In;
    const size_t Frame;
    const int Divergent, ByRank;
  };
  /// While one lives, not all ranks do what runs.
  class RanksApart {
  public:
    /// \param Told  the program asked for the rank
    RanksApart(Interpreter &In, bool Differs, bool Told) : In(In), Differs(Differs), Told(Differs && Told) {
      In.Divergent += this->Differs;
      In.ByRank += this->Told;
    }
    ~RanksApart() {
      In.Divergent -= Differs;
      In.ByRank -= Told;
    }

  private:
    Interpreter &In;
    const bool Differs, Told;
  };
  void leftApart(ir::StmtId Side, bool Told);
  void execIf(const ir::Stmt &S, ir::StmtId Id);
  State repeat(Loop L, llvm::function_ref<void()> Body);
  void runsMany(ir::FuncId Closure, llvm::function_ref<void()> Run);
  void execLoop(ir::StmtId Id);
  void execSwitch(ir::StmtId Id);
  void execTry(const ir::Stmt &S);
  bool asksOutput(ir::ExprId Condition) const;
  std::optional<bool> countedAs(const ir::Expr &X);
  std::optional<bool> flagged(const ir::Expr &X) const;
  std::optional<bool> given(ir::ExprId Condition);
  bool ofCall(ir::ExprId E) const;
  bool ofTemporary(ir::ExprId E);
  void begins(ir::VarId V);
  bool leavesStep(ir::StmtId S) const;
  bool leavesLoops(ir::StmtId S, const Loop &Around) const;
  bool sets(ir::StmtId S) const;
  bool changesAround(ir::StmtId S, int Hops = 4) const;
  bool setsOptions(ir::StmtId S) const;
  bool asksFiles(ir::ExprId Condition, int Hops = 4) const;
  bool agreesHere(ir::StmtId Id, ir::ExprId Condition, const Value &V) const;
  void loopBody(ir::StmtId Id);
  ir::ExprId copied(ir::ExprId E) const;
  void declare(ir::VarId V, ir::ExprId Init, ir::StmtId S);
  bool startedBefore(ir::StmtId Id, ir::VarId Var) const;
  bool jumpsOver(ir::StmtId Loop) const;
  bool addedUp(ir::ExprId E);
  Value besideItsRows(ir::ExprId E, Value Row, const Value &Other, bool Divides);
  bool readForRows(const Value &V);
  void reduceAfter(ir::StmtId Loop, const State &Before);
  bool knownByFields(ir::ExprId Container);
  bool asksOfEachRow(ir::ExprId Condition, bool Negated) const;
  bool comparesMeans(ir::ExprId Condition) const;
  bool failStop(ir::StmtId S) const;
  bool endsJob(ir::StmtId Handler) const;
  bool matters(ir::StmtId S) const;
  State joined(const State &A, const State &B) const;
  bool sameState(const State &A, const State &B) const;
  void markEscaped(int Depth);

  // Expressions (Interpreter.cpp)
  Value eval(ir::ExprId E);
  Value evalRaw(ir::ExprId E);
  Value ownOperator(ir::ExprId E, const ir::Expr &X, ir::FuncId F);
  Value binary(ir::ExprId E, const ir::Expr &X);
  static bool differs(const Value &Condition);
  Value chosen(ir::ExprId E, const ir::Expr &X);
  Value arithmetic(ir::ExprId E, const std::string &Op, const Value &L, const Value &R, ir::ExprId LE, ir::ExprId RE);
  bool sharedBeside(ir::ExprId E, const Value &Part, const Value &Term, ir::ExprId Of);
  Value assign(ir::ExprId E, const ir::Expr &X);
  Value part(ir::ExprId E, Value V, size_t Index) const;
  Value accumulate(const Location &L, const Value &Addend, ir::ExprId AddendExpr, ir::ExprId E);
  ir::ExprId countIn(ir::ExprId E) const;
  Value nonLinear(const Value &V, ir::ExprId E, const char *What);
  const std::vector<Value> *partsOf(ir::ExprId E) const;
  const Value *half(ir::ExprId E, ir::VarId Field) const;
  std::optional<Value> ofItem(ir::ExprId E, const Location &L);
  void makeParts(ir::ExprId E, const ir::Expr &X);
  ir::ExprId assignedBy(const Location &L) const;
  ir::ExprId behindCommas(ir::ExprId E) const;
  bool broughtWhereSet(const Value &V);
  Value demandReplicated(ir::ExprId E, const Value &V, const std::string &Use);
  /// Single numbers only: a tensor's parts needn't have one shape on all ranks.
  static bool gathers(const Value &V) {
    return V.Rank == 0 && (V.Kind == Placement::Mean || (V.Kind == Placement::Partial && V.Fresh));
  }
  bool ofOneInstantiation(ir::ExprId E, const std::string &How) const;
  void wholeArguments();
  bool sumOfSteps(ir::ExprId E, const Value &V) const;
  bool brought(const Value &V, ir::ExprId E);
  bool bringParts(const Value &V, ir::ExprId E);
  bool gathered(ir::ExprId E, const Value &V);
  bool gatherable(ir::ExprId E, const Value &V) const;
  bool kept(ir::ExprId E, const Value &V);
  ir::ExprId rowsBehind(ir::ExprId E) const;
  bool changesNumber(ir::ExprId E) const;
  bool gatheredNumber(ir::ExprId E, const Value &V);
  static Value computedOfAll(ir::ExprId E);
  bool canGatherIn(ir::ExprId E) const;
  bool gatheredIn(ir::ExprId E);
  bool gathersInstead(const std::string &Finding);
  bool broughtAhead(ir::ExprId E);
  bool coerce(ir::ExprId E, const std::string &How, const Value &V);
  void note(const std::string &Name, ir::ExprId E, const Value &V, const std::string &Text);
  std::vector<Evidence> evidence(ir::ExprId E, const Value &V) const;
  ir::ExprId blamed(ir::ExprId E, const Value &V) const;
  void notWhole(const std::string &Why, ir::ExprId E);
  void notShared(uint32_t Loader, const std::string &Why, ir::ExprId E);

  // Places (InterpreterPlaces.cpp)
  /// Where an expression's value lies, if it has a place: what is written there is read there.
  std::optional<Location> lvalue(ir::ExprId E);
  std::optional<Location> named(ir::ExprId E);
  Value read(const Location &L, ir::ExprId E);
  void write(const Location &L, Value V, ir::ExprId From);
  std::vector<std::pair<std::vector<ir::VarId>, Location>> referencesIn(const Location &Object) const;
  void takeReferences(const Location &To, ir::ExprId From);
  State fieldsOf(ir::ExprId E);
  State entriesMade(ir::ExprId E);
  State fieldsMade(ir::ExprId E);
  State amongFields(const Location &List, State Fields);
  State fieldsHeld(ir::ExprId E);
  void holds(ir::ExprId Tuple, const std::vector<ir::ExprId> &Of);
  Value besideFields(const Location &L, ir::ExprId E) const;
  Value collectsHeld(const ir::Expr &X, ir::ExprId Arg, Value V, State &Fields);
  std::optional<Value> entry(ir::ExprId E);
  State fieldsAt(const Location &L, ir::ExprId E);
  void copyObject(const Location &To, ir::ExprId From);
  void takeFields(const Location &To, const State &Fields);
  void forget(const Location &L);
  Value store(ir::ExprId E, ir::ExprId To, ir::ExprId From, Value V);
  void elsewhere(ir::ExprId E, ir::ExprId From, const Value &V, bool Changes);
  bool astray(const std::optional<Location> &L) const;
  bool outer(const Location &L) const;
  bool isElement(const ir::Expr &X) const;
  bool isPart(ir::ExprId E) const;
  static bool fillsPlace(const Value &Whole, const Value &Place, const Value &Written);
  Value withPart(const Location &L, const Value &Whole, const Value &Part) const;
  bool ofContainer(ir::ExprId To) const;
  bool writesTo(ir::StmtId Body, ir::VarId V) const;
  void points(const Location &L, ir::ExprId To);
  // (InterpreterViews.cpp)
  std::optional<Location> viewed(ir::ExprId E);
  void keepsNames(ir::VarId List, ir::ExprId Items);
  void anew(ir::VarId V);
  bool behindNames(const Location &L) const;
  bool ofThisStep(ir::ExprId Part);
  void seenBehindNames(const Location &L, const Value &Written, ir::ExprId E);
  // (InterpreterIterators.cpp)
  void insertsInto(ir::ExprId Iterator, std::set<ir::ExprId> &Into, int Hops) const;
  std::optional<Value> putThrough(ir::ExprId E, const ir::Expr &X);
  bool printsThrough(ir::ExprId E, const ir::Expr &X);
  const std::set<ir::VarId> &hidden() const;
  bool leadsAstray(ir::ExprId Pointer, const Location &L) const;
  std::optional<Value> behindUnknown(const Location &L) const;
  bool holdsAddress(const Location &L) const;
  bool makes(ir::ExprId E) const;
  std::pair<ir::VarId, bool> partOfVar(ir::ExprId E) const;
  bool writtenInParts(ir::VarId V);
  void placedBy(ir::ExprId Element);
  void putAt(ir::ExprId Rows);
  ir::ExprId withoutOffset(ir::ExprId E) const;
  bool givesItself(ir::FuncId F) const;
  std::optional<Location> givenBy(const ir::Expr &X);
  void memberGiven(const ir::Function &Constructor, ir::ExprId Init, Value &V);
  bool isKey(const ir::Expr &X) const;
  bool isPairOfMap(const ir::Expr &X, const Location &Base) const;
  bool filledHere(ir::VarId V, int Hops = 3) const;
  void unname(ir::VarId V);
  void separate(const Location &L);
  bool keepWhole(const Value &V);

  /// What stands behind the tensors of a call, by the parameters of its row; lists item by item.
  using Arguments = std::map<std::string, std::vector<ir::ExprId>>;
  struct Dimensions {
    bool All = false, Unknown = false;
    std::vector<int64_t> Known;
  };
  /// What an operation is applied to: the object first, then the arguments.
  struct Operands {
    std::vector<ir::ExprId> Exprs, Bound;  ///< none of values that no expression holds; `Bound` to a function before
    std::vector<Value> Values, Tensors;    ///< all of them; the tensors and lists of tensors among them
    ir::ExprId Maker = ir::None;           ///< the module, whose options stand where it was made
    bool InPlace = false, Brought = false; ///< what it writes in place was brought together
  };

  // Operations (InterpreterOperations.cpp, InterpreterShapes.cpp)
  void ofItsStep(llvm::ArrayRef<Value> Operands, Value &Result);
  Value apply(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In);
  ir::ExprId reductionNumber(const ir::Expr &X) const;
  Value loss(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In);
  Value gradients(ir::ExprId E, const ir::Expr &X);
  Value byClass(ir::ExprId E, const ir::Expr &X, const Operands &In);
  bool sharedByWeight(ir::ExprId E);
  bool writesIgnored();
  bool repeatable(ir::ExprId E) const;
  bool writesByLibrary(const ir::Expr &X) const;
  bool listsFolder(ir::StmtId Loop) const;
  bool changesFolder(ir::ExprId E, const ir::Expr &X);
  void changesFiles(ir::ExprId E, const ir::Expr &X);
  std::optional<Location> behind(ir::ExprId Iterator);
  void writesThrough(ir::ExprId E, const ir::Expr &X, bool FromOwn, bool FromRows);
  bool dependsOn(ir::ExprId E, ir::VarId V, ir::StmtId Loop) const;
  void meetsAlone(ir::ExprId E, const ir::Expr &X);
  std::optional<Value> addedAt(ir::ExprId E, const ir::Expr &X);
  std::optional<Value> copiedAt(ir::ExprId E, const ir::Expr &X);
  Value concatenated(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In,
                     const Dimensions &Dims, const Arguments &Args);
  Value scattered(ir::ExprId E, const ir::Expr &X, const Operands &In, const Dimensions &Dims);
  std::vector<Value> featured(llvm::ArrayRef<Signature> Signatures, std::vector<Value> Tensors, ir::ExprId E);
  Value besideRows(llvm::ArrayRef<Value> Values, ir::ExprId E);
  bool filled(ir::ExprId E) const;
  Value padded(ir::ExprId E, const ir::Expr &X, const Value &Rows);
  Value asManyRows(ir::ExprId E, const Operands &In, const Dimensions &Dims);
  Value lookedUp(ir::ExprId E, const ir::Expr &X, const Operands &In, const Dimensions &Dims);
  Value misshapen(ir::ExprId E, const Value &Rows);
  std::vector<ir::ExprId> spelledOut(std::vector<ir::ExprId> Given) const;
  std::optional<int64_t> featuresMade(ir::ExprId Layer) const;
  std::optional<int64_t> featuresOf(ir::ExprId E, int Hops);
  bool shapedBefore(ir::ExprId E, int Hops) const;
  bool joinsRows(ir::ExprId E, const Value &Of, const std::vector<ir::ExprId> &Shape);
  Value reshaped(ir::ExprId E, const ir::Expr &X, const Operands &In, Arguments &Args);
  bool countsRows(ir::ExprId E, int Hops = 4);
  int braces(ir::ExprId Data) const;
  Value expanded(ir::ExprId E, const Operands &In, Arguments &Args);
  ir::ExprId likeOf(ir::ExprId E) const;
  ir::ExprId forEachOfRows(ir::ExprId Size, ir::ExprId &Rows);
  void drawForRows(ir::ExprId E, const ir::Expr &X, const Operands &In, ir::ExprId Rows, Value &Result);
  bool drawsFromAll(const ir::Expr &X, const Operands &In);
  void drawsForRows(ir::ExprId E, const ir::Expr &X, const Value &V, bool Several = false);
  Value made(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In, Arguments &Args);
  Arguments arguments(const OperationRow &Row, llvm::ArrayRef<ir::ExprId> Given) const;
  Dimensions dimensions(const OperationRow &Row, const Arguments &Args, ir::ExprId Tensor) const;
  std::optional<int64_t> number(const OperationRow &Row, const Arguments &Args, llvm::StringRef Name) const;

  // Modules (InterpreterModules.cpp)
  Value contained(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In);
  Value forward(ir::ExprId E, const ir::Expr &X, ir::ExprId Module, const std::vector<Value> &Inputs);
  Value scripted(ir::ExprId E, const Value &Input);
  /// Where a module comes from.
  struct Origins {
    std::vector<ir::ExprId> Made; ///< what constructs it
    std::set<ir::VarId> Vars;     ///< that it passes through
    bool Lost = false;            ///< it may come from somewhere else as well
  };
  Origins origins(ir::ExprId Module) const;
  std::vector<ir::ExprId> constructions(ir::ExprId Module) const;
  std::vector<ir::ExprId> givenTo(ir::VarId Param) const;
  void readSettings() const;
  bool saysSetter(ir::VarId Object, const char *Text, ir::ExprId But) const;
  const std::vector<ir::ExprId> &couplingLayers();
  std::vector<ir::ExprId> childrenOf(ir::ExprId Container) const;
  bool saysAnywhere(ir::ExprId Module, const char *Text) const;
  bool switchedOn(ir::ExprId Module, llvm::StringRef Option) const;
  bool madeWithout(ir::ExprId Maker, llvm::StringRef Option) const;
  bool optionGiven(const std::string &Option, const ir::Expr &X, const Operands &In) const;
  Value ofField(ir::ExprId E, const Location &L, Value V);

  // Calls (InterpreterCalls.cpp, InterpreterInlined.cpp)
  Value call(ir::ExprId E, const ir::Expr &X);
  Value ours(ir::ExprId E, const ir::Expr &X);
  Value again(ir::ExprId E, ir::FuncId F, const std::vector<Value> &Given);
  Value confirmed(ir::ExprId E, ir::FuncId F, const Value &Result);
  std::optional<Value> started(ir::ExprId E, const ir::Expr &X);
  std::optional<Value> special(ir::ExprId E, const ir::Expr &X);
  Value swapped(ir::ExprId E, ir::ExprId One, ir::ExprId Other);
  ir::ExprId entropyIn(ir::FuncId F) const;
  std::vector<ir::FuncId> calledBack(ir::ExprId Object, llvm::StringRef Name, size_t Params) const;
  void prettyPrinted(ir::ExprId E, const ir::Expr &X);
  void ownSchedule(ir::ExprId E, const ir::Expr &X);
  void collects(ir::ExprId E, const ir::Expr &X, ir::ExprId Arg, Value V);
  Value amongLosses(const Location &L, const Value &Items, const Value &New, ir::ExprId Item);
  void cutItems(const Value &Items, const Value &New);
  std::pair<ir::VarId, ir::ExprId> entryGiven(const ir::Expr &X, ir::ExprId Arg) const;
  Value amongItems(const ir::Type &List, const Value &Items, const Value &New, ir::ExprId Item) const;
  std::optional<Value> oneForEachRow(ir::ExprId E, const ir::Expr &X);
  bool startsThread(const ir::Expr &X) const;
  bool handsOutRows(const ir::Type &Batch);
  bool placesItem(const ir::Expr &X, ir::ExprId First) const;
  void writesBytes(ir::ExprId Address);
  void passesAddress(const ir::Expr &X, ir::ExprId Address);
  bool refersTo(const Location &Member, ir::ExprId Init);
  Value constructed(ir::ExprId E, const std::optional<Location> &At);
  Value inlined(ir::ExprId E, const ir::Expr &X, ir::FuncId F, std::optional<Location> This);
  Value anyOf(ir::ExprId E, const ir::Expr &X, const std::vector<ir::FuncId> &Bodies, std::optional<Location> This);
  Value dispatched(ir::ExprId E, const ir::Expr &X, const std::vector<ir::FuncId> &Bodies);
  Value operation(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, bool InPlace);
  static void keepsShape(Value &Result, const Value &Before);
  bool moves(ir::ExprId E, const Location &L, int Hops = 6);
  void writeBack(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In, const Value &Made);
  const std::set<ir::ExprId> &writeTargets() const;
  bool withinTensor(ir::ExprId E) const;
  void keepCopies(ir::StmtId Id);
  bool takesOwn(ir::ExprId E, const Value &Into);
  bool keepsLaws(ir::ExprId From, int Hops);
  bool keepsRows(ir::ExprId From, const Value &V);
  bool intoWhole(ir::ExprId E, ir::ExprId Target);
  bool keepsInPart(ir::ExprId To, ir::ExprId From, const Value &V);
  void wroteInto(ir::ExprId Target, const Value &Written, ir::ExprId E);
  void intoModel(ir::ExprId From, const Value &V);
  Value unknownCall(ir::ExprId E, const ir::Expr &X);
  std::string calledAs(const ir::Expr &X) const;
  Value indexed(ir::ExprId E, const ir::Expr &X, Value V);
  std::vector<ir::ExprId> batchSizes() const;
  bool isBatchSize(ir::ExprId E) const;
  bool seenAt(ir::VarId V, const ir::Range &At) const;
  ir::ExprId batchSeen(ir::ExprId At, uint32_t Loader) const;
  bool asManyAsBatch(uint32_t Rows) const;
  void backward(ir::ExprId E, const ir::Expr &X);

  // Functions that training passes by (InterpreterApart.cpp)
  struct Body {
    bool Apart = true, Lambdas = false;
    std::vector<ir::FuncId> Calls;
  };
  const Body &body(ir::FuncId F) const;
  bool standsAlone(ir::FuncId F) const;
  bool sameOnAll(const Value &V) const;
  const std::set<ir::FuncId> *apart(ir::FuncId F) const;
  std::optional<Value> passedBy(ir::ExprId E, ir::FuncId F, llvm::ArrayRef<Value> Values,
                                llvm::ArrayRef<std::optional<Location>> Places, const std::optional<Location> &This);
  void followed(ir::FuncId F, const ir::Expr &X, llvm::ArrayRef<Value> Values, const Value &Result);

  // Loops over a batch's rows (InterpreterFolds.cpp)
  bool ofOneRank() const;
  bool fillsRow(const ir::Expr &X, ir::VarId Row);
  bool folds(ir::StmtId S, Loop &L);
  std::string rowLoop(ir::StmtId S) const;
  std::optional<Value> behind(ir::ExprId E, ir::ExprId Pointer, ir::ExprId Number);
  bool overOwnRows(const ir::Expr &X);
  bool holdsRows(ir::ExprId E) const;
  void beyondRows();
  bool ofRow(ir::ExprId Number, const Value &V) const;
  bool isRow(const ir::Expr &X, ir::ExprId Of, const Value &V) const;
  bool ofStep(const Location &L) const;
  ir::ExprId numberIn(const ir::Expr &X) const;
  bool isOwnRow(ir::ExprId To);
  bool countsInStep(ir::ExprId E) const;
  bool cutWithFold(const ir::Expr &X, const Value &V);
  bool addsTo(const Location &L, ir::ExprId Sum);
  ir::ExprId addedTo(const Location &L, ir::ExprId Sum);
  bool listsRows(ir::ExprId E, const Value &V) const;
  std::optional<Value> itemOfRows(ir::ExprId E);
  std::optional<Value> listed(const Location &L, const Value &Item);
  std::optional<std::pair<ir::ExprId, bool>> keepsExtreme(const ir::Stmt &If) const;
  std::optional<Value> extreme(const Location &L, ir::ExprId From);

  // Rows of a batch that a mask picks (InterpreterPicks.cpp)
  bool isMask(ir::ExprId E, int Hops = 6);
  uint32_t pickNamed(ir::ExprId Mask);
  std::optional<Value> picked(ir::ExprId E, llvm::ArrayRef<ir::ExprId> Items, Value V);
  std::optional<Value> picksAstray(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In);
  Value ofPicks(ir::ExprId E, const ir::Expr &X, const Operands &In, Value Result);

  // Functions for a batch and for a whole (InterpreterWhole.cpp)
  void drawn(ir::ExprId E, bool Rows);
  bool gathersWithin(ir::ExprId Call) const;
  void wholeDraws();

  // What differs between processes by itself (InterpreterOutside.cpp)
  bool opensLog(ir::ExprId E, const ir::Expr &X) const;
  void ofOneProcess(ir::ExprId E, const ir::Expr &X);
  bool isInput(ir::ExprId E) const;
  void readsInput(ir::ExprId E);
  void agreeOnPath(ir::ExprId Path);
  void writesOutside(const ir::Expr &X);
  void readsOutside(const ir::Expr &X);
  bool drawnByReaders(ir::ExprId E, const ir::Expr &X);
  void fromOutside(ir::ExprId E, const ir::Expr &X, Value &V);
  void agree(ir::ExprId E, const Value &V);

  // Flags that threads and signal handlers set (InterpreterBeside.cpp)
  const std::set<ir::VarId> &setBeside() const;
  bool setsFlag(ir::ExprId Handler) const;

  // Files that a program writes and reads (InterpreterFiles.cpp)
  void pathsOf(ir::ExprId E, std::set<std::string> &Into, int Hops) const;
  const std::set<ir::ExprId> &awaitedFiles() const;
  void opensFile(ir::ExprId E);
  bool onlyAsked(ir::ExprId E) const;
  bool sameEachStep(ir::ExprId E, int Hops = 6) const;
  bool polls(ir::ExprId E) const;

  // Floats that every rank computes for itself (InterpreterExact.cpp)
  void rounded(const ir::Expr &X, const OperationRow &Row, const Operands &In, Value &Result);
  void asItsOperands(ir::ExprId E, const ir::Expr &X, Value &V);
  void underRecomputed(Value &V) const;
  bool picksRows(ir::ExprId E) const;
  struct Jumps;
  Jumps jumpsOf(ir::StmtId S) const;
  Loop *leftLoop();
  bool leavesOthers(ir::StmtId S);
  void leftBy(ir::StmtId S, const Value &C);
  bool behindMeets();
  bool canMeet();
  bool ofLoaders(ir::FuncId F);
  void metIn(ir::FuncId F);
  bool agreeable(ir::ExprId E) const;
  void agreeOnChoice(ir::ExprId E, Value &V);
  void agreedAt(ir::ExprId E);
  void agreedHere(ir::ExprId E, Value &V);
  void decidesByNoise(ir::ExprId E, const Value &V);
  void dropsOut(ir::ExprId E, const Value &Of, Value &V);
  bool isMeeting(const ir::Expr &X) const;
  /// Runs what the condition `E` decides about.
  template <typename Fn> void choosing(ir::ExprId E, const Value &C, Fn Run) {
    if (!C.recomputed())
      return Run();
    const int Met = Meetings;
    RecomputedChoices.push_back(C.Choice);
    Run();
    RecomputedChoices.pop_back();
    if (Meetings != Met)
      Restart |= MetUnder.insert(E).second;
  }

  // Rows that meet all others (InterpreterTogether.cpp)
  Value allOf(ir::ExprId E, Value V);
  void neededWhole(ir::ExprId Rows);
  void bringTogether(ir::ExprId E, Value &V);
  bool trainsHere() const;
  ir::ExprId rowsAt(ir::ExprId E) const;
  ir::ExprId madeAt(ir::ExprId E) const;
  ir::ExprId madeRows(ir::ExprId E) const;
  void readsThroughPointers(ir::ExprId E, const ir::Expr &X);
  bool permutes(ir::ExprId E) const;

  // Batches that no loader made (InterpreterRows.cpp)
  std::vector<ir::ExprId> operandsOf(const ir::Expr &X) const;
  void evaluates(ir::ExprId Batch);
  bool takesOneSample(ir::ExprId E, const ir::Expr &X, Operation Op, const Value &V, const Value &Result);
  bool looksUpBags(const ir::Expr &X) const;
  bool meetsRowByRow(const ir::Expr &X, const Operation *Op) const;
  Value withRows(ir::ExprId E, const ir::Expr &X, const Operation *Op, Value Result);
  uint32_t rowsOf(ir::ExprId E, const ir::Expr &X, const Operation *Op, const std::vector<ir::ExprId> &Operands);
  uint32_t named(const std::string &Name);
  uint32_t rowsNamed(ir::ExprId Count, int Hops = 4);
  uint32_t counted(uint32_t Name, int64_t Rows);
  ir::ExprId distance(ir::ExprId From, ir::ExprId To) const;
  uint32_t toldBy(uint32_t Name, ir::ExprId Count);
  std::string lengthOf(uint32_t Rows) const;
  bool ofOtherBatches(uint32_t A, uint32_t B);
  void meet(const std::vector<ir::ExprId> &Operands);
  uint32_t metAs(uint32_t Rows) const;
  void ofOneBatch(ir::ExprId E, const Value &V);
  std::string spelled(ir::ExprId E) const;
  const Loop *stepLoop() const;
  uint32_t rowsOfAll(const ir::Expr &X) const;
  bool movesParameter(const ir::Expr &X) const;
  ir::ExprId heldBy(const ir::Expr &X, const Frame &In) const;
  ir::ExprId cutPoint(ir::ExprId E, const Loop &Step);
  bool filledByNumber(ir::VarId V) const;
  ir::ExprId carrier(ir::ExprId E, bool Inner, bool ThroughNames = true) const;
  bool isParameter(ir::ExprId E);
  uint32_t sameRows(uint32_t A, uint32_t B) const;
  ir::ExprId rangeOf(ir::ExprId E, bool Through) const;
  ir::ExprId roundsOf(ir::StmtId Loop) const;
  ir::ExprId countIn(ir::ExprId Size, uint32_t Rows);
  bool isProduct(ir::ExprId Size) const;
  bool makesNumber(const ir::Expr &X) const;
  bool overWhole(const ir::Expr &X);
  ir::ExprId product(llvm::ArrayRef<ir::ExprId> Shape);
  ir::ExprId cutNamed(ir::ExprId E, uint32_t Rows) const;
  ir::ExprId madeAs(ir::ExprId E) const;
  bool numbersRows(ir::ExprId E) const;
  bool picksOfEachRow(const ir::Expr &X, ir::ExprId Operand) const;
  std::optional<Value> ofEachRow(const ir::Expr &X, Value V);
  bool allRowsCounted(ir::ExprId Count);
  uint32_t takenBetween(const ir::Expr &Made);
  uint32_t lengthNamed(ir::ExprId List, int Hops = 4);
  bool isPoint(ir::ExprId E);
  bool assigns(ir::VarId V);
  ir::ExprId setInside(ir::VarId Param, ir::ExprId Within, const ir::Function &Fn) const;
  ir::ExprId pointsAhead(const ir::Expr &X, const Loop &Step) const;
  bool alsoEvaluates(ir::FuncId F) const;
  bool inStep(ir::ExprId E, const Loop &Step) const;
  bool cutElsewhere(ir::ExprId E) const;
  bool cut(ir::ExprId At, ir::StmtId Loop, unsigned Dim = 0);
  // (InterpreterStreams.cpp)
  ir::ExprId beforeSwap(ir::ExprId E) const;
  ir::ExprId turnedBefore(ir::ExprId At) const;
  bool turn(ir::ExprId At, unsigned Dim);
  bool oneAlong(ir::ExprId E, unsigned Dim, int Hops = 6);
  bool besideAcross(ir::ExprId E, unsigned Dim, uint32_t Batch, const Loop &Step);
  void origins(ir::ExprId E, const Loop &Step, std::vector<ir::ExprId> &Into, int Hops) const;
  std::vector<ir::ExprId> tensorsOf(const Operands &In) const;
  bool sizedByBatch(llvm::ArrayRef<Signature> Signatures, const Operands &In);
  bool realigned(llvm::ArrayRef<Signature> Signatures, const Operands &In);
  bool realigned(const Value &A, const Value &B);
  void carry();
  bool cutStart(const Location &L, const Value &Kept);
  std::vector<ir::ExprId> indexItems(const ir::Expr &X) const;
  int rankIndexed(const ir::Expr &X, int Rank) const;
  bool startsAtConstant(ir::ExprId E) const;
  bool besideRows(const Value &V, const Value &Local) const;
  ir::StmtId trainingSteps() const;
  bool besideUnknown(ir::ExprId E, const Value &V, const Value &Local, const Loop &Step) const;
  bool joinedAlike(uint32_t A, uint32_t B) const;
  bool meansRowsOf(ir::ExprId E, const Value &V, const Value &Local) const;
  void cutAlike(const State &A, const State &B);
  bool cutBatch(const Value &V);
  bool ownRowsOf(ir::ExprId E);
  bool flattensOne(const ir::Expr &Call) const;
  bool oneSample(ir::ExprId E) const;
  bool pickedByNumber(ir::ExprId E) const;
  Value gradientOfRows(ir::ExprId E, const ir::Expr &X, const Value &Of);
  void squeezesAll(ir::ExprId E, const ir::Expr &X, const Value &V);
  Value rowsCut(ir::ExprId E, const Value &Whole, unsigned Dim);
  uint32_t ownRowsName(ir::ExprId E);
  /// `Value::RankOf` of an expression with a number of dimensions that is unknown, but one.
  uint32_t rankOf(ir::ExprId E) const { return uint32_t(P.Code.Vars.size()) + E; }
  Value yielded(ir::ExprId E, const ir::Expr &X);
  std::optional<Location> written(const ir::Expr &X, size_t I);
  void fill(ir::ExprId E, const ir::Expr &X);
  void readsInto(ir::ExprId E, const ir::Expr &X);
  void ownRows(size_t Compares, bool Beside, const std::vector<ir::ExprId> &Operands, const Value &Local, bool Table);
  bool mentions(ir::ExprId E, const char *Enumerator, int Depth = 4) const;
  std::optional<int64_t> integer(ir::ExprId E) const;
  std::optional<int64_t> dimension(ir::ExprId E, ir::ExprId Tensor) const;
  ir::ExprId countsDimensions(ir::ExprId E) const;
  bool neverChanges(ir::VarId V) const;
  bool reassigned(ir::VarId V) const;
  bool holdsNothing(ir::ExprId E) const;
  bool numeric(ir::ExprId E) const;
  bool taken(const Taken &Way) const;

  const Program &P;
  const Roles &R;
  const OperationTable &Table;
  const Ways By;
  Findings Out;

  // One run.
  State Current;
  int OwnCalls = 0;                                 ///< what is called for each of this rank's rows
  std::set<ir::StmtId> SumsRows;                    ///< steps that count all rows
  std::map<ir::ExprId, ir::StmtId> PicksRows;       ///< rows picked by number, with the loop of the steps
  std::map<ir::StmtId, std::set<uint32_t>> CutRows; ///< `Value::Rows` of what a step has cut
  std::set<uint32_t> CutAhead;                      ///< of what was cut in front of the steps
  std::map<uint32_t, uint32_t> MetAs;               ///< names of the same rows
  ir::ExprId Unpacked = ir::None;                   ///< what the parts of a structured binding that follow are of
  std::optional<std::set<ir::VarId>> AssignedTo;    ///< variables that are assigned to as a whole
  uint32_t InHand = 0;                              ///< of what it has cut last; 0: it depends
  std::map<ir::ExprId, State> Returned;             ///< the fields of what calls returned
  std::map<ir::ExprId, std::vector<Value>> Parts;   ///< the elements of pairs and tuples, by what made them
  std::map<ir::ExprId, Value> Last;                 ///< of each expression, when it was evaluated last
  std::map<ir::VarId, Location> Alias;
  std::set<ir::VarId> Elements;  ///< of Alias: it is one element of that
  std::set<ir::VarId> Elsewhere; ///< references to what isn't followed
  /// Tensors, lists of them and accessors: the tensors, or what they were made over, that they lie in.
  std::map<ir::VarId, std::set<Location>> Views;
  std::set<ir::ExprId> GathersWithin;                 ///< calls within which ranks bring rows together
  std::set<ir::ExprId> DroppedOfRows, DroppedOfWhole; ///< what drops out of rows, and of what every rank has whole
  std::map<ir::ExprId, std::set<std::vector<ir::ExprId>>> WholeDraws; ///< draws and losses of what every rank has, the
                                                                      ///< calls that led there
  std::set<ir::ExprId> RowDraws;                ///< calls that led to draws for the rows of a batch
  std::set<ir::ExprId> FromAll;                 ///< draws for them by tensors that are brought together
  std::set<ir::ExprId> CutInStep, CutElsewhere; ///< cuts that were come to within a training step, and elsewhere
  std::set<ir::ExprId> CutBefore;               ///< cuts that were come to with what was cut before
  std::map<ir::ExprId, ir::ExprId> InputOf;     ///< `Value::Forward`, and where what it is given could be cut
  std::map<ir::ExprId, uint32_t> OfOneRank;     ///< evaluated in a loop over what is one rank's, and its loader
  std::map<ir::VarId, ir::ExprId> Copies;       ///< aliases that are tensors of their own, and what they were made of
  std::map<Location, Location> PointsTo;        ///< pointers, by where they are kept
  std::map<ir::FuncId, std::optional<Location>> MadeIn; ///< lambdas, and the object whose method made them
  std::map<ir::VarId, int> BegunUnder;                  ///< conditions around a declaration that differ between ranks
  std::map<ir::VarId, int> Depths;
  // References to these are held while calls and loops within are run, which add others.
  std::deque<Loop> Loops;
  std::deque<Frame> Frames;
  std::vector<ir::FuncId> Stack;
  std::map<ir::FuncId, Value> Assumption; ///< what functions that call themselves return there
  int Depth = 0;
  int OwnChoices = 0;                               ///< conditions of this rank's own batch around here
  int Tries = 0;                                    ///< try blocks around here
  int Wholes = 0;                                   ///< calls of `accelerator.whole` around here
  int Threads = 0;                                  ///< functions around here that another thread runs
  int NoGrads = 0;                                  ///< guards against gradients around here
  int Meetings = 0;                                 ///< how often ranks met so far
  std::set<ir::ExprId> LeafGradients;               ///< of leaves that are whole so far, in steps that share
  std::vector<ir::ExprId> RecomputedChoices;        ///< of the conditions around here that ranks haven't agreed on
  std::map<ir::ExprId, ir::StmtId> ChoiceLoop;      ///< `Value::Choice`, with the loop around it
  int Divergent = 0;                                ///< how many conditions around here differ between ranks
  int ByRank = 0;                                   ///< how many of them ask for the rank
  bool Globals = false;                             ///< what runs before `main`
  bool Read = false;                                ///< a loader has handed out batches
  std::optional<std::set<ir::VarId>> ReaderEngines; ///< generators that data are read with; None: the C library's
  bool Dead = false, Recording = true, Restart = false, LoopCondition = false;
  std::map<ir::ExprId, Value> Standing; ///< values that stand for what expressions hold, in modules of containers
  uint64_t Steps = 0;                   ///< of all rounds
  bool Exhausted = false;

  // Kept over runs.
  std::set<uint32_t> KeepWhole; ///< evaluation loaders that can't be shared out
  bool FilesDecide = false;     ///< files are changed where something from outside decides: the ranks agree on all such
  int OutsideChoices = 0;       ///< branches around that the ranks haven't agreed on
  std::set<ir::ExprId> Statements;                    ///< expressions that are statements: nothing uses their value
  std::optional<std::set<ir::VarId>> Parameters;      ///< that are registered as such
  std::optional<std::set<ir::ExprId>> WeightedShares; ///< first arguments of `share(x, weight)`
  std::set<ir::ExprId> PaddedForAll;                  ///< arguments of `pad_across_processes(x)`
  std::optional<std::set<ir::VarId>> InParts;         ///< tensors of which a part is written by another name
  std::optional<bool> Ignored;                        ///< the class that losses leave out is written somewhere
  std::optional<bool> ItemsAreTensors;                ///< of a data set of the project's, which nothing collates
  std::optional<bool> Derivatives;                    ///< at inputs are taken
  std::map<uint32_t, int> LeastRank; ///< by `Value::RankOf`: dimensions that it has at least, since one was asked for
  mutable std::map<ir::VarId, std::vector<ir::ExprId>> OptionCalls; ///< `options.reduction(kSum);`, by variable
  mutable std::optional<std::set<ir::VarId>> Changed;   ///< what is assigned to, or handed to what may write
  mutable std::optional<std::set<ir::ExprId>> Targets;  ///< what stands where tensors are written
  mutable std::optional<std::set<ir::VarId>> Hidden;    ///< variables whose address is kept where nothing follows it
  mutable std::optional<std::set<ir::VarId>> Beside;    ///< flags that are set beside the training
  mutable std::optional<std::set<ir::ExprId>> Awaited;  ///< what opens files that are written and read
  mutable std::optional<std::set<std::string>> Removed; ///< files that the program removes
  mutable std::map<ir::FuncId, Body> Bodies;
  std::map<ir::StmtId, std::set<ir::VarId>> Rebinds; ///< what is assigned within a branch or loop
  std::map<ir::FuncId, Value> FollowedOnce; ///< functions that are apart and write nowhere, with what they give
  mutable std::map<ir::FuncId, std::set<ir::FuncId>> Apart; ///< what a function may run; empty if it isn't apart
  mutable std::map<ir::FuncId, bool> Alone;                 ///< lambdas that know only what they are given
  mutable std::map<ir::VarId, std::vector<ir::ExprId>> ModuleInits; ///< what module variables are set to
  mutable bool SettingsKnown = false;
  mutable std::set<ir::ExprId> SetUnderIf;    ///< setters of options under a condition
  mutable bool SaidUnderIf = false;           ///< what was asked for was found in one of these
  std::map<ir::ExprId, ir::FuncId> CoercedIn; ///< the function that ran when a coercion was recorded
  std::map<ir::ExprId, ir::FuncId> GathersIn; ///< the innermost function around it that can be given all rows
  std::set<ir::FuncId> WholeArguments;        ///< functions whose arguments are brought together where they are called
  std::set<ir::FuncId> GatheredArguments;     ///< functions that are given all rows of a batch
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> GatheredTexts; ///< where their arguments are written
  std::set<ir::ExprId> AgreedOn;                                    ///< choices that ranks agree on where they are made
  std::set<ir::ExprId> WholeGradients;                   ///< at leaves that stay whole where their rows are shared out
  std::set<ir::ExprId> NotThere;                         ///< choices that not all ranks come to
  std::set<ir::ExprId> MetUnder;                         ///< recomputed conditions under which ranks meet
  std::set<ir::FuncId> MeetsIn;                          ///< functions in which ranks meet
  std::set<ir::FuncId> CallsItself;                      ///< functions that were come to within themselves
  std::set<ir::FuncId> ReturnsEarly;                     ///< functions that a recomputed condition may leave
  std::set<ir::FuncId> AgreesIn;                         ///< functions in which ranks agree on a choice
  std::vector<std::pair<ir::ExprId, ir::FuncId>> AtExit; ///< what runs behind `main`, and where that is asked for
  std::set<ir::FuncId> InThreads;                        ///< functions that other threads run, too
  std::optional<std::set<ir::FuncId>> OfLoaders;         ///< functions that loaders call, as often as each has rows
  std::set<ir::ExprId> Assigned;                         ///< right-hand sides of assignments that outlive their step
  std::map<ir::ExprId, unsigned> Cuts;        ///< whole values of which each rank takes its rows, along a dimension
  std::map<ir::ExprId, ir::ExprId> OwnCounts; ///< a loader's batch size that means this rank's rows, and their name
  std::set<ir::ExprId> Turned;                ///< of Cuts: it is known along which
  bool Evaluates = false;                     ///< a module was last told to `eval()`, not to `train()`
  /// This rank's rows outlive the step there; whether it started without, so that they are of the step before.
  std::map<Location, bool> Carried;
  std::set<ir::ExprId> ForEachRow; ///< of Cuts: vectors that are taken to hold a number for each row
  std::optional<std::vector<ir::ExprId>> CouplingLayers;
  std::set<ir::ExprId> OwnRows;                           ///< whole values with the rows of the loader's batch in hand
  std::set<ir::StmtId> CutLoops;                          ///< whose steps train on them
  std::map<std::string, uint32_t> Names;                  ///< of `Value::Rows`
  std::optional<std::map<ir::VarId, ir::StmtId>> Filling; ///< lists, and the one block that fills each
  std::map<uint32_t, int64_t> RowCounts;                  ///< by `Value::Rows`, where it is written out
  std::map<uint32_t, ir::ExprId> Lengths;                 ///< and what tells it, a number or a variable
  std::map<uint32_t, uint32_t> Joined;           ///< rows of a list's items, joined, with the number of the items
  std::set<uint32_t> Exactly;                    ///< of these, what has no fewer in a last batch
  std::set<uint32_t> Windows;                    ///< of `Value::Rows`: of rows that begin elsewhere in each step
  std::set<uint32_t> Uncounted;                  ///< of `Value::Rows`: of what may have any number
  std::set<uint32_t> Filled;                     ///< of `Value::Rows`: of all that one call filled or gave
  std::set<ir::ExprId> Fills;                    ///< arguments that a call without a body fills with a batch
  std::map<ir::StmtId, Evidence> RowLoops;       ///< over rows of a training batch, that are no folds, and why
  std::set<Location> SharedItems;                ///< lists of losses that are means and parts of sums
  std::set<Location> EachStep;                   ///< accumulators of parts and of wholes: no part of theirs can wait
  std::set<ir::VarId> OutsideStreams;            ///< streams that a clock or the like was written to
  std::set<ir::ExprId> KeptRows;                 ///< rows that are written to a part of what outlives the step
  std::set<ir::ExprId> BroughtTogether;          ///< rows that meet all others of their batch, and means over them
  std::set<ir::ExprId> TrainedBelow, WholeBelow; ///< denominators that are sums over rows, with a gradient and without
  std::set<ir::ExprId> BothBelow;                ///< those that are both, on several paths
  std::set<std::pair<ir::StmtId, Location>> WholeAfter; ///< of this run: what is whole behind a loop
  std::set<ir::ExprId> CoerceAtReturn;                  ///< returned values of which another is equal on all ranks
  std::map<ir::ExprId, bool> KeptExtremes;              ///< `x` in `if (x > worst) worst = x;`; the largest?
  std::set<ir::ExprId> NeededForRows;  ///< right-hand sides in loops whose value each row is computed with
  std::set<ir::ExprId> MeanTerms;      ///< `f(row) / rows`, added up over the rows
  std::set<ir::ExprId> CoerceAtAssign; ///< right-hand sides whose value escapes its step
};

} // namespace migrate

#endif
