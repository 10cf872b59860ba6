#include "peers.h"

#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "bounded.h"

namespace accelerate::detail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Store = c10::intrusive_ptr<c10d::Store>;

constexpr milliseconds kBeat{500};
constexpr milliseconds kObservation{1500};  // three beats: in as long, who lives has told so
constexpr milliseconds kPatience{4000};     // with a store that may be gone
constexpr std::chrono::seconds kOverdue{5};
constexpr milliseconds kNewsTravel{500};      // to the threads that wait for them
constexpr std::chrono::hours kLong{20 * 24};  // nearly as many milliseconds as c10d can wait

void write(const Store& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

/// A text, if it's there. (get() alone would wait for it.)
std::optional<std::string> read(const Store& store, const std::string& key) {
  if (!store->check({key})) {
    return std::nullopt;
  }
  const std::vector<uint8_t> bytes = store->get(key);
  return std::string(bytes.begin(), bytes.end());
}

/// What a rank last said of itself: the number of the beat, of the operation, and the operation.
struct Beat {
  std::string number, operations, operation;

  static Beat parse(const std::string& text) {
    const size_t first = text.find(' ');
    const size_t second = text.find(' ', first + 1);
    return {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
  }
};

std::string text_of(int64_t beat, int64_t operations, const std::string& operation) {
  return std::to_string(beat) + ' ' + std::to_string(operations) + ' ' + operation;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The other ranks, as they look from here.
class Observation {
 public:
  Observation(const Store& store, const Environment& environment) : store_(store), environment_(environment) {}

  std::string describe(const Beat& mine) {
    std::string causes, others;
    std::vector<int64_t> told, silent;  // how they ended, or not
    for (int64_t rank = 0; rank < environment_.world_size; ++rank) {
      if (rank == environment_.rank) {
        continue;
      }
      if (read(store_, peer_key("left", rank))) {
        causes += "\nThe program had ended already on " + name(rank) + ".";
      } else if (const auto message = read(store_, peer_key("failed", rank))) {
        causes += "\nBefore that, " + name(rank) + " failed: " + first_line(*message);
        told.push_back(rank);
      } else {
        (read(store_, peer_key("gave_up", rank)) ? told : silent).push_back(rank);
      }
    }
    const auto before = beats(silent);
    if (!silent.empty()) {
      std::this_thread::sleep_for(kObservation);
    }
    const auto after = beats(silent);
    for (size_t i = 0; i < silent.size(); ++i) {
      const bool alive = after[i] && (!before[i] || before[i]->number != after[i]->number);
      if (alive || read(store_, peer_key("gave_up", silent[i]))) {
        told.push_back(silent[i]);
        continue;
      }
      causes += "\nNo sign of life from " + name(silent[i]) +
                ": it was killed or stopped, or its host is cut off. Its last operation: " +
                (after[i] && !after[i]->operation.empty() ? after[i]->operation : "none") + ".";
    }
    for (const int64_t rank : told) {
      const auto beat = read(store_, peer_key("alive", rank));
      const Beat theirs = beat ? Beat::parse(*beat) : Beat{"", "0", "none"};
      if (theirs.operations != mine.operations || theirs.operation != mine.operation) {
        others += "\nOperation " + theirs.operations + " of " + name(rank) + " is " + theirs.operation +
                  "; here operation " + mine.operations + " is " + mine.operation + ".";
      }
    }
    return causes + others;
  }

 private:
  std::string name(int64_t rank) const {
    const auto who = read(store_, peer_key("joined", rank));
    return "rank " + std::to_string(rank) + (who ? " (" + *who + ")" : "");
  }
  std::vector<std::optional<Beat>> beats(const std::vector<int64_t>& ranks) const {
    std::vector<std::optional<Beat>> result;
    for (const int64_t rank : ranks) {
      const auto text = read(store_, peer_key("alive", rank));
      result.push_back(text ? std::optional(Beat::parse(*text)) : std::nullopt);
    }
    return result;
  }

  Store store_;
  Environment environment_;
};

}  // namespace

struct PeersShared {
  Environment environment;
  Store beats, questions;
  std::promise<void> finished;  // by the thread, as its last deed
  std::future<void> thread_end = finished.get_future();

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  int64_t operations = 0;
  PeersDeed deed;
  std::function<void(const std::string&)> overdue;

  void run() {
    int64_t beat = 0;
    bool reachable = true;  // once the store is gone, the watch over our own operations goes on
    std::unique_lock<std::mutex> lock(mutex);
    while (!stopping) {
      if (deed.deadline && Clock::now() > *deed.deadline && overdue) {
        const auto call = overdue;
        const std::string late = deed.operation;
        deed.deadline.reset();
        lock.unlock();
        call(late);
        lock.lock();
      }
      const std::string text = text_of(beat++, operations, deed.operation);
      lock.unlock();
      reachable = reachable && tell(text);
      lock.lock();
      changed.wait_for(lock, kBeat, [&] { return stopping; });
    }
  }

  // Doesn't wait for an answer, so a host that is cut off doesn't hold it up.
  bool tell(const std::string& text) const {
    try {
      write(beats, peer_key("alive", environment.rank), text);
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
};

/// What other ranks have told of a failure.
struct PeersNews {
  std::mutex mutex;
  std::condition_variable arrived;
  bool over = false;  // nothing more comes
  std::string text;   // of the first one: "rank 1 (process 7 on host) failed: why"

  void listen(const Store& store, int64_t rank) {
    try {
      store->wait({peer_key("news", rank)}, kLong);
      const std::vector<uint8_t> bytes = store->get(peer_key("news", rank));
      {
        const std::lock_guard<std::mutex> lock(mutex);
        text.assign(bytes.begin(), bytes.end());
      }
      if (bytes.size() > 1) {
        write(store, peer_key("heard", rank), "1");
      }
    } catch (const std::exception&) {
      // The store has gone, and nothing was told before.
    }
    const std::lock_guard<std::mutex> lock(mutex);
    over = true;
    arrived.notify_all();
  }

  std::string wait_for(milliseconds limit) {
    std::unique_lock<std::mutex> lock(mutex);
    arrived.wait_for(lock, limit, [this] { return over; });
    return text;
  }
};

Peers::Peers(const Environment& environment, Store beats, Store news, Store questions)
    : shared_(std::make_shared<PeersShared>()), news_(std::make_shared<PeersNews>()) {
  shared_->environment = environment;
  shared_->beats = std::move(beats);
  shared_->questions = std::move(questions);
  std::thread([shared = shared_] {
    shared->run();
    shared->finished.set_value();
  }).detach();
  std::thread([heard = news_, store = std::move(news), rank = environment.rank] {
    heard->listen(store, rank);
  }).detach();
}

Peers::~Peers() { stop(); }

Peers::Operation::Operation(Peers* peers, const std::string& what, bool watched)
    : shared_(peers ? peers->shared_ : nullptr) {
  if (shared_) {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    ++shared_->operations;
    around_ = std::exchange(shared_->deed, {what, true, std::nullopt});
    if (watched) {
      shared_->deed.deadline = Clock::now() + shared_->environment.timeout + kOverdue;
    }
  }
}

Peers::Operation::~Operation() {
  if (shared_) {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (around_.inside) {
      shared_->deed = std::move(around_);
    } else {
      shared_->deed.inside = false;
      shared_->deed.deadline.reset();
    }
  }
}

bool Peers::in_operation() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->deed.inside;
}

void Peers::set_overdue(std::function<void(const std::string&)> overdue) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->overdue = std::move(overdue);
}

void Peers::failed(const std::string& message) {
  tell_end("failed", message);
  try {
    const auto tell = [store = shared_->questions, environment = shared_->environment, message] {
      const std::string rank = "rank " + std::to_string(environment.rank);
      const std::string text = rank + " (" + own_name() + ") failed: " + first_line(message);
      std::vector<std::string> heard;
      for (int64_t other = 0; other < environment.world_size; ++other) {
        if (other != environment.rank && !store->check({peer_key("news", other)})) {
          write(store, peer_key("news", other), text);
          heard.push_back(peer_key("heard", other));
        }
      }
      // The store may end with this process.
      for (const auto limit = Clock::now() + kNewsTravel;
           !heard.empty() && Clock::now() < limit && !store->check(heard);) {
        std::this_thread::sleep_for(milliseconds(2));
      }
    };
    within(kPatience, tell);
  } catch (const std::exception&) {
    // Rank 0 is gone: there is nobody to be told.
  }
}

void Peers::gave_up() { tell_end("gave_up", "1"); }

void Peers::tell_end(const char* what, const std::string& message) {
  std::string last_beat;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    last_beat = text_of(-1, shared_->operations, shared_->deed.operation);
  }
  try {
    within(kPatience,
           [store = shared_->questions, rank = shared_->environment.rank, key = std::string(what), message, last_beat] {
             write(store, peer_key("alive", rank), last_beat);
             write(store, peer_key(key.c_str(), rank), message);
           });
  } catch (const std::exception&) {
    // Rank 0 is gone: there is nobody to be told.
  }
}

std::string Peers::explain() const {
  Beat mine;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    mine = {"", std::to_string(shared_->operations), shared_->deed.operation};
  }
  const Environment& environment = shared_->environment;
  const auto text = std::make_shared<std::string>();
  std::string lost;
  try {
    const auto look = [text, mine, store = shared_->questions, environment] {
      *text = Observation(store, environment).describe(mine);
    };
    if (within(kPatience, look)) {
      return *text;
    }
    lost = "\nNo answer from rank 0 (at " + environment.master_address +
           "): it was killed or stopped, or its host is cut off.";
  } catch (const std::exception&) {
    lost = "\nThe program has ended on rank 0 (at " + environment.master_address + ").";
  }
  const std::string news = news_->wait_for(kNewsTravel);
  return news.empty() ? lost : "\nBefore that, " + news;
}

