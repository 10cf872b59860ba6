//===- StructureDevices.cpp - Which devices a program chooses -------------===//
//
// A device that is chosen becomes this rank's. What the tool can't see chosen stays where the program puts it, and so
// do its batches. A loop over the machine's GPUs that puts models or batches on each shares the work out already.
//
//===----------------------------------------------------------------------===//
#include "infer/Deriver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;
using migrate::ir::ExprKind;
using migrate::ir::None;
using migrate::ir::StmtKind;
using migrate::ir::TypeKind;

namespace migrate {

/// Whether a device comes from where nothing is seen of it: a function without a body, a field that one has filled.
static bool unseen(const Program &P, const ir::Expr &X, const std::set<ir::VarId> &Set) {
  if (X.Type == None || P.Code.Types[X.Type].Kind != TypeKind::Device)
    return false;
  StringRef Name = X.Name;
  if (X.Kind == ExprKind::Call)
    return P.bodies(X).empty() && !Name.starts_with("std::") && !Name.starts_with("at::") &&
           !Name.starts_with("torch::") && !Name.starts_with("c10::") && !Name.starts_with("accelerate::");
  return X.Kind == ExprKind::Field && X.Var != None && !Set.count(X.Var);
}

bool choosesCpu(const Program &P) {
  if (!taughtDevices(P).empty())
    return false;
  std::set<ir::VarId> Set; // fields that the program gives a device
  for (const ir::Function &Fn : P.Code.Functions)
    for (const auto &[Field, Init] : Fn.Inits)
      Set.insert(Field);
  for (const ir::Expr &E : P.Code.Exprs)
    if (E.Kind == ExprKind::Assign && E.Args[0] != None && P.Code.Exprs[E.Args[0]].Var != None)
      Set.insert(P.Code.Exprs[E.Args[0]].Var);
  for (const ir::Expr &E : P.Code.Exprs) {
    StringRef Name = E.Name;
    if (unseen(P, E, Set))
      return false;
    if (Name.ends_with("::kCUDA") || Name.ends_with("DeviceType::CUDA") || Name == "at::Tensor::cuda" ||
        Name == "torch::nn::Module::cuda" || (E.Kind == ExprKind::Literal && Name.starts_with("cuda")) ||
        Name == "torch::cuda::is_available" || Name == "accelerate::Accelerator::device")
      return false;
  }
  return true;
}

/// Whether a call runs a function of the project whose result is a device: its return is looked at itself.
bool Deriver::givesDevice(const ir::Expr &X) const {
  ir::FuncId Fn = P.callee(X);
  return Fn != None &&
         (P.Code.Functions[Fn].Result == None || P.Code.Types[P.Code.Functions[Fn].Result].Kind == TypeKind::Device);
}

void Deriver::device(ir::ExprId Value, ir::FuncId Function, bool InInitializer) {
  if (Value == None || mentionsOurs(Value))
    return;
  const ir::Expr *X = &expr(Value);
  if (X->Kind == ExprKind::Cast && X->Args[0] != None) { // torch::Device(kCUDA)
    Value = X->Args[0];
    X = &expr(Value);
  }
  if (X->Kind == ExprKind::Construct) {
    if (X->Args.empty())
      return;
    if (X->Args.size() > 1) { // Device(kCUDA, 0)
      Fact D = fact("device-indexed", Function);
      ir::Range Both = expr(X->Args.front()).Where;
      Both.End = expr(X->Args.back()).Where.End;
      D.Nodes["value"] = Both;
      if (InInitializer)
        useTemporaryHandle(D);
      Out.add(std::move(D));
      return;
    }
    Value = X->Args[0];
    X = &expr(Value);
  }
  // A copy of another device, a result of the project's own function (whose return is looked at itself), the CPU.
  if (P.Code.type(Value).Kind == TypeKind::Device && X->Kind != ExprKind::Conditional)
    return;
  const ir::Expr &Text = expr(P.unconverted(Value));
  if (StringRef(X->Name).ends_with("kCPU") || (Text.Kind == ExprKind::Literal && Text.Name == "cpu") || givesDevice(*X))
    return;
  bool Default = X->Kind == ExprKind::Conditional && expr(X->Args[0]).Name == "torch::cuda::is_available" &&
                 StringRef(expr(X->Args[1]).Name).ends_with("kCUDA") &&
                 StringRef(expr(X->Args[2]).Name).ends_with("kCPU");
  bool Named = P.Code.type(Value).Kind == TypeKind::String; // "cuda:0"
  Fact D = fact(Default ? "device-default" : Named ? "device-indexed" : "device-chosen", Function);
  D.Nodes["value"] = X->Where;
  ChosenDevices.push_back(Value);
  if (InInitializer)
    useTemporaryHandle(D);
  Out.add(std::move(D));
}

/// A program that never asks the accelerator for its device keeps its own moves.
void Deriver::devices() {
  for (const ir::Expr &E : P.Code.Exprs)
    Asks |= E.Name == "accelerate::Accelerator::device";
  chooseDevices();
  chooseTaughtDevices();
  chooseIndexed();
  for (const Fact &D : Out.all())
    Asks |= StringRef(D.Name).starts_with("device-");
  if (Asks)
    compareDevices();
}

/// `device == torch::kCUDA` holds for a device without a number only, and the ranks' have one. A tensor's has one
/// alone, too: such a comparison stays what it is.
void Deriver::compareDevices() {
  auto Kind = [&](ir::ExprId E) { // the constructor's argument in `torch::kCUDA`, `torch::Device(torch::kCUDA)`
    while (expr(E).Kind == ExprKind::Cast && expr(E).Args.size() == 1)
      E = expr(E).Args[0];
    const ir::Expr &X = expr(E);
    const bool Makes = X.Kind == ExprKind::Construct && P.Code.type(E).Kind == TypeKind::Device && X.Args.size() == 1;
    const TypeKind Of = Makes && X.Args[0] != None ? P.Code.type(X.Args[0]).Kind : TypeKind::Unknown;
    const bool Gpu = Of == TypeKind::DeviceType || Of == TypeKind::Enum;
    return Gpu && !StringRef(expr(X.Args[0]).Name).ends_with("CPU") ? X.Args[0] : None;
  };
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = expr(E);
    if (X.Kind != ExprKind::Binary || (X.Name != "==" && X.Name != "!=") || functionOf(E) == None)
      continue;
    for (size_t I = 0; I != 2; ++I) {
      const ir::ExprId Device = P.unconverted(X.Args[I]), Literal = X.Args[1 - I];
      const ir::Expr &Named = expr(Device);
      const bool Holds = Named.Kind == ExprKind::Ref || Named.Kind == ExprKind::Field;
      if (!Holds || P.Code.type(Device).Kind != TypeKind::Device || Kind(Literal) == None)
        continue;
      bool OfTensor = false;
      std::vector<ir::ExprId> Given = R.givenTo(Named.Var);
      if (auto Init = R.Init.find(Named.Var); Init != R.Init.end())
        Given.push_back(Init->second);
      for (ir::ExprId From : Given)
        P.forEachExpr(From, [&](ir::ExprId Sub) {
          StringRef Name = expr(Sub).Name;
          OfTensor |= Name.starts_with("at::") && Name.ends_with("::device") && expr(Sub).Object != None;
        });
      if (OfTensor)
        continue;
      Out.add(factAt("device-compared", "device", Device));
      if (expr(Literal).Where.Begin != expr(Kind(Literal)).Where.Begin) // written out
        Out.add(factAt("device-compared", "device", Literal));
    }
  }
}

