#pragma once

/// The loaders behind accelerate::make_data_loader.
///
/// A loader's object is derived from torch's own class, so that its static type is torch's. That class asks a virtual
/// function for the next request, and the data set, through a pointer to its base, for the batch. Both are replaced.

#include <accelerate/dispatch.h>
#include <accelerate/export.h>
#include <accelerate/in_place.h>
#include <accelerate/loader_control.h>
#include <accelerate/sharing.h>
#include <accelerate/transfer.h>
#include <torch/data/dataloader.h>
#include <torch/data/worker_exception.h>
#include <torch/serialize/archive.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate::detail {

/// Threads that fetch ahead; each has a number, which selects its copy of the data set.
class ACCELERATE_API Fetchers {
 public:
  explicit Fetchers(std::size_t threads);
  ~Fetchers();
  void submit(std::function<void(std::size_t thread)> job);
  /// Forgets what hasn't begun and waits for what has.
  void cancel();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a fetcher's job gives, as torch's loaders would: its exceptions wrapped, within the loader's timeout.
template <typename Value>
Value await(std::future<Value>& value, const torch::data::FullDataLoaderOptions& options) {
  if (options.timeout) {
    TORCH_CHECK(value.wait_for(*options.timeout) == std::future_status::ready, "[accelerate] rank ", rank(),
                ": a loader's worker took longer than the loader's timeout");
  }
  try {
    return value.get();
  } catch (...) {
    throw torch::data::WorkerException(std::current_exception());
  }
}

/// A job that returns what `fetch(thread)` does.
template <typename Value, typename Fetch>
std::future<Value> submit(Fetchers& fetchers, Fetch fetch) {
  auto job = std::make_shared<std::packaged_task<Value(std::size_t)>>(std::move(fetch));
  auto result = job->get_future();
  fetchers.submit([job](std::size_t thread) { (*job)(thread); });
  return result;
}

/// The base class's options: what it would do with workers is done here.
inline torch::data::DataLoaderOptions without_workers(torch::data::DataLoaderOptions options) {
  return options.workers(0).max_jobs(std::nullopt);
}

/// Where a loader stands among the passes over its data, in terms that don't depend on the number of ranks.
struct ACCELERATE_API Position {
  int64_t epoch = 0;    ///< the pass that the next begin() makes or goes on with, from 0
  int64_t batches = 0;  ///< of the original, which were handed out in that pass
  bool in_pass = false;
  int64_t batch_size = 0;
  int64_t dataset_size = -1;  ///< -1: it doesn't tell
  /// Whole batches go to ranks at their own paces, which have no position in common: a loop that was left in its
  /// middle counts as ended.
  Position to_be_saved(Sharing sharing) const;
  void save(torch::serialize::OutputArchive& archive) const;
  /// Throws if the saved batch size isn't this one, or if the data set's size isn't and the pass had begun. Returns
  /// whether it is the same: otherwise the saved sampler is of another data set.
  bool load(torch::serialize::InputArchive& archive);
};

/// Writes "sampler": what its save() writes; nothing, if it throws, as some do that have nothing to save.
template <typename S>
void save_sampler(const S& sampler, torch::serialize::OutputArchive& archive) {
  torch::serialize::OutputArchive content(archive.compilation_unit());
  try {
    sampler.save(content);
  } catch (const std::exception&) {
    content = torch::serialize::OutputArchive(archive.compilation_unit());
  }
  archive.write("sampler", content);
}

template <typename Request, typename = void>
struct is_index_list : std::false_type {};
template <typename Request>
struct is_index_list<
    Request, std::void_t<decltype(Request(std::declval<Request&>().begin(), std::declval<Request&>().begin() + 1)),
                         typename Request::value_type>> : std::true_type {};

template <typename Request, bool = is_index_list<Request>::value>
struct IndexOf {
  using type = std::size_t;
};
template <typename Request>
struct IndexOf<Request, true> {
  using type = typename Request::value_type;
};

/// Throws if there are other ranks and the sampler is one that gives each rank its part already.
template <typename S>
void refuse_distributed_sampler() {
  if (decltype(is_distributed(static_cast<S*>(nullptr)))::value && ranks() > 1) {
    throw_unshareable(
        "its sampler is a DistributedSampler, which shares out rows itself; use torch's RandomSampler or "
        "SequentialSampler over the whole data set");
  }
}

/// A loader whose sampler says what to read.
template <typename D, typename S>
class SharedLoader final : public torch::data::StatelessDataLoader<D, S>, public LoaderControl {
  using Stateless = torch::data::StatelessDataLoader<D, S>;
  using Base = torch::data::DataLoaderBase<D, typename D::BatchType, typename S::BatchRequestType>;
  using Batch = typename D::BatchType;
  using Request = typename S::BatchRequestType;
  using Index = typename IndexOf<Request>::type;
  static constexpr bool kIndices = is_index_list<Request>::value;
  static constexpr auto kList = ListMeaning::rows;

