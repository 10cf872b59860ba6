//===- Facts.h - What the inference tells the rules -----------------------===//
#ifndef ACCELERATE_MIGRATE_INFER_FACTS_H
#define ACCELERATE_MIGRATE_INFER_FACTS_H

#include "ir/Unit.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace migrate {

/// A step in the chain of places that explains a finding.
struct Evidence {
  ir::Range Where;
  std::string What;
};

/// Something that is true of a place. Rules select places by the fact's name and write with its nodes and texts.
struct Fact {
  std::string Name;
  ir::FuncId Function = ir::None; ///< whose `accelerator` is meant
  std::map<std::string, ir::Range> Nodes;
  std::map<std::string, std::string> Texts;
  std::vector<Evidence> Chain;
};

class Facts {
public:
  void add(Fact F) { All.push_back(std::move(F)); }
  /// Says that an expression has a property, for `where:` of rules with a pattern.
  void label(ir::ExprId E, const std::string &Name) { Labels[E].insert(Name); }
  bool has(ir::ExprId E, const std::string &Name) const {
    auto It = Labels.find(E);
    return It != Labels.end() && It->second.count(Name);
  }
  const std::vector<Fact> &all() const { return All; }

  std::set<ir::FuncId> Reached; ///< functions that `main` runs

private:
  std::vector<Fact> All;
  std::map<ir::ExprId, std::set<std::string>> Labels;
};

} // namespace migrate

#endif
