/// The part of the loaders that doesn't depend on their types.

#include <accelerate/data.h>
#include <torch/cuda.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "state.h"

namespace accelerate::detail {

LoaderControl::~LoaderControl() { state().prepared.forget(this); }

RowSlice slice_of(int64_t global_rows) {
  const int64_t each = global_rows / ranks(), longer = global_rows % ranks();
  RowSlice slice;
  slice.global_rows = global_rows;
  slice.begin = rank() * each + std::min(rank(), longer);
  slice.rows = each + (rank() < longer ? 1 : 0);
  if (slice.rows == 0) {
    slice = RowSlice{0, 1, global_rows, true};
  }
  return slice;
}

bool loaders_take_part() {
  const State& s = state();
  // Alone, the device may be asked for after the loader is made.
  return !s.alone() || s.device.is_cuda() || torch::cuda::is_available() || s.control.active();
}

bool last_batch_matters() { return state().control.accumulation_steps > 1; }

void mark_last_batch(bool last) { state().control.last_batch = last; }

void hand_out(const void* loader, Sharing sharing, const RowSlice& slice) {
  State& s = state();
  s.last_loader = loader;
  s.last_batch_is_ghost = slice.ghost;
  if (sharing == Sharing::rows) {
    s.training_loader = loader;
    s.training_slice = slice;
    ++s.control.batch;
    s.control.last_batch = false;
  }
}

void take_back(const void* loader) {
  State& s = state();
  if (s.last_loader == loader) {
    s.last_loader = nullptr;
    s.last_batch_is_ghost = false;
  }
  if (s.training_loader == loader) {
    s.training_loader = nullptr;
    s.training_slice = RowSlice{};
  }
}

std::optional<torch::Device> delivery_device() {
  const State& s = state();
  return s.device_requested ? std::optional(s.device) : std::nullopt;
}

void throw_unshareable(const char* reason) {
  TORCH_CHECK(false, "[accelerate] rank ", rank(), " of ", ranks(),
              ": this loader can't be shared out among ranks: ", reason);
}

struct Fetchers::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void(std::size_t)>> jobs;
  std::size_t running = 0;
  bool stop = false;
  std::vector<std::thread> threads;

  void work(std::size_t number) {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stop || !jobs.empty(); });
      if (stop) {
        return;
      }
      auto job = std::move(jobs.front());
      jobs.pop_front();
      ++running;
      lock.unlock();
      job(number);
      job = nullptr;
      lock.lock();
      --running;
      changed.notify_all();
    }
  }

  void join() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
      jobs.clear();
    }
    changed.notify_all();
    for (std::thread& thread : threads) {
      if (thread.joinable() && thread.get_id() != std::this_thread::get_id()) {
        thread.join();
      }
    }
  }
};

namespace {

/// exit() in the middle of an epoch leaves loaders alive: their threads must be gone before LibTorch's
/// static objects are.
struct Registry {
  std::mutex mutex;
  std::set<Fetchers*> fetchers;
};

Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

Fetchers::Fetchers(std::size_t threads) : state_(std::make_unique<State>()) {
  static const bool registered = [] {
    std::atexit([] {
      std::lock_guard<std::mutex> lock(registry().mutex);
      for (Fetchers* fetchers : registry().fetchers) {
        fetchers->state_->join();
      }
    });
    return true;
  }();
  (void)registered;
  for (std::size_t i = 0; i < threads; ++i) {
    state_->threads.emplace_back([state = state_.get(), i] { state->work(i); });
  }
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().fetchers.insert(this);
}

Fetchers::~Fetchers() {
  {
    std::lock_guard<std::mutex> lock(registry().mutex);
    registry().fetchers.erase(this);
  }
  state_->join();
}

void Fetchers::submit(std::function<void(std::size_t)> job) {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->changed.notify_all();
}

void Fetchers::cancel() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->jobs.clear();
  state_->changed.wait(lock, [this] { return state_->running == 0; });
}

}  // namespace accelerate::detail
