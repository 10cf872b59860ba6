//===- Operations.cpp -----------------------------------------------------===//
#include "infer/Operations.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/YAMLTraits.h"
#include <map>

using namespace llvm;

LLVM_YAML_IS_STRING_MAP(std::vector<std::string>)

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

Expected<OperationTable> OperationTable::load(StringRef RulesDir) {
  std::string Path = (RulesDir + "/operations.yaml").str();
  ErrorOr<std::unique_ptr<MemoryBuffer>> Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return createStringError(Buffer.getError(), "the operation table '" + Path + "' can't be read");
  std::string Message;
  yaml::Input In((*Buffer)->getBuffer(), nullptr,
                 [](const SMDiagnostic &D, void *Ctx) {
                   raw_string_ostream OS(*static_cast<std::string *>(Ctx));
                   OS << D.getLineNo() << ":" << D.getColumnNo() + 1 << ": " << D.getMessage();
                 },
                 &Message);
  std::map<std::string, std::vector<std::string>> Text;
  In >> Text;
  if (In.error())
    return createStringError(In.error(), Path + ":" + Message);
  OperationTable Table;
  for (const auto &[Kind, Names] : Text) {
    const auto *It = find_if(Kinds, [&, K = Kind](const auto &Entry) { return K == Entry.first; });
    if (It == std::end(Kinds))
      return createStringError(inconvertibleErrorCode(), Path + ": unknown kind of operation '" + Kind + "'");
    for (const std::string &Name : Names)
      if (!Table.Rows.try_emplace(Name, It->second).second)
        return createStringError(inconvertibleErrorCode(), Path + ": '" + Name + "' stands in the table twice");
  }
  return Table;
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
