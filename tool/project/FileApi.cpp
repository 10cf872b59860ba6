//===- FileApi.cpp --------------------------------------------------------===//
#include "project/FileApi.h"
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

std::map<std::string, std::set<std::string>> targetsOf(StringRef BuildDir) {
  std::map<std::string, std::set<std::string>> Uses;
  std::string Reply = (BuildDir + "/.cmake/api/v1/reply").str(), File = codemodel(Reply);
  std::optional<json::Value> Model = File.empty() ? std::nullopt : readJson(Reply + "/" + File);
  const json::Object *Root = Model ? Model->getAsObject() : nullptr;
  const json::Array *Configurations = Root ? Root->getArray("configurations") : nullptr;
  const json::Object *First =
      Configurations && !Configurations->empty() ? Configurations->front().getAsObject() : nullptr;
  const json::Array *Targets = First ? First->getArray("targets") : nullptr;
  if (!Targets)
    return {};
  std::map<std::string, std::string> Names;               // by id
  std::map<std::string, std::vector<std::string>> Direct; // by name, ids
  for (const json::Value &Value : *Targets) {
    const json::Object *Target = Value.getAsObject();
    if (!Target)
      continue;
    std::string Name = Target->getString("name").value_or("").str();
    Names[Target->getString("id").value_or("").str()] = Name;
    std::optional<json::Value> Details = readJson(Reply + "/" + Target->getString("jsonFile").value_or(""));
    const json::Object *Object = Details ? Details->getAsObject() : nullptr;
    Direct[Name];
    if (const json::Array *Dependencies = Object ? Object->getArray("dependencies") : nullptr)
      for (const json::Value &Dependency : *Dependencies)
        if (const json::Object *D = Dependency.getAsObject())
          Direct[Name].push_back(D->getString("id").value_or("").str());
  }
  for (const auto &[Name, Ids] : Direct) {
    std::vector<std::string> Work = {Name};
    for (size_t I = 0; I != Work.size(); ++I)
      if (Uses[Name].insert(Work[I]).second)
        for (const std::string &Id : Direct[Work[I]])
          Work.push_back(Names[Id]);
  }
  return Uses;
}

} // namespace migrate
