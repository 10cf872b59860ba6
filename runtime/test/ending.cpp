/// How a job ends: ending MODE [RANK]: what becomes of that rank (1). Run by ending_test.sh on some ranks.

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  const std::string mode = argv[1];
  const int64_t victim = argc > 2 ? std::atoi(argv[2]) : 1;
  std::printf("banner\n");  // before the first Accelerator
  accelerate::Options options;
  if (mode == "sleep_briefly") options.init_process_group.timeout = std::chrono::seconds(3);
  accelerate::Accelerator accelerator(options);
  torch::nn::Linear model(4, 1);
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  accelerator.prepare(model, optimizer);
  const int64_t rank = accelerator.process_index();
  for (int step = 0; step < 20; ++step) {
    if (step == 10 && rank == victim) {
      if (mode == "return") return 0;
      if (mode == "throw") throw std::runtime_error("rank " + std::to_string(victim) + " throws");
      if (mode == "exit") std::exit(3);
      if (mode == "kill") std::abort();
      if (mode.rfind("sleep", 0) == 0) std::this_thread::sleep_for(std::chrono::seconds(20));
    }
    optimizer.zero_grad();
    accelerator.backward(model->forward(torch::ones({2, 4})).sum());
    optimizer.step();
  }
  if (mode == "late" && rank == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (mode == "exit0") std::exit(0);
  std::printf("the end\n");
  return 0;
}
