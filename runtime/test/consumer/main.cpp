#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <string>

int main() {
  accelerate::Accelerator accelerator;
  torch::nn::Linear model(2, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  accelerator.prepare(model, optimizer);
  accelerator.backward(model->forward(torch::ones({1, 2})).sum());
  accelerator.print("accelerate ", accelerate::version(), " on ", accelerator.num_processes());
  return accelerate::version() == std::string(ACCELERATE_VERSION) ? 0 : 1;
}
