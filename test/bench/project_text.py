"""The texts of the generated project (generate.py): what a field's files say, the libraries, and the small programs."""

# name, features, classes (0: a number is learned), optimizer, epochs
FIELDS = [
    ("vision", 64, 10, "SGD", 4),
    ("tabular", 12, 0, "Adam", 8),
    ("audio", 40, 5, "AdamW", 6),
    ("ranking", 24, 0, "RMSprop", 5),
    ("signals", 16, 3, "Adagrad", 3),
]

NET_H = """#pragma once
#include <torch/torch.h>

#include <cstdint>

#include "common/blocks.h"

namespace {field} {{

class NetImpl : public torch::nn::Module {{
 public:
  explicit NetImpl(int64_t hidden = 32);
  torch::Tensor forward(torch::Tensor x);

 private:
  common::Block first_{{nullptr}}, second_{{nullptr}};
  torch::nn::Linear head_{{nullptr}};
}};
TORCH_MODULE(Net);

}}  // namespace {field}
"""

NET_CPP = """#include "{field}/net.h"

#include "common/init.h"

namespace {field} {{

NetImpl::NetImpl(int64_t hidden) {{
  first_ = register_module("first", common::Block({features}, hidden));
  second_ = register_module("second", common::Block(hidden, hidden));
  head_ = register_module("head", torch::nn::Linear(hidden, {outputs}));
  common::initialise(*this);
}}

torch::Tensor NetImpl::forward(torch::Tensor x) {{
  return head_(second_(first_(x)));
}}

}}  // namespace {field}
"""

STEP_H = """#pragma once
#include <torch/torch.h>

#include "{field}/net.h"

namespace {field} {{

// One step; the loss before it.
torch::Tensor learn(Net& net, torch::optim::Optimizer& optimizer, const torch::Tensor& data, const torch::Tensor& target);

}}  // namespace {field}
"""

STEP_CPP = """#include "{field}/step.h"

namespace {field} {{

torch::Tensor learn(Net& net, torch::optim::Optimizer& optimizer, const torch::Tensor& data, const torch::Tensor& target) {{
  optimizer.zero_grad();
  auto output = net->forward(data);
  auto loss = {loss};
  loss.backward();
  optimizer.step();
  return loss;
}}

}}  // namespace {field}
"""

TRAIN_CPP = """#include <torch/torch.h>

#include <cstdio>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/options.h"
#include "common/points.h"
#include "{field}/net.h"
#include "{field}/step.h"

using {field}::Net;

int main(int argc, char** argv) {{
  const base::Options options(argc, argv);
  const int epochs = options.number("epochs", {epochs});
  torch::manual_seed(options.number("seed", 1));
  torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);

  auto training = common::Points(2000, {features}, {classes}, 1).map(torch::data::transforms::Stack<>());
  auto validation = common::Points(500, {features}, {classes}, 2).map(torch::data::transforms::Stack<>());
  auto training_loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(std::move(training), 64);
  auto validation_loader =
      torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(validation), 100);

  Net net;
  net->to(device);
  torch::optim::{optimizer} optimizer(net->parameters(), torch::optim::{optimizer}Options(0.01));

  for (int epoch = 1; epoch <= epochs; ++epoch) {{
    net->train();
    double total = 0;
    int steps = 0;
    for (auto& batch : *training_loader) {{
      auto data = batch.data.to(device), target = batch.target.to(device);
      auto loss = {field}::learn(net, optimizer, data, target);
      total += loss.item<double>();
      ++steps;
    }}
    base::log("{field}: epoch " + std::to_string(epoch) + " of " + std::to_string(epochs));
    std::printf("loss %.5f\\n", total / steps);

    torch::NoGradGuard no_grad;
    net->eval();
    double sum = 0;
    int64_t rows = 0{more_sums};
    for (const auto& batch : *validation_loader) {{
      auto data = batch.data.to(device), target = batch.target.to(device);
      auto output = net->forward(data);
      sum += {loss_sum}.item<double>();
      rows += data.size(0);{more_counts}
    }}
    std::printf("validation loss %.5f{more_format}\\n", sum / rows{more_values});
  }}
  torch::save(net, "{field}.pt");
}}
"""

