#include "group.h"

#include <c10/util/Exception.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "bounded.h"
#include "group_impl.h"
#include "meeting.h"
#include "outcome.h"
#include "peers.h"
#include "same_on_all.h"
#include "uncaught.h"

namespace accelerate::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a rank that is done waits for the others to be done, before it closes its connections. A rank
/// that leaves too early ends the others' job with an error, after this time.
constexpr std::chrono::seconds kFarewell{5};
constexpr std::chrono::seconds kPatience{2};       // with a store that may be gone
constexpr std::chrono::seconds kLastQuestions{2};  // of ranks that want to know why it ended

bool all_reached(c10d::Store& store, const char* stage, int64_t ranks) {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    keys.push_back(peer_key(stage, rank));
  }
  return store.check(keys);
}

}  // namespace

Group::Group(const Environment& environment, bool cuda) : impl_(std::make_unique<Impl>()) {
  impl_->environment = environment;
  impl_->debug = flag("ACCELERATE_DEBUG_MODE");
  impl_->store = meet(environment);
  try {
    const auto connection = [&] { return open_store(environment, /*serve=*/false); };
    impl_->peers = std::make_unique<Peers>(environment, connection(), connection(), impl_->store);
  } catch (const std::exception& error) {
    TORCH_CHECK(false, "[accelerate] rank ", environment.rank, " of ", environment.world_size,
                ": lost rank 0 when the ranks had met: ", text_of(error));
  }
  impl_->peers->set_overdue([this](const std::string& operation) { overdue(operation); });
  auto& group = impl_->group;
  group = c10::make_intrusive<c10d::ProcessGroup>(impl_->store, static_cast<int>(environment.rank),
                                                  static_cast<int>(environment.world_size));
  guard("start of the process group", [&] {
    // NCCL refuses two ranks on one GPU; gloo takes CUDA tensors as well, through the host.
    const bool nccl =
        cuda && has_nccl() && environment.local_world_size <= static_cast<int64_t>(torch::cuda::device_count());
    add_gloo(*group, impl_->store, environment, cuda && !nccl);
    impl_->nccl = nccl;
    if (nccl) {
      add_nccl(*group, impl_->store, environment);
    }
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    group->setGroupName("accelerate");
  });
  on_uncaught([this](const std::string& message) { return last_words(message); });
}

Group::~Group() = default;

void Group::require(const std::string& operation) const {
  TORCH_CHECK(!impl_->broken, "[accelerate] rank ", impl_->environment.rank, " of ", impl_->environment.world_size,
              ": ", operation, " is not possible any more: ", impl_->reason);
}

void Group::withdraw(const std::string& reason) {
  if (impl_->broken) {
    return;
  }
  impl_->broken = true;
  impl_->reason = "this rank has left the others, since " + reason;
  impl_->peers->failed(reason);
  if (!impl_->nccl) {  // which may have something under way; there the others' timeout ends it
    impl_->group.reset();
  }
}

void Group::guard(const std::string& operation, const std::function<void()>& run) {
  require(operation);
  const auto start = Clock::now();
  const Peers::Operation scope(impl_->peers.get(), operation, /*watched=*/true);
  try {
    run();
  } catch (const std::exception& error) {
    fail(operation, error, std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count());
  }
}

void Group::fail(const std::string& operation, const std::exception& error, int64_t seconds) {
  impl_->reason = operation + " failed: " + text_of(error);
  TORCH_CHECK(false, "[accelerate] rank ", impl_->environment.rank, " of ", impl_->environment.world_size, ": ",
              operation, " failed after ", seconds, " s (timeout ", impl_->environment.timeout.count() / 1000,
              " s): ", text_of(error), explanation());
}

std::string Group::explanation() {
  impl_->broken = true;
  impl_->peers->gave_up();
  std::string text = impl_->peers->explain();
  if (serves_store(impl_->environment)) {
    impl_->peers->wait_for_ends(kLastQuestions);
  }
  return text;
}

std::string Group::last_words(const std::string& message) {
  if (!impl_ || impl_->broken) {
    return "";  // what fail() has made tells it all; its cause is another rank
  }
  // Gloo throws on a thread of its own if ranks differ in what they send.
  const bool together = impl_->peers->in_operation();
  impl_->peers->failed(message);
  return together ? explanation() : "";
}

