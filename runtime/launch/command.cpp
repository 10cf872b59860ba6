#include "command.h"

#include <algorithm>

namespace accelerate::launch {

std::string BothSpellings(const std::string& flag) {
  std::string dashed = flag;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  return dashed == flag ? "--" + flag : "--" + flag + ",--" + dashed;
}

void ConfigurationFlags::AddTo(CLI::App& app) {
  for (const Field& field : Fields()) {
    if (field.flag.empty()) continue;
    auto text = std::make_shared<std::string>();
    std::string names = BothSpellings(field.flag);
    if (field.key == "num_processes") names += ",-n";
    CLI::Option* option = nullptr;
    if (std::holds_alternative<std::optional<bool> Configuration::*>(field.member)) {
      // "--cpu" is true and "--cpu=false" overrules a configuration file.
      option = app.add_flag(names, *text, field.help);
    } else {
      option = app.add_option(names, *text, field.help)->option_text(field.allowed.empty() ? "VALUE" : "MODE");
    }
    given_.push_back({&field, option->group("Configuration"), std::move(text)});
  }
}

Configuration ConfigurationFlags::Read() const {
  Configuration configuration;
  for (const Given& given : given_) {
    if (given.option->count() == 0) continue;
    const std::string flag = "--" + given.field->flag;
    try {
      Assign(configuration, *given.field, *given.text, flag);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("{}: {}", flag, error.what()));
    }
  }
  return configuration;
}

std::vector<std::string> TakeProgram(const CLI::App& command, std::vector<std::string>& arguments) {
  std::size_t end = 0;
  std::size_t program = arguments.size();
  while (end < arguments.size()) {
    const std::string& argument = arguments[end];
    if (argument == "--" || argument.empty() || argument[0] != '-') {
      program = argument == "--" ? end + 1 : end;
      break;
    }
    const CLI::Option* option = command.get_option_no_throw(argument);
    end += option != nullptr && option->get_items_expected_max() > 0 ? 2 : 1;
  }
  std::vector<std::string> taken;
  if (program < arguments.size())
    taken.assign(arguments.begin() + static_cast<std::ptrdiff_t>(program), arguments.end());
  arguments.resize(std::min(end, arguments.size()));
  return taken;
}

}  // namespace accelerate::launch
