#include "trainer.h"

#include <cstdio>

NetImpl::NetImpl() {
  conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 3).padding(1)));
  output = register_module("output", torch::nn::Linear(4 * 4 * 4, 4));
}

torch::Tensor NetImpl::forward(torch::Tensor x) {
  x = torch::avg_pool2d(torch::tanh(conv(x)), 2);
  return torch::log_softmax(output(x.view({x.size(0), -1})), 1);
}

Trainer::Trainer(torch::Device& device, double learning_rate)
    : device_(device), optimizer_(net_->parameters(), torch::optim::AdamOptions(learning_rate)) {
  net_->to(device_);
  net_->to(torch::kDouble);
}

void Trainer::train(int64_t epoch, Loader& loader) {
  net_->train();
  double total = 0;
  int64_t seen = 0, correct = 0;
  for (auto& batch : loader) {
    auto images = batch.data.to(device_), labels = batch.target.to(device_);
    optimizer_.zero_grad();
    auto output = net_->forward(images);
    auto loss = torch::nll_loss(output, labels);
    loss.backward();
    optimizer_.step();

    total += loss.item<double>() * images.size(0);
    correct += output.argmax(1).eq(labels).sum().item<int64_t>();
    seen += images.size(0);
  }
  std::printf("epoch %d: loss %.9f, %d of %d right\n", static_cast<int>(epoch), total / seen,
              static_cast<int>(correct), static_cast<int>(seen));
}

void Trainer::test(Loader& loader) {
  torch::NoGradGuard no_grad;
  net_->eval();
  double total = 0;
  int64_t seen = 0;
  for (auto& batch : loader) {
    auto output = net_->forward(batch.data.to(device_));
    total +=
        torch::nll_loss(output, batch.target.to(device_), {}, torch::Reduction::Sum).item<double>();
    seen += batch.data.size(0);
  }
  std::printf("  test loss %.9f\n", total / seen);
}

void Trainer::save(const char* path) { torch::save(net_, path); }
