#include "checkpoint_folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "crc32c.h"
#include "files.h"
#include "model_files.h"

namespace accelerate::detail {
namespace {

using nlohmann::json;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "accelerate-checkpoint";
constexpr int64_t kVersion = 1;
constexpr const char* kPrevious = ".previous";  // what is being replaced, where the two can't change places at once

std::string hex(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08x", number);
  return text;
}

std::string checksum_of(const json& manifest) {
  const std::string text = manifest.dump();
  return hex(crc32c(text.data(), text.size()));
}

bool exists(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0;
}

/// Without links and without slashes at the end.
std::string plain_path(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  if (char* real = realpath(path.c_str(), nullptr)) {
    path = real;
    std::free(real);
  }
  return path;
}

json read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifest;
  TORCH_CHECK(is_file(path), "[accelerate] ", folder, " is no checkpoint: it has no ", kManifest);
  json manifest;
  try {
    manifest = json::parse(read_text(path));
    const std::string checksum = manifest.at("checksum");
    manifest.erase("checksum");
    TORCH_CHECK(checksum == checksum_of(manifest), "[accelerate] ", path, " is damaged: its checksum isn't ", checksum);
    TORCH_CHECK(manifest.at("format") == kFormat, "[accelerate] ", path, " isn't a checkpoint's manifest");
    TORCH_CHECK(manifest.at("version").get<int64_t>() <= kVersion, "[accelerate] ", folder,
                " was written by a later version of this library");
  } catch (const json::exception& error) {
    TORCH_CHECK(false, "[accelerate] ", path, " is damaged: ", error.what());
  }
  return manifest;
}

/// Throws unless the folder could be removed without losing anything but a checkpoint.
void check_replaceable(const std::string& folder) {
  if (!exists(folder)) {
    return;
  }
  TORCH_CHECK(is_folder(folder), "[accelerate] can't save a checkpoint as ", folder, ": a file has that name");
  const std::vector<std::string> names = names_in(folder);
  if (names.empty()) {
    return;
  }
  json files = json::object();
  try {
    files = read_manifest(folder).at("files");
  } catch (const std::exception&) {
    // Nothing in it is known to be a checkpoint's.
  }
  for (const std::string& name : names) {
    TORCH_CHECK(name == kManifest || files.contains(name), "[accelerate] can't save a checkpoint as ", folder,
                ": it would replace the folder, and ", name,
                " in it is of no checkpoint; give save_state() a folder of its own");
  }
}

void put_in_place(const std::string& folder, const std::string& target) {
  if (!exists(target) || names_in(target).empty()) {
    rename_file(folder, target);
    return;
  }
  if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    sync_folder(parent_of(target));
    remove_all(folder);  // the older one
    return;
  }
  // A file system that can't: read_checkpoint() finds the older one under its other name.
  remove_all(target + kPrevious);
  rename_file(target, target + kPrevious);
  rename_file(folder, target);
  remove_all(target + kPrevious);
}

/// Of "checkpoint_7" and the like.
std::optional<int64_t> number_of(const std::string& name) {
  const std::string prefix = "checkpoint_";
  const std::string digits = name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(digits);
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& target) : target_(plain_path(target)) {
  const std::string name = name_of(target_);
  TORCH_CHECK(!name.empty() && name != "." && name != "..", "[accelerate] can't save a checkpoint as ", target);
  check_replaceable(target_);
  make_folders(parent_of(target_));
  folder_ = parent_of(target_) + "/." + name + ".tmp";
  remove_all(folder_);  // of a program that was ended while it saved
  make_folders(folder_);
}

CheckpointWriter::~CheckpointWriter() {
  if (!committed_) {
    try {
      remove_all(folder_);
    } catch (const std::exception&) {
      // The error that brought us here is the one to tell.
    }
  }
}

void CheckpointWriter::note(const std::string& name, uint64_t size, uint32_t checksum) {
  files_[name] = {{"bytes", size}, {"crc32c", hex(checksum)}};
}

