#include "meeting.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "bounded.h"
#include "outcome.h"
#include "peers.h"

namespace accelerate::detail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;

constexpr std::chrono::seconds kPatience{2};  // with a store that may be gone
constexpr milliseconds kLongestPause{100};

constexpr const char* kStart = "start";          // which start of the job the store is of: restarts until then
constexpr const char* kAhead = "started_again";  // who is of a later one

void write(c10d::Store& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

/// A text, if it's there. (get() alone would wait for it.)
std::string read(c10d::Store& store, const std::string& key) {
  if (!store.check({key})) {
    return "";
  }
  const std::vector<uint8_t> bytes = store.get(key);
  return std::string(bytes.begin(), bytes.end());
}

/// Calls `done`, less and less often, until it's true or the time is over, and returns which.
template <typename Done>
bool wait_until(Clock::time_point deadline, Done done) {
  for (milliseconds pause{1}; !done(); pause = std::min(pause * 2, kLongestPause)) {
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(pause);
  }
  return true;
}

/// One rank's part, on a thread of its own: rank 0 may be stopped, and then its store doesn't answer.
class Meeting {
 public:
  explicit Meeting(const Environment& environment)
      : environment_(environment), deadline_(Clock::now() + environment.timeout) {}

  void run() {
    for (;; std::this_thread::sleep_for(kLongestPause)) {
      Store store = reach();
      if (!store) {
        continue;
      }
      found = true;
      if (environment_.store_is_served || is_of_this_start(*store)) {
        wait_for_all(*store);
        result = store;
        return;
      }
      TORCH_CHECK(Clock::now() < deadline_, who(), "after ", seconds(), " s rank 0 at ", address(),
                  " hasn't been started again, as this rank has (", start_text(restarts_), ")");
    }
  }

  std::string who() const {
    return c10::str("[accelerate] rank ", environment_.rank, " of ", environment_.world_size, ": ");
  }
  std::string address() const { return c10::str(environment_.master_address, ":", environment_.master_port); }
  int64_t seconds() const { return environment_.timeout.count() / 1000; }

  Store result;
  std::atomic<bool> found{false};  // a store

 private:
  static std::string start_text(int64_t number) { return c10::str("restart ", number); }

  /// Whether what goes wrong with a store may be that it's an earlier start's, which ends.
  bool next_may_come() const {
    return restarts_ > 0 && !serves_store(environment_) && !environment_.store_is_served && Clock::now() < deadline_;
  }

  /// A store; none if one ended just now.
  Store reach() const {
    try {
      return open_store(environment_, serves_store(environment_));
    } catch (const std::exception& error) {
      TORCH_CHECK(next_may_come(), who(),
                  serves_store(environment_) ? "can't serve the others at " : "can't reach rank 0 at ", address(), ": ",
                  text_of(error));
      return {};
    }
  }

  /// Enters this rank, unless the store is that of an earlier start of the job.
  bool is_of_this_start(c10d::Store& store) const {
    if (serves_store(environment_)) {
      write(store, kStart, std::to_string(restarts_));
    }
    std::string start;
    try {
      TORCH_CHECK(wait_until(deadline_, [&] { return !(start = read(store, kStart)).empty(); }), who(), "rank 0 at ",
                  address(), " has opened a store, and then said nothing for ", seconds(), " s");
      if (std::stoll(start) < restarts_) {
        write(store, kAhead, c10::str("rank ", environment_.rank, " (", own_name(), "; ", start_text(restarts_), ")"));
        return false;
      }
    } catch (const std::exception&) {
      if (next_may_come()) {
        return false;
      }
      throw;
    }
    TORCH_CHECK(std::stoll(start) == restarts_, who(),
                "the job has been started again while this rank was starting: rank 0 is of ",
                start_text(std::stoll(start)), ", this one of ", start_text(restarts_));
    TORCH_CHECK(store.add(peer_key("entered", environment_.rank), 1) == 1, who(),
                "there is a rank of this number already (", read(store, peer_key("joined", environment_.rank)),
                "), at ", address(), "; each machine needs a number of its own (--machine_rank), each job a port");
    return true;
  }

  void wait_for_all(c10d::Store& store) const {
    write(store, peer_key("joined", environment_.rank), own_name());
    std::vector<std::string> keys;
    for (int64_t rank = 0; rank < environment_.world_size; ++rank) {
      keys.push_back(peer_key("joined", rank));
    }
    const bool all = wait_until(deadline_, [&] {
      const std::string ahead = read(store, kAhead);
      TORCH_CHECK(ahead.empty(), who(), ahead,
                  " has been started again: its launcher's ranks failed before all had met");
      return store.check(keys);
    });
    TORCH_CHECK(all, who(), "after ", seconds(), " s these ranks haven't started: ", missing(store, keys));
  }

  static std::string missing(c10d::Store& store, const std::vector<std::string>& keys) {
    std::vector<size_t> ranks;
    for (size_t rank = 0; rank < keys.size(); ++rank) {
      if (!store.check({keys[rank]})) {
        ranks.push_back(rank);
      }
    }
    return c10::Join(", ", ranks);
  }

  const Environment environment_;
  const int64_t restarts_ = number("TORCHELASTIC_RESTART_COUNT").value_or(0);
  const Clock::time_point deadline_;
};

}  // namespace

bool serves_store(const Environment& environment) { return environment.rank == 0 && !environment.store_is_served; }

Store open_store(const Environment& environment, bool serve) {
  c10d::TCPStoreOptions options;
  options.port = environment.master_port;
  options.isServer = serve;
  options.waitWorkers = false;  // we wait ourselves, and can say for whom
  options.timeout = environment.timeout;
  Store store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  } catch (const std::exception& error) {
    if (std::string(error.what()).find("libuv") == std::string::npos) {
      throw;
    }
    options.useLibUV = false;  // some builds lack it, though it's the default
    store = c10::make_intrusive<c10d::TCPStore>(environment.master_address, options);
  }
  // torchrun's store outlives the ranks: keys of an earlier start must not be read.
  const std::string start = environment.store_is_served ? environment.restart : "";
  return c10::make_intrusive<c10d::PrefixStore>("accelerate/" + start, store);
}

Store meet(const Environment& environment) {
  const auto meeting = std::make_shared<Meeting>(environment);
  bool done = false;
  try {
    done = within(environment.timeout + kPatience, [meeting] { meeting->run(); });
  } catch (const std::exception& error) {
    const std::string message = text_of(error);
    TORCH_CHECK(false,
                message.rfind("[accelerate]", 0) == 0
                    ? ""
                    : meeting->who() + "lost rank 0 at " + meeting->address() + " while the ranks were meeting: ",
                message);
  }
  // c10d tries to connect again after its timeout.
  TORCH_CHECK(done || meeting->found, meeting->who(), "can't reach rank 0 at ", meeting->address(),
              ": no connection within ", meeting->seconds(), " s");
  TORCH_CHECK(done, meeting->who(), "lost rank 0 at ", meeting->address(),
              " while the ranks were meeting: it doesn't answer any more");
  return meeting->result;
}

}  // namespace accelerate::detail
