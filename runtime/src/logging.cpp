#include <accelerate/logging.h>
#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>

#include "environment.h"

namespace accelerate {
namespace {

/// A logger may be older than the process's state, and must not make it.
const detail::Environment& environment() {
  static const detail::Environment instance = detail::read_environment();
  return instance;
}

const char* name_of(LogLevel level) {
  return level >= LogLevel::Critical  ? "CRITICAL"
         : level >= LogLevel::Error   ? "ERROR"
         : level >= LogLevel::Warning ? "WARNING"
         : level >= LogLevel::Info    ? "INFO"
                                      : "DEBUG";
}

LogLevel default_level() {
  std::string text = detail::variable("ACCELERATE_LOG_LEVEL");
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  if (text.empty()) {
    return LogLevel::Warning;
  }
  for (const LogLevel level :
       {LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error, LogLevel::Critical}) {
    if (text == name_of(level)) {
      return level;
    }
  }
  TORCH_CHECK(false, "[accelerate] ACCELERATE_LOG_LEVEL=", text,
              " is no level; there are DEBUG, INFO, WARNING, ERROR, CRITICAL");
}

/// "1:02:03", or "02:03".
std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof(text), "%02lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

constexpr int64_t kWidth = 20;
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

bool Logger::on_main_process() { return environment().rank == 0; }

void Logger::write(LogLevel level, const std::string& text) const {
  std::string line = std::string(name_of(level)) + ":" + name_ + ": ";
  if (!environment().alone()) {
    line += "[RANK " + std::to_string(environment().rank) + "] ";
  }
  line += text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);  // at once: the ranks share the terminal
}

Logger get_logger(const std::string& name, std::optional<LogLevel> level) {
  return {name, level ? *level : default_level()};
}

ProgressBar::ProgressBar(int64_t total, std::string description)
    : ProgressBar(total, std::move(description), std::cerr, isatty(STDERR_FILENO) == 1) {}

ProgressBar::ProgressBar(int64_t total, std::string description, std::ostream& out, bool terminal)
    : total_(total),
      description_(std::move(description)),
      out_(environment().local_rank == 0 ? &out : nullptr),
      terminal_(terminal) {}

ProgressBar::~ProgressBar() { close(); }

void ProgressBar::update(int64_t steps) {
  done_ += steps;
  const auto now = Clock::now();
  if (out_ && terminal_ && now - drawn_ >= kInterval) {
    drawn_ = now;
    draw();
  }
}

void ProgressBar::close() {
  if (out_) {
    draw();
    *out_ << std::endl;
    out_ = nullptr;
  }
}

void ProgressBar::draw() {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  std::ostringstream line;
  line << description_ << (description_.empty() ? "" : ": ");
  if (total_ > 0) {
    const int64_t done = std::min(done_, total_), filled = done * kWidth / total_;
    line << done * 100 / total_ << "%|" << std::string(static_cast<size_t>(filled), '#')
         << std::string(static_cast<size_t>(kWidth - filled), ' ') << "| " << done_ << "/" << total_;
  } else {
    line << done_;
  }
  line << " [" << clock_text(seconds);
  if (total_ > done_ && done_ > 0) {
    line << "<" << clock_text(seconds / static_cast<double>(done_) * static_cast<double>(total_ - done_));
  }
  line.precision(3);
  if (seconds > 0) {
    line << ", " << static_cast<double>(done_) / seconds << "/s";
  }
  line << "]" << (postfix_.empty() ? "" : " ") << postfix_;
  std::string text = line.str();
  const size_t width = text.size();
  if (terminal_) {
    text = "\r" + text + std::string(width_ > width ? width_ - width : 0, ' ');  // over what stood there
  }
  width_ = width;
  *out_ << text << std::flush;
}

}  // namespace accelerate