PREDICT_CPP = """#include <torch/torch.h>

#include <cstdio>

#include "base/options.h"
#include "common/metrics.h"
#include "common/points.h"
#include "{field}/net.h"

using {field}::Net;

int main(int argc, char** argv) {{
  const base::Options options(argc, argv);
  Net net;
  torch::load(net, options.text("model", "{field}.pt"));
  net->eval();
  torch::NoGradGuard no_grad;
  common::Points points(100, {features}, {classes}, 3);
  for (size_t i = 0; i < *points.size(); ++i) {{
    auto example = points.get(i);
    auto output = net->forward(example.data.unsqueeze(0));
    std::printf("%s\\n", common::describe(output).c_str());
  }}
}}
"""

COMMON = {
    "blocks.h": """#pragma once
#include <torch/torch.h>

#include <cstdint>

namespace common {

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(int64_t in, int64_t out);
  torch::Tensor forward(torch::Tensor x);

 private:
  torch::nn::Linear linear_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Block);

}  // namespace common
""",
    "blocks.cpp": """#include "common/blocks.h"

namespace common {

BlockImpl::BlockImpl(int64_t in, int64_t out) {
  linear_ = register_module("linear", torch::nn::Linear(in, out));
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({out})));
}

torch::Tensor BlockImpl::forward(torch::Tensor x) { return torch::relu(norm_(linear_(x))); }

}  // namespace common
""",
    "init.h": """#pragma once
#include <torch/torch.h>

namespace common {

void initialise(torch::nn::Module& module);

}  // namespace common
""",
    "init.cpp": """#include "common/init.h"

namespace common {

void initialise(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) {
    if (item.value().dim() > 1) torch::nn::init::xavier_uniform_(item.value());
  }
}

}  // namespace common
""",
    "metrics.h": """#pragma once
#include <torch/torch.h>

#include <string>

namespace common {

torch::Tensor correct(const torch::Tensor& output, const torch::Tensor& target);
std::string describe(const torch::Tensor& output);

}  // namespace common
""",
    "metrics.cpp": """#include "common/metrics.h"

#include <cstdio>

namespace common {

torch::Tensor correct(const torch::Tensor& output, const torch::Tensor& target) {
  return output.argmax(1).eq(target).sum();
}

std::string describe(const torch::Tensor& output) {
  char line[64];
  std::snprintf(line, sizeof(line), "%d of %d", static_cast<int>(output.argmax(1).item<int64_t>()),
                static_cast<int>(output.size(1)));
  return line;
}

}  // namespace common
""",
    "points.h": """#pragma once
#include <torch/torch.h>

#include <cstdint>

namespace common {

// Points around the centres of their classes; without classes, numbers to be learned.
class Points : public torch::data::datasets::Dataset<Points> {
 public:
  Points(int64_t count, int64_t features, int64_t classes, uint64_t seed);
  torch::data::Example<> get(size_t index) override;
  torch::optional<size_t> size() const override;

 private:
  torch::Tensor inputs_, targets_;
};

}  // namespace common
""",
    "points.cpp": """#include "common/points.h"

namespace common {

Points::Points(int64_t count, int64_t features, int64_t classes, uint64_t seed) {
  torch::manual_seed(seed);
  inputs_ = torch::randn({count, features});
  targets_ = classes > 0 ? torch::randint(classes, {count}, torch::kLong) : inputs_.sum(1, /*keepdim=*/true);
  if (classes > 0) inputs_ = inputs_ + targets_.unsqueeze(1);
}

torch::data::Example<> Points::get(size_t index) {
  return {inputs_[index], targets_[index]};
}

torch::optional<size_t> Points::size() const { return inputs_.size(0); }

}  // namespace common
""",
    "shape.h": """#pragma once
#include <torch/torch.h>

#include <string>

namespace common {

std::string shape(const torch::Tensor& tensor);

}  // namespace common
""",
    "shape.cpp": """#include "common/shape.h"

namespace common {

std::string shape(const torch::Tensor& tensor) {
  std::string text;
  for (int64_t size : tensor.sizes()) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

}  // namespace common
""",
    "summary.h": """#pragma once
#include <torch/torch.h>

#include <ostream>

namespace common {

void summary(const torch::nn::Module& module, std::ostream& out);

}  // namespace common
""",
    "summary.cpp": """#include "common/summary.h"

#include "common/shape.h"

namespace common {

void summary(const torch::nn::Module& module, std::ostream& out) {
  int64_t all = 0;
  for (const auto& item : module.named_parameters()) {
    out << item.key() << ": " << shape(item.value()) << "\\n";
    all += item.value().numel();
  }
  out << all << " parameters\\n";
}

}  // namespace common
""",
}

