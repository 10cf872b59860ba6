#include "compare.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "explain.h"
#include "numbers.h"
#include "recordable.h"
#include "saved.h"
#include "text.h"
#include "training.h"

namespace accelerate::launch {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSeeMessages = "the program's own messages above say why";
constexpr const char* kNotRecorded = "nothing was recorded";

std::string Join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n    " + line;
  return text;
}

// Which rank has come how far, for a run that doesn't end.
std::string Progress(const RunResult& run) {
  std::string text;
  for (const Recording& recording : run.recordings) {
    text += fmt::format("{}rank {} has done {} backward passes and {} steps", text.empty() ? "" : ", ", recording.rank,
                        recording.CountBackwards(), recording.CountSteps());
  }
  return text;
}

// The rank that has come least far, if there is one.
std::optional<int> LastRank(const RunResult& run) {
  const auto [least, most] =
      std::minmax_element(run.recordings.begin(), run.recordings.end(),
                          [](const Recording& a, const Recording& b) { return a.events.size() < b.events.size(); });
  if (least == run.recordings.end() || least->events.size() == most->events.size()) return std::nullopt;
  return least->rank;
}

Difference DescribeEnd(const RunResult& run) {
  Difference difference;
  difference.check = "end";
  if (run.timed_out) {
    difference.where = fmt::format("after {:.0f} s", run.seconds);
    difference.what = "it did not end and was stopped: " + Progress(run) + Join(run.error_lines);
    difference.explanation = {
        "hang",
        "a rank waits for what the others don't do: an operation of all ranks in a branch or loop "
        "that not all of them take, or one that stalls (or the time limit, --timeout, is too short)"};
    difference.rank = LastRank(run);
    return difference;
  }
  difference.where = "at its end";
  difference.what =
      fmt::format("exit code {}, the original's is 0: {}{}", run.exit_code, Progress(run), Join(run.error_lines));
  const auto says = [&](const char* text) {
    return std::any_of(run.error_lines.begin(), run.error_lines.end(),
                       [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  if (says("the next operation differs")) {
    difference.rank = LastRank(run);
    difference.explanation = {"hang",
                              "the ranks were about to do different operations, and would have waited for each other: "
                              "one of them is in a branch or loop that not all ranks take"};
  } else if (run.named_by_others || run.crashed) {
    // The others waited for it, and their messages may look like a hang's.
    difference.rank = run.failed_rank;
    difference.explanation = {"failed", kSeeMessages};
  } else if (says("[accelerate] rank") && says("(timeout ")) {
    difference.rank = LastRank(run);
    difference.explanation = {
        "hang",
        "a rank waited for another that stalls, or does something else: an operation of all ranks "
        "in a branch or loop that not all of them take (or --timeout is too short)"};
  } else {
    difference.rank = run.failed_rank;
    difference.explanation = {"failed", kSeeMessages};
  }
  return difference;
}

class Files {
 public:
  Files(const RunResult& original, const RunResult& migrated, const CompareSettings& settings, double tolerance)
      : original_(original), migrated_(migrated), settings_(settings), tolerance_(tolerance) {}

  Check Compare(std::optional<Difference>& first) {
    const std::map<std::string, fs::path> before = List(original_.folder);
    const std::map<std::string, fs::path> after = List(migrated_.folder);
    for (const auto& [name, path] : before) {
      if (after.count(name) == 0) return Differ(first, name, "isn't written");
    }
    for (const auto& [name, path] : after) {
      if (before.count(name) == 0) return Differ(first, name, "isn't one of the original's");
    }
    for (const auto& [name, ranks] : Writers()) {
      if (ranks.size() < 2) continue;
      return Differ(first, name, fmt::format("is written by {} ranks, {} among them", ranks.size(), *ranks.rbegin()),
                    {"file-by-several",
                     "ranks write into one file, over each other: accelerator.save(), is_main_process() or "
                     "main_process_file() let one do it"});
    }
    std::size_t same_bytes = 0;
    for (const auto& [name, path] : before) {
      const std::string a = ReadFile(path);
      const std::string b = ReadFile(after.at(name));
      const std::string reason = a == b || HasAddresses(path) ? "" : CompareContents(a, b, IsSaved(path));
      same_bytes += a == b ? 1 : 0;
      if (!reason.empty()) return Differ(first, name, reason);
    }
    if (before.empty()) return {"files", Outcome::kSame, "none is written"};
    return {"files", Outcome::kSame, fmt::format("{}, {} of them byte for byte", before.size(), same_bytes)};
  }

 private:
  bool IsIgnored(const std::string& name) const {
    return std::any_of(settings_.ignored.begin(), settings_.ignored.end(),
                       [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
  }

  std::map<std::string, fs::path> List(const std::string& folder) const {
    std::map<std::string, fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().lexically_relative(folder).string();
      if (entry.is_regular_file() && !entry.is_symlink() && !IsIgnored(name)) files[name] = entry.path();
    }
    return files;
  }

  std::map<std::string, std::set<int>> Writers() const {
    std::map<std::string, std::set<int>> writers;
    for (const Recording& recording : migrated_.recordings) {
      for (const std::string& file : recording.files) {
        const std::string name = fs::path(file).lexically_normal().string();
        if (!IsIgnored(name)) writers[name].insert(recording.rank);
      }
    }
    return writers;
  }

  // What is in them has been compared as it was saved.
  bool HasAddresses(const fs::path& path) const {
    const std::string archive = path.filename().string();
    return SavesOptimizer(original_.recordings.front(), archive) &&
           SavesOptimizer(migrated_.recordings.front(), archive);
  }

  // What this run has saved there has been compared tensor by tensor.
  bool IsSaved(const fs::path& path) const {
    const std::vector<SavedTensor>& saved = migrated_.recordings.front().saved;
    return std::any_of(saved.begin(), saved.end(),
                       [&](const SavedTensor& tensor) { return tensor.archive == path.filename(); });
  }

  // On ranks the last bits of numbers may differ: those of a text and of arrays can be compared, of other files the
  // sizes.
  std::string CompareContents(const std::string& a, const std::string& b, bool saved) const {
    if (IsText(a) && IsText(b)) {
      double largest = 0;
      const auto difference = CompareText(Mask(a, settings_.masks), Mask(b, settings_.masks),
                                          migrated_.ranks > 1 ? tolerance_ : 0, largest);
      return difference ? fmt::format("line {}: {}", difference->line, difference->reason) : "";
    }
    if (migrated_.ranks <= 1) return "has other bytes";
    if (a.size() != b.size()) return fmt::format("has {} bytes, the original's {}", b.size(), a.size());
    // Other orders of sums may change a few numbers by more than a loss: a thousandth is no mistake yet.
    const std::optional<double> distance = saved ? std::nullopt : NumberDistance(a, b);
    if (!distance || *distance <= std::max(tolerance_, 1e-3)) return "";
    return fmt::format("has other numbers (relative difference {:.1e})", *distance);
  }

  Check Differ(std::optional<Difference>& first, const std::string& name, const std::string& what,
               const Explanation& explanation = {"files",
                                                 "one set of outputs is expected, as the original writes it"}) {
    if (!first) first = Difference{"files", name, {}, "", {}, "the file " + what, 0, 0, explanation};
    return {"files", Outcome::kDiffers, name + " " + what};
  }

  const RunResult& original_;
  const RunResult& migrated_;
  const CompareSettings& settings_;
  const double tolerance_;
};

Check CompareOutput(const RunResult& original, const RunResult& migrated, const CompareSettings& settings,
                    double tolerance, std::optional<Difference>& first) {
  const std::string a = Mask(original.out, settings.masks);
  const std::string b = Mask(migrated.out, settings.masks);
  if (a == b) return {"output", Outcome::kSame, "the same bytes"};
  double largest = 0;
  const bool exact = migrated.ranks <= 1;
  auto difference = CompareText(a, b, exact ? 0 : tolerance, largest);
  if (!difference && !exact) {
    return {"output", Outcome::kSame, fmt::format("the same text, numbers within {:.1e}", largest)};
  }
  if (!difference) difference = TextDifference{0, "", "", "the same text and numbers, other bytes", 0};
  if (!first) {
    Difference found;
    found.check = "output";
    found.where = fmt::format("line {} of standard output", difference->line);
    found.what = fmt::format("{}\n    original: {}\n    migrated: {}", difference->reason, difference->original,
                             difference->migrated);
    found.explanation = difference->ratio != 0
                            ? ExplainNumber(difference->ratio, migrated.ranks)
                            : Explanation{"text",
                                          "something is printed elsewhere or not at all; --mask hides what "
                                          "differs from run to run, such as times"};
    first = found;
  }
  return {"output", Outcome::kDiffers, fmt::format("line {}: {}", difference->line, difference->reason)};
}

}  // namespace

bool CannotBeRecorded(const RunResult& run) {
  return run.exit_code == 127 && std::any_of(run.error_lines.begin(), run.error_lines.end(), [](const auto& line) {
           return line.find("libaccelerate_recorder") != std::string::npos;
         });
}

double Tolerance::At(const std::string& dtype, std::size_t steps) const {
  static const std::map<std::string, int> kBits = {{"Double", 53}, {"Float", 24}, {"Half", 11}, {"BFloat16", 8}};
  const auto bits = kBits.find(dtype);
  const double unit = std::ldexp(1.0, -(bits == kBits.end() ? 24 : bits->second));
  const double most = std::max(kMost, first);
  return std::min(most, (first > 0 ? first : std::min(kMost, 256 * unit)) * static_cast<double>(1 + steps));
}

RunReport CompareRuns(const RunResult& original, const RunResult& migrated, const CompareSettings& settings) {
  RunReport report;
  report.name = migrated.name;
  report.ranks = migrated.ranks;
  report.exit_code = migrated.exit_code;
  report.timed_out = migrated.timed_out;
  report.seconds = migrated.seconds;
  const Recording& reference = original.recordings.front();
  const std::string dtype = reference.events.empty() ? "Float" : reference.events.front().dtype;
  const double last_tolerance = settings.tolerance.At(dtype, reference.CountSteps());

  const auto ranks = static_cast<std::size_t>(std::max(1, migrated.ranks));
  if (CannotBeRecorded(migrated) || (migrated.ok() && migrated.recordings.size() != ranks)) {
    Difference difference;
    difference.check = "end";
    difference.where = "at its start";
    difference.what = kNotRecorded;
    difference.explanation = {"failed", "the program " + WhyNotRecorded(migrated.program)};
    report.first = difference;
    report.checks.push_back({"end", Outcome::kUnknown, kNotRecorded});
    return report;
  }
  if (!migrated.ok()) {
    const Difference end = DescribeEnd(migrated);
    report.checks.push_back({"end", Outcome::kDiffers,
                             migrated.timed_out ? fmt::format("stopped after {:.0f} s", migrated.seconds)
                                                : fmt::format("exit code {}", migrated.exit_code)});
    const bool trained = std::none_of(migrated.recordings.begin(), migrated.recordings.end(),
                                      [](const Recording& recording) { return recording.events.empty(); });
    if (trained && migrated.recordings.size() == ranks) {
      CompareTraining(reference, migrated.recordings, settings.tolerance, report);
    }
    // What went wrong in the numbers before may be why.
    if (!report.first) report.first = end;
    return report;
  }
  const TrainingScale scale = CompareTraining(reference, migrated.recordings, settings.tolerance, report);
  // Before the files, as this knows more of an archive.
  report.checks.push_back(
      CompareSaved(reference, migrated.recordings.front(), migrated.ranks, scale, settings.tolerance, report.first));
  report.checks.push_back(CompareOutput(original, migrated, settings, last_tolerance, report.first));
  report.checks.push_back(Files(original, migrated, settings, last_tolerance).Compare(report.first));
  return report;
}

void CompareRows(const RunReport& first, RunReport& later) {
  for (std::size_t i = 0; i < std::min(first.rows.size(), later.rows.size()); ++i) {
    if (first.rows[i] == later.rows[i] || first.rows[i] < 0 || later.rows[i] < 0) continue;
    const std::string what = fmt::format("backward pass {} has {} rows on {} ranks and {} on {}", i, first.rows[i],
                                         first.ranks, later.rows[i], later.ranks);
    for (Check& check : later.checks) {
      if (check.name == "rows") check = {"rows", Outcome::kDiffers, what};
    }
    if (later.first) return;
    Difference difference;
    difference.check = "rows";
    difference.where = fmt::format("backward pass {}", i);
    difference.what = what;
    difference.explanation = {"rows", "the global batch has to be the same on any number of ranks"};
    later.first = difference;
    return;
  }
}

std::optional<Difference> FindNondeterminism(const RunResult& one, const RunResult& other,
                                             const CompareSettings& settings) {
  std::optional<Difference> difference = CompareRuns(one, other, settings).first;
  if (difference) {
    difference->explanation = {
        "not-deterministic",
        "the original differs from itself when it is run again, so that nothing can be compared: "
        "seed its generators (torch::manual_seed), take clocks and directory order out, or hide "
        "what differs with --mask and --ignore"};
  }
  return difference;
}

}  // namespace accelerate::launch
