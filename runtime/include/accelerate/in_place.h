#pragma once

/// Sharing out a loader that torch::data::make_data_loader has made already.

#include <accelerate/in_place_control.h>
#include <accelerate/in_place_workers.h>
#include <torch/data/dataloader/stateful.h>
#include <torch/data/dataloader/stateless.h>
#include <torch/data/detail/sequencers.h>
#include <torch/data/samplers/distributed.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate::detail {

template <typename Request>
std::true_type is_distributed(const torch::data::samplers::DistributedSampler<Request>*);
std::false_type is_distributed(...);

/// Tells that a loader begins a pass, behind its sampler's reset: in the place of its sequencer, which a loader without
/// workers never asks, and makes anew with each pass.
template <typename Base>
class PassNotice final : public SequencerOf<Base> {
  using Producer = typename SequencerOf<Base>::ResultProducer;

 public:
  /// `begin_pass` mustn't throw.
  PassNotice(Base& loader, std::function<void()> begin_pass) : loader_(loader), begin_pass_(std::move(begin_pass)) {}
  ~PassNotice() override {
    auto& sequencer = loader_.*Opened<Base>::sequencer();
    if (sequencer && sequencer.get() != this) {  // otherwise the loader is being destroyed
      sequencer = std::make_unique<PassNotice>(loader_, begin_pass_);
      begin_pass_();
    }
  }
  typename Producer::result_type next(Producer next_result) override { return next_result(); }

 private:
  Base& loader_;
  const std::function<void()> begin_pass_;
};

template <typename D, typename = void>
inline constexpr bool takes_indices = false;
template <typename D>
inline constexpr bool
    takes_indices<D, std::void_t<decltype(typename D::BatchRequestType(std::declval<std::vector<std::size_t>&>()))>> =
        std::is_convertible_v<decltype(*std::declval<typename D::BatchRequestType&>().begin()), std::size_t>;

/// What the data set is asked for, as an object that lasts.
template <typename D>
using HeldRequest =
    std::conditional_t<takes_indices<D>, std::vector<std::size_t>, std::decay_t<typename D::BatchRequestType>>;

/// Whether it lasts: it isn't a view of what the sampler has given.
template <typename D, typename Base>
inline constexpr bool holds_requests =
    takes_indices<D> || std::is_same_v<typename D::BatchRequestType, typename Base::BatchRequestType> ||
    std::is_arithmetic_v<typename D::BatchRequestType>;

/// A step's requests, of a loader without workers: it asks its sampler for one, and we for the others. The loader's
/// pass ends where its sampler does, whatever we have asked for before. So a step that is left out if it isn't whole
/// (drop_last) leaves its last request to the loader, and any other step its first.
template <typename Base, typename Request>
class StepRequests {
 public:
  StepRequests(Base& loader, Sharing sharing)
      : loader_(loader), whole_(static_cast<std::size_t>(batches_of_step(sharing))) {}

  std::size_t whole() const { return whole_; }

  void begin_pass() {
    exhausted_ = false;
    error_ = nullptr;
    ahead_.clear();
    look_ahead();
  }

  /// Behind a step.
  void look_ahead() {
    if (loader_.options().drop_last) {
      ask(whole_ - 1);
    }
  }

  /// Those of the step that the loader has asked for a request of; fewer than whole() at the end.
  std::deque<Request> next(Request request) {
    TORCH_CHECK(!exhausted_, "[accelerate] rank ", rank(), " of ", ranks(),
                ": a loader's sampler goes on behind its end; make the loader with accelerate::make_data_loader (same "
                "arguments), which doesn't mind");
    ahead_.push_back(std::move(request));
    ask(whole_);
    if (error_) {
      std::rethrow_exception(error_);
    }
    return std::exchange(ahead_, {});
  }

