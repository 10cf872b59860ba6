//===- Related.cpp --------------------------------------------------------===//
#include "train/Related.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <set>

using namespace llvm;

namespace migrate {

/// The first run's difference, which is why there is one to look at.
static const json::Object *firstDifference(const json::Value &Document) {
  const json::Object *Root = Document.getAsObject();
  const json::Array *Runs = Root ? Root->getArray("runs") : nullptr;
  if (Runs)
    for (const json::Value &Run : *Runs)
      if (const json::Object *Object = Run.getAsObject())
        if (const json::Object *Difference = Object->getObject("first_difference"))
          return Difference;
  return nullptr;
}

/// Files that other programs are made of, and this one isn't.
static bool isOthers(const Result &Final, const ProgramResult &Program, const std::string &Path) {
  return !is_contained(Program.Units, Path) &&
         any_of(Final.Programs, [&](const ProgramResult &Other) { return is_contained(Other.Units, Path); });
}

void sayRelatedPlaces(StringRef Document, const Result &Final, const ProgramResult &Program, const Project &Tree,
                      raw_ostream &Said) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> Text = MemoryBuffer::getFile(Document);
  if (!Text)
    return;
  Expected<json::Value> Parsed = json::parse((*Text)->getBuffer());
  if (!Parsed)
    return consumeError(Parsed.takeError());
  const json::Object *Difference = firstDifference(*Parsed);
  const json::Array *Rules = Difference ? Difference->getArray("rules") : nullptr;
  if (!Rules || Rules->empty())
    return;
  std::vector<std::string> Codes;
  for (const json::Value &Rule : *Rules)
    if (const json::Object *Object = Rule.getAsObject())
      Codes.push_back(Object->getString("code").value_or("").str());

  // By place, as who looks for a mistake reads; a rule may have several edits on one line.
  std::set<std::pair<std::pair<std::string, uint32_t>, std::string>> Places;
  for (const Edit &E : Final.Edits)
    if (is_contained(Codes, E.Code) && !isOthers(Final, Program, E.Path))
      Places.insert({{E.Path, E.Line}, ": edited [" + E.Code + " " + E.Name + "]"});
  for (const Finding &F : Final.Findings)
    if (F.Line && !F.Silent && is_contained(Codes, F.Code) && !isOthers(Final, Program, F.Path))
      Places.insert({{F.Path, F.Line}, ": " + F.Message + " [" + F.Code + " " + F.Name + "]"});
  const std::string Kind = Difference->getString("kind").value_or("").str();
  if (Places.empty()) {
    Said << "accelerate-migrate: no rule that concerns `" << Kind << "` has edited " << Program.Name
         << ", or found something in it\n";
    return;
  }
  Said << "accelerate-migrate: what rules that concern `" << Kind << "` have edited in " << Program.Name
       << ", or found in it:\n";
  for (const auto &[Place, What] : Places)
    Said << "  " << Tree.display(Place.first) << ":" << Place.second << What << "\n";
}

} // namespace migrate
