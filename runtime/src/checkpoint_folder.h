#pragma once

/// A checkpoint on the disk: a folder of files, and manifest.json, which has their checksums and all that is small.

#include <accelerate/safetensors.h>
#include <torch/serialize.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace accelerate::detail {

/// Writes a checkpoint under another name; commit() gives it its own. What isn't committed is removed.
class CheckpointWriter {
 public:
  /// Throws if `target` is there and isn't a checkpoint, which would be lost.
  explicit CheckpointWriter(const std::string& target);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  void add(const std::string& name, torch::serialize::OutputArchive& archive);
  void add(const std::string& name, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata);
  void add(const std::string& name, const std::string& bytes);

  /// Writes the manifest with `content` and puts the checkpoint in its place, at once; an older one of its name goes.
  void commit(nlohmann::json content);

 private:
  void note(const std::string& name, uint64_t size, uint32_t checksum);

  std::string target_, folder_;
  nlohmann::json files_ = nlohmann::json::object();
  bool committed_ = false;
};

/// The manifest of a checkpoint whose files are all there and undamaged; throws, naming the file, if they aren't.
nlohmann::json read_checkpoint(const std::string& folder);

/// Checkpoints that are named by number, in a project's folder.
class CheckpointSeries {
 public:
  explicit CheckpointSeries(const std::string& project_dir) : folder_(project_dir + "/checkpoints") {}
  std::string path(int64_t number) const { return folder_ + "/checkpoint_" + std::to_string(number); }
  std::optional<int64_t> latest() const;
  /// The first number from `least` on beyond all that are taken, be it by something else than a checkpoint.
  int64_t next(int64_t least) const;
  /// Removes the oldest, beyond the newest `keep`. Only undamaged checkpoints count, and go; those with files in them
  /// that aren't theirs stay.
  void remove_beyond(int64_t keep) const;

 private:
  /// In order, of the folders that have a manifest: others of such a name are no checkpoints.
  std::vector<int64_t> numbers() const;
  std::string folder_;
};

}  // namespace accelerate::detail
