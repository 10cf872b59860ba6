/// accelerate_training_bench VARIANT MODEL: one process of `scripts/bench runtime`, which compares the variants.
///
/// VARIANT is local (plain LibTorch), accelerate (the same program migrated), reducer or per-parameter (by hand on
/// c10d). MODEL is one of models.h, or loader, or loader-2-workers, where batches are fetched and thrown away.
/// For each number N that it reads it makes N steps, and writes what they cost: nanoseconds of CPU time of the whole
/// process, nanoseconds on the clock, the last loss, and a checksum of the parameters.

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <string>

#include "by_hand.h"
#include "models.h"

namespace {

using torch::data::DataLoaderOptions;
using torch::data::transforms::Stack;

class Meter {
 public:
  /// Waits for the first command.
  explicit Meter(std::vector<torch::Tensor> parameters) : parameters_(std::move(parameters)) {
    std::cout << "ready" << std::endl;
    begin();
  }

  bool done() const { return left_ == 0; }

  /// False after the last step.
  bool stepped(const torch::Tensor& loss = {}) {
    if (--left_ > 0) {
      return true;
    }
    const long long cpu = cpu_now() - cpu_;
    const long long wall = std::chrono::nanoseconds(std::chrono::steady_clock::now() - wall_).count();
    double sum = 0;
    for (const torch::Tensor& x : parameters_) {
      sum += x.detach().sum(torch::kFloat64).item<double>();
    }
    std::printf("%lld %lld %.17g %.17g\n", cpu, wall, loss.defined() ? loss.item<double>() : 0, sum);
    std::fflush(stdout);
    begin();
    return left_ > 0;
  }

 private:
  static long long cpu_now() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
  }

  void begin() {
    if (!(std::cin >> left_)) {
      left_ = 0;
    }
    wall_ = std::chrono::steady_clock::now();
    cpu_ = cpu_now();
  }

  std::vector<torch::Tensor> parameters_;
  long long left_ = 0;
  long long cpu_ = 0;
  std::chrono::steady_clock::time_point wall_;
};

template <typename Loader, typename Backward>
void train(torch::nn::Sequential& model, torch::optim::Optimizer& optimizer, Loader& loader, Backward backward) {
  Meter meter(model->parameters());
  while (!meter.done()) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::cross_entropy_loss(model->forward(batch.data), batch.target);
      backward(loss);
      optimizer.step();
      if (!meter.stepped(loss)) {
        return;
      }
    }
  }
}

template <typename Loader>
void fetch(Loader& loader) {
  Meter meter({});
  while (!meter.done()) {
    for (auto& batch : *loader) {
      (void)batch;
      if (!meter.stepped()) {
        return;
      }
    }
  }
}

/// Another order in each epoch, as all other variants have it: with the same half of the rows each time, a rank would
/// find them in its cache.
class Reshuffled : public torch::data::samplers::DistributedRandomSampler {
 public:
  using DistributedRandomSampler::DistributedRandomSampler;
  void reset(std::optional<size_t> new_size = std::nullopt) override {
    set_epoch(epoch() + 1);
    DistributedRandomSampler::reset(new_size);
  }
};

void run(const std::string& variant, const std::string& name) {
  torch::manual_seed(1);
  if (name == "loader" || name == "loader-2-workers") {
    const auto options = DataLoaderOptions(32).workers(name == "loader" ? 0 : 2);
    if (variant == "local") {
      auto loader = torch::data::make_data_loader(bench::Nothing(), options);
      fetch(loader);
    } else {
      auto loader = accelerate::make_data_loader(bench::Nothing(), options);
      fetch(loader);
    }
    return;
  }
  bench::Workload workload = bench::make_workload(name);
  torch::nn::Sequential& model = workload.model;
  auto data = bench::Rows(workload).map(Stack<>());
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1e-4).momentum(0.9));
  const auto batch = static_cast<size_t>(workload.batch);
  if (variant == "local") {
    auto loader = torch::data::make_data_loader(std::move(data), batch);
    train(model, optimizer, loader, [](const torch::Tensor& loss) { loss.backward(); });
  } else if (variant == "accelerate") {
    accelerate::Accelerator accelerator;
    model->to(accelerator.device());
    auto loader = accelerate::make_data_loader(std::move(data), batch);
    accelerator.prepare(model, optimizer, loader);
    train(model, optimizer, loader, [&](const torch::Tensor& loss) { accelerator.backward(loss); });
  } else if (variant == "reducer" || variant == "per-parameter") {
    const auto ranks = static_cast<size_t>(bench::by_hand::ranks());
    Reshuffled sampler(*data.size(), ranks, static_cast<size_t>(bench::by_hand::rank()));
    auto loader = torch::data::make_data_loader(std::move(data), std::move(sampler), batch / ranks);
    train(model, optimizer, loader,
          variant == "reducer" ? bench::by_hand::reducer(model->parameters())
                               : bench::by_hand::per_parameter(model->parameters()));
  } else {
    TORCH_CHECK(false, "there is no variant \"", variant, "\"");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: accelerate_training_bench VARIANT MODEL\n";
    return 2;
  }
  try {
    run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "accelerate_training_bench: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
