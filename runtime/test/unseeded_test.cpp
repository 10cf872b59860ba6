#include <accelerate/accelerate.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>

namespace {

uint64_t seed() { return at::detail::getDefaultCPUGenerator().current_seed(); }

// Drawn before `main`, where no rank has met another.
const torch::Tensor before_main = torch::randn({3});
const uint64_t seed_before_main = seed();

class Unseeded : public testing::Test {
 protected:
  accelerate::Accelerator accelerator;

  void expect_the_same_on_all_ranks(const torch::Tensor& x) {
    const torch::Tensor all = accelerator.gather(x.unsqueeze(0));
    ASSERT_EQ(all.size(0), accelerator.num_processes());
    EXPECT_TRUE(torch::equal(all, x.unsqueeze(0).expand_as(all))) << all;
  }
};

TEST_F(Unseeded, RanksDrawAlikeBeforeMainAndInIt) {
  // Here the generators were agreed on by nothing but the Accelerator itself.
  const torch::Tensor in_main = torch::randn({3});
  EXPECT_FALSE(torch::equal(in_main, before_main));
  expect_the_same_on_all_ranks(before_main);
  expect_the_same_on_all_ranks(in_main);
}

TEST_F(Unseeded, EachRunDrawsOtherNumbersInMain) {
  if (accelerator.num_processes() == 1) {
    EXPECT_EQ(seed(), seed_before_main);  // LibTorch's own, from the system's entropy
  } else {
    EXPECT_NE(seed(), seed_before_main);
  }
}

}  // namespace
