#pragma once

/// Sharing out a loader that torch::data::make_data_loader has made already.

#include <accelerate/export.h>
#include <accelerate/loader_control.h>
#include <accelerate/sharing.h>
#include <accelerate/transfer.h>
#include <torch/data/dataloader/stateless.h>
#include <torch/data/samplers/distributed.h>

#include <cstdint>
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

/// Stands in for the loader's data set, which gets this rank's part of what the loader asks for.
template <typename D>
class InPlaceFeed final : public D, public LoaderControl {
  using Request = typename D::BatchRequestType;

 public:
  InPlaceFeed(D&& dataset, std::size_t batch_size) : D(std::move(dataset)), batch_size_(batch_size) {}
  ~InPlaceFeed() override { take_back(this); }

  typename D::BatchType get_batch(Request request) override {
    const std::vector<std::size_t> all = indices_of_main({request.begin(), request.end()}, batch_size_);
    const RowSlice slice = slice_of(static_cast<int64_t>(all.size()));
    std::vector<std::size_t> rows(all.begin() + slice.begin, all.begin() + slice.begin + slice.rows);
    auto batch = [&] {
      OwnRandomStream stream;
      return D::get_batch(Request(rows));
    }();
    transfer_.finish(batch, transfer_.start(batch));
    hand_out(this, Sharing::rows, slice);
    return batch;
  }

  void deliver_to_device() override { transfer_.enable(); }
  void skip_next(int64_t) override { throw_no_position(); }
  void save_position(torch::serialize::OutputArchive&) const override { throw_no_position(); }
  void load_position(torch::serialize::InputArchive&) override { throw_no_position(); }

 private:
  const std::size_t batch_size_;
  Transfer transfer_;
};

/// Opens the protected member of a loader's base class.
template <typename Base>
struct Opened : Base {
  static auto dataset() { return &Opened::main_thread_dataset_; }
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
    auto feed = std::make_unique<InPlaceFeed<D>>(std::move(*dataset), loader.options().batch_size);
    LoaderControl* control = feed.get();
    dataset = std::move(feed);
    return {control, nullptr};
  }
}

}  // namespace accelerate::detail
