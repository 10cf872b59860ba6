#include "recordable.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace accelerate::launch {

namespace {

// A name of LibTorch's that is in every program with it, also if it has no symbols any more: of a type, as exceptions
// and casts compare them.
constexpr const char* kOfTorch = "N5torch";

/// A file's bytes; empty if it can't be read. Programs with LibTorch in them have hundreds of megabytes.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file >= 0 && fstat(file, &status) == 0 && status.st_size > 0) {
      size_ = static_cast<std::size_t>(status.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
  }
  ~Mapped() {
    if (data_ != MAP_FAILED) munmap(data_, size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  std::string_view bytes() const {
    return data_ == MAP_FAILED ? std::string_view() : std::string_view(static_cast<const char*>(data_), size_);
  }

 private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

/// What a 64-bit ELF file says of how it is loaded.
class Program {
 public:
  explicit Program(std::string_view bytes) : bytes_(bytes) {
    Elf64_Ehdr header{};
    if (!Read(0, header)) return;
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment{};
      if (!Read(header.e_phoff + i * sizeof(segment), segment)) return;
      segments_.push_back(segment);
    }
  }

  /// Without a loader nothing is loaded before it.
  bool HasLoader() const { return Find(PT_INTERP) != nullptr; }

  /// Whether it asks for a shared library whose name begins so.
  bool Needs(std::string_view library) const {
    const Elf64_Phdr* const dynamic = Find(PT_DYNAMIC);
    if (dynamic == nullptr) return false;
    std::vector<std::size_t> needed;
    std::size_t names = 0;
    Elf64_Dyn entry{};
    for (std::size_t at = 0; at < dynamic->p_filesz && Read(dynamic->p_offset + at, entry); at += sizeof(entry)) {
      if (entry.d_tag == DT_NEEDED) needed.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) names = InFile(entry.d_un.d_ptr);
    }
    return std::any_of(needed.begin(), needed.end(), [&](std::size_t name) {
      return names + name < bytes_.size() && bytes_.substr(names + name, library.size()) == library;
    });
  }

 private:
  template <typename Part>
  bool Read(std::size_t at, Part& part) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(part)) return false;
    std::memcpy(&part, bytes_.data() + at, sizeof(part));
    return true;
  }
  const Elf64_Phdr* Find(Elf64_Word type) const {
    const auto found = std::find_if(segments_.begin(), segments_.end(),
                                    [&](const Elf64_Phdr& segment) { return segment.p_type == type; });
    return found == segments_.end() ? nullptr : &*found;
  }
  std::size_t InFile(std::size_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      const bool inside = address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
      if (segment.p_type == PT_LOAD && inside) return address - segment.p_vaddr + segment.p_offset;
    }
    return bytes_.size();
  }

  std::string_view bytes_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace

std::string WhyNotRecorded(const std::string& program) {
  const Mapped file(program);
  const std::string_view bytes = file.bytes();
  if (bytes.substr(0, 2) == "#!") {
    return "is a script; name the executable that trains, with its arguments behind --";
  }
  const bool elf = bytes.substr(0, SELFMAG) == ELFMAG && bytes.size() > EI_CLASS && bytes[EI_CLASS] == ELFCLASS64;
  const Program loaded(elf ? bytes : std::string_view());
  if (elf && !loaded.HasLoader()) {
    return "is linked statically, so that no recorder can be loaded before it; build one for verify with shared "
           "libraries, LibTorch's among them";
  }
  if (elf && !loaded.Needs("libtorch") && bytes.find(kOfTorch) != std::string_view::npos) {
    return "has LibTorch linked in statically, which the recorder can't be loaded before; build one for verify that is "
           "linked with LibTorch's shared libraries";
  }
  return "has to be an executable that is linked with LibTorch's shared libraries, and train in its own process";
}

}  // namespace accelerate::launch
