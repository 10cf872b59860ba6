#include "uncaught.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "environment.h"
#include "outcome.h"

namespace accelerate::detail {
namespace {

std::terminate_handler original = nullptr;

// Never destroyed: an exception may be the last thing that happens.
std::function<std::string(const std::string&)>& listener_in_force() {
  static auto* const listener = new std::function<std::string(const std::string&)>;
  return *listener;
}

std::string current_message() {
  const std::exception_ptr error = std::current_exception();
  if (!error) {
    return "std::terminate() was called";
  }
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return text_of(e);
  } catch (...) {
    return "an exception that isn't a std::exception";
  }
}

[[noreturn]] void last_words() {
  static std::atomic_flag spoken = ATOMIC_FLAG_INIT;
  if (!spoken.test_and_set()) {
    try {
      const std::string message = current_message();
      write_error_file(message);  // at once: what follows asks other ranks
      const std::string more = listener_in_force() ? listener_in_force()(message) : "";
      if (!more.empty()) {
        std::fprintf(stderr, "%s\n", more.c_str());
        write_error_file(message + more);
      }
    } catch (...) {
      // It ends badly already.
    }
  }
  original();  // prints the exception and aborts
  std::abort();
}

void install() {
  if (!original) {
    original = std::set_terminate(last_words);
  }
}

const bool at_load = [] {
  if (!variable("TORCHELASTIC_ERROR_FILE").empty()) {
    install();
  }
  return true;
}();

}  // namespace

void on_uncaught(std::function<std::string(const std::string&)> listener) {
  listener_in_force() = std::move(listener);
  install();
}

void write_error_file(const std::string& message) {
  const std::string path = variable("TORCHELASTIC_ERROR_FILE");
  if (path.empty()) {
    return;
  }
  try {
    const nlohmann::json content = {
        {"message", {{"message", message}, {"extraInfo", {{"timestamp", std::to_string(std::time(nullptr))}}}}}};
    std::ofstream(path) << content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } catch (const std::exception&) {
    // The message is printed as well.
  }
}

}  // namespace accelerate::detail
