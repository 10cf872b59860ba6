#pragma once

/// Sharing out a loader that torch::data::make_data_loader has made already.

#include <accelerate/dispatch.h>
#include <accelerate/export.h>
#include <accelerate/loader_control.h>
#include <accelerate/sharing.h>
#include <accelerate/transfer.h>
#include <torch/data/dataloader/stateful.h>
#include <torch/data/dataloader/stateless.h>
#include <torch/data/detail/sequencers.h>
#include <torch/data/samplers/distributed.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>
#include <torch/serialize/archive.h>

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

/// The main process's indices of a step, on all ranks: such a loader's sampler was reset where nobody could see to it
/// that all draw alike. (collective)
ACCELERATE_API std::vector<std::size_t> indices_of_main(const std::vector<std::size_t>& mine, std::size_t batch_size);

/// Tells that a loader begins a pass: in the place of its sequencer, which a loader without workers never asks, and
/// makes anew with each pass.
template <typename Result>
class PassNotice final : public torch::data::detail::sequencers::Sequencer<Result> {
 public:
  explicit PassNotice(std::shared_ptr<bool> begun) : begun_(std::move(begun)) {}
  ~PassNotice() override { *begun_ = true; }
  std::optional<Result> next(std::function<std::optional<Result>()> next_result) override { return next_result(); }

 private:
  std::shared_ptr<bool> begun_;
};

template <typename Result>
void put_notice(std::unique_ptr<torch::data::detail::sequencers::Sequencer<Result>>& sequencer,
                const std::shared_ptr<bool>& begun) {
  sequencer = std::make_unique<PassNotice<Result>>(begun);
  *begun = false;  // the one before may have told
}

/// A loader of torch's has no position but between passes: the next one is drawn from the generator.
class InPlaceControl : public LoaderControl {
 public:
  void deliver_to_device() override {
    if (touches_batches_) {
      transfer_.enable();
    }
  }
  void skip_next(int64_t) override { throw_no_position(); }
  void save_position(torch::serialize::OutputArchive& archive) const override {
    if (!between_passes()) {
      throw_no_position();
    }
    archive.write("in_place", torch::scalar_tensor(true), /*is_buffer=*/true);
  }
  void load_position(torch::serialize::InputArchive& archive) override { check_position(archive); }
  void check_position(torch::serialize::InputArchive& archive) const override {
    torch::Tensor in_place;
    if (!archive.try_read("in_place", in_place, /*is_buffer=*/true)) {
      throw_no_position();
    }
  }

 protected:
  virtual bool between_passes() const = 0;

  const bool touches_batches_ = ranks() > 1 || batches_count_alone();  // else they only have to be counted
  Transfer transfer_;
};

/// Stands in for the loader's data set, which gets this rank's part of what the loader asks for.
template <typename D>
class InPlaceFeed final : public D, public InPlaceControl {
  using Request = typename D::BatchRequestType;

 public:
  /// `watch` puts a notice of the next pass into the loader. `lasting`: the sampler keeps nothing from pass to pass.
  InPlaceFeed(D&& dataset, const torch::data::FullDataLoaderOptions& options, bool lasting,
              std::function<void(const std::shared_ptr<bool>&)> watch)
      : D(std::move(dataset)),
        batch_size_(options.batch_size),
        drop_last_(options.drop_last),
        lasting_(lasting),
        watch_(std::move(watch)) {
    watch_(begun_);
  }
  ~InPlaceFeed() override { take_back(this); }

  typename D::BatchType get_batch(Request request) override {
    if (*begun_) {
      watch_(begun_);
      read_ = 0;
    }
    if (!touches_batches_) {
      count(static_cast<std::size_t>(std::distance(request.begin(), request.end())));
      return D::get_batch(std::move(request));
    }
    const std::vector<std::size_t> all = indices_of_main({request.begin(), request.end()}, batch_size_);
    const RowSlice slice = slice_of(static_cast<int64_t>(all.size()));
    std::vector<std::size_t> rows(all.begin() + slice.begin, all.begin() + slice.begin + slice.rows);
    auto batch = read_alone([&] {
      OwnRandomStream stream;
      auto read = D::get_batch(Request(rows));
      transfer_.finish(read, transfer_.start(read));
      return read;
    });
    hand_out(this, Sharing::rows, slice);
    mark_last_batch(count(all.size()));
    return batch;
  }

