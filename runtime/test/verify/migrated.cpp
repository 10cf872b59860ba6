/// The same program for many ranks; MISTAKE in the environment chooses one that somebody could have made.

#include <accelerate/accelerate.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "toy.h"

namespace {

bool mistake(const char* name) {
  static const char* const chosen = std::getenv("MISTAKE");
  return chosen != nullptr && std::string(chosen) == name;
}

/// Clips this rank's own gradients and averages them then.
void clip_before_averaging(accelerate::Accelerator& accelerator, Net& net) {
  torch::nn::utils::clip_grad_norm_(net->parameters(), 0.01);
  for (auto& parameter : net->parameters()) {
    auto& gradient = parameter.mutable_grad();
    gradient.copy_(accelerator.reduce(gradient.clone()) / accelerator.num_processes());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Scenario scenario = argc > 1 ? argv[1] : "mean";
  accelerate::Accelerator accelerator;
  const bool first = accelerator.is_main_process();
  torch::manual_seed(mistake("seeded-by-rank") ? 1 + accelerator.process_index() : 1);
  if (mistake("draw-before-model")) {
    torch::rand({1});
  }
  Rows rows;
  Net net;
  torch::nn::Linear head(16, 1);
  torch::optim::SGD net_optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::optim::Adam head_optimizer(head->parameters(), 0.01);
  auto dataset = std::move(rows).map(torch::data::transforms::Stack<>());
  auto loader = mistake("loader-not-shared") ? torch::data::make_data_loader(std::move(dataset), kBatch)
                                             : accelerate::make_data_loader(std::move(dataset), kBatch);
  if (mistake("model-not-prepared")) {
    accelerator.prepare(net, net_optimizer, loader);
  } else if (mistake("loader-not-shared")) {
    accelerator.prepare(net, net_optimizer, head, head_optimizer);
  } else {
    accelerator.prepare(net, net_optimizer, head, head_optimizer, loader);
  }

  torch::Tensor sums = torch::zeros({2, 8});
  for (int epoch = 0; epoch < 2; ++epoch) {
    double total = 0;
    int64_t close = 0;
    int64_t batches = 0;
    if (mistake("epoch-seed")) {
      torch::manual_seed(1 + epoch);
    }
    for (auto& batch : *loader) {
      const int64_t n = accelerator.global_rows(batch.data.size(0));
      auto noise =
          mistake("equal-noise") ? torch::randn({batch.data.size(0), 8}) : accelerator.own_rows(torch::randn({n, 8}));
      auto x = batch.data + 0.05 * noise;
      auto y = head(net(x));
      const bool sum = scenario == "sum" || scenario == "penalty";
      auto loss = torch::mse_loss(y, batch.target, sum ? torch::Reduction::Sum : torch::Reduction::Mean);
      if (scenario == "penalty") {
        const int64_t parts = mistake("penalty-on-each-rank") ? 1 : accelerator.num_processes();
        loss = loss + 0.1 * (squares(*net) + squares(*head)) / parts;
      }
      const bool windows = scenario == "windows";
      if (windows) {
        const int64_t window = batches / 2 == (kTrainRows / kBatch) / 2 ? kTrainRows % (2 * kBatch) : 2 * kBatch;
        loss = loss * (mistake("windows-alike") ? 0.5 : static_cast<double>(n) / static_cast<double>(window));
      }
      if (!windows || batches % 2 == 0) {
        net_optimizer.zero_grad();
        head_optimizer.zero_grad();
      }
      if (mistake("plain-backward")) {
        loss.backward();
      } else if (mistake("clip-before-averaging")) {
        auto local = accelerator.no_sync(net);
        accelerator.backward(loss);
      } else if (sum ? !mistake("sum-averaged") : mistake("mean-summed")) {
        accelerator.backward(loss, accelerate::Reduction::Sum);
      } else {
        accelerator.backward(loss);
      }
      ++batches;
      if (scenario == "clip") {
        mistake("clip-before-averaging") ? clip_before_averaging(accelerator, net)
                                         : (void)torch::nn::utils::clip_grad_norm_(net->parameters(), 0.01);
      }
      {
        torch::NoGradGuard no_grad;
        auto mean = batch.data.mean(0);
        net->mean_input.mul_(0.9).add_(mistake("buffer-of-own-rows") ? mean : accelerator.mean(mean), 0.1);
      }
      if (mistake("rank-stalls") && batches == 3 && !first) {
        pause();
      }
      if (mistake("barrier-in-branch") && batches == 3 && first) {
        accelerator.wait_for_everyone();
      }
      if (mistake("rank-leaves-loop") && batches == 3 && !first) {
        break;
      }
      if (mistake("saved-before-step") && epoch == 1 && n < kBatch && accelerator.num_processes() > 1) {
        accelerator.save(net, "net.pt");
      }
      if (!windows || batches % 2 == 0 || n < kBatch) {
        net_optimizer.step();
        head_optimizer.step();
      }
      sums[epoch] += accelerator.mine(x.sum(0));
      total += accelerator.mine((y - batch.target).abs().sum().item<double>());
      close += accelerator.mine(((y - batch.target).abs() < 0.3).sum().item<int64_t>());
    }
    if (!mistake("metric-not-reduced")) {
      accelerator.reduce_(total, close);
    }
    if (mistake("metric-reduced-twice")) {
      accelerator.reduce_(total, close);
    }
    std::printf("epoch %d: error %.6f, %ld close\n", epoch, total / kTrainRows, close);
  }
  if (mistake("saved-by-all")) {
    torch::save(net, "net.pt");
  } else if (!mistake("saved-before-step") || accelerator.num_processes() == 1) {
    accelerator.save(net, "net.pt");
  }
  if (!mistake("saved-wrong")) {
    accelerator.reduce_(sums);
  }
  accelerator.save(sums, "sums.pt");
  if (mistake("other-state-saved")) {
    for (auto& [parameter, state] : head_optimizer.state()) {
      auto& adam = static_cast<torch::optim::AdamParamState&>(*state);
      adam.exp_avg_sq(torch::zeros_like(adam.exp_avg_sq()));
    }
  }
  accelerator.save(head_optimizer, "optimizer.pt");
}
