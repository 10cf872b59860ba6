#pragma once

// The part of LibTorch's interface that the tests use: declarations alone, with LibTorch's names, namespaces, base
// classes and default arguments. The tests run against LibTorch's own headers too, so nothing here can drift.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/autograd.h>
#include <torch/data.h>
#include <torch/functions.h>
#include <torch/layers.h>
#include <torch/loss.h>
#include <torch/module.h>
#include <torch/optim.h>
#include <torch/serialize.h>
