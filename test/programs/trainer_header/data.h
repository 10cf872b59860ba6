#pragma once

#include <torch/torch.h>

#include <cstdint>

// Pictures of 8 x 8 points with a bright spot; the label is the corner that it is nearest to.
class Spots : public torch::data::datasets::Dataset<Spots> {
 public:
  Spots(int64_t count, uint64_t seed);
  torch::data::Example<> get(size_t index) override;
  torch::optional<size_t> size() const override;

 private:
  torch::Tensor images_, labels_;
};

using StackedSpots = torch::data::datasets::MapDataset<Spots, torch::data::transforms::Stack<>>;
using Loader =
    torch::data::StatelessDataLoader<StackedSpots, torch::data::samplers::SequentialSampler>;
