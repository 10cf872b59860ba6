//===- InterpreterModules.cpp - Modules: how they were made, what they hold ===//
#include "infer/Interpreter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::TypeKind;

namespace migrate {

/// What a parameter is given: by the call that runs now, or, once that has returned, by any.
std::vector<ir::ExprId> Interpreter::givenTo(ir::VarId Param) const {
  if (Param == None || !P.Code.Vars[Param].Param)
    return {};
  for (const Frame &F : llvm::reverse(Frames)) {
    const std::vector<ir::VarId> &Params = P.Code.Functions[F.Function].Params;
    if (auto It = llvm::find(Params, Param); It != Params.end()) {
      size_t I = It - Params.begin();
      return I < F.Args.size() && F.Args[I] != None ? std::vector{F.Args[I]} : std::vector<ir::ExprId>();
    }
  }
  std::vector<ir::ExprId> Given = R.givenTo(Param);
  llvm::erase(Given, None);
  return Given;
}

/// What a parameter of the function that runs is given. None of anything else.
ir::ExprId Interpreter::givenHere(ir::VarId Param) const {
  const Frame &F = Frames.back();
  const std::vector<ir::VarId> &Params = P.Code.Functions[F.Function].Params;
  const size_t I = llvm::find(Params, Param) - Params.begin();
  return I < std::min(Params.size(), F.Args.size()) ? F.Args[I] : None;
}

/// Gathers what modules and options are set to: by assignments, by setters.
void Interpreter::readSettings() const {
  if (SettingsKnown)
    return;
  SettingsKnown = true;
  for (const auto &[Var, Init] : R.Init)
    ModuleInits[Var].push_back(Init);
  auto Set = [&](ir::ExprId Object, ir::ExprId By) {
    const ir::Expr &X = P.Code.Exprs[Object];
    if (X.Kind == ExprKind::Field && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module)
      Object = P.unconverted(X.Object); // `loss->options.ignore_index(0)`
    if (P.Code.Exprs[Object].Kind == ExprKind::Call && P.Code.Exprs[Object].Object != None) // `loss->`
      Object = P.Code.Exprs[Object].Object;
    if (P.Code.Exprs[Object].Var != None)
      OptionCalls[P.Code.Exprs[Object].Var].push_back(By);
  };
  auto IsSetter = [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    return X.Kind == ExprKind::Call && X.Object != None && StringRef(P.Code.type(X.Object).Name).contains("Options");
  };
  for (const auto &[Id, F] : R.FunctionOf) {
    if (P.Code.Stmts[Id].Kind != ir::StmtKind::If)
      continue;
    std::set<ir::VarId> Inside;
    P.forEachStmt(Id, [&](ir::StmtId S) { Inside.insert(P.Code.Stmts[S].Var); });
    P.forEachExprIn(Id, [&](ir::ExprId E) {
      if (IsSetter(E) && !Inside.count(P.Code.Exprs[P.Code.Exprs[E].Object].Var))
        SetUnderIf.insert(E);
    });
  }
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind == ExprKind::Assign && X.Name == "=" && P.Code.Exprs[X.Args[0]].Var != None &&
        P.Code.type(X.Args[0]).Kind == TypeKind::Module)
      ModuleInits[P.Code.Exprs[X.Args[0]].Var].push_back(X.Args[1]);
    if (IsSetter(E))
      Set(X.Object, E);
    if (X.Kind == ExprKind::Assign && IsSetter(X.Args[0])) // `options.reduction() = torch::kSum`
      Set(P.Code.Exprs[X.Args[0]].Object, E);
  }
}

/// Whether `E`, or what a variable in it was initialised with, names an enumerator, constant or option: `kSum`.
bool Interpreter::mentions(ir::ExprId E, const char *Text, int Levels) const {
  bool Found = false;
  std::set<ir::VarId> Through;
  std::vector<ir::ExprId> Made;
  readSettings();
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    const ir::Expr &X = P.Code.Exprs[Sub];
    StringRef Last =
        StringRef(X.Name).rsplit("::").second.empty() ? StringRef(X.Name) : StringRef(X.Name).rsplit("::").second;
    Found |= Last == Text;
    if ((X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) && X.Var != None)
      Through.insert(X.Var);
    if (X.Kind == ExprKind::Call && StringRef(P.Code.type(Sub).Name).contains("Options"))
      for (ir::FuncId F : P.bodies(X)) // a function of the program that makes them
        llvm::append_range(Made, P.returned(F));
  });
  if (Found || Levels <= 0)
    return Found;
  for (ir::VarId V : Through) {
    if (auto It = R.Init.find(V); It != R.Init.end())
      Made.push_back(It->second);
    llvm::append_range(Made, givenTo(V));
    if (saysSetter(V, Text, E))
      return true;
  }
  return llvm::any_of(Made, [&](ir::ExprId By) { return By != E && mentions(By, Text, Levels - 1); });
}

