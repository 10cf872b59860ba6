/// The part of the loaders that doesn't depend on their types.

#include <accelerate/shared_loader.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "state.h"

namespace accelerate::detail {

LoaderControl::~LoaderControl() { state().prepared.forget(this); }

const std::vector<LoaderControl*>& prepared_loaders() { return state().prepared.loaders(); }

Position Position::to_be_saved(Sharing sharing) const {
  Position position = *this;
  if (sharing == Sharing::batches && in_pass) {
    ++position.epoch;
    position.batches = 0;
    position.in_pass = false;
  }
  return position;
}

void Position::save(torch::serialize::OutputArchive& archive) const {
  const auto write = [&archive](const char* key, int64_t value) {
    archive.write(key, torch::scalar_tensor(value, torch::kInt64), /*is_buffer=*/true);
  };
  write("epoch", epoch);
  write("batches", batches);
  write("in_pass", in_pass ? 1 : 0);
  write("batch_size", batch_size);
  write("dataset_size", dataset_size);
}

bool Position::load(torch::serialize::InputArchive& archive) {
  const auto read = [&archive](const char* key) {
    torch::Tensor value;
    archive.read(key, value, /*is_buffer=*/true);
    return value.item<int64_t>();
  };
  const int64_t saved_batch_size = read("batch_size");
  TORCH_CHECK(saved_batch_size == batch_size, "[accelerate] rank ", rank(), " of ", ranks(),
              ": the saved position of a loader counts batches of ", saved_batch_size, " rows, but this loader's have ",
              batch_size, "; resume with the batch size that was saved");
  int64_t saved_size = dataset_size;  // an earlier version of this library didn't save it
  if (torch::Tensor value; archive.try_read("dataset_size", value, /*is_buffer=*/true)) {
    saved_size = value.item<int64_t>();
  }
  const bool saved_in_pass = read("in_pass") != 0;
  TORCH_CHECK(saved_size == dataset_size || !saved_in_pass, "[accelerate] rank ", rank(), " of ", ranks(),
              ": the saved position of a loader is in the middle of an epoch over a data set of size ", saved_size,
              ", and this loader's has ", dataset_size,
              " (-1: it doesn't tell); resume with the data that were saved, or from a checkpoint between epochs");
  epoch = read("epoch");
  batches = read("batches");
  in_pass = saved_in_pass;
  return saved_size == dataset_size;
}

struct Fetchers::State {
  std::mutex mutex;
  std::condition_variable work, idle;  // for a worker, and for who waits until there's none at work
  std::deque<std::function<void(std::size_t)>> jobs;
  std::size_t running = 0;
  bool stop = false;
  std::vector<std::thread> threads;

  void run(std::size_t number) {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      work.wait(lock, [this] { return stop || !jobs.empty(); });
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
      if (--running == 0) {
        idle.notify_all();
      }
    }
  }

  void join() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
      jobs.clear();
    }
    work.notify_all();
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
    state_->threads.emplace_back([state = state_.get(), i] { state->run(i); });
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
  state_->work.notify_one();
}

void Fetchers::cancel() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->jobs.clear();
  state_->idle.wait(lock, [this] { return state_->running == 0; });
}

}  // namespace accelerate::detail
