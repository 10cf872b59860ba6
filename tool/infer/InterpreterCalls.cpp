//===- InterpreterCalls.cpp - Calls and operations ------------------------===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <functional>

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether `E`, or what a variable in it was initialised with, names an enumerator, constant or option: `kSum`.
bool Interpreter::mentions(ir::ExprId E, const char *Text, int Levels) const {
  bool Found = false;
  std::set<ir::VarId> Through;
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    StringRef Last = StringRef(X.Name).rsplit("::").second.empty() ? StringRef(X.Name) : StringRef(X.Name).rsplit("::").second;
    Found |= Last == Text;
    if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None)
      Through.insert(X.Var);
  });
  if (!Found && Levels > 0)
    for (ir::VarId V : Through)
      if (auto It = R.Init.find(V); It != R.Init.end() && It->second != E && mentions(It->second, Text, Levels - 1))
        return true;
  return Found;
}

std::optional<int64_t> Interpreter::integer(ir::ExprId E) const {
  const ir::Expr &X = P.Code.Exprs[E];
  if (X.Kind == ExprKind::Unary && X.Name == "-")
    if (auto V = integer(X.Args[0]))
      return -*V;
  int64_t Result;
  if (X.Kind == ExprKind::Literal && P.Code.type(E).Kind == TypeKind::Integer && !StringRef(X.Name).getAsInteger(10, Result))
    return Result;
  if ((X.Kind == ExprKind::Cast || X.Kind == ExprKind::List || X.Kind == ExprKind::Construct) && X.Args.size() == 1)
    return integer(X.Args[0]);
  if (X.Kind == ExprKind::Ref && X.Var != None)
    if (auto It = R.Init.find(X.Var); It != R.Init.end() && P.Code.typeOf(X.Var).Const)
      return integer(It->second);
  return std::nullopt;
}

static bool isPrint(StringRef Name) {
  static const llvm::StringSet<> Names = {"printf",      "std::printf", "fprintf",      "std::fprintf", "puts",
                                          "std::puts",   "fputs",       "std::fputs",   "snprintf",     "std::snprintf",
                                          "sprintf",     "std::sprintf", "fmt::print",  "fmt::println", "std::print",
                                          "std::println", "fmt::format", "std::format"};
  return Names.contains(Name);
}

