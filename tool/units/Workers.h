//===- Workers.h - Jobs in processes of their own -------------------------===//
//
// Units are read in child processes: one that crashes, runs out of memory or never ends takes nothing with it but
// itself.
//
//===----------------------------------------------------------------------===//
#ifndef ACCELERATE_MIGRATE_UNITS_WORKERS_H
#define ACCELERATE_MIGRATE_UNITS_WORKERS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>

namespace migrate {

/// What became of a job: what it returned, or how it ended instead.
struct Outcome {
  std::string Bytes;
  std::string Failure; ///< "crashed (Segmentation fault)"; empty if it returned
};

struct WorkerOptions {
  unsigned Jobs = 1;         ///< processes at once
  bool Isolate = true;       ///< otherwise in this process, one after the other
  unsigned CpuSeconds = 600; ///< a job that takes longer is ended
};

/// Runs `Work(I)` for every I below `Count`, and gives each outcome to `Done`, in order of completion. Must be called
/// while the process has one thread.
void runJobs(size_t Count, const WorkerOptions &Options, llvm::function_ref<std::string(size_t)> Work,
             llvm::function_ref<void(size_t)> Started, llvm::function_ref<void(size_t, Outcome)> Done);

/// As many jobs as cores and free memory allow, if one takes `BytesPerJob`.
unsigned jobsFor(uint64_t BytesPerJob);

} // namespace migrate

#endif