/// Whether a setter that was called on an object, or on its options, names an option or a constant.
bool Interpreter::saysSetter(ir::VarId Object, const char *Text, ir::ExprId But) const {
  auto It = OptionCalls.find(Object);
  return It != OptionCalls.end() && llvm::any_of(It->second, [&](ir::ExprId Call) {
           const ir::Expr &X = P.Code.Exprs[Call];
           bool Says = StringRef(X.Name).rsplit("::").second == Text ||
                       (Call != But &&
                        llvm::any_of(X.Args, [&](ir::ExprId Arg) { return Arg != None && mentions(Arg, Text, 0); }));
           SaidUnderIf |= Says && SetUnderIf.count(Call);
           return Says;
         });
}

/// The constructions behind a module: of its variable's or member's initialisers and assignments, through
/// `register_module`, smart pointers, parameters, and functions that make it.
Interpreter::Origins Interpreter::origins(ir::ExprId Module) const {
  readSettings();
  Origins Found;
  std::set<ir::ExprId> Seen;
  auto Follow = [&](auto &Self, ir::ExprId E) -> void {
    if (E == None || !Seen.insert(E).second)
      return;
    if (Seen.size() > 100) {
      Found.Lost = true;
      return;
    }
    const ir::Expr &X = P.Code.Exprs[E];
    bool Wraps = X.Args.size() == 1 && P.Code.type(X.Args[0]).Kind == TypeKind::Module &&
                 !StringRef(P.Code.type(E).Name).contains("AnyModule") &&
                 !StringRef(P.Code.type(E).Name).contains("Sequential");
    if (X.Kind == ExprKind::Ref || X.Kind == ExprKind::Field) {
      Found.Vars.insert(X.Var);
      std::vector<ir::ExprId> From = givenTo(X.Var);
      bool Param = X.Var != None && P.Code.Vars[X.Var].Param;
      Found.Lost |= Param && From.empty();
      Found.Lost |= R.isOneOfList(X.Var);
      if (auto It = ModuleInits.find(X.Var); It != ModuleInits.end())
        llvm::append_range(From, It->second);
      for (ir::ExprId Init : From)
        Self(Self, Init);
    } else if (X.Kind == ExprKind::Cast || X.Kind == ExprKind::Unary) {
      if (!X.Args.empty())
        Self(Self, X.Args[0]);
    } else if (StringRef(X.Name).ends_with("::register_module") && !X.Args.empty()) {
      Self(Self, X.Args.back());
    } else if (X.Kind == ExprKind::Construct && Wraps) {
      Self(Self, X.Args[0]);
    } else if (X.Kind == ExprKind::Construct || StringRef(X.Name).starts_with("std::make_")) {
      bool Null = X.Args.size() == 1 && P.Code.type(X.Args[0]).Name == "std::nullptr_t";
      if (!Null && P.Code.type(E).Kind == TypeKind::Module)
        Found.Made.push_back(E);
    } else if (X.Kind == ExprKind::Call && !X.Args.empty() &&
               (X.Name == "std::move" || X.Name == "std::forward" || X.Name == "std::ref")) {
      Self(Self, X.Args[0]);
    } else if (X.Kind == ExprKind::Call) {
      // A function of the program that makes it.
      std::vector<ir::FuncId> Bodies = P.bodies(X);
      for (ir::FuncId F : Bodies)
        for (ir::ExprId Returned : P.returned(F))
          Self(Self, Returned);
      if (Bodies.empty() && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module)
        Self(Self, X.Object); // `loss.get()`
      else
        Found.Lost |= Bodies.empty();
    } else if (X.Kind == ExprKind::Conditional) {
      Self(Self, X.Args[1]);
      Self(Self, X.Args[2]);
    } else if (X.Kind == ExprKind::Index) {
      Found.Lost = true;
    }
  };
  Follow(Follow, Module);
  return Found;
}

std::vector<ir::ExprId> Interpreter::constructions(ir::ExprId Module) const { return origins(Module).Made; }

