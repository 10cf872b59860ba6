#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// Rows of four numbers, and a number for each.
class Curve : public torch::data::datasets::Dataset<Curve> {
 public:
  Curve(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 4).to(torch::kDouble) * 1.7 + phase).view({count, 4});
    targets_ = torch::cos(inputs_.sum(1, true)) + 0.5 * inputs_.narrow(1, 0, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return targets_; }

 private:
  torch::Tensor inputs_, targets_;
};

// The same rows, each of one of three classes.
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  Points(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 4).to(torch::kDouble) * 1.3 + phase).view({count, 4});
    auto score = inputs_.select(1, 0) + 0.5 * inputs_.select(1, 1);
    labels_ = (score > -0.4).to(torch::kLong) + (score > 0.5).to(torch::kLong);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], labels_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return labels_; }

 private:
  torch::Tensor inputs_, labels_;
};

// The same rows with a number for each, and whether it counts.
class Gaps : public torch::data::datasets::Dataset<Gaps> {
 public:
  Gaps(int64_t count, double phase) {
    inputs_ = torch::sin(torch::arange(count * 4).to(torch::kDouble) * 1.1 + phase).view({count, 4});
    auto counts = (torch::arange(count).remainder(3) != 1).to(torch::kDouble);
    targets_ = torch::stack({torch::cos(inputs_.sum(1)), counts}, 1);
  }
  torch::data::Example<> get(size_t index) override { return {inputs_[index], targets_[index]}; }
  torch::optional<size_t> size() const override { return inputs_.size(0); }
  torch::Tensor inputs() const { return inputs_; }
  torch::Tensor targets() const { return targets_; }

 private:
  torch::Tensor inputs_, targets_;
};

void report(const std::string& what, double value) {
  std::cout << what << " " << std::fixed << std::setprecision(10) << value << std::endl;
}

template <typename... Values>
void say(const Values&... values) {
  (std::cout << ... << values) << "\n";
}

double weight_sum(const std::vector<torch::Tensor>& parameters) {
  double sum = 0;
  for (const auto& parameter : parameters) {
    sum += (parameter * torch::cos(parameter)).sum().item<double>();
  }
  return sum;
}

namespace case_21 {

void run() {
  auto loader_x = Points(12, 0.5).inputs(), loader_y = Points(12, 0.5).targets();
  std::vector<std::pair<torch::Tensor, torch::Tensor>> loader;
  for (int64_t i = 0; i < 12; i += 3) loader.push_back({loader_x.narrow(0, i, std::min<int64_t>(3, 12 - i)), loader_y.narrow(0, i, std::min<int64_t>(3, 12 - i))});
  torch::nn::Linear net(4, 3);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (size_t i = 0; i < loader.size(); ++i) {
      auto x = loader[i].first;
      auto y = loader[i].second;
      auto out = net->forward(x);
      auto loss = ((torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone))) * (y > 0)).sum() / (y > 0).sum();
      loss.backward();
    }
  }
}

}  // namespace case_21

bool chosen(int argc, char** argv, int number) {
  for (int i = 1; i < argc; ++i) {
    if (std::atoi(argv[i]) == number) return true;
  }
  return argc < 2;
}

int main(int argc, char** argv) {
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  if (chosen(argc, argv, 21)) {
    std::printf("== case 21\n");
    std::fflush(stdout);
    torch::manual_seed(21);
    case_21::run();
    std::cout << std::flush;
  }
}
