//===- Reader.h - From compile commands to lowered units ------------------===//
//
//   a unit's words -> nothing to do                        (Prefilter, about a millisecond)
//                  -> as it was read last time             (Cache)
//                  -> parsed and lowered, in its own process (Workers, lower/Parse)
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_UNITS_READER_H
#define ACCELERATE_MIGRATE_UNITS_READER_H

#include "lower/Parse.h"
#include "report/StatusLine.h"
#include "rules/Rule.h"
#include "units/Cache.h"
#include "units/Workers.h"
#include <set>

namespace migrate {

struct ReaderOptions {
  ParseOptions Parsing;
  bool Prefilter = true, Cache = true, Isolate = true;
  unsigned Jobs = 0;    ///< units at once; 0: by cores and memory
  std::string Identity; ///< of the tool and its rules: what another build or other rules read means something else
};

class Reader {
public:
  Reader(const Project &P, const RuleSet &Rules, ReaderOptions O, StatusLine &Status);

  /// All units of the project, those that can't matter left out. The second reading, of edited texts, parses just what
  /// they touch.
  std::vector<ir::Unit> read(const Overlay &Edited = {});

  /// What the units were read from: files, and the names of lists in the cache. Without a value if that isn't known for
  /// all of them.
  struct Sources {
    std::vector<Dependency> Own;
    std::set<std::string> System;
    bool Known = true;
  };
  const Sources &sources() const { return From; }

  /// Programs that were left out, since they have nothing to do.
  struct SkippedProgram {
    std::string Name;
    std::vector<std::string> Units;
  };
  const std::vector<SkippedProgram> &skippedPrograms() const { return SkippedPrograms; }

  struct Statistics {
    size_t Skipped = 0, Cached = 0, Parsed = 0;
  };
  const Statistics &statistics() const { return Counts; }

  /// Whether the files of a list in the cache are as they were.
  static bool listHolds(const Cache &Lists, llvm::StringRef Name, DependencyCheck &Check);

private:
  void parse(const std::vector<size_t> &Jobs, const std::vector<std::string> &Keys, const Overlay &Edited,
             const ParseOptions &Parsing, const WorkerOptions &Workers, std::vector<std::optional<ir::Unit>> &Read);
  std::string keyOf(const UnitCommand &Command, const Overlay &Edited) const;
  std::optional<ReadUnit> reuse(size_t I, const std::string &Key, DependencyCheck &Check);
  void keep(size_t I, const std::string &Key, ReadUnit U);
  void noteSources(const ReadUnit &U);

  const Project &P;
  const RuleSet &Rules;
  ReaderOptions O;
  StatusLine &Status;
  Cache Units, Lists;
  std::vector<std::string> Memory; ///< by unit: the last reading, as bytes
  std::vector<bool> Skip;
  std::vector<SkippedProgram> SkippedPrograms;
  std::set<std::string> EditedTexts;      ///< of the reading under way
  std::map<size_t, std::string> Failures; ///< by unit: how its process ended
  llvm::StringMap<bool> ListHolds;
  Sources From;
  Statistics Counts;
};

} // namespace migrate

#endif