/// Whether any construction of the module, or what is set in it later, mentions an option or a constant.
bool Interpreter::saysAnywhere(ir::ExprId Module, const char *Text) const {
  Origins From = origins(Module);
  return mentions(Module, Text) || llvm::any_of(From.Made, [&](ir::ExprId Made) { return mentions(Made, Text); }) ||
         llvm::any_of(From.Vars, [&](ir::VarId Var) { return saysSetter(Var, Text, None); });
}

/// Whether the module was made with `.option(true)`.
bool Interpreter::switchedOn(ir::ExprId Module, StringRef Option) const {
  std::vector<ir::ExprId> Made = constructions(Module);
  if (Made.empty())
    return mentions(Module, Option.str().c_str());
  for (ir::ExprId E : Made) {
    Arguments Args = arguments(OperationRow(), P.Code.Exprs[E].Args);
    auto It = Args.find(Option.str());
    if (It != Args.end() && (It->second.empty() || P.Code.Exprs[It->second[0]].Name != "false"))
      return true;
  }
  return false;
}

/// Whether a module or a function was given an option, or needs none, `always`; `.option(false)` doesn't count.
bool Interpreter::optionGiven(const std::string &Option, const ir::Expr &X, const Operands &In) const {
  if (Option.empty() || Option == "always")
    return !Option.empty();
  if (llvm::any_of(X.Args, [&](ir::ExprId Arg) { return mentions(Arg, Option.c_str(), 2); }))
    return true;
  if (In.Maker == None || !saysAnywhere(In.Maker, Option.c_str()))
    return false;
  std::vector<ir::ExprId> Made = constructions(In.Maker);
  return Made.empty() || !llvm::all_of(Made, [&](ir::ExprId E) {
           Arguments Args = arguments(OperationRow(), P.Code.Exprs[E].Args);
           auto It = Args.find(Option);
           return It != Args.end() && !It->second.empty() && P.Code.Exprs[It->second[0]].Name == "false";
         });
}

/// Whether a module is made with an option of zero, wherever it is made: `options.dropout(0.0)`, or `Dropout(0.0)`,
/// whose options take their first without a name.
bool Interpreter::madeWithout(ir::ExprId Maker, StringRef Option) const {
  auto IsZero = [&](ir::ExprId E) {
    double Given = 1;
    return E != None && !StringRef(P.Code.Exprs[P.unconverted(E)].Name).getAsDouble(Given) && Given == 0;
  };
  auto First = [&](ir::ExprId E) {
    while (E != None && P.Code.Exprs[E].Kind == ExprKind::Construct && P.Code.Exprs[E].Args.size() == 1)
      E = P.unconverted(P.Code.Exprs[E].Args[0]);
    return E;
  };
  const std::vector<ir::ExprId> Made = Maker == None ? std::vector<ir::ExprId>() : constructions(Maker);
  return !Made.empty() && llvm::all_of(Made, [&](ir::ExprId E) {
    Arguments Args = arguments(OperationRow(), P.Code.Exprs[E].Args);
    if (auto It = Args.find(Option.str()); It != Args.end())
      return It->second.size() == 1 && IsZero(It->second[0]);
    return Option == "p" && IsZero(First(E));
  });
}

/// `T<int>` of the rest of `std::unique_ptr<T<int>, D>`.
StringRef firstArgument(StringRef Rest) {
  int Depth = 0;
  return Rest
      .take_until([&](char C) {
        Depth += (C == '<') - (C == '>');
        return Depth < 0 || (Depth == 0 && C == ',');
      })
      .trim();
}

/// The class of a module that a pointer or a holder is of.
static StringRef moduleClass(StringRef Class) {
  for (const char *Wrapper : {"std::shared_ptr<", "std::unique_ptr<", "torch::nn::ModuleHolder<"})
    if (Class.consume_front(Wrapper))
      Class = firstArgument(Class);
  return Class;
}

/// Whether a call gives a container of LibTorch's a module: `layers->push_back(...)`.
static bool addsLayer(const ir::Expr &X) {
  return X.Kind == ExprKind::Call && StringRef(X.Name).contains("torch::nn::") &&
         StringRef(X.Name).ends_with("::push_back");
}

/// `layers` of `*layers`, `layers.get()`.
ir::ExprId Interpreter::holder(ir::ExprId E) const {
  for (;;) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    if (X.Kind == ExprKind::Unary && !X.Args.empty())
      E = X.Args[0];
    else if (X.Kind == ExprKind::Call && X.Object != None && P.bodies(X).empty())
      E = X.Object;
    else
      return E;
  }
}

