#include "group.h"

#include <c10/util/Exception.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <chrono>
#include <exception>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/csrc/distributed/c10d/comm.hpp>

#include "group_impl.h"
#include "outcome.h"
#include "same_on_all.h"

namespace accelerate::detail {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a rank that is done waits for the others to be done, before it closes its connections. A rank
/// that leaves too early ends the others' job with an error, after this time.
constexpr std::chrono::seconds kFarewell{5};

std::string key(const char* stage, int64_t rank) { return std::string(stage) + "/" + std::to_string(rank); }

c10::intrusive_ptr<c10d::Store> open_store(const Environment& environment) {
  c10d::TCPStoreOptions options;
  options.port = environment.master_port;
  options.isServer = environment.rank == 0 && !environment.store_is_served;
  options.waitWorkers = false;  // we wait ourselves, and can say for whom
  options.timeout = environment.timeout;
  c10::intrusive_ptr<c10d::Store> store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  } catch (const std::exception& error) {
    if (std::string(error.what()).find("libuv") == std::string::npos) {
      throw;
    }
    options.useLibUV = false;  // some builds lack it, though it's the default
    store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  }
  return c10::make_intrusive<c10d::PrefixStore>("accelerate/" + environment.restart, store);
}

/// The ranks that haven't reached a stage.
std::vector<int64_t> missing(c10d::Store& store, const char* stage, int64_t ranks) {
  std::vector<int64_t> result;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (!store.check({key(stage, rank)})) {
      result.push_back(rank);
    }
  }
  return result;
}

bool all_reached(c10d::Store& store, const char* stage, int64_t ranks) {
  std::vector<std::string> keys;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    keys.push_back(key(stage, rank));
  }
  return store.check(keys);
}

void meet(c10d::Store& store, const Environment& environment) {
  store.set(key("joined", environment.rank), std::vector<uint8_t>{1});
  const auto deadline = Clock::now() + environment.timeout;
  auto pause = std::chrono::milliseconds(1);
  while (!all_reached(store, "joined", environment.world_size)) {
    TORCH_CHECK(Clock::now() < deadline, "[accelerate] rank ", environment.rank, " of ", environment.world_size,
                ": after ", environment.timeout.count() / 1000,
                " s these ranks haven't started: ", c10::Join(", ", missing(store, "joined", environment.world_size)));
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
}

/// What is known of the ranks that are gone, for an error's text.
std::string who_left(Group::Impl& impl) {
  try {
    std::string left;
    for (int64_t rank = 0; rank < impl.environment.world_size; ++rank) {
      if (impl.store->check({key("left", rank)})) {
        left += (left.empty() ? "rank " : ", rank ") + std::to_string(rank);
      }
    }
    return left.empty() ? "" : "\nThe program had ended already on " + left + ".";
  } catch (const std::exception&) {
    return impl.environment.rank == 0 ? "" : "\nRank 0 is gone.";
  }
}

}  // namespace

Group::Group(const Environment& environment, bool cuda) : impl_(std::make_unique<Impl>()) {
  impl_->environment = environment;
  impl_->debug = flag("ACCELERATE_DEBUG_MODE");
  try {
    impl_->store = open_store(environment);
  } catch (const std::exception& error) {
    TORCH_CHECK(false, "[accelerate] rank ", environment.rank, " of ", environment.world_size,
                ": can't reach rank 0 at ", environment.master_address, ":", environment.master_port, ": ",
                text_of(error));
  }
  meet(*impl_->store, environment);
  auto& group = impl_->group;
  group = c10::make_intrusive<c10d::ProcessGroup>(impl_->store, static_cast<int>(environment.rank),
                                                  static_cast<int>(environment.world_size));
  guard("start of the process group", [&] {
    // NCCL refuses two ranks on one GPU; gloo takes CUDA tensors as well, through the host.
    const bool nccl =
        cuda && has_nccl() && environment.local_world_size <= static_cast<int64_t>(torch::cuda::device_count());
    add_gloo(*group, impl_->store, environment, cuda && !nccl);
    if (nccl) {
      add_nccl(*group, impl_->store, environment);
    }
    group->setDefaultBackend(c10d::ProcessGroup::BackendType::GLOO);
    group->setGroupName("accelerate");
  });
}

Group::~Group() = default;

void Group::guard(const std::string& operation, const std::function<void()>& run) {
  const auto start = Clock::now();
  try {
    run();
  } catch (const std::exception& error) {
    fail(operation, error, std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count());
  }
}

void Group::fail(const std::string& operation, const std::exception& error, int64_t seconds) {
  impl_->broken = true;
  TORCH_CHECK(false, "[accelerate] rank ", impl_->environment.rank, " of ", impl_->environment.world_size, ": ",
              operation, " failed after ", seconds, " s (timeout ", impl_->environment.timeout.count() / 1000,
              " s): ", text_of(error), who_left(*impl_));
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
  compare([&] { return std::vector<std::string>{describe("all-reduce of " + what, x)}; });
  guard("all-reduce of " + what, [&] {
    std::vector<at::Tensor> tensors{x};
    impl_->group->allreduce(tensors)->wait();
  });
}

void Group::maximum(at::Tensor& x, const std::string& what) {
  compare([&] { return std::vector<std::string>{describe("all-reduce of " + what, x)}; });
  guard("all-reduce of " + what, [&] {
    std::vector<at::Tensor> tensors{x};
    c10d::AllreduceOptions options;
    options.reduceOp = c10d::ReduceOp::MAX;
    impl_->group->allreduce(tensors, options)->wait();
  });
}

void Group::broadcast(at::Tensor& x, int64_t root, const std::string& what) {
  compare([&] { return std::vector<std::string>{describe("broadcast of " + what, x)}; });
  guard("broadcast of " + what, [&] {
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
  compare([&] { return std::vector<std::string>{describe("all-gather of " + what, x)}; });
  std::vector<std::vector<at::Tensor>> result(1);
  guard("all-gather of " + what, [&] {
    for (int64_t rank = 0; rank < impl_->environment.world_size; ++rank) {
      result[0].push_back(at::empty_like(x));
    }
    std::vector<at::Tensor> tensors{x};
    impl_->group->allgather(result, tensors)->wait();
  });
  return std::move(result[0]);
}

void Group::leave(bool failed) {
  try {
    impl_->store->set(key("left", impl_->environment.rank), std::vector<uint8_t>{1});
    const auto deadline = Clock::now() + kFarewell;
    while (!failed && !impl_->broken && Clock::now() < deadline &&
           !all_reached(*impl_->store, "left", impl_->environment.world_size)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (!failed && !impl_->broken && impl_->environment.rank == 0 && !impl_->environment.store_is_served) {
      // The store lives here: the others get a moment for their last look at it.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  } catch (const std::exception&) {
    // The store is gone with rank 0: nothing to wait for.
  }
  if (failed || impl_->broken) {
    // Destructors could wait for operations that never end. The kernel closes the connections.
    (void)impl_.release();
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
