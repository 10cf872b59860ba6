#pragma once

/// Loaders of torch::data whose batches are shared out among the ranks.
///
/// The functions here have the overloads and the return types of torch::data::make_data_loader; user code
/// goes on naming, iterating and passing the very same types. Alone they give what torch's own loaders do.

#include <accelerate/options.h>
#include <accelerate/shared_loader.h>
#include <accelerate/stream_loader.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace accelerate {
namespace detail {

template <typename D, typename S>
std::unique_ptr<torch::data::StatelessDataLoader<D, S>> make_loader(D dataset, S sampler,
                                                                    torch::data::DataLoaderOptions options,
                                                                    Sharing sharing) {
  static_assert(!std::is_final_v<D>, "accelerate: a data set class that is final can't be shared out; remove `final`");
  static_assert(std::is_copy_constructible_v<S>, "accelerate: a loader's sampler has to be copyable");
  return std::make_unique<SharedLoader<D, S>>(std::move(dataset), std::move(sampler), options, sharing);
}

template <typename S, typename D>
std::unique_ptr<torch::data::StatelessDataLoader<D, S>> make_loader(D dataset, torch::data::DataLoaderOptions options,
                                                                    Sharing sharing) {
  const std::optional<size_t> size = dataset.size();
  TORCH_CHECK(size.has_value(), "Expected the dataset to be sized in order to construct the Sampler");
  agree_on_random_state();  // a random sampler draws when it's made
  return make_loader(std::move(dataset), S(*size), options, sharing);
}

template <typename D>
std::unique_ptr<torch::data::StatefulDataLoader<D>> make_stream_loader(D dataset,
                                                                       torch::data::DataLoaderOptions options,
                                                                       Sharing sharing) {
  static_assert(!std::is_final_v<D>, "accelerate: a data set class that is final can't be shared out; remove `final`");
  return std::make_unique<StreamLoader<D>>(std::move(dataset), options, sharing);
}

template <typename T, typename = void>
inline constexpr bool is_pointer_like = false;
template <typename T>
inline constexpr bool is_pointer_like<T, std::void_t<decltype(*std::declval<T&>())>> = true;

/// What skip_first_batches() returns.
template <typename Loader>
class SkippedBatches {
 public:
  SkippedBatches(Loader& loader, int64_t batches) : loader_(loader), batches_(batches) {}

  auto begin() {
    if constexpr (std::is_polymorphic_v<Loader>) {
      if (auto* control = dynamic_cast<LoaderControl*>(&loader_)) {
        control->skip_next(batches_);
        return loader_.begin();
      }
    }
    auto at = loader_.begin();
    const auto end = loader_.end();
    for (int64_t i = 0; i < batches_ && at != end; ++i) {
      ++at;
    }
    return at;
  }
  auto end() { return loader_.end(); }

 private:
  Loader& loader_;
  const int64_t batches_;
};

}  // namespace detail

/// A loader for training. At step k the ranks' batches together are batch k of the original's loader:
/// contiguous slices in rank order, the first ranks one row longer where it doesn't divide. A rank
/// without rows gets a ghost, a copy of the batch's first row that counts nothing, never an empty batch.
/// `options` are the original's: batch_size and drop_last are those of the global batch.
///
/// `policy`: whether it is that, or BatchPolicy::PerProcess; by default, what DataLoaderConfiguration says, which
/// also says how an epoch ends that isn't a whole number of rounds.
///
/// The order is the original's, and the same on all ranks, whatever they drew from the default generator between
/// epochs. Throws if the sampler shares out rows itself (DistributedSampler) and there are other ranks. What the data
/// set throws on one rank comes out of the loop there, and ends the others' next operation with an error that quotes
/// it; no operation is possible after it, on any rank. (collective: the call, and each begin())
template <typename D, typename S>
std::enable_if_t<!D::is_stateful, std::unique_ptr<torch::data::StatelessDataLoader<D, S>>> make_data_loader(
    D dataset, S sampler, torch::data::DataLoaderOptions options, std::optional<BatchPolicy> policy = std::nullopt) {
  return detail::make_loader(std::move(dataset), std::move(sampler), options, detail::training_sharing(policy));
}

template <typename S = torch::data::samplers::RandomSampler, typename D>
std::enable_if_t<!D::is_stateful && std::is_constructible_v<S, size_t>,
                 std::unique_ptr<torch::data::StatelessDataLoader<D, S>>>
make_data_loader(D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions(),
                 std::optional<BatchPolicy> policy = std::nullopt) {
  return detail::make_loader<S>(std::move(dataset), options, detail::training_sharing(policy));
}

/// A stateful data set (ChunkDataset, StreamDataset) decides itself what comes next, so that the main process reads
/// each batch and the others get it from there (see dispatch_batches in DataLoaderConfiguration). Threads of a
/// ChunkDataset draw from the default generator when they please: its order is the main process's own.
/// (collective: the call, each begin(), and each step)
template <typename D, typename = std::enable_if_t<D::is_stateful>>
std::unique_ptr<torch::data::StatefulDataLoader<D>> make_data_loader(
    D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions(),
    std::optional<BatchPolicy> policy = std::nullopt) {
  return detail::make_stream_loader(std::move(dataset), options, detail::training_sharing(policy));
}

/// A loader for evaluation: batch k goes whole to rank k % N, the others skip it, so that what is computed
/// from a batch is what the original computed. Sums over the loop are completed with reduce() after it;
/// no collective may stand in the loop. Of a stateful data set the main process has all batches.
/// (collective: the call, and each begin())
template <typename D, typename S>
std::enable_if_t<!D::is_stateful, std::unique_ptr<torch::data::StatelessDataLoader<D, S>>> make_evaluation_data_loader(
    D dataset, S sampler, torch::data::DataLoaderOptions options) {
  return detail::make_loader(std::move(dataset), std::move(sampler), options, detail::Sharing::batches);
}

template <typename S = torch::data::samplers::RandomSampler, typename D>
std::enable_if_t<!D::is_stateful && std::is_constructible_v<S, size_t>,
                 std::unique_ptr<torch::data::StatelessDataLoader<D, S>>>
make_evaluation_data_loader(D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions()) {
  return detail::make_loader<S>(std::move(dataset), options, detail::Sharing::batches);
}

template <typename D, typename = std::enable_if_t<D::is_stateful>>
std::unique_ptr<torch::data::StatefulDataLoader<D>> make_evaluation_data_loader(
    D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions()) {
  return detail::make_stream_loader(std::move(dataset), options, detail::Sharing::batches);
}

/// The loader's batches but the first `batches` of this rank's: `for (auto& b : skip_first_batches(*loader, n))`. The
/// iterators are the loader's own, and so are the epoch's order and the batches' weights; a loader of
/// accelerate::make_data_loader doesn't read what is skipped. Only the pass that is begun through it is shortened.
/// The loader may be held by a pointer.
template <typename Loader>
auto skip_first_batches(Loader& loader, int64_t batches) {
  if constexpr (detail::is_pointer_like<Loader>) {
    return detail::SkippedBatches<std::remove_reference_t<decltype(*loader)>>(*loader, batches);
  } else {
    return detail::SkippedBatches<Loader>(loader, batches);
  }
}

}  // namespace accelerate