/// The modules that a container was given, in order: by its constructor and by `push_back`.
std::vector<ir::ExprId> Interpreter::childrenOf(ir::ExprId Container) const {
  std::vector<ir::ExprId> Found;
  if (Container == None) // an iterator leads to it
    return Found;
  auto Collect = [&](auto &Self, ir::ExprId E) -> void {
    if (E == None)
      return;
    const ir::Expr &X = P.Code.Exprs[E];
    StringRef Type = P.Code.type(E).Name;
    bool Module = P.Code.type(E).Kind == TypeKind::Module && !Type.ends_with("AnyModule");
    if (Module && X.Kind != ExprKind::List && X.Kind != ExprKind::Cast) {
      Found.push_back(E);
      return;
    }
    Self(Self, X.Object);
    for (ir::ExprId Arg : X.Args)
      Self(Self, Arg);
  };
  std::set<ir::VarId> Vars;
  if (ir::VarId V = P.Code.Exprs[Container].Var; V != None)
    Vars.insert(V);
  for (ir::ExprId Made : constructions(Container)) {
    for (ir::ExprId Arg : P.Code.Exprs[Made].Args)
      Collect(Collect, Arg);
    for (const auto &[Var, Inits] : ModuleInits)
      if (llvm::is_contained(Inits, Made))
        Vars.insert(Var);
  }
  // A class of the program that is a container, `struct NetImpl : torch::nn::SequentialImpl`, fills itself.
  StringRef Class = moduleClass(P.Code.type(Container).Name);
  auto Itself = [&](ir::ExprId Object) {
    StringRef Of = P.Code.type(Object).Name;
    Of = P.Code.Exprs[Object].Kind == ExprKind::This ? Of.rtrim(" *") : "";
    return !Of.empty() && (Of == Class || Of == (Class + "Impl").str());
  };
  std::set<ir::VarId> Seen = Vars;
  auto Fill = [&](auto &Self, const std::set<ir::VarId> &Of) -> void {
    for (const ir::Expr &X : P.Code.Exprs) {
      if (X.Kind != ExprKind::Call)
        continue;
      const bool Its = X.Object != None && (Of.count(P.Code.Exprs[X.Object].Var) || (Of == Vars && Itself(X.Object)));
      if (Its && addsLayer(X))
        for (ir::ExprId Arg : X.Args)
          Collect(Collect, Arg);
      if (Its && StringRef(X.Name).contains("torch::nn::") && StringRef(X.Name).ends_with("::extend") &&
          !X.Args.empty()) {
        const ir::ExprId Other = holder(X.Args[0]);
        if (ir::VarId V = P.Code.Exprs[Other].Var; V != None && Seen.insert(V).second)
          llvm::append_range(Found, childrenOf(Other));
      }
      // `block(layers, 16, 32);` of a function of the project's, which fills its parameter.
      for (ir::FuncId F : P.bodies(X))
        for (size_t I = 0; I < std::min(X.Args.size(), P.Code.Functions[F].Params.size()); ++I)
          if (const ir::VarId Param = P.Code.Functions[F].Params[I];
              X.Args[I] != None && P.Code.typeOf(Param).Kind == TypeKind::Module &&
              Of.count(P.Code.Exprs[holder(X.Args[I])].Var) && Seen.insert(Param).second)
            Self(Self, {Param});
    }
  };
  Fill(Fill, Vars);
  return Found;
}

/// What the program's containers are given that looks at all rows of a batch, or draws.
const std::vector<ir::ExprId> &Interpreter::couplingLayers() {
  if (CouplingLayers)
    return *CouplingLayers;
  CouplingLayers.emplace();
  auto Layer = [&](ir::ExprId E) {
    const ir::Expr &X = P.Code.Exprs[E];
    if (X.Kind != ExprKind::Construct || P.Code.type(E).Kind != TypeKind::Module)
      return;
    const OperationRow *Row = Table.module(moduleClass(P.Code.type(E).Name));
    if (Row && (Row->Kind == Operation::CoupledModule || Row->Kind == Operation::NoiseModule) &&
        !llvm::is_contained(*CouplingLayers, E))
      CouplingLayers->push_back(E);
  };
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = P.Code.Exprs[E];
    const bool Makes = X.Kind == ExprKind::Construct && StringRef(P.Code.type(E).Name).contains("Sequential");
    if (Makes || addsLayer(X))
      for (ir::ExprId Arg : X.Args)
        if (Arg != None)
          P.forEachExpr(Arg, Layer);
  }
  return *CouplingLayers;
}

