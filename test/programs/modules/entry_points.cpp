// A variational autoencoder that is never asked to `forward`: it has an encoder with two results, a
// draw, a decoder and a loss with three parts, each a member function.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <tuple>
#include <utility>

class Shapes : public torch::data::datasets::Dataset<Shapes> {
 public:
  explicit Shapes(int64_t count) {
    torch::manual_seed(81);
    shapes_ = torch::sigmoid(
        torch::randn({count, 3}, torch::kDouble).mm(torch::randn({3, 16}, torch::kDouble)));
  }
  torch::data::Example<> get(size_t index) override { return {shapes_[index], shapes_[index]}; }
  torch::optional<size_t> size() const override { return shapes_.size(0); }

 private:
  torch::Tensor shapes_;
};

struct Losses {
  torch::Tensor total, rebuilt, divergence;
};

class AutoencoderImpl : public torch::nn::Module {
 public:
  AutoencoderImpl() {
    register_module("hidden", hidden_);
    register_module("mean", mean_);
    register_module("log_variance", log_variance_);
    register_module("decode_hidden", decode_hidden_);
    register_module("output", output_);
  }

  std::tuple<torch::Tensor, torch::Tensor> encode(const torch::Tensor& x) {
    auto h = torch::relu(hidden_(x));
    return {mean_(h), log_variance_(h)};
  }

  torch::Tensor draw(const torch::Tensor& mean, const torch::Tensor& log_variance) {
    if (!is_training()) return mean;
    auto deviation = torch::exp(0.5 * log_variance);
    return mean + deviation * torch::randn_like(deviation);
  }

  torch::Tensor decode(const torch::Tensor& z) {
    return torch::sigmoid(output_(torch::relu(decode_hidden_(z))));
  }

  Losses losses(const torch::Tensor& x) {
    auto [mean, log_variance] = encode(x);
    auto rebuilt = decode(draw(mean, log_variance));
    Losses result;
    result.rebuilt = torch::binary_cross_entropy(rebuilt, x, {}, torch::Reduction::Sum);
    result.divergence = -0.5 * torch::sum(1 + log_variance - mean.pow(2) - log_variance.exp());
    result.total = (result.rebuilt + result.divergence) / x.size(0);
    return result;
  }

 private:
  torch::nn::Linear hidden_{16, 12}, mean_{12, 2}, log_variance_{12, 2}, decode_hidden_{2, 12},
      output_{12, 16};
};
TORCH_MODULE(Autoencoder);

int main() {
  torch::manual_seed(82);
  auto cuda_available = torch::cuda::is_available();
  torch::Device device(cuda_available ? torch::kCUDA : torch::kCPU);
  Autoencoder model;
  model->to(torch::kDouble);
  model->to(device);
  auto dataset = Shapes(90).map(torch::data::transforms::Stack<>());
  auto loader =
      torch::data::make_data_loader<torch::data::samplers::RandomSampler>(std::move(dataset), 20);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));

  for (int epoch = 1; epoch <= 3; ++epoch) {
    model->train();
    int index = 0;
    for (auto& batch : *loader) {
      auto x = batch.data.to(device).reshape({-1, 16});
      auto losses = model->losses(x);
      optimizer.zero_grad();
      losses.total.backward();
      optimizer.step();
      if (++index % 2 == 0) {
        std::printf("epoch %d, batch %d: rebuilt %.9f, divergence %.9f\n", epoch, index,
                    losses.rebuilt.item<double>() / x.size(0),
                    losses.divergence.item<double>() / x.size(0));
      }
    }
    model->eval();
    torch::NoGradGuard no_grad;
    auto picture = model->decode(torch::randn({4, 2}, torch::dtype(torch::kDouble).device(device)));
    std::printf("epoch %d: mean of new shapes %.9f\n", epoch, picture.mean().item<double>());
  }
  torch::save(model, "autoencoder.pt");
}
