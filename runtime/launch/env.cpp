#include <nlohmann/json.hpp>

#include "command.h"
#include "machine.h"
#include "self_check.h"

extern char** environ;

namespace accelerate::launch {

namespace {

using Json = nlohmann::ordered_json;

struct EnvOptions {
  std::string config_file;
  bool json = false;
};

bool ConcernsTraining(const std::string& variable) {
  for (const char* prefix :
       {"ACCELERATE_", "NCCL_", "GLOO_", "TORCH_", "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=", "RANK=", "LOCAL_RANK=",
        "WORLD_SIZE=", "LOCAL_WORLD_SIZE=", "MASTER_ADDR=", "MASTER_PORT="}) {
    if (variable.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

// A broken file or variable is just what a bug report is about, so all else is told as well.
ResolvedConfiguration ResolveWhatCanBe(const EnvOptions& options, Json& report) {
  try {
    return Resolve({}, options.config_file, /*no_config=*/false, ProcessEnvironment);
  } catch (const UsageError& error) {
    report["error"] = error.what();
  }
  ResolvedConfiguration resolved;
  try {
    resolved.path = FindConfigurationFile(options.config_file, ProcessEnvironment);
    resolved.configuration = FromEnvironment(ProcessEnvironment);
  } catch (const UsageError&) {
    // There is one message, of what was met first.
  }
  return resolved;
}

Json Collect(const EnvOptions& options) {
  Json report;
  report["accelerate-cpp"] = ACCELERATE_VERSION;
  const std::string versions = RuntimeVersions();
  report["runtime"] = Json::parse(versions.empty() ? "null" : versions, nullptr, /*allow_exceptions=*/false);
  report["operating system"] = OperatingSystem();
  report["cpus"] = CountCpus();
  report["cuda devices"] = CountVisibleCudaDevices(ProcessEnvironment);
  report["nvidia driver"] = NvidiaDriver();
  report["variables"] = Json::object();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos && ConcernsTraining(text)) {
      report["variables"][text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  const ResolvedConfiguration resolved = ResolveWhatCanBe(options, report);
  report["configuration file"] = resolved.path;
  report["configuration"] = Json::object();
  for (const Field& field : Fields()) {
    if (!HasValue(resolved.configuration, field)) continue;
    report["configuration"][field.key] = {{"value", ValueText(resolved.configuration, field)},
                                          {"from", resolved.configuration.sources.at(field.key)}};
  }
  report["warnings"] = resolved.warnings;
  return report;
}

void PrintMarkdown(const Json& report) {
  fmt::print("- accelerate-cpp: {}\n", report["accelerate-cpp"].get<std::string>());
  if (!report["runtime"].is_object()) fmt::print("- runtime: none beside accelerate-cpp\n");
  for (const auto& [key, value] : report["runtime"].items()) {
    if (report["runtime"].is_object())
      fmt::print("- {}: {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  for (const char* key : {"operating system", "cpus", "cuda devices", "nvidia driver"}) {
    const Json& value = report[key];
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    fmt::print("- {}: {}\n", key, text.empty() ? "none" : text);
  }
  fmt::print("- environment variables:{}\n", report["variables"].empty() ? " none" : "");
  for (const auto& [name, value] : report["variables"].items()) {
    fmt::print("  - `{}={}`\n", name, value.get<std::string>());
  }
  const std::string file = report["configuration file"];
  fmt::print("- configuration: {}\n", file.empty() ? "no file" : fmt::format("`{}`", file));
  for (const auto& [key, entry] : report["configuration"].items()) {
    fmt::print("  - {}: `{}` (from {})\n", key, entry["value"].get<std::string>(), entry["from"].get<std::string>());
  }
  if (report.contains("error")) fmt::print("- error: {}\n", report["error"].get<std::string>());
  for (const auto& warning : report["warnings"]) fmt::print("- warning: {}\n", warning.get<std::string>());
}

int PrintEnvironment(const EnvOptions& options) {
  const Json report = Collect(options);
  if (options.json) {
    // A variable need not be UTF-8, which JSON must be.
    fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    PrintMarkdown(report);
  }
  if (!report.contains("error")) return 0;
  std::fflush(stdout);
  Say("error: {}", report["error"].get<std::string>());
  return kExitUsage;
}

}  // namespace

void AddEnvCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("env", "Print what to paste into a bug report: machine, variables, configuration");
  auto options = std::make_shared<EnvOptions>();
  command->add_option(BothSpellings("config_file"), options->config_file, "configuration file to read")
      ->option_text("FILE");
  command->add_flag("--json", options->json, "print JSON instead of Markdown");
  command->footer(
      "Exit code: 0; 2 for a mistake in flags, or in configuration, which is told after all that could be read.");
  command->callback([options, &action] { action = [options] { return PrintEnvironment(*options); }; });
}

}  // namespace accelerate::launch
