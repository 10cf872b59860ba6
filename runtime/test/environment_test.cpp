#include "environment.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace accelerate::detail {
namespace {

/// Only these variables, during a test.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& variables) {
    clearenv();
    for (const auto& [name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Variables() { clearenv(); }
};

TEST(Environment, Alone) {
  EXPECT_TRUE((Variables({}), read_environment().alone()));
  Variables one({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_TRUE(read_environment().alone());
}

TEST(Environment, Torchrun) {
  Variables variables({{"RANK", "5"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "1"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "host"},
                       {"MASTER_PORT", "29500"},
                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                       {"TORCHELASTIC_RESTART_COUNT", "2"},
                       {"ACCELERATE_TIMEOUT", "30"},
                       {"OMPI_COMM_WORLD_RANK", "0"},
                       {"OMPI_COMM_WORLD_SIZE", "2"}});
  const Environment e = read_environment();
  EXPECT_EQ(e.rank, 5);
  EXPECT_EQ(e.world_size, 8);
  EXPECT_EQ(e.local_rank, 1);
  EXPECT_EQ(e.local_world_size, 4);
  EXPECT_EQ(e.master_address, "host");
  EXPECT_EQ(e.master_port, 29500);
  EXPECT_TRUE(e.store_is_served);
  EXPECT_EQ(e.restart, "2");
  EXPECT_EQ(e.timeout, std::chrono::seconds(30));
  EXPECT_FALSE(e.one_host());
}

TEST(Environment, MpiOnOneHostNeedsNoMeetingPoint) {
  Variables variables({{"OMPI_COMM_WORLD_RANK", "1"},
                       {"OMPI_COMM_WORLD_SIZE", "2"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const Environment e = read_environment();
  EXPECT_EQ(e.rank, 1);
  EXPECT_EQ(e.master_address, "127.0.0.1");
  EXPECT_GT(e.master_port, 0);
}

TEST(Environment, Errors) {
  {
    Variables variables({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
    EXPECT_THROW(read_environment(), c10::Error);  // where to meet?
  }
  {
    Variables variables({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}});
    EXPECT_THROW(read_environment(), c10::Error);
  }
  Variables variables({{"RANK", "one"}, {"WORLD_SIZE", "2"}});
  EXPECT_THROW(read_environment(), c10::Error);
}

TEST(Environment, Flags) {
  Variables variables({{"A", "Yes"}, {"B", "0"}, {"C", "true"}});
  EXPECT_TRUE(flag("A"));
  EXPECT_FALSE(flag("B"));
  EXPECT_TRUE(flag("C"));
  EXPECT_FALSE(flag("D"));
}

}  // namespace
}  // namespace accelerate::detail
