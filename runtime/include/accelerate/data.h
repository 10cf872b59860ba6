#pragma once

/// Loaders of torch::data whose batches are shared out among the ranks.
///
/// The functions here have the overloads and the return types of torch::data::make_data_loader; user code
/// goes on naming, iterating and passing the very same types. Alone they work as torch's own loader does.
///
/// The object behind the type is derived from StatelessDataLoader: that class asks a virtual function for
/// the next request and the data set, through a pointer to its base, for the batch. Both are replaced.

#include <accelerate/deliver.h>
#include <accelerate/export.h>
#include <accelerate/loader_position.h>
#include <accelerate/prepare.h>
#include <accelerate/resumable_loader.h>
#include <torch/data/dataloader.h>
#include <torch/data/worker_exception.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate {
namespace detail {

/// This rank's part of a batch: `rows` of it from `begin` on. A ghost is one row of no weight.
struct RowSlice {
  int64_t begin = 0, rows = 0, global_rows = 0;
  bool ghost = false;
};

/// How a loader's batches are shared out.
enum class Sharing {
  rows,     ///< each batch by rows: contiguous slices in rank order, the first ranks get one more
  batches,  ///< whole batches in turn
};

ACCELERATE_API RowSlice slice_of(int64_t global_rows);
ACCELERATE_API int64_t rank();
ACCELERATE_API int64_t ranks();
/// Whether loaders have anything to do: there are other ranks, or another device to deliver to.
ACCELERATE_API bool loaders_take_part();
/// Tells the process which batch is in hand now; it's so until the next one, or until its loader goes.
ACCELERATE_API void hand_out(const void* loader, Sharing sharing, const RowSlice& slice);
ACCELERATE_API void take_back(const void* loader);
/// Whether mark_last_batch() is to be called after hand_out(), for training loaders: accumulation ends windows there.
ACCELERATE_API bool last_batch_matters();
ACCELERATE_API void mark_last_batch(bool last);
/// The device that batches go to; none where they stay.
ACCELERATE_API std::optional<torch::Device> delivery_device();
/// Gives all ranks the main process's default CPU generator, so that samplers draw alike. (collective)
ACCELERATE_API void agree_on_random_state();
[[noreturn]] ACCELERATE_API void throw_unshareable(const char* reason);

/// Swaps the default CPU generator for this rank's own stream, so that what a data set draws for its rows
/// (augmentation) leaves the common stream alone. Does nothing alone.
class ACCELERATE_API OwnRandomStream {
 public:
  OwnRandomStream();
  ~OwnRandomStream();
  OwnRandomStream(const OwnRandomStream&) = delete;
  OwnRandomStream& operator=(const OwnRandomStream&) = delete;

 private:
  bool active_;
};

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

template <typename Request, typename = void>
struct is_index_list : std::false_type {};
template <typename Request>
struct is_index_list<
    Request, std::void_t<decltype(Request(std::declval<Request&>().begin(), std::declval<Request&>().begin() + 1)),
                         decltype(std::declval<Request&>().size())>> : std::true_type {};

/// See the top of the file.
template <typename D, typename S>
class SharedLoader final : public torch::data::StatelessDataLoader<D, S>, public LoaderControl {
  using Stateless = torch::data::StatelessDataLoader<D, S>;
  using Base = torch::data::DataLoaderBase<D, typename D::BatchType, typename S::BatchRequestType>;
  using Batch = typename D::BatchType;
  using Request = typename S::BatchRequestType;

