// An agent walks along a line to a goal. It learns from a buffer of what it has seen, towards the
// values of a slower network that is copied through a stream.
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <random>
#include <sstream>
#include <vector>

constexpr int64_t kCells = 8, kBatch = 24;

struct Transition {
  int64_t from, action, to;
  double reward;
  bool done;
};

struct ValuesImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& cells) {
    return second(torch::tanh(first(torch::one_hot(cells, kCells).to(torch::kDouble))));
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(kCells, 16))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(16, 2))};
};
TORCH_MODULE(Values);

void copy(Values& from, Values& to) {
  std::stringstream stream;
  torch::save(from, stream);
  torch::load(to, stream);
}

int main() {
  torch::manual_seed(131);
  std::mt19937 engine(132);
  Values values, target;
  values->to(torch::kDouble);
  target->to(torch::kDouble);
  copy(values, target);
  torch::optim::Adam optimizer(values->parameters(), torch::optim::AdamOptions(5e-3));

  std::deque<Transition> memory;
  std::uniform_real_distribution<double> uniform(0, 1);
  int64_t updates = 0;
  for (int episode = 1; episode <= 12; ++episode) {
    int64_t cell = 0, steps = 0;
    double sum = 0;
    for (; steps < 40; ++steps) {
      int64_t action;
      if (uniform(engine) < 0.3) {
        action = uniform(engine) < 0.5 ? 0 : 1;
      } else {
        torch::NoGradGuard no_grad;
        action = values->forward(torch::full({1}, cell, torch::kLong)).argmax(1).item<int64_t>();
      }
      const int64_t next =
          std::min(std::max<int64_t>(cell + (action == 1 ? 1 : -1), 0), kCells - 1);
      const bool done = next == kCells - 1;
      memory.push_back({cell, action, next, done ? 1.0 : -0.05, done});
      if (memory.size() > 200) memory.pop_front();
      cell = next;

      if (memory.size() >= kBatch) {
        std::uniform_int_distribution<size_t> pick(0, memory.size() - 1);
        std::vector<int64_t> from, actions, to;
        std::vector<double> rewards, going_on;
        for (int64_t i = 0; i < kBatch; ++i) {
          const Transition& transition = memory[pick(engine)];
          from.push_back(transition.from);
          actions.push_back(transition.action);
          to.push_back(transition.to);
          rewards.push_back(transition.reward);
          going_on.push_back(transition.done ? 0 : 1);
        }
        auto expected = torch::tensor(rewards, torch::kDouble) +
                        0.9 * std::get<0>(target->forward(torch::tensor(to)).max(1)) *
                            torch::tensor(going_on, torch::kDouble);
        auto chosen = values->forward(torch::tensor(from))
                          .gather(1, torch::tensor(actions).unsqueeze(1))
                          .squeeze(1);
        auto loss = torch::smooth_l1_loss(chosen, expected.detach());
        optimizer.zero_grad();
        loss.backward();
        optimizer.step();
        sum += loss.item<double>();
        if (++updates % 20 == 0) copy(values, target);
      }
      if (done) break;
    }
    std::printf("episode %d: %d steps, loss %.9f\n", episode, static_cast<int>(steps), sum);
  }
  torch::save(values, "values.pt");
}