/// The device variables that anything is placed by: others are only looked at, or printed.
std::set<ir::VarId> Deriver::placingDevices() const {
  std::set<ir::VarId> Placing;
  auto Use = [&](ir::ExprId E) {
    E = P.unconverted(E);
    if (E != None && P.Code.Exprs[E].Var != None)
      Placing.insert(P.Code.Exprs[E].Var);
  };
  for (const ir::Expr &X : P.Code.Exprs)
    if (X.Kind != ExprKind::Binary && X.Kind != ExprKind::Unary)
      for (size_t I = X.Kind == ExprKind::Assign; I < X.Args.size(); ++I)
        Use(X.Args[I]);
  for (const ir::Stmt &S : P.Code.Stmts)
    if (S.Kind == ir::StmtKind::Return || S.Kind == ir::StmtKind::Decl)
      Use(S.Value);
  for (const ir::Function &Fn : P.Code.Functions)
    Fn.forEachInit(Use);
  return Placing;
}

void Deriver::chooseDevices() {
  const std::set<ir::VarId> Placing = placingDevices();
  for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
    for (const auto &[Field, Init] : P.Code.Functions[Fn].Inits)
      if (P.Code.typeOf(Field).Kind == TypeKind::Device)
        device(Init, Fn, /*InInitializer=*/true);
    P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId S) {
      const ir::Stmt &X = P.Code.Stmts[S];
      if (X.Kind == StmtKind::Decl && P.Code.typeOf(X.Var).Kind == TypeKind::Device &&
          !P.Code.typeOf(X.Var).Reference && Placing.count(X.Var))
        device(X.Value, Fn);
      if (X.Kind == StmtKind::Return && X.Value != None && P.Code.Functions[Fn].Result != None &&
          P.Code.Types[P.Code.Functions[Fn].Result].Kind == TypeKind::Device)
        device(X.Value, Fn);
      if (X.Kind == StmtKind::Expr && X.Value != None && expr(X.Value).Kind == ExprKind::Assign &&
          expr(X.Value).Args.size() == 2 && expr(X.Value).Args[0] != None &&
          P.Code.type(expr(X.Value).Args[0]).Kind == TypeKind::Device)
        device(expr(X.Value).Args[1], Fn);
    });
  }
}

