#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "toys.h"

namespace {

/// Run with ACCELERATE_DEBUG_MODE=1: what would hang, or add up the wrong numbers, is an error on all ranks.
class DebugMode : public testing::Test {
 protected:
  accelerate::Accelerator accelerator;
  const int64_t n = accelerator.num_processes(), r = accelerator.process_index();

  /// The error, which all ranks must get; after it they go on together.
  void expect(const std::function<void()>& run, const std::vector<std::string>& parts) {
    if (n == 1) {
      return;
    }
    std::string text = "no error";
    try {
      run();
    } catch (const c10::Error& error) {
      text = error.what_without_backtrace();
    }
    for (const std::string& part : parts) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_EQ(accelerator.reduce(1), n);
  }
};

TEST_F(DebugMode, ShapesThatDiffer) {
  const std::string rank = "rank " + std::to_string(r) + " of ";
  expect([&] { accelerator.reduce(torch::zeros({2, r + 1})); },
         {rank, "`reduce(): Float [2, 1]` on rank 0", "`reduce(): Float [2, 2]` on rank 1"});
  expect([&] { accelerator.reduce(torch::zeros({2}, r == 0 ? torch::kFloat : torch::kInt)); }, {"Float", "Int"});
  // As many numbers in another shape, and more than are looked at otherwise.
  expect([&] { accelerator.all_reduce(torch::zeros({r == 0 ? 2 : 3, r == 0 ? 3 : 2})); },
         {rank, "`all_reduce(): Float [2, 3]` on rank 0", "`all_reduce(): Float [3, 2]` on rank 1"});
  expect([&] { accelerator.all_reduce(torch::zeros({r + 1, 70000})); }, {rank, "[1, 70000]", "[2, 70000]"});
  expect([&] { accelerator.broadcast(torch::zeros({r + 1})); }, {rank, "`broadcast(): Float [1]` on rank 0", "[2]"});
}

TEST_F(DebugMode, WhatTheOthersDoIsNamed) {
  const std::string rank = "rank " + std::to_string(r) + " of ";
  // Without it, gather() finds that out itself; here before it begins.
  expect([&] { accelerator.gather(torch::zeros({2, r + 1})); }, {rank, "gather()", "[1]", "[2]", " on rank 1"});
  expect([&] { accelerator.max(torch::zeros({r + 1})); }, {rank, "max()", "[1]", "[2]"});
  expect([&] { accelerator.all_gather(torch::zeros({2}, r == 0 ? torch::kFloat : torch::kInt)); },
         {rank, "all_gather()", "Float", "Int"});
  expect([&] { accelerator.reduce(std::map<std::string, int>{{r == 0 ? "a" : "b", 1}}); },
         {rank, "what reduce() was given differs between ranks", "`the key a` on rank 0, `the key b` on rank 1"});
  expect([&] { r == 0 ? void(accelerator.gather(torch::ones({1}))) : accelerator.wait_for_everyone(); },
         {rank, "the next operation differs between ranks", "`all-gather of numbers of rows: Long [2]` on rank 0",
          "`all-reduce of wait_for_everyone(): Long [1]` on rank 1"});
  expect([&] { r == 0 ? void(accelerator.broadcast(1)) : void(accelerator.max(1)); },
         {rank, "the next operation differs between ranks"});
  expect([&] { r == 0 ? accelerator.wait_for_everyone() : void(accelerator.check_trigger()); },
         {rank, "the next operation differs between ranks"});
  expect(
      [&] {
        r == 0 ? void(accelerator.broadcast(std::string("text")))
               : void(accelerator.pad_across_processes(torch::ones({1})));
      },
      {rank, "the next operation differs between ranks"});
  torch::nn::Linear odd(2, r + 1);
  expect([&] { accelerator.prepare(odd); }, {rank, "prepare(", "weight: Float [1, 2]", "weight: Float [2, 2]"});
}

TEST_F(DebugMode, OperationsThatDiffer) {
  expect([&] { r == 0 ? accelerator.wait_for_everyone() : void(accelerator.reduce(1.0)); },
         {"wait_for_everyone()", "reduce(): Double []"});
}

TEST_F(DebugMode, BackwardsThatDiffer) {
  torch::nn::Linear a(2, 1), b(2, 1);
  accelerator.prepare(a, b);
  const auto x = torch::ones({1, 2});
  expect([&] { accelerator.backward((r == 0 ? a(x) : a(x) + b(x)).sum()); },
         {"`nothing` on rank 0", "`backward() through "});
  accelerator.backward((a(x) + b(x)).sum());
}

TEST_F(DebugMode, LossesMayReachOtherPartsOfAModel) {
  torch::nn::Linear a(2, 1), b(2, 1);
  std::vector<torch::Tensor> parameters{a->weight, a->bias, b->weight, b->bias};
  torch::optim::SGD optimizer(parameters, 0.1);
  accelerator.prepare(optimizer);
  const auto x = torch::ones({1, 2});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    accelerator.backward((r == 0 ? a(x) + b(x) : a(x)).sum());
    EXPECT_FLOAT_EQ(b->bias.grad().item<float>() * static_cast<float>(n), 1);
  }
}

}  // namespace
