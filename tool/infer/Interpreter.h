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

#include "infer/InterpreterState.h"
#include "infer/Kinds.h"
#include "infer/Operations.h"
#include "infer/Program.h"
#include "infer/Roles.h"
#include <map>
#include <optional>
#include <set>

namespace migrate {

class Interpreter : OneRun, OverRuns {
public:
  Interpreter(const Program &P, const Roles &R, const OperationTable &Table, const Ways &By)
      : P(P), R(R), Table(Table), By(By) {
    Cuts = By.CutToo;
  }
  Findings run();

private:
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
  std::vector<int64_t> standing(ir::StmtId Loop) const;
  State repeat(Loop L, llvm::function_ref<void()> Body);
  void runsMany(ir::FuncId Closure, llvm::function_ref<void()> Run);
  void execLoop(ir::StmtId Id);
  void execSwitch(ir::StmtId Id);
  void execTry(const ir::Stmt &S);
  bool asksOutput(ir::ExprId Condition) const;
  std::optional<bool> countedAs(const ir::Expr &X);
  std::optional<bool> flagged(const ir::Expr &X) const;
  std::optional<bool> pointed(const ir::Expr &X) const;
  bool isEvaluated(const ir::Expr &X);
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
  ir::ExprId setBy(const Value &V, ir::ExprId E) const;
  Value asSet(ir::ExprId From, Value V, const char *Use);
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
  void overflows(ir::ExprId E, const ir::Expr &X);
  const std::set<ir::VarId> &hidden() const;
  bool leadsAstray(ir::ExprId Pointer, const Location &L) const;
  std::optional<Value> behindUnknown(const Location &L) const;
  bool holdsAddress(const Location &L) const;
  bool makes(ir::ExprId E) const;
  std::pair<ir::VarId, bool> partOfVar(ir::ExprId E) const;
  bool writtenInParts(ir::VarId V);
  void placedBy(ir::ExprId Element);
  bool placedByOwn(ir::ExprId E);
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
  void setOutside(ir::ExprId To);
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
  ir::ExprId givenHere(ir::VarId Param) const;
  void readSettings() const;
  bool saysSetter(ir::VarId Object, const char *Text, ir::ExprId But) const;
  const std::vector<ir::ExprId> &couplingLayers();
  ir::ExprId holder(ir::ExprId E) const;
  std::vector<ir::ExprId> childrenOf(ir::ExprId Container) const;
  std::vector<ir::ExprId> layersWalked(const ir::Stmt &Loop) const;
  State walk(Loop L, const std::vector<ir::ExprId> &Layers);
  bool saysAnywhere(ir::ExprId Module, const char *Text) const;
  bool switchedOn(ir::ExprId Module, llvm::StringRef Option) const;
  bool madeWithout(ir::ExprId Maker, llvm::StringRef Option) const;
  bool optionGiven(const std::string &Option, const ir::Expr &X, const Operands &In) const;
  ir::ExprId shapeOf(ir::ExprId E) const;
  void hasAtLeast(const Value &V, ir::ExprId Tensor, int Dimensions);
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
  bool writtenByNumber(const Location &L);
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
  bool countsUp(ir::ExprId E) const;
  void agree(ir::ExprId E, const Value &V);

  // Flags that threads and signal handlers set (InterpreterBeside.cpp)
  const std::set<ir::VarId> &setBeside() const;
  const std::set<ir::VarId> &readBeside() const;
  const std::set<ir::VarId> &namedByLoaders();
  bool madeInThreads(ir::VarId V);
  bool setsFlag(ir::ExprId Handler) const;
  const std::map<ir::VarId, ir::ExprId> &raced() const; ///< lists that several threads fill (InterpreterRaces.cpp)

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
  ir::ExprId madeRows(ir::VarId V) const;
  ir::ExprId madeRowsOf(ir::ExprId E) const;
  void readsThroughPointers(ir::ExprId E, const ir::Expr &X);
  bool permutes(ir::ExprId E) const;
  bool turnsRows(const ir::Expr &X) const;
  bool runsOverAll(const ir::Expr &X) const;

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
  void origins(ir::ExprId E, const Loop &Step, std::vector<ir::ExprId> &Into, int Hops);
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
  std::optional<int64_t> integer(ir::ExprId E, int Hops = 0) const;
  std::optional<int64_t> memberInteger(const ir::Expr &X, int Hops) const;
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
};

} // namespace migrate

#endif
