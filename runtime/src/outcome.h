#pragma once

/// Things that all ranks do, or none.

#include <exception>
#include <functional>
#include <string>

namespace accelerate::detail {

/// Calls `action`, and returns when all ranks have; if it threw on any of them, throws on all: what it threw, or else
/// an error that quotes the first such rank's. `action` must not communicate. Alone it's just called. (collective)
void together(const std::string& operation, const std::function<void()>& action);

/// A rank's text, on all ranks. (collective)
std::string text_of_process(int64_t process, const std::string& text, const std::string& what);
/// Rank 0's. (collective)
std::string text_of_main_process(const std::string& text, const std::string& what);

/// What an error says, without the stack that c10's append.
std::string text_of(const std::exception& error);
std::string text_of(const std::exception_ptr& error);

}  // namespace accelerate::detail
