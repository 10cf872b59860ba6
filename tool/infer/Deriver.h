//===- Deriver.h - How facts are derived (private to Structure*.cpp) ------===//
#ifndef ACCELERATE_MIGRATE_INFER_DERIVER_H
#define ACCELERATE_MIGRATE_INFER_DERIVER_H

#include "infer/Structure.h"
#include "infer/Taught.h"
#include <optional>

namespace migrate {

/// The namespaces and classes that hold what a USR names, `app::Data::`.
std::string scopeOf(llvm::StringRef Usr);

class Deriver {
public:
  Deriver(const Program &P, const Roles &R, const Findings &F, SourceText Text) : P(P), R(R), F(F), Text(Text) {}
  Facts run();

private:
  const ir::Expr &expr(ir::ExprId E) const { return P.Code.Exprs[E]; }
  Fact fact(const char *Name, ir::FuncId Function) const;
  Fact factAt(const char *Name, const char *Node, ir::ExprId E);
  /// Before the body, where no handle is yet.
  static void useTemporaryHandle(Fact &F) { F.Texts["accelerator"] = "accelerate::Accelerator()"; }
  ir::FuncId functionOf(ir::ExprId E);
  void own(ir::ExprId E, ir::FuncId Fn);
  bool sharedOut(ObjectId Loader) const;
  bool movesBatches(ObjectId Loader) const;
  bool inInitializer(ir::ExprId E);
  void loaders();
  bool worksBehind(ir::StmtId S) const;
  void advances();
  void openedFiles();
  bool mentionsOurs(ir::ExprId E) const;
  bool givesDevice(const ir::Expr &X) const;
  void device(ir::ExprId Value, ir::FuncId Function, bool InInitializer = false);
  void devices();
  std::set<ir::VarId> placingDevices() const;
  void chooseDevices();
  void chooseTaughtDevices();
  void chooseIndexed();
  void compareDevices();
  bool namesVisible(const ir::Expr &X) const;
  bool picksDevice() const;
  bool numbersGpu(const ir::Expr &X) const;
  bool namesDevice(ir::ExprId Text) const;
  bool numbersDevice(ir::ExprId Init) const;
  bool holdsIndexed(const ir::Range &Where) const;
  void models();
  bool moves(ir::ExprId E) const;
  ir::StmtId movesAlone(ir::ExprId E) const;
  bool doesWith(ir::StmtId S, ObjectId Model, bool Constructors, llvm::function_ref<bool(const ir::Expr &)> Does) const;
  bool asksPlace(ir::StmtId S, ObjectId Model) const;
  bool writesParameters(ir::StmtId S, ObjectId Model) const;
  bool madeApart(ir::ExprId A, ir::ExprId B) const;
  bool preparedBehind(ir::StmtId S, ir::ExprId Moved, ir::FuncId Fn) const;
  bool runs(ir::StmtId S, ObjectId Model) const;
  void batches();

  // Prepare (StructurePrepare.cpp)
  struct Preparation {
    ir::FuncId Function;
    ir::StmtId After = ir::None;
    std::vector<std::string> Objects;
  };
  ir::StmtId blockOf(ir::StmtId S) const;
  ir::VarId keptScheduler(ir::VarId V) const;
  ir::VarId assignedScheduler(ir::StmtId S) const;
  bool movesAway(ir::StmtId S, const std::set<ObjectId> &Involved) const;
  ir::StmtId listOf(ir::StmtId S) const;
  bool trains(ir::StmtId S) const;
  bool preparedAlready(ObjectId Object) const;
  void prepare();
  bool canBeNamed(ir::ExprId E, ir::StmtId At) const;
  bool constructs(const OptimizerRole &O) const;
  /// What a constructor's initialisers make that is prepared: an optimizer with its models, leaves trained by hand.
  struct Members {
    std::vector<std::string> Objects;
    std::set<ObjectId> Involved;
    ir::VarId Var = ir::None; ///< one of them
  };
  std::vector<ir::FuncId> preparesIn(ir::FuncId Makes, const std::set<ObjectId> &Involved) const;
  void prepareMembers(ir::FuncId In, Members All);
  bool prepareOf(ir::FuncId Ctor, const Members &All);
  /// Whether a later statement of the same block trains with the object.
  bool trainsBehind(ir::StmtId S, ObjectId With) const;
  bool isPreparedLoader(ir::VarId V) const;
  bool touches(ir::StmtId S, const std::set<ObjectId> &Involved) const;
  bool computesByModel(ir::StmtId S, int Hops = 3) const;
  size_t firstTraining(const std::vector<ir::StmtId> &Children, size_t From) const;
  size_t childWith(ir::StmtId Block, ir::StmtId Inner) const;
  size_t trainingBehind(ir::StmtId Block, const OptimizerRole &O) const;
  std::optional<size_t> lastTouch(const std::vector<ir::StmtId> &Children, size_t Begin, size_t End,
                                  const std::set<ObjectId> &Involved) const;
  void place(ir::StmtId Block, size_t Train, Preparation &Prep);
  bool contains(ir::StmtId S, ir::StmtId Inner) const;

  // Programs that drive several GPUs (StructureDevices.cpp)
  bool countsDevices(ir::ExprId E, int Hops = 4) const;
  void replicas();

  // Training and metrics (StructureTraining.cpp)
  void training();
  void reading();
  std::set<ir::FuncId> readers() const;
  void padsByHand(ir::FuncId Fn);
  void leavesOut(ir::FuncId Fn);
  bool countsBeyond(ir::FuncId Fn, const ir::Expr &X) const;
  bool handsOutViews() const;
  bool changesRows(ir::FuncId Fn, const ir::Expr &X) const;
  bool isGet(ir::FuncId Fn) const;
  std::string togetherIn(ir::FuncId Fn, const ir::Expr &X) const;
  std::string withCuts(ir::ExprId E);
  void methodsOfRows(const std::map<ir::ExprId, std::set<Placement>> &Calls, const char *Rule,
                     llvm::function_ref<void(ir::ExprId)> Otherwise);
  std::map<ir::ExprId, std::string> coercions();
  void metrics();
  bool isNull(ir::ExprId Pointer) const;
  bool ofOptimizer(llvm::StringRef Record) const;
  ir::ExprId detachedAt(ir::ExprId E) const;
  void refusals();
  void handWrittenGradients();

  const Program &P;
  const Roles &R;
  const Findings &F;
  SourceText Text;
  Facts Out;
  std::map<ir::ExprId, ir::FuncId> Owners;
  std::set<ObjectId> Prepared; ///< optimizers
  std::set<ObjectId> PreparedLoaders;
  std::set<ir::VarId> NamedLoaders; ///< in a `prepare`
  bool Asks = false;
  std::vector<ir::ExprId> ChosenDevices;
  std::vector<ir::Range> Indexed; ///< numbered GPUs that no variable holds
  std::set<ir::StmtId> Deleted;   ///< moves that `prepare` takes over
};

} // namespace migrate

#endif