 public:
  SharedLoader(D dataset, S sampler, torch::data::DataLoaderOptions options, Sharing sharing)
      : Stateless(std::move(dataset), sampler, without_workers(options)),
        sampler_(std::move(sampler)),
        first_(sampler_),
        full_options_(options),
        sharing_(sharing),
        dispatching_(ranks() > 1 && sharing != Sharing::batches &&
                     (kIndices ? dataloader_configuration().dispatch_batches.value_or(false) : true)) {
    refuse_distributed_sampler<S>();
    if (dispatching_ && !is_sendable<Batch>()) {
      throw_unshareable(
          "its batches have to be sent from rank to rank, but are of a type that isn't known; specialize "
          "accelerate::BatchFields for it");
    }
    position_.batch_size = static_cast<int64_t>(full_options_.batch_size);
    // The base holds the data set now; it becomes the one that comes back to this object for batches.
    this->main_thread_dataset_ = std::make_unique<Feed>(std::move(*this->main_thread_dataset_), this);
    if (full_options_.workers > 0 && reads()) {
      const D& original = static_cast<const Feed&>(*this->main_thread_dataset_);
      for (std::size_t i = 0; i < full_options_.workers; ++i) {
        copies_.push_back(std::make_unique<D>(original));
      }
      fetchers_ = std::make_unique<Fetchers>(full_options_.workers);
    }
  }

  ~SharedLoader() override {
    take_back(this);
    fetchers_.reset();  // before the copies that they read
  }

  void deliver_to_device() override { transfer_.enable(); }

  void skip_next(int64_t steps) override { skip_ = steps; }

  void save_position(torch::serialize::OutputArchive& archive) const override {
    const Position position = here().to_be_saved(sharing_);
    position.save(archive);
    archive.write("random_state", random_state_.defined() ? random_state_ : random_state(), /*is_buffer=*/true);
    // The sampler is ahead of the batches that were handed out; its beginning and their number say it all.
    save_sampler(position.in_pass ? *beginning_ : sampler_, archive);
  }

  void load_position(torch::serialize::InputArchive& archive) override {
    Position position = here();
    const bool same_data = position.load(archive);
    archive.read("random_state", random_state_, /*is_buffer=*/true);
    torch::serialize::InputArchive sampler;
    archive.read("sampler", sampler);
    if (!sampler.keys().empty()) {
      if (same_data) {
        sampler_.load(sampler);
      }
    } else {
      replay(position);
    }
    beginning_.emplace(sampler_);
    position_ = position;
    resuming_ = position.in_pass;
  }

  void check_position(torch::serialize::InputArchive& archive) const override {
    const bool same_data = here().load(archive);
    torch::serialize::InputArchive sampler;
    archive.read("sampler", sampler);
    if (same_data && !sampler.keys().empty()) {
      S(sampler_).load(sampler);
    }
  }

 private:
  /// Stands in for the data set: what the base class asks it for, the loader answers.
  class Feed final : public D {
   public:
    Feed(D&& dataset, SharedLoader* loader) : D(std::move(dataset)), loader_(loader) {}
    typename D::BatchType get_batch(typename D::BatchRequestType) override {
      return loader_->take([this](Request request) { return D::get_batch(std::move(request)); });
    }

   private:
    SharedLoader* loader_;
  };

  /// With the data set's size, which is only asked for where it matters: it may take its time.
  Position here() const {
    Position position = position_;
    position.dataset_size = size_of_dataset(*this->main_thread_dataset_);
    return position;
  }

  /// A step on its way.
  struct Ticket {
    RowSlice slice;
    std::vector<Request> requests;  // what is read for it, to be joined; this rank's own one, unless it reads for all
    int64_t batches = 0;            // of the original, up to its end
    std::future<Batch> batch;       // with workers
  };

