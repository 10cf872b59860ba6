// An encoder and a decoder share an optimizer: their parameters are concatenated. A table of
// offsets that belongs to no module is trained along in a group of its own.
#include <torch/torch.h>

#include <cstdint>
#include <iomanip>
#include <iostream>
#include <utility>
#include <vector>

class Shapes : public torch::data::datasets::Dataset<Shapes> {
 public:
  explicit Shapes(int64_t count) {
    torch::manual_seed(61);
    auto code = torch::randn({count, 2}, torch::kDouble);
    shapes_ = torch::tanh(code.mm(torch::randn({2, 10}, torch::kDouble)));
  }
  torch::data::Example<> get(size_t index) override { return {shapes_[index], shapes_[index]}; }
  torch::optional<size_t> size() const override { return shapes_.size(0); }

 private:
  torch::Tensor shapes_;
};

int main() {
  torch::DeviceType device_type;
  if (torch::cuda::is_available()) {
    device_type = torch::kCUDA;
  } else {
    device_type = torch::kCPU;
  }
  torch::Device device(device_type);

  auto loader =
      torch::data::make_data_loader(Shapes(83).map(torch::data::transforms::Stack<>()), 16);
  torch::manual_seed(62);
  torch::nn::Sequential encoder(torch::nn::Linear(10, 8), torch::nn::Tanh(),
                                torch::nn::Linear(8, 2));
  auto decoder =
      torch::nn::Sequential(torch::nn::Linear(2, 8), torch::nn::Tanh(), torch::nn::Linear(8, 10));
  encoder->to(device, torch::kDouble);
  decoder->to(device, torch::kDouble);
  auto offset = torch::zeros({10}, torch::dtype(torch::kDouble).device(device).requires_grad(true));

  std::vector<torch::Tensor> parameters = encoder->parameters();
  const auto more = decoder->parameters();
  parameters.insert(parameters.end(), more.begin(), more.end());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(parameters);
  groups.emplace_back(std::vector<torch::Tensor>{offset},
                      std::make_unique<torch::optim::AdamOptions>(torch::optim::AdamOptions(0.05)));
  torch::optim::Adam optimizer(groups, torch::optim::AdamOptions(0.01));

  std::cout << std::fixed << std::setprecision(9);
  for (int epoch = 0; epoch != 4; ++epoch) {
    double running = 0;
    size_t batches = 0;
    for (auto& batch : *loader) {
      auto input = batch.data.to(device);
      auto restored = decoder->forward(encoder->forward(input)) + offset;
      auto loss = torch::nn::functional::mse_loss(restored, input);
      optimizer.zero_grad();
      loss.backward();
      torch::nn::utils::clip_grad_norm_(parameters, 0.5);
      optimizer.step();
      running += loss.item<double>();
      ++batches;
    }
    std::cout << "epoch " << epoch << ": loss " << running / batches << ", offset "
              << offset.abs().sum().item<double>() << "\n";
  }
  torch::save(encoder, "encoder.pt");
  torch::save(decoder, "decoder.pt");
}
