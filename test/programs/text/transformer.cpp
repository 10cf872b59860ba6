// A small transformer over characters: batches are drawn from a text, the model gives logits and
// loss, the loss is estimated on batches of two texts, and the model writes on at the end.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

namespace nn = torch::nn;
namespace F = torch::nn::functional;

constexpr int64_t kBatch = 7, kBlock = 8, kWidth = 16, kVocab = 20;

struct HeadImpl : nn::Module {
  nn::Linear key{nullptr}, query{nullptr}, value{nullptr};
  torch::Tensor tril;
  HeadImpl(int64_t size) {
    key = register_module("key", nn::Linear(nn::LinearOptions(kWidth, size).bias(false)));
    query = register_module("query", nn::Linear(nn::LinearOptions(kWidth, size).bias(false)));
    value = register_module("value", nn::Linear(nn::LinearOptions(kWidth, size).bias(false)));
    tril = register_buffer("tril", torch::tril(torch::ones({kBlock, kBlock})));
  }
  torch::Tensor forward(torch::Tensor x) {
    auto T = x.size(1);
    auto k = key(x), q = query(x);
    auto wei = torch::matmul(q, k.transpose(-2, -1)) * std::pow(kWidth, -0.5);
    wei = wei.masked_fill(tril.slice(0, 0, T).slice(1, 0, T) == 0, -1e9);
    wei = F::softmax(wei, F::SoftmaxFuncOptions(-1));
    return torch::matmul(wei, value(x));
  }
};
TORCH_MODULE(Head);

struct BlockImpl : nn::Module {
  nn::ModuleList heads;
  nn::Linear proj{nullptr};
  nn::LayerNorm ln{nullptr};
  BlockImpl() {
    for (int i = 0; i < 2; ++i) heads->push_back(Head(kWidth / 2));
    register_module("heads", heads);
    proj = register_module("proj", nn::Linear(kWidth, kWidth));
    ln = register_module("ln", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  }
  torch::Tensor forward(torch::Tensor x) {
    auto h = ln(x);
    std::vector<torch::Tensor> outs;
    for (auto& head : *heads) outs.push_back(head->as<HeadImpl>()->forward(h));
    return x + proj(torch::cat(outs, -1));
  }
};
TORCH_MODULE(Block);

struct TransformerImpl : nn::Module {
  nn::Embedding tok{nullptr}, pos{nullptr};
  nn::Sequential blocks;
  nn::Linear lm{nullptr};
  TransformerImpl() {
    tok = register_module("tok", nn::Embedding(kVocab, kWidth));
    pos = register_module("pos", nn::Embedding(kBlock, kWidth));
    for (int i = 0; i < 2; ++i) blocks->push_back(Block());
    register_module("blocks", blocks);
    lm = register_module("lm", nn::Linear(kWidth, kVocab));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor idx, torch::Tensor targets = {}) {
    auto T = idx.size(1);
    auto x = tok(idx) + pos(torch::arange(T));
    x = blocks->forward(x);
    auto logits = lm(x);
    torch::Tensor loss;
    if (targets.defined()) {
      auto B = logits.size(0);
      auto C = logits.size(2);
      loss = F::cross_entropy(logits.view({B * logits.size(1), C}),
                              targets.view({B * logits.size(1)}));
    }
    return {logits, loss};
  }
  torch::Tensor generate(torch::Tensor idx, int n) {
    torch::NoGradGuard no_grad;
    for (int i = 0; i < n; ++i) {
      auto cond = idx.slice(1, std::max<int64_t>(0, idx.size(1) - kBlock));
      auto logits = forward(cond).first;
      logits = logits.index({torch::indexing::Slice(), -1, torch::indexing::Slice()});
      auto next = logits.argmax(-1, true);
      idx = torch::cat({idx, next}, 1);
    }
    return idx;
  }
};
TORCH_MODULE(Transformer);

std::pair<torch::Tensor, torch::Tensor> get_batch(const torch::Tensor& data) {
  auto ix = torch::randint(data.size(0) - kBlock, {kBatch});
  std::vector<torch::Tensor> xs, ys;
  for (int64_t i = 0; i < kBatch; ++i) {
    auto s = ix[i].item<int64_t>();
    xs.push_back(data.slice(0, s, s + kBlock));
    ys.push_back(data.slice(0, s + 1, s + kBlock + 1));
  }
  return {torch::stack(xs), torch::stack(ys)};
}

double estimate_loss(Transformer& model, const torch::Tensor& data) {
  torch::NoGradGuard no_grad;
  model->eval();
  double total = 0;
  for (int k = 0; k < 4; ++k) {
    auto [x, y] = get_batch(data);
    auto [logits, loss] = model->forward(x, y);
    total += loss.item<double>();
  }
  model->train();
  return total / 4;
}

int main() {
  torch::manual_seed(0);
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  auto data = torch::randint(kVocab, {500}, torch::kLong);
  auto train = data.slice(0, 0, 450), val = data.slice(0, 450);
  Transformer model;
  torch::optim::AdamW optimizer(model->parameters(), 1e-2);
  for (int it = 0; it < 12; ++it) {
    if (it % 5 == 0)
      std::printf("step %d: train %.6f val %.6f\n", it, estimate_loss(model, train),
                  estimate_loss(model, val));
    auto [xb, yb] = get_batch(train);
    auto [logits, loss] = model->forward(xb, yb);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    std::printf("%.6f\n", loss.item<double>());
  }
  auto out = model->generate(torch::zeros({1, 1}, torch::kLong), 10);
  for (int64_t i = 0; i < out.size(1); ++i) std::printf("%ld ", out[0][i].item<int64_t>());
  std::printf("\n");
  torch::save(model, "transformer.pt");
}
