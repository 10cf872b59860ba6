#pragma once

#define ACCELERATE_VERSION_MAJOR 0
#define ACCELERATE_VERSION_MINOR 1
#define ACCELERATE_VERSION_PATCH 0
#define ACCELERATE_VERSION "0.1.0"

namespace accelerate {

/// The version of the library that the program runs with, e.g. "0.1.0" (the macros above are the headers').
__attribute__((visibility("default"))) const char* version();

}  // namespace accelerate
