#pragma once

#include <csignal>

namespace accelerate::launch {

/// Takes the signals that concern a group of processes out of their usual course, for as long as it lives: those that
/// the launcher passes on, and SIGCHLD. They are then read from `descriptor` as signalfd_siginfo.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// What our parent had set. For a child, between fork and exec.
  void Restore() const;
  int descriptor() const { return descriptor_; }

 private:
  sigset_t before_{};
  void (*pipe_before_)(int) = SIG_DFL;
  int descriptor_ = -1;
};

}  // namespace accelerate::launch
