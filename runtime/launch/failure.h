#pragma once

#include <string>

namespace accelerate::launch {

/// "exited with code 3", "was killed by signal 9 (Killed)", "is stopped by signal 19 (Stopped (signal))".
std::string DescribeStatus(int status);

/// What may have been the reason, and where to look, as far as a status tells: begins with "; ", or is empty.
std::string HintFromStatus(int status, int process);

/// The code a shell would give: that of the program, or 128 + signal.
int ExitCode(int status);

/// The message in a file that the program was given by TORCHELASTIC_ERROR_FILE: torchrun's format, which the runtime
/// and the Python package write. Empty if there is none, or it can't be read.
std::string ReadErrorFile(const std::string& path);

/// Whether a line is of what c10 prints of where an error came from, whatever stands before it.
bool IsBacktrace(const std::string& line);

}  // namespace accelerate::launch
