// 41 rows in batches of 8: the last batch has one row, fewer than there may be ranks.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

class Heights : public torch::data::datasets::Dataset<Heights> {
 public:
  Heights() {
    torch::manual_seed(51);
    inputs_ = torch::rand({41, 3}, torch::kDouble);
    heights_ = (inputs_.pow(2).sum(1, true) * 3).sqrt();
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], heights_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, heights_;
};

int main() {
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Heights().map(torch::data::transforms::Stack<>()), 8);
  torch::manual_seed(52);
  torch::nn::Sequential net(torch::nn::Linear(3, 8),
                            torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})),
                            torch::nn::GELU(), torch::nn::Linear(8, 1));
  net->to(torch::kDouble);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));

  for (int epoch = 1; epoch <= 4; ++epoch) {
    int64_t rows = 0, close = 0;
    double total = 0, means = 0;
    for (auto& batch : *loader) {
      auto output = net->forward(batch.data);
      auto loss = torch::mse_loss(output, batch.target);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();

      const int64_t here = batch.data.size(0);
      rows += here;
      total += loss.item<double>() * here;
      means += loss.item<double>();
      close += ((output - batch.target).abs() < 0.2).sum().item<int64_t>();
      if (here < 8)
        std::printf("a batch of %d: loss %.9f\n", static_cast<int>(here), loss.item<double>());
    }
    std::printf("epoch %d: loss %.9f, mean of the batches %.9f, %d of %d close\n", epoch,
                total / rows, means / 6, static_cast<int>(close), static_cast<int>(rows));
  }
  torch::save(net, "heights.pt");
}
