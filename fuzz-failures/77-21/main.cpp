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

template <typename T0, typename T1, typename T2>
double f4(const T0& x, const T1& y, const T2& out) {
  return (((torch::log1p(((out.narrow(1, 0, 1).squeeze(1)) * torch::ones({x.size(0)})).pow(2))).sum(0) - torch::stack({((torch::where((y.ne(0) & (x.select(1, 3) < 0.6)), x.view({-1, 4}).select(1, 1), x.reshape({x.size(0), 2, 2}).sum({1, 2}))) / (1 + (torch::where((y.ne(0) & (x.select(1, 3) < 0.6)), x.view({-1, 4}).select(1, 1), x.reshape({x.size(0), 2, 2}).sum({1, 2}))).square())).sum(), out.sum()}).sum())).detach().template item<double>();
}

void run() {
  auto loader_x = Points(12, 0.5).inputs(), loader_y = Points(12, 0.5).targets();
  std::vector<std::pair<torch::Tensor, torch::Tensor>> loader;
  for (int64_t i = 0; i < 12; i += 3) loader.push_back({loader_x.narrow(0, i, std::min<int64_t>(3, 12 - i)), loader_y.narrow(0, i, std::min<int64_t>(3, 12 - i))});
  torch::nn::Linear net(4, 3);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).weight_decay(0.01));
  const auto table = torch::tensor({0.5, 1.0, 1.7});
  int64_t steps = 0;
  int64_t improved = 0;
  double best = std::numeric_limits<double>::max();
  std::vector<double> history;
  for (int epoch = 0; epoch < 2; ++epoch) {
    double a1 = 0;
    std::vector<double> a2 = {};
    int64_t seen = 0, batches = 0;
    for (size_t i = 0; i < loader.size(); ++i) {
      auto x = loader[i].first;
      auto y = loader[i].second;
      if (torch::rand({1}).item<double>() < 0.5) x = x * 0.5;
      auto out = net->forward(x);
      auto loss = ((torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone))) * (y > 0)).sum() / (y > 0).sum();
      loss = loss + 0.3 * (torch::sum(torch::maximum((out.sum({1}) + out.select(1, 0)), std::get<0>(x.max(1)))) + (x.sum(1)).sum() / 3);
      seen += x.size(0);
      ++batches;
      ++steps;
      a1 += ((out.select(1, 0)).mean(0, false)).item<double>();
      a2.push_back(std::min<double>(static_cast<double>(x.size(0)), 0.1));
      std::printf("s3 %.10f\n", f4(x, y, out));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
    std::printf("m5 %.10f\n", a1);
    std::printf("m6 %.10f\n", static_cast<double>(a2.size()));
    { std::ostringstream line; line << std::setprecision(12) << "m7 " << a2.back() << "\n"; std::cout << line.str(); }
    if (std::sqrt(std::abs(a1)) < 1.3) break;
  }
  std::printf("end %lld %lld %d\n", static_cast<long long>(steps), static_cast<long long>(improved), static_cast<int>(history.size()));
  for (double h : history) std::printf("history %.10f\n", h);
  std::printf("weights %.10f\n", weight_sum(net->parameters()));
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
