//===- FileApi.cpp --------------------------------------------------------===//
#include "project/FileApi.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <vector>

using namespace llvm;

namespace migrate {

static std::optional<json::Value> readJson(const Twine &Path) {
  auto Buffer = MemoryBuffer::getFile(Path);
  if (!Buffer)
    return std::nullopt;
  Expected<json::Value> Value = json::parse((*Buffer)->getBuffer());
  if (!Value) {
    consumeError(Value.takeError());
    return std::nullopt;
  }
  return std::move(*Value);
}

/// The codemodel's file, named by the newest index.
static std::string codemodel(const std::string &Reply) {
  std::string Index;
  std::error_code EC;
  for (sys::fs::directory_iterator It(Reply, EC), End; !EC && It != End; It.increment(EC))
    if (sys::path::filename(It->path()).starts_with("index-") && It->path() > Index)
      Index = It->path();
  std::optional<json::Value> Json = Index.empty() ? std::nullopt : readJson(Index);
  const json::Object *Root = Json ? Json->getAsObject() : nullptr;
  if (const json::Array *Objects = Root ? Root->getArray("objects") : nullptr)
    for (const json::Value &Value : *Objects)
      if (const json::Object *Object = Value.getAsObject(); Object && Object->getString("kind") == "codemodel")
        return Object->getString("jsonFile").value_or("").str();
  return "";
}

/// Shows what the reply's first configuration has of each target: its entry in the list, and its own file, if that can
/// be read.
static void forEachTarget(StringRef BuildDir, function_ref<void(const json::Object &, const json::Object *)> Show) {
  std::string Reply = (BuildDir + "/.cmake/api/v1/reply").str(), File = codemodel(Reply);
  std::optional<json::Value> Model = File.empty() ? std::nullopt : readJson(Reply + "/" + File);
  const json::Object *Root = Model ? Model->getAsObject() : nullptr;
  const json::Array *Configurations = Root ? Root->getArray("configurations") : nullptr;
  const json::Object *First =
      Configurations && !Configurations->empty() ? Configurations->front().getAsObject() : nullptr;
  const json::Array *Targets = First ? First->getArray("targets") : nullptr;
  if (!Targets)
    return;
  for (const json::Value &Value : *Targets)
    if (const json::Object *Target = Value.getAsObject()) {
      std::optional<json::Value> Details = readJson(Reply + "/" + Target->getString("jsonFile").value_or(""));
      Show(*Target, Details ? Details->getAsObject() : nullptr);
    }
}

std::map<std::string, std::set<std::string>> targetsOf(StringRef BuildDir) {
  std::map<std::string, std::set<std::string>> Uses;
  std::map<std::string, std::string> Names;               // by id
  std::map<std::string, std::vector<std::string>> Direct; // by name, ids
  forEachTarget(BuildDir, [&](const json::Object &Target, const json::Object *Details) {
    std::string Name = Target.getString("name").value_or("").str();
    Names[Target.getString("id").value_or("").str()] = Name;
    Direct[Name];
    if (const json::Array *Dependencies = Details ? Details->getArray("dependencies") : nullptr)
      for (const json::Value &Dependency : *Dependencies)
        if (const json::Object *D = Dependency.getAsObject())
          Direct[Name].push_back(D->getString("id").value_or("").str());
  });
  for (const auto &[Name, Ids] : Direct) {
    std::vector<std::string> Work = {Name};
    for (size_t I = 0; I != Work.size(); ++I)
      if (Uses[Name].insert(Work[I]).second)
        for (const std::string &Id : Direct[Work[I]])
          Work.push_back(Names[Id]);
  }
  return Uses;
}

std::map<std::string, std::string> programsOf(StringRef BuildDir) {
  std::map<std::string, std::string> Programs;
  forEachTarget(BuildDir, [&](const json::Object &Target, const json::Object *Details) {
    if (!Details || Details->getString("type") != StringRef("EXECUTABLE"))
      return;
    const json::Array *Artifacts = Details->getArray("artifacts");
    const json::Object *First = Artifacts && !Artifacts->empty() ? Artifacts->front().getAsObject() : nullptr;
    SmallString<256> Path(First ? First->getString("path").value_or("") : "");
    if (Path.empty())
      return;
    sys::fs::make_absolute(BuildDir, Path);
    Programs[Target.getString("name").value_or("").str()] = Path.str();
  });
  return Programs;
}

} // namespace migrate
