#pragma once

// The part of LibTorch's interface that the tests use: declarations alone, with LibTorch's names, namespaces, base
// classes and default arguments. The tests run against LibTorch's own headers too, so nothing here can drift.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <torch/autograd.h>
#include <torch/data.h>
#include <torch/functions.h>
#include <torch/layers.h>
#include <torch/loss.h>
#include <torch/module.h>
#include <torch/optim.h>
#include <torch/serialize.h>
