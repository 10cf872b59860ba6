#include "append_file.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace accelerate::detail {

AppendFile::AppendFile(std::string path, bool fresh)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (fresh ? O_EXCL : 0), 0666)) {
  TORCH_CHECK(file_ >= 0, "[accelerate] can't write ", path_, ": ", std::strerror(errno));
}

AppendFile::~AppendFile() { close(file_); }

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
