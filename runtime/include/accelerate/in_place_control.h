#pragma once

/// What all ways of sharing out a loader that exists already have in common.

#include <accelerate/dispatch.h>
#include <accelerate/export.h>
#include <accelerate/loader_control.h>
#include <accelerate/sharing.h>
#include <accelerate/transfer.h>
#include <torch/data/dataloader_options.h>
#include <torch/serialize/archive.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate::detail {

/// A loader's requests, where they are lists of indices.
using IndexLists = std::deque<std::vector<std::size_t>>;

/// The main process's requests of a step, of which there are at most `count`, on all ranks: such a loader's sampler was
/// reset where nobody could see to it that all draw alike. (collective)
ACCELERATE_API IndexLists step_of_main(IndexLists mine, std::size_t count, std::size_t batch_size);

/// The same of a pass. (collective)
ACCELERATE_API IndexLists pass_of_main(IndexLists mine);

/// -1: it doesn't tell. Some data sets throw where they don't know it.
template <typename D>
int64_t size_of_dataset(const D& dataset) {
  try {
    const std::optional<std::size_t> size = dataset.size();
    return size ? static_cast<int64_t>(*size) : -1;
  } catch (const std::exception&) {
    return -1;
  }
}

/// How far a pass has come over a data set whose sampler nobody can ask.
class PassProgress {
 public:
  PassProgress(const torch::data::FullDataLoaderOptions& options, Sharing sharing)
      : drop_last_(options.drop_last), step_(static_cast<int64_t>(options.batch_size) * batches_of_step(sharing)) {}

  void begin_pass() {
    begun_ = true;
    read_ = 0;
    over_ = false;
  }
  /// Takes a step's rows into account; whether it's the last, of a data set of that size (-1: unknown).
  bool count(int64_t rows, int64_t size) {
    const int64_t usable = drop_last_ ? size / step_ * step_ : size;
    over_ = read_ < usable && read_ + rows >= usable;
    begun_ = false;
    read_ += rows;
    return over_;
  }
  bool between_passes() const { return !begun_ && (read_ == 0 || over_); }

 private:
  const bool drop_last_;
  const int64_t step_;  // a whole step's rows
  bool begun_ = false;  // and nothing was read yet
  int64_t read_ = 0;    // rows
  bool over_ = false;
};

/// Which rows of a step this rank reads.
class ACCELERATE_API OwnRows {
 public:
  OwnRows(Sharing sharing, std::size_t batch_size) : sharing_(sharing), batch_size_(batch_size) {}

  Sharing sharing() const { return sharing_; }
  std::size_t batch_size() const { return batch_size_; }
  void begin_pass() { first_rows_.clear(); }
  /// Of a step's requests, which are the same on all ranks. Only the last step has fewer than batches_of_step().
  std::vector<std::size_t> of(const IndexLists& step, RowSlice& slice);

 private:
  const Sharing sharing_;
  const std::size_t batch_size_;
  std::vector<std::size_t> first_rows_;  // that fill up the last round
};

/// Opens the protected members of a loader's base class.
template <typename Base>
struct Opened : Base {
  static auto dataset() { return &Opened::main_thread_dataset_; }
  static auto sequencer() { return &Opened::sequencer_; }
  static auto shuttle() { return &Opened::shuttle_; }
  static auto next_request() { return &Opened::get_batch_request; }
  static auto push() { return &Opened::template push_job<typename Base::BatchRequestType>; }
};

/// Orders the results of a loader's workers.
template <typename Base>
using SequencerOf = typename std::decay_t<decltype(std::declval<Base&>().*Opened<Base>::sequencer())>::element_type;

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

/// Batches that the main process reads, one step after the other, and sends to all.
template <typename Batch>
class SentSteps {
  static constexpr auto kList = ListMeaning::rows;

 public:
  /// `alike`: all ranks read the same, and nothing has to be sent.
  SentSteps(Sharing sharing, const torch::data::FullDataLoaderOptions& options, bool alike)
      : sharing_(sharing), options_(options), alike_(alike && ranks() > 1) {}

  void begin_pass() {
    ahead_.reset();
    over_ = false;
  }
  bool over() const { return over_; }

  /// Hands out this rank's part of the next step; none behind the last. `source.next()` is the next batch, or none;
  /// `source.leave_out()` is called instead on a rank that reads none. (collective)
  template <typename Source>
  std::optional<Batch> next(const void* loader, Transfer& transfer, Source& source) {
    Step step = ahead_ ? std::move(*ahead_) : read(source);
    ahead_.reset();
    over_ = !step.batch && !step.error;
    if (step.error) {
      std::rethrow_exception(step.error);
    }
    if (over_) {
      end_pass(loader);
      return std::nullopt;
    }
    read_alone([&] { transfer.finish(*step.batch, transfer.start(*step.batch)); });
    hand_out(loader, sharing_, step.slice);
    if (last_batch_matters()) {
      ahead_.emplace(read(source));  // a stream doesn't know its last batch before it has asked for another
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

  template <typename Source>
  Step read(Source& source) {
    const auto whole = [&] { return read_batches<kList, Batch>([&] { return source.next(); }, sharing_, options_); };
    Step step;
    try {
      if (ranks() == 1) {
        step.batch = whole();
        if (step.batch) {
          step.slice.rows = step.slice.global_rows = rows_of<kList>(*step.batch);
        }
      } else if (alike_) {
        step.batch = read_alone([&] { return read_and_slice<kList, Batch>(whole, step.slice); });
      } else {
        for (int64_t i = 0; rank() != 0 && i < batches_of_step(sharing_); ++i) {
          source.leave_out();
        }
        step.batch = read_and_send<kList, Batch>(whole, step.slice);
      }
    } catch (...) {
      step.error = std::current_exception();
    }
    return step;
  }

  const Sharing sharing_;
  const torch::data::FullDataLoaderOptions options_;
  const bool alike_;
  std::optional<Step> ahead_;
  bool over_ = true;
};

}  // namespace accelerate::detail
