#include "configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace accelerate::launch {

namespace {

namespace fs = std::filesystem;

constexpr int kMostProcesses = 1 << 20;

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

int ParseInteger(const Field& field, const std::string& text) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < field.minimum || number > field.maximum) {
    throw std::invalid_argument(
        fmt::format("'{}' is not a whole number from {} to {}", text, field.minimum, field.maximum));
  }
  return number;
}

bool ParseBool(const std::string& text) {
  const std::string lower = Lower(text);
  for (const char* word : {"true", "yes", "y", "on", "t", "1"}) {
    if (lower == word) return true;
  }
  for (const char* word : {"false", "no", "n", "off", "f", "0"}) {
    if (lower == word) return false;
  }
  throw std::invalid_argument(fmt::format("'{}' is neither true nor false", text));
}

std::string ParseText(const Field& field, const std::string& text) {
  if (field.allowed.empty()) return text;
  for (const std::string& value : field.allowed) {
    if (Lower(value) == Lower(text)) return value;
  }
  throw std::invalid_argument(fmt::format("'{}' is not one of {}", text, fmt::join(field.allowed, ", ")));
}

// Keys that the Python package writes and that do not concern this launcher. One that holds nothing, or what the
// package writes when nobody asked for anything, is passed over in silence: warning about each would bury the warnings
// that matter.
const std::map<std::string, std::vector<std::string>>& ForeignKeys() {
  static const std::map<std::string, std::vector<std::string>> keys = {
      {"compute_environment", {"LOCAL_MACHINE"}},
      {"commands", {}},
      {"command_file", {}},
      {"deepspeed_config", {}},
      {"downcast_bf16", {"no", "false"}},
      {"dynamo_config", {}},
      {"enable_cpu_affinity", {"false"}},
      {"fp8_config", {}},
      {"fsdp_config", {}},
      {"ipex_config", {}},
      {"main_training_function", {"main"}},
      {"megatron_lm_config", {}},
      {"mpirun_config", {}},
      {"parallelism_config", {}},
      {"rdzv_backend", {"static", "c10d"}},
      {"same_network", {"true", "false"}},
      {"tpu_env", {}},
      {"tpu_name", {}},
      {"tpu_use_cluster", {"false"}},
      {"tpu_use_sudo", {"false"}},
      {"tpu_vm", {}},
      {"tpu_zone", {}},
  };
  return keys;
}

bool IsEmpty(const YAML::Node& node) {
  return node.IsNull() || (node.IsScalar() && node.Scalar().empty()) || (!node.IsScalar() && node.size() == 0);
}

std::string Place(const std::string& path, const YAML::Mark& mark) {
  // yaml-cpp counts from zero, editors from one; a null mark stands for "somewhere".
  if (mark.is_null()) return path;
  return fmt::format("{}:{}:{}", path, mark.line + 1, mark.column + 1);
}

void ReadForeignKey(const std::string& place, const std::string& key, const YAML::Node& value,
                    std::vector<std::string>& warnings) {
  const auto known = ForeignKeys().find(key);
  if (known == ForeignKeys().end()) {
    warnings.push_back(fmt::format("{}: unknown key '{}' is ignored", place, key));
    return;
  }
  if (IsEmpty(value)) return;
  if (value.IsScalar()) {
    for (const std::string& usual : known->second) {
      if (Lower(value.Scalar()) == Lower(usual)) return;
    }
  }
  warnings.push_back(fmt::format("{}: '{}' has no meaning for accelerate-cpp and is ignored", place, key));
}

void ReadKey(const std::string& path, const YAML::Node& name, const YAML::Node& value, Configuration& configuration,
             std::vector<std::string>& warnings) {
  const std::string place = Place(path, name.Mark());
  if (!name.IsScalar()) throw UsageError(fmt::format("{}: a key must be a single word", place));
  const std::string& key = name.Scalar();
  const Field* field = FindField(key);
  if (field == nullptr) return ReadForeignKey(place, key, value, warnings);
  if (IsEmpty(value)) return;
  const std::string value_place = Place(path, value.Mark());
  if (!value.IsScalar()) throw UsageError(fmt::format("{}: {} takes one value, not a list or a map", value_place, key));
  // The Python package writes -1 for "must be passed on the command line".
  if (key == "num_processes" && value.Scalar() == "-1") return;
  try {
    Assign(configuration, *field, value.Scalar(), path);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {}: {}", value_place, key, error.what()));
  }
}

