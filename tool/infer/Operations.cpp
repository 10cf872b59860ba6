//===- Operations.cpp -----------------------------------------------------===//
#include "infer/Operations.h"
#include "rules/Yaml.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

using namespace llvm;

namespace migrate {

static const std::pair<const char *, Operation> Kinds[] = {
    {"row-wise", Operation::RowWise},
    {"linear", Operation::Linear},
    {"sum", Operation::Sum},
    {"mean", Operation::Mean},
    {"along-dim", Operation::AlongDim},
    {"loss", Operation::Loss},
    {"reshape", Operation::Reshape},
    {"index", Operation::Index},
    {"cat", Operation::Cat},
    {"stack", Operation::Stack},
    {"transpose", Operation::Transpose},
    {"permute", Operation::Permute},
    {"unsqueeze", Operation::Unsqueeze},
    {"squeeze", Operation::Squeeze},
    {"flatten", Operation::Flatten},
    {"matmul", Operation::MatMul},
    {"factory", Operation::Factory},
    {"noise", Operation::Noise},
    {"like", Operation::Like},
    {"noise-like", Operation::NoiseLike},
    {"metadata", Operation::Metadata},
    {"extent", Operation::Extent},
    {"item", Operation::Item},
    {"number", Operation::Number},
    {"replicated", Operation::Replicated},
    {"update", Operation::Update},
    {"row-module", Operation::RowModule},
    {"noise-module", Operation::NoiseModule},
    {"coupled-module", Operation::CoupledModule},
    {"sequence-module", Operation::SequenceModule},
    {"loss-module", Operation::LossModule},
};

namespace {

/// Visits the rows of one table, with their places; what is wrong is an error with file, line and column.
Error readRows(StringRef Path, function_ref<void(YamlFile &, const YamlValue &, Operation)> Visit) {
  Expected<YamlFile> File = YamlFile::read(Path, "no row in this table");
  if (!File)
    return File.takeError();
  if (File->root().What != YamlValue::Kind::Map)
    File->fail(File->root().Where, "kinds of operations and lists of names are wanted here");
  for (const auto &[Kind, Names] : File->root().Fields) {
    const auto *It = find_if(Kinds, [&, K = StringRef(Kind.Text)](const auto &Entry) { return K == Entry.first; });
    if (It == std::end(Kinds))
      File->fail(Kind.Where, "unknown kind of operation '" + Kind.Text + "'");
    else
      File->each(Names, [&](const YamlValue &Name) {
        if (File->text(Name).empty())
          File->fail(Name.Where, "a name is wanted here");
        else
          Visit(*File, Name, It->second);
      });
  }
  return File->takeError();
}

} // namespace

Expected<OperationTable> OperationTable::load(StringRef RulesDir) {
  OperationTable Table;
  if (Error E =
          readRows((RulesDir + "/operations.yaml").str(), [&](YamlFile &File, const YamlValue &Name, Operation Kind) {
            if (!Table.Rows.try_emplace(Name.Text, Kind).second)
              File.fail(Name.Where, "'" + Name.Text + "' stands in the table twice");
          }))
    return E;
  return Table;
}

Error OperationTable::add(StringRef Dir, bool Wins) {
  std::string Path = (Dir + "/operations.yaml").str();
  if (!sys::fs::exists(Path))
    return Error::success();
  StringMap<Operation> New;
  if (Error E = readRows(Path, [&](YamlFile &File, const YamlValue &Name, Operation Kind) {
        bool InPlace;
        if (StringRef(Name.Text).contains("::") && find(Name.Text, InPlace))
          File.fail(Name.Where, "the tool's own table has '" + Name.Text + "' already");
        else if (!New.try_emplace(Name.Text, Kind).second || (!Wins && Own.count(Name.Text)))
          File.fail(Name.Where, "'" + Name.Text + "' stands in the tables twice");
      }))
    return E;
  for (const auto &Row : New)
    Own[Row.first()] = Row.second;
  return Error::success();
}

const Operation *OperationTable::find(StringRef Qualified, bool &InPlace) const {
  InPlace = false;
  if (Qualified.ends_with("Impl::forward") && Qualified.starts_with("torch::nn::")) {
    StringRef Class = Qualified.drop_back(strlen("Impl::forward")).rsplit("::").second;
    auto It = Rows.find(Class);
    return It == Rows.end() ? nullptr : &It->second;
  }
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
