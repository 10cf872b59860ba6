#include "append_file.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "files.h"

namespace accelerate::detail {

AppendFile::AppendFile(std::string path, bool fresh)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (fresh ? O_EXCL : 0), 0666)) {
  TORCH_CHECK(file_ >= 0, "[accelerate] can't write ", path_, ": ", std::strerror(errno));
}

AppendFile::~AppendFile() { close(file_); }

void AppendFile::mend_last_line(const std::string& path, const std::function<bool(const std::string&)>& whole) {
  if (!is_file(path)) {
    return;
  }
  const std::string text = read_text(path);
  const size_t end = text.rfind('\n') + 1;  // 0 without any
  if (end == text.size()) {
    return;
  }
  if (whole(text.substr(end))) {
    AppendFile(path).append("\n");
  } else {
    TORCH_CHECK(truncate(path.c_str(), static_cast<off_t>(end)) == 0, "[accelerate] can't write ", path, ": ",
                std::strerror(errno));
  }
}

void AppendFile::append(const std::string& piece) {
  for (size_t done = 0; done < piece.size();) {
    const ssize_t written = write(file_, piece.data() + done, piece.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else {
      TORCH_CHECK(errno == EINTR, "[accelerate] can't write ", path_, ": ", std::strerror(errno));
    }
  }
}

}  // namespace accelerate::detail
