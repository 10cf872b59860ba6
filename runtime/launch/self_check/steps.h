#pragma once

#include <string>
#include <vector>

namespace accelerate::self_check {

/// One thing that has to work before training can. Throws, on all ranks, with what is wrong. Returns what is worth
/// telling the user when all is well, or an empty text.
struct Step {
  const char* name;
  std::string (*run)(const std::string& checkpoint_folder);
};

/// In their order: each relies on those before it.
const std::vector<Step>& steps();

}  // namespace accelerate::self_check