 private:
  /// Takes a batch into account; whether it ends a pass over the data set, which is all that's known of the sampler.
  bool count(std::size_t rows) {
    const std::size_t size = D::size().value_or(0), usable = drop_last_ ? size / batch_size_ * batch_size_ : size;
    whole_ = read_ < usable && read_ + rows >= usable;
    read_ += rows;
    return whole_;
  }

  bool between_passes() const override { return lasting_ && !*begun_ && (read_ == 0 || whole_); }

  const std::size_t batch_size_;
  const bool drop_last_, lasting_;
  const std::shared_ptr<bool> begun_ = std::make_shared<bool>(false);
  const std::function<void(const std::shared_ptr<bool>&)> watch_;
  std::size_t read_ = 0;  // rows of this pass
  bool whole_ = false;    // they are all
};

/// Stands in for a data set that decides itself what comes next: the main process reads, and sends each batch to all.
template <typename D>
class InPlaceStream final : public D, public InPlaceControl {
  using Request = typename D::BatchRequestType;
  using Batch = typename D::BatchType::value_type;

 public:
  /// `watch`: see InPlaceFeed.
  InPlaceStream(D&& dataset, std::function<void(const std::shared_ptr<bool>&)> watch)
      : D(std::move(dataset)), watch_(std::move(watch)) {
    watch_(begun_);
  }
  ~InPlaceStream() override { take_back(this); }

  typename D::BatchType get_batch(Request size) override {
    if (*begun_) {
      watch_(begun_);
      ahead_.reset();
      exhausted_ = false;
    }
    Step step = ahead_ ? std::move(*ahead_) : read(size);
    ahead_.reset();
    over_ = !step.batch && !step.error;
    if (step.error) {
      std::rethrow_exception(step.error);
    }
    if (!touches_batches_) {
      return std::move(step.batch);
    }
    if (over_) {
      end_pass(this);
      return std::nullopt;
    }
    read_alone([&] { transfer_.finish(*step.batch, transfer_.start(*step.batch)); });
    hand_out(this, Sharing::rows, step.slice);
    if (last_batch_matters()) {
      ahead_.emplace(read(size));  // a stream doesn't know its last batch before it has asked for another
      mark_last_batch(!ahead_->batch && !ahead_->error);
    }
    return std::move(step.batch);
  }

 private:
  struct Step {
    std::optional<Batch> batch;  // none at the end
    RowSlice slice;
    std::exception_ptr error;
  };

  Step read(Request size) {
    constexpr auto kList = ListMeaning::rows;
    const auto whole = [&]() -> std::optional<Batch> {
      std::optional<Batch> batch;
      if (!exhausted_) {  // asked again, it might begin anew
        batch = D::get_batch(size);
        exhausted_ = !batch;
      }
      return batch;
    };
    Step step;
    try {
      if (ranks() == 1) {
        step.batch = whole();
        if (step.batch && touches_batches_) {
          step.slice.rows = step.slice.global_rows = rows_of<kList>(*step.batch);
        }
      } else if (dataloader_configuration().dispatch_batches.value_or(true)) {
        step.batch = read_and_send<kList, Batch>(whole, step.slice);
      } else {
        step.batch = read_alone([&] { return read_and_slice<kList, Batch>(whole, step.slice); });
      }
    } catch (...) {
      step.error = std::current_exception();
    }
    return step;
  }

  bool between_passes() const override { return over_; }

  const std::shared_ptr<bool> begun_ = std::make_shared<bool>(false);
  const std::function<void(const std::shared_ptr<bool>&)> watch_;
  std::optional<Step> ahead_;
  bool exhausted_ = false;  // in this pass
  bool over_ = true;
};

/// The main process's list of a pass's requests, on all ranks. (collective)
ACCELERATE_API std::deque<std::vector<std::size_t>> requests_of_main(std::deque<std::vector<std::size_t>> mine);

/// Opens the protected members of a loader's base class.
template <typename Base>
struct Opened : Base {
  static auto dataset() { return &Opened::main_thread_dataset_; }
  static auto sequencer() { return &Opened::sequencer_; }
  static auto shuttle() { return &Opened::shuttle_; }
  static auto next_request() { return &Opened::get_batch_request; }
  static auto push() { return &Opened::template push_job<typename Base::BatchRequestType>; }
};

