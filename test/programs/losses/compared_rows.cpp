// Losses that compare the rows of a batch with each other: views of a row against all others, groups
// of alike rows, gains scaled by their deviation, the hardest rows, rows mixed with others. Guesses
// are kept over an epoch.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

class Points : public torch::data::datasets::Dataset<Points> {
 public:
  Points(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    points_ = torch::randn({count, 6}, torch::kDouble);
    groups_ = (points_.select(1, 0) > 0).to(torch::kLong) + (points_.select(1, 1) > 0.7).to(torch::kLong);
  }
  torch::data::Example<> get(size_t index) override { return {points_[index], groups_[index]}; }
  torch::optional<size_t> size() const override { return points_.size(0); }

 private:
  torch::Tensor points_, groups_;
};

auto batches(uint64_t seed) {  // the last one has a single row
  return torch::data::make_data_loader(Points(49, seed).map(torch::data::transforms::Stack<>()), 12);
}

torch::nn::Sequential network(uint64_t seed, int64_t outputs) {
  torch::manual_seed(seed);
  torch::nn::Sequential net(torch::nn::Linear(6, 12), torch::nn::Tanh(), torch::nn::Linear(12, outputs));
  net->to(torch::kDouble);
  return net;
}

torch::Tensor directions(const torch::Tensor& x) {
  return x / x.norm(2, 1, /*keepdim=*/true).clamp_min(1e-6);
}

// Each row's two views are each other's answer among all views of the batch.
torch::Tensor against_all(const torch::Tensor& first, const torch::Tensor& second) {
  const int64_t rows = first.size(0);
  auto z = directions(torch::cat({first, second}));
  auto scores = torch::mm(z, z.t()) / 0.5 - 1e9 * torch::eye(2 * rows, torch::kDouble);
  auto answer = torch::cat({torch::arange(rows, 2 * rows), torch::arange(0, rows)});
  return torch::nn::functional::cross_entropy(scores, answer);
}

void views() {
  auto loader = batches(1);
  auto net = network(2, 5);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int epoch = 1; epoch <= 2; ++epoch)
    for (auto& batch : *loader) {
      auto first = net->forward(batch.data + 0.1);
      auto second = net->forward(batch.data - 0.1);
      auto loss = against_all(first, second);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      std::printf("views %d: loss %.9f\n", epoch, loss.item<double>());
    }
  torch::save(net, "views.pt");
}

// Rows of a group are pulled together, beside an ordinary loss.
void groups() {
  auto loader = batches(3);
  auto net = network(4, 3);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int epoch = 1; epoch <= 2; ++epoch) {
    std::vector<torch::Tensor> guesses, truth;
    double total = 0;
    int64_t steps = 0;
    for (auto& batch : *loader) {
      auto output = net->forward(batch.data);
      auto likeness = torch::matmul(directions(output), directions(output).t());
      auto alike = batch.target.unsqueeze(1).eq(batch.target.unsqueeze(0)).to(torch::kDouble);
      auto loss = torch::cross_entropy_loss(output, batch.target) + (likeness - alike).pow(2).mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
      ++steps;
      guesses.push_back(output.argmax(1));
      truth.push_back(batch.target);
    }
    auto right = torch::cat(guesses).eq(torch::cat(truth)).sum().item<int64_t>();
    std::printf("groups %d: loss %.9f, %ld right\n", epoch, total / double(steps), long(right));
  }
  torch::save(net, "groups.pt");
}

// A step of a policy: how much better than expected, scaled within the batch.
void gains() {
  torch::manual_seed(5);
  auto states = torch::randn({60, 6}, torch::kDouble), returns = states.sum(1).sin();
  auto actions = torch::randint(0, 2, {60, 1});
  auto net = network(6, 3);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));
  for (int epoch = 1; epoch <= 2; ++epoch) {
    auto order = torch::randperm(60);
    for (int64_t at = 0; at < 60; at += 25) {
      auto rows = order.slice(0, at, std::min<int64_t>(at + 25, 60));
      auto output = net->forward(states.index_select(0, rows));
      auto value = output.select(1, 2), goal = returns.index_select(0, rows);
      auto gain = (goal - value).detach();
      gain = (gain - gain.mean()) / (gain.std() + 1e-8);
      auto chosen = torch::log_softmax(output.narrow(1, 0, 2), 1).gather(1, actions.index_select(0, rows));
      auto loss = 0.5 * torch::mse_loss(value, goal) - (chosen.squeeze(1) * gain).mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      std::printf("gains %d: loss %.9f\n", epoch, loss.item<double>());
    }
  }
  torch::save(net, "gains.pt");
}

// Rows are mixed with others of their batch; of their losses, the largest count.
void mixed() {
  auto loader = batches(7);
  auto net = network(8, 3);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int epoch = 1; epoch <= 2; ++epoch)
    for (auto& batch : *loader) {
      auto x = batch.data;
      auto y = batch.target;
      auto other = torch::randperm(x.size(0));
      auto output = net->forward(0.7 * x + 0.3 * x.index_select(0, other));
      auto options = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone);
      auto each = 0.7 * torch::nn::functional::cross_entropy(output, y, options) +
                  0.3 * torch::nn::functional::cross_entropy(output, y.index_select(0, other), options);
      auto loss = std::get<0>(each.topk((x.size(0) + 1) / 2, 0)).mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      std::printf("mixed %d: loss %.9f\n", epoch, loss.item<double>());
    }
  torch::save(net, "mixed.pt");
}

int main() {
  views();
  groups();
  gains();
  mixed();
}
