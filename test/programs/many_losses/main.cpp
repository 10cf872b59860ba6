// Trains several small models, each with a loss and a loop of its own: a sum over rows, a mean by hand,
// a weight penalty, two models against each other, gradients of several batches, a target network.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

class Curve : public torch::data::datasets::Dataset<Curve> {
 public:
  Curve(int64_t count, uint64_t seed) {
    torch::manual_seed(seed);
    inputs_ = torch::randn({count, 4});
    targets_ = torch::sin(inputs_.sum(1, true)) + 0.5 * inputs_.narrow(1, 0, 1);
  }
  torch::data::Example<> get(size_t index) override {
    return {inputs_[index], targets_[index]};
  }
  torch::optional<size_t> size() const override { return inputs_.size(0); }

 private:
  torch::Tensor inputs_, targets_;
};

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(4, 8))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(8, 1))};
};
TORCH_MODULE(Net);

auto stacked(int64_t count, uint64_t seed) {
  return Curve(count, seed).map(torch::data::transforms::Stack<>());
}

void print_size(const char* name, const std::vector<torch::Tensor>& parameters) {
  double sum = 0, squares = 0;
  for (const auto& parameter : parameters) {
    sum += parameter.sum().item<double>();
    squares += parameter.pow(2).sum().item<double>();
  }
  std::printf("%s: weights %.6f, squared %.6f\n", name, sum, squares);
}

// The loss is a sum over the rows, the best epoch is kept in a file and read again.
void sum_over_rows() {
  auto loader = torch::data::make_data_loader(stacked(61, 1), 12);
  Net net;
  torch::optim::SGD optimizer(net->parameters(), 0.002);
  double best = std::numeric_limits<double>::infinity();
  for (int epoch = 0; epoch < 3; ++epoch) {
    double total = 0;
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::nn::functional::mse_loss(
          net(batch.data), batch.target,
          torch::nn::functional::MSELossFuncOptions(torch::kSum));
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
    }
    if (total < best) {
      best = total;
      torch::save(net, "sum.pt");
    }
    std::cout << "total loss " << std::fixed << std::setprecision(6) << total << std::endl;
  }
  Net again;
  torch::load(again, "sum.pt");
  print_size("sum over rows", again->parameters());
}

torch::Tensor mean_by_hand(const torch::Tensor& output, const torch::Tensor& target) {
  auto difference = output - target;
  return (difference * difference).sum() / output.size(0);
}

// A mean written as a sum and a division; the extremes of the losses are followed.
void extremes() {
  auto loader = torch::data::make_data_loader(stacked(61, 1), 12);
  Net net;
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  float lowest = std::numeric_limits<float>::max(), highest = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = mean_by_hand(net->forward(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      const float value = loss.item<float>();
      lowest = std::min(lowest, value);
      if (value > highest) highest = value;
    }
  }
  std::printf("lowest loss %.6f, highest loss %.6f\n", lowest, highest);
  print_size("extremes", net->parameters());
}

// A penalty on the weights beside the error; good batches are skipped.
void penalty() {
  auto loader = torch::data::make_data_loader(stacked(61, 1), 12);
  Net net;
  torch::optim::Adam optimizer(net->parameters(), 0.01);
  int skipped = 0;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto fit = torch::mse_loss(net(batch.data), batch.target);
      if (fit.item<float>() < 0.5) {
        ++skipped;
        continue;
      }
      auto weights = torch::zeros({});
      for (const auto& parameter : net->parameters()) {
        weights = weights + parameter.pow(2).sum();
      }
      auto loss = fit + 0.01 * weights;
      loss.backward();
      optimizer.step();
      std::printf("fit %.6f, penalty %.6f, loss %.6f\n", fit.item<double>(),
                  weights.item<double>(), loss.item<double>());
    }
  }
  std::printf("skipped %d\n", skipped);
  torch::save(net, "penalty.pt");
}

// Gradients of four batches make a step.
void several_batches() {
  const int every = 4;
  auto loader = torch::data::make_data_loader(stacked(101, 1), 10);
  Net net;
  torch::optim::Adam optimizer(net->parameters(), 0.01);
  for (int epoch = 0; epoch < 2; ++epoch) {
    int index = 0;
    double window = 0;
    optimizer.zero_grad();
    for (auto& batch : *loader) {
      auto loss = torch::mse_loss(net(batch.data), batch.target) / every;
      loss.backward();
      window += loss.item<double>();
      if ((index + 1) % every == 0) {
        torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
        optimizer.step();
        optimizer.zero_grad();
        std::printf("batch %d: loss %.6f\n", index, window);
        window = 0;
      }
      ++index;
    }
  }
  print_size("several batches", net->parameters());
}

