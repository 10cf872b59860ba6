#pragma once

#include <functional>
#include <string>

namespace accelerate::detail {

/// Exceptions that nobody catches, on any thread: their message is written to the file that the launcher names in
/// TORCHELASTIC_ERROR_FILE (torchrun's format; accelerate-cpp reads it as well), with what `listener`, which is given
/// it, has to add; then the program aborts as it would have. Installed when the library is loaded if there is such a
/// variable, and here.
void on_uncaught(std::function<std::string(const std::string& message)> listener);

/// Writes that file, if the launcher has named one. Never throws.
void write_error_file(const std::string& message);

}  // namespace accelerate::detail