/// Functions and classes of which the user says that they give a device.
void Deriver::chooseTaughtDevices() {
  std::set<ir::ExprId> Done;
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (expr(E).Name == "accelerate::Accelerator::device")
      P.forEachExpr(E, [&](ir::ExprId Sub) { Done.insert(Sub); });
  for (ir::ExprId E : ChosenDevices)
    P.forEachExpr(E, [&](ir::ExprId Sub) { Done.insert(Sub); });
  for (ir::ExprId E : taughtDevices(P)) {
    if (!Done.insert(E).second || functionOf(E) == None)
      continue;
    Fact D = factAt("device-chosen", "value", E);
    if (inInitializer(E))
      useTemporaryHandle(D);
    Out.add(std::move(D));
  }
}

/// Whether a text names a device that isn't known here, or a GPU by its number.
bool Deriver::namesDevice(ir::ExprId Text) const {
  const ir::Expr &X = expr(Text);
  return P.Code.type(Text).Kind == TypeKind::String &&
         (X.Kind != ExprKind::Literal || StringRef(X.Name).starts_with("cuda:"));
}

/// Whether an initialiser may give a GPU by its number: `torch::Device(kind, 0)`, `"cuda:" + number`.
bool Deriver::numbersDevice(ir::ExprId Init) const {
  bool Numbers = false;
  P.forEachExpr(Init, [&](ir::ExprId E) {
    const ir::Expr &X = expr(E);
    if (X.Kind == ExprKind::Literal && StringRef(X.Name).starts_with("cuda:"))
      Numbers = true;
    if (X.Kind != ExprKind::Construct || P.Code.type(E).Kind != TypeKind::Device || X.Args.empty())
      return;
    const ir::Expr &Text = expr(P.unconverted(X.Args[0]));
    Numbers |= X.Args.size() == 2 && !StringRef(expr(X.Args[0]).Name).ends_with("CPU");
    Numbers |= P.Code.type(P.unconverted(X.Args[0])).Kind == TypeKind::String && Text.Kind != ExprKind::Literal;
  });
  return Numbers;
}

/// `setenv("CUDA_VISIBLE_DEVICES", ..)`
bool Deriver::namesVisible(const ir::Expr &X) const {
  return !X.Args.empty() && X.Args[0] != None && expr(P.unconverted(X.Args[0])).Name == "CUDA_VISIBLE_DEVICES";
}

