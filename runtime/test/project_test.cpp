/// Trackers and automatically named checkpoints.

#include <accelerate/accelerate.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "temporary_folder.h"
#include "toys.h"

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (DIR* stream = opendir(folder.c_str())) {
    while (const dirent* entry = readdir(stream)) {
      if (entry->d_name[0] != '.') {
        names.emplace_back(entry->d_name);
      }
    }
    closedir(stream);
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// The options are those of the process's first Accelerator, so this comes before all suites.
class Options : public testing::Environment {
 public:
  void SetUp() override {
    char name[] = "/tmp/accelerate-test-XXXXXX";
    folder = mkdtemp(name);  // before there are ranks to agree on one: each makes its own, and the first one's is used
    accelerate::Options options;
    options.project.project_dir = folder;
    options.project.automatic_checkpoint_naming = true;
    options.project.total_limit = 2;
    options.project.iteration = 5;
    options.project.log_with = "csv, jsonl,tensorboard";
    accelerate::Accelerator accelerator(options);
  }
  void TearDown() override {
    accelerate::Accelerator().wait_for_everyone();
    (void)!std::system(("rm -rf " + folder).c_str());
  }
  static std::string folder;
};
std::string Options::folder;
const auto* const kOptions = testing::AddGlobalTestEnvironment(new Options);

class Project : public testing::Test {
 protected:
  const std::string& folder_ = Options::folder;
  accelerate::Accelerator accelerator_;
};

TEST_F(Project, CheckpointsAreNumberedAndLimited) {
  static int64_t value = 0;
  accelerator_.register_for_checkpointing(value);
  EXPECT_NE(toys::error_of([&] { accelerator_.load_state(); }).find("there is no checkpoint in"), std::string::npos);
  for (value = 0; value < 4; ++value) {
    const std::string name = accelerator_.save_state();
    EXPECT_EQ(name.substr(name.rfind('/')), "/checkpoint_" + std::to_string(5 + value));
  }
  if (accelerator_.is_main_process()) {
    EXPECT_EQ(names_in(folder_ + "/checkpoints"), (std::vector<std::string>{"checkpoint_7", "checkpoint_8"}));
  }
  value = -1;
  const std::string latest = accelerator_.load_state();
  EXPECT_EQ(latest.substr(latest.rfind('/')), "/checkpoint_8");
  EXPECT_EQ(value, 3);
  accelerator_.load_state(latest.substr(0, latest.size() - 1) + "7");
  EXPECT_EQ(value, 2);
  if (accelerator_.is_main_process()) {  // numbers are compared, not names; others' folders are left alone
    mkdir((folder_ + "/checkpoints/checkpoint_x").c_str(), 0777);
    std::rename((folder_ + "/checkpoints/checkpoint_8").c_str(), (folder_ + "/checkpoints/checkpoint_100").c_str());
  }
  const std::string next = accelerator_.save_state();
  EXPECT_EQ(next.substr(next.rfind('/')), "/checkpoint_101");
  if (accelerator_.is_main_process()) {
    EXPECT_EQ(names_in(folder_ + "/checkpoints"),
              (std::vector<std::string>{"checkpoint_100", "checkpoint_101", "checkpoint_x"}));
  }
}

TEST_F(Project, FoldersOfOthersArentRotatedAway) {
  const std::string all = folder_ + "/checkpoints/";
  const auto touch = [&](const std::string& name) {
    mkdir((all + name).c_str(), 0777);
    std::ofstream(all + name + "/thesis.txt") << "mine";
  };
  const std::string first = accelerator_.save_state();
  const int64_t number = std::stoll(first.substr(first.rfind('_') + 1));
  const auto name = [](int64_t i) { return "checkpoint_" + std::to_string(i); };
  if (accelerator_.is_main_process()) {
    touch("checkpoint_0");                          // no checkpoint
    touch(name(number));                            // a note in one
    touch(".mine.removed");                         // not what this library leaves
    mkdir((all + name(number + 2)).c_str(), 0777);  // empty, and in the way
  }
  accelerator_.wait_for_everyone();
  const std::string latest = accelerator_.latest_checkpoint();
  EXPECT_EQ(latest.substr(latest.rfind('/') + 1), name(number));
  EXPECT_NO_THROW(accelerator_.load_state());
  for (int64_t i = 3; i < 7; ++i) {
    const std::string saved = accelerator_.save_state();
    EXPECT_EQ(saved.substr(saved.rfind('/') + 1), name(number + i));
    if (i == 5 && accelerator_.is_main_process()) {  // damaged: it doesn't stand for one that is kept
      std::ofstream(saved + "/manifest.json") << "{}";
    }
  }
  if (accelerator_.is_main_process()) {
    const std::vector<std::string> names = names_in(all);
    for (const std::string& there : {std::string("checkpoint_0"), name(number), name(number + 2), name(number + 4),
                                     name(number + 5), name(number + 6)}) {
      EXPECT_EQ(std::count(names.begin(), names.end(), there), 1) << there;
    }
    EXPECT_EQ(std::count(names.begin(), names.end(), name(number + 3)), 0);
    for (const std::string& there : {std::string("checkpoint_0"), name(number), std::string(".mine.removed")}) {
      EXPECT_EQ(read(all + there + "/thesis.txt"), "mine");
    }
  }
}

TEST_F(Project, TextTrackers) {
  accelerator_.init_trackers("run",
                             {{"lr", 0.1}, {"layers", int64_t{3}}, {"deep", true}, {"name", std::string("a\"b")}});
  accelerator_.log({{"loss", 0.1}}, 10);
  accelerator_.log({{"loss", std::numeric_limits<double>::quiet_NaN()}, {"acc, \"top\" 1", 1.0 / 3}});
  accelerator_.get_tracker("csv").log({{"loss", 2}}, 20);
  accelerator_.end_training();
  accelerator_.init_trackers("run");  // as after a resume: files are continued
  accelerator_.log({{"acc, \"top\" 1", 1}, {"new", -1e300}});
  if (!accelerator_.is_main_process()) {
    EXPECT_TRUE(names_in(folder_).empty() || names_in(folder_) == std::vector<std::string>{"traces"});
    EXPECT_NO_THROW(accelerator_.get_tracker("whatever").log({{"x", 1}}, 1));
    accelerator_.end_training();
    return;
  }
  EXPECT_EQ(read(folder_ + "/run/metrics.csv"),
            "step,loss,\"acc, \"\"top\"\" 1\",new\n"
            "10,0.10000000000000001,,\n"
            "11,nan,0.33333333333333331,\n"
            "20,2,,\n"
            "0,,1,-1.0000000000000001e+300\n");
  EXPECT_EQ(read(folder_ + "/run/metrics.jsonl"),
            "{\"step\":10,\"loss\":0.1}\n"
            "{\"step\":11,\"acc, \\\"top\\\" 1\":0.3333333333333333,\"loss\":null}\n"
            "{\"step\":0,\"acc, \\\"top\\\" 1\":1.0,\"new\":-1e+300}\n");
  EXPECT_EQ(read(folder_ + "/run/config.json"),
            "{\n  \"deep\": true,\n  \"layers\": 3,\n  \"lr\": 0.1,\n  \"name\": \"a\\\"b\"\n}\n");
  EXPECT_NE(toys::error_of([&] { accelerator_.get_tracker("wandb"); }).find("there are: csv jsonl tensorboard"),
            std::string::npos);
  accelerator_.end_training();
}

TEST_F(Project, LogsGoOnAfterAResume) {
  TemporaryFolder folder;
  const std::string path = folder_ + "/resumed/metrics.jsonl";
  const auto append = [&](const std::string& text) {
    if (accelerator_.is_main_process()) {
      std::ofstream(path, std::ios::app) << text;
    }
  };
  accelerator_.init_trackers("resumed");
  accelerator_.log({{"x", 0}});
  accelerator_.log({{"x", 1}});
  accelerator_.save_state(folder / "c");
  accelerator_.end_training();
  append("{\"step\":2,\"x");  // of a program that was ended while it wrote
  accelerator_.load_state(folder / "c");
  accelerator_.init_trackers("resumed");
  accelerator_.log({{"x", 2}});
  accelerator_.load_state(folder / "c");  // while they run
  accelerator_.log({{"x", 3}});
  accelerator_.end_training();
  append("{\"step\":7}");                 // whole, but for its line end
  accelerator_.init_trackers("resumed");  // another run begins at 0
  accelerator_.log({{"x", 4}});
  accelerator_.end_training();
  if (accelerator_.is_main_process()) {
    EXPECT_EQ(read(path),
              "{\"step\":0,\"x\":0.0}\n{\"step\":1,\"x\":1.0}\n{\"step\":2,\"x\":2.0}\n"
              "{\"step\":2,\"x\":3.0}\n{\"step\":7}\n{\"step\":0,\"x\":4.0}\n");
  }
}

/// CRC-32C bit by bit, and the mask: from the formats' descriptions, not from the library.
uint32_t masked_crc(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
    }
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

template <typename T>
T number_at(const std::string& bytes, size_t position) {
  T value;
  std::memcpy(&value, bytes.substr(position, sizeof(T)).data(), sizeof(T));
  return value;
}

struct Field {
  uint64_t number;
  uint64_t varint = 0;
  std::string bytes;  // of all other wire types
};

/// Any protocol buffer's fields.
std::vector<Field> fields(const std::string& message) {
  std::vector<Field> result;
  size_t i = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(i++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        return value;
      }
    }
  };
  while (i < message.size()) {
    const uint64_t tag = varint();
    Field field{tag >> 3, 0, ""};
    size_t size = 0;
    switch (tag & 7) {
      case 0:
        field.varint = varint();
        break;
      case 1:
        size = 8;
        break;
      case 2:
        size = varint();
        break;
      case 5:
        size = 4;
        break;
      default:
        throw std::runtime_error("no wire type");
    }
    field.bytes = message.substr(i, size);
    if (field.bytes.size() != size) {
      throw std::runtime_error("cut off");
    }
    i += size;
    result.push_back(field);
  }
  return result;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

