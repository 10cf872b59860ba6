#include "launch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "machine.h"
#include "plan.h"
#include "temporary_folder.h"

namespace accelerate::launch {

namespace {

// What the runtime waits for when nobody says otherwise.
constexpr std::chrono::seconds kUsualTimeout{600};

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
void SettlePort(Plan& plan, int wanted) {
  if (plan.machine_rank != 0) return;
  plan.main_process_port = FreePort(wanted);
}

// The runtime writes the files, in each rank; a folder that cannot be had is better found here, once.
void MakeLogFolder(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("--log_dir: cannot make the folder {}: {}", folder, error.message()));
}

void Set(Variables& environment, const std::string& name, const std::string& value) {
  const auto found =
      std::find_if(environment.begin(), environment.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == environment.end()) {
    environment.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

// What the options say beyond the configuration.
void ApplyOptions(const LaunchOptions& options, int restart, Plan& plan) {
  for (Variables& environment : plan.environments) {
    if (options.cpu_threads) Set(environment, "OMP_NUM_THREADS", std::to_string(*options.cpu_threads));
    if (options.timeout) Set(environment, "ACCELERATE_TIMEOUT", std::to_string(*options.timeout));
    if (options.max_restarts > 0) {
      Set(environment, "TORCHELASTIC_RESTART_COUNT", std::to_string(restart));
      Set(environment, "TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts));
    }
    if (!options.log_dir.empty() && !options.dry_run) Set(environment, "ACCELERATE_STDOUT", options.log_dir);
  }
}

// How long the ranks wait for each other; what a program says by itself is not known here.
std::chrono::seconds Timeout(const LaunchOptions& options) {
  if (options.timeout) return std::chrono::seconds(*options.timeout);
  const std::string text = ProcessEnvironment("ACCELERATE_TIMEOUT").value_or("");
  const char* end = text.data() + text.size();
  int seconds = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  return error == std::errc() && stop == end ? std::chrono::seconds(seconds) : kUsualTimeout;
}

// The runtime's own choice of a folder; ranks that end well leave nothing in it, those that are killed can't tell.
void NameOutputFolder(const Plan& plan) {
  const std::string temporary = ProcessEnvironment("TMPDIR").value_or("/tmp");
  const std::string folder = fmt::format("{}/accelerate-{}-{}", temporary, getuid(), plan.main_process_port);
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) Say("what other ranks wrote to standard output is in {}", folder);
}

GroupCommand MakeGroupCommand(const LaunchOptions& options, int restart, const Plan& plan, const std::string& path,
                              const std::vector<std::string>& program, const std::string& error_folder) {
  GroupCommand command;
  command.program = path;
  command.arguments = program;
  command.grace = std::chrono::milliseconds(std::lround(options.grace_period * 1000));
  command.timeout = Timeout(options);
  int rank = plan.first_rank();
  for (const Variables& environment : plan.environments) {
    RankProcess process{rank, rank == 0, environment, fmt::format("{}/rank{}.json", error_folder, rank), "", false};
    process.environment.emplace_back("TORCHELASTIC_ERROR_FILE", process.error_file);
    if (!options.log_dir.empty() && !process.is_main) {
      process.log_file = fmt::format("{}/rank{}.err", options.log_dir, rank);
      process.append_log = restart > 0;
    }
    command.processes.push_back(std::move(process));
    ++rank;
  }
  return command;
}

void CheckOptions(const LaunchOptions& options, const Configuration& configuration) {
  if (options.no_config && !options.config_file.empty()) {
    throw UsageError("--no_config and --config_file exclude each other");
  }
  if (options.multi_gpu && configuration.use_cpu.value_or(false)) {
    throw UsageError("--multi_gpu and --cpu exclude each other");
  }
}

}  // namespace

void LaunchOptions::AddTo(CLI::App& command, bool whole) {
  configuration.AddTo(command);
  command.add_option(BothSpellings("config_file"), config_file, "configuration file to read")->option_text("FILE");
  command.add_flag(BothSpellings("no_config"), no_config, "read no configuration file");
  command
      .add_option("--timeout", timeout,
                  "seconds that ranks wait for each other before the job fails (default: ACCELERATE_TIMEOUT, else 600)")
      ->option_text("SECONDS")
      ->check(CLI::Range(1, 1 << 20));
  if (!whole) return;
  command.add_flag(BothSpellings("multi_gpu"), multi_gpu,
                   "a CUDA device for each process: the default where there are any");
  command
      .add_option(BothSpellings("num_cpu_threads_per_process"), cpu_threads,
                  "threads of each process (default: OMP_NUM_THREADS, else an equal share of the CPUs)")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 20));
  command
      .add_option(BothSpellings("max_restarts"), max_restarts,
                  "how often all ranks are started again after a failure (default: 0)")
      ->option_text("N")
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option(BothSpellings("log_dir"), log_dir,
                  "folder where ranks other than 0 write their standard output (rankN.out), and which gets a copy of "
                  "their stderr (rankN.err); restarts add to them")
      ->option_text("FOLDER");
  command
      .add_option(BothSpellings("grace_period"), grace_period,
                  "seconds that a rank has to stop before it is killed (default: 30)")
      ->option_text("SECONDS")
      ->check(CLI::Range(0.0, 86400.0));
  command.add_flag(BothSpellings("dry_run"), dry_run, "print the command line of each rank and stop");
  command.add_flag("--quiet,-q", quiet, "do not say what is in force; warnings and failures are still shown");
}