/// Shares out a loader whose workers have the data set, which can't be reached there. A pass begins with a new
/// sequencer in the place of the last one, before anything is read: there the sampler is asked for the whole pass, so
/// that the loader finds no more requests to give the workers, who get this rank's part of each instead, as many at a
/// time as the loader would have given them.
template <typename Base>
class InPlaceWorkers final : public InPlaceControl, public std::enable_shared_from_this<InPlaceWorkers<Base>> {
  using Request = typename Base::BatchRequestType;
  using Sequencer = typename std::decay_t<decltype(std::declval<Base&>().*Opened<Base>::sequencer())>::element_type;
  using Producer = typename Sequencer::ResultProducer;
  using Result = typename Producer::result_type::value_type;

  /// Has the sequencer of a pass.
  class StandIn final : public Sequencer {
   public:
    StandIn(std::shared_ptr<InPlaceWorkers> loader, std::unique_ptr<Sequencer> sequencer)
        : loader_(std::move(loader)), sequencer_(std::move(sequencer)) {}
    ~StandIn() override { loader_->begin_pass(this); }
    std::optional<Result> next(Producer produce) override { return loader_->next(*sequencer_, produce); }
    LoaderControl* control() const { return loader_.get(); }

   private:
    const std::shared_ptr<InPlaceWorkers> loader_;
    const std::unique_ptr<Sequencer> sequencer_;
  };

 public:
  explicit InPlaceWorkers(Base& loader) : loader_(loader) {}
  ~InPlaceWorkers() override { take_back(this); }

  /// What the loader is shared out by already, or none.
  static LoaderControl* of(Base& loader) {
    const auto* shared = dynamic_cast<const StandIn*>((loader.*Opened<Base>::sequencer()).get());
    return shared ? shared->control() : nullptr;
  }

  static LoaderControl* share(Base& loader) {
    auto& sequencer = loader.*Opened<Base>::sequencer();
    const auto made = std::make_shared<InPlaceWorkers>(loader);
    sequencer = std::make_unique<StandIn>(made, std::move(sequencer));
    return made.get();
  }

 private:
  /// Called where the loader destroys the last pass's sequencer, having put in the next one's.
  void begin_pass(const StandIn* last) {
    auto& sequencer = loader_.*Opened<Base>::sequencer();
    if (!sequencer || sequencer.get() == last) {
      return;  // the loader is being destroyed
    }
    over_ = false;
    if (touches_batches_) {
      begun_ = true;
      requests_.clear();
      slices_.clear();
      sampler_error_ = nullptr;
      try {
        while (const std::optional<Request> request = (loader_.*Opened<Base>::next_request())()) {
          requests_.emplace_back(request->begin(), request->end());
        }
      } catch (...) {
        sampler_error_ = std::current_exception();  // nobody to throw it to, yet
      }
      // Whether or not the program has asked for it: ranks' batches have to belong together.
      sequencer = std::make_unique<torch::data::detail::sequencers::OrderedSequencer<Result>>(jobs());
    }
    sequencer = std::make_unique<StandIn>(this->shared_from_this(), std::move(sequencer));
  }

  std::optional<Result> next(Sequencer& sequencer, const Producer& produce) {
    if (!touches_batches_) {
      std::optional<Result> result = sequencer.next(produce);
      over_ = !result;
      return result;
    }
    if (std::exchange(begun_, false)) {
      read_alone([this] {
        if (sampler_error_) {
          std::rethrow_exception(sampler_error_);
        }
      });
      requests_ = requests_of_main(std::move(requests_));
    }
    while (!requests_.empty() && slices_.size() < jobs()) {
      ask_workers();
    }
    std::optional<Result> result = read_alone([&] { return sequencer.next(produce); });
    over_ = !result;
    if (over_) {
      end_pass(this);
      return result;
    }
    const RowSlice slice = slices_.front();
    slices_.pop_front();
    if (!requests_.empty()) {
      ask_workers();
    }
    if (result->exception) {
      reading_failed(result->exception);
      return result;  // the loader throws it
    }
    read_alone([&] { transfer_.finish(*result->batch, transfer_.start(*result->batch)); });
    hand_out(this, Sharing::rows, slice);
    mark_last_batch(slices_.empty());
    return result;
  }

