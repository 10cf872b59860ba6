#pragma once

/// Sharing out a loader whose workers have begun: the data set is theirs, and can't be reached any more. What they give
/// goes through the loader's sequencer, which can be replaced.

#include <accelerate/in_place_control.h>
#include <torch/data/detail/sequencers.h>
#include <torch/data/worker_exception.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace accelerate::detail {

/// Stands in the place of a loader's sequencer. A pass begins with a new one in the place of the last, behind the
/// sampler's reset and before anything is asked for.
template <typename Base>
class InPlaceResults : public InPlaceControl, public std::enable_shared_from_this<InPlaceResults<Base>> {
 protected:
  using Sequencer = SequencerOf<Base>;
  using Producer = typename Sequencer::ResultProducer;
  using Result = typename Producer::result_type::value_type;

 private:
  /// Has the sequencer of a pass.
  class StandIn final : public Sequencer {
   public:
    StandIn(std::shared_ptr<InPlaceResults> loader, std::unique_ptr<Sequencer> sequencer)
        : loader_(std::move(loader)), sequencer_(std::move(sequencer)) {}
    ~StandIn() override { loader_->follow(this); }
    std::optional<Result> next(Producer produce) override { return loader_->next(*sequencer_, produce); }
    LoaderControl* control() const { return loader_.get(); }

   private:
    const std::shared_ptr<InPlaceResults> loader_;
    const std::unique_ptr<Sequencer> sequencer_;
  };

 public:
  explicit InPlaceResults(Base& loader) : loader_(loader) {}
  ~InPlaceResults() override { take_back(this); }

  /// What the loader is shared out by already, or none.
  static LoaderControl* of(Base& loader) {
    const auto* shared = dynamic_cast<const StandIn*>((loader.*Opened<Base>::sequencer()).get());
    return shared ? shared->control() : nullptr;
  }

  static LoaderControl* share(std::shared_ptr<InPlaceResults> made) {
    LoaderControl* const control = made.get();
    auto& sequencer = made->loader_.*Opened<Base>::sequencer();
    sequencer = std::make_unique<StandIn>(std::move(made), std::move(sequencer));
    return control;
  }

 protected:
  /// `sequencer` is the next pass's, and may be replaced.
  virtual void begin_pass(std::unique_ptr<Sequencer>& sequencer) = 0;
  virtual std::optional<Result> next(Sequencer& sequencer, const Producer& produce) = 0;

  std::size_t jobs() const { return loader_.options().max_jobs; }

  Base& loader_;

 private:
  /// Called where the loader destroys the last pass's sequencer, having put in the next one's.
  void follow(const StandIn* last) {
    auto& sequencer = loader_.*Opened<Base>::sequencer();
    if (!sequencer || sequencer.get() == last) {
      return;  // the loader is being destroyed
    }
    begin_pass(sequencer);
    sequencer = std::make_unique<StandIn>(this->shared_from_this(), std::move(sequencer));
  }
};

/// Workers read this rank's rows: where a pass begins, the sampler is asked for the whole of it, so that the loader
/// finds no more requests to give them, and they get this rank's part of each instead, as many at a time as the loader
/// would have given. For samplers of LibTorch's, which say what a pass has when they are reset.
template <typename Base>
class InPlaceWorkers final : public InPlaceResults<Base> {
  using Results = InPlaceResults<Base>;
  using typename Results::Producer;
  using typename Results::Result;
  using typename Results::Sequencer;
  using Request = typename Base::BatchRequestType;

 public:
  InPlaceWorkers(Base& loader, Sharing sharing) : Results(loader), own_rows_(sharing, loader.options().batch_size) {}

 private:
  void begin_pass(std::unique_ptr<Sequencer>& sequencer) override {
    over_ = false;
    if (!this->touches_batches_) {
      return;
    }
    begun_ = true;
    requests_.clear();
    slices_.clear();
    own_rows_.begin_pass();
    sampler_error_ = nullptr;
    try {
      while (const std::optional<Request> request = (this->loader_.*Opened<Base>::next_request())()) {
        requests_.emplace_back(request->begin(), request->end());
      }
    } catch (...) {
      sampler_error_ = std::current_exception();  // nobody to throw it to, yet
    }
    // Whether or not the program has asked for it: ranks' batches have to belong together.
    sequencer = std::make_unique<torch::data::detail::sequencers::OrderedSequencer<Result>>(this->jobs());
  }