// What distributed_type says beyond the number of processes.
void ApplyDistributedType(const std::string& path, Configuration& configuration, std::vector<std::string>& warnings) {
  const std::string type = configuration.distributed_type.value_or("NO");
  if (type == "MULTI_CPU" && !configuration.use_cpu) {
    configuration.use_cpu = true;
    configuration.sources["use_cpu"] = path;
  } else if (type != "NO" && type != "MULTI_CPU" && type != "MULTI_GPU") {
    warnings.push_back(fmt::format("{}: distributed_type {} is run as plain data parallelism", path, type));
  }
}

// What says where a machine stands among others has no meaning for a stronger wish that there be one.
Configuration MergeMachines(const Configuration& stronger, Configuration weaker) {
  if (stronger.num_machines == 1 && weaker.num_machines != 1) {
    weaker.machine_rank.reset();
    weaker.main_process_ip.reset();
  }
  return Merge(stronger, weaker);
}

}  // namespace

const std::vector<Field>& Fields() {
  static const std::vector<Field> fields = {
      {"distributed_type",
       "",
       "",
       "",
       &Configuration::distributed_type,
       0,
       0,
       {"NO", "MULTI_CPU", "MULTI_GPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA", "MULTI_XPU", "MULTI_HPU",
        "MULTI_NEURON", "FSDP", "DEEPSPEED", "MEGATRON_LM", "XLA", "TP"}},
      {"num_processes",
       "ACCELERATE_NUM_PROCESSES",
       "num_processes",
       "processes in all, over all machines (default: one for each CUDA device, else 1)",
       &Configuration::num_processes,
       1,
       kMostProcesses,
       {}},
      {"num_machines",
       "ACCELERATE_NUM_MACHINES",
       "num_machines",
       "machines that train together (default: 1)",
       &Configuration::num_machines,
       1,
       kMostProcesses,
       {}},
      {"machine_rank",
       "ACCELERATE_MACHINE_RANK",
       "machine_rank",
       "number of this machine, from 0",
       &Configuration::machine_rank,
       0,
       kMostProcesses,
       {}},
      {"main_process_ip",
       "ACCELERATE_MAIN_PROCESS_IP",
       "main_process_ip",
       "address of machine 0 (default on one machine: 127.0.0.1)",
       &Configuration::main_process_ip,
       0,
       0,
       {}},
      {"main_process_port",
       "ACCELERATE_MAIN_PROCESS_PORT",
       "main_process_port",
       "port of rank 0 (default: a free one on one machine, else 29500); 0: a free one",
       &Configuration::main_process_port,
       0,
       65535,
       {}},
      {"gpu_ids",
       "CUDA_VISIBLE_DEVICES",
       "gpu_ids",
       "CUDA devices of this machine to use: all, or as 0,1,3",
       &Configuration::gpu_ids,
       0,
       0,
       {}},
      {"mixed_precision",
       "ACCELERATE_MIXED_PRECISION",
       "mixed_precision",
       "no, fp16 or bf16 (default: what the program says)",
       &Configuration::mixed_precision,
       0,
       0,
       {"no", "fp16", "bf16"}},
      {"use_cpu",
       "ACCELERATE_USE_CPU",
       "cpu",
       "train on the CPU and hide the CUDA devices",
       &Configuration::use_cpu,
       0,
       0,
       {}},
      {"debug",
       "ACCELERATE_DEBUG_MODE",
       "debug",
       "check before each collective that all ranks agree on it",
       &Configuration::debug,
       0,
       0,
       {}},
  };
  return fields;
}

