#include "failure.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace accelerate::launch {

std::string DescribeStatus(int status) {
  if (WIFSTOPPED(status))
    return fmt::format("is stopped by signal {} ({})", WSTOPSIG(status), strsignal(WSTOPSIG(status)));
  if (!WIFSIGNALED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  return fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

std::string HintFromStatus(int status, int process) {
  if (!WIFSIGNALED(status)) return "";
  if (WTERMSIG(status) == SIGKILL) return "; if nobody killed it, memory ran out: look in dmesg";
  if (!WCOREDUMP(status)) return "";
  std::error_code unreadable;
  for (const std::string& name : {fmt::format("core.{}", process), std::string("core")}) {
    if (std::filesystem::exists(name, unreadable)) return fmt::format("; its memory is in ./{}", name);
  }
  std::string pattern;
  std::getline(std::ifstream("/proc/sys/kernel/core_pattern"), pattern);
  return fmt::format("; its memory was dumped to where /proc/sys/kernel/core_pattern says: {}", pattern);
}

int ExitCode(int status) {
  if (WIFSTOPPED(status)) return 128 + WSTOPSIG(status);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string ReadErrorFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "";
  const nlohmann::json content = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!content.is_object() || !content.contains("message")) return "";
  const nlohmann::json& message = content["message"];
  if (message.is_string()) return message.get<std::string>();
  if (!message.is_object() || !message.contains("message") || !message["message"].is_string()) return "";
  return message["message"].get<std::string>();
}

bool IsBacktrace(const std::string& line) {
  for (const char* words : {"frame #", "Exception raised from ", "C++ CapturedTraceback:"}) {
    if (line.find(words) != std::string::npos) return true;
  }
  // "#4 c10::Error::Error(...) from ??:0", behind spaces or the "[rank 1] " of our launcher.
  std::size_t begin = line.rfind("[rank ", 0) == 0 ? line.find("] ") : 0;
  if (begin == std::string::npos) return false;
  begin = line.find_first_not_of(' ', begin == 0 ? 0 : begin + 1);
  if (begin == std::string::npos || line[begin] != '#') return false;
  const std::size_t end = line.find_first_not_of("0123456789", begin + 1);
  return end != std::string::npos && end > begin + 1 && line[end] == ' ' &&
         line.find(" from ", end) != std::string::npos;
}

}  // namespace accelerate::launch
