#pragma once

#include <torch/torch.h>

#include <cstdint>

struct ModelOptions {
  int64_t vocabulary_size = 0;
  int64_t max_length = 0;
  int64_t num_labels = 0;
  int64_t hidden_size = 64;
  int64_t num_heads = 4;
  int64_t num_layers = 2;
};

// One layer of a Transformer encoder, normalised first.
class EncoderLayerImpl : public torch::nn::Module {
 public:
  EncoderLayerImpl(int64_t hidden_size, int64_t num_heads);

  // x: batch x length x hidden; mask: batch x 1 x 1 x length, true on padding.
  torch::Tensor forward(torch::Tensor x, const torch::Tensor& mask);

 private:
  torch::Tensor attend(const torch::Tensor& x, const torch::Tensor& mask);

  int64_t num_heads_;
  torch::nn::Linear qkv_{nullptr}, out_{nullptr}, up_{nullptr}, down_{nullptr};
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr};
};
TORCH_MODULE(EncoderLayer);

// Classifies sequences of tokens; token 0 is padding.
class SequenceClassifierImpl : public torch::nn::Module {
 public:
  explicit SequenceClassifierImpl(const ModelOptions& options);

  // tokens: batch x length. Returns the logits, batch x labels.
  torch::Tensor forward(const torch::Tensor& tokens);

 private:
  torch::nn::Embedding tokens_{nullptr}, positions_{nullptr};
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear classifier_{nullptr};
};
TORCH_MODULE(SequenceClassifier);
