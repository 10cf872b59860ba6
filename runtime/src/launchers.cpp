#include <accelerate/launchers.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "environment.h"
#include "files.h"
#include "output.h"
#include "state.h"

#if defined(__SANITIZE_THREAD__)  // GCC's
#define ACCELERATE_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ACCELERATE_THREAD_SANITIZER
#endif
#endif

namespace accelerate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{5};  // between asking a process to end and ending it

/// Of a process that has started none: ThreadSanitizer has one of its own, which its copies get, too.
#ifdef ACCELERATE_THREAD_SANITIZER
constexpr size_t kOwnThreads = 2;
#else
constexpr size_t kOwnThreads = 1;
#endif

/// A port that is free now.
uint16_t free_port() {
  const int socket_file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool fine = socket_file >= 0 && bind(socket_file, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                    getsockname(socket_file, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  if (socket_file >= 0) {
    close(socket_file);
  }
  TORCH_CHECK(fine, "[accelerate] notebook_launcher(): no free port: ", std::strerror(error));
  return ntohs(address.sin_port);
}

void check_that_fork_is_sound() {
  TORCH_CHECK(detail::read_environment().alone(),
              "[accelerate] notebook_launcher(): this process is a rank of a job already");
  TORCH_CHECK(
      !detail::state_is_made(),
      "[accelerate] notebook_launcher(): there is an Accelerator (or a loader) already; launch before the first");
  const size_t threads = detail::names_in("/proc/self/task").size();
  TORCH_CHECK(threads <= kOwnThreads, "[accelerate] notebook_launcher(): this process has ", threads,
              " threads, and its copies would have one and wait for the others without end; launch before the first "
              "large operation on tensors or use of CUDA, or set OMP_NUM_THREADS=1");
}

void set(const char* name, int64_t value) { setenv(name, std::to_string(value).c_str(), 1); }

/// In the copy. Never returns: what the caller would do next is the original's.
[[noreturn]] void run_rank(const std::function<void()>& function, int64_t rank, int64_t ranks, uint16_t port,
                           pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(1);  // it ended in between
  }
  set("RANK", rank);
  set("LOCAL_RANK", rank);
  set("WORLD_SIZE", ranks);
  set("LOCAL_WORLD_SIZE", ranks);
  set("MASTER_PORT", port);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  int code = 0;
  try {
    function();
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "[rank %lld] %s\n", static_cast<long long>(rank), error.what_without_backtrace());
    code = 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[rank %lld] %s\n", static_cast<long long>(rank), error.what());
    code = 1;
  } catch (...) {
    std::fprintf(stderr, "[rank %lld] an unknown exception\n", static_cast<long long>(rank));
    code = 1;
  }
  std::exit(code);
}

/// "exit code 3" or "signal 9 (Killed)"; empty if it ended well.
std::string failure(int status) {
  if (WIFSIGNALED(status)) {
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  }
  return WEXITSTATUS(status) == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
}

class Processes {
 public:
  ~Processes() { end(); }  // if starting them failed

  void start(const std::function<void()>& function, int64_t ranks) {
    port_ = free_port();
    const pid_t parent = getpid();
    std::cout.flush();
    std::fflush(nullptr);  // or what is buffered would be written by every copy
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const pid_t process = fork();
      TORCH_CHECK(process >= 0, "[accelerate] notebook_launcher(): can't start rank ", rank, ": ",
                  std::strerror(errno));
      if (process == 0) {
        run_rank(function, rank, ranks, port_, parent);
      }
      processes_.push_back(process);
    }
  }

  /// Where ranks that didn't end well have left their output, for an error's text; none if there is nothing.
  std::string output_left() const {
    const std::string folder = detail::default_output_folder(port_);
    return detail::is_folder(folder) ? "; what they wrote to standard output is in " + folder : "";
  }

  /// The first failure, or an empty text.
  std::string wait() {
    size_t running = processes_.size();
    auto pause = std::chrono::milliseconds(1);
    while (running > 0) {
      for (size_t rank = 0; rank < processes_.size(); ++rank) {
        int status = 0;
        // Each by its number: other children are the program's own.
        if (processes_[rank] > 0 && waitpid(processes_[rank], &status, WNOHANG) == processes_[rank]) {
          processes_[rank] = 0;
          --running;
          pause = std::chrono::milliseconds(1);
          if (const std::string text = failure(status); !text.empty()) {
            end();
            return "rank " + std::to_string(rank) + " of " + std::to_string(processes_.size()) + " failed: " + text;
          }
        }
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(50));
    }
    return "";
  }

 private:
  void end() {
    for (const int signal_number : {SIGTERM, SIGKILL}) {
      for (const pid_t process : processes_) {
        if (process > 0) {
          kill(process, signal_number);
        }
      }
      const auto deadline = Clock::now() + kGrace;
      bool any = true;
      while (any && Clock::now() < deadline) {
        any = false;
        for (pid_t& process : processes_) {
          if (process > 0 && waitpid(process, nullptr, WNOHANG) != 0) {
            process = 0;
          }
          any = any || process > 0;
        }
        if (any) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
      }
    }
  }

  std::vector<pid_t> processes_;
  uint16_t port_ = 0;
};

}  // namespace

void notebook_launcher(const std::function<void()>& function, int64_t num_processes) {
  TORCH_CHECK(num_processes > 0, "[accelerate] notebook_launcher() was asked for ", num_processes, " processes");
  if (num_processes == 1) {
    function();
    return;
  }
  check_that_fork_is_sound();
  Processes processes;
  processes.start(function, num_processes);
  const std::string text = processes.wait();
  TORCH_CHECK(text.empty(), "[accelerate] notebook_launcher(): ", text, "; the other ranks were ended",
              processes.output_left());
}

void debug_launcher(const std::function<void()>& function, int64_t num_processes) {
  notebook_launcher(
      [&function] {
        setenv("ACCELERATE_USE_CPU", "1", 1);
        function();
      },
      num_processes);
}

}  // namespace accelerate
