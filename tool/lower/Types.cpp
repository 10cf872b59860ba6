//===- Types.cpp ----------------------------------------------------------===//
#include "lower/Types.h"
#include "clang/AST/DeclTemplate.h"
#include "llvm/ADT/StringSwitch.h"

using namespace clang;

namespace migrate {

using ir::Holding;
using ir::TypeKind;

/// Kinds that a class has by itself; a derived class inherits the kind of its base.
static TypeKind kindByName(StringRef Name) {
  return llvm::StringSwitch<TypeKind>(Name)
      .Cases("at::Tensor", "at::TensorBase", TypeKind::Tensor)
      .Cases("torch::nn::Module", "torch::nn::AnyModule", TypeKind::Module)
      .Case("torch::optim::Optimizer", TypeKind::Optimizer)
      .Cases("torch::optim::LRScheduler", "torch::optim::ReduceLROnPlateauScheduler", TypeKind::Scheduler)
      .Case("torch::data::DataLoaderBase", TypeKind::DataLoader)
      .Case("c10::Device", TypeKind::Device)
      .Cases("std::basic_ofstream", "std::basic_fstream", TypeKind::FileStream)
      .Case("std::basic_ostream", TypeKind::Stream)
      .Case("torch::data::Example", TypeKind::Example)
      .Case("torch::data::Iterator", TypeKind::Iterator)
      .Case("accelerate::Accelerator", TypeKind::Accelerator)
      .Cases("std::basic_string", "std::basic_string_view", TypeKind::String)
      .Case("c10::Scalar", TypeKind::Floating)
      .Cases("std::vector", "std::deque", "std::list", "std::array", "std::map", "std::unordered_map", "std::set",
             "std::unordered_set", TypeKind::Container)
      .Cases("c10::ArrayRef", "torch::OrderedDict", "std::tuple", "std::pair", "std::initializer_list",
             TypeKind::Container)
      .Default(TypeKind::Unknown);
}

/// The qualified name without inline namespaces (`std::__cxx11::` on libstdc++) and template arguments.
static std::string plainName(const NamedDecl *D) {
  std::string Name;
  llvm::raw_string_ostream OS(Name);
  PrintingPolicy Policy(D->getASTContext().getLangOpts());
  Policy.SuppressInlineNamespace = true;
  Policy.SuppressUnwrittenScope = true;
  D->printQualifiedName(OS, Policy);
  return Name;
}

/// The class that a base is of, or the template of one that depends on arguments.
static const CXXRecordDecl *classOf(QualType Base) {
  if (const CXXRecordDecl *Record = Base->getAsCXXRecordDecl())
    return Record;
  const auto *Dependent = Base->getAs<TemplateSpecializationType>();
  const TemplateDecl *Template = Dependent ? Dependent->getTemplateName().getAsTemplateDecl() : nullptr;
  return Template ? dyn_cast_or_null<CXXRecordDecl>(Template->getTemplatedDecl()) : nullptr;
}

TypeKind TypeClassifier::kindOf(const CXXRecordDecl *Record) {
  if (!Record)
    return TypeKind::Unknown;
  Record = Record->getCanonicalDecl();
  if (auto It = Kinds.find(Record); It != Kinds.end())
    return It->second;
  Kinds[Record] = TypeKind::Unknown; // ends recursion through broken code
  TypeKind Kind = kindByName(plainName(Record));
  // A unit that only hands on a `std::unique_ptr<StatelessDataLoader<…>>` has no need to instantiate it.
  const CXXRecordDecl *Defined = Record->getDefinition();
  if (const auto *Spec = dyn_cast<ClassTemplateSpecializationDecl>(Record); Spec && !Defined)
    Defined = Spec->getSpecializedTemplate()->getTemplatedDecl()->getDefinition();
  if (Kind == TypeKind::Unknown && Defined)
    for (const CXXBaseSpecifier &Base : Defined->bases())
      if ((Kind = kindOf(classOf(Base.getType()))) != TypeKind::Unknown)
        break;
  return Kinds[Record] = Kind;
}

/// What a smart pointer, optional or module holder leads to, with how it holds it.
static QualType pointee(QualType T, Holding &Hold) {
  if (const auto *Pointer = T->getAs<PointerType>()) {
    Hold = Holding::Pointer;
    return Pointer->getPointeeType();
  }
  const auto *Record = T->getAsCXXRecordDecl();
  if (!Record)
    return QualType();
  if (const auto *Spec = dyn_cast<ClassTemplateSpecializationDecl>(Record)) {
    std::string Name = plainName(Spec);
    if (Name == "std::shared_ptr" || Name == "std::unique_ptr" || Name == "std::reference_wrapper") {
      Hold = Holding::Smart;
      return Spec->getTemplateArgs()[0].getAsType();
    }
    if (Name == "std::optional")
      return Spec->getTemplateArgs()[0].getAsType();
    if (Name == "torch::nn::ModuleHolder") {
      Hold = Holding::Holder;
      return Spec->getTemplateArgs()[0].getAsType();
    }
  }
  if (Record->hasDefinition())
    for (const CXXBaseSpecifier &Base : Record->bases())
      if (const auto *Spec = dyn_cast_or_null<ClassTemplateSpecializationDecl>(Base.getType()->getAsCXXRecordDecl()))
        if (Spec->getName() == "ModuleHolder")
          return pointee(Base.getType(), Hold);
  return QualType();
}

const CXXRecordDecl *TypeClassifier::moduleClass(QualType T) {
  T = T.getNonReferenceType().getCanonicalType().getUnqualifiedType();
  Holding Hold = Holding::Value;
  for (QualType Next = pointee(T, Hold); !Next.isNull(); Next = pointee(T, Hold))
    T = Next.getCanonicalType().getUnqualifiedType();
  return T->getAsCXXRecordDecl();
}

ir::Type TypeClassifier::classify(QualType T) {
  ir::Type Result;
  if (T.isNull() || T->isDependentType())
    return Result;
  Result.Reference = T->isReferenceType();
  T = T.getNonReferenceType();
  Result.Const = T.isConstQualified();
  T = T.getCanonicalType().getUnqualifiedType();
  PrintingPolicy Policy(Ctx.getLangOpts());
  Policy.SuppressInlineNamespace = true;
  Result.Name = T.getAsString(Policy);

  if (T->isVoidType()) {
    Result.Kind = TypeKind::Void;
  } else if (T->isBooleanType()) {
    Result.Kind = TypeKind::Bool;
  } else if (const auto *Enum = T->getAs<EnumType>()) {
    Result.Kind = plainName(Enum->getDecl()) == "c10::DeviceType" ? TypeKind::DeviceType : TypeKind::Enum;
  } else if (T->isIntegerType()) {
    Result.Kind = TypeKind::Integer;
  } else if (T->isFloatingType()) {
    Result.Kind = TypeKind::Floating;
  } else if (T->isPointerType() && T->getPointeeType()->isCharType()) {
    Result.Kind = TypeKind::String;
  } else if (T->isArrayType()) {
    Result.Kind = T->getArrayElementTypeNoTypeQual()->isCharType() ? TypeKind::String : TypeKind::Container;
  } else {
    Result.Kind = kindOf(T->getAsCXXRecordDecl());
    if (Result.Kind == TypeKind::Unknown) {
      Holding Hold = Holding::Value;
      if (QualType Inner = pointee(T, Hold); !Inner.isNull()) {
        ir::Type Held = classify(Inner);
        Result.Kind = Held.Kind;
        Result.Hold = Held.Hold == Holding::Value || Hold != Holding::Value ? Hold : Held.Hold;
      }
    }
  }
  return Result;
}

} // namespace migrate
