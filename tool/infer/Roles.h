//===- Roles.h - Which object is what: by types and by flow, never by names ===//
#ifndef ACCELERATE_MIGRATE_INFER_ROLES_H
#define ACCELERATE_MIGRATE_INFER_ROLES_H

#include "infer/Program.h"
#include <map>
#include <set>

namespace migrate {

/// Objects are classes of variables and expressions that may denote the same thing: unified over declarations,
/// assignments, arguments, members and results.
using ObjectId = uint32_t;

struct OptimizerRole {
  ir::ExprId Made = ir::None;      ///< the construction; None for parameters that are updated by hand
  ir::VarId Var = ir::None;        ///< what holds it; of updates by hand, the model or the leaf tensor itself
  ir::FuncId Function = ir::None;  ///< where it is made
  ir::StmtId Statement = ir::None; ///< the declaration or assignment
  std::vector<ir::ExprId> Models;  ///< `X` of each `X.parameters()` that reached it
  ir::ExprId Target = ir::None;    ///< what is assigned, reset, emplaced or appended to: how it is named there
  bool Appended = false;           ///< it is the target's last item
  ir::VarId Holder = ir::None;     ///< of one that is made within the braces of an aggregate: what has it as a member
  std::vector<ir::VarId> Names;    ///< of one that is made in a call's argument: what the function calls the models
};

enum class LoaderMode { Unused, Training, Evaluation };

struct LoaderRole {
  std::vector<ir::ExprId> Made;  ///< `make_data_loader` calls
  std::vector<ir::StmtId> Loops; ///< loops over its batches
  LoaderMode Mode = LoaderMode::Unused;
  bool ByRows = false;  ///< made by `accelerate::make_data_loader` already
  bool Foreign = false; ///< made by something that can't be shared out
};

/// Whether something is a tensor or a list of them.
bool isTensors(const ir::Type &T);

class Roles {
public:
  explicit Roles(const Program &P);

  ObjectId object(ir::ExprId E) const;
  ObjectId objectOfVar(ir::VarId V) const { return find(V); }

  bool isTrainedModel(ir::ExprId E) const;
  /// Whether a tensor is a module's own, a gradient, or a leaf that is trained: what is written to it must be equal on
  /// all ranks.
  bool ofModel(ir::ExprId E) const;
  bool reachesBackward(ir::StmtId S) const;
  bool demonstrates(ir::ExprId Loss) const;
  std::vector<ir::ExprId> callsWith(ir::VarId List) const;
  /// What each call gives a parameter; None where it leaves it to its default.
  std::vector<ir::ExprId> givenTo(ir::VarId Param) const;

  /// All that a variable or field is made of or assigned, or that is put into it.
  std::vector<ir::ExprId> sourcesOf(ir::VarId V) const;
  /// Whether a member is a parameter that its module registers.
  bool isRegistered(ir::VarId V) const;

  std::vector<OptimizerRole> Optimizers;
  std::map<ObjectId, LoaderRole> Loaders;
  std::set<ObjectId> Models;          ///< whose parameters reach an optimizer
  std::vector<ir::StmtId> Schedulers; ///< declarations
  /// Whether a variable is a leaf that isn't trained, whose gradient is read.
  bool isInputLeaf(ir::VarId V) const { return Inputs.count(V) != 0; }
  std::set<ir::ExprId> InputCalls;      ///< `requires_grad_()` and the like, of leaves that aren't trained
  /// Leaves at which derivatives are taken, points of a differential equation: what each is made of, without what asks
  /// for its gradient; also by the parameters that it is given for. Not what an optimizer trains.
  std::map<ir::VarId, ir::ExprId> Points;
  std::set<ir::ExprId> PointCalls;      ///< what asks for their gradients
  std::vector<ir::ExprId> Ungraded;     ///< gradients that are read of tensors whose making wasn't found
  std::map<ir::VarId, ir::ExprId> Init; ///< first initialiser of each variable and field
  std::map<ir::StmtId, ir::StmtId> ParentOf;
  std::map<ir::VarId, ir::StmtId> DeclarationOf;
  /// Whether a variable is what a loop over a list names.
  bool isOneOfList(ir::VarId V) const;
  std::map<ir::StmtId, ir::FuncId> FunctionOf;
  std::set<ir::FuncId> Reachable; ///< functions that some way from `main` names, whether it is followed or not

private:
  ObjectId find(ObjectId O) const;
  void unite(ObjectId A, ObjectId B);
  void indexStatements();
  void unifyFlow();
  void findOptimizers();
  std::vector<std::pair<ir::VarId, ir::ExprId>> membersGiven(ir::ExprId Made) const;
  void sidesOf(ir::ExprId E, std::vector<ir::ExprId> &Into) const;
  void findOptimizersGiven();
  ir::ExprId groupedBy(ir::ExprId E) const;
  void findOptimizersPut();
  void findLoaders();
  void findSteppedLoaders();
  bool overLoader(ir::StmtId S) const;
  void findBackward();
  void hand(const ir::Type &To, ir::ExprId From);
  std::vector<ir::FuncId> mayRun(const ir::Expr &X) const;
  void findUpdatesByHand();
  bool tracesToParameters(ir::ExprId E, std::set<ir::VarId> &Seen);
  bool trainedByHand(ir::VarId V);
  ir::StmtId behindGlobal(ir::VarId V) const;
  bool madeInStep(ir::VarId V, ir::ExprId Gradient) const;
  bool ofBatch(ir::VarId V) const;
  void inputAt(ir::VarId V);
  void findPoints();
  void findUnread();
  bool optimized(ir::VarId V) const;
  bool movedByHand(ir::VarId V) const;
  bool pointAt(ir::VarId V, int Hops = 4);
  bool madeAnew(ir::VarId V) const;
  bool onlyLookedAt(ir::VarId V, int Depth = 0) const;
  std::vector<ir::ExprId> modelsIn(ir::ExprId E, ir::FuncId F, int Depth) const;

  const Program &P;
  mutable std::vector<ObjectId> Parent;
  std::set<ir::FuncId> Backward;
  std::set<ir::VarId> Inputs; ///< leaves that aren't trained, whose gradients are read
  std::set<ir::VarId> Traced; ///< variables and fields that lead to parameters whose gradients are read
  std::map<std::string, std::vector<ir::FuncId>> Handed; ///< to what holds functions, by its type
  std::map<ir::FuncId, std::vector<ir::ExprId>> CallsOf;
};

bool isBackward(const ir::Expr &E);
bool isMakeDataLoader(const ir::Expr &E);

} // namespace migrate

#endif
