// Sequences of all lengths, collated by hand: padded to the longest, centred by the batch's mean,
// weighted by how much each row counts among them. The loss is added up row by row, divided by
// their number.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

class Signals : public torch::data::datasets::Dataset<Signals> {
 public:
  explicit Signals(int64_t count) {
    torch::manual_seed(601);
    values_ = torch::randn({count, 9}, torch::kDouble);
    targets_ = values_.slice(1, 0, 3).sum(1, true).sin();
  }
  torch::data::Example<> get(size_t index) override {
    const auto i = static_cast<int64_t>(index);
    return {values_[i].slice(0, 0, 3 + i * 5 % 7), targets_[i]};
  }
  torch::optional<size_t> size() const override { return values_.size(0); }

 private:
  torch::Tensor values_, targets_;
};

struct Padded {
  torch::Tensor inputs, targets, weights;  // [B, longest], [B, 1], [B]
};

template <typename Batch>
Padded collate(const Batch& batch) {
  int64_t longest = 0;
  double total = 0, lengths = 0;
  for (const auto& example : batch) {
    if (example.data.size(0) > longest) longest = example.data.size(0);
  }
  for (const auto& example : batch) total += example.target.template item<double>();
  for (const auto& example : batch) lengths += static_cast<double>(example.data.size(0));
  const double mean = total / batch.size();
  double spread = 0;
  for (const auto& example : batch)
    spread += std::pow(example.target.template item<double>() - mean, 2);
  const double deviation = std::sqrt(spread / batch.size()) + 0.1;

  std::vector<torch::Tensor> inputs, targets, weights;
  for (const auto& example : batch) {
    inputs.push_back(torch::constant_pad_nd(example.data, {0, longest - example.data.size(0)}));
    targets.push_back((example.target - mean) / deviation);
    weights.push_back(torch::full({}, example.data.size(0) / lengths, torch::kDouble));
  }
  return {torch::stack(inputs), torch::stack(targets), torch::stack(weights)};
}

int main() {
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Signals(61), /*batch_size=*/12);
  auto test =
      torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(Signals(23), 5);
  torch::manual_seed(602);
  torch::nn::GRU gru(torch::nn::GRUOptions(1, 6).batch_first(true));
  torch::nn::Linear head(6, 1);
  gru->to(torch::kDouble);
  head->to(torch::kDouble);
  auto parameters = gru->parameters();
  for (auto& parameter : head->parameters()) parameters.push_back(parameter);
  torch::optim::Adam optimizer(parameters, 0.02);

  for (int epoch = 1; epoch <= 3; ++epoch) {
    double running = 0;
    for (auto& examples : *loader) {
      Padded batch = collate(examples);
      auto features = std::get<0>(gru->forward(batch.inputs.unsqueeze(2))).mean(1);
      auto output = head(features);
      auto loss = torch::zeros({}, torch::kDouble);
      for (int64_t i = 0; i < output.size(0); ++i)
        loss = loss + (output[i] - batch.targets[i]).pow(2).sum() / output.size(0);
      loss = loss + (batch.weights * (output - batch.targets).abs().squeeze(1)).sum();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      running += loss.item<double>();
    }
    double error = 0;
    {
      torch::NoGradGuard no_grad;
      for (auto& examples : *test) {
        Padded batch = collate(examples);
        auto output = head(std::get<0>(gru->forward(batch.inputs.unsqueeze(2))).mean(1));
        error += torch::mse_loss(output, batch.targets).item<double>();
      }
    }
    std::printf("epoch %d: loss %.9f, error %.9f\n", epoch, running, error);
  }
  torch::save(head, "head.pt");
}
