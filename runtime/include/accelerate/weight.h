#pragma once

/// What a rank's mean counts for in the global one, where that isn't its number of rows.

#include <ATen/core/Reduction.h>
#include <accelerate/export.h>
#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <type_traits>

namespace accelerate {

/// The weight of this rank's mean in the global mean, where that isn't the row count: a number of
/// tokens, the sum of a mask. backward() and share() add the ranks' weights up (one small all-reduce).
struct Weight {
  explicit Weight(double weight) : value(weight) {}
  /// A tensor of one element of any type; reading it waits for the device.
  explicit Weight(const torch::Tensor& weight) : value(weight.item<double>()) {}
  double value;
};

/// The weight of a mean that `nll_loss` or `cross_entropy_loss` takes with these arguments, in their order: the sum of
/// `weight` [classes] at `target`'s classes (none: 1 each) without those that are `ignore_index`; of class
/// probabilities [rows, classes, ...], the number of rows. Source: what ATen's loss functions divide by. Alone nothing
/// is computed. Throws c10::Error if a class isn't one of the weights'.
ACCELERATE_API Weight class_weight(const torch::Tensor& target, const std::optional<torch::Tensor>& weight,
                                   int64_t reduction = at::Reduction::Mean, int64_t ignore_index = -100,
                                   double label_smoothing = 0);

/// The same by the loss's options: torch::nn::functional::CrossEntropyFuncOptions, NLLLossFuncOptions.
template <typename Options>
auto class_weight(const torch::Tensor& target, const Options& options)
    -> std::enable_if_t<std::is_convertible_v<decltype(options.ignore_index()), int64_t>, Weight> {
  return class_weight(target, std::optional<torch::Tensor>(options.weight()), at::Reduction::Mean,
                      options.ignore_index());
}

/// The same by the loss's module: torch::nn::CrossEntropyLoss, NLLLoss, or a pointer to what they hold.
template <typename Module>
auto class_weight(const torch::Tensor& target, const Module& criterion)
    -> std::enable_if_t<std::is_convertible_v<decltype(criterion->options.ignore_index()), int64_t>, Weight> {
  return class_weight(target, std::optional<torch::Tensor>(criterion->weight), at::Reduction::Mean,
                      criterion->options.ignore_index());
}

}  // namespace accelerate