 private:
  void ask(std::size_t requests) {
    try {
      while (!exhausted_ && ahead_.size() < requests) {
        if (auto more = (loader_.*Opened<Base>::next_request())()) {
          if constexpr (std::is_same_v<Request, std::vector<std::size_t>>) {
            ahead_.emplace_back(more->begin(), more->end());
          } else {
            ahead_.push_back(static_cast<Request>(std::move(*more)));
          }
        } else {
          exhausted_ = true;
        }
      }
    } catch (...) {
      error_ = std::current_exception();  // nobody to throw it to, yet
    }
  }

  Base& loader_;
  const std::size_t whole_;
  bool exhausted_ = false;    // the sampler has told its end to us
  std::exception_ptr error_;  // or has thrown this
  std::deque<Request> ahead_;
};

/// Stands in for the loader's data set, which gets this rank's part of what the loader asks for.
template <typename D, typename Base>
class InPlaceFeed final : public D, public InPlaceControl {
  using Request = typename D::BatchRequestType;

 public:
  /// `lasting`: the sampler keeps nothing from pass to pass.
  InPlaceFeed(D&& dataset, Base& loader, Sharing sharing, bool lasting)
      : D(std::move(dataset)),
        own_rows_(sharing, loader.options().batch_size),
        requests_(loader, sharing),
        progress_(loader.options(), sharing),
        lasting_(lasting) {}
  ~InPlaceFeed() override { take_back(this); }

  void begin_pass() {
    progress_.begin_pass();
    own_rows_.begin_pass();
    requests_.begin_pass();
  }

  typename D::BatchType get_batch(Request request) override {
    const int64_t size = size_of_dataset<D>(*this);
    if (!touches_batches_) {
      progress_.count(std::distance(request.begin(), request.end()), size);
      return D::get_batch(std::move(request));
    }
    const IndexLists mine =
        read_alone([&] { return requests_.next(std::vector<std::size_t>(request.begin(), request.end())); });
    const IndexLists step = step_of_main(mine, requests_.whole(), own_rows_.batch_size());
    RowSlice slice;
    const std::vector<std::size_t> rows = own_rows_.of(step, slice);
    auto batch = read_alone([&] {
      OwnRandomStream stream;
      std::vector<std::size_t> own = rows;
      auto read = D::get_batch(Request(own));
      transfer_.finish(read, transfer_.start(read));
      return read;
    });
    hand_out(this, own_rows_.sharing(), slice);
    int64_t global_rows = 0;
    for (const auto& list : step) {
      global_rows += static_cast<int64_t>(list.size());
    }
    const bool last = progress_.count(global_rows, size);
    mark_last_batch(last || step.size() < requests_.whole());
    requests_.look_ahead();
    return batch;
  }

 private:
  bool between_passes() const override { return lasting_ && progress_.between_passes(); }

  OwnRows own_rows_;
  StepRequests<Base, std::vector<std::size_t>> requests_;
  PassProgress progress_;
  const bool lasting_;
};

/// The same where batches can't be chosen from, or aren't to be (dispatch_batches): the main process reads what its
/// loader asks for, and sends it to all.
template <typename D, typename Base>
class InPlaceSentFeed final : public D, public InPlaceControl {
  using Request = typename D::BatchRequestType;
  using Held = HeldRequest<D>;
  using Batch = typename D::BatchType;
  static constexpr auto kList = ListMeaning::rows;

 public:
  InPlaceSentFeed(D&& dataset, Base& loader, Sharing sharing, bool lasting)
      : D(std::move(dataset)),
        sharing_(sharing),
        requests_(loader, sharing),
        progress_(loader.options(), sharing),
        lasting_(lasting) {}
  ~InPlaceSentFeed() override { take_back(this); }

  void begin_pass() {
    progress_.begin_pass();
    requests_.begin_pass();
  }

