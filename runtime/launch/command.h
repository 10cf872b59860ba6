#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "configuration.h"

namespace accelerate::launch {

inline constexpr int kExitHelp = 1;   // called with nothing to do
inline constexpr int kExitUsage = 2;  // flags, configuration, or a program that cannot be started

/// What a subcommand does once its flags are read; returns the exit code, or throws UsageError.
using Action = std::function<int()>;

/// Each adds one subcommand and stores its action in `action` when the command line chooses it.
void AddConfigCommand(CLI::App& app, Action& action);
void AddEnvCommand(CLI::App& app, Action& action);
/// `program` is the command line of the program to launch, which CLI11 does not see.
void AddLaunchCommand(CLI::App& app, const std::vector<std::string>& program, Action& action);
void AddTestCommand(CLI::App& app, Action& action);
/// `program`: the arguments of the programs to compare.
void AddVerifyCommand(CLI::App& app, const std::vector<std::string>& program, Action& action);

/// Both spellings of a flag for CLI11: "--num_processes,--num-processes".
std::string BothSpellings(const std::string& flag);

/// The flags that set keys of the configuration.
class ConfigurationFlags {
 public:
  void AddTo(CLI::App& app);
  Configuration Read() const;  // throws UsageError naming the flag

 private:
  struct Given {
    const Field* field;
    CLI::Option* option;
    std::shared_ptr<std::string> text;
  };
  std::vector<Given> given_;
};

/// Splits `arguments` where the command line of the program to launch begins: after `--`, or at the first word that is
/// neither a flag of `command` nor a flag's value. CLI11 must not see the rest, which may look like flags or
/// subcommands of ours.
std::vector<std::string> TakeProgram(const CLI::App& command, std::vector<std::string>& arguments);

/// A line on stderr, for people.
template <typename... Arguments>
void Say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::print(stderr, "[accelerate-cpp] {}\n", fmt::format(format, std::forward<Arguments>(arguments)...));
}

}  // namespace accelerate::launch