/// GPUs that are named by their number where no variable holds them, `x.to("cuda:0")`, `Buffer(torch::Device(name))`,
/// or one of namespace scope does: every rank would take that one.
void Deriver::chooseIndexed() {
  std::set<ir::ExprId> Done;
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E)
    if (expr(E).Name == "accelerate::Accelerator::device")
      P.forEachExpr(E, [&](ir::ExprId Sub) { Done.insert(Sub); });
  for (ir::ExprId E : ChosenDevices) // which are mapped as a whole
    P.forEachExpr(E, [&](ir::ExprId Sub) { Done.insert(Sub); });
  std::set<std::pair<ir::FileId, uint32_t>> Known; // of variables
  std::set<std::pair<ir::FuncId, uint32_t>> Here;  // one text of several instantiations, in each
  for (const Fact &D : Out.all())
    if (auto It = D.Nodes.find("value"); It != D.Nodes.end() && StringRef(D.Name).starts_with("device-"))
      Known.insert({It->second.File, It->second.Begin});
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    const ir::Expr &X = expr(E);
    ir::FuncId Fn = functionOf(E);
    if (Fn == None || Done.count(E) || !F.Reached.count(Fn))
      continue;
    ir::Range Value;
    bool Whole = false; // a device already
    StringRef Name = X.Name;
    bool Makes = X.Kind == ExprKind::Construct && P.Code.type(E).Kind == TypeKind::Device;
    bool Option = X.Kind == ExprKind::Call && (Name == "c10::TensorOptions::device" || Name == "at::device");
    // `std::make_shared<torch::Device>(torch::kCUDA, 0)`
    bool Holds = X.Kind == ExprKind::Call && StringRef(P.Code.type(E).Name).contains("<c10::Device") &&
                 (Name == "std::make_shared" || Name == "std::make_unique");
    Holds |= X.Kind == ExprKind::Call && Name.ends_with("::emplace") && X.Object != None &&
             StringRef(P.Code.type(X.Object).Name).starts_with("std::optional<c10::Device");
    if ((Makes || Option || Holds) && numbersGpu(X)) {
      Value = expr(X.Args[0]).Where;
      Value.End = expr(X.Args[1]).Where.End;
    } else if (ir::ExprId Text = (Makes || Holds) && X.Args.size() == 1 ? P.unconverted(X.Args[0]) : None;
               Text != None && namesDevice(Text)) { // `torch::Device(config.device)`
      Value = expr(X.Args[0]).Where;
      if (Makes && Known.count({Value.File, Value.Begin}) == 0 && X.Where.Begin < Value.Begin) {
        Value = X.Where;
        Whole = true;
      }
    } else if (X.Kind == ExprKind::Call && !Option) {
      bool Moves = Name == "at::Tensor::to" || Name == "torch::nn::Module::to";
      if (Moves && !X.Args.empty() && X.Args[0] != None && namesDevice(P.unconverted(X.Args[0])))
        Value = expr(X.Args[0]).Where;
    }
    if (!Value.valid() || Known.count({Value.File, Value.Begin}) || !Here.insert({Fn, Value.Begin}).second)
      continue;
    Fact D = fact(Whole ? "device-chosen" : "device-indexed", Fn);
    D.Nodes["value"] = Value;
    if (inInitializer(E) || !P.Code.Functions[Fn].Where.contains(Value)) // a default argument
      useTemporaryHandle(D);
    Indexed.push_back(Value);
    Out.add(std::move(D));
  }
  // Before `main` no rank knows which it is.
  for (const auto &[Global, Init] : P.Code.Globals) {
    const ir::Type &T = P.Code.typeOf(Global);
    P.forEachExpr(Init, [&](ir::ExprId E) { // `torch::TensorOptions().device(torch::kCUDA, 0)`
      const ir::Expr &X = expr(E);
      const bool Held = T.Kind != TypeKind::Device && P.Code.type(E).Kind == TypeKind::Device;
      if ((X.Name == "c10::TensorOptions::device" || X.Name == "at::device" || Held) && P.Main != None &&
          numbersGpu(X)) {
        Fact D = fact("device-fixed", P.Main);
        D.Nodes["place"] = X.Where;
        Out.add(std::move(D));
      }
    });
    if (T.Kind != TypeKind::Device || P.Main == None || !numbersDevice(Init))
      continue;
    const ir::Function &Main = P.Code.Functions[P.Main];
    Fact D = fact(T.Const ? "device-fixed" : "device-global", P.Main);
    ir::Range At = Main.Where;
    At.Begin = At.End = Main.BodyBegin;
    D.Nodes["place"] = T.Const ? P.Code.Vars[Global].Decl : At;
    D.Texts["name"] = scopeOf(P.Code.Vars[Global].Usr) + P.Code.Vars[Global].Name;
    bool Set = false; // by an earlier migration
    P.forEachExprIn(Main.Body, [&](ir::ExprId E) {
      Set |= expr(E).Kind == ExprKind::Assign && expr(expr(E).Args[0]).Var == Global && mentionsOurs(expr(E).Args[1]);
    });
    if (!Set)
      Out.add(std::move(D));
  }
  // `cudaSetDevice(0)`: the process's own GPU, whatever the launcher gave it.
  for (ir::ExprId E = 0; E != P.Code.Exprs.size(); ++E) {
    StringRef Name = expr(E).Name;
    bool Sets = Name == "cudaSetDevice" || Name == "c10::cuda::set_device" ||
                Name == "c10::cuda::CUDAGuard::CUDAGuard" || Name == "c10::DeviceGuard::DeviceGuard" ||
                Name == "c10::Device::set_index" || Name == "c10::TensorOptions::device_index" ||
                Name == "at::device_index" || (Name == "setenv" && namesVisible(expr(E)));
    if (Sets && functionOf(E) != None && F.Reached.count(functionOf(E)) && !mentionsOurs(E))
      Out.add(factAt("device-fixed", "place", E));
  }
}

