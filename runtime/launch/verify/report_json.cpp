#include <cmath>
#include <nlohmann/json.hpp>

#include "related_rules.h"
#include "report.h"

namespace accelerate::launch {

namespace {

using json = nlohmann::ordered_json;

// JSON has no infinities.
json Number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

json Numbers(const std::vector<double>& numbers) {
  json result = json::array();
  for (const double x : numbers) result.push_back(Number(x));
  return result;
}

// Of each backward pass: null where nobody counts.
json Rows(const RunReport& run) {
  json rows = json::array();
  for (const long long count : run.rows) rows.push_back(count < 0 ? json() : json(count));
  return rows;
}

json RankRows(const RunReport& run) {
  json rows = json::array();
  for (const auto& each : run.rank_rows) rows.push_back(each.empty() ? json() : json(each));
  return rows;
}

json First(const Difference& first) {
  json result = {{"check", first.check}, {"where", first.where}, {"what", first.what}};
  if (first.step) result["step"] = *first.step;
  if (!first.tensor.empty()) result["tensor"] = first.tensor;
  if (first.rank) result["rank"] = *first.rank;
  if (first.tolerance > 0) {
    result["difference"] = Number(first.difference);
    result["tolerance"] = Number(first.tolerance);
  }
  result["kind"] = first.explanation.kind;
  result["explanation"] = first.explanation.text;
  result["rules"] = json::array();
  for (const auto& [code, name] : RelatedRules(first.explanation.kind)) {
    result["rules"].push_back({{"code", code}, {"name", name}});
  }
  return result;
}

json Run(const RunReport& run) {
  json checks = json::array();
  for (const Check& check : run.checks) {
    checks.push_back({{"name", check.name}, {"outcome", OutcomeName(check.outcome)}, {"detail", check.detail}});
  }
  return {{"name", run.name},
          {"ranks", run.ranks},
          {"same", run.same()},
          {"exit_code", run.exit_code},
          {"timed_out", run.timed_out},
          {"seconds", run.seconds},
          {"checks", checks},
          {"first_difference", run.first ? First(*run.first) : json()},
          {"losses", Numbers(run.losses)},
          {"differences", Numbers(run.differences)},
          {"tolerances", Numbers(run.tolerances)},
          {"rows", Rows(run)},
          {"rank_rows", RankRows(run)}};
}

}  // namespace

std::string JsonReport(const Report& report) {
  json runs = json::array();
  for (const RunReport& run : report.runs) runs.push_back(Run(run));
  const json document = {{"schema", 1},
                         {"same", report.same()},
                         {"original", report.original},
                         {"migrated", report.migrated},
                         {"arguments", report.arguments},
                         {"seconds", report.original_seconds},
                         {"losses", Numbers(report.original_losses)},
                         {"runs", runs}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace accelerate::launch