  /// A sampler that saves nothing, as hand-made ones like to, is brought to where it was by asking it again.
  void replay(const Position& position) {
    if constexpr (std::is_copy_assignable_v<S>) {
      sampler_ = first_;
    }
    const torch::Tensor now = random_state();
    const int64_t resets = position.epoch + (position.in_pass ? 1 : 0);
    for (int64_t pass = 1; pass <= resets; ++pass) {
      if (pass == resets) {
        set_random_state(random_state_);
      }
      sampler_.reset();
    }
    set_random_state(now);
  }

  /// Whether the main process reads for all, and this rank anything.
  bool sends() const { return dispatching_ && dataloader_configuration().dispatch_batches.value_or(true); }
  bool reads() const { return !sends() || rank() == 0; }

  void reset() override {
    if (fetchers_) {
      fetchers_->cancel();
    }
    tickets_.clear();
    ahead_.reset();
    first_rows_.clear();
    drawn_ = 0;
    exhausted_ = false;
    agree_on_random_state();
    int64_t skipped = skip_ * (sharing_ == Sharing::rows ? 1 : ranks());
    skip_ = 0;
    if (resuming_) {
      skipped += position_.batches;
      resuming_ = false;
    } else {
      random_state_ = random_state();
      sampler_.reset();
      position_.epoch += position_.in_pass ? 1 : 0;  // the last pass was left before its end
    }
    position_.batches = 0;
    position_.in_pass = true;
    beginning_.emplace(sampler_);
    Base::reset();
    draw(skipped);
    position_.batches = drawn_;
    while (fetchers_ && tickets_.size() < full_options_.max_jobs && enqueue()) {
    }
  }

  std::optional<Request> get_batch_request() override {
    if (!ahead_ && tickets_.empty() && !enqueue()) {
      position_.epoch += position_.in_pass ? 1 : 0;
      position_.in_pass = false;
      end_pass(this);
      return std::nullopt;
    }
    return (ahead_ ? ahead_->ticket : tickets_.front()).requests.front();
  }

  /// The original's next requests, at most `count`.
  std::vector<Request> draw(int64_t count) {
    std::vector<Request> requests;
    while (!exhausted_ && static_cast<int64_t>(requests.size()) < count) {
      std::optional<Request> request = sampler_.next(full_options_.batch_size);
      if (!request || (full_options_.drop_last && request->size() < full_options_.batch_size)) {
        exhausted_ = true;
        break;
      }
      if constexpr (kIndices) {
        if (sharing_ == Sharing::rounds && drawn_ < ranks()) {
          first_rows_.insert(first_rows_.end(), request->begin(), request->end());
        }
      }
      ++drawn_;
      requests.push_back(std::move(*request));
    }
    return requests;
  }

  /// Draws requests, as the original would, until there are some for this rank.
  bool enqueue() {
    while (!exhausted_) {
      std::vector<Request> requests = draw(batches_of_step(sharing_));
      const bool whole_round = static_cast<int64_t>(requests.size()) == ranks();
      if (requests.empty() || (sharing_ == Sharing::rounds && full_options_.drop_last && !whole_round)) {
        return false;
      }
      Ticket ticket;
      ticket.batches = drawn_;
      if (sharing_ == Sharing::batches) {
        if (owner_of(drawn_ - 1) != rank()) {
          continue;
        }
        const auto rows = static_cast<int64_t>(requests[0].size());
        ticket.slice = RowSlice{0, rows, rows};
      } else if constexpr (kIndices) {
        if (!dispatching_) {
          requests = {own_request(requests, ticket.slice)};
        }
      }
      ticket.requests = std::move(requests);
      if (fetchers_) {
        ticket.batch = submit<Batch>(*fetchers_, [this, requests = ticket.requests](std::size_t thread) {
          return read(requests, [&](Request request) { return copies_[thread]->get_batch(std::move(request)); });
        });
      }
      tickets_.push_back(std::move(ticket));
      return true;
    }
    return false;
  }

  /// The rank that gets a whole batch. Batches of a stream can't be chosen from: one rank reads them all.
  int64_t owner_of(int64_t batch) const { return kIndices ? batch % ranks() : 0; }

