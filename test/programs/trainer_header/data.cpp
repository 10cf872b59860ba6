#include "data.h"

Spots::Spots(int64_t count, uint64_t seed) {
  torch::manual_seed(seed);
  auto place = torch::rand({count, 2}, torch::kDouble) * 7;
  auto at = torch::arange(8, torch::kDouble);
  auto down = torch::exp(-(at.view({1, 8, 1}) - place.select(1, 0).view({-1, 1, 1})).pow(2));
  auto across = torch::exp(-(at.view({1, 1, 8}) - place.select(1, 1).view({-1, 1, 1})).pow(2));
  images_ = (down * across).unsqueeze(1);
  labels_ =
      2 * (place.select(1, 0) > 3.5).to(torch::kLong) + (place.select(1, 1) > 3.5).to(torch::kLong);
}

torch::data::Example<> Spots::get(size_t index) { return {images_[index], labels_[index]}; }

torch::optional<size_t> Spots::size() const { return images_.size(0); }
