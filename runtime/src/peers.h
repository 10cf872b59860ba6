#pragma once

/// What ranks tell each other about themselves beside the collectives, through the store: who they are, that they
/// live, what they are doing, how they ended. From this an error says which rank is the cause.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "environment.h"

namespace accelerate::detail {

/// What a rank does now, or did last.
struct PeersDeed {
  std::string operation;
  bool inside = false;
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct PeersShared;  // with the thread of beats
struct PeersNews;    // with the one that waits for news

class Peers {
 public:
  /// Connections that nothing else uses: a thread tells through `beats`, twice a second, that this rank lives; another
  /// waits on `news` for a failure, which is then known here even if it was rank 0's, and the store has gone with it.
  /// `questions` is for everything else.
  Peers(const Environment& environment, c10::intrusive_ptr<c10d::Store> beats, c10::intrusive_ptr<c10d::Store> news,
        c10::intrusive_ptr<c10d::Store> questions);
  ~Peers();

  /// What this rank does as long as the result lives. `watched`: it has the timeout, and if it takes 5 s more than
  /// that, `overdue` is called on the thread.
  class Operation {
   public:
    Operation(Peers* peers, const std::string& what, bool watched);  // peers may be null
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    std::shared_ptr<PeersShared> shared_;
    PeersDeed around_;  // the operation that this one is a part of
  };
  void set_overdue(std::function<void(const std::string& operation)> overdue);
  bool in_operation() const;

  /// Tells the others that this rank ends by a failure of its own, and which.
  void failed(const std::string& message);
  /// Tells the others that this rank ends because an operation with them failed.
  void gave_up();

  /// What is known of the others that could be the cause of a failure here: a line for each, beginning with a line
  /// break. Takes up to some seconds, whatever has become of the store.
  std::string explain() const;

  /// Waits for the others to have ended or given up, for at most `limit`: they may want to ask the store, which ends
  /// with this process.
  void wait_for_ends(std::chrono::milliseconds limit) const;

  /// No more beats.
  void stop();

 private:
  void tell_end(const char* what, const std::string& message);

  std::shared_ptr<PeersShared> shared_;
  std::shared_ptr<PeersNews> news_;
};

/// The end of waiting for news on a rank, whose process is about to leave the store behind.
void no_more_news(c10d::Store& store, int64_t rank);

/// "joined/3": what a rank has said about itself.
std::string peer_key(const char* what, int64_t rank);

/// Who this is, for the others: "process 123 on host".
std::string own_name();

}  // namespace accelerate::detail
