#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace accelerate::launch {

/// Passes lines from one pipe of a rank on to a stream of ours, each whole and with a prefix, so that the lines of
/// several ranks do not mix.
class LineRelay {
 public:
  /// `log_file`: gets the lines as well, without the prefix, behind what is in it if `append`; empty: none. Throws
  /// UsageError if it can't be written.
  LineRelay(int source, int sink, std::string prefix, const std::string& log_file = "", bool append = false);
  ~LineRelay() { Close(); }
  LineRelay(const LineRelay&) = delete;
  LineRelay& operator=(const LineRelay&) = delete;

  /// Moves what is there now. At the end of the pipe, passes on what is left and closes.
  void Pump();
  /// As Pump, and closes even if somebody still holds the other end, as a grandchild may.
  void Finish();

  bool is_open() const { return source_ >= 0; }
  int source() const { return source_; }
  /// Without those of backtraces.
  std::vector<std::string> last_lines() const { return {last_lines_.begin(), last_lines_.end()}; }

 private:
  void Feed(std::string_view text);
  void EmitLine();
  void Close();

  int source_;
  int sink_;
  int log_ = -1;
  std::string prefix_;
  std::string line_;  // not yet ended
  std::deque<std::string> last_lines_;
};

}  // namespace accelerate::launch
