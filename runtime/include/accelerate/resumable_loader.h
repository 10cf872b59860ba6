#pragma once

/// torch::data's loader for a process that is alone: the same batches from the same workers, and its position can be
/// kept in a checkpoint.

#include <accelerate/loader_position.h>
#include <accelerate/prepare.h>
#include <torch/data/dataloader.h>

#include <memory>
#include <optional>
#include <utility>

namespace accelerate::detail {

template <typename D, typename S>
class ResumableLoader final : public torch::data::StatelessDataLoader<D, S>, public LoaderControl {
  using Stateless = torch::data::StatelessDataLoader<D, S>;
  using Base = torch::data::DataLoaderBase<D, typename D::BatchType, typename S::BatchRequestType>;
  using Request = typename S::BatchRequestType;
  using Sequencer = torch::data::detail::sequencers::Sequencer<typename Base::Result>;

 public:
  /// `in_mid_epoch`: whether a position within an epoch is kept.
  ResumableLoader(D dataset, S sampler, torch::data::DataLoaderOptions options, bool in_mid_epoch)
      : Stateless(std::move(dataset), sampler, options),
        in_mid_epoch_(in_mid_epoch),
        sampler_(std::move(sampler)),
        progress_(this->options_.workers > 0) {}

  void deliver_to_device() override {}
  void save_position(torch::serialize::OutputArchive& archive) const override {
    progress_.save(archive, sampler_, in_mid_epoch_);
  }
  void load_position(torch::serialize::InputArchive& archive) override {
    progress_.load(sampler_, this->options_.batch_size, archive);
  }

 private:
  /// Between the workers and the loop: sees which batches are handed out.
  class Counter final : public Sequencer {
   public:
    Counter(std::unique_ptr<Sequencer> sequencer, LoaderProgress<S>& progress)
        : sequencer_(std::move(sequencer)), progress_(progress) {}
    std::optional<typename Base::Result> next(typename Sequencer::ResultProducer produce) override {
      auto result = sequencer_->next(std::move(produce));
      if (result) {
        progress_.handed_out(result->sequence_number);
      } else {
        progress_.ended();
      }
      return result;
    }

   private:
    std::unique_ptr<Sequencer> sequencer_;
    LoaderProgress<S>& progress_;
  };

  void reset() override {
    progress_.begin(sampler_);
    Base::reset();
    if (this->options_.workers > 0) {
      this->sequencer_ = std::make_unique<Counter>(std::move(this->sequencer_), progress_);
    }
  }

  std::optional<Request> get_batch_request() override {
    auto request = progress_.next(sampler_, this->options_.batch_size);
    const bool more = request && (request->size() == this->options_.batch_size || !this->options_.drop_last);
    if (this->options_.workers == 0) {
      more ? progress_.handed_out() : progress_.ended();
    }
    return more ? std::move(request) : std::nullopt;
  }

  const bool in_mid_epoch_;
  S sampler_;  // the base has a copy of its own, which is private to it and never asked
  LoaderProgress<S> progress_;
};

}  // namespace accelerate::detail
