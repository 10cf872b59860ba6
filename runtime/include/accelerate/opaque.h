#pragma once

/// Training data that doesn't come from torch::data.

#include <accelerate/dispatch.h>

#include <iterator>

namespace accelerate {
namespace detail {

template <typename Source, typename = void>
inline constexpr bool is_callable = false;
template <typename Source>
inline constexpr bool is_callable<Source, std::void_t<decltype(std::declval<Source&>()().has_value())>> = true;

/// Reads a range as its loop would: an element is left only when the next one is wanted.
template <typename Range>
class RangeReader {
 public:
  explicit RangeReader(Range& range) : range_(range) {}

  auto operator()() -> std::optional<std::decay_t<decltype(*std::begin(std::declval<Range&>()))>> {
    if (!at_) {
      at_.emplace(std::begin(range_));
      end_.emplace(std::end(range_));
    } else {
      ++*at_;
    }
    if (!(*at_ != *end_)) {
      return std::nullopt;
    }
    return **at_;
  }

 private:
  Range& range_;
  std::optional<decltype(std::begin(std::declval<Range&>()))> at_;
  std::optional<decltype(std::end(std::declval<Range&>()))> end_;
};

template <typename Source>
auto reader_of(Source& source) {
  if constexpr (is_callable<Source>) {
    return [&source] { return source(); };
  } else {
    return RangeReader<Source>(source);
  }
}

/// What dispatch_batches() returns.
template <typename Source>
class DispatchedBatches {
  using Reader = decltype(reader_of(std::declval<std::remove_reference_t<Source>&>()));
  using Batch = typename decltype(std::declval<Reader&>()())::value_type;

 public:
  DispatchedBatches(Source&& source, Sharing sharing) : source_(std::forward<Source>(source)), sharing_(sharing) {}
  DispatchedBatches(const DispatchedBatches&) = delete;
  DispatchedBatches& operator=(const DispatchedBatches&) = delete;
  ~DispatchedBatches() { take_back(this); }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    explicit Iterator(DispatchedBatches* batches) : batches_(batches) {}
    Batch& operator*() const { return *batches_->batch_; }
    Batch* operator->() const { return &*batches_->batch_; }
    Iterator& operator++() {
      batches_->advance();
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_end() == other.at_end(); }
    bool operator!=(const Iterator& other) const { return !(*this == other); }

   private:
    bool at_end() const { return !batches_ || !batches_->batch_; }
    DispatchedBatches* batches_;
  };

  Iterator begin() {
    reader_.emplace(reader_of(source_));
    ended_ = false;
    if constexpr (!is_callable<std::remove_reference_t<Source>>) {
      ahead_.reset();  // a range begins anew, a function goes on
    }
    advance();
    return Iterator(this);
  }
  Iterator end() { return Iterator(nullptr); }

 private:
  /// A step's batch, or none at the end, or the reason why there is none.
  struct Step {
    std::optional<Batch> batch;
    RowSlice slice;
    std::exception_ptr error;
  };

  void advance() {
    batch_.reset();
    Step step = ahead_ ? std::move(*ahead_) : read_step();
    ahead_.reset();
    if (step.error) {
      std::rethrow_exception(step.error);
    }
    batch_ = std::move(step.batch);
    if (!batch_) {
      end_pass(this);
      return;
    }
    if (ranks() > 1 || batches_count_alone()) {
      hand_out(this, sharing_, step.slice);
    }
    if (last_batch_matters()) {
      // The source doesn't tell its last batch before it is asked for another, which it may write over this one.
      for_each_tensor(*batch_, [](torch::Tensor& x) { x = x.defined() ? x.clone() : x; });
      ahead_.emplace(read_step());
      mark_last_batch(!ahead_->batch && !ahead_->error);
    }
  }

  Step read_step() {
    Step step;
    try {
      if (ranks() > 1) {
        step.batch = read_and_send<ListMeaning::by_type, Batch>([this] { return next_step(); }, step.slice);
      } else if ((step.batch = (*reader_)()) && batches_count_alone()) {
        step.slice.rows = step.slice.global_rows = rows_of<ListMeaning::by_type>(*step.batch);
      }
    } catch (...) {
      step.error = std::current_exception();
    }
    return step;
  }

  /// The batches of a step, joined. A source that has told its end isn't asked again: it would go past it, or begin
  /// anew.
  std::optional<Batch> next_step() {
    const auto wanted = static_cast<std::size_t>(sharing_ == Sharing::rows ? 1 : ranks());
    std::vector<Batch> batches;
    while (batches.size() < wanted && !ended_) {
      std::optional<Batch> batch = (*reader_)();
      ended_ = !batch;
      if (batch) {
        batches.push_back(std::move(*batch));
      }
    }
    return batches.empty() ? std::nullopt
                           : std::optional<Batch>(join_batches<ListMeaning::by_type>(std::move(batches)));
  }

  Source source_;
  const Sharing sharing_;
  std::optional<Reader> reader_;
  bool ended_ = false;  // the reader, in this pass
  std::optional<Batch> batch_;
  std::optional<Step> ahead_;
};

/// `last`: see Accelerator::shard().
ACCELERATE_API void hand_out_shard(const RowSlice& slice, bool last);

template <typename Batch>
Batch shard(Batch batch, int64_t dim, bool last) {
  if constexpr (is_optional<Batch>) {  // `while (auto batch = next())` at its end: no batch to share out
    if (!batch) {
      return batch;
    }
  }
  if (ranks() > 1 || batches_count_alone()) {
    RowCount count(dim);
    count_rows(batch, count);
    if (count.rows() == 0) {
      throw_empty_batch();
    }
    const RowSlice slice = slice_of(count.rows());
    if (ranks() > 1) {
      slice_rows(batch, slice.begin, slice.rows, dim);
    }
    hand_out_shard(slice, last);
  }
  return batch;
}

}  // namespace detail

/// The batches of a loader of your own, shared out for training: `for (auto& batch : dispatch_batches(loader))`.
///
/// The main process reads, the others get what it read, and every rank keeps its slice of the rows (see batch.h for
/// what rows are, and BatchFields for batch types of your own), or a ghost. So it is right whatever randomness the
/// loader uses, and what it draws from LibTorch's default CPU generator is known to all ranks. `loader` is anything
/// with begin() and end(), or a function that returns std::optional<Batch>; on the other ranks it isn't touched.
/// Batches are where the loader put them. `policy`: how many batches make a step; by default, the process's.
/// Alone: the loader's own batches. Where batches are accumulated it's asked for one batch more than the loop has got,
/// to know which is the last. Throws on all ranks if the main process's loader does. (collective: begin(), and each
/// step)
template <typename Source>
detail::DispatchedBatches<Source> dispatch_batches(Source&& loader, std::optional<BatchPolicy> policy = std::nullopt) {
  return detail::DispatchedBatches<Source>(std::forward<Source>(loader), detail::training_sharing(policy));
}

}  // namespace accelerate
