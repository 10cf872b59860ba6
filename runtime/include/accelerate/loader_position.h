#pragma once

/// Where a loader stands, so that a checkpoint can bring another one there.

#include <accelerate/export.h>
#include <torch/serialize.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace accelerate::detail {

/// Counted in the original program's batches, so that it means the same on any number of ranks.
struct LoaderPosition {
  int64_t epoch = 0;                        // epochs begun
  int64_t batches = 0;                      // handed out in the last of them
  bool under_way = false;                   // whether the last epoch goes on
  torch::Tensor random_state;               // of the default CPU generator when it began; none before the first
  std::string sampler;                      // the bytes of an archive that its save() wrote; empty if it writes nothing
  std::vector<std::vector<int64_t>> drawn;  // requests that were drawn from it and not handed out

  ACCELERATE_API void save(torch::serialize::OutputArchive& archive) const;
  ACCELERATE_API void load(torch::serialize::InputArchive& archive);
};

/// The default CPU generator's state; set_random_state() brings it back.
ACCELERATE_API torch::Tensor random_state();
ACCELERATE_API void set_random_state(const torch::Tensor& state);

/// What a loader asks instead of its sampler; it counts along, and goes on where a checkpoint ended.
template <typename S>
class LoaderProgress {
 public:
  using Request = typename S::BatchRequestType;

  /// `ahead`: requests are drawn before the batches that come first are handed out.
  explicit LoaderProgress(bool ahead) : ahead_(ahead) {}

  /// Begins an epoch, or goes on in the one that load() came from.
  void begin(S& sampler) {
    if (!std::exchange(resumes_, false)) {
      again_.clear();
      position_.random_state = random_state();
      sampler.reset();
      ++position_.epoch;
      position_.batches = 0;
      position_.under_way = true;
    }
    in_flight_.clear();
    drawn_ = 0;
  }

  std::optional<Request> next(S& sampler, size_t batch_size) {
    std::optional<Request> request;
    if (again_.empty()) {
      request = sampler.next(batch_size);
    } else {
      request = std::move(again_.front());
      again_.pop_front();
    }
    if (ahead_ && request) {
      in_flight_.emplace_back(drawn_++, *request);
    }
    return request;
  }

  /// The oldest request that was drawn has become a batch in the loop's hands.
  void handed_out() {
    ++position_.batches;
    if (ahead_) {
      in_flight_.pop_front();
    }
  }

  /// The same for the request that was drawn as number `number` (from 0) since the epoch began.
  void handed_out(size_t number) {
    const auto found =
        std::find_if(in_flight_.begin(), in_flight_.end(), [&](const auto& drawn) { return drawn.first == number; });
    if (found != in_flight_.begin() && found != in_flight_.end()) {
      std::rotate(in_flight_.begin(), found, found + 1);
    }
    handed_out();
  }

  void ended() { position_.under_way = false; }

  /// Without `in_mid_epoch` what is under way counts as ended.
  void save(torch::serialize::OutputArchive& archive, const S& sampler, bool in_mid_epoch) const {
    LoaderPosition position = position_;
    position.under_way = position.under_way && in_mid_epoch;
    if (position.under_way) {
      for (const auto& drawn : in_flight_) {
        put(position.drawn, drawn.second);
      }
      for (const Request& request : again_) {
        put(position.drawn, request);
      }
    }
    position.sampler = bytes_of(sampler);
    position.save(archive);
  }

  void load(S& sampler, size_t batch_size, torch::serialize::InputArchive& from) {
    LoaderPosition position;
    position.load(from);
    position_ = position;
    resumes_ = position.under_way;
    again_.clear();
    in_flight_.clear();
    if (position.sampler.empty()) {
      replay(sampler, batch_size);
      return;
    }
    std::istringstream bytes(position.sampler);
    torch::serialize::InputArchive archive;
    archive.load_from(bytes);
    sampler.load(archive);
    for (const auto& indices : position.drawn) {
      if constexpr (std::is_same_v<Request, std::vector<size_t>>) {
        again_.emplace_back(indices.begin(), indices.end());
      }
    }
  }

 private:
  /// A sampler that saves nothing is brought there by asking it again.
  void replay(S& sampler, size_t batch_size) {
    const torch::Tensor now = random_state();
    for (int64_t epoch = 1; epoch <= position_.epoch; ++epoch) {
      if (epoch == position_.epoch) {
        set_random_state(position_.random_state);
      }
      sampler.reset();
    }
    for (int64_t batch = 0; position_.under_way && batch < position_.batches; ++batch) {
      sampler.next(batch_size);
    }
    set_random_state(now);
  }

  static std::string bytes_of(const S& sampler) {
    torch::serialize::OutputArchive archive;
    try {
      sampler.save(archive);
    } catch (const std::exception&) {
      return {};  // the way of some to say that they save nothing
    }
    std::stringstream bytes;
    archive.save_to(bytes);
    torch::serialize::InputArchive content;
    content.load_from(bytes);
    return content.keys().empty() ? std::string() : bytes.str();
  }

  static void put(std::vector<std::vector<int64_t>>& out, const Request& request) {
    if constexpr (std::is_same_v<Request, std::vector<size_t>>) {
      out.emplace_back(request.begin(), request.end());
    } else {
      TORCH_CHECK(false,
                  "[accelerate] save_state(): a loader with workers has drawn requests ahead that are no "
                  "std::vector<size_t>, and can't be saved; give it no workers, or save between epochs");
    }
  }

  const bool ahead_;
  bool resumes_ = false;
  LoaderPosition position_;
  size_t drawn_ = 0;                                  // since the epoch began here
  std::deque<std::pair<size_t, Request>> in_flight_;  // drawn and not handed out
  std::deque<Request> again_;                         // drawn by the loader that the checkpoint is of
};

}  // namespace accelerate::detail
