#include "model.h"

#include <cmath>
#include <limits>

namespace nn = torch::nn;

EncoderLayerImpl::EncoderLayerImpl(int64_t hidden_size, int64_t num_heads)
    : num_heads_(num_heads) {
  qkv_ = register_module(
      "qkv",
      nn::Linear(nn::LinearOptions(hidden_size, 3 * hidden_size).bias(false)));
  out_ = register_module("out", nn::Linear(hidden_size, hidden_size));
  up_ = register_module("up", nn::Linear(hidden_size, 2 * hidden_size));
  down_ = register_module("down", nn::Linear(2 * hidden_size, hidden_size));
  norm1_ = register_module("norm1",
                           nn::LayerNorm(nn::LayerNormOptions({hidden_size})));
  norm2_ = register_module("norm2",
                           nn::LayerNorm(nn::LayerNormOptions({hidden_size})));
}

torch::Tensor EncoderLayerImpl::attend(const torch::Tensor& x,
                                       const torch::Tensor& mask) {
  const auto batch = x.size(0), length = x.size(1), hidden = x.size(2);
  const auto head_size = hidden / num_heads_;
  // 3 x batch x heads x length x head_size
  auto qkv = qkv_(x)
                 .view({batch, length, 3, num_heads_, head_size})
                 .permute({2, 0, 3, 1, 4});
  auto scores = torch::matmul(qkv[0], qkv[1].transpose(-2, -1)) /
                std::sqrt(static_cast<double>(head_size));
  scores = scores.masked_fill(mask, -std::numeric_limits<float>::infinity());
  auto context = torch::matmul(torch::softmax(scores, -1), qkv[2]);
  return out_(context.transpose(1, 2).reshape({batch, length, hidden}));
}

torch::Tensor EncoderLayerImpl::forward(torch::Tensor x,
                                        const torch::Tensor& mask) {
  x = x + attend(norm1_(x), mask);
  return x + down_(torch::gelu(up_(norm2_(x))));
}

SequenceClassifierImpl::SequenceClassifierImpl(const ModelOptions& options) {
  tokens_ = register_module(
      "tokens", nn::Embedding(nn::EmbeddingOptions(options.vocabulary_size,
                                                   options.hidden_size)
                                  .padding_idx(0)));
  positions_ = register_module(
      "positions", nn::Embedding(options.max_length, options.hidden_size));
  layers_ = register_module("layers", nn::ModuleList());
  for (int64_t i = 0; i < options.num_layers; ++i) {
    layers_->push_back(EncoderLayer(options.hidden_size, options.num_heads));
  }
  norm_ = register_module(
      "norm", nn::LayerNorm(nn::LayerNormOptions({options.hidden_size})));
  classifier_ = register_module(
      "classifier", nn::Linear(options.hidden_size, options.num_labels));
}

torch::Tensor SequenceClassifierImpl::forward(const torch::Tensor& tokens) {
  auto padding = tokens.eq(0);
  auto mask = padding.unsqueeze(1).unsqueeze(1);
  auto positions = torch::arange(tokens.size(1), tokens.options());
  auto x = tokens_(tokens) + positions_(positions);
  for (const auto& layer : *layers_) {
    x = layer->as<EncoderLayer>()->forward(x, mask);
  }
  // The mean over the tokens that are no padding.
  x = norm_(x).masked_fill(padding.unsqueeze(-1), 0);
  auto lengths = padding.logical_not().sum(1, /*keepdim=*/true);
  return classifier_(x.sum(1) / lengths);
}
