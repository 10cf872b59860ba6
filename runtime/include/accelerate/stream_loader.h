#pragma once

/// Loaders whose data set decides itself what comes next (StatefulDataset, ChunkDataset).

#include <accelerate/shared_loader.h>

namespace accelerate::detail {

/// Ranks can't ask for their rows. The main process reads and sends, or (dispatch_batches = false) all read the same;
/// every rank keeps its slice. A batch whose type isn't known stays whole on the main process of an evaluation loop,
/// and can't be trained with.
template <typename D>
class StreamLoader final : public torch::data::StatefulDataLoader<D>, public LoaderControl {
  using Stateful = torch::data::StatefulDataLoader<D>;
  using Base = torch::data::DataLoaderBase<D, typename D::BatchType::value_type, typename D::BatchRequestType>;
  using Batch = typename D::BatchType::value_type;
  using Request = typename D::BatchRequestType;
  static constexpr auto kList = ListMeaning::rows;

 public:
  StreamLoader(D dataset, torch::data::DataLoaderOptions options, Sharing sharing)
      : Stateful(std::move(dataset), without_workers(options)), full_options_(options), sharing_(sharing) {
    if (ranks() > 1 && sharing != Sharing::batches && !is_sendable<Batch>()) {
      throw_unshareable(
          "its data set is stateful, so that its batches have to be sent from rank to rank, but they are of a type "
          "that isn't known; specialize accelerate::BatchFields for it");
    }
    position_.batch_size = static_cast<int64_t>(full_options_.batch_size);
    position_.dataset_size = size_of_dataset(*this->main_thread_dataset_);
    auto feed = std::make_unique<Feed>(std::move(*this->main_thread_dataset_), this);
    feed_ = feed.get();
    this->main_thread_dataset_ = std::move(feed);
    if (full_options_.workers > 0 && reads()) {
      fetchers_ = std::make_unique<Fetchers>(full_options_.workers);
    }
  }

  ~StreamLoader() override {
    take_back(this);
    fetchers_.reset();  // before the data set that they read
  }

  void deliver_to_device() override { transfer_.enable(); }

  void skip_next(int64_t steps) override { skip_ = steps; }

  void save_position(torch::serialize::OutputArchive& archive) const override {
    const Position position = position_.to_be_saved(sharing_);
    position.save(archive);
    archive.write("random_state", position.in_pass ? beginning_ : random_state(), /*is_buffer=*/true);
  }

  /// The stream can't be entered in its middle: the pass is begun again, with the generator as it was, and what was
  /// handed out is read and dropped.
  void load_position(torch::serialize::InputArchive& archive) override {
    Position position = position_;
    position.load(archive);
    archive.read("random_state", beginning_, /*is_buffer=*/true);
    position_ = position;
    resuming_ = position.in_pass;
  }

  void check_position(torch::serialize::InputArchive& archive) const override { Position(position_).load(archive); }

 private:
  /// Stands in for the data set: what the base class asks it for, the loader answers.
  class Feed final : public D {
   public:
    Feed(D&& dataset, StreamLoader* loader) : D(std::move(dataset)), loader_(loader) {}
    typename D::BatchType get_batch(Request) override { return loader_->take(); }
    typename D::BatchType read() { return D::get_batch(Request(loader_->full_options_.batch_size)); }

   private:
    StreamLoader* loader_;
  };

  static bool sends() { return ranks() > 1 && dataloader_configuration().dispatch_batches.value_or(true); }
  static bool reads() { return !sends() || rank() == 0; }

  void reset() override {
    if (fetchers_) {
      fetchers_->cancel();
    }
    fetched_.clear();
    ahead_.reset();
    exhausted_ = false;
    agree_on_random_state();
    int64_t skipped = skip_ * (sharing_ == Sharing::rows ? 1 : ranks());
    skip_ = 0;
    const torch::Tensor now = random_state();
    if (resuming_) {
      skipped += position_.batches;
      set_random_state(beginning_);
    } else {
      beginning_ = now;
      position_.epoch += position_.in_pass ? 1 : 0;  // the last pass was left before its end
    }
    read_ = 0;
    position_.in_pass = true;
    if (reads()) {
      read_alone([this] { this->main_thread_dataset_->reset(); });
      while (fetchers_ && fetched_.size() < full_options_.max_jobs) {
        fetch_ahead();
      }
    }
    Base::reset();
    for (; skipped > 0; --skipped) {
      if (reads() && !read_alone([this] { return next().has_value(); })) {
        break;
      }
      ++read_;
    }
    position_.batches = read_;
    if (resuming_) {
      set_random_state(now);
      resuming_ = false;
    }
    agree_on_random_state();  // the data set's reset may have drawn
  }

