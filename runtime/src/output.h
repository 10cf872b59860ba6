#pragma once

#include <cstdint>
#include <string>

namespace accelerate::detail {

struct Environment;

/// Lets standard output speak on the main process only: sends the others' to a file per rank.
/// ACCELERATE_STDOUT says where to: `main` (a folder under TMPDIR, the default), `all` (nowhere, all
/// ranks speak), or a folder. It happens when the library is loaded, before the program's first line, and
/// at the latest here. In the default folder the file of a process that ends well goes with it; one that exits with
/// another code than 0 names its file on standard error.
void redirect_output(const Environment& environment);

/// The default folder of a job's output on this host.
std::string default_output_folder(uint16_t master_port);

}  // namespace accelerate::detail
