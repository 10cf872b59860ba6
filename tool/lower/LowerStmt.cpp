//===- LowerStmt.cpp - Statements and functions ---------------------------===//
#include "lower/Lowering.h"
#include "clang/AST/StmtCXX.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace clang;

namespace migrate {

using ir::ExprKind;
using ir::None;
using ir::StmtKind;

ir::StmtId Lowering::make(StmtKind Kind, const Stmt *S) {
  ir::Stmt X;
  X.Kind = Kind;
  X.Where = stmtRange(S);
  Out.Stmts.push_back(X);
  return Out.Stmts.size() - 1;
}

ir::StmtId Lowering::block(llvm::ArrayRef<ir::StmtId> Children, ir::Range Where, bool Transparent) {
  ir::Stmt X;
  X.Kind = StmtKind::Block;
  X.Where = Where;
  X.Children.assign(Children.begin(), Children.end());
  X.Transparent = Transparent;
  Out.Stmts.push_back(X);
  return Out.Stmts.size() - 1;
}

/// Whether `#pragma omp parallel for`, `#pragma omp task` stands in the line above: OpenMP's flag isn't among those
/// that units are read with, so that the loop behind it is read as any other.
bool Lowering::startsThreads(const Stmt *S) const {
  auto [File, Offset] = SM.getDecomposedLoc(SM.getFileLoc(S->getBeginLoc()));
  auto [Above, Indent] = SM.getBufferData(File).take_front(Offset).rsplit('\n');
  if (!Indent.trim().empty())
    return false;
  std::string Line;
  do { // the lines that a backslash joins
    StringRef Last;
    std::tie(Above, Last) = Above.contains('\n') ? Above.rsplit('\n') : std::pair(StringRef(), Above);
    Line.insert(0, Last.rtrim("\r\\").str() + " ");
  } while (Above.rtrim("\r").ends_with("\\"));
  StringRef Pragma = StringRef(Line).ltrim();
  if (!Pragma.consume_front("#") || !(Pragma = Pragma.ltrim()).consume_front("pragma") ||
      !(Pragma = Pragma.ltrim()).consume_front("omp "))
    return false;
  SmallVector<StringRef> Words;
  Pragma.take_until([](char C) { return C == '('; }).split(Words, ' ', -1, /*KeepEmpty=*/false);
  return llvm::any_of(Words, [](StringRef Word) {
    return Word == "parallel" || Word == "task" || Word == "taskloop" || Word == "sections" || Word == "section" ||
           Word == "teams";
  });
}

ir::StmtId Lowering::stmt(const Stmt *S) {
  const ir::StmtId Lowered = lowerStmt(S);
  if (Lowered == None || !startsThreads(S))
    return Lowered;
  const ir::StmtId Id = make(StmtKind::Threads, S);
  Out.Stmts[Id].Children = {Lowered};
  return Id;
}

ir::StmtId Lowering::lowerStmt(const Stmt *S) {
  if (!S || isa<NullStmt>(S))
    return None;
  if (const auto *E = dyn_cast<Expr>(S)) {
    ir::ExprId Value = expr(E);
    ir::StmtId Id = make(StmtKind::Expr, S);
    Out.Stmts[Id].Value = Value;
    return Id;
  }
  if (const auto *Compound = dyn_cast<CompoundStmt>(S)) {
    std::vector<ir::StmtId> Children;
    Scopes.emplace_back();
    for (const Stmt *Child : Compound->body())
      if (ir::StmtId Id = stmt(Child); Id != None) {
        if (isa<Expr>(Child))
          takeParentheses(Child, Out.Stmts[Id].Where);
        Children.push_back(Id);
      }
    llvm::append_range(Children, destroyed(Scopes.size() - 1, Compound->getRBracLoc()));
    Scopes.pop_back();
    return block(Children, stmtRange(S), /*Transparent=*/false);
  }
  if (const auto *Decls = dyn_cast<DeclStmt>(S)) {
    std::vector<ir::StmtId> Children;
    for (const Decl *D : Decls->decls()) {
      const auto *V = dyn_cast<VarDecl>(D);
      if (!V)
        continue;
      // `float sums[n];`
      if (const VariableArrayType *Array = Ctx.getAsVariableArrayType(V->getType()); Array && Array->getSizeExpr()) {
        ir::ExprId Made = arrayOf(Array->getSizeExpr(), Array->getSizeExpr());
        ir::StmtId Size = make(StmtKind::Expr, S);
        Out.Stmts[Size].Value = Made;
        Children.push_back(Size);
      }
      ir::ExprId Init = V->getInit() ? expr(V->getInit()) : None;
      ir::VarId Var = varOf(V);
      ir::StmtId Id = make(StmtKind::Decl, S);
      Out.Stmts[Id].Var = Var;
      Out.Stmts[Id].Value = Init;
      Children.push_back(Id);
      if (!Scopes.empty() && destructorOf(V))
        Scopes.back().push_back(V);
      unsigned Index = 0;
      if (const auto *Decomposition = dyn_cast<DecompositionDecl>(V))
        for (const BindingDecl *B : Decomposition->bindings()) {
          // Each name is a part of the whole: its value is the whole's.
          ir::VarId Part = bindingOf(B, V);
          ir::StmtId Bound = make(StmtKind::Decl, S);
          Out.Stmts[Bound].Var = Part;
          bool Tuple = B->getHoldingVar() && Init != None;
          ir::ExprId Field = Tuple ? None : fieldOf(Var, B);
          Out.Stmts[Bound].Value = Tuple ? partOf(Init, V->getInit(), Index) : Field != None ? Field : Init;
          // (A tensor's batch is told by the pair that it comes of.)
          if (const ir::TypeId Type = Tuple ? typeId(B->getHoldingVar()->getType()) : None;
              Tuple && Out.Types[Type].Kind != ir::TypeKind::Tensor)
            Out.Exprs[Out.Stmts[Bound].Value].Type = Type;
          ++Index;
          Children.push_back(Bound);
        }
    }
    if (Children.size() == 1)
      return Children.front();
    return block(Children, stmtRange(S), /*Transparent=*/true);
  }
  if (const auto *If = dyn_cast<IfStmt>(S)) {
    std::vector<ir::StmtId> Before;
    if (If->getInit())
      Before.push_back(stmt(If->getInit()));
    if (If->getConditionVariableDeclStmt())
      Before.push_back(stmt(If->getConditionVariableDeclStmt()));
    ir::ExprId Cond = expr(If->getCond());
    ir::StmtId Then = stmt(If->getThen()), Else = stmt(If->getElse());
    ir::StmtId Id = make(StmtKind::If, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = {Then, Else};
    if (Before.empty())
      return Id;
    Before.push_back(Id);
    return block(Before, Out.Stmts[Id].Where, /*Transparent=*/false);
  }
  // `while (auto batch = loader.next()) …` is `for (;;) { auto batch = loader.next(); if (!batch) break; … }`.
  auto Declaring = [&](const DeclStmt *Variable, ir::ExprId &Cond, ir::StmtId Body, const Stmt *Where) {
    if (!Variable)
      return Body;
    ir::StmtId Declared = stmt(Variable), Leaves = make(StmtKind::If, Where), Break = make(StmtKind::Break, Where);
    Out.Stmts[Leaves].Value = std::exchange(Cond, None);
    Out.Stmts[Leaves].Children = {None, Break};
    return block({Declared, Leaves, Body}, Body == None ? ir::Range() : Out.Stmts[Body].Where, /*Transparent=*/false);
  };
  const bool Loops = isa<ForStmt, WhileStmt, DoStmt, CXXForRangeStmt>(S);
  llvm::SaveAndRestore Broken(BreakTo, Loops || isa<SwitchStmt>(S) ? Scopes.size() : BreakTo);
  llvm::SaveAndRestore Continued(ContinueTo, Loops ? Scopes.size() : ContinueTo);
  if (const auto *For = dyn_cast<ForStmt>(S)) {
    ir::StmtId Init = stmt(For->getInit());
    ir::ExprId Cond = For->getCond() ? expr(For->getCond()) : None;
    ir::StmtId Inc = stmt(For->getInc()), Body = stmt(For->getBody());
    Body = Declaring(For->getConditionVariableDeclStmt(), Cond, Body, For->getCond());
    ir::StmtId Id = make(StmtKind::Loop, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = {Init, Inc, Body};
    return Id;
  }
  if (isa<WhileStmt, DoStmt>(S)) {
    const auto *While = dyn_cast<WhileStmt>(S);
    ir::ExprId Cond = expr(While ? While->getCond() : cast<DoStmt>(S)->getCond());
    ir::StmtId Body = stmt(While ? While->getBody() : cast<DoStmt>(S)->getBody());
    Body = Declaring(While ? While->getConditionVariableDeclStmt() : nullptr, Cond, Body, While ? While->getCond() : S);
    ir::StmtId Id = make(StmtKind::Loop, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = {None, None, Body};
    return Id;
  }
  if (const auto *Range = dyn_cast<CXXForRangeStmt>(S)) {
    ir::ExprId Over = Range->getRangeInit() ? expr(Range->getRangeInit()) : None;
    ir::VarId Var = varOf(Range->getLoopVariable());
    std::vector<ir::StmtId> Inner;
    unsigned Index = 0;
    if (const auto *Decomposition = dyn_cast<DecompositionDecl>(Range->getLoopVariable()))
      for (const BindingDecl *B : Decomposition->bindings()) {
        ir::VarId Part = bindingOf(B, Range->getLoopVariable());
        ir::Expr Whole;
        Whole.Kind = ExprKind::Ref;
        Whole.Var = Var;
        Whole.Type = Out.Vars[Var].Type;
        ir::ExprId Value = fieldOf(Var, B);
        if (Value == None)
          Value = halfOf(Var, Range->getLoopVariable(), B == Decomposition->bindings().front());
        if (Value == None) {
          Out.Exprs.push_back(Whole);
          Value = Out.Exprs.size() - 1;
          if (B->getHoldingVar() && B->getHoldingVar()->getInit()) { // of a tuple
            Value = partOf(Value, B->getHoldingVar()->getInit(), Index);
            Out.Exprs[Value].Where = {}; // nothing is written there
          }
        }
        ++Index;
        ir::StmtId Bound = make(StmtKind::Decl, Range->getLoopVarStmt());
        Out.Stmts[Bound].Var = Part;
        Out.Stmts[Bound].Value = Value;
        Inner.push_back(Bound);
      }
    ir::StmtId Body = stmt(Range->getBody());
    if (!Inner.empty()) {
      if (Body != None)
        Inner.push_back(Body);
      Body = block(Inner, Body != None ? Out.Stmts[Body].Where : ir::Range(), /*Transparent=*/false);
    }
    ir::StmtId Id = make(StmtKind::RangeFor, S);
    Out.Stmts[Id].Value = Over;
    Out.Stmts[Id].Var = Var;
    Out.Stmts[Id].Children = {Body};
    return Id;
  }
  if (const auto *Return = dyn_cast<ReturnStmt>(S)) {
    ir::ExprId Value = Return->getRetValue() ? expr(Return->getRetValue()) : None;
    ir::StmtId Id = make(StmtKind::Return, S);
    Out.Stmts[Id].Value = Value;
    std::vector<ir::StmtId> Destroyed = destroyed(0, S->getBeginLoc()); // may reallocate
    Out.Stmts[Id].Children = std::move(Destroyed);
    return Id;
  }
  if (isa<BreakStmt, ContinueStmt>(S)) {
    const bool Breaks = isa<BreakStmt>(S);
    ir::StmtId Id = make(Breaks ? StmtKind::Break : StmtKind::Continue, S);
    std::vector<ir::StmtId> Destroyed = destroyed(Breaks ? BreakTo : ContinueTo, S->getBeginLoc());
    Out.Stmts[Id].Children = std::move(Destroyed);
    return Id;
  }
  if (isa<GotoStmt, IndirectGotoStmt>(S))
    return make(StmtKind::Goto, S);
  if (const auto *Switch = dyn_cast<SwitchStmt>(S)) {
    ir::ExprId Cond = expr(Switch->getCond());
    std::vector<ir::StmtId> Cases;
    if (const auto *Body = dyn_cast<CompoundStmt>(Switch->getBody()))
      for (const Stmt *Child : Body->body())
        if (ir::StmtId Id = stmt(Child); Id != None)
          Cases.push_back(Id);
    ir::StmtId Id = make(StmtKind::Switch, S);
    Out.Stmts[Id].Value = Cond;
    Out.Stmts[Id].Children = std::move(Cases);
    return Id;
  }
  if (const auto *Try = dyn_cast<CXXTryStmt>(S)) {
    std::vector<ir::StmtId> Parts = {stmt(Try->getTryBlock())};
    for (unsigned I = 0; I != Try->getNumHandlers(); ++I)
      Parts.push_back(stmt(Try->getHandler(I)->getHandlerBlock()));
    ir::StmtId Id = make(StmtKind::Try, S);
    Out.Stmts[Id].Children = std::move(Parts);
    return Id;
  }
  if (const auto *Case = dyn_cast<SwitchCase>(S))
    return stmt(Case->getSubStmt());
  std::vector<ir::StmtId> Children;
  for (const Stmt *Child : S->children())
    if (ir::StmtId Id = stmt(Child); Id != None)
      Children.push_back(Id);
  ir::StmtId Id = make(StmtKind::Other, S);
  Out.Stmts[Id].Children = std::move(Children);
  return Id;
}

/// The project's destructor that runs where a local variable's scope ends, its own or that of what it holds alone.
const CXXDestructorDecl *Lowering::destructorOf(const VarDecl *V) {
  if (!V->hasLocalStorage() || isa<ParmVarDecl>(V))
    return nullptr;
  const CXXRecordDecl *Record = V->getType()->getAsCXXRecordDecl();
  if (const auto *Holder = dyn_cast_or_null<ClassTemplateSpecializationDecl>(Record);
      Holder && Holder->isInStdNamespace() && Holder->getName() == "unique_ptr" &&
      Holder->getTemplateArgs()[0].getKind() == TemplateArgument::Type)
    Record = Holder->getTemplateArgs()[0].getAsType()->getAsCXXRecordDecl();
  if (!Record || !Record->hasDefinition())
    return nullptr;
  const CXXDestructorDecl *Found = Record->getDestructor();
  return Found && Found->isUserProvided() && inProject(Found->getLocation()) ? Found : nullptr;
}

/// Calls of the destructors of what the scopes from `Outermost` on hold, the last declared first.
std::vector<ir::StmtId> Lowering::destroyed(size_t Outermost, SourceLocation Where) {
  std::vector<ir::StmtId> Calls;
  ir::Range Place = rangeOf(Where, Where);
  Place.Editable = false;
  for (size_t Scope = Scopes.size(); Scope-- > Outermost;)
    for (const VarDecl *V : llvm::reverse(Scopes[Scope])) {
      ir::Expr Object, Call;
      Object.Kind = ExprKind::Ref;
      Object.Var = varOf(V);
      Object.Type = Out.Vars[Object.Var].Type;
      Call.Kind = ExprKind::Call;
      Object.Where = Call.Where = Place;
      Call.Type = typeId(Ctx.VoidTy);
      Call.Object = Out.Exprs.size();
      Out.Exprs.push_back(Object);
      Out.Exprs.push_back(Call);
      ir::Stmt Runs;
      Runs.Kind = StmtKind::Expr;
      Runs.Where = Place;
      Runs.Value = Out.Exprs.size() - 1;
      setCallee(Runs.Value, destructorOf(V));
      Out.Stmts.push_back(Runs);
      Calls.push_back(Out.Stmts.size() - 1);
    }
  return Calls;
}

ir::FuncId Lowering::lowerFunction(const FunctionDecl *F, ir::FuncId Parent) {
  if (auto It = Functions.find(F->getCanonicalDecl()); It != Functions.end())
    return It->second;
  ir::FuncId Id = Out.Functions.size();
  Functions[F->getCanonicalDecl()] = Id;
  Out.Functions.emplace_back();
  llvm::SaveAndRestore InFunction(Current, Id);
  std::vector<std::vector<const VarDecl *>> Outside;
  std::swap(Scopes, Outside);

  ir::Function Fn;
  Fn.Usr = usrOf(F);
  Fn.Name = F->getNameAsString();
  Fn.Qualified = qualifiedName(*F);
  Fn.Main = F->isMain();
  Fn.Result = typeId(F->getReturnType());
  Fn.Parent = Parent;
  Fn.Where = rangeOf(F->getSourceRange());
  if (const FunctionDecl *Pattern = F->getTemplateInstantiationPattern())
    Fn.Pattern = Out.Files.empty() || Fn.Where.File == None
                     ? qualifiedName(*Pattern)
                     : Out.Files[Fn.Where.File].Path + ":" + std::to_string(Fn.Where.Begin);
  if (const auto *M = dyn_cast<CXXMethodDecl>(F)) {
    Fn.Record = M->getParent()->isLambda() ? "" : qualifiedName(*M->getParent());
    for (const CXXMethodDecl *O : M->overridden_methods())
      Fn.Overrides.push_back(usrOf(O));
  }
  Out.Functions[Id] = Fn; // what is lowered below may add functions
  for (const ParmVarDecl *P : F->parameters()) {
    ir::VarId V = varOf(P); // may reallocate
    Out.Functions[Id].Params.push_back(V);
  }
  if (const auto *Ctor = dyn_cast<CXXConstructorDecl>(F)) {
    for (const CXXCtorInitializer *Init : Ctor->inits()) {
      if (runsConstructor(Init)) {
        ir::ExprId Made = expr(Init->getInit());
        Out.Exprs[Made].Var = None; // it makes this object, none of its own
        Out.Functions[Id].Bases.push_back(Made);
      } else if (Init->isMemberInitializer() && Init->getInit() &&
                 (!F->isDefaulted() || isa<CXXDefaultInitExpr>(Init->getInit()))) {
        ir::ExprId Value = expr(Init->getInit());
        ir::VarId Field = varOf(Init->getMember());
        if (Out.Exprs[Value].Kind == ExprKind::Construct)
          Out.Exprs[Value].Var = None; // it makes the member
        Out.Functions[Id].Inits.emplace_back(Field, Value);
      }
    }
  }
  const Stmt *Body = F->getBody();
  ir::StmtId Lowered = Body ? stmt(Body) : None;
  Out.Functions[Id].Body = Lowered;
  if (const auto *Try = dyn_cast_or_null<CXXTryStmt>(Body)) // `int main() try { … }`
    Body = Try->getTryBlock();
  if (const auto *Compound = dyn_cast_or_null<CompoundStmt>(Body)) {
    ir::Range Brace = rangeOf(Compound->getLBracLoc(), Compound->getLBracLoc());
    Out.Functions[Id].BodyBegin = Brace.End;
    if (!Brace.Editable || F->isDefaulted()) { // no body that the user wrote
      Out.Functions[Id].Where.Editable = false;
      Out.Functions[Id].BodyBegin = F->isDefaulted() ? 0 : Brace.End;
    }
  }
  Out.HasMain |= Fn.Main;
  std::swap(Scopes, Outside);
  return Id;
}

/// The name that a structured binding gives a part of `Whole`. Of a copy, it is all there is of that part.
ir::VarId Lowering::bindingOf(const BindingDecl *B, const VarDecl *Whole) {
  ir::VarId Part = varOf(B->getHoldingVar() ? cast<ValueDecl>(B->getHoldingVar()) : cast<ValueDecl>(B));
  if (B->getType().isNull())
    return Part;
  if (B->getType()->isLValueReferenceType() && B->getHoldingVar()) // `auto [sum, n] = meter.refs();`
    Out.Vars[Part].Type = typeId(B->getType());
  else if (!Whole->getType()->isReferenceType())
    Out.Vars[Part].Type = typeId(B->getType().getNonReferenceType());
  else if (memberOf(B)) // `auto& [sum, rows] = meter`: names of its members
    Out.Vars[Part].Type = typeId(Ctx.getLValueReferenceType(B->getType()));
  return Part;
}

/// The member that a structured binding names, of an object of the project's.
const FieldDecl *Lowering::memberOf(const BindingDecl *B) {
  const auto *Member = dyn_cast_or_null<MemberExpr>(B->getBinding() ? B->getBinding()->IgnoreImplicit() : nullptr);
  return Member && ownRecord(Member->getBase()->getType()) ? dyn_cast<FieldDecl>(Member->getMemberDecl()) : nullptr;
}

/// What a name in `for (auto &[name, sum] : sums)` stands for: `entry.first`, `entry.second`.
ir::ExprId Lowering::halfOf(ir::VarId Whole, const VarDecl *Entry, bool First) {
  const CXXRecordDecl *Pair = Entry->getType().getNonReferenceType()->getAsCXXRecordDecl();
  if (!Pair || qualifiedName(*Pair) != "std::pair")
    return None;
  for (const FieldDecl *Field : Pair->fields())
    if (Field->getName() == (First ? "first" : "second"))
      return memberOf(Whole, Field);
  return None;
}

/// What a name in `auto [loss, count] = step();` stands for, if that is an object of the project's.
ir::ExprId Lowering::fieldOf(ir::VarId Whole, const BindingDecl *B) {
  const FieldDecl *Field = memberOf(B);
  return Field ? memberOf(Whole, Field) : None;
}

ir::ExprId Lowering::memberOf(ir::VarId Whole, const FieldDecl *Field) {
  ir::Expr Of, Part;
  Of.Kind = ExprKind::Ref;
  Of.Var = Whole;
  Of.Type = Out.Vars[Whole].Type;
  Part.Kind = ExprKind::Field;
  Part.Name = Field->getNameAsString();
  Part.Var = varOf(Field);
  Part.Type = typeId(Field->getType());
  Part.Object = Out.Exprs.size();
  Out.Exprs.push_back(Of);
  Out.Exprs.push_back(Part);
  return Out.Exprs.size() - 1;
}

/// `Trainer t{config}` of a class without constructors, some of whose members are initialised in the class: as with a
/// constructor that takes what is given, and initialises the others.
ir::ExprId Lowering::aggregate(const InitListExpr *E) {
  const CXXRecordDecl *Record = E->getType()->getAsCXXRecordDecl();
  std::vector<const FieldDecl *> Fields;
  if (Record && Record->getNumBases() == 0)
    for (const FieldDecl *Field : Record->fields())
      if (!Field->isUnnamedBitField())
        Fields.push_back(Field);
  bool Known = Fields.size() == E->getNumInits();
  std::vector<ir::ExprId> Given;
  std::string Which; // of the members: given, initialised in the class, or zero
  for (const Expr *Init : E->inits()) {
    bool Zero = !Init || isa<ImplicitValueInitExpr>(Init);
    Which += Zero ? '0' : isa<CXXDefaultInitExpr>(Init) ? '-' : '+';
    if (Which.back() == '+' || (!Known && !Zero))
      Given.push_back(expr(Init));
  }
  ir::ExprId Id = make(Known ? ExprKind::Construct : ExprKind::List, E);
  Out.Exprs[Id].Args = std::move(Given);
  if (!Known)
    return Id;
  keep(Id, E->getType());
  std::string Usr = "aggregate:" + usrOf(Record) + Which;
  Out.Exprs[Id].Name = qualifiedName(*Record);
  Out.Exprs[Id].Callee = Usr;
  if (!Aggregates.insert(Usr).second)
    return Id;
  const ir::FuncId F = Out.Functions.size();
  Out.Functions.emplace_back();
  llvm::SaveAndRestore InFunction(Current, F);
  ir::Function Fn;
  Fn.Usr = Usr;
  Fn.Name = Record->getNameAsString();
  Fn.Qualified = Fn.Record = qualifiedName(*Record);
  Fn.Result = typeId(Ctx.VoidTy);
  Fn.Where = rangeOf(Record->getLocation(), Record->getLocation());
  Fn.Where.Editable = false;
  Fn.Body = block({}, Fn.Where, /*Transparent=*/false);
  for (size_t I = 0; I != Fields.size(); ++I) {
    ir::VarId Field = varOf(Fields[I]);
    if (Which[I] == '-')
      Fn.Inits.emplace_back(Field, expr(E->getInit(I)));
    if (Which[I] != '+')
      continue;
    ir::Var Param = Out.Vars[Field];
    Param.Usr.clear();
    Param.Field = false;
    Param.Param = true;
    Param.Function = F;
    Out.Vars.push_back(Param);
    ir::Expr Ref;
    Ref.Kind = ExprKind::Ref;
    Ref.Type = Param.Type;
    Ref.Var = Out.Vars.size() - 1;
    Out.Exprs.push_back(Ref);
    Fn.Params.push_back(Ref.Var);
    Fn.Inits.emplace_back(Field, ir::ExprId(Out.Exprs.size() - 1));
  }
  Out.Functions[F] = std::move(Fn);
  return Id;
}

} // namespace migrate