  Batch get_batch(Request request) override {
    const int64_t size = size_of_dataset<D>(*this);
    if (!touches_batches_) {
      if constexpr (takes_indices<D>) {
        progress_.count(std::distance(request.begin(), request.end()), size);
      }
      return D::get_batch(std::move(request));
    }
    std::deque<Held> requests = read_alone([&] { return requests_.next(held(std::move(request))); });
    const bool whole = requests.size() == requests_.whole();
    const auto read = [&] {
      std::vector<Batch> batches;
      for (Held& held : requests) {
        batches.push_back(D::get_batch(std::move(held)));
      }
      return std::optional<Batch>(join_batches<kList>(std::move(batches)));
    };
    RowSlice slice;
    std::optional<Batch> batch;
    if (dataloader_configuration().dispatch_batches.value_or(true) && ranks() > 1) {
      batch = read_and_send<kList, Batch>(read, slice);
    } else {
      batch = read_alone([&] { return read_and_slice<kList, Batch>(read, slice); });
    }
    read_alone([&] { transfer_.finish(*batch, transfer_.start(*batch)); });
    hand_out(this, sharing_, slice);
    mark_last_batch(progress_.count(slice.global_rows, size) || !whole);
    requests_.look_ahead();
    return std::move(*batch);
  }

 private:
  static Held held(Request&& request) {
    if constexpr (takes_indices<D>) {
      return Held(request.begin(), request.end());
    } else {
      return Held(std::move(request));
    }
  }

  bool between_passes() const override { return lasting_ && progress_.between_passes(); }

  const Sharing sharing_;
  StepRequests<Base, Held> requests_;
  PassProgress progress_;
  const bool lasting_;
};

/// Stands in for a data set that decides itself what comes next: the main process reads, and sends each batch to all.
template <typename D, typename Base>
class InPlaceStream final : public D, public InPlaceControl {
  using Request = typename D::BatchRequestType;
  using Batch = typename D::BatchType::value_type;

 public:
  InPlaceStream(D&& dataset, Base& loader, Sharing sharing)
      : D(std::move(dataset)),
        steps_(sharing, loader.options(), !dataloader_configuration().dispatch_batches.value_or(true)) {}
  ~InPlaceStream() override { take_back(this); }

  void begin_pass() {
    steps_.begin_pass();
    exhausted_ = false;
    over_ = false;
  }

  typename D::BatchType get_batch(Request size) override {
    Source source{*this, size};
    auto batch = touches_batches_ ? steps_.next(this, transfer_, source) : source.next();
    over_ = !batch;
    return batch;
  }

 private:
  struct Source {
    InPlaceStream& self;
    const Request& size;

    std::optional<Batch> next() {
      std::optional<Batch> batch;
      if (!self.exhausted_) {  // asked again, it might begin anew
        batch = self.D::get_batch(size);
        self.exhausted_ = !batch;
      }
      return batch;
    }
    void leave_out() {}
  };

  bool between_passes() const override { return over_; }

  SentSteps<Batch> steps_;
  bool exhausted_ = false;  // in this pass
  bool over_ = true;
};

/// The loader's new control, or none and the reason why it can't be shared out.
struct InPlace {
  LoaderControl* control = nullptr;
  const char* reason = nullptr;
};

/// Why a loader that isn't yet can't be shared out, whatever its data set and its sampler are; null if it can.
template <typename Base>
const char* not_in_place(Base& loader) {
  if ((loader.options().workers > 0) != (loader.options().max_jobs > 0)) {
    return "its options have jobs for no workers, or workers without jobs";
  }
  if ((loader.*Opened<Base>::shuttle()).in_flight_jobs() > 0) {
    return "a loop over it has begun";
  }
  return nullptr;
}

/// Puts `Feed(data set, loader, more...)` in the place of the loader's data set, unless such a one is there already.
template <typename Feed, typename Base, typename... More>
InPlace replace_dataset(Base& loader, const More&... more) {
  auto& dataset = loader.*Opened<Base>::dataset();
  if (auto* control = dynamic_cast<LoaderControl*>(dataset.get())) {
    return {control, nullptr};
  }
  if (const char* reason = not_in_place(loader)) {
    return {nullptr, reason};
  }
  auto made = std::make_unique<Feed>(std::move(*dataset), loader, more...);
  Feed* const feed = made.get();
  dataset = std::move(made);
  loader.*Opened<Base>::sequencer() = std::make_unique<PassNotice<Base>>(loader, [feed] { feed->begin_pass(); });
  return {feed, nullptr};
}

