// The accelerate-cpp command: reads the command line and hands over to a subcommand.

#include <algorithm>
#include <exception>

#include "command.h"

namespace accelerate::launch {

namespace {

// Lists a flag in one spelling; the help would otherwise be twice as wide.
class OneSpelling : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional) return option->get_name(true, false);
    std::string names;
    for (const std::string& name : option->get_snames()) names += (names.empty() ? "-" : ", -") + name;
    if (!option->get_lnames().empty()) names += (names.empty() ? "--" : ", --") + option->get_lnames().front();
    return names;
  }
};

int Main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  std::vector<std::string> program;
  Action action;
  CLI::App app("Runs C++ LibTorch training programs on many processes.", "accelerate-cpp");
  auto formatter = std::make_shared<OneSpelling>();
  formatter->column_width(34);
  app.formatter(formatter);
  app.set_version_flag("--version", std::string("accelerate-cpp ") + ACCELERATE_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Each command has its own --help.\n\n"
      "Exit code: 0; 1 when called without a command; 2 for a mistake in flags or configuration; launch: that of the\n"
      "program; verify: 3 and 4, see its help.");
  AddConfigCommand(app, action);
  AddEnvCommand(app, action);
  AddLaunchCommand(app, program, action);
  AddTestCommand(app, action);
  AddVerifyCommand(app, program, action);

  if (!arguments.empty() && (arguments[0] == "launch" || arguments[0] == "verify")) {
    const std::string name = arguments[0];
    arguments.erase(arguments.begin());
    program = TakeProgram(*app.get_subcommand(name), arguments);
    arguments.insert(arguments.begin(), name);
  }
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(std::move(arguments));
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    Say("error: {}; see --help", error.what());
    return kExitUsage;
  }
  if (!action) {
    fmt::print("{}", app.help());
    return kExitHelp;
  }
  return action();
}

}  // namespace

}  // namespace accelerate::launch

int main(int argc, char** argv) {
  try {
    return accelerate::launch::Main(argc, argv);
  } catch (const std::exception& error) {
    accelerate::launch::Say("error: {}", error.what());
    return accelerate::launch::kExitUsage;
  }
}