static bool isCollecting(StringRef Name) {
  return Name.ends_with("::push_back") || Name.ends_with("::emplace_back") || Name.ends_with("::push") ||
         Name.ends_with("::insert") || Name.ends_with("::emplace") || Name.ends_with("::append");
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

Value Interpreter::call(ir::ExprId E, const ir::Expr &X) {
  if (StringRef(X.Name).starts_with("accelerate::"))
    return ours(E, X);
  if (isBackward(X)) {
    backward(E, X);
    return Value::of(Placement::Replicated, E);
  }
  if (std::optional<Value> V = special(E, X))
    return *V;
  if (std::vector<ir::FuncId> Bodies = P.bodies(X); !Bodies.empty())
    return dispatched(E, X, Bodies);
  if (X.Kind == ExprKind::Call && X.Object != None && StringRef(X.Name).ends_with("operator()")) {
    Value Callee = eval(X.Object);
    if (Callee.Func != None)
      return inlined(E, X, Callee.Func, Frames.back().This);
  }
  bool InPlace;
  if (const Operation *Op = Table.find(X.Name, InPlace))
    return operation(E, X, *Op, InPlace);
  return unknownCall(E, X);
}

/// Calls whose meaning isn't an operation on values.
std::optional<Value> Interpreter::special(ir::ExprId E, const ir::Expr &X) {
  StringRef Name = X.Name;
  if (isPrint(Name)) {
    for (ir::ExprId Arg : X.Args)
      demandReplicated(Arg, eval(Arg), "printed");
    notWhole("its loop prints", E);
    return Value::of(Placement::Replicated, E);
  }
  if (Name == "std::move" || Name == "std::forward" || Name == "std::ref" || Name == "std::cref" || Name == "std::as_const")
    return eval(X.Args[0]);
  if (X.Object != None && P.Code.type(X.Object).Kind == TypeKind::DataLoader &&
      (Name.ends_with("::begin") || Name.ends_with("::end"))) {
    ObjectId Loader = R.object(X.Object);
    auto It = R.Loaders.find(Loader);
    Value V = Value::of(Placement::Replicated, E);
    if (It != R.Loaders.end() && It->second.Mode == LoaderMode::Training)
      V = Value::sharded(0, E);
    else if (It != R.Loaders.end() && It->second.Mode == LoaderMode::Evaluation && !KeepWhole.count(Loader))
      V = Value::of(Placement::Own, E);
    V.Batch = Loader;
    V.Iterator = true;
    return V;
  }
  if (Name == "at::Tensor::to" || Name == "at::Tensor::cuda") {
    Value V = eval(X.Object);
    bool Device = Name == "at::Tensor::cuda" && X.Args.empty();
    for (size_t I = 0; I != X.Args.size(); ++I) {
      TypeKind Kind = P.Code.type(X.Args[I]).Kind;
      if (I == 0 && (Kind == TypeKind::Device || Kind == TypeKind::DeviceType) && !mentions(X.Args[I], "kCPU"))
        Device = true;
      else if (Kind != TypeKind::Bool)
        Device = false;
      eval(X.Args[I]);
    }
    if (V.Batch != None) {
      if (Device && Recording)
        Out.Moves[E] = V.Batch;
      else if (!Device)
        Out.Unmoved.insert(V.Batch);
    }
    V.Batch = None;
    return V;
  }
  if (Name.ends_with("::step") && X.Object != None &&
      (P.Code.type(X.Object).Kind == TypeKind::Optimizer || P.Code.type(X.Object).Kind == TypeKind::Scheduler)) {
    for (ir::ExprId Arg : X.Args)
      demandReplicated(Arg, eval(Arg), "given to a scheduler");
    notWhole("its loop steps", E);
    if (Divergent > 0)
      note("divergent-training", E, Value(), "steps where not every rank comes along");
    return Value::of(Placement::Replicated, E);
  }
  if (Name == "torch::save") {
    notWhole("its loop saves", E);
    if (Divergent > 0)
      note("divergent-branch", E, Value(), "saves where not every rank comes along");
    for (ir::ExprId Arg : X.Args)
      eval(Arg);
    return Value::of(Placement::Replicated, E);
  }
  return std::nullopt;
}

/// Our own interface is typed too: a migrated program must come out satisfied.
Value Interpreter::ours(ir::ExprId E, const ir::Expr &X) {
  StringRef Name = StringRef(X.Name).rsplit("::").second;
  if (Name == "backward") {
    backward(E, X);
    return Value::of(Placement::Replicated, E);
  }
  std::vector<Value> Args;
  for (ir::ExprId Arg : X.Args)
    Args.push_back(eval(Arg));
  if (Name == "reduce_")
    for (ir::ExprId Arg : X.Args)
      if (std::optional<Location> L = lvalue(Arg))
        write(*L, Value::of(Placement::Replicated, Arg), Arg);
  if ((Name == "share" || Name == "mine") && !Args.empty() && !Args[0].replicated())
    return Args[0].Kind == Placement::Own ? Args[0] : Value::partial(false, E);
  return Value::of(Placement::Replicated, E);
}

/// A virtual call may run any of the overriders: what is true of all of them is.
Value Interpreter::dispatched(ir::ExprId E, const ir::Expr &X, const std::vector<ir::FuncId> &Bodies) {
  std::optional<Location> This = X.Kind == ExprKind::Call ? lvalue(X.Object) : std::nullopt;
  if (Bodies.size() == 1)
    return inlined(E, X, Bodies.front(), This);
  State Before = Current, After;
  Value Result;
  for (size_t I = 0; I != Bodies.size(); ++I) {
    Current = Before;
    Value V = inlined(E, X, Bodies[I], This);
    Result = I == 0 ? V : join(Result, V);
    After = I == 0 ? Current : joined(After, Current);
  }
  Current = std::move(After);
  return Result;
}

Value Interpreter::inlined(ir::ExprId E, const ir::Expr &X, ir::FuncId F, std::optional<Location> This) {
  const ir::Function &Fn = P.Code.Functions[F];
  std::vector<Value> Values;
  std::vector<std::optional<Location>> Places;
  bool AllReplicated = true;
  for (ir::ExprId Arg : X.Args) {
    Values.push_back(eval(Arg));
    Places.push_back(lvalue(Arg));
    AllReplicated &= Values.back().replicated();
  }
  if (llvm::is_contained(Stack, F) || Stack.size() > 40)
    return AllReplicated ? Value::of(Placement::Replicated, E)
                         : Value::unknown("passes through the recursive function `" + Fn.Name + "`", E);
  Out.Reached.insert(F);
  for (size_t I = 0; I < Fn.Params.size() && I < Values.size(); ++I) {
    ir::VarId V = Fn.Params[I];
    Depths[V] = Depth;
    Alias.erase(V);
    if (P.Code.typeOf(V).Reference && Places[I])
      Alias[V] = *Places[I];
    else
      Current[Location{V, {}}] = Values[I];
  }
  Frames.push_back({F, This, Value::of(Placement::Replicated, E), false, {}});
  Stack.push_back(F);
  for (const auto &[Field, Init] : Fn.Inits)
    if (This) {
      Location L = *This;
      L.Path.push_back(Field);
      Value V = eval(Init);
      if (P.Code.Exprs[Init].Kind == ExprKind::Construct && P.Code.Exprs[Init].Args.empty())
        V = Value::of(Placement::Zero, Init);
      Current[L] = V;
    } else {
      eval(Init);
    }
  exec(Fn.Body);
  Frame &Top = Frames.back();
  for (const State &Returned : Top.Returns) {
    Current = Dead ? Returned : joined(Current, Returned);
    Dead = false;
  }
  Dead = false;
  Value Result = Top.Returned ? Top.Result : Value::of(Placement::Replicated, E);
  Frames.pop_back();
  Stack.pop_back();
  return Result;
}

void Interpreter::backward(ir::ExprId E, const ir::Expr &X) {
  bool Ours = StringRef(X.Name).starts_with("accelerate::");
  ir::ExprId Loss = X.Name == "at::Tensor::backward" ? X.Object : X.Args.empty() ? None : X.Args[0];
  for (ir::ExprId Arg : X.Args)
    if (Arg != Loss)
      eval(Arg);
  if (Loss == None)
    return;
  Value V = eval(Loss);
  notWhole("it trains", E);
  if (Divergent > 0)
    note("divergent-training", E, V, "trains where not every rank comes along");
  if (X.Name == "torch::autograd::backward") {
    note("unsupported-backward", E, V, "calls `torch::autograd::backward`");
    return;
  }
  if (V.replicated() || V.Kind == Placement::Mean) {
    if (Recording && !Ours)
      Out.Backwards[E] = "mean";
  } else if (V.Kind == Placement::Partial && V.Fresh) {
    if (Recording && !Ours)
      Out.Backwards[E] = "sum";
  } else {
    std::string Why = V.Why.empty() ? "is " + toString(V) : V.Why;
    note("coupled-loss", Loss, V, "the loss " + Why);
  }
}

Value Interpreter::unknownCall(ir::ExprId E, const ir::Expr &X) {
  Value Result = Value::of(Placement::Replicated, E);
  if (X.Object != None) {
    Result = eval(X.Object);
    if (Result.Batch != None && P.Code.type(X.Object).Kind == TypeKind::Tensor)
      Out.Unmoved.insert(Result.Batch);
  }
  bool Collects = X.Object != None && isCollecting(X.Name);
  for (ir::ExprId Arg : X.Args) {
    Value V = eval(Arg);
    if (V.Batch != None && P.Code.type(Arg).Kind == TypeKind::Tensor && X.Kind == ExprKind::Call && !Collects)
      Out.Unmoved.insert(V.Batch);
    V.Batch = None;
    if (V.Func != None && X.Kind == ExprKind::Construct)
      Result.Func = V.Func; // std::function of a lambda
    if (Collects) {
      std::optional<Location> L = lvalue(X.Object);
      bool Outlives = L && outer(*L);
      if (V.Kind == Placement::Own || Result.Kind == Placement::Own)
        notWhole("it collects values of its batches", E);
      if (Outlives) {
        for (const Loop &Around : Loops)
          if (Around.Mode == LoopMode::Whole)
            notWhole("it collects values of its batches", E);
        if (V.reducible() && numeric(Arg))
          V = demandReplicated(Arg, V, "collected over the steps");
        else if (!V.replicated())
          V = Value::unknown("collects rows of several steps", Arg);
      }
      if (L)
        write(*L, join(read(*L, E), V), Arg);
      continue;
    }
    if (V.replicated())
      continue;
    if (V.Kind == Placement::Own) {
      Result = V;
    } else if (X.Kind == ExprKind::Construct) {
      Result = Result.replicated() || Result.same(V) ? V : join(Result, V); // a tuple, a vector, an own struct
    } else if (V.reducible() && P.Code.type(Arg).number()) {
      demandReplicated(Arg, V, "passed on");
    } else if (V.Kind != Placement::Extent && Result.Kind != Placement::Unknown) {
      Result = V.Kind == Placement::Unknown
                   ? V
                   : Value::unknown("goes through `" + X.Name + "`, which isn't in the operation table", E);
    }
  }
  Result.Batch = None;
  if (!Result.replicated() && Result.Kind != Placement::Own && Result.Kind != Placement::Unknown &&
      X.Kind == ExprKind::Call && X.Object != None) {
    // A method of a container of rows, an accessor of a batch.
    StringRef Name = X.Name;
    if (Name.ends_with("::size"))
      return Value::of(Placement::Extent, E);
    if (Name.ends_with("::begin") || Name.ends_with("::end") || Name.ends_with("::at") || Name.ends_with("::front") ||
        Name.ends_with("::back") || Name.ends_with("::value") || Name.ends_with("::data") || Name.ends_with("::get"))
      return Result;
    if (P.Code.type(E).Kind == TypeKind::Void)
      return Value::of(Placement::Replicated, E);
    return Value::unknown("goes through `" + X.Name + "`, which isn't in the operation table", E);
  }
  return Result;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

namespace {
/// The placement of what is computed row by row from `Values`.
Value rowWise(const std::vector<Value> &Values, ir::ExprId E) {
  Value Result = Value::of(Placement::Replicated, E);
  for (const Value &V : Values) {
    if (V.Kind == Placement::Unknown || V.Kind == Placement::Own)
      return V;
    if (V.replicated() || V.Kind == Placement::Extent)
      continue;
    if (V.Kind != Placement::Sharded)
      return Value::unknown("is used (as " + toString(V) + ") before its parts on the ranks are brought together", E);
    if (Result.Kind == Placement::Sharded && Result.Dim != V.Dim)
      return Value::unknown("joins rows along different dimensions", E);
    int8_t Rank = Result.Kind == Placement::Sharded ? std::max(Result.Rank, V.Rank) : V.Rank;
    Result = V;
    Result.Rank = Rank;
  }
  Result.Batch = None;
  Result.Iterator = false;
  return Result;
}
} // namespace

/// Whether `E` is the number that a loader was given as its batch size: the same variable, or the same literal.
bool Interpreter::isBatchSize(ir::ExprId E) const {
  const ir::Expr *X = &P.Code.Exprs[E];
  while ((X->Kind == ExprKind::Cast || X->Kind == ExprKind::Construct) && X->Args.size() == 1)
    X = &P.Code.Exprs[X->Args[0]];
  for (const auto &[Object, Role] : R.Loaders)
    for (ir::ExprId Made : Role.Made)
      for (ir::ExprId Arg : P.Code.Exprs[Made].Args) {
        bool Same = false;
        P.forEachExpr(Arg, [&](ir::ExprId Sub) {
          const ir::Expr &Y = P.Code.Exprs[Sub];
          if (X->Kind == ExprKind::Ref || X->Kind == ExprKind::Field)
            Same |= (Y.Kind == ExprKind::Ref || Y.Kind == ExprKind::Field) && Y.Var == X->Var;
          else if (X->Kind == ExprKind::Literal)
            Same |= Y.Kind == ExprKind::Literal && Y.Name == X->Name && P.Code.type(Sub).Kind == TypeKind::Integer;
        });
        if (Same)
          return true;
      }
  return false;
}

/// `x.index({Slice(), -1})`: where the batch's dimension goes, if it is taken whole.
Value Interpreter::indexed(ir::ExprId E, const ir::Expr &X, Value V) {
  std::vector<ir::ExprId> Items;
  std::function<void(ir::ExprId)> Collect = [&](ir::ExprId Arg) {
    const ir::Expr &A = P.Code.Exprs[Arg];
    bool Slice = StringRef(P.Code.type(Arg).Name).ends_with("indexing::Slice");
    if ((A.Kind == ExprKind::List || A.Kind == ExprKind::Construct) && !A.Args.empty() && !Slice)
      for (ir::ExprId Sub : A.Args)
        Collect(Sub);
    else
      Items.push_back(Arg);
  };
  for (ir::ExprId Arg : X.Args)
    Collect(Arg);
  int Dim = 0, To = 0; // dimensions of the operand that are passed, and of the result
  for (ir::ExprId Item : Items) {
    const ir::Expr &A = P.Code.Exprs[Item];
    StringRef Type = P.Code.type(Item).Name;
    if (StringRef(A.Name).ends_with("None") || Type.ends_with("nullopt_t")) {
      ++To;
    } else if (Type.ends_with("indexing::Slice")) {
      if (Dim == V.Dim)
        break;
      ++Dim, ++To;
    } else if (P.Code.type(Item).Kind == TypeKind::Integer) {
      if (Dim == V.Dim)
        return Value::unknown("picks rows of a batch by number", E);
      ++Dim;
    } else {
      return Value::unknown("indexes a batch in a way that isn't followed", E);
    }
    if (Dim > V.Dim)
      break;
  }
  for (size_t I = 0; I != Items.size(); ++I)
    if (StringRef(P.Code.type(Items[I]).Name).ends_with("indexing::Slice") && int(I) == V.Dim &&
        !P.Code.Exprs[Items[I]].Args.empty())
      return Value::unknown("takes some rows of a batch by number", E);
  V.Dim = V.Dim - Dim + To;
  V.Rank = -1;
  return V;
}

Value Interpreter::operation(ir::ExprId E, const ir::Expr &X, Operation Op, bool InPlace) {
  // The operands, the object first; then the numbers among them tell dimensions.
  std::vector<ir::ExprId> Operands;
  if (X.Object != None && P.Code.type(X.Object).Kind != TypeKind::Module)
    Operands.push_back(X.Object);
  Operands.insert(Operands.end(), X.Args.begin(), X.Args.end());
  std::vector<Value> Values;
  for (ir::ExprId Operand : Operands) {
    Values.push_back(eval(Operand));
    bool Tensor = P.Code.type(Operand).Kind == TypeKind::Tensor;
    if (Values.back().Batch != None && Tensor && Op != Operation::Metadata && Op != Operation::Extent)
      Out.Unmoved.insert(Values.back().Batch);
  }
  if (Values.empty())
    return Value::of(Placement::Replicated, E);
  std::vector<int64_t> Numbers;
  std::vector<ir::ExprId> Shape;
  // `{-1, 320}` arrives wrapped in an array reference, an initializer list, a vector.
  std::function<void(ir::ExprId)> Collect = [&](ir::ExprId Operand) {
    const ir::Expr &A = P.Code.Exprs[Operand];
    bool Several = A.Kind == ExprKind::List || (A.Kind == ExprKind::Construct && P.Code.type(Operand).Kind != TypeKind::Tensor);
    if (Several && !A.Args.empty()) {
      for (ir::ExprId Sub : A.Args)
        Collect(Sub);
      return;
    }
    TypeKind Kind = P.Code.type(Operand).Kind;
    if (Kind == TypeKind::Tensor || Kind == TypeKind::Bool)
      return;
    Shape.push_back(Operand);
    if (auto N = integer(Operand))
      Numbers.push_back(*N);
  };
  for (ir::ExprId Operand : llvm::drop_begin(Operands))
    Collect(Operand);
  const Value &First = Values[0];
  Value Result = First;
  Result.Batch = None;
  Result.Iterator = false;
  bool Local = First.Kind == Placement::Sharded;
  int64_t Dim = First.Dim;
  ir::ExprId Made = X.Object != None ? X.Object : None; // of modules: options stand where they were made

  switch (Op) {
  case Operation::RowWise:
    Result = rowWise(Values, E);
    break;
  case Operation::Linear:
  case Operation::Item:
    break;
  case Operation::Update: {
    const char *Sign = StringRef(X.Name).contains("div") ? "/" : StringRef(X.Name).contains("mul") ? "*" : "+";
    if (InPlace && X.Object != None && *Sign == '+' && Values.size() > 1)
      if (std::optional<Location> L = lvalue(X.Object)) {
        Result = accumulate(*L, Values[1], Operands[1], E);
        break;
      }
    Result = Values.size() > 1 ? arithmetic(E, Sign, First, Values[1], Operands[0], Operands[1]) : Result;
    break;
  }
  case Operation::Sum:
  case Operation::Mean: {
    if (!Local)
      break;
    bool OverBatch = Numbers.empty() || llvm::is_contained(Numbers, Dim);
    if (!OverBatch) {
      Result.Dim -= llvm::count_if(Numbers, [&](int64_t N) { return N >= 0 && N < Dim; });
      Result.Rank = -1; // keepdim or not
      break;
    }
    Result = Op == Operation::Sum ? Value::partial(true, E) : Value::of(Placement::Mean, E);
    break;
  }
  case Operation::AlongDim: {
    // max(a, b) compares two tensors.
    bool TwoTensors = Values.size() == 2 && P.Code.type(Operands[1]).Kind == TypeKind::Tensor && Numbers.empty();
    if (TwoTensors) {
      Result = rowWise(Values, E);
      break;
    }
    if (First.Kind == Placement::Mean || First.Kind == Placement::Partial) {
      Result = rowWise(Values, E);
      break;
    }
    if (!Local)
      break;
    if (Numbers.empty())
      Result = Value::unknown("looks at all rows of the batch at once (`" + X.Name + "`)", E);
    else if (Numbers[0] == Dim || (Numbers[0] < 0 && First.Rank >= 0 && Numbers[0] + First.Rank == Dim))
      Result = Value::unknown("runs along the batch (`" + X.Name + "`)", E);
    break;
  }
  case Operation::Loss:
  case Operation::LossModule: {
    Value Rows = rowWise(Values, E);
    if (Rows.Kind != Placement::Sharded) {
      Result = Rows;
      break;
    }
    auto Says = [&](const char *Text) {
      bool Found = Op == Operation::LossModule && Made != None && mentions(Made, Text);
      for (ir::ExprId Arg : X.Args)
        Found |= P.Code.type(Arg).Kind != TypeKind::Tensor && mentions(Arg, Text, 2);
      return Found;
    };
    bool Weighted = Says("ignore_index") || Says("weight");
    if (Op == Operation::Loss && X.Args.size() > 2 && P.Code.type(X.Args[2]).Kind == TypeKind::Tensor &&
        P.Code.Exprs[X.Args[2]].Kind != ExprKind::List && P.Code.Exprs[X.Args[2]].Kind != ExprKind::Construct)
      Weighted = true;
    if (Says("None") || Says("kNone"))
      Result = Rows;
    else if (Says("Sum") || Says("kSum"))
      Result = Value::partial(true, E);
    else if (Weighted)
      Result = Value::unknown("is a mean weighted by class or index, whose weights differ between ranks", E);
    else
      Result = Value::of(Placement::Mean, E);
    break;
  }
  case Operation::Reshape: {
    if (!Local)
      break;
    bool Real = !Shape.empty() && (integer(Shape[0]) == -1 || Out.Types[Shape[0]].Kind == Placement::Extent ||
                                   eval(Shape[0]).Kind == Placement::Extent);
    if (Shape.empty() && Values.size() > 1 && Values[1].Kind == Placement::Extent)
      Real = true;
    if (Dim != 0)
      Result = Value::unknown("reshapes a batch that isn't cut along its first dimension", E);
    else if (!Real && !Shape.empty() && X.Object != None && isBatchSize(Shape[0]) &&
             (P.Code.Exprs[X.Object].Kind == ExprKind::Ref || P.Code.Exprs[X.Object].Kind == ExprKind::Field)) {
      // The loader's batch size: here the batch's own rows are meant.
      if (Recording)
        Out.BatchSizes[Shape[0]] = X.Object;
      Result.Rank = int8_t(Shape.size());
    } else if (!Real)
      Result = Value::unknown("has a fixed number where its shape must follow the batch's rows", E);
    else
      Result.Rank = Shape.empty() ? -1 : int8_t(Shape.size());
    break;
  }
  case Operation::Index:
    if (Local)
      Result = indexed(E, X, Result);
    break;
  case Operation::Cat:
  case Operation::Stack: {
    if (!Local)
      break;
    // A whole tensor beside this rank's rows has more rows than they.
    bool Mixed = false;
    std::function<void(ir::ExprId)> Look = [&](ir::ExprId Item) {
      if (P.Code.type(Item).Kind == TypeKind::Tensor)
        Mixed |= !eval(Item).same(First);
      else
        for (ir::ExprId Sub : P.Code.Exprs[Item].Args)
          Look(Sub);
    };
    if (P.Code.Exprs[Operands[0]].Kind != ExprKind::Ref)
      Look(Operands[0]);
    int64_t Along = Numbers.empty() ? 0 : Numbers[0];
    if (Mixed)
      Result = Value::unknown("puts rows of a batch beside something that isn't cut like them", E);
    else if (Op == Operation::Stack && Along >= 0 && Along <= Dim)
      Result.Dim += 1;
    else if (Op == Operation::Cat && (Along == Dim || (Along < 0 && First.Rank >= 0 && Along + First.Rank == Dim)))
      Result = Value::unknown("puts batches behind each other along their rows", E);
    if (Op == Operation::Stack)
      Result.Rank = -1;
    break;
  }
  case Operation::Transpose:
    if (Local && Numbers.size() >= 2) {
      int64_t A = Numbers[0], B = Numbers[1];
      if (A == Dim && B >= 0)
        Result.Dim = B;
      else if (B == Dim && A >= 0)
        Result.Dim = A;
      else if (A == Dim || B == Dim)
        Result = Value::unknown("moves the batch to a dimension counted from the end", E);
    }
    break;
  case Operation::Permute:
    if (Local) {
      auto It = llvm::find(Numbers, Dim);
      if (It == Numbers.end())
        Result = Value::unknown("permutes the batch's dimension in a way that isn't followed", E);
      else
        Result.Dim = It - Numbers.begin();
      Result.Rank = int8_t(Numbers.size());
    }
    break;
  case Operation::Unsqueeze:
    if (Local && !Numbers.empty() && Numbers[0] >= 0 && Numbers[0] <= Dim)
      Result.Dim += 1;
    if (Local && Result.Rank >= 0)
      Result.Rank += 1;
    break;
  case Operation::Squeeze:
    if (Local && !Numbers.empty() && Numbers[0] >= 0) {
      if (Numbers[0] == Dim)
        Result = Value::unknown("squeezes the batch's dimension", E);
      else if (Numbers[0] < Dim)
        Result.Dim -= 1;
    }
    if (Local)
      Result.Rank = -1; // a dimension that isn't 1 stays
    break;
  case Operation::Flatten:
    if (Local && Dim != 0)
      Result = Value::unknown("flattens a batch that isn't cut along its first dimension", E);
    else if (Local)
      Result.Rank = !Numbers.empty() && Numbers[0] == 1 && Numbers.size() == 1 ? 2 : -1;
    break;
  case Operation::MatMul: {
    bool AnyLocal = llvm::any_of(Values, [](const Value &V) { return V.Kind == Placement::Sharded; });
    // Three dimensions and more: one product for each row.
    bool Batched = llvm::all_of(Values, [](const Value &V) { return V.Kind == Placement::Sharded && V.Rank >= 3; });
    if (!AnyLocal || Batched || StringRef(X.Name).ends_with("bmm")) {
      Result = rowWise(Values, E);
      break;
    }
    if (Local && Dim == 0 && Values.size() == 2 && Values[1].replicated())
      break;
    Result = Value::unknown("multiplies rows of the batch with each other (`" + X.Name + "`)", E);
    break;
  }
  case Operation::Factory:
  case Operation::Noise: {
    Result = Value::of(Placement::Replicated, E);
    for (const Value &V : Values) {
      if (V.Kind == Placement::Extent)
        Result = Value::sharded(0, E);
      else if (V.Kind == Placement::Own || V.Kind == Placement::Unknown)
        Result = V;
      else if (V.reducible() || V.Kind == Placement::Sharded)
        Result = V;
    }
    Result.Batch = None;
    bool Zero = X.Name == "at::zeros" || X.Name == "torch::zeros" || X.Name == "at::Tensor::Tensor";
    if (Zero && Result.replicated())
      Result.Kind = Placement::Zero;
    if (Op == Operation::Noise && Result.Kind == Placement::Sharded)
      note("batch-noise", E, Result, "draws random numbers for the rows of a batch");
    if (Op == Operation::Noise && Result.Kind == Placement::Own)
      notWhole("it draws random numbers", E);
    break;
  }
  case Operation::NoiseLike:
    // Dropout is off in evaluation, and the same law where it isn't.
    if (StringRef(X.Name).contains("dropout")) {
      if (Local)
        note("dropout", E, First, "drops out at random");
      break;
    }
    if (Local)
      note("batch-noise", E, First, "draws random numbers for the rows of a batch");
    if (First.Kind == Placement::Own)
      notWhole("it draws random numbers", E);
    break;
  case Operation::Like:
    if (First.reducible())
      Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Metadata:
  case Operation::Replicated:
    Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Extent:
    if (First.Kind == Placement::Own)
      break;
    if (Local && (Numbers.empty() || Numbers[0] == Dim))
      Result = Value::of(Placement::Extent, E);
    else
      Result = Value::of(Placement::Replicated, E);
    break;
  case Operation::Number:
    Result = Value::of(Placement::Replicated, E);
    for (size_t I = 0; I != Values.size(); ++I)
      if (Value V = nonLinear(Values[I], Operands[I], "computed with"); !V.replicated())
        Result = V;
    break;
  case Operation::CoupledModule:
    if (Local)
      note("batch-statistics", E, First, "normalises with the statistics of this rank's rows");
    break;
  case Operation::NoiseModule:
    if (Local)
      note("dropout", E, First, "drops out at random");
    break;
  case Operation::RowModule:
    Result = rowWise(Values, E);
    break;
  case Operation::SequenceModule: {
    Result = rowWise(Values, E);
    bool BatchFirst = Made != None && mentions(Made, "batch_first");
    if (Result.Kind == Placement::Sharded && Result.Dim != (BatchFirst ? 0 : 1))
      Result = Value::unknown("feeds a recurrent or attention module whose batch dimension isn't the one that is cut", E);
    break;
  }
  }
  if (InPlace && X.Object != None)
    if (std::optional<Location> L = lvalue(X.Object))
      write(*L, Result, E);
  return Result;
}

} // namespace migrate
