#include "configuration.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "output_file.h"

namespace accelerate::launch {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// Each test has a folder of its own, and stands in it.
class ConfigurationTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "accelerate-configuration-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = fs::canonical(pattern);
    before_ = fs::current_path();
    fs::current_path(folder_);
    variables_ = {{"HOME", folder_ / "home"}};
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  std::string Write(const fs::path& path, const std::string& text) {
    if (path.has_parent_path()) fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  Configuration Read(const std::string& text) { return FromFile(Write("file.yaml", text), warnings_); }
  std::string ReadError(const std::string& text) {
    try {
      Read(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
  Environment environment() {
    return [this](const std::string& name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::make_optional(found->second);
    };
  }
  ResolvedConfiguration ResolveHere(const std::string& config_file = "", bool no_config = false) {
    return Resolve(flags_, config_file, no_config, environment());
  }
  void WriteAllThree() {
    Write("given.yaml", "num_processes: 3\n");
    Write("accelerate.yaml", "num_processes: 4\n");
    Write("home/.config/accelerate-cpp/default_config.yaml", "num_processes: 5\n");
  }

  fs::path folder_;
  fs::path before_;
  std::map<std::string, std::string> variables_;
  Words warnings_;
  Configuration flags_;
};

// What `accelerate config` writes for two GPUs.
constexpr const char* kPythonFile = R"(compute_environment: LOCAL_MACHINE
debug: false
distributed_type: MULTI_GPU
downcast_bf16: 'no'
enable_cpu_affinity: false
gpu_ids: all
machine_rank: 0
main_training_function: main
mixed_precision: bf16
num_machines: 1
num_processes: 2
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
)";

TEST_F(ConfigurationTest, ReadsAFileOfThePythonPackageInSilence) {
  const Configuration configuration = Read(kPythonFile);
  EXPECT_EQ(warnings_, Words{});
  EXPECT_EQ(configuration.distributed_type, "MULTI_GPU");
  EXPECT_EQ(configuration.num_processes, 2);
  EXPECT_EQ(configuration.num_machines, 1);
  EXPECT_EQ(configuration.gpu_ids, "all");
  EXPECT_EQ(configuration.mixed_precision, "bf16");
  EXPECT_EQ(configuration.use_cpu, false);
  EXPECT_EQ(configuration.debug, false);
  EXPECT_FALSE(configuration.main_process_ip);
  EXPECT_EQ(configuration.sources.at("num_processes"), "file.yaml");
}

TEST_F(ConfigurationTest, ReadsJson) {
  const Configuration configuration = Read(
      "{\n  \"distributed_type\": \"NO\",\n  \"mixed_precision\": \"no\",\n  \"num_processes\": 1,\n"
      "  \"main_process_ip\": null,\n  \"use_cpu\": true\n}\n");
  EXPECT_EQ(configuration.num_processes, 1);
  EXPECT_EQ(configuration.use_cpu, true);
  EXPECT_EQ(configuration.mixed_precision, "no");
  EXPECT_FALSE(configuration.main_process_ip);
}

TEST_F(ConfigurationTest, WarnsOfWhatItIgnores) {
  Read("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\ndynamo_config: {}\nnum_process: 2\n");
  EXPECT_EQ(warnings_, (Words{"file.yaml:2:1: 'fsdp_config' has no meaning for accelerate-cpp and is ignored",
                              "file.yaml:5:1: unknown key 'num_process' is ignored",
                              "file.yaml: distributed_type FSDP is run as plain data parallelism"}));
}

TEST_F(ConfigurationTest, MultiCpuMeansCpuUnlessSaid) {
  EXPECT_EQ(Read("distributed_type: MULTI_CPU\n").use_cpu, true);
  EXPECT_EQ(Read("distributed_type: MULTI_CPU\nuse_cpu: false\n").use_cpu, false);
}

TEST_F(ConfigurationTest, NumberOfProcessesMayBeLeftToTheCommandLine) {
  EXPECT_FALSE(Read("num_processes: -1\n").num_processes);
}

TEST_F(ConfigurationTest, EmptyFileSetsNothing) {
  EXPECT_FALSE(Read("").num_processes);
  EXPECT_FALSE(Read("# nothing\n").num_processes);
}

TEST_F(ConfigurationTest, ErrorsNameThePlace) {
  EXPECT_EQ(ReadError("debug: false\nmixed_precision: fp8\n"),
            "file.yaml:2:18: mixed_precision: 'fp8' is not one of no, fp16, bf16");
  EXPECT_EQ(ReadError("num_processes: two\n"),
            "file.yaml:1:16: num_processes: 'two' is not a whole number from 1 to 1048576");
  EXPECT_EQ(ReadError("use_cpu: perhaps\n"), "file.yaml:1:10: use_cpu: 'perhaps' is neither true nor false");
  EXPECT_EQ(ReadError("main_process_port: 70000\n"),
            "file.yaml:1:20: main_process_port: '70000' is not a whole number from 0 to 65535");
  EXPECT_EQ(ReadError("gpu_ids: [0, 1]\n"), "file.yaml:1:10: gpu_ids takes one value, not a list or a map");
  EXPECT_EQ(ReadError("- debug\n"), "file.yaml:1:1: expected lines of 'key: value'");
  EXPECT_EQ(ReadError("debug: true\ndebug: false\n"), "file.yaml:2:1: key 'debug' appears twice");
  EXPECT_EQ(ReadError("debug: true\nnum_processes: [1\n").rfind("file.yaml:3:1: ", 0), 0);
}

TEST_F(ConfigurationTest, CannotReadAFolder) {
  EXPECT_THROW(FromFile(folder_.string(), warnings_), UsageError);
  EXPECT_THROW(FromFile("missing.yaml", warnings_), UsageError);
}

TEST_F(ConfigurationTest, FlagBeatsEnvironmentBeatsFile) {
  WriteAllThree();
  EXPECT_EQ(ResolveHere("given.yaml").configuration.num_processes, 3);
  variables_["ACCELERATE_NUM_PROCESSES"] = "2";
  EXPECT_EQ(ResolveHere("given.yaml").configuration.num_processes, 2);
  Assign(flags_, *FindField("num_processes"), "1", "--num_processes");
  const ResolvedConfiguration resolved = ResolveHere("given.yaml");
  EXPECT_EQ(resolved.configuration.num_processes, 1);
  EXPECT_EQ(resolved.configuration.sources.at("num_processes"), "--num_processes");
  EXPECT_EQ(resolved.path, "given.yaml");
}

TEST_F(ConfigurationTest, FalseIsAValueToo) {
  Write("accelerate.yaml", "use_cpu: true\n");
  variables_["ACCELERATE_USE_CPU"] = "0";
  EXPECT_EQ(ResolveHere().configuration.use_cpu, false);
}

TEST_F(ConfigurationTest, FilesAreTriedInOrder) {
  WriteAllThree();
  EXPECT_EQ(ResolveHere("given.yaml").configuration.num_processes, 3);
  EXPECT_EQ(ResolveHere().configuration.num_processes, 4);
  EXPECT_EQ(ResolveHere().path, "./accelerate.yaml");
  fs::remove("accelerate.yaml");
  EXPECT_EQ(ResolveHere().configuration.num_processes, 5);
  EXPECT_EQ(ResolveHere("", true).path, "");
  EXPECT_FALSE(ResolveHere("", true).configuration.num_processes);
  EXPECT_THROW(ResolveHere("missing.yaml"), UsageError);
}

TEST_F(ConfigurationTest, OneFileIsInForceAndNotSeveral) {
  Write("accelerate.yaml", "debug: true\n");
  Write("home/.config/accelerate-cpp/default_config.yaml", "num_processes: 5\n");
  EXPECT_FALSE(ResolveHere().configuration.num_processes);
}

TEST_F(ConfigurationTest, DefaultPathFollowsXdg) {
  const std::string home = (folder_ / "home").string();
  EXPECT_EQ(DefaultConfigurationPath(environment()), home + "/.config/accelerate-cpp/default_config.yaml");
  variables_["XDG_CONFIG_HOME"] = "/elsewhere";
  EXPECT_EQ(DefaultConfigurationPath(environment()), "/elsewhere/accelerate-cpp/default_config.yaml");
  variables_["XDG_CONFIG_HOME"] = "relative";
  EXPECT_EQ(DefaultConfigurationPath(environment()), home + "/.config/accelerate-cpp/default_config.yaml");
  variables_.clear();
  EXPECT_THROW(DefaultConfigurationPath(environment()), UsageError);
  EXPECT_EQ(ResolveHere().path, "");
}

TEST_F(ConfigurationTest, EnvironmentErrorsNameTheVariable) {
  variables_["ACCELERATE_MIXED_PRECISION"] = "half";
  try {
    ResolveHere();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "environment variable ACCELERATE_MIXED_PRECISION: 'half' is not one of no, fp16, bf16");
  }
}

TEST_F(ConfigurationTest, EmptyVariablesCountForCudaOnly) {
  variables_["ACCELERATE_USE_CPU"] = "";
  variables_["CUDA_VISIBLE_DEVICES"] = "";
  const Configuration configuration = FromEnvironment(environment());
  EXPECT_FALSE(configuration.use_cpu);
  EXPECT_EQ(configuration.gpu_ids, "");
}

TEST_F(ConfigurationTest, WhatIsWrittenIsReadBack) {
  Configuration configuration;
  const Words texts = {"MULTI_CPU", "6", "2", "1", "10.0.0.7", "29501", "0,1", "no", "true", "false"};
  ASSERT_EQ(texts.size(), Fields().size());
  for (std::size_t i = 0; i < texts.size(); ++i) Assign(configuration, Fields()[i], texts[i], "test");
  const std::string yaml = ToYaml(configuration);
  // Bare, these would be the booleans of YAML 1.1 to the Python package.
  EXPECT_NE(yaml.find("mixed_precision: 'no'\n"), std::string::npos) << yaml;
  EXPECT_NE(yaml.find("num_processes: 6\n"), std::string::npos) << yaml;
  const Configuration again = Read(yaml);
  EXPECT_EQ(warnings_, Words{});
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(ValueText(again, Fields()[i]), texts[i]);
}

TEST_F(ConfigurationTest, WritingReplacesTheFileBehindALink) {
  Write("kept/real.yaml", "old");
  fs::create_symlink("kept/real.yaml", "link.yaml");
  WriteFileAtomically("link.yaml", "new\n", "--flag");
  EXPECT_TRUE(fs::is_symlink("link.yaml"));
  std::ostringstream text;
  text << std::ifstream("kept/real.yaml").rdbuf();
  EXPECT_EQ(text.str(), "new\n");
  EXPECT_EQ(std::distance(fs::directory_iterator("kept"), fs::directory_iterator()), 1);
}

TEST_F(ConfigurationTest, WritingGoesToWhereALinkLeads) {
  fs::create_symlink("new.yaml", "link.yaml");  // to what isn't there yet
  WriteFileAtomically("link.yaml", "new\n", "--flag");
  EXPECT_TRUE(fs::is_symlink("link.yaml"));
  EXPECT_TRUE(fs::is_regular_file("new.yaml"));
}

TEST_F(ConfigurationTest, WritingLeavesPipesInPlace) {
  ASSERT_EQ(mkfifo("pipe", 0600), 0);
  const int reader = open("pipe", O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  CheckWritable("pipe", "--flag");
  WriteFileAtomically("pipe", "text\n", "--flag");
  std::array<char, 16> buffer{};
  EXPECT_EQ(read(reader, buffer.data(), buffer.size()), 5);
  close(reader);
  EXPECT_TRUE(fs::is_fifo("pipe"));
}

TEST_F(ConfigurationTest, WritingMakesTheFolderOrSaysWhyNot) {
  const mode_t mask = umask(022);
  WriteFileAtomically("a/b/c.yaml", "text\n", "--flag");
  umask(mask);
  EXPECT_EQ(fs::status("a/b/c.yaml").permissions(), fs::perms(0644));
  Write("file", "");
  EXPECT_THROW(WriteFileAtomically("file/c.yaml", "text\n", "--flag"), UsageError);
  EXPECT_THROW(WriteFileAtomically("a", "text\n", "--flag"), UsageError);
}

}  // namespace
}  // namespace accelerate::launch
