// Every kind of difference that the documentation has is told of a run that differs in just that.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "verify/related_rules.h"
#include "verify/report.h"
#include "verify_recordings.h"

namespace accelerate::launch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSteps = 5;

/// A buffer, which each step changes, and what is saved at the end.
Recording Record(int rank, int world) {
  Recording recording = Train(rank, world, kSteps);
  recording.tensors.push_back({"buffer", "mean", "Float", {8}});
  for (std::size_t i = 0; i < recording.events.size(); ++i) {
    if (!recording.events[i].is_step && i > 0) continue;
    recording.events[i].values[2] = {std::to_string(i), 2, {1, 1, 1, 1, -1, -1, -1, static_cast<double>(i)}};
  }
  const auto save = [&](const char* key, std::optional<std::size_t> position, const char* dtype) {
    SavedTensor saved;
    saved.key = key;
    saved.archive = "model.pt";
    saved.position = position;
    saved.dtype = dtype;
    saved.shape = {8};
    saved.print = {"saved", 3, {1, 2, 3, 4, 5, 6, 7, 8}};
    saved.steps = kSteps;
    recording.saved.push_back(saved);
  };
  save("weight", 0, "Float");
  save("mean", 2, "Float");
  save("scores", std::nullopt, "Float");
  save("counts", std::nullopt, "Long");
  return recording;
}

/// The original's run and the migrated program's.
struct Runs {
  explicit Runs(int ranks) {
    std::string pattern = testing::TempDir() + "/verify_kinds_XXXXXX";
    root = mkdtemp(pattern.data());
    for (RunResult* run : {&original, &migrated}) {
      run->folder = root + (run == &original ? "/original" : "/migrated");
      fs::create_directory(run->folder);
      Write(*run, "log.txt", "loss 0.5\n");
      run->out = "epoch 1: loss 0.500000\n";
    }
    original.recordings = {Record(0, 1)};
    migrated.ranks = ranks;
    for (int rank = 0; rank < std::max(1, ranks); ++rank)
      migrated.recordings.push_back(Record(rank, std::max(1, ranks)));
  }
  ~Runs() { fs::remove_all(root); }
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  static void Write(const RunResult& run, const std::string& name, const std::string& text) {
    std::ofstream(run.folder + "/" + name) << text;
  }
  /// Changes an event of all ranks.
  void ForAll(std::size_t event, const std::function<void(RecordedEvent&)>& change) {
    for (Recording& rank : migrated.recordings) change(rank.events[event]);
  }
  RunReport Compare() const { return CompareRuns(original, migrated, CompareSettings()); }

  std::string root;
  RunResult original;
  RunResult migrated;
};

// Events: backward passes have even numbers, steps odd ones.
constexpr std::size_t kBackward = 4;
constexpr std::size_t kStep = 5;

struct Case {
  int ranks;  // 0: alone
  std::function<void(Runs&)> change;
  std::string check;  // that finds it
  bool says_rank = false;
};

void ScaleGradients(Runs& runs, double factor) {
  for (const std::size_t event : {kBackward, kStep}) {
    runs.ForAll(event, [&](RecordedEvent& e) { e.gradients = Times(e.gradients, factor); });
  }
}

// Every rank's loss is the original's, of the whole batch; `change` does the rest to its backward passes.
void TakeWholeLosses(Runs& runs, const std::function<void(RecordedEvent&)>& change) {
  for (Recording& rank : runs.migrated.recordings) {
    for (std::size_t i = 0; i < rank.events.size(); i += 2) {
      rank.events[i].loss = runs.original.recordings[0].events[i].loss;
      change(rank.events[i]);
    }
  }
}

void PrintTotals(Runs& runs, const char* original, const char* migrated) {
  runs.original.out = std::string("total ") + original + "\n";
  runs.migrated.out = std::string("total ") + migrated + "\n";
}

