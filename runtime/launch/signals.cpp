#include "signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

namespace accelerate::launch {

namespace {

constexpr std::array kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

}  // namespace

Signals::Signals() {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  std::signal(SIGCHLD, SIG_DFL);  // ignored, it would hide how children end
  for (const int signal : kForwarded) {
    // What our parent had us ignore, as nohup does, stays ignored.
    struct sigaction current{};
    sigaction(signal, nullptr, &current);
    if (current.sa_handler != SIG_IGN) sigaddset(&taken, signal);
  }
  sigprocmask(SIG_BLOCK, &taken, &before_);
  pipe_before_ = std::signal(SIGPIPE, SIG_IGN);
  descriptor_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() {
  close(descriptor_);
  Restore();
}

void Signals::Restore() const {
  std::signal(SIGPIPE, pipe_before_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace accelerate::launch
