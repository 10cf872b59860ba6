#include <torch/torch.h>
#include <cstdio>
int main() {
  torch::manual_seed(9);
  const int T = 12;
  auto data = torch::randn({61, 2});
  torch::nn::Linear net(2, 2);
  torch::optim::SGD opt(net->parameters(), 0.01);
  for (int e = 0; e < 3; ++e) {
    auto perm = torch::randperm(data.size(0));
    double tot = 0; int64_t seen = 0;
    for (const auto& idx : perm.split(8)) {
      auto x = data.index_select(0, idx);
      auto eps = torch::randn_like(x);
      auto loss = (net->forward(x + eps) - eps).pow(2).mean();
      opt.zero_grad();
      loss.backward();
      opt.step();
      tot += loss.item<double>() * x.size(0); seen += x.size(0);
    }
    std::printf("epoch %d loss %.10f\n", e, tot / seen);
  }
}