  /// A step that was read, or the reason why it wasn't.
  struct Ready {
    RowSlice slice;
    std::optional<Batch> batch;  // none at the end
    int64_t batches = 0;         // of the original, up to its end
    std::exception_ptr error;
  };

  typename D::BatchType take() {
    Ready ready = ahead_ ? std::move(*ahead_) : read_step();
    ahead_.reset();
    if (ready.error) {
      if (sharing_ == Sharing::batches || !sends()) {
        reading_failed(ready.error);  // otherwise all ranks throw at this step
      }
      std::rethrow_exception(ready.error);
    }
    if (!ready.batch) {
      position_.epoch += position_.in_pass ? 1 : 0;
      position_.in_pass = false;
      end_pass(this);
      return std::nullopt;
    }
    read_alone([&] { transfer_.finish(*ready.batch, transfer_.start(*ready.batch)); });
    position_.batches = ready.batches;
    hand_out(this, sharing_, ready.slice);
    if (sharing_ != Sharing::batches && last_batch_matters()) {
      ahead_.emplace(read_step());  // a stream doesn't know its last batch before it has asked for another
      mark_last_batch(!ahead_->batch && !ahead_->error);
    }
    return std::move(ready.batch);
  }

  Ready read_step() {
    Ready ready;
    try {
      if (sharing_ == Sharing::batches || ranks() == 1) {
        ready.batch = next_whole(ready.slice);
      } else if constexpr (is_sendable<Batch>()) {
        const auto step = [this] {
          return read_batches<kList, Batch>([this] { return next(); }, sharing_, full_options_);
        };
        ready.batch =
            sends() ? read_and_send<kList, Batch>(step, ready.slice) : read_and_slice<kList, Batch>(step, ready.slice);
        read_ += ready.batch ? batches_of_step(sharing_) : 0;
      }
    } catch (...) {
      ready.error = std::current_exception();
    }
    ready.batches = read_;
    return ready;
  }

  /// A whole batch for this rank: of those that all read every rank takes its turn, of a stream that only the main
  /// process reads it has all.
  std::optional<Batch> next_whole(RowSlice& slice) {
    while (reads()) {
      std::optional<Batch> batch = next();
      if (!batch) {
        break;
      }
      const int64_t turn = read_++ % ranks();
      if (sends() || turn == rank()) {
        slice = RowSlice{0, 1, 1};
        if constexpr (is_sendable<Batch>()) {
          if (batches_count_alone()) {
            slice.rows = slice.global_rows = rows_of<kList>(*batch);
          }
        }
        return batch;
      }
    }
    return std::nullopt;
  }

  /// The original's next batch, on a rank that reads.
  std::optional<Batch> next() {
    if (!fetchers_) {
      if (exhausted_) {
        return std::nullopt;  // a round that was cut short has seen the end; asked again, the stream may begin anew
      }
      std::optional<OwnRandomStream> stream;
      if (sharing_ == Sharing::batches && sends()) {
        stream.emplace();  // the other ranks don't read, and don't hear of it
      }
      std::optional<Batch> batch = feed_->read();
      exhausted_ = !batch;
      return batch;
    }
    while (!fetched_.empty()) {
      auto future = std::move(fetched_.front());
      fetched_.pop_front();
      std::optional<Batch> batch = await(future, full_options_);
      if (batch) {
        fetch_ahead();
        return batch;
      }
      exhausted_ = true;
    }
    return std::nullopt;
  }

  void fetch_ahead() {
    if (!exhausted_) {
      fetched_.push_back(submit<std::optional<Batch>>(*fetchers_, [this](std::size_t) { return feed_->read(); }));
    }
  }

  const torch::data::FullDataLoaderOptions full_options_;
  const Sharing sharing_;
  Feed* feed_ = nullptr;
  Position position_;
  int64_t read_ = 0;         // batches of this pass
  torch::Tensor beginning_;  // the generator's state as this pass began
  bool resuming_ = false;    // the next reset() goes on from position_
  int64_t skip_ = 0;         // steps that the next pass leaves out
  bool exhausted_ = false;
  std::deque<std::future<std::optional<Batch>>> fetched_;
  std::optional<Ready> ahead_;
  Transfer transfer_;
  std::unique_ptr<Fetchers> fetchers_;
};

}  // namespace accelerate::detail