namespace {

// Who asks for GPUs on the command line doesn't want the CPU that a file or the environment speaks of. True if the
// flags say so now.
bool ChooseGpus(const LaunchOptions& options, const Configuration& resolved, Configuration& flags) {
  const bool names_devices = !flags.gpu_ids.value_or("").empty();
  if (!resolved.use_cpu.value_or(false) || (!options.multi_gpu && !names_devices)) return false;
  if (flags.use_cpu.value_or(false)) {
    Say("warning: --gpu_ids {} is ignored: --cpu hides all of them", *flags.gpu_ids);
    return false;
  }
  flags.use_cpu = false;
  flags.sources["use_cpu"] = options.multi_gpu ? "--multi_gpu" : "--gpu_ids";
  return true;
}

}  // namespace

GroupExit RunProgram(const LaunchOptions& options, const std::vector<std::string>& program,
                     const Variables& environment) {
  Configuration flags = options.configuration.Read();
  CheckOptions(options, flags);
  ResolvedConfiguration resolved = Resolve(flags, options.config_file, options.no_config, ProcessEnvironment);
  if (ChooseGpus(options, resolved.configuration, flags)) {
    resolved = Resolve(flags, options.config_file, options.no_config, ProcessEnvironment);
  }
  const Machine machine = ThisMachine(ProcessEnvironment);
  Plan plan = MakePlan(resolved.configuration, machine);
  Announce(resolved, plan, options.quiet);
  const std::string path = FindProgram(program[0], ProcessEnvironment);
  const int wanted_port = plan.main_process_port;
  if (!options.dry_run) MakeLogFolder(options.log_dir);
  for (int restart = 0;; ++restart) {
    SettlePort(plan, wanted_port);
    SetEnvironments(plan, resolved.configuration, machine, ProcessEnvironment);
    ApplyOptions(options, restart, plan);
    for (Variables& rank : plan.environments) rank.insert(rank.end(), environment.begin(), environment.end());
    if (options.dry_run) {
      PrintPlan(plan, program);
      return {};
    }
    const TemporaryFolder errors;
    const GroupExit exit = RunProcessGroup(MakeGroupCommand(options, restart, plan, path, program, errors.path()));
    if (exit.exit_code != 0 && options.log_dir.empty()) NameOutputFolder(plan);
    if (exit.exit_code == 0 || exit.stop_signal != 0 || restart == options.max_restarts) return exit;
    Say("restart {} of {}", restart + 1, options.max_restarts);
  }
}

void AddLaunchCommand(CLI::App& app, const std::vector<std::string>& program, Action& action) {
  CLI::App* command =
      app.add_subcommand("launch", "Run a program, one process per rank: launch [flags] [--] PROGRAM [ARGUMENTS]");
  auto options = std::make_shared<LaunchOptions>();
  options->AddTo(*command, /*whole=*/true);
  command->footer(
      "A flag overrules the environment (ACCELERATE_NUM_PROCESSES, ...; CUDA_VISIBLE_DEVICES for --gpu_ids), which\n"
      "overrules the configuration: --config_file, else ./accelerate.yaml, else the file that `config` writes. "
      "--multi_gpu\n"
      "and --gpu_ids overrule a use_cpu of these, --num_machines 1 the machine_rank and main_process_ip of a "
      "cluster.\n\n"
      "Rank 0 has the terminal; lines of the other ranks begin with [rank 1]. The first rank to fail stops the "
      "others.\nWith --max_restarts they are all started again, with TORCHELASTIC_RESTART_COUNT set; a program goes "
      "on\nfrom its last checkpoint if it asks accelerator.restarts(). On several machines give each launcher the "
      "same\n"
      "number: each starts its own ranks again when one fails, for whatever reason, and they meet when all have.\n\n"
      "Exit code: 0; 2 for a mistake in flags or configuration, or a program that cannot be started; else that of the\n"
      "first rank to fail, or 128 + the number of the signal that killed it.");
  command->callback([options, &program, &action] {
    action = [options, &program] {
      if (program.empty()) {
        throw UsageError("no program to launch; as in: accelerate-cpp launch -n 2 -- ./train --epochs 3");
      }
      if (program[0][0] == '-') throw UsageError(fmt::format("{} is not a program", program[0]));
      return RunProgram(*options, program).exit_code;
    };
  });
}

}  // namespace accelerate::launch
