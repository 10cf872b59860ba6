#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace accelerate::launch {

/// Something the user can put right: a flag, a variable or a file. The command prints it and exits with 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How training is to be launched. A value that nobody has set is empty: `launch` then chooses, or leaves the choice to
/// the program.
struct Configuration {
  std::optional<std::string> distributed_type;
  std::optional<int> num_processes;  // of all machines together
  std::optional<int> num_machines;
  std::optional<int> machine_rank;
  std::optional<std::string> main_process_ip;
  std::optional<int> main_process_port;
  std::optional<std::string> gpu_ids;  // "all", or as CUDA_VISIBLE_DEVICES
  std::optional<std::string> mixed_precision;
  std::optional<bool> use_cpu;
  std::optional<bool> debug;

  std::map<std::string, std::string> sources;  // key of a value that is set -> where it came from
};

/// One key of the configuration: its name in the file (Accelerate's name), the environment variable and the flag that
/// also set it (empty: none), and the values it takes.
struct Field {
  std::string key;
  std::string variable;
  std::string flag;
  std::string help;
  std::variant<std::optional<int> Configuration::*, std::optional<bool> Configuration::*,
               std::optional<std::string> Configuration::*>
      member;
  int minimum = 0;
  int maximum = 0;
  std::vector<std::string> allowed;  // of a text; empty: any
};

/// All keys, in the order in which the file lists them.
const std::vector<Field>& Fields();
const Field* FindField(const std::string& key);

bool HasValue(const Configuration& configuration, const Field& field);
std::string ValueText(const Configuration& configuration, const Field& field);

/// Sets a value from its text, whatever it was. Throws std::invalid_argument with the reason when the text is no value
/// of this key.
void Assign(Configuration& configuration, const Field& field, const std::string& text, const std::string& source);

/// Takes from `weaker` what `stronger` does not set.
Configuration Merge(const Configuration& stronger, const Configuration& weaker);

using Environment = std::function<std::optional<std::string>(const std::string& variable)>;
std::optional<std::string> ProcessEnvironment(const std::string& variable);

/// Throws UsageError naming the variable.
Configuration FromEnvironment(const Environment& environment);

/// Reads YAML or JSON, ours or the Python package's. Throws UsageError with `path:line:column`. Keys that mean nothing
/// here are reported in `warnings` and are otherwise without effect.
Configuration FromFile(const std::string& path, std::vector<std::string>& warnings);

/// The YAML text of what is set, readable by the Python package as well.
std::string ToYaml(const Configuration& configuration);

/// Where `config` writes and where the last look-up is made. Throws UsageError when the environment names no home.
std::string DefaultConfigurationPath(const Environment& environment);

/// The file in force: `config_file` when given, else ./accelerate.yaml, else the user's own; empty when there is none.
std::string FindConfigurationFile(const std::string& config_file, const Environment& environment);

/// Flags, environment and file together.
struct ResolvedConfiguration {
  Configuration configuration;
  std::string path;  // empty: no file
  std::vector<std::string> warnings;
};
ResolvedConfiguration Resolve(const Configuration& flags, const std::string& config_file, bool no_config,
                              const Environment& environment);

}  // namespace accelerate::launch
