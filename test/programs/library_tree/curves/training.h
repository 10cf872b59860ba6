#pragma once

#include <cstdint>

#include "curves/model.h"

namespace curves {

struct Settings {
  int64_t epochs = 4;
  int64_t batch_size = 16;
  double learning_rate = 0.02;
};

// Trains on the rows of `data`; returns the loss of each epoch.
std::vector<double> train(Model& model, torch::Tensor data, const Settings& settings);

// The mean squared error over the rows of `data`.
double evaluate(Model& model, const torch::Tensor& data);

}  // namespace curves