static bool ofAllRows(const std::vector<Value> &Values) {
  return llvm::any_of(Values, [](const Value &V) { return V.AllRows; });
}

/// A module's forward on values that no expression of the program holds.
Value Interpreter::forward(ir::ExprId E, const ir::Expr &X, ir::ExprId Module, const std::vector<Value> &Inputs) {
  StringRef Class = moduleClass(P.Code.type(Module).Name);
  if (const OperationRow *Row = Table.module(Class)) {
    ir::Expr Call = X;
    Call.Name = (Class + "::forward").str();
    Call.Object = None;
    Call.Args.clear();
    Operands In;
    In.Values = In.Tensors = Inputs;
    In.Maker = Module;
    Value Result = apply(E, Call, *Row, In);
    rounded(Call, *Row, In, Result);
    Result.AllRows |= ofAllRows(Inputs) && Result.replicated();
    return Result;
  }
  StringRef Template = Class.split('<').first; // functions know theirs without its arguments: what all of them do
  std::optional<Value> Own;
  for (ir::FuncId F = 0; F != P.Code.Functions.size(); ++F) {
    const ir::Function &Fn = P.Code.Functions[F];
    if (Fn.Name != "forward" || Fn.Record.empty() ||
        (Fn.Record != Template && Fn.Record != (Template + "Impl").str()) || Fn.Params.size() != Inputs.size() ||
        X.Args.size() != Inputs.size())
      continue;
    auto Outside = Standing;
    for (size_t I = 0; I != Inputs.size(); ++I)
      Standing[X.Args[I]] = Inputs[I];
    ir::Expr Call = X;
    Call.Object = None;
    Value Result = inlined(E, Call, F, std::nullopt);
    Standing = std::move(Outside);
    Own = Own ? join(*Own, Result) : Result;
  }
  if (Own)
    return *Own;
  Value Joined = broadcast(Inputs, E);
  return Joined.Kind == Placement::Sharded
             ? Value::unknown("goes through `" + Class.str() + "`, which isn't in the operation table", E)
             : Joined;
}

/// Modules that run others: one behind the other, one in disguise, or a function.
Value Interpreter::contained(ir::ExprId E, const ir::Expr &X, const OperationRow &Row, const Operands &In) {
  std::vector<ir::ExprId> Made = constructions(In.Maker);
  StringRef Class = StringRef(X.Name).drop_back(strlen("::forward")).rsplit("::").second;
  if (Class.starts_with("Functional")) {
    std::optional<Value> Result;
    for (ir::ExprId One : Made) {
      const std::vector<ir::ExprId> &Args = P.Code.Exprs[One].Args;
      if (Args.empty())
        continue;
      const ir::Expr &Function = P.Code.Exprs[Args[0]];
      bool Ignored;
      Value V;
      if (const OperationRow *Called =
              Function.Kind == ExprKind::Unknown ? Table.find(Function.Name, Ignored) : nullptr) {
        ir::Expr Call = X;
        Call.Name = Function.Name;
        Call.Object = None;
        Call.Args.clear();
        Operands Bound;
        Bound.Values = Bound.Tensors = In.Tensors;
        Bound.Bound.assign(Args.begin() + 1, Args.end());
        V = apply(E, Call, *Called, Bound);
        V.AllRows |= ofAllRows(In.Tensors) && V.replicated();
      } else if (const Value Held = eval(Args[0]); !Held.Funcs.empty() && In.Values.size() == 1) {
        // No expression holds what the layer in front gave: the layer's own stands for it.
        auto Outside = Standing;
        ir::Expr Call = X;
        Call.Object = None;
        Call.Args = {X.Args.size() == 1 ? X.Args[0] : One};
        Standing[Call.Args[0]] = In.Values[0];
        V = anyOf(E, Call, Held.Funcs, std::nullopt);
        Standing = std::move(Outside);
      } else {
        V = broadcast(In.Values, E);
        if (V.Kind == Placement::Sharded)
          V = Value::unknown(Function.Name.empty() || Function.Kind != ExprKind::Unknown
                                 ? "goes through a function that isn't in the operation table"
                                 : "goes through `" + Function.Name + "`, which isn't in the operation table",
                             E);
      }
      Result = Result ? join(*Result, V) : V;
    }
    return Result.value_or(broadcast(In.Values, E));
  }
  std::vector<ir::ExprId> Children = childrenOf(In.Maker);
  if (Row.Kind == Operation::Wrapper) {
    const ir::VarId Walks = In.Maker == None ? None : P.Code.Exprs[P.unconverted(In.Maker)].Var;
    if (auto At = LayerAt.find(Walks); At != LayerAt.end())
      Children = {At->second};
    std::optional<Value> Result;
    for (ir::ExprId Child : Children) {
      Value V = forward(E, X, Child, In.Values);
      Result = Result ? join(*Result, V) : V;
    }
    Value Joined = broadcast(In.Values, E);
    return Result ? *Result
           : Joined.Kind == Placement::Sharded
               ? Value::unknown("goes through `" + X.Name + "`, and what it holds isn't known", E)
               : Joined;
  }
  // One of a list, a clone: it may hold what any container of the program does.
  if (origins(In.Maker).Lost)
    for (ir::ExprId Child : couplingLayers())
      forward(E, X, Child, In.Values);
  std::vector<Value> Values = In.Values;
  for (ir::ExprId Child : Children)
    Values = {forward(E, X, Child, Values)};
  return Children.empty() ? broadcast(Values, E) : Values[0];
}

