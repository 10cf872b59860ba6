#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <system_error>

#include "command.h"
#include "machine.h"
#include "plan.h"
#include "process_group.h"

namespace accelerate::launch {

namespace {

struct LaunchOptions {
  ConfigurationFlags configuration;
  std::string config_file;
  bool no_config = false;
  std::string log_dir;
  double grace_period = 30;
  bool dry_run = false;
  bool quiet = false;
};

// As one would type it in a shell.
std::string Quoted(const std::string& word) {
  constexpr const char* kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,@%+";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

void PrintPlan(const Plan& plan, const std::vector<std::string>& program) {
  for (const auto& environment : plan.environments) {
    std::string line;
    for (const auto& [name, value] : environment) line += name + "=" + (value.empty() ? "" : Quoted(value)) + " ";
    for (const std::string& word : program) line += Quoted(word) + " ";
    line.pop_back();
    fmt::print("{}\n", line);
  }
}

void Announce(const ResolvedConfiguration& resolved, const Plan& plan, bool quiet) {
  for (const std::string& warning : resolved.warnings) Say("warning: {}", warning);
  for (const std::string& warning : plan.warnings) Say("warning: {}", warning);
  if (quiet) return;
  Say("configuration: {}", resolved.path.empty() ? "no file" : resolved.path);
  if (!plan.num_processes_reason.empty()) {
    Say("num_processes: {} ({}; change it with --num_processes)", plan.num_processes, plan.num_processes_reason);
  }
}

// The port is settled last: between here and rank 0's start somebody else may take it.
void SettlePort(Plan& plan) {
  if (plan.machine_rank != 0) return;
  plan.main_process_port = FreePort(plan.main_process_port);
}

// The runtime writes the files, in each rank; a folder that cannot be had is better found here, once.
void SettleLogFolder(Plan& plan, const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("--log_dir: cannot make the folder {}: {}", folder, error.message()));
  for (auto& environment : plan.environments) environment.emplace_back("ACCELERATE_STDOUT", folder);
}

// The runtime's own choice of a folder; ranks that end well leave nothing in it, those that are killed can't tell.
void NameOutputFolder(const Plan& plan) {
  const std::string temporary = ProcessEnvironment("TMPDIR").value_or("/tmp");
  const std::string folder = fmt::format("{}/accelerate-{}-{}", temporary, getuid(), plan.main_process_port);
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) Say("what other ranks wrote to standard output is in {}", folder);
}

GroupCommand MakeGroupCommand(const LaunchOptions& options, const Plan& plan, const std::string& path,
                              const std::vector<std::string>& program) {
  GroupCommand command;
  command.program = path;
  command.arguments = program;
  command.grace = std::chrono::milliseconds(std::lround(options.grace_period * 1000));
  int rank = plan.first_rank();
  for (const auto& environment : plan.environments) {
    command.processes.push_back({rank, rank == 0, environment});
    ++rank;
  }
  return command;
}

int Launch(const LaunchOptions& options, const std::vector<std::string>& program) {
  if (program.empty())
    throw UsageError("no program to launch; as in: accelerate-cpp launch -n 2 -- ./train --epochs 3");
  if (program[0][0] == '-') throw UsageError(fmt::format("{} is not a program", program[0]));
  if (options.no_config && !options.config_file.empty()) {
    throw UsageError("--no_config and --config_file exclude each other");
  }
  const Configuration flags = options.configuration.Read();
  const ResolvedConfiguration resolved = Resolve(flags, options.config_file, options.no_config, ProcessEnvironment);
  const Machine machine = {CountCpus(), CountCudaDevices("all")};
  Plan plan = MakePlan(resolved.configuration, machine);
  Announce(resolved, plan, options.quiet);
  const std::string path = FindProgram(program[0], ProcessEnvironment);
  SettlePort(plan);
  SetEnvironments(plan, resolved.configuration, machine, ProcessEnvironment);
  SettleLogFolder(plan, options.dry_run ? "" : options.log_dir);
  if (options.dry_run) {
    PrintPlan(plan, program);
    return 0;
  }
  const int exit_code = RunProcessGroup(MakeGroupCommand(options, plan, path, program)).exit_code;
  if (exit_code != 0) NameOutputFolder(plan);
  return exit_code;
}

}  // namespace

void AddLaunchCommand(CLI::App& app, const std::vector<std::string>& program, Action& action) {
  CLI::App* command =
      app.add_subcommand("launch", "Run a program, one process per rank: launch [flags] [--] PROGRAM [ARGUMENTS]");
  auto options = std::make_shared<LaunchOptions>();
  options->configuration.AddTo(*command);
  command->add_option(BothSpellings("config_file"), options->config_file, "configuration file to read")
      ->option_text("FILE");
  command->add_flag(BothSpellings("no_config"), options->no_config, "read no configuration file");
  command
      ->add_option(BothSpellings("log_dir"), options->log_dir,
                   "folder where ranks other than 0 write their standard output, a file each")
      ->option_text("FOLDER");
  command
      ->add_option(BothSpellings("grace_period"), options->grace_period,
                   "seconds that a rank has to stop before it is killed (default: 30)")
      ->option_text("SECONDS")
      ->check(CLI::Range(0.0, 86400.0));
  command->add_flag(BothSpellings("dry_run"), options->dry_run, "print the command line of each rank and stop");
  command->add_flag("--quiet,-q", options->quiet, "do not say what is in force; warnings and failures are still shown");
  command->footer(
      "A flag overrules the environment (ACCELERATE_NUM_PROCESSES, ...; CUDA_VISIBLE_DEVICES for --gpu_ids), which\n"
      "overrules the configuration: --config_file, else ./accelerate.yaml, else the file that `config` writes.\n\n"
      "Rank 0 has the terminal; lines of the other ranks begin with [rank 1]. The first rank to fail stops the "
      "others.\n\n"
      "Exit code: 0; 2 for a mistake in flags or configuration, or a program that cannot be started; else that of the\n"
      "first rank to fail, or 128 + the number of the signal that killed it.");
  command->callback(
      [options, &program, &action] { action = [options, &program] { return Launch(*options, program); }; });
}

}  // namespace accelerate::launch
