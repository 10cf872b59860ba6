// Finds the corner that a bright spot is nearest to: a trainer in a header and a source, the device
// by reference.
#include <iostream>

#include "data.h"
#include "trainer.h"

torch::Device choose_device() {
  if (torch::cuda::is_available()) {
    std::cout << "training on the GPU" << std::endl;
    return torch::Device(torch::kCUDA);
  }
  std::cout << "training on the CPU" << std::endl;
  return torch::Device(torch::kCPU);
}

int main() {
  auto training = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Spots(100, 1).map(torch::data::transforms::Stack<>()), 16);
  auto testing = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Spots(39, 2).map(torch::data::transforms::Stack<>()), 16);

  torch::Device device = choose_device();
  torch::manual_seed(3);
  Trainer trainer(device, 0.01);
  for (int64_t epoch = 1; epoch <= 3; ++epoch) {
    trainer.train(epoch, *training);
    trainer.test(*testing);
  }
  trainer.save("spots.pt");
}