void Group::overdue(const std::string& operation) {
  const std::string text = c10::str(
      "[accelerate] rank ", impl_->environment.rank, " of ", impl_->environment.world_size, ": ", operation,
      " hasn't come back within the timeout of ", impl_->environment.timeout.count() / 1000, " s", explanation());
  std::fprintf(stderr, "%s\n", text.c_str());
  write_error_file(text);
  std::_Exit(1);  // the thread that trains is stuck
}

void Group::compare(const std::function<std::vector<std::string>()>& lines) {
  if (!impl_->debug || impl_->checking) {
    return;
  }
  impl_->checking = true;
  try {
    check_same_on_all(*this, "the next operation", lines());
  } catch (...) {
    impl_->checking = false;
    throw;
  }
  impl_->checking = false;
}

void Group::sum(at::Tensor& x, const std::string& what) {
  const std::string operation = describe("all-reduce of " + what, x);
  compare([&] { return std::vector<std::string>{operation}; });
  guard(operation, [&] {
    std::vector<at::Tensor> tensors{x};
    impl_->group->allreduce(tensors)->wait();
  });
}

void Group::maximum(at::Tensor& x, const std::string& what) {
  const std::string operation = describe("all-reduce of " + what, x);
  compare([&] { return std::vector<std::string>{operation}; });
  guard(operation, [&] {
    std::vector<at::Tensor> tensors{x};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    impl_->group->allreduce(tensors, options)->wait();
  });
}

void Group::broadcast(at::Tensor& x, int64_t root, const std::string& what) {
  const std::string operation = describe("broadcast of " + what, x);
  compare([&] { return std::vector<std::string>{operation}; });
  guard(operation, [&] {
    std::vector<at::Tensor> tensors{x};
    c10d::BroadcastOptions options;
    options.rootRank = root;
    impl_->group->broadcast(tensors, options)->wait();
  });
}

void Group::broadcast_many(const std::vector<at::Tensor>& tensors, int64_t root, const std::string& what) {
  if (tensors.empty()) {
    return;
  }
  compare([&] {
    std::vector<std::string> lines;
    for (const at::Tensor& x : tensors) {
      lines.push_back(describe("broadcast of " + what, x));
    }
    return lines;
  });
  constexpr size_t kBuffer = size_t{250} << 20;  // as in Python's DDP
  guard("broadcast of " + what,
        [&] { c10d::broadcast_coalesced(impl_->group, tensors, kBuffer, static_cast<int>(root)); });
}

std::vector<at::Tensor> Group::gather(const at::Tensor& x, const std::string& what) {
  const std::string operation = describe("all-gather of " + what, x);
  compare([&] { return std::vector<std::string>{operation}; });
  std::vector<std::vector<at::Tensor>> result(1);
  guard(operation, [&] {
    for (int64_t rank = 0; rank < impl_->environment.world_size; ++rank) {
      result[0].push_back(at::empty_like(x));
    }
    std::vector<at::Tensor> tensors{x};
    impl_->group->allgather(result, tensors)->wait();
  });
  return std::move(result[0]);
}

void Group::leave(int status) {
  impl_->peers->stop();
  const bool failed = status != 0;
  if (failed && !impl_->broken) {
    impl_->peers->failed("exit code " + std::to_string(status));
  }
  try {
    const bool wait = !failed && !impl_->broken;
    within(kFarewell + kPatience, [store = impl_->store, environment = impl_->environment, wait] {
      if (wait) {
        store->set(peer_key("left", environment.rank), std::vector<uint8_t>{1});
        no_more_news(*store, environment.rank);
      }
      const auto deadline = Clock::now() + kFarewell;
      while (wait && Clock::now() < deadline && !all_reached(*store, "left", environment.world_size)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      if (wait && serves_store(environment)) {
        // The store lives here: the others get a moment for their last look at it.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  } catch (const std::exception&) {
    // The store is gone with rank 0: nothing to wait for.
  }
  if (failed || impl_->broken) {
    // Destructors could wait for operations that never end: they don't run, since the process's state is never
    // destroyed. The kernel closes the connections.
    impl_->broken = true;
    return;
  }
  try {
    impl_->group->shutdown();
  } catch (const std::exception&) {
    // Not every backend has something to shut down.
  }
  impl_.reset();
}

}  // namespace accelerate::detail