/// `torch::kCUDA, 0`, whatever the kind and the number are, unless they are another device's.
bool Deriver::numbersGpu(const ir::Expr &X) const {
  if (X.Args.size() != 2 || X.Args[0] == None || X.Args[1] == None || StringRef(expr(X.Args[0]).Name).ends_with("CPU"))
    return false;
  const TypeKind Kind = P.Code.type(X.Args[0]).Kind;
  bool Another = false;
  P.forEachExpr(X.Args[1], [&](ir::ExprId E) {
    const StringRef Name = expr(E).Name;
    Another |= Name.ends_with("::index") || Name.ends_with("::get_device") || Name.starts_with("accelerate::") ||
               Name.ends_with("current_device");
  });
  const ir::Expr &Number = expr(P.unconverted(X.Args[1]));
  return (Kind == TypeKind::DeviceType || Kind == TypeKind::Enum) && !Another && Number.Kind != ExprKind::Unary;
}

/// Whether an edit of a numbered GPU stands within a range.
bool Deriver::holdsIndexed(const ir::Range &Where) const {
  return llvm::any_of(Indexed, [&](const ir::Range &R) { return Where.contains(R); });
}

/// Whether an expression counts the machine's GPUs, itself or by a variable's name.
bool Deriver::countsDevices(ir::ExprId E, int Hops) const {
  bool Counts = false;
  P.forEachExpr(E, [&](ir::ExprId Sub) {
    const ir::Expr &X = expr(Sub);
    Counts |= X.Kind == ExprKind::Call && StringRef(X.Name).ends_with("::device_count");
    if (X.Kind != ExprKind::Ref || X.Var == None || Hops == 0)
      return;
    if (auto Init = R.Init.find(X.Var); Init != R.Init.end())
      Counts |= countsDevices(Init->second, Hops - 1);
    for (ir::ExprId Given : R.givenTo(X.Var))
      Counts |= countsDevices(Given, Hops - 1);
  });
  return Counts;
}

/// Whether anything is put on one of a list of devices, `x.to(devices[i])`.
bool Deriver::picksDevice() const {
  auto List = [&](ir::ExprId E) {
    return E != None && P.Code.type(E).Kind == TypeKind::Container &&
           StringRef(P.Code.type(E).Name).contains("c10::Device");
  };
  return llvm::any_of(P.Code.Exprs, [&](const ir::Expr &X) {
    bool Picks = false;
    if (X.Name == "at::Tensor::to" || X.Name == "torch::nn::Module::to")
      for (ir::ExprId Arg : X.Args)
        P.forEachExpr(Arg, [&](ir::ExprId Sub) { Picks |= List(expr(Sub).Object); });
    return Picks;
  });
}

void Deriver::replicas() {
  for (ir::FuncId Fn = 0; Fn != P.Code.Functions.size(); ++Fn) {
    if (!F.Reached.count(Fn))
      continue;
    P.forEachStmt(P.Code.Functions[Fn].Body, [&](ir::StmtId Id) {
      const ir::Stmt &S = P.Code.Stmts[Id];
      bool Loops = S.Kind == StmtKind::Loop || S.Kind == StmtKind::RangeFor;
      if (!Loops || S.Value == None)
        return;
      StringRef Range = P.Code.type(S.Value).Name;
      bool Devices = S.Kind == StmtKind::RangeFor && Range.starts_with("std::") && Range.contains("c10::Device");
      if (!Devices && !countsDevices(S.Value))
        return;
      bool Places = false;
      P.forEachExprIn(Id, [&](ir::ExprId E) {
        StringRef Name = expr(E).Name;
        const bool Lists = Name.ends_with("_back") && expr(E).Object != None &&
                           StringRef(P.Code.type(expr(E).Object).Name).contains("c10::Device");
        Places |= Lists && picksDevice();
        Places |= expr(E).Kind == ExprKind::Call &&
                  (Name == "at::Tensor::to" || Name == "at::Tensor::cuda" || Name == "torch::nn::Module::to" ||
                   Name == "cudaSetDevice" || Name.ends_with("::set_device") || Name.ends_with("::setDevice") ||
                   Name.ends_with("::clone") || isBackward(expr(E)));
      });
      if (Places)
        Out.add(factAt("several-devices", "place", S.Value));
    });
  }
}

} // namespace migrate
