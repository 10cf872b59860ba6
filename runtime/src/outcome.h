#pragma once

/// Things that all ranks do, or none.

#include <functional>
#include <string>

namespace accelerate::detail {

/// Calls `action`, and returns when all ranks have; if it threw on any of them, throws on all: what it threw, or else
/// an error that quotes the first such rank's. `action` must not communicate. Alone it's just called. (collective)
void together(const std::string& operation, const std::function<void()>& action);

/// Rank 0's text, on all ranks. (collective)
std::string text_of_main_process(const std::string& text, const std::string& what);

}  // namespace accelerate::detail
