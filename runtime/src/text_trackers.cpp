/// The CSV and JSON-lines trackers.

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "append_file.h"
#include "files.h"
#include "trackers.h"

namespace accelerate::detail {
namespace {

void write_config(const std::string& folder, const TrackerConfig& config) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const auto& [name, value] : config) {
    std::visit([&, &name = name](const auto& x) { values[name] = x; }, value);
  }
  const std::string path = folder + "/config.json", text = values.dump(2) + "\n";
  FileWriter file(path + ".tmp");
  file.write(text.data(), text.size());
  file.close();
  rename_file(path + ".tmp", path);
}

/// A field of RFC 4180.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string result = "\"";
  for (const char c : text) {
    result += c == '"' ? "\"\"" : std::string(1, c);
  }
  return result + '"';
}

/// The records of such a file; a last one without a line end is of a program that was ended while it wrote.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record;
  std::string field;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        inside = false;
      }
    } else if (c == '"') {
      inside = true;
    } else if (c == ',' || c == '\n') {
      record.push_back(std::move(field));
      field.clear();
      if (c == '\n') {
        records.push_back(std::move(record));
        record.clear();
      }
    } else if (c != '\r') {
      field += c;
    }
  }
  return records;
}

std::string line_of(const std::vector<std::string>& fields, size_t columns) {
  std::string line;
  for (size_t i = 0; i < columns; ++i) {
    line += (i == 0 ? "" : ",") + (i < fields.size() ? quoted(fields[i]) : "");
  }
  return line + '\n';
}

class CsvTracker final : public Tracker {
 public:
  explicit CsvTracker(const std::string& folder) : folder_(folder), path_(folder + "/metrics.csv") {
    if (is_file(path_)) {
      const auto records = parse_csv(read_text(path_));
      if (!records.empty()) {
        columns_ = records[0];
        TORCH_CHECK(columns_[0] == "step", "[accelerate] ", path_,
                    " is there and isn't a tracker's: its first column is `", columns_[0], "`");
        rewrite(records);
      }
    }
    open();
  }

  std::string name() const override { return "csv"; }
  void store_init_configuration(const TrackerConfig& config) override { write_config(folder_, config); }

  void log(const std::map<std::string, double>& values, int64_t step) override {
    const size_t known = columns_.size();
    for (const auto& item : values) {
      if (std::find(columns_.begin() + 1, columns_.end(), item.first) == columns_.end()) {
        columns_.push_back(item.first);
      }
    }
    if (columns_.size() > known) {
      file_.reset();
      rewrite(parse_csv(read_text(path_)));
      open();
    }
    std::vector<std::string> fields{std::to_string(step)};
    for (size_t i = 1; i < columns_.size(); ++i) {
      const auto value = values.find(columns_[i]);
      char text[40] = "";
      if (value != values.end()) {
        std::snprintf(text, sizeof(text), "%.17g", value->second);
      }
      fields.emplace_back(text);
    }
    file_->append(line_of(fields, columns_.size()));
  }

 private:
  /// Gives all rows the columns that there are now.
  void rewrite(const std::vector<std::vector<std::string>>& records) {
    std::string text = line_of(columns_, columns_.size());
    for (size_t i = 1; i < records.size(); ++i) {
      text += line_of(records[i], columns_.size());
    }
    FileWriter file(path_ + ".tmp");
    file.write(text.data(), text.size());
    file.close();
    rename_file(path_ + ".tmp", path_);
  }

  void open() {
    file_.emplace(path_);
    if (FileReader(path_).size() == 0) {
      file_->append(line_of(columns_, columns_.size()));
    }
  }

  std::string folder_, path_;
  std::vector<std::string> columns_{"step"};
  std::optional<AppendFile> file_;
};

class JsonlTracker final : public Tracker {
 public:
  explicit JsonlTracker(const std::string& folder) : folder_(folder), file_(mended(folder + "/metrics.jsonl")) {}
  std::string name() const override { return "jsonl"; }
  void store_init_configuration(const TrackerConfig& config) override { write_config(folder_, config); }
  void log(const std::map<std::string, double>& values, int64_t step) override {
    nlohmann::ordered_json line = {{"step", step}};
    for (const auto& [name, value] : values) {
      line[name] = value;
    }
    file_.append(line.dump() + "\n");
  }

 private:
  static std::string mended(std::string path) {
    AppendFile::mend_last_line(path, [](const std::string& line) { return nlohmann::json::accept(line); });
    return path;
  }

  std::string folder_;
  AppendFile file_;
};

}  // namespace

std::shared_ptr<Tracker> make_csv_tracker(const std::string& folder) { return std::make_shared<CsvTracker>(folder); }

std::shared_ptr<Tracker> make_jsonl_tracker(const std::string& folder) {
  return std::make_shared<JsonlTracker>(folder);
}

}  // namespace accelerate::detail
