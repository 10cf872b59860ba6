// A generator learns to draw points on a ring, a discriminator to tell them from real ones: two
// backward passes for the discriminator, one for the generator, and noise for each batch.
#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

constexpr int64_t kNoise = 4, kBatch = 20;
constexpr int kEpochs = 3, kLogInterval = 2;

class Ring : public torch::data::datasets::Dataset<Ring> {
 public:
  explicit Ring(int64_t count) {
    auto angle = torch::rand({count}, torch::kDouble) * (2 * M_PI);
    points_ = torch::stack({torch::cos(angle), torch::sin(angle)}, 1);
  }
  torch::data::Example<> get(size_t index) override {
    return {points_[index], torch::ones({1}, torch::kDouble)};
  }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_;
};

struct GeneratorImpl : torch::nn::Module {
  GeneratorImpl() : first(kNoise, 16), second(16, 2) {
    register_module("first", first);
    register_module("second", second);
  }
  torch::Tensor forward(torch::Tensor noise) { return second(torch::tanh(first(noise))); }
  torch::nn::Linear first, second;
};
TORCH_MODULE(Generator);

int main() {
  torch::manual_seed(1);
  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) device = torch::Device(torch::kCUDA);

  Generator generator;
  generator->to(device);
  generator->to(torch::kFloat64);
  torch::nn::Sequential discriminator(torch::nn::Linear(2, 16), torch::nn::Tanh(),
                                      torch::nn::Linear(16, 1), torch::nn::Sigmoid());
  discriminator->to(device);
  discriminator->to(torch::kFloat64);

  auto dataset = Ring(110).map(torch::data::transforms::Stack<>());
  const int64_t batches_per_epoch = std::ceil(dataset.size().value() / static_cast<double>(kBatch));
  auto data_loader = torch::data::make_data_loader(std::move(dataset), kBatch);

  torch::optim::Adam generator_optimizer(
      generator->parameters(), torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.9)));
  torch::optim::Adam discriminator_optimizer(
      discriminator->parameters(),
      torch::optim::AdamOptions(5e-3).betas(std::make_tuple(0.5, 0.9)));

  int64_t checkpoint_counter = 1;
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    int64_t batch_index = 0;
    for (const auto& batch : *data_loader) {
      // Train the discriminator with real points.
      discriminator->zero_grad();
      auto real_points = batch.data.to(device);
      auto real_labels =
          torch::empty({batch.data.size(0), 1}, real_points.options()).uniform_(0.8, 1.0);
      auto real_output = discriminator->forward(real_points);
      auto d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
      d_loss_real.backward();

      // Train the discriminator with generated points.
      auto noise = torch::randn({batch.data.size(0), kNoise}, real_points.options());
      auto fake_points = generator->forward(noise);
      auto fake_labels = torch::zeros({batch.data.size(0), 1}, real_points.options());
      auto fake_output = discriminator->forward(fake_points.detach());
      auto d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
      d_loss_fake.backward();

      auto d_loss = d_loss_real + d_loss_fake;
      discriminator_optimizer.step();

      // Train the generator.
      generator->zero_grad();
      fake_labels.fill_(1);
      fake_output = discriminator->forward(fake_points);
      auto g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
      g_loss.backward();
      generator_optimizer.step();
      batch_index++;
      if (batch_index % kLogInterval == 0) {
        std::printf("[%d/%d][%d/%d] D loss: %.9f | G loss: %.9f\n", static_cast<int>(epoch),
                    kEpochs, static_cast<int>(batch_index), static_cast<int>(batches_per_epoch),
                    d_loss.item<double>(), g_loss.item<double>());
      }
    }
    torch::save(generator, "generator.pt");
    torch::save(discriminator_optimizer, "discriminator_optimizer.pt");
    auto samples =
        generator->forward(torch::randn({8, kNoise}, torch::dtype(torch::kDouble).device(device)));
    std::printf("checkpoint %d: mean radius %.9f\n", static_cast<int>(checkpoint_counter++),
                samples.norm(2, 1).mean().item<double>());
  }
}
