#pragma once

/// Files and folders, with errors that name them. (No std::filesystem: LibTorch's wheels export their own, older
/// copies of its functions, which the linker then takes, and which crash.)

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace accelerate::detail {

/// A new file; what it got is checksummed on the way.
class FileWriter {
 public:
  /// Throws if the file can't be made. An older one is written over.
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Throws if the bytes can't be written (a full disk).
  void write(const void* bytes, size_t size);
  /// The same for callers that no exception may pass: false from then on, and close() throws.
  bool try_write(const void* bytes, size_t size) noexcept;
  /// Returns when the bytes are on the disk; throws if they aren't.
  void close();

  uint64_t size() const { return size_; }
  uint32_t checksum() const { return checksum_; }  // CRC-32C

 private:
  std::string path_;
  int file_;
  int error_ = 0;  // of the write that failed
  uint64_t size_ = 0;
  uint32_t checksum_ = 0;
};

/// A file to read from; positions beyond its end are errors.
class FileReader {
 public:
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  uint64_t size() const { return size_; }
  void read(uint64_t position, void* bytes, size_t size) const;

 private:
  std::string path_;
  int file_;
  uint64_t size_ = 0;
};

std::string read_text(const std::string& path);
uint32_t checksum_of_file(const std::string& path);

bool is_folder(const std::string& path);
bool is_file(const std::string& path);
/// Makes the folder and those above it.
void make_folders(const std::string& path);
/// The names in a folder, sorted; none if there is no such folder.
std::vector<std::string> names_in(const std::string& folder);
/// Removes a file or a folder with all that is in it; nothing if there is none.
void remove_all(const std::string& path);
/// Makes names that were given or taken in the folder last.
void sync_folder(const std::string& path);
/// Gives a file another name, in place of the file that has it; lasts when it returns.
void rename_file(const std::string& from, const std::string& to);
/// The folder that a path stands in, "." if it names none.
std::string parent_of(const std::string& path);
std::string name_of(const std::string& path);

}  // namespace accelerate::detail
