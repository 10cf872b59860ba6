#pragma once

// Losses: their options, modules and functional forms.

#include <torch/layers.h>

namespace torch {
namespace nn {

struct L1LossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  L1LossOptions() = default;
  L1LossOptions(torch::enumtype::kNone reduction) : reduction_(torch::kNone) {}
  L1LossOptions(torch::enumtype::kMean reduction) : reduction_(torch::kMean) {}
  L1LossOptions(torch::enumtype::kSum reduction) : reduction_(torch::kSum) {}
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct L1LossImpl : public Cloneable<L1LossImpl> {
  explicit L1LossImpl(L1LossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  L1LossOptions options;
};
TORCH_MODULE(L1Loss);

struct MSELossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  MSELossOptions() = default;
  MSELossOptions(torch::enumtype::kNone reduction) : reduction_(torch::kNone) {}
  MSELossOptions(torch::enumtype::kMean reduction) : reduction_(torch::kMean) {}
  MSELossOptions(torch::enumtype::kSum reduction) : reduction_(torch::kSum) {}
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct MSELossImpl : public Cloneable<MSELossImpl> {
  explicit MSELossImpl(MSELossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  MSELossOptions options;
};
TORCH_MODULE(MSELoss);

struct SmoothL1LossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  SmoothL1LossOptions() = default;
  SmoothL1LossOptions(torch::enumtype::kNone reduction) : reduction_(torch::kNone) {}
  SmoothL1LossOptions(torch::enumtype::kMean reduction) : reduction_(torch::kMean) {}
  SmoothL1LossOptions(torch::enumtype::kSum reduction) : reduction_(torch::kSum) {}
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(std::optional<double>, beta) = std::nullopt;
};
struct SmoothL1LossImpl : public Cloneable<SmoothL1LossImpl> {
  explicit SmoothL1LossImpl(SmoothL1LossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  SmoothL1LossOptions options;
};
TORCH_MODULE(SmoothL1Loss);

struct HuberLossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  HuberLossOptions() = default;
  HuberLossOptions(torch::enumtype::kNone reduction) : reduction_(torch::kNone) {}
  HuberLossOptions(torch::enumtype::kMean reduction) : reduction_(torch::kMean) {}
  HuberLossOptions(torch::enumtype::kSum reduction) : reduction_(torch::kSum) {}
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(double, delta) = 1.0;
};
struct HuberLossImpl : public Cloneable<HuberLossImpl> {
  explicit HuberLossImpl(HuberLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  HuberLossOptions options;
};
TORCH_MODULE(HuberLoss);

struct BCELossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct BCELossImpl : public Cloneable<BCELossImpl> {
  explicit BCELossImpl(BCELossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  BCELossOptions options;
};
TORCH_MODULE(BCELoss);

struct BCEWithLogitsLossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(Tensor, pos_weight);
};
struct BCEWithLogitsLossImpl : public Cloneable<BCEWithLogitsLossImpl> {
  explicit BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  BCEWithLogitsLossOptions options;
  Tensor weight;
  Tensor pos_weight;
};
TORCH_MODULE(BCEWithLogitsLoss);

struct NLLLossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct NLLLossImpl : public Cloneable<NLLLossImpl> {
  explicit NLLLossImpl(NLLLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  NLLLossOptions options;
  Tensor weight;
};
TORCH_MODULE(NLLLoss);

struct CrossEntropyLossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  TORCH_ARG(Tensor, weight);
  TORCH_ARG(int64_t, ignore_index) = -100;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(double, label_smoothing) = 0.0;
};
struct CrossEntropyLossImpl : public Cloneable<CrossEntropyLossImpl> {
  explicit CrossEntropyLossImpl(CrossEntropyLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  CrossEntropyLossOptions options;
  Tensor weight;
};
TORCH_MODULE(CrossEntropyLoss);

struct TripletMarginLossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  TORCH_ARG(double, margin) = 1.0;
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, swap) = false;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
};
struct TripletMarginLossImpl : public Cloneable<TripletMarginLossImpl> {
  explicit TripletMarginLossImpl(TripletMarginLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);
  TripletMarginLossOptions options;
};
TORCH_MODULE(TripletMarginLoss);

struct CTCLossOptions {
  typedef torch::detail::Variant<enumtype::kNone, enumtype::kMean, enumtype::kSum> reduction_t;
  TORCH_ARG(int64_t, blank) = 0;
  TORCH_ARG(reduction_t, reduction) = torch::kMean;
  TORCH_ARG(bool, zero_infinity) = false;
};
struct CTCLossImpl : public Cloneable<CTCLossImpl> {
  explicit CTCLossImpl(CTCLossOptions options_ = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
  CTCLossOptions options;
};
TORCH_MODULE(CTCLoss);

namespace functional {

using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using CTCLossFuncOptions = CTCLossOptions;
struct PairwiseDistanceFuncOptions {
  TORCH_ARG(double, p) = 2.0;
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(bool, keepdim) = false;
};

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options = {});
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options = {});
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options = {});
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options = {});

}  // namespace functional

}  // namespace nn
}  // namespace torch