 public:
  SharedLoader(D dataset, S sampler, torch::data::DataLoaderOptions options, Sharing sharing)
      : Stateless(std::move(dataset), sampler, without_workers(options)),
        sampler_(std::move(sampler)),
        full_options_(options),
        sharing_(sharing),
        progress_(/*ahead=*/options.workers() > 0 && sharing == Sharing::rows) {
    // The base holds the data set now; it becomes the one that comes back to this object for batches.
    this->main_thread_dataset_ = std::make_unique<Feed>(std::move(*this->main_thread_dataset_), this);
    if (full_options_.workers > 0) {
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

  void deliver_to_device() override { deliver_ = true; }

  /// An evaluation loop has no steps in common, so it isn't saved in its middle.
  void save_position(torch::serialize::OutputArchive& archive) const override {
    progress_.save(archive, sampler_, sharing_ == Sharing::rows);
  }
  void load_position(torch::serialize::InputArchive& archive) override {
    progress_.load(sampler_, full_options_.batch_size, archive);
  }

 private:
  /// Stands in for the data set: what the base class asks it for, the loader answers.
  class Feed final : public D {
   public:
    Feed(D&& dataset, SharedLoader* loader) : D(std::move(dataset)), loader_(loader) {}
    typename D::BatchType get_batch(typename D::BatchRequestType request) override {
      return loader_->take([&] { return D::get_batch(std::move(request)); });
    }

   private:
    SharedLoader* loader_;
  };

  /// A batch on its way.
  struct Ticket {
    RowSlice slice;
    Request request;
    std::future<Batch> batch;  // with workers
  };

  static torch::data::DataLoaderOptions without_workers(torch::data::DataLoaderOptions options) {
    return options.workers(0).max_jobs(std::nullopt);
  }

  void reset() override {
    if (fetchers_) {
      fetchers_->cancel();
    }
    tickets_.clear();
    step_ = 0;
    exhausted_ = false;
    agree_on_random_state();
    progress_.begin(sampler_);
    Base::reset();
    while (fetchers_ && tickets_.size() < full_options_.max_jobs && enqueue()) {
    }
  }

  std::optional<Request> get_batch_request() override {
    if (tickets_.empty() && !enqueue()) {
      progress_.ended();
      return std::nullopt;
    }
    return tickets_.front().request;
  }

  /// Draws requests, as the original would, until there is one for this rank.
  bool enqueue() {
    while (!exhausted_) {
      std::optional<Request> request = progress_.next(sampler_, full_options_.batch_size);
      if (!request || (full_options_.drop_last && row_count(*request) < full_options_.batch_size)) {
        exhausted_ = true;
        break;
      }
      const int64_t step = step_++;
      const auto rows = static_cast<int64_t>(row_count(*request));
      Ticket ticket{RowSlice{0, rows, rows, false}, std::move(*request), {}};
      if (sharing_ == Sharing::rows) {
        ticket.slice = slice_of(rows);
        cut(ticket);
      } else if (step % ranks() != rank()) {
        continue;
      }
      if (fetchers_) {
        auto job = std::make_shared<std::packaged_task<Batch(std::size_t)>>(
            [this, request = ticket.request](std::size_t thread) mutable {
              return copies_[thread]->get_batch(std::move(request));
            });
        ticket.batch = job->get_future();
        fetchers_->submit([job](std::size_t thread) { (*job)(thread); });
      }
      tickets_.push_back(std::move(ticket));
      return true;
    }
    return false;
  }

  template <typename Fetch>
  Batch take(Fetch fetch) {
    Ticket ticket = std::move(tickets_.front());
    tickets_.pop_front();
    Batch batch = fetchers_ ? await(ticket) : fetch_here(fetch);
    if (fetchers_) {
      enqueue();
    }
    if (const auto device = deliver_ ? delivery_device() : std::nullopt) {
      deliver(batch, *device);
    }
    progress_.handed_out();
    hand_out(this, sharing_, ticket.slice);
    if (sharing_ == Sharing::rows && last_batch_matters()) {
      mark_last_batch(tickets_.empty() && !enqueue());
    }
    return batch;
  }

  template <typename Fetch>
  static Batch fetch_here(Fetch& fetch) {
    OwnRandomStream stream;
    return fetch();
  }

  Batch await(Ticket& ticket) {
    if (full_options_.timeout) {
      TORCH_CHECK(ticket.batch.wait_for(*full_options_.timeout) == std::future_status::ready, "[accelerate] rank ",
                  rank(), ": a loader's worker took longer than the loader's timeout");
    }
    try {
      return ticket.batch.get();
    } catch (...) {
      throw torch::data::WorkerException(std::current_exception());
    }
  }

  static std::size_t row_count(const Request& request) {
    if constexpr (is_index_list<Request>::value) {
      return request.size();
    } else {
      throw_unshareable("its sampler's requests are no lists of indices");
    }
  }

  static void cut(Ticket& ticket) {
    if constexpr (is_index_list<Request>::value) {
      if (ticket.slice.rows != ticket.slice.global_rows) {
        const auto begin = ticket.request.begin() + ticket.slice.begin;
        ticket.request = Request(begin, begin + ticket.slice.rows);
      }
    }
  }

  S sampler_;  // the base has a copy of its own, which is private to it and never asked
  const torch::data::FullDataLoaderOptions full_options_;
  const Sharing sharing_;
  LoaderProgress<S> progress_;
  bool deliver_ = false;
  int64_t step_ = 0;
  bool exhausted_ = false;
  std::deque<Ticket> tickets_;
  std::vector<std::unique_ptr<D>> copies_;  // one a worker, as torch has them
  std::unique_ptr<Fetchers> fetchers_;
};

template <typename D, typename S>
std::unique_ptr<torch::data::StatelessDataLoader<D, S>> make_loader(D dataset, S sampler,
                                                                    torch::data::DataLoaderOptions options,
                                                                    Sharing sharing) {
  static_assert(!std::is_final_v<D>, "accelerate: a data set class that is final can't be shared out; remove `final`");
  static_assert(std::is_copy_constructible_v<S>, "accelerate: a loader's sampler has to be copyable");
  if (!loaders_take_part()) {
    return std::make_unique<ResumableLoader<D, S>>(std::move(dataset), std::move(sampler), options,
                                                   sharing == Sharing::rows);
  }
  return std::make_unique<SharedLoader<D, S>>(std::move(dataset), std::move(sampler), options, sharing);
}

template <typename S, typename D>
std::unique_ptr<torch::data::StatelessDataLoader<D, S>> make_loader(D dataset, torch::data::DataLoaderOptions options,
                                                                    Sharing sharing) {
  const std::optional<size_t> size = dataset.size();
  TORCH_CHECK(size.has_value(), "Expected the dataset to be sized in order to construct the Sampler");
  if (loaders_take_part()) {
    agree_on_random_state();  // a random sampler draws when it's made
  }
  return make_loader(std::move(dataset), S(*size), options, sharing);
}

template <typename D>
std::unique_ptr<torch::data::StatefulDataLoader<D>> make_stateful_loader(D dataset,
                                                                         torch::data::DataLoaderOptions options) {
  if (ranks() > 1) {
    throw_unshareable("its data set is stateful (ChunkDataset, StreamDataset)");
  }
  return torch::data::make_data_loader(std::move(dataset), options);
}

}  // namespace detail

/// A loader for training. At step k the ranks' batches together are batch k of the original's loader:
/// contiguous slices in rank order, the first ranks one row longer where it doesn't divide. A rank
/// without rows gets a ghost, a copy of the batch's first row that counts nothing, never an empty batch.
/// `options` are the original's: batch_size and drop_last are those of the global batch. (collective)
template <typename D, typename S>
std::enable_if_t<!D::is_stateful, std::unique_ptr<torch::data::StatelessDataLoader<D, S>>> make_data_loader(
    D dataset, S sampler, torch::data::DataLoaderOptions options) {
  return detail::make_loader(std::move(dataset), std::move(sampler), options, detail::Sharing::rows);
}

template <typename S = torch::data::samplers::RandomSampler, typename D>
std::enable_if_t<!D::is_stateful && std::is_constructible_v<S, size_t>,
                 std::unique_ptr<torch::data::StatelessDataLoader<D, S>>>
make_data_loader(D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions()) {
  return detail::make_loader<S>(std::move(dataset), options, detail::Sharing::rows);
}

/// A stateful data set can't be shared out (yet): throws if there are other ranks.
template <typename D, typename = std::enable_if_t<D::is_stateful>>
std::unique_ptr<torch::data::StatefulDataLoader<D>> make_data_loader(
    D dataset, torch::data::DataLoaderOptions options = torch::data::DataLoaderOptions()) {
  return detail::make_stateful_loader(std::move(dataset), options);
}

/// A loader for evaluation: batch k goes whole to rank k % N, the others skip it, so that what is computed
/// from a batch is what the original computed. Sums over the loop are completed with reduce() after it;
/// no collective may stand in the loop. (collective: the call, and each begin())
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
  return detail::make_stateful_loader(std::move(dataset), options);
}

}  // namespace accelerate