void Peers::wait_for_ends(milliseconds limit) const {
  const Store store = shared_->questions;
  const Environment environment = shared_->environment;
  const auto ended = [store](int64_t rank) {
    return read(store, peer_key("left", rank)) || read(store, peer_key("failed", rank)) ||
           read(store, peer_key("gave_up", rank));
  };
  try {
    within(limit, [ended, environment, deadline = Clock::now() + limit] {
      for (int64_t rank = 0; rank < environment.world_size; ++rank) {
        while (rank != environment.rank && !ended(rank) && Clock::now() < deadline) {
          std::this_thread::sleep_for(milliseconds(10));
        }
      }
    });
  } catch (const std::exception&) {
    // It isn't this process's store.
  }
}

void Peers::stop() {
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->stopping = true;
    shared_->overdue = nullptr;
  }
  shared_->changed.notify_all();
  if (shared_->thread_end.valid()) {
    shared_->thread_end.wait_for(std::chrono::seconds(1));
  }
}

void no_more_news(c10d::Store& store, int64_t rank) {
  store.set(peer_key("news", rank), std::vector<uint8_t>{' '});  // too short to be any
}

std::string peer_key(const char* what, int64_t rank) { return std::string(what) + "/" + std::to_string(rank); }

std::string own_name() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return "process " + std::to_string(getpid()) + " on " + host;
}

}  // namespace accelerate::detail
