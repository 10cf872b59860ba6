// A loader class of the program's own, asked for batches until there is none.
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

struct Sample {
  double inputs[3];
  int64_t label;
};

class SampleLoader {
 public:
  SampleLoader(std::vector<Sample> samples, size_t batch_size, bool shuffle)
      : samples_(std::move(samples)),
        batch_size_(batch_size),
        shuffle_(shuffle),
        order_(samples_.size()) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    reset();
  }

  bool operator()(std::tuple<torch::Tensor, torch::Tensor>& batch) {
    if (next_ >= order_.size()) {
      reset();
      return false;
    }
    const size_t end = std::min(next_ + batch_size_, order_.size());
    std::vector<torch::Tensor> inputs, labels;
    for (; next_ < end; ++next_) {
      const Sample& sample = samples_[order_[next_]];
      inputs.push_back(
          torch::tensor({sample.inputs[0], sample.inputs[1], sample.inputs[2]}, torch::kDouble));
      labels.push_back(torch::full({}, sample.label, torch::kLong));
    }
    batch = {torch::stack(inputs), torch::stack(labels)};
    return true;
  }

  void reset() {
    next_ = 0;
    if (shuffle_) std::shuffle(order_.begin(), order_.end(), engine_);
  }
  size_t size() const { return samples_.size(); }

 private:
  std::vector<Sample> samples_;
  size_t batch_size_, next_ = 0;
  bool shuffle_;
  std::vector<size_t> order_;
  std::mt19937 engine_{7};
};

std::vector<Sample> make_samples(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<Sample> samples(count);
  for (Sample& sample : samples) {
    for (double& value : sample.inputs) value = uniform(engine);
    sample.label = sample.inputs[0] * sample.inputs[1] > 0 ? 1 : 0;
  }
  return samples;
}

int main() {
  torch::manual_seed(5);
  torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;

  SampleLoader training(make_samples(90, 1), 16, true), testing(make_samples(40, 2), 16, false);
  torch::nn::Sequential model(torch::nn::Linear(3, 16), torch::nn::Tanh(),
                              torch::nn::Linear(16, 2));
  model->to(device);
  model->to(torch::kDouble);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.02));

  std::tuple<torch::Tensor, torch::Tensor> batch;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    model->train();
    double loss_sum = 0;
    while (training(batch)) {
      auto inputs = std::get<0>(batch).to(device);
      auto labels = std::get<1>(batch).to(device);
      auto loss = torch::cross_entropy_loss(model->forward(inputs), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += loss.item<double>() * inputs.size(0);
    }
    std::printf("epoch %d: loss %.9f\n", epoch, loss_sum / training.size());

    torch::NoGradGuard no_grad;
    model->eval();
    int64_t correct = 0;
    while (testing(batch)) {
      auto output = model->forward(std::get<0>(batch).to(device));
      correct += output.argmax(1).eq(std::get<1>(batch).to(device)).sum().item<int64_t>();
    }
    std::printf("  %d of %d right\n", static_cast<int>(correct), static_cast<int>(testing.size()));
  }
  torch::save(model, "signs.pt");
}
