#pragma once

namespace accelerate::detail {

struct Environment;

/// Lets standard output speak on the main process only: sends the others' to a file per rank.
/// ACCELERATE_STDOUT says where to: `main` (a folder under TMPDIR, the default), `all` (nowhere, all
/// ranks speak), or a folder. It happens when the library is loaded, before the program's first line, and
/// at the latest here.
void redirect_output(const Environment& environment);

}  // namespace accelerate::detail
