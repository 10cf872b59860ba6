#include "line_relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "configuration.h"
#include "failure.h"

namespace accelerate::launch {

namespace {

constexpr std::size_t kLinesKept = 10;
constexpr std::size_t kLongestLine = 64 * 1024;

// A reader that has gone away is no reason to stop training, so errors are left alone.
void WriteAll(int sink, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(sink, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

LineRelay::LineRelay(int source, int sink, std::string prefix, const std::string& log_file, bool append)
    : source_(source), sink_(sink), prefix_(std::move(prefix)) {
  if (log_file.empty()) return;
  log_ = open(log_file.c_str(), O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0666);
  if (log_ < 0) throw UsageError(fmt::format("cannot write {}: {}", log_file, std::strerror(errno)));
}

void LineRelay::Pump() {
  // A pipe holds 64 KiB; taking no more than that in one go keeps a rank that writes without end from holding us here.
  std::array<char, 64 * 1024> buffer;
  if (!is_open()) return;
  const ssize_t size = read(source_, buffer.data(), buffer.size());
  if (size > 0) return Feed({buffer.data(), static_cast<std::size_t>(size)});
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (!line_.empty()) EmitLine();
  Close();
}

void LineRelay::Finish() {
  Pump();
  if (!line_.empty()) EmitLine();
  Close();
}

void LineRelay::Feed(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || line_.size() >= kLongestLine) EmitLine();
    // A carriage return starts the line anew, as on a terminal: of a progress bar, the last state is passed on.
    if (c != '\n' && !line_.empty() && line_.back() == '\r') line_.clear();
    if (c != '\n') line_.push_back(c);
  }
}

void LineRelay::EmitLine() {
  if (!line_.empty() && line_.back() == '\r') line_.pop_back();
  WriteAll(sink_, prefix_ + line_ + "\n");
  if (log_ >= 0) WriteAll(log_, line_ + "\n");
  if (!IsBacktrace(line_)) last_lines_.push_back(std::move(line_));
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
  line_.clear();
}

void LineRelay::Close() {
  for (int* descriptor : {&source_, &log_}) {
    if (*descriptor >= 0) close(std::exchange(*descriptor, -1));
  }
}

}  // namespace accelerate::launch
