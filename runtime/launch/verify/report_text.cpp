#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "related_rules.h"
#include "report.h"

namespace accelerate::launch {

namespace {

std::string FirstDifference(const Difference& first) {
  std::string text = fmt::format("  first: {}: {}", first.check, first.where);
  if (!first.tensor.empty()) text += ", " + first.tensor;
  if (first.rank) text += fmt::format(", rank {}", *first.rank);
  text += "\n    " + first.what + "\n";
  if (first.tolerance > 0) {
    text += fmt::format("    relative difference {:.1e}, tolerance {:.1e}\n", first.difference, first.tolerance);
  }
  text += fmt::format("    {}: {}\n", first.explanation.kind, first.explanation.text);
  std::vector<std::string> rules;
  for (const auto& [code, name] : RelatedRules(first.explanation.kind)) rules.push_back(code + " " + name);
  if (rules.empty()) return text;
  return text + fmt::format("    rules: {} (accelerate-migrate --explain CODE)\n", fmt::join(rules, ", "));
}

}  // namespace

std::string RunTitle(const RunReport& run) {
  if (run.ranks == 0) return "alone";
  return fmt::format("{} rank{}", run.ranks, run.ranks == 1 ? "" : "s");
}

std::string OutcomeName(Outcome outcome) {
  if (outcome == Outcome::kUnknown) return "unknown";
  return outcome == Outcome::kSame ? "same" : "differs";
}

std::string TextReport(const Report& report) {
  std::string text = fmt::format("{:<12} {} backward passes", "original", report.original_losses.size());
  if (!report.original_losses.empty()) {
    text += fmt::format(", loss {:.6g} to {:.6g}", report.original_losses.front(), report.original_losses.back());
  }
  text += fmt::format(", {:.1f} s\n", report.original_seconds);
  for (const RunReport& run : report.runs) {
    text += fmt::format("{:<12} {}, {:.1f} s\n", RunTitle(run), run.same() ? "same" : "DIFFERS", run.seconds);
    for (const Check& check : run.checks) {
      text += fmt::format("  {:<12} {:<8} {}\n", check.name,
                          check.outcome == Outcome::kDiffers ? "DIFFERS" : OutcomeName(check.outcome), check.detail);
    }
    if (run.first) text += FirstDifference(*run.first);
  }
  return text + (report.same() ? "the same training\n" : "not the same training\n");
}

}  // namespace accelerate::launch