// A generator and a discriminator, each with its optimizer.
void two_models() {
  auto loader = torch::data::make_data_loader(stacked(53, 1), 13);
  torch::nn::Sequential generator(torch::nn::Linear(4, 6), torch::nn::Tanh(),
                                  torch::nn::Linear(6, 1));
  torch::nn::Sequential discriminator(torch::nn::Linear(1, 6), torch::nn::Tanh(),
                                      torch::nn::Linear(6, 1), torch::nn::Sigmoid());
  auto options = torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.9));
  torch::optim::Adam generator_optimizer(generator->parameters(), options);
  torch::optim::Adam discriminator_optimizer(discriminator->parameters(), options);
  for (int epoch = 1; epoch <= 3; ++epoch) {
    int index = 0;
    for (torch::data::Example<>& batch : *loader) {
      discriminator->zero_grad();
      auto labels = torch::empty(batch.data.size(0)).fill_(0.9).unsqueeze(1);
      auto real_loss = torch::binary_cross_entropy(discriminator->forward(batch.target), labels);
      real_loss.backward();
      auto fake = generator->forward(batch.data);
      auto fake_loss = torch::binary_cross_entropy(discriminator->forward(fake.detach()),
                                                   torch::zeros({batch.data.size(0), 1}));
      fake_loss.backward();
      auto discriminator_loss = real_loss + fake_loss;
      discriminator_optimizer.step();

      generator->zero_grad();
      labels.fill_(1);
      auto generator_loss = torch::binary_cross_entropy(discriminator->forward(fake), labels);
      generator_loss.backward();
      generator_optimizer.step();
      if (index++ % 2 == 0) {
        std::printf("[%d] D loss %.6f, G loss %.6f\n", epoch, discriminator_loss.item<float>(),
                    generator_loss.item<float>());
      }
    }
  }
  torch::save(generator, "generator.pt");
  torch::save(discriminator, "discriminator.pt");
}

// Batches arrive as lists of examples; a slow copy of the network takes part in the target.
void slow_copy() {
  auto loader = torch::data::make_data_loader(Curve(61, 1), 12);
  Net net, slow;
  {
    torch::NoGradGuard no_grad;
    auto from = net->parameters(), to = slow->parameters();
    for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  }
  torch::optim::SGD optimizer(net->parameters(), 0.05);
  auto train = [&](const torch::Tensor& x, const torch::Tensor& y) {
    auto loss = torch::smooth_l1_loss(net(x), y + 0.1 * slow(x).detach());
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.item<double>();
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& examples : *loader) {
      std::vector<torch::Tensor> inputs, targets;
      for (auto& example : examples) {
        inputs.push_back(example.data);
        targets.push_back(example.target);
      }
      const double loss = train(torch::stack(inputs), torch::stack(targets));
      std::printf("loss %.6f\n", loss);

      torch::NoGradGuard no_grad;
      auto from = net->parameters(), to = slow->parameters();
      for (size_t i = 0; i < from.size(); ++i) to[i].mul_(0.9).add_(from[i], 0.1);
    }
  }
  torch::save(slow, "slow.pt");
}

template <typename Optimizer>
void smoothed(double learning_rate) {
  auto loader = torch::data::make_data_loader(stacked(61, 1), 12);
  auto net = std::make_shared<NetImpl>();
  Optimizer optimizer(net->parameters(), learning_rate);
  double smooth = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *loader) {
      auto loss = torch::log(torch::cosh(net->forward(batch.data) - batch.target)).mean();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      smooth = 0.9 * smooth + 0.1 * loss.template item<double>();
    }
    std::printf("smoothed loss %.6f\n", smooth);
  }
  print_size("smoothed", net->parameters());
}

int main() {
  sum_over_rows();
  extremes();
  penalty();
  several_batches();
  two_models();
  slow_copy();
  smoothed<torch::optim::SGD>(0.05);
  smoothed<torch::optim::AdamW>(0.01);
}
