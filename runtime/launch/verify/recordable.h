#pragma once

#include <string>

namespace accelerate::launch {

/// Why the recorder can't be loaded into a program of which nothing was recorded, and what to do, in words that follow
/// "the program".
std::string WhyNotRecorded(const std::string& program);

}  // namespace accelerate::launch
