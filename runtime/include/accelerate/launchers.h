#pragma once

/// Several ranks from within a running program: from a test, or an interpreter such as clang-repl.

#include <accelerate/export.h>

#include <cstdint>
#include <functional>

namespace accelerate {

/// Calls `function` on `num_processes` local processes, which are ranks of one job: an Accelerator made in it sees the
/// others. Returns when all are done; throws, naming the rank, if one fails (an exception, exit() with another code
/// than 0, a signal), and ends the others then. With one process the function is just called here.
///
/// The processes are copies of this one (fork), so they see all its variables, and nothing they change comes back:
/// hand results over in files. That is sound only while this process has one thread, since the copies have no other:
/// OpenMP's and CUDA's threads would be missed, and waited for without end. So launch before the first Accelerator, the
/// first large operation on tensors and the first use of CUDA, or with OMP_NUM_THREADS=1 for the second; it throws if
/// there are other threads or an Accelerator. (A program that needs more is started by accelerate-cpp launch.)
/// Not for use within a job.
ACCELERATE_API void notebook_launcher(const std::function<void()>& function, int64_t num_processes);

/// The same on the CPU, whatever devices there are.
ACCELERATE_API void debug_launcher(const std::function<void()>& function, int64_t num_processes = 2);

}  // namespace accelerate
