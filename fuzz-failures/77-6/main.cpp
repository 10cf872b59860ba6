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

namespace case_6 {

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) {
    return second->forward(torch::gelu(first->forward(x)));
  }
  torch::nn::Linear first{register_module("first", torch::nn::Linear(4, 6))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(6, 3))};
};

double f2(const torch::Tensor& y) {
  return static_cast<double>(y.size(0));
}

template <typename T0, typename T1>
double f5(const T0& x, const T1& out) {
  return (static_cast<double>(((out.select(1, 0) > 0.05)).sum().template item<int64_t>())) * (static_cast<double>(x.size(0)));
}

struct F10 {
  torch::Tensor operator()(const torch::Tensor& x) const {
    return scale * ((torch::tanh(torch::stack({x.sum(1), x.select(1, 2)}, 1).mean(1))).sum());
  }
  double scale{1};
};

void run() {
  auto loader_x = Points(7, 0.0).inputs(), loader_y = Points(7, 0.0).targets();
  std::vector<std::pair<torch::Tensor, torch::Tensor>> loader;
  for (int64_t i = 0; i < 7; i += 3) loader.push_back({loader_x.narrow(0, i, std::min<int64_t>(3, 7 - i)), loader_y.narrow(0, i, std::min<int64_t>(3, 7 - i))});
  auto held_out = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      Points(5, 2.5).map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions().batch_size(7));
  auto net = std::make_shared<NetImpl>();
  torch::optim::RMSprop optimizer(net->parameters(), torch::optim::RMSpropOptions(0.01).eps(1e-3));
  const auto table = torch::tensor({0.5, 1.0, 1.7});
  int64_t steps = 0;
  int64_t improved = 0;
  double best = std::numeric_limits<double>::max();
  std::vector<double> history;
  for (int epoch = 0; epoch < 2; ++epoch) {
    int64_t a1 = 0;
    std::array<int64_t, 3> a3 = {};
    int64_t seen = 0, batches = 0;
    for (size_t i = 0; i < loader.size(); ++i) {
      auto x = loader[i].first;
      auto y = loader[i].second;
      const double coin = torch::rand({}).item<double>();
      if (coin < 0.4) x = -x;
      auto out = net->forward(x);
      auto loss = torch::nn::functional::cross_entropy(out, y, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1));
      a1 += torch::count_nonzero(torch::logical_or(y.ne(0), x.select(1, 2) > 0.4)).item<int64_t>();
      std::cout << "s4 " << std::fixed << std::setprecision(10) << f5(x, out) << std::endl;
      for (auto& p : net->parameters()) if (p.grad().defined()) p.grad().zero_();
      loss.backward();
      optimizer.step();
      for (int64_t c = 0; c < 3; ++c) {
        auto of_class = (y == c);
        a3[c] += of_class.sum().item<int64_t>();
      }
      seen += x.size(0);
      ++batches;
      ++steps;
    }
    std::cout << "m6 " << std::fixed << std::setprecision(10) << 100.0 * a1 / seen << std::endl;
    std::printf("m7 %.10f\n", 1.0 * (a3[0] + a3[2]) / (1 + a3[1]));
    {
      torch::NoGradGuard no_grad;
      double a8 = 0;
      torch::Tensor a9 = torch::zeros({});
      int64_t seen = 0, batches = 0;
      for (auto it = held_out->begin(); it != held_out->end(); ++it) {
        auto& batch = *it;
        auto x = batch.data.to(torch::kCPU);
        const auto y = batch.target;
        auto out = net->forward(x);
        auto v11 = [=]() -> torch::Tensor { return ((y > 0).to(torch::kDouble).mean()) / 0.3; }();
        if ((((out * out).mean(at::IntArrayRef({0, 1}))) / 1.3).detach().item<double>() > a8) a8 = (((out * out).mean(at::IntArrayRef({0, 1}))) / 1.3).detach().item<double>();
        a9 = a9 + (F10()(x)).detach();
        seen += x.size(0);
        ++batches;
      }
      { char text[64]; std::snprintf(text, sizeof text, "m13 %.9f", a8); std::puts(text); }
      { std::ostringstream line; line << std::setprecision(12) << "m14 " << a9.pow(2).item<double>() << "\n"; std::cout << line.str(); }
    }
  }
  std::printf("end %lld %lld %d\n", static_cast<long long>(steps), static_cast<long long>(improved), static_cast<int>(history.size()));
  for (double h : history) std::printf("history %.10f\n", h);
  std::printf("weights %.10f\n", weight_sum(net->parameters()));
}

}  // namespace case_6

bool chosen(int argc, char** argv, int number) {
  for (int i = 1; i < argc; ++i) {
    if (std::atoi(argv[i]) == number) return true;
  }
  return argc < 2;
}

int main(int argc, char** argv) {
  c10::set_default_dtype(caffe2::TypeMeta::Make<double>());
  if (chosen(argc, argv, 6)) {
    std::printf("== case 6\n");
    std::fflush(stdout);
    torch::manual_seed(6);
    case_6::run();
    std::cout << std::flush;
  }
}
