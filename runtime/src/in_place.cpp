/// The part of in-place sharing that doesn't depend on loaders' types.

#include <accelerate/in_place_control.h>

#include <algorithm>

#include "state.h"

namespace accelerate::detail {

void throw_no_position() {
  TORCH_CHECK(
      false, "[accelerate] rank ", rank(), " of ", ranks(),
      ": a loader of torch::data::make_data_loader can't tell its position in the middle of an epoch, or be sent "
      "to one; make it with accelerate::make_data_loader (same arguments), or save between epochs (with "
      "LibTorch's RandomSampler or SequentialSampler)");
}

void tell_that_one_reads() {
  if (rank() == 0 && ranks() > 1) {
    TORCH_WARN_ONCE(
        "[accelerate] the main process reads for all ranks what comes from a loader with workers whose sampler isn't ",
        "LibTorch's RandomSampler or SequentialSampler; made with accelerate::make_data_loader (same arguments), "
        "each rank would read its own rows only");
  }
}

IndexLists step_of_main(IndexLists mine, std::size_t count, std::size_t batch_size) {
  for (const auto& request : mine) {
    TORCH_CHECK(request.size() <= batch_size, "[accelerate] rank ", rank(), " of ", ranks(),
                ": a loader's sampler gave ", request.size(), " rows for a batch of ", batch_size,
                "; make the loader with accelerate::make_data_loader, which doesn't mind");
  }
  if (ranks() == 1) {
    return mine;
  }
  // A place for each request, which begins with its length: one message, whose size all ranks know.
  const std::size_t place = batch_size + 1;
  torch::Tensor indices = torch::zeros({static_cast<int64_t>(count * place)}, torch::kInt64);
  auto* at = indices.data_ptr<int64_t>();
  for (const auto& request : mine) {
    at[0] = static_cast<int64_t>(request.size());
    std::copy(request.begin(), request.end(), at + 1);
    at += place;
  }
  state().group->broadcast(indices, 0, "the rows of a loader's batch");
  IndexLists result;
  at = indices.data_ptr<int64_t>();
  while (result.size() < count && at[0] > 0) {
    result.emplace_back(at + 1, at + 1 + at[0]);
    at += place;
  }
  return result;
}

IndexLists pass_of_main(IndexLists mine) {
  if (ranks() == 1) {
    return mine;
  }
  std::vector<int64_t> numbers;  // each request's length, then its rows
  for (const auto& request : mine) {
    numbers.push_back(static_cast<int64_t>(request.size()));
    numbers.insert(numbers.end(), request.begin(), request.end());
  }
  torch::Tensor size = torch::scalar_tensor(static_cast<int64_t>(numbers.size()), torch::kInt64);
  state().group->broadcast(size, 0, "the length of a loader's pass");
  numbers.resize(static_cast<std::size_t>(size.item<int64_t>()));
  if (numbers.empty()) {
    return {};
  }
  torch::Tensor all = torch::tensor(numbers, torch::kInt64);
  state().group->broadcast(all, 0, "the rows of a loader's pass");
  IndexLists result;
  const auto* at = all.data_ptr<int64_t>();
  for (const auto* const end = at + all.numel(); at != end; at += at[0] + 1) {
    result.emplace_back(at + 1, at + 1 + at[0]);
  }
  return result;
}

std::vector<std::size_t> OwnRows::of(const IndexLists& step, RowSlice& slice) {
  if (sharing_ == Sharing::rows) {
    const std::vector<std::size_t>& batch = step.front();
    slice = slice_of(static_cast<int64_t>(batch.size()));
    return {batch.begin() + slice.begin, batch.begin() + slice.begin + slice.rows};
  }
  if (first_rows_.empty()) {
    for (const auto& request : step) {
      first_rows_.insert(first_rows_.end(), request.begin(), request.end());
    }
  }
  return own_part_of_round(step, first_rows_, batch_size_, slice);
}

}  // namespace accelerate::detail
