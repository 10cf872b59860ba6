#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "configuration.h"

namespace accelerate::launch {

/// What the Python package would call this set-up.
std::string DistributedType(const Configuration& configuration);

/// Asks the questions of `config`, in the order of the Python package's wizard. An answer that makes no sense is asked
/// for again; an empty one takes the default. Throws UsageError when the answers end early.
class Wizard {
 public:
  Wizard(std::FILE* answers, std::FILE* questions) : answers_(answers), questions_(questions) {}

  Configuration AskConfiguration(int cuda_devices, int cpus);
  bool AskYesNo(const std::string& question, bool usual);

 private:
  void AskMachines(Configuration& configuration);
  void AskProcesses(Configuration& configuration, int cuda_devices, int cpus);
  /// Sets `key` from the answer, with the rules of the configuration file. An empty `usual` means none.
  void AskValue(Configuration& configuration, const std::string& key, const std::string& question,
                const std::string& usual);
  /// The index of the choice.
  std::size_t AskChoice(const std::string& question, const std::vector<std::string>& choices, std::size_t usual);
  std::string Ask(const std::string& question, const std::string& usual);

  std::FILE* answers_;
  std::FILE* questions_;
};

}  // namespace accelerate::launch
