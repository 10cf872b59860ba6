#include <accelerate/tracking.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "files.h"
#include "outcome.h"
#include "state.h"
#include "trackers.h"

namespace accelerate {

Tracker::~Tracker() = default;

namespace detail {
namespace {

struct Trackers {
  std::vector<std::shared_ptr<Tracker>> list;  // on the main process only
  int64_t next_step = 0;
  bool started = false;
  int64_t first_step = 0;  // of the next run: a checkpoint's that was loaded before it
};

Trackers& trackers() {
  static auto* const instance = new Trackers;
  return *instance;
}

/// What get_tracker() returns where nothing is tracked.
class NoTracker final : public Tracker {
 public:
  std::string name() const override { return "none"; }
  void store_init_configuration(const TrackerConfig&) override {}
  void log(const std::map<std::string, double>&, int64_t) override {}
};

constexpr const char* kNames[] = {"csv", "jsonl", "tensorboard"};

std::vector<std::string> wanted_names() {
  std::string text = state().options.project.log_with;
  if (text.empty()) {
    text = variable("ACCELERATE_LOG_WITH");
  }
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    word.erase(0, word.find_first_not_of(' '));
    word.erase(word.find_last_not_of(' ') + 1);
    if (word == "all") {
      names.assign(std::begin(kNames), std::end(kNames));
      break;
    }
    TORCH_CHECK(std::find(std::begin(kNames), std::end(kNames), word) != std::end(kNames),
                "[accelerate] init_trackers(): there is no tracker `", word,
                "`; there are csv, jsonl, tensorboard, and all");
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      names.push_back(word);
    }
  }
  return names;
}

std::shared_ptr<Tracker> make_tracker(const std::string& name, const std::string& folder) {
  return name == "csv"     ? make_csv_tracker(folder)
         : name == "jsonl" ? make_jsonl_tracker(folder)
                           : make_tensorboard_tracker(folder);
}

std::vector<std::shared_ptr<Tracker>> make_trackers(const std::string& project_name) {
  std::vector<std::shared_ptr<Tracker>> result;
  const std::vector<std::string> names = wanted_names();
  if (names.empty()) {
    return result;
  }
  const ProjectConfiguration& project = state().options.project;
  const std::string& folder = project.logging_dir.empty() ? project.project_dir : project.logging_dir;
  TORCH_CHECK(!folder.empty(), "[accelerate] init_trackers(): the tracker ", names[0],
              " writes files; set ProjectConfiguration::logging_dir or project_dir");
  make_folders(folder + "/" + project_name);
  for (const std::string& name : names) {
    result.push_back(make_tracker(name, folder + "/" + project_name));
  }
  return result;
}

}  // namespace

void init_trackers(const std::string& project_name, const TrackerConfig& config,
                   const std::vector<std::shared_ptr<Tracker>>& own) {
  Trackers& t = trackers();
  together("init_trackers(" + project_name + ")", [&] {
    if (rank() != 0) {
      return;
    }
    TORCH_CHECK(!project_name.empty() && project_name[0] != '/',
                "[accelerate] init_trackers(): the project has no name");
    std::vector<std::shared_ptr<Tracker>> list = make_trackers(project_name);
    list.insert(list.end(), own.begin(), own.end());
    for (const auto& tracker : list) {
      TORCH_CHECK(tracker != nullptr, "[accelerate] init_trackers() was given a null tracker");
      if (!config.empty()) {
        tracker->store_init_configuration(config);
      }
    }
    end_training();
    t.list = std::move(list);
  });
  t.next_step = std::exchange(t.first_step, 0);
  t.started = true;
}

void log(const std::map<std::string, double>& values, int64_t step) {
  Trackers& t = trackers();
  t.next_step = step + 1;
  for (const auto& tracker : t.list) {
    tracker->log(values, step);
  }
}

void set_log_step(int64_t step) {
  Trackers& t = trackers();
  (t.started ? t.next_step : t.first_step) = step;
}

int64_t next_log_step() { return trackers().next_step; }

Tracker& get_tracker(const std::string& name) {
  static NoTracker none;
  if (rank() != 0) {
    return none;
  }
  std::string names;
  for (const auto& tracker : trackers().list) {
    if (tracker->name() == name) {
      return *tracker;
    }
    names += " " + tracker->name();
  }
  TORCH_CHECK(false, "[accelerate] get_tracker(): there is no tracker `", name,
              "`; there are:", names.empty() ? " none, before init_trackers()" : names);
}

void end_training() {
  for (const auto& tracker : trackers().list) {
    tracker->finish();
  }
  trackers().list.clear();
  trackers().started = false;
}

}  // namespace detail
}  // namespace accelerate