  /// The indices of this rank's rows of a step.
  Request own_request(std::vector<Request>& requests, RowSlice& slice) const {
    Request& first = requests[0];
    if (sharing_ == Sharing::rows) {
      slice = slice_of(static_cast<int64_t>(first.size()));
      if (slice.rows == slice.global_rows) {
        return std::move(first);
      }
      return Request(first.begin() + slice.begin, first.begin() + slice.begin + slice.rows);
    }
    const std::vector<Index> indices = own_part_of_round(requests, first_rows_, full_options_.batch_size, slice);
    return Request(indices.begin(), indices.end());
  }

  /// A step's batch, whole or this rank's part.
  template <typename Fetch>
  static Batch read(const std::vector<Request>& requests, Fetch fetch) {
    if constexpr (is_sendable<Batch>()) {
      std::vector<Batch> batches;
      for (const Request& request : requests) {
        batches.push_back(fetch(request));
      }
      return join_batches<kList>(std::move(batches));
    } else {
      return fetch(requests.front());
    }
  }

  /// Gives the base class what get_batch_request() announced.
  template <typename Fetch>
  Batch take(Fetch fetch) {
    Ready ready = ahead_ ? std::move(*ahead_) : fetch_next(fetch);
    ahead_.reset();
    if (fetchers_) {
      enqueue();
    }
    if (ready.error) {
      if (!ready.known_to_all) {
        reading_failed(ready.error);
      }
      std::rethrow_exception(ready.error);
    }
    transfer_.finish(*ready.batch, ready.copied);
    if (!tickets_.empty() && tickets_.front().batch.valid() && transfer_.ahead() && !dispatching_ &&
        tickets_.front().batch.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
      ahead_.emplace(fetch_next(fetch));  // its copy runs while the program computes
    }
    position_.batches = ready.ticket.batches;
    hand_out(this, sharing_, ready.ticket.slice);
    if (sharing_ != Sharing::batches && last_batch_matters()) {
      mark_last_batch(!ahead_ && tickets_.empty() && !enqueue());
    }
    return std::move(*ready.batch);
  }

  /// A batch that is here, or being copied to the device, or the reason why it isn't.
  struct Ready {
    Ticket ticket;
    std::optional<Batch> batch;
    std::shared_ptr<c10::Event> copied;  // none where nothing is on its way
    std::exception_ptr error;
    bool known_to_all = false;  // all ranks throw at this step
  };

  template <typename Fetch>
  Ready fetch_next(Fetch& fetch) {
    Ready ready;
    ready.ticket = std::move(tickets_.front());
    tickets_.pop_front();
    ready.known_to_all = sends();
    try {
      ready.batch.emplace(fetch_batch(ready.ticket, fetch));
      ready.known_to_all = false;
      ready.copied = transfer_.start(*ready.batch);
    } catch (...) {
      ready.error = std::current_exception();
    }
    return ready;
  }

  template <typename Fetch>
  Batch fetch_batch(Ticket& ticket, Fetch& fetch) {
    const auto step = [&]() -> Batch {
      return fetchers_ ? await(ticket.batch, full_options_) : read(ticket.requests, fetch);
    };
    if constexpr (is_sendable<Batch>()) {
      if (dispatching_) {
        // A stream doesn't end here: its sampler says when.
        return sends() ? *read_and_send<kList, Batch>(step, ticket.slice)
                       : *read_and_slice<kList, Batch>(step, ticket.slice);
      }
    }
    std::optional<OwnRandomStream> stream;
    if (!fetchers_) {
      stream.emplace();
    }
    return step();
  }

  S sampler_;      // the base has a copy of its own, which is private to it and never asked
  const S first_;  // as the program made it
  const torch::data::FullDataLoaderOptions full_options_;
  const Sharing sharing_;
  const bool dispatching_;  // one rank reads for all, or all read all
  Position position_;
  bool resuming_ = false;       // the next reset() goes on from position_
  int64_t skip_ = 0;            // steps that the next pass leaves out
  std::optional<S> beginning_;  // the sampler as this pass began
  torch::Tensor random_state_;  // the generator's, just before
  int64_t drawn_ = 0;           // requests of this pass
  bool exhausted_ = false;
  std::vector<Index> first_rows_;  // that fill up the last round
  std::deque<Ticket> tickets_;
  std::optional<Ready> ahead_;
  Transfer transfer_;
  std::vector<std::unique_ptr<D>> copies_;  // one a worker, as torch has them
  std::unique_ptr<Fetchers> fetchers_;
};

}  // namespace accelerate::detail
