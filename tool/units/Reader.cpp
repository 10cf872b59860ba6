//===- Reader.cpp ---------------------------------------------------------===//
#include "units/Reader.h"
#include "infer/Program.h"
#include "units/Prefilter.h"
#include "units/Workers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace migrate {

// A lowered unit takes some hundred kilobytes, a list of system headers some hundred more.
static constexpr uint64_t UnitsBound = 256u << 20, ListsBound = 64u << 20;

Reader::Reader(const Project &P, const RuleSet &Rules, ReaderOptions Options, StatusLine &Status)
    : P(P), Rules(Rules), O(std::move(Options)), Status(Status), Memory(P.Units.size()), Skip(P.Units.size()) {
  if (O.Cache) {
    Units = Cache(cacheFolder("units"));
    Lists = Cache(cacheFolder("lists"));
  }
  if (O.Prefilter) {
    Prefiltered Words = prefilter(P);
    Skip = std::move(Words.Skip);
    for (size_t I : Words.Programs) {
      const UnitCommand &Main = P.Units[I];
      SkippedProgram &Skipped = SkippedPrograms.emplace_back();
      Skipped.Name = programName(Main.Source, Main.Target);
      for (size_t J = 0; J != P.Units.size(); ++J)
        if (J == I || (!Main.Target.empty() && P.Units[J].Target == Main.Target && !is_contained(Words.Programs, J)))
          Skipped.Units.push_back(P.Units[J].Source);
    }
    append_range(From.Own, Words.Read);
  }
  Counts.Skipped = count(Skip, true);
}

/// All that is known of a unit's meaning before it is read.
std::string Reader::keyOf(const UnitCommand &Command, const Overlay &Edited) const {
  std::vector<StringRef> Parts = {O.Identity,
                                  Command.Source,
                                  Command.Target,
                                  Command.Command.Directory,
                                  P.SourceRoot,
                                  P.BuildDir,
                                  O.Parsing.ResourceDir,
                                  O.Parsing.RuntimeInclude,
                                  O.Parsing.Precompile ? "pch" : "",
                                  O.Parsing.SkipBodies ? "skip" : ""};
  append_range(Parts, Command.Command.CommandLine);
  std::unique_ptr<MemoryBuffer> Disk;
  if (auto It = Edited.find(Command.Source); It != Edited.end()) {
    Parts.push_back(It->second);
  } else if (auto Buffer = MemoryBuffer::getFile(Command.Source, /*IsText=*/false, /*RequiresNullTerminator=*/false)) {
    Disk = std::move(*Buffer);
    Parts.push_back(Disk->getBuffer());
  }
  // The same unit behind edited headers has an entry of its own.
  Parts.push_back(Edited.empty() ? "" : "edited");
  return cacheKey(Parts);
}

bool Reader::listHolds(const Cache &Lists, StringRef Name, DependencyCheck &Check) {
  std::unique_ptr<MemoryBuffer> Bytes = Lists.find(Name);
  if (!Bytes)
    return false;
  std::optional<std::vector<Dependency>> List = deserialiseDependencies(Bytes->getBuffer());
  return List && Check.hold(*List);
}

std::optional<ReadUnit> Reader::reuse(size_t I, const std::string &Key, DependencyCheck &Check) {
  // Read in this run already, and not touched by the edits.
  if (!Memory[I].empty())
    if (std::optional<ReadUnit> U = deserialise(Memory[I]); U && Check.hold(U->Own))
      return U;
  std::unique_ptr<MemoryBuffer> Bytes = Units.find(Key);
  if (!Bytes)
    return std::nullopt;
  std::optional<ReadUnit> U = deserialise(Bytes->getBuffer());
  if (!U || !Check.hold(U->Own))
    return std::nullopt;
  auto [It, New] = ListHolds.try_emplace(U->SystemList, false);
  if (New)
    It->second = listHolds(Lists, U->SystemList, Check);
  if (!It->second)
    return std::nullopt;
  Memory[I] = Bytes->getBuffer().str();
  return U;
}

void Reader::keep(size_t I, const std::string &Key, ReadUnit U) {
  std::string List = serialise(U.System);
  U.SystemList = cacheKey({List});
  U.System.clear();
  std::string Bytes = serialise(U);
  if (O.Cache) {
    // The list first: a unit without its list would never be found to hold.
    if (std::unique_ptr<MemoryBuffer> Kept = Lists.find(U.SystemList); !Kept || Kept->getBuffer() != List)
      Lists.store(U.SystemList, List);
    Units.store(Key, Bytes);
  }
  ListHolds[U.SystemList] = true;
  noteSources(U);
  Memory[I] = std::move(Bytes);
}

