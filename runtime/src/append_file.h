#pragma once

#include <functional>
#include <string>

namespace accelerate::detail {

/// A file that grows by whole pieces: each is in it when append() returns.
class AppendFile {
 public:
  /// Throws if the file can't be opened; `fresh` if it's there already.
  explicit AppendFile(std::string path, bool fresh = false);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Makes a file of lines end with one: what is behind the last line end, of a program that was ended while it wrote,
  /// goes, unless `whole` says that only the line end is missing.
  static void mend_last_line(const std::string& path, const std::function<bool(const std::string&)>& whole);

  /// Throws if the piece can't be written (a full disk).
  void append(const std::string& piece);

 private:
  std::string path_;
  int file_;
};

}  // namespace accelerate::detail