std::vector<Event> events(const std::string& path) {
  std::vector<Event> result;
  const std::string file = read(path);
  for (size_t i = 0; i < file.size();) {
    const auto length = number_at<uint64_t>(file, i);
    EXPECT_EQ(number_at<uint32_t>(file, i + 8), masked_crc(file.substr(i, 8)));
    const std::string data = file.substr(i + 12, length);
    EXPECT_EQ(number_at<uint32_t>(file, i + 12 + length), masked_crc(data));
    i += 16 + length;
    Event event;
    for (const Field& field : fields(data)) {
      if (field.number == 1) {
        event.wall_time = number_at<double>(field.bytes, 0);
      } else if (field.number == 2) {
        event.step = static_cast<int64_t>(field.varint);
      } else if (field.number == 3) {
        event.version = field.bytes;
      } else if (field.number == 5) {
        for (const Field& value : fields(field.bytes)) {
          EXPECT_EQ(value.number, 1U);
          std::string tag;
          for (const Field& part : fields(value.bytes)) {
            if (part.number == 1) {
              tag = part.bytes;
            } else if (part.number == 2) {
              event.scalars[tag] = number_at<float>(part.bytes, 0);
            }
          }
        }
      }
    }
    result.push_back(event);
  }
  return result;
}

TEST_F(Project, TensorBoardEvents) {
  EXPECT_EQ(masked_crc(""), 0xa282ead8U);
  accelerator_.init_trackers("board", {{"lr", 0.5}});
  const std::string long_name(300, 'n');
  accelerator_.log({{"loss", 0.25}, {long_name, -1}}, 1);
  accelerator_.log({{"loss", std::numeric_limits<double>::infinity()}}, int64_t{1} << 40);
  if (accelerator_.is_main_process()) {
    std::string path;
    for (const std::string& name : names_in(folder_ + "/board")) {
      path = name.compare(0, 20, "events.out.tfevents.") == 0 ? folder_ + "/board/" + name : path;
    }
    const auto list = events(path);  // while it is being written to
    ASSERT_EQ(list.size(), 3U);
    EXPECT_EQ(list[0].version, "brain.Event:2");
    EXPECT_EQ(list[1].step, 1);
    EXPECT_EQ(list[1].scalars, (std::map<std::string, float>{{"loss", 0.25F}, {long_name, -1.0F}}));
    EXPECT_EQ(list[2].step, int64_t{1} << 40);
    EXPECT_EQ(list[2].scalars.at("loss"), std::numeric_limits<float>::infinity());
    for (const Event& event : list) {
      EXPECT_NEAR(event.wall_time, static_cast<double>(std::time(nullptr)), 100);
    }
    EXPECT_EQ(read(folder_ + "/board/hparams.yml"), "\"lr\": 0.5\n");
  }
  accelerator_.end_training();
}