const std::map<std::string, Case>& Cases() {
  static const std::map<std::string, Case> cases = {
      {"initial-values",
       {0, [](Runs& runs) { runs.ForAll(0, [](RecordedEvent& e) { e.values = Times(e.values, 2); }); }, "parameters"}},
      {"ranks-start-apart",
       {2, [](Runs& runs) { runs.migrated.recordings[1].events[0].values[1].hash = "other"; }, "agreement", true}},
      {"ranks-drift",
       {2, [](Runs& runs) { runs.migrated.recordings[1].events[kStep].values[0].hash = "other"; }, "agreement", true}},
      {"not-reduced",
       {2, [](Runs& runs) { runs.migrated.recordings[1].events[kStep].gradients[0].hash = "other"; }, "agreement",
        true}},
      {"plain-backward",
       {2,
        [](Runs& runs) {
          TakeWholeLosses(runs, [](RecordedEvent& e) { e.weight.reset(); });
          runs.migrated.recordings[1].events[1].gradients = Times(Gradient(1), 3);
        },
        "agreement", true}},
      {"buffers-not-synchronised",
       {2, [](Runs& runs) { runs.migrated.recordings[1].events[kStep].values[2].hash = "other"; }, "agreement", true}},
      {"not-sharded",
       {2,
        [](Runs& runs) {
          TakeWholeLosses(runs, [](RecordedEvent& e) {
            e.weight = 0.5;
            e.rows.reset();
            e.global_rows.reset();
          });
        },
        "rows"}},
      {"rows", {2, [](Runs& runs) { runs.migrated.recordings[1].events[kBackward].rows = 1; }, "rows"}},
      {"times-ranks", {3, [](Runs& runs) { ScaleGradients(runs, 3); }, "gradients"}},
      {"divided-by-ranks", {3, [](Runs& runs) { ScaleGradients(runs, 1.0 / 3); }, "gradients"}},
      {"constant-factor", {3, [](Runs& runs) { ScaleGradients(runs, 1.5); }, "gradients"}},
      {"penalty",
       {2,
        [](Runs& runs) {
          const Prints values = Gradient(-3);  // before the first step
          runs.ForAll(1, [&](RecordedEvent& e) {
            for (auto& [position, print] : e.gradients) {
              for (std::size_t i = 0; i < print.sketch.size(); ++i) {
                print.sketch[i] += 0.1 * values.at(position).sketch[i];
              }
              print.hash = "other";
            }
          });
        },
        "gradients"}},
      {"gradient-only",
       {2,
        [](Runs& runs) {
          runs.ForAll(kStep, [](RecordedEvent& e) {
            e.gradients[0].sketch[0] += 2;
            e.gradients[0].hash = "other";
          });
        },
        "gradients"}},
      {"update",
       {2, [](Runs& runs) { runs.ForAll(kStep, [](RecordedEvent& e) { e.values = Times(e.values, 1.1); }); },
        "parameters"}},
      {"batch-statistics",
       {2,
        [](Runs& runs) {
          // The forward pass writes the buffer.
          for (RunResult* run : {&runs.original, &runs.migrated}) {
            for (Recording& recording : run->recordings) {
              recording.events[kBackward].values[2] = {"of the batch", 2, {1, 1, 1, 1, -1, -1, -1, -1}};
            }
          }
          runs.migrated.recordings[0].events[kBackward].loss *= 1.1;
        },
        "losses"}},
      {"other-rows-or-draws",
       {2, [](Runs& runs) { runs.migrated.recordings[0].events[kBackward].loss *= 1.1; }, "losses"}},
      {"rounding-grows",
       {2,
        [](Runs& runs) {
          double difference = 1e-6;
          for (std::size_t i = 0; i < 2 * kSteps; i += 2, difference *= 5) {
            runs.migrated.recordings[0].events[i].loss += difference;
          }
        },
        "losses"}},
      {"sequence",
       {2,
        [](Runs& runs) {
          for (Recording& rank : runs.migrated.recordings) rank.events.resize(2 * kSteps - 2);
        },
        "losses", true}},
      {"tensors", {2, [](Runs& runs) { runs.migrated.recordings[1].tensors[0].shape = {4}; }, "parameters", true}},
      {"metric-partial", {2, [](Runs& runs) { PrintTotals(runs, "10.00", "5.50"); }, "output"}},
      {"metric-counted-again", {2, [](Runs& runs) { PrintTotals(runs, "10.00", "20.00"); }, "output"}},
      {"metric", {2, [](Runs& runs) { PrintTotals(runs, "10.00", "9.00"); }, "output"}},
      {"saved",
       {2, [](Runs& runs) { runs.migrated.recordings[0].saved[2].print = {"other", 4, {2, 2, 3, 4, 5, 6, 7, 8}}; },
        "saved"}},
      {"text", {2, [](Runs& runs) { runs.migrated.out = "epoch one: loss 0.500000\n"; }, "output"}},
      {"files", {2, [](Runs& runs) { fs::remove(runs.migrated.folder + "/log.txt"); }, "files"}},
      {"file-by-several",
       {3,
        [](Runs& runs) {
          for (Recording& rank : runs.migrated.recordings) rank.files = {"./log.txt"};
        },
        "files"}},
      {"hang", {2, [](Runs& runs) { runs.migrated.timed_out = true; }, "end"}},
      {"failed",
       {2,
        [](Runs& runs) {
          runs.migrated.exit_code = 1;
          runs.migrated.failed_rank = 1;
          runs.migrated.error_lines = {"[accelerate-cpp] rank 1 exited with code 1"};
        },
        "end", true}},
  };
  return cases;
}

