#pragma once

#include <string>

namespace accelerate::launch {

/// Writes a file that the user has named with `flag`: a regular one is replaced at once or not at all, the one behind a
/// link and not the link; its folder is created. What isn't a regular file (a terminal, a pipe, /dev/stdout) is written
/// to. Throws UsageError.
void WriteFileAtomically(const std::string& path, const std::string& text, const std::string& flag);

/// Throws UsageError if WriteFileAtomically would, as far as that can be known before, or if there is no folder.
void CheckWritable(const std::string& path, const std::string& flag);

}  // namespace accelerate::launch
