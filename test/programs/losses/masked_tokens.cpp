// Tags the words of padded sentences. The loss is a mean over the words that are there, whatever
// the number of sentences they stand in.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

constexpr int64_t kWords = 20, kTags = 4, kLength = 9, kPadding = 0;

// Sentences of two to nine words, filled up with zeros. A word's tag depends on it and on the word
// before.
class Sentences : public torch::data::datasets::Dataset<Sentences> {
 public:
  Sentences(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    words_ = torch::randint(1, kWords, {count, kLength}, torch::kLong);
    auto lengths = torch::randint(2, kLength + 1, {count, 1}, torch::kLong);
    auto there = torch::arange(kLength).unsqueeze(0) < lengths;
    tags_ = (words_ + torch::roll(words_, 1, 1)).remainder(kTags) * there;
    words_ = words_ * there;
  }
  torch::data::Example<> get(size_t index) override { return {words_[index], tags_[index]}; }
  torch::optional<size_t> size() const override { return words_.size(0); }

 private:
  torch::Tensor words_, tags_;
};

struct TaggerImpl : torch::nn::Module {
  TaggerImpl() {
    embed = register_module("embed", torch::nn::Embedding(kWords, 8));
    gru = register_module("gru", torch::nn::GRU(torch::nn::GRUOptions(8, 12).batch_first(true)));
    tag = register_module("tag", torch::nn::Linear(12, kTags));
  }
  torch::Tensor forward(const torch::Tensor& words) {
    auto hidden = std::get<0>(gru(embed(words)));
    return tag(hidden);
  }
  torch::nn::Embedding embed{nullptr};
  torch::nn::GRU gru{nullptr};
  torch::nn::Linear tag{nullptr};
};
TORCH_MODULE(Tagger);

int main() {
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Sentences(118, 1).map(torch::data::transforms::Stack<>()), 16);

  torch::manual_seed(2);
  Tagger model;
  model->to(device, torch::kDouble);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.02));

  for (int epoch = 1; epoch <= 3; ++epoch) {
    double error = 0;
    int64_t words_seen = 0, correct = 0;
    for (auto& batch : *loader) {
      auto words = batch.data.to(device);
      auto tags = batch.target.to(device);
      auto mask = (words != kPadding).to(torch::kDouble);

      auto output = model->forward(words);
      auto each = torch::nn::functional::cross_entropy(
          output.transpose(1, 2), tags,
          torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
      auto loss = (each * mask).sum() / mask.sum();

      optimizer.zero_grad();
      loss.backward();
      optimizer.step();

      error += (each * mask).sum().item<double>();
      words_seen += mask.sum().item<int64_t>();
      correct += (output.argmax(-1).eq(tags) & (words != kPadding)).sum().item<int64_t>();
    }
    std::printf("epoch %d: loss %.9f a word, %d of %d right\n", epoch, error / words_seen,
                static_cast<int>(correct), static_cast<int>(words_seen));
  }
  torch::save(model, "tagger.pt");
}
