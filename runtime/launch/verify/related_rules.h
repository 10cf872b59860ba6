#pragma once

#include <string>
#include <vector>

namespace accelerate::launch {

/// A rule of accelerate-migrate, as `rules/NAME.yaml` has it.
struct RelatedRule {
  std::string code;
  std::string name;
};

/// The rules that concern differences of a kind: what they edit, or would have found, is where such a difference comes
/// from. None where that is in no rule's hands.
std::vector<RelatedRule> RelatedRules(const std::string& kind);

/// All kinds of differences that there are.
std::vector<std::string> DifferenceKinds();

}  // namespace accelerate::launch