BASE = {
    "strings": (
        """#include <string>
#include <vector>

namespace base {

std::vector<std::string> split(const std::string& text, char at);

}  // namespace base
""",
        """namespace base {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace base
""",
    ),
    "csv": (
        """#include <string>
#include <vector>

namespace base {

std::vector<std::vector<std::string>> read_csv(const std::string& path);

}  // namespace base
""",
        """#include <fstream>

#include "base/strings.h"

namespace base {

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) rows.push_back(split(line, ','));
  return rows;
}

}  // namespace base
""",
    ),
    "log": (
        """#include <string>

namespace base {

void log(const std::string& line);

}  // namespace base
""",
        """#include <iostream>

#include "base/clock.h"

namespace base {

void log(const std::string& line) { std::cerr << "[" << now() << "] " << line << std::endl; }

}  // namespace base
""",
    ),
    "options": (
        """#include <map>
#include <string>

namespace base {

// `--name value` pairs.
class Options {
 public:
  Options(int argc, char** argv);
  int number(const std::string& name, int otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace base
""",
        """#include <cstdlib>

namespace base {

Options::Options(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) values_[std::string(argv[i]).substr(2)] = argv[i + 1];
}

int Options::number(const std::string& name, int otherwise) const {
  auto found = values_.find(name);
  return found == values_.end() ? otherwise : std::atoi(found->second.c_str());
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  auto found = values_.find(name);
  return found == values_.end() ? otherwise : found->second;
}

}  // namespace base
""",
    ),
    "clock": (
        """#include <string>

namespace base {

std::string now();

}  // namespace base
""",
        """#include <ctime>

namespace base {

std::string now() {
  char text[32];
  const std::time_t time = std::time(nullptr);
  std::strftime(text, sizeof(text), "%H:%M:%S", std::localtime(&time));
  return text;
}

}  // namespace base
""",
    ),
}

# Programs with LibTorch, without training.
TORCH_TOOLS = {
    "inspect": """  for (const auto& pair : torch::jit::load(path).named_parameters()) {
    std::cout << pair.name << ": " << common::shape(pair.value) << "\\n";
  }
""",
    "average": """  std::vector<torch::Tensor> tensors;
  torch::load(tensors, path);
  torch::Tensor mean = torch::stack(tensors).mean(0);
  torch::save(mean, path + ".mean");
""",
    "convert": """  torch::Tensor tensor;
  torch::load(tensor, path);
  torch::save(tensor.to(torch::kHalf), path + ".half");
""",
    "forward": """  common::Block block(16, 16);
  common::summary(*block, std::cout);
  for (int i = 0; i < 100; ++i) block->forward(torch::randn({64, 16}));
""",
}
PLAIN_TOOLS = {
    "count_lines": '  std::cout << base::read_csv(path).size() << "\\n";\n',
    "first_column": '  for (const auto& row : base::read_csv(path)) std::cout << row.front() << "\\n";\n',
    "transpose": """  const auto rows = base::read_csv(path);
  for (size_t c = 0; !rows.empty() && c < rows[0].size(); ++c) {
    for (const auto& row : rows) std::cout << row[c] << ",";
    std::cout << "\\n";
  }
""",
    "width": """  size_t most = 0;
  for (const auto& row : base::read_csv(path)) most = std::max(most, row.size());
  std::cout << most << "\\n";
""",
    "checksum": """  unsigned sum = 0;
  for (const auto& row : base::read_csv(path)) {
    for (const std::string& cell : row) {
      for (unsigned char c : cell) sum = sum * 31 + c;
    }
  }
  std::cout << sum << "\\n";
""",
}