void CheckpointWriter::add(const std::string& name, torch::serialize::OutputArchive& archive) {
  FileWriter file(folder_ + "/" + name);
  archive.save_to([&](const void* bytes, size_t size) {
    (void)file.try_write(bytes, size);  // close() throws if it failed: LibTorch's writer would end the process
    return size;
  });
  file.close();
  note(name, file.size(), file.checksum());
}

void CheckpointWriter::add(const std::string& name, const NamedTensors& tensors,
                           const std::map<std::string, std::string>& metadata) {
  const std::string path = folder_ + "/" + name;
  FileWriter file(path);
  write_safetensors(file, tensors, metadata, path);
  file.close();
  note(name, file.size(), file.checksum());
}

void CheckpointWriter::add(const std::string& name, const std::string& bytes) {
  FileWriter file(folder_ + "/" + name);
  file.write(bytes.data(), bytes.size());
  file.close();
  note(name, file.size(), file.checksum());
}

void CheckpointWriter::commit(json content) {
  content["format"] = kFormat;
  content["version"] = kVersion;
  content["files"] = files_;
  content["checksum"] = checksum_of(content);
  FileWriter file(folder_ + "/" + kManifest);
  const std::string text = content.dump(2) + "\n";
  file.write(text.data(), text.size());
  file.close();
  sync_folder(folder_);
  put_in_place(folder_, target_);
  committed_ = true;
}

json read_checkpoint(const std::string& given) {
  const std::string folder = !is_folder(given) && is_folder(given + kPrevious) ? given + kPrevious : given;
  TORCH_CHECK(is_folder(folder), "[accelerate] there is no checkpoint ", folder);
  json manifest = read_manifest(folder);
  manifest["folder"] = folder;
  for (const auto& [name, facts] : manifest.at("files").items()) {
    const std::string path = folder + "/" + name;
    TORCH_CHECK(is_file(path), "[accelerate] checkpoint ", folder, ": ", name, " is missing");
    const uint64_t size = FileReader(path).size();
    TORCH_CHECK(size == facts.at("bytes").get<uint64_t>(), "[accelerate] checkpoint ", folder, ": ", name,
                " is damaged: it has ", size, " bytes and had ", facts.at("bytes").get<uint64_t>());
    TORCH_CHECK(hex(checksum_of_file(path)) == facts.at("crc32c").get<std::string>(), "[accelerate] checkpoint ",
                folder, ": ", name, " is damaged: its checksum has changed");
  }
  return manifest;
}

std::vector<int64_t> CheckpointSeries::numbers() const {
  std::vector<int64_t> result;
  for (const std::string& name : names_in(folder_)) {
    if (const auto number = number_of(name); number && is_file(folder_ + "/" + name + "/" + kManifest)) {
      result.push_back(*number);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

std::optional<int64_t> CheckpointSeries::latest() const {
  const std::vector<int64_t> all = numbers();
  return all.empty() ? std::nullopt : std::optional(all.back());
}

int64_t CheckpointSeries::next(int64_t least) const {
  for (const std::string& name : names_in(folder_)) {
    if (const auto number = number_of(name); number && *number >= least) {
      least = *number + 1;
    }
  }
  return least;
}

void CheckpointSeries::remove_beyond(int64_t keep) const {
  const std::string ending = ".removed";
  for (const std::string& name : names_in(folder_)) {  // what a program left that was ended while it removed
    if (name.size() > ending.size() && name[0] == '.' &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0 &&
        number_of(name.substr(1, name.size() - ending.size() - 1))) {
      remove_all(folder_ + "/" + name);
    }
  }
  std::vector<int64_t> all;
  for (const int64_t number : numbers()) {
    try {
      read_manifest(path(number));
      all.push_back(number);
    } catch (const std::exception&) {
      // Whatever it is, nobody can go on from it, so that it doesn't stand for one of those that are kept.
    }
  }
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) {
    try {
      check_replaceable(path(all[i]));
    } catch (const std::exception&) {
      continue;  // somebody has put something beside it
    }
    // What has a checkpoint's name is whole, also while it goes.
    const std::string hidden = folder_ + "/.checkpoint_" + std::to_string(all[i]) + ending;
    rename_file(path(all[i]), hidden);
    remove_all(hidden);
  }
}

}  // namespace accelerate::detail
