// A net with dropout. Its draws can't be the same on any number of processes; what it has learned after some steps must
// lie where it does with other seeds.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

class Bumps : public torch::data::datasets::Dataset<Bumps> {
 public:
  Bumps(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 3).to(torch::kDouble) * 1.9 + phase).view({count, 3});
    targets_ = torch::exp(-inputs_.pow(2).sum(1, true)) + 0.5 * inputs_.narrow(1, 0, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, targets_;
};

int main(int argc, char** argv) {
  torch::manual_seed(5);
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  torch::nn::Sequential net(torch::nn::Linear(3, 48), torch::nn::Tanh(), torch::nn::Dropout(0.2),
                            torch::nn::Linear(48, 1));
  net->to(device, torch::kDouble);
  torch::manual_seed(argc > 1 ? std::atoi(argv[1]) : 1);  // the weights are the same with each
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Bumps(250, 0.0).map(torch::data::transforms::Stack<>()), /*batch_size=*/16);
  auto held_out = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Bumps(60, 0.7).map(torch::data::transforms::Stack<>()), /*batch_size=*/16);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.01));

  for (int epoch = 1; epoch <= 6; ++epoch) {
    net->train();
    for (auto& batch : *loader) {
      auto loss = torch::mse_loss(net->forward(batch.data.to(device)), batch.target.to(device));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    net->eval();
    torch::NoGradGuard no_grad;
    double error = 0;
    int64_t rows = 0;
    for (auto& batch : *held_out) {
      auto wrong = net->forward(batch.data.to(device)) - batch.target.to(device);
      error += wrong.pow(2).sum().item<double>();
      rows += batch.data.size(0);
    }
    std::printf("epoch %d: error %.8f\n", epoch, error / rows);
  }
}