  std::optional<Result> next(Sequencer& sequencer, const Producer& produce) override {
    if (!this->touches_batches_) {
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
      requests_ = pass_of_main(std::move(requests_));
    }
    while (slices_.size() < this->jobs() && ask_workers()) {
    }
    std::optional<Result> result = read_alone([&] { return sequencer.next(produce); });
    over_ = !result;
    if (over_) {
      end_pass(this);
      return result;
    }
    const RowSlice slice = slices_.front();
    slices_.pop_front();
    ask_workers();
    if (result->exception) {
      reading_failed(result->exception);
      return result;  // the loader throws it
    }
    read_alone([&] { this->transfer_.finish(*result->batch, this->transfer_.start(*result->batch)); });
    hand_out(this, own_rows_.sharing(), slice);
    mark_last_batch(slices_.empty());
    return result;
  }

  /// For this rank's part of the next step, if there's one.
  bool ask_workers() {
    const auto whole = static_cast<std::size_t>(batches_of_step(own_rows_.sharing()));
    if (requests_.empty() || (this->loader_.options().drop_last && requests_.size() < whole)) {
      return false;
    }
    IndexLists step;
    while (!requests_.empty() && step.size() < whole) {
      step.push_back(std::move(requests_.front()));
      requests_.pop_front();
    }
    const std::vector<std::size_t> rows = own_rows_.of(step, slices_.emplace_back());
    (this->loader_.*Opened<Base>::push())(Request(rows.begin(), rows.end()));
    return true;
  }

  bool between_passes() const override { return over_; }

  OwnRows own_rows_;
  bool begun_ = false;  // a pass of which nothing was asked for yet
  bool over_ = true;
  std::exception_ptr sampler_error_;
  IndexLists requests_;          // of this pass, that the workers haven't got
  std::deque<RowSlice> slices_;  // of what they have got
};

/// Says once, on the main process, that a loader would be quicker if it had been made otherwise.
ACCELERATE_API void tell_that_one_reads();

/// Workers read whole batches, as the loader asks for them, and the main process sends what its own have read. For
/// samplers that may have no end, or look at what the program does meanwhile, and so can't be asked for a pass
/// beforehand; and for stateful data sets. The other ranks' workers get what their loaders give them, which nobody can
/// keep from them, one batch a step at most; that isn't waited for but when it's under way, and thrown away.
template <typename Base>
class InPlaceSent final : public InPlaceResults<Base> {
  using Results = InPlaceResults<Base>;
  using typename Results::Producer;
  using typename Results::Result;
  using typename Results::Sequencer;
  using Batch = typename Base::BatchType;

 public:
  /// `lasting`: nothing is kept from pass to pass.
  InPlaceSent(Base& loader, Sharing sharing, bool lasting)
      : Results(loader), lasting_(lasting), steps_(sharing, loader.options(), /*alike=*/false) {
    if (!lasting) {
      tell_that_one_reads();
    }
  }

 private:
  /// What the workers have read.
  struct Source {
    InPlaceSent& self;
    Sequencer& sequencer;
    const Producer& produce;
    bool made_up = true;  // the loader itself asks for a batch in the place of the one that it's given

    std::optional<Batch> next() {
      while (true) {
        if (!std::exchange(made_up, false)) {
          if (auto request = self.request()) {
            (self.loader_.*Opened<Base>::push())(std::move(*request));
          }
        }
        std::optional<Result> result = sequencer.next(produce);
        if (!result) {
          return std::nullopt;
        }
        if (result->exception) {
          throw torch::data::WorkerException(result->exception);
        }
        if (result->batch) {
          return std::move(result->batch);
        }
        made_up = true;  // a stream's end, in whose place nothing is asked for
      }
    }

    void leave_out() {
      if (!std::exchange(made_up, false)) {
        self.request();  // it may draw, as it does on the main process
      }
    }
  };

  auto request() { return (this->loader_.*Opened<Base>::next_request())(); }
  void drain() { (this->loader_.*Opened<Base>::shuttle()).drain(); }

  void begin_pass(std::unique_ptr<Sequencer>&) override {
    steps_.begin_pass();
    over_ = false;
  }

  std::optional<Result> next(Sequencer& sequencer, const Producer& produce) override {
    if (!this->touches_batches_) {
      std::optional<Result> result = sequencer.next(produce);
      over_ = !result;
      return result;
    }
    Source source{*this, sequencer, produce};
    std::optional<Batch> batch = steps_.next(this, this->transfer_, source);
    over_ = !batch;
    if (over_ || rank() != 0) {
      drain();
    }
    return batch ? std::optional<Result>(Result(std::move(batch), 0)) : std::nullopt;
  }

  bool between_passes() const override { return lasting_ && over_; }

  const bool lasting_;
  SentSteps<Batch> steps_;
  bool over_ = true;
};

}  // namespace accelerate::detail
