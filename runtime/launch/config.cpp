#include <algorithm>
#include <filesystem>

#include "command.h"
#include "machine.h"
#include "output_file.h"
#include "plan.h"
#include "wizard.h"

namespace accelerate::launch {

namespace {

struct ConfigOptions {
  ConfigurationFlags configuration;
  std::string config_file;
  bool force = false;
};

std::string TargetPath(const ConfigOptions& options) {
  return options.config_file.empty() ? DefaultConfigurationPath(ProcessEnvironment) : options.config_file;
}

bool Exists(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::exists(path, unreadable);
}

// Which file launch will read now, and why not this one.
std::string InForce(const std::string& path) {
  const std::string found = FindConfigurationFile("", ProcessEnvironment);
  std::error_code unreadable;
  if (!found.empty() && std::filesystem::equivalent(found, path, unreadable)) {
    return fmt::format("In force: {}", found);
  }
  return fmt::format("In force: {}; launch reads {} if told to: --config_file {}",
                     found.empty() ? "no file" : fmt::format("{}, which comes before", found), path, path);
}

int Save(const Configuration& configuration, const std::string& path) {
  // What launch would refuse, or warn of.
  const Plan plan = MakePlan(configuration, ThisMachine(ProcessEnvironment));
  for (const std::string& warning : plan.warnings) Say("warning: {}", warning);
  WriteFileAtomically(path, ToYaml(configuration), "--config_file");
  fmt::print("Wrote {}\n{}\n", path, InForce(path));
  return 0;
}

int RunWizard(const ConfigOptions& options) {
  const std::string path = TargetPath(options);
  Wizard wizard(stdin, stdout);
  if (Exists(path) && !options.force && !wizard.AskYesNo(fmt::format("{} exists. Replace it?", path), false)) {
    fmt::print("Left it as it was\n");
    return 0;
  }
  return Save(wizard.AskConfiguration(CountVisibleCudaDevices(ProcessEnvironment), CountCpus()), path);
}

int WriteDefault(const ConfigOptions& options) {
  const std::string path = TargetPath(options);
  if (Exists(path) && !options.force) throw UsageError(fmt::format("{} exists; --force replaces it", path));
  Configuration configuration = options.configuration.Read();
  const int devices = VisibleDevices(configuration, ThisMachine(ProcessEnvironment));
  if (!configuration.num_machines) configuration.num_machines = 1;
  if (!configuration.num_processes) configuration.num_processes = std::max(1, devices) * *configuration.num_machines;
  // Of several machines nobody else can know which this one is: launch asks for it as well.
  if (!configuration.machine_rank && configuration.num_machines == 1) configuration.machine_rank = 0;
  if (!configuration.use_cpu) configuration.use_cpu = devices == 0;
  if (!configuration.mixed_precision) configuration.mixed_precision = "no";
  if (!configuration.debug) configuration.debug = false;
  configuration.distributed_type = DistributedType(configuration);
  return Save(configuration, path);
}

void AddCommonFlags(CLI::App& command, ConfigOptions& options) {
  command
      .add_option(BothSpellings("config_file"), options.config_file,
                  "file to write (default: accelerate-cpp/default_config.yaml in $XDG_CONFIG_HOME or ~/.config)")
      ->option_text("FILE");
  command.add_flag("--force", options.force, "replace a file that exists");
}

}  // namespace

void AddConfigCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("config", "Write the configuration that launch reads, from answers to questions");
  auto options = std::make_shared<ConfigOptions>();
  AddCommonFlags(*command, *options);

  CLI::App* standard =
      command->add_subcommand("default", "Write it without asking, for this machine and the flags given");
  options->configuration.AddTo(*standard);
  AddCommonFlags(*standard, *options);  // the same ones: they may stand on either side of "default"

  const char* codes = "Exit code: 0; 2 for a mistake in flags or answers, or a file that exists or cannot be written.";
  command->footer(codes);
  standard->footer(codes);
  // The callbacks run from the inside out, so "default" must not be overruled by its parent.
  standard->callback([options, &action] { action = [options] { return WriteDefault(*options); }; });
  command->callback([options, &action] {
    if (!action) action = [options] { return RunWizard(*options); };
  });
}

}  // namespace accelerate::launch
