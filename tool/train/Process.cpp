//===- Process.cpp --------------------------------------------------------===//
#include "train/Process.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"
#include <chrono>
#include <csignal>
#include <thread>

using namespace llvm;

namespace migrate {

// For the handler of signals: the process that is waited for.
static volatile std::sig_atomic_t Running = 0, Interrupted = 0;

static void interrupt() {
  Interrupted = 1;
  if (Running != 0)
    kill(-Running, SIGTERM);
}

/// Ends what is left of a process's group. Asked first: Ninja's commands have groups of their own, which it ends
/// itself.
static void endGroup(pid_t Group) {
  kill(-Group, SIGTERM);
  for (int Tenths = 0; Tenths != 50 && kill(-Group, 0) == 0; ++Tenths)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(-Group, SIGKILL);
}

Interruptible::Interruptible() {
  Interrupted = 0;
  sys::SetInterruptFunction(interrupt);
}

Interruptible::~Interruptible() { sys::SetInterruptFunction(nullptr); }

bool Interruptible::interrupted() { return Interrupted != 0; }

std::string Ended::describe() const {
  std::string Text = TimedOut   ? "no end after " + std::to_string(Seconds) + " s"
                     : Code < 0 ? std::string("ended by a signal")
                                : "exit code " + std::to_string(Code);
  SmallVector<StringRef, 64> Lines;
  StringRef(Output).rtrim().split(Lines, '\n');
  for (StringRef Line : ArrayRef(Lines).take_back(30))
    Text += "\n  " + Line.str();
  return Text;
}

Expected<Ended> runProcess(ArrayRef<std::string> Command, StringRef Log, unsigned Seconds) {
  using Clock = std::chrono::steady_clock;
  SmallVector<StringRef, 16> Words(Command.begin(), Command.end());
  std::string Why;
  bool Failed = false;
  if (Interrupted)
    return createStringError(inconvertibleErrorCode(), "interrupted");
  const auto Start = Clock::now();
  // Detached, it leads a group: what it starts ends with it.
  sys::ProcessInfo Child = sys::ExecuteNoWait(Words[0], Words, std::nullopt, {StringRef(""), Log, Log},
                                              /*MemoryLimit=*/0, &Why, &Failed, nullptr, /*DetachProcess=*/true);
  Ended Result;
  Result.Seconds = Seconds;
  if (!Failed) {
    Running = Child.Pid;
    Result.Code = sys::Wait(Child, Seconds, &Why).ReturnCode;
    Running = 0;
    endGroup(Child.Pid);
  }
  if (Interrupted)
    return createStringError(inconvertibleErrorCode(), "interrupted");
  if (Failed || Result.Code == -1)
    return createStringError(inconvertibleErrorCode(), "'" + Command[0] + "' can't be started: " + Why);
  Result.TimedOut = Result.Code < 0 && Clock::now() - Start >= std::chrono::seconds(Seconds);
  if (auto Buffer = MemoryBuffer::getFile(Log, /*IsText=*/false, /*RequiresNullTerminator=*/false))
    Result.Output = (*Buffer)->getBuffer().str();
  return Result;
}

} // namespace migrate
