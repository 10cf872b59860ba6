/// The C++ side of python_equality_test.py: trains, and writes what came of it for Python to compare.
///
///   accelerate_python_equality FOLDER MODEL:TYPE:ROWS:BATCH...
///
/// Weights and data come from formulas that both sides have. Each rank writes FOLDER/CASE.rankN.safetensors.

#include <accelerate/accelerate.h>
#include <torch/torch.h>

#include <cmath>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kEpochs = 2;
constexpr int64_t kClasses = 4;

torch::Tensor wave(int64_t numbers, double step, double start) {
  return torch::sin(torch::arange(numbers, torch::kFloat64) * step + start);
}

struct EncoderImpl : torch::nn::Module {
  EncoderImpl() {
    input = register_module("input", torch::nn::Linear(6, 8));
    layer =
        register_module("layer", torch::nn::TransformerEncoderLayer(
                                     torch::nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0)));
    head = register_module("head", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(layer(input(x).transpose(0, 1)).mean(0)); }
  torch::nn::Linear input{nullptr}, head{nullptr};
  torch::nn::TransformerEncoderLayer layer{nullptr};
};
TORCH_MODULE(Encoder);

struct Problem {
  torch::nn::Sequential model;
  std::vector<int64_t> row;
};

Problem make_problem(const std::string& name) {
  namespace nn = torch::nn;
  if (name == "perceptron") {
    return {nn::Sequential(nn::Linear(6, 16), nn::Tanh(), nn::Linear(16, 16), nn::Tanh(), nn::Linear(16, kClasses)),
            {6}};
  }
  if (name == "convolution") {
    return {nn::Sequential(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::ReLU(), nn::Flatten(),
                           nn::Linear(4 * 4 * 4, kClasses)),
            {1, 6, 6}};
  }
  TORCH_CHECK(name == "encoder", "there is no model \"", name, "\"");
  return {nn::Sequential(Encoder()), {5, 6}};
}

class Rows : public torch::data::Dataset<Rows> {
 public:
  Rows(int64_t rows, const std::vector<int64_t>& row, torch::ScalarType type) {
    std::vector<int64_t> shape{rows};
    shape.insert(shape.end(), row.begin(), row.end());
    int64_t numbers = 1;
    for (const int64_t size : shape) {
      numbers *= size;
    }
    data_ = wave(numbers, 0.31, 0).reshape(shape).to(type);
    target_ = torch::arange(rows) % kClasses;
  }
  torch::data::Example<> get(size_t index) override {
    return {data_[static_cast<int64_t>(index)], target_[static_cast<int64_t>(index)]};
  }
  torch::optional<size_t> size() const override { return static_cast<size_t>(data_.size(0)); }

 private:
  torch::Tensor data_, target_;
};

void run(const std::string& folder, const std::string& name) {
  std::istringstream fields(name);
  std::string model_name, type_name, rows, batch_size;
  std::getline(fields, model_name, ':');
  std::getline(fields, type_name, ':');
  std::getline(fields, rows, ':');
  std::getline(fields, batch_size, ':');
  const auto type = type_name == "float64" ? torch::kFloat64 : torch::kFloat32;

  accelerate::Accelerator accelerator;
  Problem problem = make_problem(model_name);
  torch::nn::Sequential& model = problem.model;
  model->to(type);
  {
    torch::NoGradGuard no_grad;
    for (auto& parameter : model->named_parameters()) {
      double start = 0;
      for (const char c : parameter.key()) {
        start += static_cast<double>(c);
      }
      torch::Tensor& value = parameter.value();
      value.copy_(wave(value.numel(), 0.7, start).reshape(value.sizes()) * 0.3);
    }
  }
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  auto loader = accelerate::make_data_loader<torch::data::samplers::SequentialSampler>(
      Rows(std::stoll(rows), problem.row, type).map(torch::data::transforms::Stack<>()), std::stoull(batch_size));
  accelerator.prepare(model, optimizer, loader);

  std::vector<torch::Tensor> losses, means;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      auto loss = torch::cross_entropy_loss(model->forward(batch.data), batch.target);
      accelerator.backward(loss);
      optimizer.step();
      losses.push_back(loss.detach());
      means.push_back(accelerator.mean(loss));
    }
  }
  accelerate::NamedTensors result{{"losses", torch::stack(losses)}, {"means", torch::stack(means)}};
  for (const auto& parameter : model->named_parameters()) {
    result.emplace_back("parameter " + parameter.key(), parameter.value().detach());
  }
  for (const auto& buffer : model->named_buffers()) {
    result.emplace_back("buffer " + buffer.key(), buffer.value());
  }
  accelerate::save_safetensors(
      result, folder + "/" + name + ".rank" + std::to_string(accelerator.process_index()) + ".safetensors");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: accelerate_python_equality FOLDER MODEL:TYPE:ROWS:BATCH...\n";
    return 2;
  }
  try {
    for (int i = 2; i < argc; ++i) {
      run(argv[1], argv[i]);
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