// It is said of the original's own runs, by a function of its own.
constexpr const char* kNotDeterministic = "not-deterministic";

TEST(VerifyKinds, TheCasesAreAllThereAre) {
  std::vector<std::string> kinds = {kNotDeterministic};
  for (const auto& [kind, unused] : Cases()) kinds.push_back(kind);
  std::sort(kinds.begin(), kinds.end());
  EXPECT_EQ(kinds, DifferenceKinds());
}

TEST(VerifyKinds, NothingDiffers) {
  for (const int ranks : {0, 2, 3}) {
    const RunReport report = Runs(ranks).Compare();
    EXPECT_TRUE(report.same()) << ranks << ": " << report.first->check << ": " << report.first->what;
  }
}

TEST(VerifyKinds, EachIsTold) {
  for (const auto& [kind, change] : Cases()) {
    SCOPED_TRACE(kind);
    Runs runs(change.ranks);
    change.change(runs);
    const RunReport report = runs.Compare();
    ASSERT_FALSE(report.same());
    EXPECT_EQ(report.first->explanation.kind, kind) << report.first->what;
    EXPECT_FALSE(report.first->explanation.text.empty());
    EXPECT_EQ(report.first->check, change.check);
    EXPECT_EQ(report.first->rank.has_value(), change.says_rank);
    const auto row = std::find_if(report.checks.begin(), report.checks.end(),
                                  [&](const Check& check) { return check.name == change.check; });
    ASSERT_NE(row, report.checks.end());
    EXPECT_EQ(row->outcome, Outcome::kDiffers);
  }
}

TEST(VerifyKinds, AnOriginalThatDiffersFromItself) {
  Runs runs(0);
  EXPECT_FALSE(FindNondeterminism(runs.original, runs.migrated, CompareSettings()));
  runs.migrated.recordings[0].events[kBackward].loss += 1e-12;
  const auto difference = FindNondeterminism(runs.original, runs.migrated, CompareSettings());
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->explanation.kind, kNotDeterministic);
  EXPECT_EQ(difference->check, "losses");
}

