// Gradients of three batches make a step: divided by hand, clipped, with a schedule that counts
// steps. What is left at the end of an epoch makes a step as well.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <utility>

class Waves : public torch::data::datasets::Dataset<Waves> {
 public:
  explicit Waves(int64_t count) {
    torch::manual_seed(101);
    inputs_ = torch::rand({count, 2}, torch::kDouble) * 4 - 2;
    targets_ = torch::sin(inputs_.sum(1, true)) * inputs_.narrow(1, 0, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, targets_;
};

int main() {
  constexpr int kEpochs = 3, kAccumulate = 3;
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  auto dataset = Waves(98).map(torch::data::transforms::Stack<>());
  const auto batches = (dataset.size().value() + 9) / 10;
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(dataset), /*batch_size=*/10);

  torch::manual_seed(102);
  torch::nn::Sequential net(torch::nn::Linear(2, 16), torch::nn::SiLU(), torch::nn::Linear(16, 1));
  net->to(device, torch::kDouble);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/5, /*gamma=*/0.7);

  int64_t steps = 0;
  optimizer.zero_grad();
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    size_t i = 0;
    double running = 0;
    for (auto& batch : *loader) {
      auto prediction = net->forward(batch.data.to(device));
      auto loss = torch::mse_loss(prediction, batch.target.to(device)) / kAccumulate;
      loss.backward();
      running += loss.item<double>();
      if ((i + 1) % kAccumulate == 0 || i + 1 == batches) {
        const double norm = torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
        optimizer.step();
        optimizer.zero_grad();
        scheduler.step();
        ++steps;
        std::printf("step %d: loss %.9f, norm %.9f\n", static_cast<int>(steps), running, norm);
        running = 0;
      }
      ++i;
    }
    const auto& options =
        static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
    std::printf("epoch %d: learning rate %.9f\n", epoch, options.lr());
  }
  torch::save(net, "accumulation.pt");
}
