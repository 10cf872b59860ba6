#include "recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace accelerate::launch {

namespace {

using nlohmann::json;

constexpr int kVersion = 1;

double Number(const json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// Puts lines together; tensors' numbers become positions in the order in which they were first used.
class Reader {
 public:
  void Take(const json& line) {
    const std::string event = line.at("event");
    if (event == "start") {
      if (line.at("version") != kVersion) throw std::runtime_error("it was written by another version of the recorder");
      result_.rank = line.at("rank");
      result_.world = line.at("world");
    } else if (event == "tensor") {
      positions_[line.at("id")] = result_.tensors.size();
      result_.tensors.push_back({line.at("kind"), line.at("name"), line.at("dtype"), line.at("shape")});
    } else if (event == "name") {
      result_.tensors.at(positions_.at(line.at("id"))).name = line.at("name");
    } else if (event == "values") {
      TakePrints(line.at("values"), pending_, nullptr);
    } else if (event == "backward") {
      TakeBackward(line);
    } else if (event == "step") {
      RecordedEvent step;
      step.is_step = true;
      step.optimizer = line.at("kind");
      TakePrints(line.at("gradients"), step.gradients, &gradients_);
      result_.events.push_back(std::move(step));
      steps_.push_back(result_.events.size() - 1);
    } else if (event == "stepped") {
      if (steps_.empty()) throw std::runtime_error("an end without a step");
      TakePrints(line.at("values"), result_.events[steps_.back()].values, nullptr);
      steps_.pop_back();
    } else if (event == "saved") {
      TakeSaved(line);
    } else if (event == "archive") {
      EndArchive(line.at("name"));
    } else if (event == "file") {
      result_.files.push_back(line.at("path"));
    }
  }

  Recording Finish() { return std::move(result_); }
  void CutOff() { result_.cut_off = true; }

 private:
  void TakeBackward(const json& line) {
    RecordedEvent backward;
    backward.loss = Number(line.at("loss"));
    backward.dtype = line.at("dtype");
    if (line.contains("weight")) backward.weight = Number(line["weight"]);
    if (line.contains("rows")) backward.rows = line["rows"].get<int64_t>();
    if (line.contains("global_rows")) backward.global_rows = line["global_rows"].get<int64_t>();
    TakePrints(line.at("gradients"), backward.gradients, &gradients_);
    backward.values = std::exchange(pending_, {});
    result_.events.push_back(std::move(backward));
  }

  void TakeSaved(const json& line) {
    const json& value = line.at("value");
    SavedTensor saved;
    saved.key = line.at("key");
    saved.dtype = line.at("dtype");
    saved.shape = line.at("shape").get<std::vector<int64_t>>();
    if (!value.at(0).is_null()) saved.position = positions_.at(value[0]);
    if (line.contains("state_of")) saved.state_of = positions_.at(line["state_of"]);
    saved.archive_number = archives_;
    saved.print = ReadPrint(value);
    saved.steps = result_.CountSteps();
    result_.saved.push_back(std::move(saved));
  }

  // The states of parameters come in no order that two runs would share: theirs is put in its place.
  void EndArchive(const std::string& name) {
    const auto end = result_.saved.end();
    for (auto it = result_.saved.begin() + static_cast<std::ptrdiff_t>(archive_begin_); it != end;) {
      const auto last = std::find_if(it, end, [](const SavedTensor& saved) { return !saved.state_of; });
      std::stable_sort(it, last, [](const auto& a, const auto& b) { return a.state_of < b.state_of; });
      it = last == end ? end : last + 1;
    }
    for (; archive_begin_ < result_.saved.size(); ++archive_begin_) result_.saved[archive_begin_].archive = name;
    ++archives_;
  }

  static Print ReadPrint(const json& entry) {
    Print print;
    print.hash = entry.at(1);
    print.norm = Number(entry.at(2));
    for (std::size_t i = 0; i < print.sketch.size(); ++i) print.sketch[i] = Number(entry.at(3 + i));
    return print;
  }

  // An entry of one element is the same as the last of that tensor.
  void TakePrints(const json& entries, Prints& prints, Prints* last) {
    for (const json& entry : entries) {
      const std::size_t position = positions_.at(entry.at(0));
      if (entry.size() == 1 && last != nullptr) {
        prints[position] = last->at(position);
        continue;
      }
      Print print = ReadPrint(entry);
      if (last != nullptr) (*last)[position] = print;
      prints[position] = std::move(print);
    }
  }

  Recording result_;
  std::map<int64_t, std::size_t> positions_;
  std::size_t archive_begin_ = 0;  // what is saved from there on is in an archive that has not ended
  std::size_t archives_ = 0;
  std::vector<std::size_t> steps_;  // under way: a closure's backward passes are within one
  Prints pending_;
  Prints gradients_;
};

}  // namespace

double Distance(const Print& a, const Print& b) {
  if (a.hash == b.hash) return 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.sketch.size(); ++i) squares += std::pow(a.sketch[i] - b.sketch[i], 2);
  return std::sqrt(squares / static_cast<double>(a.sketch.size()));
}

double Relative(double difference, double scale) {
  if (difference == 0) return 0;
  return std::isfinite(difference) && scale > 0 ? difference / scale : std::numeric_limits<double>::infinity();
}

std::string RecordedTensor::Describe(std::size_t position) const {
  return fmt::format("{} [{}]", name.empty() ? fmt::format("{} {}", kind, position) : name, fmt::join(shape, ", "));
}

std::size_t Recording::CountSteps() const {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [](const RecordedEvent& event) { return event.is_step; }));
}

std::optional<Recording> ReadRecording(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  Reader reader;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (file.eof()) {  // no line end behind it
      reader.CutOff();
      break;
    }
    try {
      reader.Take(json::parse(line));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  return reader.Finish();
}

}  // namespace accelerate::launch