TEST(VerifyKinds, OtherRowsOnMoreRanks) {
  RunReport two = Runs(2).Compare();
  Runs more(3);
  for (Recording& rank : more.migrated.recordings) rank.events[kBackward].global_rows = 5;
  more.migrated.recordings[0].events[kBackward].rows = 5;
  RunReport three = more.Compare();
  ASSERT_TRUE(three.same()) << three.first->what;
  CompareRows(two, three);
  ASSERT_FALSE(three.same());
  EXPECT_EQ(three.first->explanation.kind, "rows");
  EXPECT_EQ(three.first->what, "backward pass 2 has 4 rows on 2 ranks and 5 on 3");
}

TEST(VerifySaved, WantsTheSameBitsAloneAndIntegersEverywhere) {
  for (const auto& [ranks, index, same] :
       {std::tuple(0, 0, false), {2, 0, true}, {2, 1, true}, {2, 2, true}, {2, 3, false}}) {
    Runs runs(ranks);
    SavedTensor& saved = runs.migrated.recordings[0].saved[static_cast<std::size_t>(index)];
    saved.print.hash = "other";
    saved.print.sketch[0] += 1e-6;
    const RunReport report = runs.Compare();
    EXPECT_EQ(report.same(), same) << ranks << " ranks, " << saved.key;
    EXPECT_EQ(same ? "" : report.first->tensor, same ? "" : index == 0 ? "weight [8]" : "counts [8]");
  }
}

TEST(VerifySaved, NumbersStandForThemselvesAndStatesForTheirKind) {
  const auto differs = [](const char* key, std::optional<std::size_t> state_of, std::vector<int64_t> shape, double norm,
                          double difference) {
    Runs runs(2);
    SavedTensor saved;
    saved.key = key;
    saved.archive = "model.pt";
    saved.state_of = state_of;
    saved.dtype = "Double";
    saved.shape = std::move(shape);
    saved.steps = kSteps;
    saved.print = {"saved", norm, {norm, norm, norm, norm, norm, norm, norm, norm}};
    runs.original.recordings[0].saved.push_back(saved);
    saved.print.hash = "other";
    for (double& sum : saved.print.sketch) sum += difference;
    runs.migrated.recordings[0].saved.push_back(saved);
    return !runs.Compare().same();
  };
  // Within float's tolerance of five steps, 9e-5: the double was computed from floats.
  EXPECT_FALSE(differs("best", std::nullopt, {}, 1e-3, 5e-8));
  EXPECT_TRUE(differs("best", std::nullopt, {}, 1e-3, 5e-7));
  EXPECT_FALSE(differs("table", std::nullopt, {8}, 1e-3, 5e-7));  // beside larger ones
  EXPECT_FALSE(differs("exp_avg", 0, {8}, 1e-3, 5e-7));           // sums of larger gradients
  EXPECT_TRUE(differs("exp_avg", 0, {8}, 1e-3, 1e-2));
}

TEST(VerifySaved, AddressesInArchivesOfOptimizersAreNotCompared) {
  for (const bool optimizer : {false, true}) {
    Runs runs(0);
    for (RunResult* run : {&runs.original, &runs.migrated}) {
      Runs::Write(*run, "model.pt", run == &runs.original ? "one address" : "another");
      if (optimizer) run->recordings[0].saved[3].key = "param_groups/size";
    }
    EXPECT_EQ(runs.Compare().same(), optimizer);
  }
}

TEST(VerifySaved, LooksAtTheMainProcessAlone) {
  Runs runs(2);
  runs.migrated.recordings[1].saved.clear();
  EXPECT_TRUE(runs.Compare().same());
}

