#include "files.h"

#include <c10/util/Exception.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "crc32c.h"

namespace accelerate::detail {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

[[noreturn]] void fail(const char* operation, const std::string& path, int error) {
  TORCH_CHECK(false, "[accelerate] can't ", operation, " ", path, ": ", std::strerror(error));
}

}  // namespace

FileWriter::FileWriter(std::string path)
    : path_(std::move(path)), file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (file_ < 0) {
    fail("write", path_, errno);
  }
}

FileWriter::~FileWriter() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

bool FileWriter::try_write(const void* bytes, size_t size) noexcept {
  const auto* p = static_cast<const char*>(bytes);
  for (size_t done = 0; error_ == 0 && done < size;) {
    const ssize_t written = ::write(file_, p + done, size - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      error_ = written == 0 ? ENOSPC : errno;
    }
  }
  if (error_ != 0) {
    return false;
  }
  size_ += size;
  checksum_ = crc32c(bytes, size, checksum_);
  return true;
}

void FileWriter::write(const void* bytes, size_t size) {
  if (!try_write(bytes, size)) {
    fail("write", path_, error_);
  }
}

void FileWriter::close() {
  if (error_ == 0 && fsync(file_) != 0 && errno != EINVAL && errno != EROFS) {  // a pipe or device has no disk
    error_ = errno;
  }
  if (::close(std::exchange(file_, -1)) != 0 && error_ == 0) {
    error_ = errno;
  }
  if (error_ != 0) {
    fail("write", path_, error_);
  }
}

FileReader::FileReader(std::string path) : path_(std::move(path)), file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status{};
  if (file_ < 0 || fstat(file_, &status) != 0) {
    const int error = errno;
    if (file_ >= 0) {
      ::close(file_);
    }
    fail("read", path_, error);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(file_);
    TORCH_CHECK(false, "[accelerate] can't read ", path_, ": it isn't a file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

FileReader::~FileReader() { ::close(file_); }

void FileReader::read(uint64_t position, void* bytes, size_t size) const {
  auto* p = static_cast<char*>(bytes);
  for (size_t done = 0; done < size;) {
    const ssize_t got = pread(file_, p + done, size - done, static_cast<off_t>(position + done));
    if (got > 0) {
      done += static_cast<size_t>(got);
    } else if (got == 0) {
      TORCH_CHECK(false, "[accelerate] ", path_, " ends too early: ", size, " bytes from ", position,
                  " on were expected");
    } else if (errno != EINTR) {
      fail("read", path_, errno);
    }
  }
}

std::string read_text(const std::string& path) {
  const FileReader file(path);
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

uint32_t checksum_of_file(const std::string& path) {
  const FileReader file(path);
  std::vector<char> piece(kPiece);
  uint32_t checksum = 0;
  for (uint64_t position = 0; position < file.size();) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(piece.size(), file.size() - position));
    file.read(position, piece.data(), size);
    checksum = crc32c(piece.data(), size, checksum);
    position += size;
  }
  return checksum;
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_file(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

void make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR) {
      fail("make the folder", folder, errno);
    }
    if (end == std::string::npos) {
      break;
    }
  }
  TORCH_CHECK(is_folder(path), "[accelerate] can't make the folder ", path, ": something else has its name");
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* stream = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(stream)) {
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
        names.emplace_back(entry->d_name);
      }
    }
    closedir(stream);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void remove_all(const std::string& path) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) {
    return;
  }
  if (S_ISDIR(status.st_mode)) {
    for (const std::string& name : names_in(path)) {
      remove_all(path + "/" + name);
    }
  }
  if (std::remove(path.c_str()) != 0 && errno != ENOENT) {
    fail("remove", path, errno);
  }
}

void sync_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    fail("open the folder", path, errno);
  }
  const int result = fsync(folder);
  const int error = errno;
  ::close(folder);
  if (result != 0 && error != EINVAL) {  // some network file systems keep names without being asked
    fail("write the folder", path, error);
  }
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    fail("replace", to, errno);
  }
  sync_folder(parent_of(to));
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace accelerate::detail
