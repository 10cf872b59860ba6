#include "wizard.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace accelerate::launch {

std::string DistributedType(const Configuration& configuration) {
  if (configuration.num_processes.value_or(1) == 1) return "NO";
  return configuration.use_cpu.value_or(false) ? "MULTI_CPU" : "MULTI_GPU";
}

Configuration Wizard::AskConfiguration(int cuda_devices, int cpus) {
  Configuration configuration;
  configuration.num_machines = 1;
  configuration.machine_rank = 0;
  configuration.num_processes = 1;
  enum Setup : std::size_t { kOneProcess, kManyCpu, kManyGpu };
  const std::size_t setup =
      AskChoice("What will you train on?",
                {"one process, on one device", "several processes on CPUs", "several processes, a CUDA device each"},
                cuda_devices > 1 ? kManyGpu : kOneProcess);
  configuration.use_cpu = setup == kManyCpu;
  if (setup != kOneProcess) AskMachines(configuration);
  configuration.debug =
      AskYesNo("Check before each collective that all ranks agree on it? (slower, for finding mistakes)", false);
  if (setup == kOneProcess) configuration.use_cpu = AskYesNo("Train on the CPU only?", cuda_devices == 0);
  if (setup != kOneProcess) AskProcesses(configuration, cuda_devices, cpus);
  if (!*configuration.use_cpu) {
    AskValue(configuration, "gpu_ids", "Which CUDA devices of this machine? (all, or numbers as in 0,1)", "all");
  }
  AskValue(configuration, "mixed_precision", "Mixed precision? (no, fp16, bf16)", "no");
  configuration.distributed_type = setup == kOneProcess ? "NO" : setup == kManyCpu ? "MULTI_CPU" : "MULTI_GPU";
  return configuration;
}

void Wizard::AskMachines(Configuration& configuration) {
  AskValue(configuration, "num_machines", "How many machines?", "1");
  if (*configuration.num_machines == 1) return;
  for (;;) {
    AskValue(configuration, "machine_rank", "Which of them is this one? (0 for the first)", "0");
    if (*configuration.machine_rank < *configuration.num_machines) break;
    fmt::print(questions_, "  The machines are numbered 0 to {}.\n", *configuration.num_machines - 1);
  }
  AskValue(configuration, "main_process_ip", "Address of machine 0?", "");
  for (;;) {
    AskValue(configuration, "main_process_port", "Port of machine 0?", "29500");
    if (*configuration.main_process_port != 0) return;
    fmt::print(questions_, "  The machines must agree on a port: not 0.\n");
  }
}

void Wizard::AskProcesses(Configuration& configuration, int cuda_devices, int cpus) {
  const int machines = *configuration.num_machines;
  const int each = *configuration.use_cpu ? std::min(2, cpus) : std::max(1, cuda_devices);
  for (;;) {
    AskValue(configuration, "num_processes", "How many processes, over all machines?", std::to_string(each * machines));
    if (*configuration.num_processes % machines == 0) return;
    fmt::print(questions_, "  {} machines cannot share {} processes evenly.\n", machines, *configuration.num_processes);
  }
}

bool Wizard::AskYesNo(const std::string& question, bool usual) {
  for (;;) {
    const std::string answer = Ask(question + " (yes, no)", usual ? "yes" : "no");
    if (answer == "y" || answer == "Y" || answer == "yes" || answer == "Yes" || answer == "YES") return true;
    if (answer == "n" || answer == "N" || answer == "no" || answer == "No" || answer == "NO") return false;
    fmt::print(questions_, "  Please answer yes or no.\n");
  }
}

void Wizard::AskValue(Configuration& configuration, const std::string& key, const std::string& question,
                      const std::string& usual) {
  for (;;) {
    const std::string answer = Ask(question, usual);
    try {
      if (answer.empty()) throw std::invalid_argument("an answer is needed");
      return Assign(configuration, *FindField(key), answer, "config");
    } catch (const std::invalid_argument& error) {
      fmt::print(questions_, "  {}.\n", error.what());
    }
  }
}

std::size_t Wizard::AskChoice(const std::string& question, const std::vector<std::string>& choices, std::size_t usual) {
  fmt::print(questions_, "{}\n", question);
  for (std::size_t i = 0; i < choices.size(); ++i) fmt::print(questions_, "  {}  {}\n", i + 1, choices[i]);
  for (;;) {
    const std::string answer = Ask("Number", std::to_string(usual + 1));
    for (std::size_t i = 0; i < choices.size(); ++i) {
      if (answer == std::to_string(i + 1)) return i;
    }
    fmt::print(questions_, "  Please answer with a number from 1 to {}.\n", choices.size());
  }
}

std::string Wizard::Ask(const std::string& question, const std::string& usual) {
  fmt::print(questions_, "{}{}: ", question, usual.empty() ? "" : fmt::format(" [{}]", usual));
  std::fflush(questions_);
  std::string answer;
  int c = 0;
  while ((c = std::fgetc(answers_)) != EOF && c != '\n') answer.push_back(static_cast<char>(c));
  if (c == EOF && answer.empty()) {
    fmt::print(questions_, "\n");
    throw UsageError("the answers ended early, and nothing was written; `accelerate-cpp config default` asks nothing");
  }
  const char* space = " \t\r";
  answer.erase(0, std::min(answer.find_first_not_of(space), answer.size()));
  answer.erase(answer.find_last_not_of(space) + 1);
  return answer.empty() ? usual : answer;
}

}  // namespace accelerate::launch
