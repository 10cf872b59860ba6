/// Ranks that a program starts itself, or a launcher for it: launching MODE FOLDER. Run by launching_test.sh and
/// launchers_test.sh.

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "toys.h"

namespace {

/// Trains, and leaves a file: what came of it has to be the same on any number of ranks.
void train(const std::string& folder) {
  accelerate::Accelerator accelerator;
  torch::manual_seed(1);
  torch::nn::Sequential model = toys::perceptron();
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  auto loader = accelerate::make_data_loader(toys::Waves(20).map(torch::data::transforms::Stack<>()), 6);
  accelerator.prepare(model, optimizer, loader);
  for (auto& batch : *loader) {
    optimizer.zero_grad();
    accelerator.backward(torch::mse_loss(model->forward(batch.data), batch.target));
    optimizer.step();
  }
  accelerator.save_model(model, folder + "/" + std::to_string(accelerator.num_processes()));
}

void fail_on_rank_1(const std::string& how) {
  accelerate::Accelerator accelerator;
  if (accelerator.process_index() == 1) {
    if (how == "throw") {
      throw std::runtime_error("rank 1 throws");
    }
    if (how == "exit") {
      std::exit(3);
    }
    std::abort();
  }
  std::this_thread::sleep_for(std::chrono::seconds(60));
}

int report(const std::function<void()>& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    std::printf("error: %s\n", error.what_without_backtrace());
    return 1;
  }
  std::printf("launched\n");
  return 0;
}

}  // namespace

int main(int, char** argv) {
  const std::string mode = argv[1], folder = argv[2];
  if (mode == "train") {
    // The one with a single rank comes last: it's this process.
    return report([&] {
      for (const int64_t ranks : {4, 3, 2, 1}) {
        accelerate::debug_launcher([&] { train(folder); }, ranks);
      }
    });
  }
  if (mode == "job") {  // under a launcher
    train(folder);
    std::printf("trained on %d\n", static_cast<int>(accelerate::Accelerator().num_processes()));
    return 0;
  }
  if (mode == "failing_job") {
    fail_on_rank_1("throw");
  }
  if (mode == "compare") {
    const auto one = accelerate::load_safetensors(folder + "/1/model.safetensors").tensors;
    for (const char* ranks : {"2", "3", "4"}) {
      const auto more = accelerate::load_safetensors(folder + "/" + ranks + "/model.safetensors").tensors;
      for (const auto& [name, x] : one) {
        if (!torch::allclose(x, more.at(name), 1e-5, 1e-6)) {
          std::printf("%s differs on %s ranks\n", name.c_str(), ranks);
          return 1;
        }
      }
    }
    return 0;
  }
  if (mode == "accelerator") {
    accelerate::Accelerator accelerator;
  }
  std::thread other;
  if (mode == "threads") {  // as OpenMP has after the first large operation
    other = std::thread([] { std::this_thread::sleep_for(std::chrono::milliseconds(500)); });
  }
  if (mode == "openmp") {
    torch::set_num_threads(2);
    torch::ones({1000, 1000}).add_(1).sum();
  }
  const int code = report([&] { accelerate::notebook_launcher([&] { fail_on_rank_1(mode); }, 4); });
  if (other.joinable()) {
    other.join();
  }
  return code;
}
