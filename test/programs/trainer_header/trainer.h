#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "data.h"

struct NetImpl : torch::nn::Module {
  NetImpl();
  torch::Tensor forward(torch::Tensor x);

  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear output{nullptr};
};
TORCH_MODULE(Net);

// Trains and tests a Net on the device that it is given.
class Trainer {
 public:
  Trainer(torch::Device& device, double learning_rate);

  void train(int64_t epoch, Loader& loader);
  void test(Loader& loader);
  void save(const char* path);

 private:
  torch::Device device_;
  Net net_;
  torch::optim::Adam optimizer_;
};
