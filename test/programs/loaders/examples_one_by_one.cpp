// For the CPU, without a word about devices. The loader is walked by its iterators, and its batches
// are lists of examples that are stacked by hand.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

class Words : public torch::data::datasets::Dataset<Words> {
 public:
  explicit Words(int64_t count) {
    torch::manual_seed(161);
    words_ = torch::randint(0, 12, {count, 6}, torch::kLong);
    sums_ = words_.to(torch::kDouble).mean(1, true) / 6 - 1;
  }
  torch::data::Example<> get(size_t index) override { return {words_[index], sums_[index]}; }
  torch::optional<size_t> size() const override { return words_.size(0); }

 private:
  torch::Tensor words_, sums_;
};

std::pair<torch::Tensor, torch::Tensor> collate(
    const std::vector<torch::data::Example<>>& examples) {
  std::vector<torch::Tensor> data, target;
  for (const auto& example : examples) {
    data.emplace_back(example.data);
    target.emplace_back(example.target);
  }
  return {torch::stack(data), torch::stack(target)};
}

int main() {
  auto loader = torch::data::make_data_loader(Words(94), torch::data::DataLoaderOptions(15));
  torch::manual_seed(162);
  torch::nn::Embedding embed(12, 6);
  torch::nn::Linear output(6, 1);
  embed->to(torch::kDouble);
  output->to(torch::kDouble);
  torch::optim::Adagrad embed_optimizer(embed->parameters(), torch::optim::AdagradOptions(0.1));
  torch::optim::Adagrad output_optimizer(output->parameters(), torch::optim::AdagradOptions(0.1));

  for (int epoch = 1; epoch <= 3; ++epoch) {
    double total = 0;
    int64_t rows = 0;
    for (auto it = loader->begin(); it != loader->end(); ++it) {
      auto [words, sums] = collate(*it);
      auto error = torch::nn::MSELoss()(output(embed(words).mean(1)), sums);
      embed_optimizer.zero_grad();
      output_optimizer.zero_grad();
      error.backward();
      embed_optimizer.step();
      output_optimizer.step();
      total += error.item<double>() * words.size(0);
      rows += static_cast<int64_t>(it->size());
    }
    std::printf("epoch %d: loss %.9f\n", epoch, total / rows);
  }
  torch::save(embed, "embed.pt");
  torch::save(output, "output.pt");
}
