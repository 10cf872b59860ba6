//===- Process.h - Programs that are run, and end -------------------------===//
#ifndef ACCELERATE_MIGRATE_TRAIN_PROCESS_H
#define ACCELERATE_MIGRATE_TRAIN_PROCESS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace migrate {

/// How a program ended.
struct Ended {
  int Code = 0; ///< negative: a signal
  bool TimedOut = false;
  std::string Output; ///< standard output and error

  /// "exit code 1", "no end after 60 s" and the last lines that it printed.
  std::string describe() const;
  unsigned Seconds = 0; ///< what it was given
};

/// While one is there, a user who interrupts us ends the program that runs, with all that it has started, and not us:
/// what is temporary can be removed.
class Interruptible {
public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible &) = delete;
  Interruptible &operator=(const Interruptible &) = delete;

  static bool interrupted();
};

/// Runs `Command`, whose first word is a path, with `Log` (a file that isn't there yet) for its output and nothing to
/// read. What is still there after `Seconds` is ended, with all that it has started. An error if it can't be started,
/// or the user has interrupted us.
llvm::Expected<Ended> runProcess(llvm::ArrayRef<std::string> Command, llvm::StringRef Log, unsigned Seconds);

} // namespace migrate

#endif