class Memory final : public accelerate::Tracker {
 public:
  std::string name() const override { return "memory"; }
  void store_init_configuration(const accelerate::TrackerConfig& config) override { settings = config.size(); }
  void log(const std::map<std::string, double>& values, int64_t step) override { logged[step] = values; }
  void finish() override { ++finished; }
  size_t settings = 0;
  int finished = 0;
  std::map<int64_t, std::map<std::string, double>> logged;
};

TEST_F(Project, OwnTrackersOnTheMainProcessOnly) {
  const auto memory = std::make_shared<Memory>();
  accelerator_.init_trackers("own", {{"a", 1.0}}, {memory});
  accelerator_.log({{"x", 1}});
  accelerator_.log({{"x", 2}});
  accelerator_.log({{"x", 3}}, 7);
  accelerator_.log({{"x", 4}});
  accelerator_.end_training();
  accelerator_.log({{"x", 5}});
  if (accelerator_.is_main_process()) {
    EXPECT_EQ(memory->settings, 1U);
    EXPECT_EQ(memory->finished, 1);
    EXPECT_EQ(memory->logged.size(), 4U);
    EXPECT_EQ(memory->logged.at(8).at("x"), 4);
  } else {
    EXPECT_TRUE(memory->logged.empty());
    EXPECT_EQ(memory->finished, 0);
  }
}

TEST_F(Project, TrackersThatCantBeMadeFailOnAllRanks) {
  if (accelerator_.is_main_process()) {
    std::ofstream(folder_ + "/occupied") << "x";
  }
  const std::string error = toys::error_of([&] { accelerator_.init_trackers("occupied"); });
  EXPECT_NE(error.find("occupied"), std::string::npos) << error;
  EXPECT_NE(toys::error_of([&] { accelerator_.init_trackers(""); }).find("no name"), std::string::npos);
}

}  // namespace