/// The same for a loader with workers, by `Results(loader, more...)` in the place of its sequencer.
template <typename Results, typename Base, typename... More>
InPlace replace_sequencer(Base& loader, const More&... more) {
  if (LoaderControl* const shared = InPlaceResults<Base>::of(loader)) {
    return {shared, nullptr};
  }
  if (const char* reason = not_in_place(loader)) {
    return {nullptr, reason};
  }
  return {Results::share(std::make_shared<Results>(loader, more...)), nullptr};
}

template <typename D, typename S>
InPlace share_in_place(torch::data::StatelessDataLoader<D, S>& loader) {
  using Base = typename torch::data::StatelessDataLoader<D, S>::super;
  constexpr bool kLasting = std::is_same_v<S, torch::data::samplers::RandomSampler> ||
                            std::is_same_v<S, torch::data::samplers::SequentialSampler>;
  const Sharing sharing = training_sharing(std::nullopt);
  if constexpr (decltype(is_distributed(static_cast<S*>(nullptr)))::value) {
    return {nullptr, "its sampler is a DistributedSampler, which shares out rows itself"};
  } else {
    // Whether it's the main process that reads.
    const bool sends = !takes_indices<D> || dataloader_configuration().dispatch_batches.value_or(false);
    if (loader.options().workers > 0) {
      if constexpr (kLasting) {
        if (!sends) {
          return replace_sequencer<InPlaceWorkers<Base>, Base>(loader, sharing);
        }
      }
      if constexpr (is_sendable<typename D::BatchType>()) {
        return replace_sequencer<InPlaceSent<Base>, Base>(loader, sharing, kLasting);
      } else {
        return {nullptr,
                "it has workers, and a sampler that isn't RandomSampler or SequentialSampler (or dispatch_batches is "
                "set), so that its batches have to be sent from rank to rank, but they are of a type that isn't known "
                "(specialize accelerate::BatchFields for it)"};
      }
    }
    if constexpr (std::is_final_v<D>) {
      return {nullptr, "its data set is final"};
    } else {
      if constexpr (takes_indices<D>) {
        if (!sends) {
          return replace_dataset<InPlaceFeed<D, Base>, Base>(loader, sharing, kLasting);
        }
      }
      if constexpr (is_sendable<typename D::BatchType>() && holds_requests<D, Base>) {
        return replace_dataset<InPlaceSentFeed<D, Base>, Base>(loader, sharing, kLasting);
      } else {
        return {
            nullptr,
            "its data set is asked for something else than a list of rows (or dispatch_batches is set), so that its "
            "batches have to be sent from rank to rank, but they are of a type that isn't known (specialize "
            "accelerate::BatchFields for it)"};
      }
    }
  }
}

template <typename D>
InPlace share_in_place(torch::data::StatefulDataLoader<D>& loader) {
  using Base = typename torch::data::StatefulDataLoader<D>::super;
  const Sharing sharing = training_sharing(std::nullopt);
  if constexpr (!is_sendable<typename D::BatchType::value_type>()) {
    return {nullptr,
            "its data set is stateful, so that its batches have to be sent from rank to rank, but they are of a type "
            "that isn't known (specialize accelerate::BatchFields for it)"};
  } else {
    if (loader.options().workers > 0) {
      return replace_sequencer<InPlaceSent<Base>, Base>(loader, sharing, /*lasting=*/true);
    }
    if constexpr (std::is_final_v<D>) {
      return {nullptr, "its data set is final"};
    } else {
      return replace_dataset<InPlaceStream<D, Base>, Base>(loader, sharing);
    }
  }
}

}  // namespace accelerate::detail
