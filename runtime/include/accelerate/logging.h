#pragma once

/// Messages and progress of a program that runs as many.

#include <accelerate/export.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

namespace accelerate {

/// Python's levels.
enum class LogLevel { Debug = 10, Info = 20, Warning = 30, Error = 40, Critical = 50 };

/// A logger of that name. Messages go to standard error, on the main process only unless told otherwise; where there
/// are other ranks each line begins with its own: "WARNING:train: [RANK 1] ...". A message below the level costs a
/// comparison. May be made before the first Accelerator.
class ACCELERATE_API Logger {
 public:
  Logger(std::string name, LogLevel level) : name_(std::move(name)), level_(level) {}

  /// Every rank's messages, not only the main process's.
  Logger& all_processes(bool on = true) {
    main_process_only_ = !on;
    return *this;
  }

  template <typename... Args>
  void debug(const Args&... args) const {
    log(LogLevel::Debug, args...);
  }
  template <typename... Args>
  void info(const Args&... args) const {
    log(LogLevel::Info, args...);
  }
  template <typename... Args>
  void warning(const Args&... args) const {
    log(LogLevel::Warning, args...);
  }
  template <typename... Args>
  void error(const Args&... args) const {
    log(LogLevel::Error, args...);
  }
  template <typename... Args>
  void critical(const Args&... args) const {
    log(LogLevel::Critical, args...);
  }

  template <typename... Args>
  void log(LogLevel level, const Args&... args) const {
    if (is_enabled_for(level)) {
      std::ostringstream text;
      (text << ... << args);
      write(level, text.str());
    }
  }

  /// Whether this process would write a message of that level.
  bool is_enabled_for(LogLevel level) const { return level >= level_ && (!main_process_only_ || on_main_process()); }
  LogLevel level() const { return level_; }

 private:
  static bool on_main_process();
  void write(LogLevel level, const std::string& text) const;

  std::string name_;
  LogLevel level_;
  bool main_process_only_ = true;
};

/// `level`: by default ACCELERATE_LOG_LEVEL (DEBUG, INFO, WARNING, ERROR or CRITICAL, in any case), else WARNING as in
/// Python. Throws if that names no level.
ACCELERATE_API Logger get_logger(const std::string& name, std::optional<LogLevel> level = std::nullopt);

/// A progress bar that each host's first process draws (Accelerate: tqdm), on standard error: at most ten times a
/// second on a terminal, and one line at the end elsewhere.
class ACCELERATE_API ProgressBar {
 public:
  /// `total` 0: unknown. `out`, with `terminal`, for other places to draw to.
  explicit ProgressBar(int64_t total, std::string description = "");
  ProgressBar(int64_t total, std::string description, std::ostream& out, bool terminal);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t steps = 1);
  /// Text behind the bar, e.g. the loss; drawn with the next update.
  void set_postfix(std::string text) { postfix_ = std::move(text); }
  /// Draws the last state and ends the line; the destructor does so otherwise.
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  int64_t total_, done_ = 0;
  std::string description_, postfix_;
  std::ostream* out_;  // none where nothing is drawn
  bool terminal_;
  Clock::time_point start_ = Clock::now(), drawn_;
  size_t width_ = 0;  // of what stands on the line
};

}  // namespace accelerate
