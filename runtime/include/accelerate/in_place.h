#pragma once

/// Sharing out a loader that torch::data::make_data_loader has made already.

#include <accelerate/export.h>
#include <accelerate/loader_control.h>
#include <accelerate/sharing.h>
#include <accelerate/transfer.h>
#include <torch/data/dataloader/stateless.h>
#include <torch/data/samplers/distributed.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>
#include <torch/serialize/archive.h>

#include <cstdint>
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

/// Stands in for the loader's data set, which gets this rank's part of what the loader asks for.
template <typename D>
class InPlaceFeed final : public D, public LoaderControl {
  using Request = typename D::BatchRequestType;

 public:
  /// `watch` puts a notice of the next pass into the loader. `lasting`: the sampler keeps nothing from pass to pass.
  InPlaceFeed(D&& dataset, const torch::data::FullDataLoaderOptions& options,
              std::function<void(const std::shared_ptr<bool>&)> watch, bool lasting)
      : D(std::move(dataset)),
        batch_size_(options.batch_size),
        drop_last_(options.drop_last),
        lasting_(lasting),
        touches_batches_(ranks() > 1 || batches_count_alone()),
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

  void deliver_to_device() override {
    if (touches_batches_) {
      transfer_.enable();
    }
  }
  void skip_next(int64_t) override { throw_no_position(); }

  /// Between passes there is nothing to be kept: the next one is drawn from the generator.
  void save_position(torch::serialize::OutputArchive& archive) const override {
    if (!lasting_ || *begun_ || (read_ > 0 && !whole_)) {
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

 private:
  /// Takes a batch into account; whether it ends a pass over the data set, which is all that's known of the sampler.
  bool count(std::size_t rows) {
    const std::size_t size = D::size().value_or(0), usable = drop_last_ ? size / batch_size_ * batch_size_ : size;
    whole_ = read_ < usable && read_ + rows >= usable;
    read_ += rows;
    return whole_;
  }

  const std::size_t batch_size_;
  const bool drop_last_, lasting_;
  const bool touches_batches_;  // alone they only have to be counted
  const std::shared_ptr<bool> begun_ = std::make_shared<bool>(false);
  const std::function<void(const std::shared_ptr<bool>&)> watch_;
  std::size_t read_ = 0;  // rows of this pass
  bool whole_ = false;    // they are all
  Transfer transfer_;
};

/// Opens the protected members of a loader's base class.
template <typename Base>
struct Opened : Base {
  static auto dataset() { return &Opened::main_thread_dataset_; }
  static auto sequencer() { return &Opened::sequencer_; }
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

template <typename D, typename S>
InPlace share_in_place(torch::data::StatelessDataLoader<D, S>& loader) {
  if constexpr (decltype(is_distributed(static_cast<S*>(nullptr)))::value) {
    return {nullptr, "its sampler is a DistributedSampler, which shares out rows itself"};
  } else if constexpr (std::is_final_v<D> || !takes_indices<D>) {
    return {nullptr, "its data set is final, or asked for something else than a list of rows"};
  } else {
    if (loader.options().workers > 0 || loader.options().max_jobs > 0) {
      return {nullptr, "its workers have copies of the data set already"};
    }
    if (training_sharing(std::nullopt) != Sharing::rows) {
      return {nullptr, "it can't look ahead, as BatchPolicy::PerProcess has to"};
    }
    using Loader = torch::data::StatelessDataLoader<D, S>;
    auto& dataset = static_cast<typename Loader::super&>(loader).*Opened<typename Loader::super>::dataset();
    if (auto* control = dynamic_cast<LoaderControl*>(dataset.get())) {
      return {control, nullptr};
    }
    const auto watch = [&loader](const std::shared_ptr<bool>& begun) {
      put_notice(static_cast<typename Loader::super&>(loader).*Opened<typename Loader::super>::sequencer(), begun);
    };
    constexpr bool kLasting = std::is_same_v<S, torch::data::samplers::RandomSampler> ||
                              std::is_same_v<S, torch::data::samplers::SequentialSampler>;
    auto feed = std::make_unique<InPlaceFeed<D>>(std::move(*dataset), loader.options(), watch, kLasting);
    LoaderControl* control = feed.get();
    dataset = std::move(feed);
    return {control, nullptr};
  }
}

}  // namespace accelerate::detail
