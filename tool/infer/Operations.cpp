//===- Operations.cpp -----------------------------------------------------===//
#include "infer/Operations.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLParser.h"

using namespace llvm;

namespace migrate {

static const std::pair<const char *, Operation> Kinds[] = {
    {"row-wise", Operation::RowWise},
    {"linear", Operation::Linear},
    {"sum", Operation::Sum},
    {"mean", Operation::Mean},
    {"along-dim", Operation::AlongDim},
    {"over-dim", Operation::OverDim},
    {"coupled", Operation::Coupled},
    {"scatter", Operation::Scatter},
    {"lookup", Operation::Lookup},
    {"count", Operation::Count},
    {"loss", Operation::Loss},
    {"reshape", Operation::Reshape},
    {"index", Operation::Index},
    {"select", Operation::Select},
    {"cat", Operation::Cat},
    {"stack", Operation::Stack},
    {"transpose", Operation::Transpose},
    {"permute", Operation::Permute},
    {"unsqueeze", Operation::Unsqueeze},
    {"squeeze", Operation::Squeeze},
    {"flatten", Operation::Flatten},
    {"unflatten", Operation::Unflatten},
    {"expand", Operation::Expand},
    {"pad", Operation::Pad},
    {"einsum", Operation::EinSum},
    {"tensordot", Operation::TensorDot},
    {"factory", Operation::Factory},
    {"noise", Operation::Noise},
    {"like", Operation::Like},
    {"noise-like", Operation::NoiseLike},
    {"metadata", Operation::Metadata},
    {"extent", Operation::Extent},
    {"tuple", Operation::Tuple},
    {"item", Operation::Item},
    {"number", Operation::Number},
    {"replicated", Operation::Replicated},
    {"update", Operation::Update},
    {"row-module", Operation::RowWise},
    {"container-module", Operation::Container},
    {"wrapper-module", Operation::Wrapper},
    {"noise-module", Operation::NoiseModule},
    {"coupled-module", Operation::CoupledModule},
};

const Parameter *OperationRow::parameter(StringRef Name) const {
  auto It = find_if(Parameters, [&](const Parameter &P) { return P.Name == Name; });
  return It == Parameters.end() ? nullptr : &*It;
}

/// `a->b | c->d`
static bool parseSignatures(StringRef Text, std::vector<Signature> &Into) {
  SmallVector<StringRef> Alternatives;
  Text.split(Alternatives, '|');
  for (StringRef Alternative : Alternatives) {
    std::optional<Signature> S = Signature::parse(Alternative.trim());
    if (!S)
      return false;
    Into.push_back(*S);
  }
  return true;
}

/// What a key says: a kind by its name, or signatures, `bI->bo linear`. Empty if it's neither.
static std::optional<OperationRow> parseKind(StringRef Text) {
  OperationRow Row;
  if (const auto *It = find_if(Kinds, [&](const auto &Kind) { return Text == Kind.first; }); It != std::end(Kinds)) {
    Row.Kind = It->second;
    return Row;
  }
  if (!Text.contains("->"))
    return std::nullopt;
  Row.Kind = Text.consume_front("loss ") ? Operation::ClassLoss : Operation::Contract;
  Row.Of.Linear = Text.consume_back(" linear");
  Row.Of.Affine = Text.consume_back(" affine");
  auto [Usual, Otherwise] = Text.split(';');
  auto [Option, Signatures] = Otherwise.split(':');
  Row.Option = Option.trim().str();
  if (!parseSignatures(Usual, Row.Signatures) || (!Otherwise.empty() && !parseSignatures(Signatures, Row.WithOption)))
    return std::nullopt;
  return Row;
}

/// `topk(k, dim=-1)`: a name, and what it takes behind its tensors.
static bool parseName(StringRef Text, StringRef &Name, OperationRow &Row) {
  StringRef Rest;
  std::tie(Name, Rest) = Text.split('(');
  Row.DeclaresParameters = Text.contains('(');
  if (!Row.DeclaresParameters)
    return !Name.empty();
  if (!Rest.consume_back(")"))
    return false;
  SmallVector<StringRef> Parts;
  Rest.split(Parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef Part : Parts) {
    Parameter P;
    auto [Parameter, Default] = Part.split('=');
    P.Name = Parameter.trim().str();
    P.Optional = Part.contains('=');
    SmallVector<StringRef> Numbers;
    Default.trim().split(Numbers, ' ', -1, /*KeepEmpty=*/false);
    for (StringRef Number : Numbers)
      if (int64_t N; !Number.getAsInteger(10, N))
        P.Default.push_back(N);
      else if (Number != "all")
        return false;
    Row.Parameters.push_back(std::move(P));
  }
  return !Name.empty();
}

/// What a list adds to rows that stand elsewhere in the table.
static bool annotate(StringRef Key, OperationRow &Row, StringRef Option) {
  if (Key == "throws-without-rows")
    Row.Empty = OnEmpty::Throws;
  else if (Key == "nan-without-rows")
    Row.Empty = OnEmpty::NotANumber;
  else if (Key == "drops-out")
    Row.DropsOut = Option.empty() ? "always" : Option.str();
  else
    return false;
  return true;
}

Expected<OperationTable> OperationTable::load(StringRef RulesDir) {
  std::string Path = (RulesDir + "/operations.yaml").str();
  ErrorOr<std::unique_ptr<MemoryBuffer>> Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return createStringError(Buffer.getError(), "the operation table '" + Path + "' can't be read");
  std::string Message;
  SourceMgr SM;
  SM.setDiagHandler(
      [](const SMDiagnostic &D, void *Ctx) {
        std::string &First = *static_cast<std::string *>(Ctx);
        if (First.empty())
          raw_string_ostream(First) << D.getLineNo() << ":" << D.getColumnNo() + 1 << ": " << D.getMessage();
      },
      &Message);
  yaml::Stream Stream((*Buffer)->getBuffer(), SM);
  auto Fail = [&](yaml::Node *At, const Twine &What) {
    if (Message.empty())
      Stream.printError(At, What);
    return createStringError(inconvertibleErrorCode(), Path + ":" + Message);
  };
  OperationTable Table;
  auto Document = Stream.begin();
  auto *Root = Document == Stream.end() ? nullptr : dyn_cast_or_null<yaml::MappingNode>(Document->getRoot());
  if (!Root)
    return Message.empty() ? createStringError(inconvertibleErrorCode(), Path + ":1:1: expected `kind: [names]`")
                           : Fail(nullptr, "");
  struct Annotation {
    std::string Key, Name, Option;
    SMLoc Where;
  };
  std::vector<Annotation> Annotations;
  for (yaml::KeyValueNode &Entry : *Root) {
    auto *Key = dyn_cast_or_null<yaml::ScalarNode>(Entry.getKey());
    if (!Key)
      return Fail(Entry.getKey(), "expected a kind of operation");
    SmallString<64> Storage;
    std::string Kind = Key->getValue(Storage).str();
    OperationRow Ignored;
    std::optional<OperationRow> Row = parseKind(Kind);
    bool Annotates = annotate(Kind, Ignored, "");
    if (!Row && !Annotates)
      return Fail(Key, "unknown kind of operation '" + Kind + "'");
    auto *Names = dyn_cast_or_null<yaml::SequenceNode>(Entry.getValue());
    if (!Names)
      return Fail(Entry.getValue(), "expected a list of operations: `" + Kind + ": [relu, tanh]`");
    for (yaml::Node &Node : *Names) {
      auto *Scalar = dyn_cast<yaml::ScalarNode>(&Node);
      if (!Scalar)
        return Fail(&Node, "expected the name of an operation");
      SmallString<64> NameStorage;
      std::string Text = Scalar->getValue(NameStorage).str();
      OperationRow Operation = Row.value_or(OperationRow());
      StringRef Name;
      if (!parseName(Text, Name, Operation))
        return Fail(Scalar, "expected `name` or `name(parameter, parameter=default)`, not '" + Text + "'");
      if (Annotates)
        Annotations.push_back({Kind, Name.str(), Operation.Parameters.empty() ? "" : Operation.Parameters[0].Name,
                               Scalar->getSourceRange().Start});
      else if (!Table.Rows.try_emplace(Name, std::move(Operation)).second)
        return Fail(Scalar, "'" + Name + "' stands in the table twice");
    }
  }
  if (Stream.failed())
    return Fail(nullptr, "");
  for (const Annotation &A : Annotations) {
    auto It = Table.Rows.find(A.Name);
    if (It == Table.Rows.end()) {
      SM.PrintMessage(A.Where, SourceMgr::DK_Error, "'" + A.Name + "' stands in no row of the table");
      return Fail(nullptr, "");
    }
    annotate(A.Key, It->second, A.Option);
  }
  return Table;
}

const OperationRow *OperationTable::module(StringRef Class) const {
  if (!Class.consume_front("torch::nn::"))
    return nullptr;
  Class.consume_back("Impl");
  auto It = Rows.find(Class);
  return It == Rows.end() ? nullptr : &It->second;
}

const OperationRow *OperationTable::find(StringRef Qualified, bool &InPlace) const {
  InPlace = false;
  if (Qualified.ends_with("::forward"))
    if (const OperationRow *Row = module(Qualified.drop_back(strlen("::forward"))))
      return Row;
  // Names of std:: and of users' own tables are looked up whole, LibTorch's by their last part.
  if (auto It = Rows.find(Qualified); It != Rows.end())
    return &It->second;
  static const char *const Scopes[] = {
      "at::Tensor::",    "at::TensorBase::", "at::",   "torch::special::", "torch::nn::functional::",
      "torch::linalg::", "torch::fft::",     "torch::"};
  for (StringRef Scope : Scopes) {
    StringRef Name = Qualified;
    if (!Name.consume_front(Scope) || Name.contains("::"))
      continue;
    // `torch::fft::fft` is at::fft_fft by another name.
    std::string Prefixed = Scope == "torch::fft::"       ? ("fft_" + Name).str()
                           : Scope == "torch::linalg::"  ? ("linalg_" + Name).str()
                           : Scope == "torch::special::" ? ("special_" + Name).str()
                                                         : "";
    if (auto It = Rows.find(Prefixed); !Prefixed.empty() && It != Rows.end())
      return &It->second;
    if (auto It = Rows.find(Name); It != Rows.end())
      return &It->second;
    if (Name.consume_back("_"))
      if (auto It = Rows.find(Name); It != Rows.end()) {
        InPlace = true;
        return &It->second;
      }
  }
  return nullptr;
}

} // namespace migrate