  void ask_workers() {
    const std::vector<std::size_t> rows = std::move(requests_.front());
    requests_.pop_front();
    slices_.push_back(slice_of(static_cast<int64_t>(rows.size())));
    const auto begin = rows.begin() + slices_.back().begin;
    (loader_.*Opened<Base>::push())(Request(begin, begin + slices_.back().rows));
  }

  std::size_t jobs() const { return loader_.options().max_jobs; }
  bool between_passes() const override { return over_; }

  Base& loader_;
  bool begun_ = false;  // a pass of which nothing was asked for yet
  bool over_ = true;
  std::exception_ptr sampler_error_;
  std::deque<std::vector<std::size_t>> requests_;  // of this pass, that the workers haven't got
  std::deque<RowSlice> slices_;                    // of what they have got
};

template <typename D, typename = void>
inline constexpr bool takes_indices = false;
template <typename D>
inline constexpr bool
    takes_indices<D, std::void_t<decltype(typename D::BatchRequestType(std::declval<std::vector<std::size_t>&>()))>> =
        std::is_convertible_v<decltype(*std::declval<typename D::BatchRequestType&>().begin()), std::size_t>;

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
  if (training_sharing(std::nullopt) != Sharing::rows) {
    return "it can't look ahead, as BatchPolicy::PerProcess has to";
  }
  return nullptr;
}

/// Puts `Feed(data set, more..., watch)` in the place of the loader's data set, unless such a one is there already.
template <typename Feed, typename Base, typename... More>
InPlace replace_dataset(Base& loader, const More&... more) {
  auto& dataset = loader.*Opened<Base>::dataset();
  if (auto* control = dynamic_cast<LoaderControl*>(dataset.get())) {
    return {control, nullptr};
  }
  if (const char* reason = not_in_place(loader)) {
    return {nullptr, reason};
  }
  const auto watch = [&loader](const std::shared_ptr<bool>& begun) {
    put_notice(loader.*Opened<Base>::sequencer(), begun);
  };
  auto feed = std::make_unique<Feed>(std::move(*dataset), more..., watch);
  LoaderControl* control = feed.get();
  dataset = std::move(feed);
  return {control, nullptr};
}

template <typename D, typename S>
InPlace share_in_place(torch::data::StatelessDataLoader<D, S>& loader) {
  using Base = typename torch::data::StatelessDataLoader<D, S>::super;
  constexpr bool kLasting = std::is_same_v<S, torch::data::samplers::RandomSampler> ||
                            std::is_same_v<S, torch::data::samplers::SequentialSampler>;
  if constexpr (decltype(is_distributed(static_cast<S*>(nullptr)))::value) {
    return {nullptr, "its sampler is a DistributedSampler, which shares out rows itself"};
  } else {
    if (loader.options().workers > 0) {
      if constexpr (kLasting) {
        using Workers = InPlaceWorkers<Base>;
        LoaderControl* const shared = Workers::of(loader);
        const char* const reason = shared ? nullptr : not_in_place<Base>(loader);
        return {shared || reason ? shared : Workers::share(loader), reason};
      }
      return {nullptr, "it has workers, and a sampler that isn't RandomSampler or SequentialSampler may have no end"};
    }
    if constexpr (std::is_final_v<D> || !takes_indices<D>) {
      return {nullptr, "its data set is final, or asked for something else than a list of rows"};
    } else {
      return replace_dataset<InPlaceFeed<D>, Base>(loader, loader.options(), kLasting);
    }
  }
}

template <typename D>
InPlace share_in_place(torch::data::StatefulDataLoader<D>& loader) {
  using Base = typename torch::data::StatefulDataLoader<D>::super;
  if constexpr (std::is_final_v<D>) {
    return {nullptr, "its data set is final"};
  } else if constexpr (!is_sendable<typename D::BatchType::value_type>()) {
    return {nullptr,
            "its data set is stateful, so that its batches have to be sent from rank to rank, but they are of a type "
            "that isn't known (specialize accelerate::BatchFields for it)"};
  } else {
    if (loader.options().workers > 0) {
      return {nullptr, "its data set is stateful, and its workers read from it already"};
    }
    return replace_dataset<InPlaceStream<D>, Base>(loader);
  }
}

}  // namespace accelerate::detail
