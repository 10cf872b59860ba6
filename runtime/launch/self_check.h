#pragma once

#include <string>

namespace accelerate::launch {

/// The program that `test` runs, which lies beside this one. Empty if it isn't there.
std::string SelfCheckProgram();

/// What the runtime beside us was built with: a JSON object. Empty if there is none, or it doesn't start.
std::string RuntimeVersions();

}  // namespace accelerate::launch