const Field* FindField(const std::string& key) {
  for (const Field& field : Fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

bool HasValue(const Configuration& configuration, const Field& field) {
  return std::visit([&](auto member) { return (configuration.*member).has_value(); }, field.member);
}

std::string ValueText(const Configuration& configuration, const Field& field) {
  return std::visit([&](auto member) { return fmt::format("{}", (configuration.*member).value()); }, field.member);
}

void Assign(Configuration& configuration, const Field& field, const std::string& text, const std::string& source) {
  if (const auto* integer = std::get_if<std::optional<int> Configuration::*>(&field.member)) {
    configuration.** integer = ParseInteger(field, text);
  } else if (const auto* boolean = std::get_if<std::optional<bool> Configuration::*>(&field.member)) {
    configuration.** boolean = ParseBool(text);
  } else {
    configuration.*std::get<std::optional<std::string> Configuration::*>(field.member) = ParseText(field, text);
  }
  configuration.sources[field.key] = source;
}

Configuration Merge(const Configuration& stronger, const Configuration& weaker) {
  Configuration merged = stronger;
  for (const Field& field : Fields()) {
    if (HasValue(stronger, field) || !HasValue(weaker, field)) continue;
    std::visit([&](auto member) { merged.*member = weaker.*member; }, field.member);
    merged.sources[field.key] = weaker.sources.at(field.key);
  }
  return merged;
}

std::optional<std::string> ProcessEnvironment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value == nullptr ? std::nullopt : std::make_optional<std::string>(value);
}

Configuration FromEnvironment(const Environment& environment) {
  Configuration configuration;
  for (const Field& field : Fields()) {
    if (field.variable.empty()) continue;
    const std::optional<std::string> text = environment(field.variable);
    // An empty variable is an unset one, save for CUDA, where it hides every device.
    if (!text || (text->empty() && field.key != "gpu_ids")) continue;
    try {
      Assign(configuration, field, *text, field.variable);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("environment variable {}: {}", field.variable, error.what()));
    }
  }
  return configuration;
}

Configuration FromFile(const std::string& path, std::vector<std::string>& warnings) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw UsageError(fmt::format("the configuration {} is a folder", path));
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(text << file.rdbuf()))) {
    throw UsageError(fmt::format("cannot read the configuration {}: {}", path, std::strerror(errno)));
  }

  Configuration configuration;
  try {
    const YAML::Node root = YAML::Load(text.str());
    if (root.IsNull()) return configuration;
    if (!root.IsMap()) throw UsageError(fmt::format("{}: expected lines of 'key: value'", Place(path, root.Mark())));
    std::set<std::string> seen;
    for (const auto& entry : root) {
      ReadKey(path, entry.first, entry.second, configuration, warnings);
      if (!seen.insert(entry.first.Scalar()).second) {
        throw UsageError(
            fmt::format("{}: key '{}' appears twice", Place(path, entry.first.Mark()), entry.first.Scalar()));
      }
    }
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}: {}", Place(path, error.mark), error.msg));
  }
  ApplyDistributedType(path, configuration, warnings);
  return configuration;
}

std::string ToYaml(const Configuration& configuration) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "compute_environment" << YAML::Value << "LOCAL_MACHINE";
  for (const Field& field : Fields()) {
    if (!HasValue(configuration, field)) continue;
    out << YAML::Key << field.key << YAML::Value;
    // Quoted, as a bare NO or no is a boolean to the Python package's YAML reader.
    if (std::holds_alternative<std::optional<std::string> Configuration::*>(field.member)) out << YAML::SingleQuoted;
    out << ValueText(configuration, field);
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

std::string DefaultConfigurationPath(const Environment& environment) {
  const std::string file = "accelerate-cpp/default_config.yaml";
  // The XDG specification has relative paths ignored.
  const std::string config_home = environment("XDG_CONFIG_HOME").value_or("");
  if (fs::path(config_home).is_absolute()) return config_home + "/" + file;
  const std::string home = environment("HOME").value_or("");
  if (home.empty()) throw UsageError("neither XDG_CONFIG_HOME nor HOME is set; name a file with --config_file");
  return home + "/.config/" + file;
}

std::string FindConfigurationFile(const std::string& config_file, const Environment& environment) {
  std::error_code unreadable;
  if (!config_file.empty()) {
    if (fs::exists(config_file, unreadable)) return config_file;
    throw UsageError(fmt::format(
        "there is no configuration {0}; write one with: accelerate-cpp config --config_file {0}", config_file));
  }
  const std::string local = "./accelerate.yaml";
  if (fs::exists(local, unreadable)) return local;
  if (environment("HOME").value_or("").empty() && environment("XDG_CONFIG_HOME").value_or("").empty()) return "";
  const std::string user = DefaultConfigurationPath(environment);
  return fs::exists(user, unreadable) ? user : "";
}

ResolvedConfiguration Resolve(const Configuration& flags, const std::string& config_file, bool no_config,
                              const Environment& environment) {
  ResolvedConfiguration resolved;
  resolved.configuration = MergeMachines(flags, FromEnvironment(environment));
  if (no_config) return resolved;
  resolved.path = FindConfigurationFile(config_file, environment);
  if (resolved.path.empty()) return resolved;
  resolved.configuration = MergeMachines(resolved.configuration, FromFile(resolved.path, resolved.warnings));
  return resolved;
}

}  // namespace accelerate::launch