void Reader::noteSources(const ReadUnit &U) {
  // Edited programs include the runtime's headers, too. Edited texts aren't what the run depends on: their originals
  // are known.
  copy_if(U.Own, std::back_inserter(From.Own), [&](const Dependency &D) { return !EditedTexts.count(D.Path); });
  From.System.insert(U.SystemList);
}

/// Parses the units of `Jobs`, each in its own process; those that fail stay without a value.
void Reader::parse(const std::vector<size_t> &Jobs, const std::vector<std::string> &Keys, const Overlay &Edited,
                   const ParseOptions &Parsing, const WorkerOptions &Workers,
                   std::vector<std::optional<ir::Unit>> &Read) {
  size_t Done = 0;
  auto Show = [&](size_t I) {
    Status.show(Done, Jobs.size(), (EditedTexts.empty() ? "reading " : "checking ") + P.display(P.Units[I].Source));
  };
  runJobs(
      Jobs.size(), Workers, [&](size_t J) { return serialise(parseUnit(P, P.Units[Jobs[J]], Rules, Parsing, Edited)); },
      [&](size_t J) { Show(Jobs[J]); },
      [&](size_t J, Outcome Result) {
        size_t I = Jobs[J];
        ++Done;
        Show(I);
        ++Counts.Parsed;
        std::optional<ReadUnit> U;
        if (Result.Failure.empty())
          U = deserialise(Result.Bytes);
        if (!U) {
          Failures[I] = Result.Failure.empty() ? "gave a damaged answer" : Result.Failure;
          return;
        }
        Read[I] = U->Unit;
        keep(I, Keys[I], std::move(*U));
      });
}

std::vector<ir::Unit> Reader::read(const Overlay &Edited) {
  DependencyCheck Check(Edited);
  EditedTexts.clear();
  for (const auto &[Path, Text] : Edited)
    EditedTexts.insert(Path);
  std::vector<std::optional<ir::Unit>> Read(P.Units.size());
  std::vector<size_t> Jobs;
  std::vector<std::string> Keys(P.Units.size());
  for (size_t I = 0; I != P.Units.size(); ++I) {
    if (Skip[I])
      continue;
    Keys[I] = keyOf(P.Units[I], Edited);
    if (std::optional<ReadUnit> Known = reuse(I, Keys[I], Check)) {
      ++Counts.Cached;
      noteSources(*Known);
      Read[I] = std::move(Known->Unit);
    } else {
      Jobs.push_back(I);
    }
  }

  WorkerOptions Workers;
  // A LibTorch unit takes about 250 MB behind the precompiled header, 900 without.
  Workers.Jobs = O.Jobs ? O.Jobs : jobsFor(O.Parsing.Precompile ? 400u << 20 : 1u << 30);
  Workers.Isolate = O.Isolate;
  parse(Jobs, Keys, Edited, O.Parsing, Workers, Read);
  // A damaged precompiled header can bring Clang down: what crashed behind one is read once more without.
  std::vector<size_t> Crashed;
  for (size_t I : Jobs)
    if (!Read[I])
      Crashed.push_back(I);
  if (O.Parsing.Precompile && !Crashed.empty()) {
    ParseOptions Plain = O.Parsing;
    Plain.DistrustPrefix = true;
    parse(Crashed, Keys, Edited, Plain, Workers, Read);
  }
  for (size_t I : Crashed)
    if (!Read[I]) {
      From.Known = false;
      ir::Unit &Failed = Read[I].emplace();
      Failed.Source = P.Units[I].Source;
      Failed.Target = P.Units[I].Target;
      Failed.HasMain = hasMain(P.Units[I].Source); // it's still some program's
      Failed.Errors.push_back({P.Units[I].Source, "reading this unit " + Failures[I], 0, 0, true});
    }
  Status.clear();
  if (Units.stored())
    Units.prune(UnitsBound);
  if (Lists.stored())
    Lists.prune(ListsBound);

  std::vector<ir::Unit> Result;
  for (std::optional<ir::Unit> &U : Read)
    if (U)
      Result.push_back(std::move(*U));
  return Result;
}

} // namespace migrate
