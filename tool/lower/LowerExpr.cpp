//===- LowerExpr.cpp - Expressions ----------------------------------------===//
#include "lower/Lowering.h"
#include "clang/Basic/CharInfo.h"

using namespace clang;

namespace migrate {

using ir::ExprKind;
using ir::None;
using ir::StmtKind;

ir::ExprId Lowering::make(ExprKind Kind, const Expr *E) {
  ir::Expr X;
  X.Kind = Kind;
  X.Type = typeId(E->getType());
  X.Where = rangeOf(E->getSourceRange());
  noteDistributed(Out.Types[X.Type].Name, X.Where);
  Out.Exprs.push_back(X);
  return Out.Exprs.size() - 1;
}

/// Code that shares work out by itself: a second layer on top of it would average twice.
void Lowering::noteDistributed(StringRef Name, const ir::Range &Where) {
  bool Own = Name.starts_with("c10d::") || Name.contains("<c10d::") || Name.starts_with("MPI_") ||
             (Name.starts_with("nccl") && Name.size() > 4 && isUppercase(Name[4])) ||
             Name.contains("torch::nn::parallel::") || Name.contains("torch::data::samplers::Distributed");
  if (Own && Where.valid())
    Out.Distributed.push_back((Name + " at " + Out.Files[Where.File].Path + ":" + Twine(Where.Line)).str());
}

void Lowering::setCallee(ir::ExprId Id, const FunctionDecl *F) {
  if (!F)
    return;
  Out.Exprs[Id].Name = qualifiedName(*F);
  Out.Exprs[Id].Callee = usrOf(F);
  noteDistributed(Out.Exprs[Id].Name, Out.Exprs[Id].Where);
  for (unsigned I = 0; I != std::min(F->getNumParams(), 32u); ++I)
    if (QualType Type = F->getParamDecl(I)->getType(); Type->isLValueReferenceType() || Type->isPointerType())
      Out.Exprs[Id].Writable |= uint32_t(!Type->getPointeeType().isConstQualified()) << I;
  const auto *Method = dyn_cast<CXXMethodDecl>(F);
  Out.Exprs[Id].Changes = Method && !Method->isStatic() && !Method->isConst();
  Out.Exprs[Id].NoReturn = F->isNoReturn() || F->hasAttr<NoReturnAttr>() || F->hasAttr<CXX11NoReturnAttr>();
  // A constructor that nobody wrote runs what members are initialised with in the class.
  if (const auto *Ctor = dyn_cast<CXXConstructorDecl>(F);
      Ctor && Ctor->isDefaulted() && Ctor->isDefaultConstructor() && inProject(Ctor->getLocation()) &&
      llvm::any_of(Ctor->inits(), [&](const CXXCtorInitializer *I) {
        return isa_and_nonnull<CXXDefaultInitExpr>(I->getInit()) || runsConstructor(I);
      }))
    lowerFunction(Ctor);
}

/// Whether an initialiser runs a constructor that the project has written, of a base or of the same class, or is given
/// something for one that it hasn't.
bool Lowering::runsConstructor(const CXXCtorInitializer *I) {
  if (!I->isBaseInitializer() && !I->isDelegatingInitializer())
    return false;
  const auto *Made = dyn_cast_or_null<CXXConstructExpr>(I->getInit() ? I->getInit()->IgnoreImplicit() : nullptr);
  if (!Made || Made->getConstructor()->isCopyOrMoveConstructor())
    return false;
  return inProject(Made->getConstructor()->getLocation()) || (I->isWritten() && Made->getNumArgs() > 0);
}

void Lowering::addArgs(ir::ExprId Id, llvm::iterator_range<CallExpr::const_arg_iterator> Args, bool Defaults) {
  std::vector<ir::ExprId> Ids;
  for (const Expr *Arg : Args)
    if (const auto *Default = dyn_cast<CXXDefaultArgExpr>(Arg)) { // stands at the declaration, for all calls
      if (!Defaults)
        continue;
      size_t Before = Out.Exprs.size();
      Ids.push_back(expr(Default->getExpr()));
      // (A device of which this rank's takes the place is one for all calls.)
      const bool Device = Ids.back() != None && Out.type(Ids.back()).Kind == ir::TypeKind::Device;
      for (size_t I = Before; I != Out.Exprs.size() && !Device; ++I)
        Out.Exprs[I].Where.Editable = false;
    } else {
      Ids.push_back(expr(Arg));
    }
  Out.Exprs[Id].Args = std::move(Ids);
}

/// `model(x)` on a holder, and `seq->forward(x)`: which class's forward runs.
void Lowering::setForwardOf(ir::ExprId Id, QualType ModuleType) {
  const CXXRecordDecl *Record = Types.moduleClass(ModuleType);
  if (!Record || !Record->hasDefinition())
    return;
  Out.Exprs[Id].Name = qualifiedName(*Record) + "::forward";
  for (const Decl *D : Record->decls()) {
    if (const auto *Template = dyn_cast<FunctionTemplateDecl>(D))
      D = Template->getTemplatedDecl();
    if (const auto *M = dyn_cast<CXXMethodDecl>(D); M && M->getDeclName().isIdentifier() && M->getName() == "forward") {
      Out.Exprs[Id].Callee = usrOf(M);
      return;
    }
  }
}

/// The constructor of a class of the project that runs with so many arguments, if that tells.
const CXXConstructorDecl *Lowering::constructorOf(const CXXRecordDecl *Record, unsigned Args) {
  Record = Record ? Record->getDefinition() : nullptr;
  if (!Record || !inProject(Record->getLocation()))
    return nullptr;
  const CXXConstructorDecl *Found = nullptr;
  for (const CXXConstructorDecl *Ctor : Record->ctors()) {
    if (Ctor->isCopyOrMoveConstructor() || Ctor->isDeleted() || Args < Ctor->getMinRequiredArguments() ||
        Args > Ctor->getNumParams())
      continue;
    if (Found)
      return nullptr;
    Found = Ctor;
  }
  return Found;
}

/// The same of `std::make_unique<Class>(…)`.
const CXXConstructorDecl *Lowering::madeBy(const FunctionDecl *F, unsigned Args) {
  if (!F || !F->isInStdNamespace() || !F->getDeclName().isIdentifier() ||
      (F->getName() != "make_unique" && F->getName() != "make_shared"))
    return nullptr;
  const TemplateArgumentList *Given = F->getTemplateSpecializationArgs();
  if (!Given || Given->size() == 0 || Given->get(0).getKind() != TemplateArgument::Type)
    return nullptr;
  return constructorOf(Given->get(0).getAsType()->getAsCXXRecordDecl(), Args);
}

/// The same of a holder, `Net model(…)` after `TORCH_MODULE(Net)`: what it is given goes to the constructor of the
/// module, or of the data set.
const CXXConstructorDecl *Lowering::heldBy(const CXXConstructExpr *E) {
  ir::Type T = Types.classify(E->getType());
  if (T.Hold != ir::Holding::Holder)
    return nullptr;
  const CXXRecordDecl *Module = Types.moduleClass(E->getType());
  for (const Expr *Arg : E->arguments())
    if (QualType Given = Arg->IgnoreParenImpCasts()->getType();
        Given->isNullPtrType() || (Module && Types.moduleClass(Given) == Module)) // nothing, or what was made before
      return nullptr;
  unsigned Given = llvm::count_if(E->arguments(), [](const Expr *Arg) { return !isa<CXXDefaultArgExpr>(Arg); });
  return constructorOf(Module, Given);
}

/// `T::apply(x)` of a `torch::autograd::Function<T>` runs the project's `T::forward(context, x)`.
const CXXMethodDecl *Lowering::forwardOf(const FunctionDecl *Apply) {
  const auto *M = dyn_cast_or_null<CXXMethodDecl>(Apply);
  if (!M || !M->getDeclName().isIdentifier() || M->getName() != "apply")
    return nullptr;
  const auto *Of = dyn_cast<ClassTemplateSpecializationDecl>(M->getParent());
  if (!Of || qualifiedName(*Of) != "torch::autograd::Function" ||
      Of->getTemplateArgs()[0].getKind() != TemplateArgument::Type)
    return nullptr;
  const CXXRecordDecl *Own = Of->getTemplateArgs()[0].getAsType()->getAsCXXRecordDecl();
  Own = Own ? Own->getDefinition() : nullptr;
  if (!Own || !inProject(Own->getLocation()))
    return nullptr;
  for (const CXXMethodDecl *Method : Own->methods())
    if (Method->isStatic() && Method->getDeclName().isIdentifier() && Method->getName() == "forward" &&
        Method->getNumParams() > 0)
      return Method;
  return nullptr;
}

ir::ExprId Lowering::callTo(const CallExpr *E) {
  const FunctionDecl *F = E->getDirectCallee();
  if (F && F->isInStdNamespace() && F->getDeclName().isIdentifier() && E->getNumArgs() > 0 &&
      (F->getName() == "bind" || F->getName() == "bind_front"))
    if (ir::ExprId Function = bound(E); Function != None)
      return Function;
  if (const CXXConstructorDecl *Ctor = madeBy(F, E->getNumArgs())) {
    ir::ExprId Id = make(ExprKind::Construct, E);
    setCallee(Id, Ctor);
    addArgs(Id, E->arguments());
    keep(Id, Ctx.getRecordType(Ctor->getParent()));
    return Id;
  }
  ir::ExprId Id = make(ExprKind::Call, E);
  const CXXMethodDecl *Forward = forwardOf(F);
  setCallee(Id, Forward ? Forward : F);
  const Expr *Callee = E->getCallee()->IgnoreParenImpCasts();
  if (const auto *Member = dyn_cast<MemberExpr>(Callee)) {
    // A call of a static method through an object has no object to lower for.
    ir::ExprId Object = expr(Member->getBase());
    Out.Exprs[Id].Object = Object;
    Out.Exprs[Id].Direct = Member->hasQualifier();
    Out.Exprs[Id].CalleeName = rangeOf(Member->getMemberLoc(), Member->getMemberLoc());
    // Modules of LibTorch inherit their forward from templates: the object's class tells which it is.
    if (F && F->getDeclName().isIdentifier() && F->getName() == "forward" && !inProject(F->getLocation()) &&
        Out.type(Object).Kind == ir::TypeKind::Module)
      if (const CXXRecordDecl *Record = Types.moduleClass(Member->getBase()->IgnoreParenImpCasts()->getType());
          Record && !inProject(Record->getLocation()))
        Out.Exprs[Id].Name = qualifiedName(*Record) + "::forward";
  } else if (const auto *Ref = dyn_cast<DeclRefExpr>(Callee); Ref && F) {
    Out.Exprs[Id].CalleeName = rangeOf(Ref->getBeginLoc(), Ref->getLocation());
  } else {
    ir::ExprId Object = expr(Callee);
    Out.Exprs[Id].Object = Object;
  }
  if (F && F->isImplicit() && isa<CXXConversionDecl>(F))
    return Out.Exprs[Id].Object;
  addArgs(Id, E->arguments(), F && inProject(F->getLocation()));
  if (Forward) { // the context, which no text stands for
    ir::ExprId Context = make(ExprKind::Literal, E);
    Out.Exprs[Context].Name = "nullptr";
    Out.Exprs[Context].Type = typeId(Forward->getParamDecl(0)->getType());
    Out.Exprs[Context].Where.Editable = false;
    Out.Exprs[Id].Args.insert(Out.Exprs[Id].Args.begin(), Context);
  }
  if (E->isPRValue())
    keep(Id, E->getType());
  if (Out.Exprs[Id].Name == "at::Tensor::index_put_" && puts(Out.Exprs[Id]))
    return elementPut(Id, E);
  // Which part of a tuple: an LSTM's states don't lie as its output does.
  if (F && F->isInStdNamespace() && F->getDeclName().isIdentifier() && F->getName() == "get")
    if (const TemplateArgumentList *Args = F->getTemplateSpecializationArgs();
        Args && Args->size() > 0 && Args->get(0).getKind() == TemplateArgument::Integral && !Out.Exprs[Id].Args.empty())
      return partOf(Out.Exprs[Id].Args[0], E, Args->get(0).getAsIntegral().getExtValue());
  return Id;
}

/// Whether `x.index_put_(places, values, accumulate)` doesn't add the values to what is there.
bool Lowering::puts(const ir::Expr &X) const {
  return X.Args.size() == 2 || (X.Args.size() == 3 && (X.Args[2] == ir::None || Out.Exprs[X.Args[2]].Name == "false"));
}

/// `x.index_put_(places, values)` is `x.index(places) = values`.
ir::ExprId Lowering::elementPut(ir::ExprId Put, const CallExpr *E) {
  ir::ExprId Id = make(ExprKind::Assign, E);
  ir::Expr &Element = Out.Exprs[Put];
  Element.Name = "at::Tensor::index";
  Element.Callee.clear();
  Element.Where.Editable = false; // no such text stands there
  Element.Args.resize(2);
  Out.Exprs[Id].Name = "=";
  Out.Exprs[Id].Args = {Put, Element.Args.back()};
  Element.Args.pop_back();
  return Id;
}

/// An element of a tuple.
ir::ExprId Lowering::partOf(ir::ExprId Whole, const Expr *E, unsigned Index) {
  ir::ExprId Id = make(ExprKind::Cast, E);
  Out.Exprs[Id].Name = "part" + std::to_string(Index);
  Out.Exprs[Id].Args = {Whole};
  return Id;
}

/// An array of a size that is told where it runs, as `malloc` is.
ir::ExprId Lowering::arrayOf(const Expr *Size, const Expr *Where) {
  ir::ExprId Id = make(ExprKind::Call, Where);
  Out.Exprs[Id].Name = "operator new[]";
  ir::ExprId Count = expr(Size);
  Out.Exprs[Id].Args = {Count};
  return Id;
}

ir::ExprId Lowering::operatorCall(const CXXOperatorCallExpr *E) {
  OverloadedOperatorKind Op = E->getOperator();
  std::string Spelling = getOperatorSpelling(Op);
  switch (Op) {
  case OO_Call: {
    ir::ExprId Id = make(ExprKind::Call, E);
    setCallee(Id, E->getDirectCallee());
    ir::ExprId Object = expr(E->getArg(0));
    Out.Exprs[Id].Object = Object;
    if (Out.type(Object).Kind == ir::TypeKind::Module)
      setForwardOf(Id, E->getArg(0)->getType());
    addArgs(Id, llvm::drop_begin(E->arguments()));
    if (E->isPRValue())
      keep(Id, E->getType());
    return Id;
  }
  case OO_Subscript: {
    ir::ExprId Id = make(ExprKind::Index, E);
    setCallee(Id, E->getDirectCallee());
    ir::ExprId Object = expr(E->getArg(0));
    Out.Exprs[Id].Object = Object;
    addArgs(Id, llvm::drop_begin(E->arguments()));
    return Id;
  }
  case OO_Arrow:
    return expr(E->getArg(0)); // `holder->x` is `holder.x` to the analysis
  case OO_Star:
    if (E->getNumArgs() == 1) {
      ir::ExprId Id = make(ExprKind::Unary, E);
      setCallee(Id, E->getDirectCallee());
      Out.Exprs[Id].Name = "*";
      addArgs(Id, E->arguments());
      return Id;
    }
    break;
  default:
    break;
  }
  bool Assigns = E->isAssignmentOp();
  ir::ExprId Id = make(Assigns                                                            ? ExprKind::Assign
                       : E->getNumArgs() == 1 || Op == OO_PlusPlus || Op == OO_MinusMinus ? ExprKind::Unary
                                                                                          : ExprKind::Binary,
                       E);
  setCallee(Id, E->getDirectCallee());
  Out.Exprs[Id].Name = Spelling;
  addArgs(Id, E->arguments());
  if (!Assigns && E->isPRValue())
    keep(Id, E->getType());
  return Id;
}

ir::ExprId Lowering::construct(const CXXConstructExpr *E) {
  // Copies and moves are the value itself.
  const CXXConstructorDecl *Ctor = E->getConstructor();
  if (Ctor->isCopyOrMoveConstructor() && E->getNumArgs() >= 1 && !isa<CXXTemporaryObjectExpr>(E))
    return expr(E->getArg(0));
  ir::ExprId Id = make(ExprKind::Construct, E);
  // `std::tuple<Tensor, Tensor> state{x, y};` begins at the name: nothing can be put around that.
  if (SourceRange Braces = E->getParenOrBraceRange(); E->isListInitialization() && Braces.isValid() &&
                                                      Braces.getBegin() != E->getBeginLoc() &&
                                                      !isa<CXXTemporaryObjectExpr>(E))
    Out.Exprs[Id].Where.Editable = false;
  const CXXConstructorDecl *Held = heldBy(E);
  if (Ctor->isInheritingConstructor()) // `using Base::Base;`
    Ctor = Ctor->getInheritedConstructor().getConstructor();
  setCallee(Id, Held ? Held : Ctor);
  addArgs(Id, E->arguments(), inProject(Ctor->getLocation()));
  keep(Id, E->getType());
  return Id;
}

ir::ExprId Lowering::lambda(const LambdaExpr *E) {
  ir::ExprId Id = make(ExprKind::Lambda, E);
  // `[data = batch.data]`: assigned where the lambda is made.
  std::vector<ir::ExprId> Kept;
  for (const LambdaCapture &Capture : E->captures())
    if (E->isInitCapture(&Capture))
      if (const auto *V = dyn_cast<VarDecl>(Capture.getCapturedVar()); V && V->getInit()) {
        ir::ExprId To = make(ExprKind::Ref, V->getInit()), Assigned = make(ExprKind::Assign, V->getInit());
        ir::VarId Var = varOf(V);
        ir::ExprId Value = expr(V->getInit());
        Out.Exprs[To].Var = Var;
        Out.Exprs[To].Type = Out.Vars[Var].Type;
        Out.Exprs[Assigned].Name = "=";
        Out.Exprs[Assigned].Args = {To, Value};
        Kept.push_back(Assigned);
      }
  Out.Exprs[Id].Args = Kept;
  const CXXMethodDecl *Op = E->getCallOperator();
  ir::FuncId F = None;
  if (const FunctionTemplateDecl *Template = Op->getDescribedFunctionTemplate()) {
    for (const FunctionDecl *Spec : Template->specializations())
      if (ir::FuncId Id = lowerFunction(Spec->getDefinition() ? Spec->getDefinition() : Spec, Current); F == None)
        F = Id;
  } else {
    F = lowerFunction(Op, Current);
  }
  // It writes to copies of its own, which nothing follows.
  if (F != None && E->isMutable() && llvm::any_of(E->captures(), [](const LambdaCapture &Capture) {
        return Capture.getCaptureKind() == LCK_ByCopy;
      })) {
    Out.Functions[F].Usr += "#copies";
    F = None;
  }
  Out.Exprs[Id].Func = F;
  return Id;
}

ir::ExprId Lowering::expr(const Expr *E) {
  if (!E)
    return None;
  if (auto It = Lowered.find(E); It != Lowered.end())
    return It->second;
  ir::ExprId Id = lowerExpr(E);
  Lowered[E] = Id;
  Finder.match(*E, Ctx);
  return Id;
}

ir::ExprId Lowering::lowerExpr(const Expr *E) {
  // Wrappers that the user didn't write, and parentheses.
  if (const auto *Full = dyn_cast<FullExpr>(E))
    return expr(Full->getSubExpr());
  if (const auto *Temporary = dyn_cast<MaterializeTemporaryExpr>(E))
    return expr(Temporary->getSubExpr());
  if (const auto *Bind = dyn_cast<CXXBindTemporaryExpr>(E))
    return expr(Bind->getSubExpr());
  if (const auto *Paren = dyn_cast<ParenExpr>(E))
    return expr(Paren->getSubExpr());
  if (const auto *Init = dyn_cast<CXXDefaultInitExpr>(E))
    return expr(Init->getExpr());
  if (const auto *Implicit = dyn_cast<ImplicitCastExpr>(E)) {
    const Expr *Sub = Implicit->getSubExpr();
    if (Implicit->getCastKind() == CK_ConstructorConversion)
      if (const auto *Made = dyn_cast<CXXConstructExpr>(Sub->IgnoreImplicit()); Made && Made->getNumArgs() >= 1)
        return expr(Made->getArg(0));
    if (Implicit->getCastKind() == CK_UserDefinedConversion)
      if (const auto *Call = dyn_cast<CXXMemberCallExpr>(Sub->IgnoreImplicit())) {
        ir::ExprId Object = expr(Call->getImplicitObjectArgument());
        // The project's own operator computes something, and no text says so.
        if (const auto *Operator = dyn_cast_or_null<CXXConversionDecl>(Call->getMethodDecl());
            Operator && !Operator->isImplicit() && inProject(Operator->getLocation()) &&
            Operator->getConversionType().getNonReferenceType()->isArithmeticType()) {
          ir::ExprId Id = make(ExprKind::Call, Call);
          setCallee(Id, Operator);
          Out.Exprs[Id].Object = Object;
          Out.Exprs[Id].Where.Editable = false;
          return Id;
        }
        const ir::Type &Of = Out.type(Object);
        const StringRef Holder = Of.Name;
        const bool Pointer = Of.Kind == ir::TypeKind::Unknown &&
                             (Holder.starts_with("std::shared_ptr<") || Holder.starts_with("std::unique_ptr<"));
        if (!E->getType()->isBooleanType() || !(Pointer || Holder.starts_with("std::optional<")))
          return Object;
        ir::ExprId Holds = make(ExprKind::Call, E); // `if (state)` asks whether it holds anything, not what
        Out.Exprs[Holds].Name = "std::optional::has_value";
        Out.Exprs[Holds].Object = Object;
        return Holds;
      }
    ir::ExprId Id = expr(Sub);
    // Losing conversions are operations: a mean isn't linear behind float -> int.
    if (Implicit->getCastKind() == CK_FloatingToIntegral && Id != None) {
      ir::ExprId Cast = make(ExprKind::Cast, E);
      Out.Exprs[Cast].Name = "truncate";
      Out.Exprs[Cast].Args = {Id};
      return Cast;
    }
    return Id;
  }
  if (const auto *Cast = dyn_cast<ExplicitCastExpr>(E)) {
    const Expr *Sub = Cast->getSubExpr();
    ir::ExprId Inner = expr(Sub);
    ir::ExprId Id = make(ExprKind::Cast, E);
    if (Inner != None && Out.type(Inner).Kind == ir::TypeKind::Floating && Out.type(Id).Kind == ir::TypeKind::Integer &&
        Out.Exprs[Inner].Name != "truncate")
      Out.Exprs[Id].Name = "truncate";
    Out.Exprs[Id].Args = {Inner};
    return Id;
  }
  if (const auto *Ref = dyn_cast<DeclRefExpr>(E)) {
    const ValueDecl *D = Ref->getDecl();
    if (const auto *Enumerator = dyn_cast<EnumConstantDecl>(D)) {
      ir::ExprId Id = make(ExprKind::Literal, E);
      Out.Exprs[Id].Name = qualifiedName(*Enumerator);
      return Id;
    }
    if (const auto *F = dyn_cast<FunctionDecl>(D)) {
      ir::ExprId Id = make(ExprKind::Unknown, E);
      setCallee(Id, F);
      return Id;
    }
    if (const auto *Binding = dyn_cast<BindingDecl>(D); Binding && Binding->getHoldingVar())
      D = Binding->getHoldingVar();
    ir::VarId V = varOf(D);
    ir::ExprId Id = make(ExprKind::Ref, E);
    Out.Exprs[Id].Var = V;
    Out.Exprs[Id].Name = qualifiedName(*D); // constants of LibTorch are known by name
    return Id;
  }
  if (const auto *Member = dyn_cast<MemberExpr>(E)) {
    ir::ExprId Object = expr(Member->getBase());
    ir::VarId V = isa<FieldDecl, VarDecl>(Member->getMemberDecl()) ? varOf(Member->getMemberDecl()) : None;
    ir::ExprId Id = make(ExprKind::Field, E);
    Out.Exprs[Id].Object = Object;
    Out.Exprs[Id].Var = V;
    Out.Exprs[Id].Name = Member->getMemberDecl()->getNameAsString();
    return Id;
  }
  if (isa<CXXThisExpr>(E))
    return make(ExprKind::This, E);
  if (const auto *Op = dyn_cast<CXXOperatorCallExpr>(E))
    return operatorCall(Op);
  if (const auto *Call = dyn_cast<CallExpr>(E))
    return callTo(Call);
  if (const auto *Construct = dyn_cast<CXXConstructExpr>(E))
    return construct(Construct);
  if (const auto *Lambda = dyn_cast<LambdaExpr>(E))
    return lambda(Lambda);
  if (const auto *New = dyn_cast<CXXNewExpr>(E)) {
    if (const Expr *Size = New->getArraySize().value_or(nullptr);
        Size && !Size->isValueDependent() && !Size->getIntegerConstantExpr(Ctx))
      return arrayOf(Size, E);
    ir::ExprId Id = make(ExprKind::Construct, E);
    if (const CXXConstructExpr *Made = New->getConstructExpr()) {
      const CXXConstructorDecl *Ctor = Made->getConstructor();
      setCallee(Id, Ctor->isInheritingConstructor() ? Ctor->getInheritedConstructor().getConstructor() : Ctor);
      addArgs(Id, Made->arguments());
      keep(Id, New->getAllocatedType());
      Lowered[Made] = Id; // which rules match as any other
      Finder.match(*Made, Ctx);
    } else if (const Expr *Init = New->getInitializer()) { // a copy that is left out
      ir::ExprId Arg = expr(Init);
      Out.Exprs[Id].Args = {Arg};
    }
    return Id;
  }
  if (const auto *List = dyn_cast<InitListExpr>(E)) {
    const InitListExpr *Semantic = List->isSemanticForm() ? List : List->getSemanticForm();
    bool Defaults =
        Semantic && llvm::any_of(Semantic->inits(), [](const Expr *Init) { return isa<CXXDefaultInitExpr>(Init); });
    if (Defaults || (Semantic && Semantic->getNumInits() > 0 && ownRecord(E->getType())))
      return aggregate(Semantic);
    std::vector<ir::ExprId> Ids;
    for (const Expr *Init : (Semantic ? Semantic : List)->inits())
      if (Init && !isa<ImplicitValueInitExpr>(Init))
        Ids.push_back(expr(Init));
    ir::ExprId Id = make(ExprKind::List, E);
    Out.Exprs[Id].Args = std::move(Ids);
    return Id;
  }
  if (const auto *Std = dyn_cast<CXXStdInitializerListExpr>(E))
    return expr(Std->getSubExpr());
  if (const auto *Unary = dyn_cast<UnaryOperator>(E)) {
    if (Unary->getOpcode() == UO_Plus || Unary->getOpcode() == UO_Extension)
      return expr(Unary->getSubExpr());
    ir::ExprId Sub = expr(Unary->getSubExpr());
    ir::ExprId Id = make(ExprKind::Unary, E);
    Out.Exprs[Id].Name = UnaryOperator::getOpcodeStr(Unary->getOpcode()).str();
    Out.Exprs[Id].Args = {Sub};
    return Id;
  }
  if (const auto *Binary = dyn_cast<BinaryOperator>(E)) {
    ir::ExprId L = expr(Binary->getLHS()), R = expr(Binary->getRHS());
    ir::ExprId Id = make(Binary->isAssignmentOp() ? ExprKind::Assign : ExprKind::Binary, E);
    Out.Exprs[Id].Name = Binary->getOpcodeStr().str();
    Out.Exprs[Id].Args = {L, R};
    return Id;
  }
  if (const auto *Conditional = dyn_cast<ConditionalOperator>(E)) {
    ir::ExprId C = expr(Conditional->getCond()), T = expr(Conditional->getTrueExpr()),
               F = expr(Conditional->getFalseExpr());
    ir::ExprId Id = make(ExprKind::Conditional, E);
    Out.Exprs[Id].Args = {C, T, F};
    return Id;
  }
  if (const auto *Index = dyn_cast<ArraySubscriptExpr>(E)) {
    ir::ExprId Base = expr(Index->getBase()), Sub = expr(Index->getIdx());
    ir::ExprId Id = make(ExprKind::Index, E);
    Out.Exprs[Id].Object = Base;
    Out.Exprs[Id].Args = {Sub};
    return Id;
  }
  if (isa<IntegerLiteral, FloatingLiteral, CXXBoolLiteralExpr, CharacterLiteral, clang::StringLiteral,
          CXXNullPtrLiteralExpr, GNUNullExpr, UnaryExprOrTypeTraitExpr>(E)) {
    ir::ExprId Id = make(ExprKind::Literal, E);
    if (const auto *Int = dyn_cast<IntegerLiteral>(E))
      Out.Exprs[Id].Name = llvm::toString(Int->getValue(), 10, /*Signed=*/true);
    else if (const auto *Float = dyn_cast<FloatingLiteral>(E))
      Out.Exprs[Id].Name = Float->getValue().isZero() ? "0" : "float";
    else if (const auto *Bool = dyn_cast<CXXBoolLiteralExpr>(E))
      Out.Exprs[Id].Name = Bool->getValue() ? "true" : "false";
    else if (const auto *String = dyn_cast<clang::StringLiteral>(E); String && String->getCharByteWidth() == 1)
      Out.Exprs[Id].Name = String->getString().str();
    return Id;
  }
  // What isn't modelled keeps its children, so that nothing below it is overlooked.
  std::vector<ir::ExprId> Children;
  for (const Stmt *Child : E->children())
    if (const auto *Sub = dyn_cast_or_null<Expr>(Child); Sub && !isa<CXXDefaultArgExpr>(Sub))
      Children.push_back(expr(Sub));
  ir::ExprId Id = make(ExprKind::Unknown, E);
  Out.Exprs[Id].Name = E->getStmtClassName();
  Out.Exprs[Id].Args = std::move(Children);
  return Id;
}

} // namespace migrate