TEST(VerifySaved, NamesWhatIsMissingOrElsewhere) {
  Runs fewer(2);
  fewer.migrated.recordings[0].saved.pop_back();
  RunReport report = fewer.Compare();
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->tensor, "counts [8]");
  EXPECT_EQ(report.first->what, "3 tensors or numbers are saved on the main process, the original saves 4");

  Runs other(2);
  other.migrated.recordings[0].saved[0].shape = {4};
  report = other.Compare();
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->what, "weight [4] Float is saved where the original saves weight [8] Float");

  Runs early(2);
  SavedTensor& saved = early.migrated.recordings[0].saved[0];
  saved.print = {"other", 2, {8, 7, 6, 5, 4, 3, 2, 1}};
  saved.steps = kSteps - 1;
  report = early.Compare();
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->where, "model.pt (after 5 steps)");
  EXPECT_EQ(report.first->what, "its norm is 2, the original's 3; it is saved after 4 steps, the original's after 5");
}

TEST(VerifyRows, AreInTheDocument) {
  Runs runs(2);
  for (Recording& rank : runs.migrated.recordings) {
    rank.events[2].rows.reset();
    rank.events[2].global_rows.reset();
  }
  Report report;
  report.runs = {runs.Compare()};
  const auto run = nlohmann::json::parse(JsonReport(report))["runs"][0];
  EXPECT_EQ(run["rows"].dump(), "[4,null,4,4,4]");
  EXPECT_EQ(run["rank_rows"].dump(), "[[4,0],null,[4,0],[4,0],[4,0]]");
}

// --- The rules of each kind

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(VerifyRules, AreTheToolsOwn) {
  for (const std::string& kind : DifferenceKinds()) {
    for (const RelatedRule& rule : RelatedRules(kind)) {
      const std::string text = ReadText(std::string(ACCELERATE_SOURCE) + "/rules/" + rule.name + ".yaml");
      EXPECT_EQ(text.rfind("code: " + rule.code + "\n", 0), 0U) << kind << ": " << rule.code << " " << rule.name;
    }
  }
  EXPECT_TRUE(RelatedRules("no kind").empty());
}

TEST(VerifyRules, AreDocumentedWithEachKind) {
  const std::string text = ReadText(std::string(ACCELERATE_SOURCE) + "/runtime/launch/verify/README.md");
  static const std::regex row("\n\\| `([a-z-]+)` \\|[^\n]*\\| (AM[^|]*|none) \\|");
  std::map<std::string, std::string> documented;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator(); ++it) {
    documented[(*it)[1]] = (*it)[2];
  }
  std::map<std::string, std::string> expected;
  for (const std::string& kind : DifferenceKinds()) {
    std::string codes;
    for (const RelatedRule& rule : RelatedRules(kind)) codes += (codes.empty() ? "" : ", ") + rule.code;
    expected[kind] = codes.empty() ? "none" : codes;
  }
  EXPECT_EQ(documented, expected);
}

TEST(VerifyRules, AreInEachReport) {
  Runs runs(2);
  PrintTotals(runs, "10.00", "5.00");
  Report report;
  report.runs = {runs.Compare()};
  EXPECT_NE(TextReport(report).find("    rules: AM0503 metric-reduce, AM0506 metric-after-loop, AM0502 metric-sum "
                                    "(accelerate-migrate --explain CODE)\n"),
            std::string::npos);
  EXPECT_NE(HtmlReport(report).find("<li>AM0503 metric-reduce</li>"), std::string::npos);
  const auto difference = nlohmann::json::parse(JsonReport(report))["runs"][0]["first_difference"];
  EXPECT_EQ(difference["rules"][0], (nlohmann::json{{"code", "AM0503"}, {"name", "metric-reduce"}}));
  runs.migrated.exit_code = 1;  // in no rule's hands
  report.runs = {runs.Compare()};
  EXPECT_EQ(nlohmann::json::parse(JsonReport(report))["runs"][0]["first_difference"]["rules"], nlohmann::json::array());
  EXPECT_EQ(TextReport(report).find("rules:"), std::string::npos);
  EXPECT_EQ(HtmlReport(report).find("Rules of"), std::string::npos);
}

}  // namespace
}  // namespace accelerate::launch
