#pragma once

#include <string>
#include <vector>

#include "configuration.h"

namespace accelerate::launch {

/// CUDA devices of this machine, without loading CUDA: those that `visible` lists as CUDA_VISIBLE_DEVICES does, or
/// every device node in `device_folder` when it is "all".
int CountCudaDevices(const std::string& visible, const std::string& device_folder = "/dev");

/// Those of them that this process, and so its children, may use: CUDA_VISIBLE_DEVICES decides where it is set.
int CountVisibleCudaDevices(const Environment& environment, const std::string& device_folder = "/dev");

/// CPUs that this process may use.
int CountCpus();

/// A TCP port of this machine that nothing listens on; `wanted` when it is free (0: any). Throws UsageError when it is
/// taken.
int FreePort(int wanted);

/// The file to execute for `program`, looked up in PATH when it has no slash. Throws UsageError with what to do.
std::string FindProgram(const std::string& program, const Environment& environment);

std::string OperatingSystem();
std::string NvidiaDriver();  // empty: none

}  // namespace accelerate::launch
