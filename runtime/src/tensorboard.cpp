/// TensorBoard's event files: records of TensorFlow's framing, each a protocol buffer of the type tensorflow.Event. The
/// few fields that scalars need are encoded here; a protobuf library would clash with the one inside LibTorch.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "append_file.h"
#include "crc32c.h"
#include "files.h"
#include "trackers.h"

namespace accelerate::detail {
namespace {

template <typename T>
std::string raw(T value) {  // little-endian, as protobuf's and the records' fixed-size numbers are
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes += static_cast<char>(value | 0x80);
  }
  return bytes + static_cast<char>(value);
}

enum WireType : uint64_t { kVarint = 0, k64Bit = 1, kBytes = 2, k32Bit = 5 };

std::string tag(uint64_t field, WireType type) { return varint(field << 3 | type); }
std::string field(uint64_t number, const std::string& bytes) {
  return tag(number, kBytes) + varint(bytes.size()) + bytes;
}

/// tensorflow.Event: wall_time = 1, step = 2, file_version = 3, summary = 5.
std::string event(int64_t step, const std::string& content) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return tag(1, k64Bit) + raw(now.count()) + tag(2, kVarint) + varint(static_cast<uint64_t>(step)) + content;
}

/// tensorflow.Summary.Value: tag = 1, simple_value = 2.
std::string scalar(const std::string& name, double value) {
  return field(1, name) + tag(2, k32Bit) + raw(static_cast<float>(value));
}

/// The format's mask: a checksum of data that contains checksums would be weak.
std::string masked_checksum(const std::string& bytes) {
  const uint32_t crc = crc32c(bytes.data(), bytes.size());
  return raw(static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8U));
}

std::string record(const std::string& data) {
  const std::string length = raw(static_cast<uint64_t>(data.size()));
  return length + masked_checksum(length) + data + masked_checksum(data);
}

/// A name that no other run has, of the form that TensorBoard looks for.
std::string file_name() {
  static std::atomic<int> count{0};
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  return "events.out.tfevents." + std::to_string(seconds.count()) + "." + host + "." + std::to_string(getpid()) + "." +
         std::to_string(count++);
}

class TensorBoardTracker final : public Tracker {
 public:
  explicit TensorBoardTracker(const std::string& folder)
      : folder_(folder), file_(folder + "/" + file_name(), /*fresh=*/true) {
    file_.append(record(event(0, field(3, "brain.Event:2"))));
  }
  std::string name() const override { return "tensorboard"; }

  void store_init_configuration(const TrackerConfig& config) override {
    std::string text;
    for (const auto& [name, value] : config) {  // JSON's scalars are YAML's
      std::visit([&, &name = name](
                     const auto& x) { text += nlohmann::json(name).dump() + ": " + nlohmann::json(x).dump() + "\n"; },
                 value);
    }
    FileWriter file(folder_ + "/hparams.yml");
    file.write(text.data(), text.size());
    file.close();
  }

  void log(const std::map<std::string, double>& values, int64_t step) override {
    std::string summary;
    for (const auto& [name, value] : values) {
      summary += field(1, scalar(name, value));
    }
    file_.append(record(event(step, field(5, summary))));
  }

 private:
  std::string folder_;
  AppendFile file_;
};

}  // namespace

std::shared_ptr<Tracker> make_tensorboard_tracker(const std::string& folder) {
  return std::make_shared<TensorBoardTracker>(folder);
}

}  // namespace accelerate::detail
