// A job that ends badly takes nothing with it.
#include "units/Workers.h"
#include "gtest/gtest.h"
#include <csignal>
#include <ctime>
#include <map>
#include <unistd.h>

using namespace migrate;

namespace {

TEST(Workers, OneOfEachEnd) {
  WorkerOptions Options;
  Options.Jobs = 3;
  Options.CpuSeconds = 1;
  std::map<size_t, Outcome> Ends;
  size_t Started = 0;
  runJobs(
      6, Options,
      [](size_t I) -> std::string {
        if (I == 1)
          raise(SIGSEGV);
        if (I == 2)
          raise(SIGKILL);
        if (I == 3)
          _exit(7);
        if (I == 4)
          while (std::clock() != -1) // for ever
            ;
        return std::string(I == 5 ? 1 << 20 : 3, 'a' + I);
      },
      [&](size_t) { ++Started; }, [&](size_t I, Outcome End) { Ends[I] = std::move(End); });
  EXPECT_EQ(Started, 6u);
  ASSERT_EQ(Ends.size(), 6u);
  EXPECT_EQ(Ends[0].Failure, "");
  EXPECT_EQ(Ends[0].Bytes, "aaa");
  EXPECT_EQ(Ends[1].Failure, "crashed (Segmentation fault)");
  EXPECT_EQ(Ends[2].Failure, "was killed (out of memory?)");
  EXPECT_EQ(Ends[3].Failure, "ended with status 7");
  EXPECT_EQ(Ends[4].Failure, "took more than 1 s");
  EXPECT_EQ(Ends[5].Bytes, std::string(1 << 20, 'f')); // more than a pipe holds
}

TEST(Workers, InThisProcess) {
  WorkerOptions Options;
  Options.Isolate = false;
  int Calls = 0;
  runJobs(
      2, Options, [&](size_t) { return std::to_string(++Calls); }, [](size_t) {},
      [&](size_t I, Outcome End) { EXPECT_EQ(End.Bytes, std::to_string(I + 1)); });
  EXPECT_EQ(Calls, 2); // not in a copy of it
}

TEST(Workers, AtLeastOneJob) { EXPECT_GE(jobsFor(1ULL << 60), 1u); }

} // namespace