/// What a scripted module makes of its input. Its code isn't here: that it looks at each row by itself, as it does in
/// evaluation, is said.
Value Interpreter::scripted(ir::ExprId E, const Value &Input) {
  if (Input.Kind != Placement::Sharded)
    return Input;
  if (Input.Dim != 0 || Input.Woven || Input.Picked || Input.Listed)
    return Value::unknown("goes through a scripted module otherwise than by its first dimension", E);
  note("scripted-module", E, Input, "is taken to look at each row of its batch by itself");
  Value Result = Value::sharded(0, Input.Source);
  Result.RankOf = rankOf(E);
  Result.Least = 1;
  return Result;
}

/// Whether an expression names a parameter or buffer that a module of the project has registered: it has no rows of a
/// batch.
bool Interpreter::isParameter(ir::ExprId E) {
  if (!Parameters) {
    Parameters.emplace();
    auto Registers = [](const ir::Expr &X) {
      return X.Kind == ExprKind::Call &&
             (StringRef(X.Name).ends_with("::register_parameter") || StringRef(X.Name).ends_with("::register_buffer"));
    };
    auto Note = [&](ir::VarId Var, ir::ExprId From) {
      if (Var != None && From != None && Registers(P.Code.Exprs[From]))
        Parameters->insert(Var);
    };
    for (const ir::Expr &X : P.Code.Exprs) {
      if (Registers(X) && X.Args.size() > 1) // `register_buffer("mask", mask);`, the member itself
        if (ir::VarId Given = P.Code.Exprs[P.unconverted(X.Args[1])].Var; Given != None && P.Code.Vars[Given].Field)
          Parameters->insert(Given);
      if (X.Args.size() == 2 && X.Args[0] != None && (X.Kind == ExprKind::Assign || X.Name == "at::Tensor::operator="))
        Note(P.Code.Exprs[X.Args[0]].Var, X.Args[1]);
    }
    for (const ir::Function &Fn : P.Code.Functions)
      for (const auto &[Field, Init] : Fn.Inits)
        Note(Field, Init);
  }
  static const char *const Views[] = {"t",   "transpose", "permute", "view", "reshape", "unsqueeze", "detach", "clone",
                                      "exp", "log",       "abs",     "pow",  "sigmoid", "softplus",  "square", "to"};
  for (int Hops = 0; Hops != 8; ++Hops) {
    const ir::Expr &X = P.Code.Exprs[E = P.unconverted(E)];
    StringRef Name = StringRef(X.Name).rsplit("::").second;
    if (Parameters->count(X.Var))
      return true;
    // `layer->weight`, `net->parameters()[0]`, `net->named_parameters()["scale"]`
    if (X.Kind == ExprKind::Field && X.Object != None && P.Code.type(X.Object).Kind == TypeKind::Module)
      return StringRef(P.Code.type(X.Object).Name).starts_with("torch::nn::");
    if (X.Kind == ExprKind::Index && X.Object != None)
      return StringRef(P.Code.Exprs[P.unconverted(X.Object)].Name).ends_with("parameters");
    if (X.Kind == ExprKind::Ref && X.Var != None && !P.Code.Vars[X.Var].Param) {
      ir::ExprId Made = assignedBy({X.Var, {}});
      if (Made == None)
        return false;
      E = Made;
    } else if (X.Kind == ExprKind::Call && X.Object != None && llvm::is_contained(Views, Name)) {
      E = X.Object;
    } else {
      return false;
    }
  }
  return false;
}

} // namespace migrate
