//===- Operations.cpp -----------------------------------------------------===//
#include "infer/Operations.h"
#include "rules/Yaml.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace migrate {

static const std::pair<const char *, Operation> Kinds[] = {
    {"row-wise", Operation::RowWise},
    {"linear", Operation::Linear},
    {"sum", Operation::Sum},
    {"mean", Operation::Mean},
    {"along-dim", Operation::AlongDim},
    {"over-dim", Operation::OverDim},
    {"windows", Operation::Windows},
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
    {"pad-sequence", Operation::PadSequence},
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
  else if (std::string *Told = Key == "drops-out"          ? &Row.DropsOut
                               : Key == "keeps-statistics" ? &Row.KeepsStatistics
                               : Key == "writes-weight"    ? &Row.WritesWeight
                                                           : nullptr)
    *Told = Option.empty() ? "always" : Option.str();
  else
    return false;
  return true;
}

namespace {

/// Visits the rows of one table, with their places, annotations behind all others; what is wrong is an error with file,
/// line and column.
Error readRows(StringRef Path, function_ref<void(YamlFile &, const YamlValue &, StringRef, OperationRow)> Visit,
               function_ref<void(YamlFile &, const YamlValue &, StringRef, StringRef, StringRef)> Annotate) {
  Expected<YamlFile> File = YamlFile::read(Path, "no row in this table");
  if (!File)
    return File.takeError();
  if (File->root().What != YamlValue::Kind::Map)
    File->fail(File->root().Where, "kinds of operations and lists of names are wanted here");
  for (bool Annotations : {false, true})
    for (const auto &[Kind, Names] : File->root().Fields) {
      OperationRow Ignored;
      std::optional<OperationRow> Row = parseKind(Kind.Text);
      bool Annotates = annotate(Kind.Text, Ignored, "");
      if (!Row && !Annotates) {
        if (!Annotations)
          File->fail(Kind.Where, "unknown kind of operation '" + Kind.Text + "'");
        continue;
      }
      if (Annotates != Annotations)
        continue;
      File->each(Names, [&, &Kind = Kind](const YamlValue &Item) {
        OperationRow Operation = Row.value_or(OperationRow());
        StringRef Name;
        if (File->text(Item).empty())
          File->fail(Item.Where, "a name is wanted here");
        else if (!parseName(Item.Text, Name, Operation))
          File->fail(Item.Where, "expected `name` or `name(parameter, parameter=default)`, not '" + Item.Text + "'");
        else if (Annotates)
          Annotate(*File, Item, Kind.Text, Name, Operation.Parameters.empty() ? "" : Operation.Parameters[0].Name);
        else
          Visit(*File, Item, Name, std::move(Operation));
      });
    }
  return File->takeError();
}

/// Adds what an annotation says to its row.
void annotateRow(StringMap<OperationRow> &Rows, YamlFile &File, const YamlValue &At, StringRef Key, StringRef Name,
                 StringRef Option) {
  if (auto It = Rows.find(Name); It != Rows.end())
    annotate(Key, It->second, Option);
  else
    File.fail(At.Where, "'" + Name.str() + "' stands in no row of the table");
}

} // namespace

Expected<OperationTable> OperationTable::load(StringRef RulesDir) {
  OperationTable Table;
  if (Error E = readRows((RulesDir + "/operations.yaml").str(),
                         [&](YamlFile &File, const YamlValue &At, StringRef Name, OperationRow Row) {
                           if (!Table.Rows.try_emplace(Name, std::move(Row)).second)
                             File.fail(At.Where, "'" + Name.str() + "' stands in the table twice");
                         },
                         [&](YamlFile &File, const YamlValue &At, StringRef Key, StringRef Name, StringRef Option) {
                           annotateRow(Table.Rows, File, At, Key, Name, Option);
                         }))
    return E;
  return Table;
}

const OperationRow *OperationTable::module(StringRef Class) const {
  if (!Class.consume_front("torch::nn::"))
    return nullptr;
  Class.consume_back("Impl");
  auto It = Rows.find(Class);
  return It == Rows.end() ? nullptr : &It->second;
}

Error OperationTable::add(StringRef Dir, bool Wins) {
  std::string Path = (Dir + "/operations.yaml").str();
  if (!sys::fs::exists(Path))
    return Error::success();
  StringMap<OperationRow> New;
  if (Error E = readRows(
          Path,
          [&](YamlFile &File, const YamlValue &At, StringRef Name, OperationRow Row) {
            bool InPlace;
            if (Name.contains("::") && find(Name, InPlace))
              File.fail(At.Where, "the tool's own table has '" + Name.str() + "' already");
            else if (!New.try_emplace(Name, std::move(Row)).second || (!Wins && Own.count(Name)))
              File.fail(At.Where, "'" + Name.str() + "' stands in the tables twice");
          },
          [&](YamlFile &File, const YamlValue &At, StringRef Key, StringRef Name, StringRef Option) {
            annotateRow(New, File, At, Key, Name, Option);
          }))
    return E;
  for (const auto &Row : New)
    Own[Row.first()] = Row.second;
  return Error::success();
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
