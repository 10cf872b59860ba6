/// A program for one device, as somebody would write it.

#include <cstdio>

#include "toy.h"

int main(int argc, char** argv) {
  const Scenario scenario = argc > 1 ? argv[1] : "mean";
  torch::manual_seed(1);
  Rows rows;
  Net net;
  torch::nn::Linear head(16, 1);
  torch::optim::SGD net_optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::optim::Adam head_optimizer(head->parameters(), 0.01);
  auto loader = torch::data::make_data_loader(std::move(rows).map(torch::data::transforms::Stack<>()), kBatch);

  torch::Tensor sums = torch::zeros({2, 8});  // of what the epochs have seen
  for (int epoch = 0; epoch < 2; ++epoch) {
    double total = 0;
    int64_t close = 0;
    int64_t batches = 0;
    for (auto& batch : *loader) {
      const int64_t n = batch.data.size(0);
      auto x = batch.data + 0.05 * torch::randn({n, 8});
      auto y = head(net(x));
      auto loss = torch::mse_loss(
          y, batch.target, scenario == "sum" || scenario == "penalty" ? torch::Reduction::Sum : torch::Reduction::Mean);
      if (scenario == "penalty") {
        loss = loss + 0.1 * (squares(*net) + squares(*head));
      }
      const bool windows = scenario == "windows";  // of two batches, the last one shorter
      if (windows) {
        const int64_t window = batches / 2 == (kTrainRows / kBatch) / 2 ? kTrainRows % (2 * kBatch) : 2 * kBatch;
        loss = loss * (static_cast<double>(n) / static_cast<double>(window));
      }
      if (!windows || batches % 2 == 0) {
        net_optimizer.zero_grad();
        head_optimizer.zero_grad();
      }
      loss.backward();
      ++batches;
      if (scenario == "clip") {
        torch::nn::utils::clip_grad_norm_(net->parameters(), 0.01);
      }
      {
        torch::NoGradGuard no_grad;
        net->mean_input.mul_(0.9).add_(batch.data.mean(0), 0.1);
      }
      if (!windows || batches % 2 == 0 || n < kBatch) {
        net_optimizer.step();
        head_optimizer.step();
      }
      sums[epoch] += x.sum(0);
      total += (y - batch.target).abs().sum().item<double>();
      close += ((y - batch.target).abs() < 0.3).sum().item<int64_t>();
    }
    std::printf("epoch %d: error %.6f, %ld close\n", epoch, total / kTrainRows, close);
  }
  torch::save(net, "net.pt");
  torch::save(sums, "sums.pt");
  torch::save(head_optimizer, "optimizer.pt");
}
