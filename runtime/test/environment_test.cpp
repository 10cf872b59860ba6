#include "environment.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "slurm.h"

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

/// The variables of each of MPI's launchers, on the second of two hosts, with the meeting point that none of them
/// names.
TEST(Environment, EveryMpi) {
  const std::map<std::string, std::string> kinds[] = {
      {{"OMPI_COMM_WORLD_RANK", "6"},
       {"OMPI_COMM_WORLD_SIZE", "8"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
      {{"MV2_COMM_WORLD_RANK", "6"},
       {"MV2_COMM_WORLD_SIZE", "8"},
       {"MV2_COMM_WORLD_LOCAL_RANK", "2"},
       {"MV2_COMM_WORLD_LOCAL_SIZE", "4"}},
      {{"PMI_RANK", "6"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "4"}},  // MPICH, Intel MPI
      // MVAPICH under MPICH's launcher: both, and they say the same.
      {{"MV2_COMM_WORLD_RANK", "6"},
       {"MV2_COMM_WORLD_SIZE", "8"},
       {"MV2_COMM_WORLD_LOCAL_RANK", "2"},
       {"MV2_COMM_WORLD_LOCAL_SIZE", "4"},
       {"PMI_RANK", "6"},
       {"PMI_SIZE", "8"}},
  };
  for (std::map<std::string, std::string> names : kinds) {
    SCOPED_TRACE(names.begin()->first);
    {
      Variables variables(names);
      EXPECT_THROW(read_environment(), c10::Error);  // where to meet?
    }
    names["MASTER_ADDR"] = "host";
    names["MASTER_PORT"] = "29500";
    names["SLURM_PROCID"] = "0";  // of the batch script that mpirun stands in
    names["SLURM_NTASKS"] = "8";
    Variables variables(names);
    const Environment e = read_environment();
    EXPECT_EQ(e.rank, 6);
    EXPECT_EQ(e.world_size, 8);
    EXPECT_EQ(e.local_rank, 2);
    EXPECT_EQ(e.local_world_size, 4);
    EXPECT_EQ(e.master_address, "host");
    EXPECT_EQ(e.master_port, 29500);
    EXPECT_FALSE(e.store_is_served);
    EXPECT_FALSE(e.one_host());
  }
}

TEST(Environment, TheFirstLauncherInOrderCounts) {
  std::map<std::string, std::string> names = {{"RANK", "1"},
                                              {"WORLD_SIZE", "2"},
                                              {"OMPI_COMM_WORLD_RANK", "2"},
                                              {"OMPI_COMM_WORLD_SIZE", "3"},
                                              {"MASTER_ADDR", "host"},
                                              {"MV2_COMM_WORLD_RANK", "3"},
                                              {"MV2_COMM_WORLD_SIZE", "4"},
                                              {"PMI_RANK", "4"},
                                              {"MASTER_PORT", "1234"},
                                              {"PMI_SIZE", "5"},
                                              {"SLURM_PROCID", "5"},
                                              {"SLURM_STEP_NUM_TASKS", "6"}};
  int64_t rank = 1;
  for (const char* launcher : {"RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    {
      Variables variables(names);
      EXPECT_EQ(read_environment().rank, rank) << launcher;
      EXPECT_EQ(read_environment().world_size, rank + 1) << launcher;
    }
    names.erase(launcher);
    ++rank;
  }
  Variables variables(names);
  EXPECT_TRUE(read_environment().alone());
}

TEST(Environment, SlurmStepOnSeveralHosts) {
  std::map<std::string, std::string> names = {{"SLURM_PROCID", "5"},
                                              {"SLURM_STEP_NUM_TASKS", "7"},
                                              {"SLURM_LOCALID", "1"},
                                              {"SLURM_NODEID", "1"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "4,3"},
                                              {"SLURM_STEP_NODELIST", "gpu[07-08]"},
                                              {"SLURM_JOB_ID", "4711"},
                                              {"SLURM_STEP_ID", "2"}};
  uint16_t port = 0;
  {
    Variables variables(names);
    const Environment e = read_environment();
    EXPECT_EQ(e.rank, 5);
    EXPECT_EQ(e.world_size, 7);
    EXPECT_EQ(e.local_rank, 1);
    EXPECT_EQ(e.local_world_size, 3);
    EXPECT_EQ(e.master_address, "gpu07");
    EXPECT_GE(e.master_port, 20000);
    port = e.master_port;
  }
  {
    names["MASTER_ADDR"] = "chosen";
    Variables variables(names);
    EXPECT_EQ(read_environment().master_address, "chosen");
    EXPECT_EQ(read_environment().master_port, port);
  }
  {
    // srun's PMI beside it: MPI's rank, and what the step knows of hosts.
    names.erase("MASTER_ADDR");
    names["PMI_RANK"] = "6";
    names["PMI_SIZE"] = "7";
    Variables variables(names);
    const Environment e = read_environment();
    EXPECT_EQ(e.rank, 6);
    EXPECT_EQ(e.local_world_size, 3);
    EXPECT_EQ(e.master_address, "gpu07");
  }
}

TEST(Environment, AnAllocationWithoutSrunIsAlone) {
  Variables variables({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "1"}});
  EXPECT_TRUE(read_environment().alone());
}

TEST(Environment, SlurmOnOneHost) {
  Variables variables({{"SLURM_PROCID", "1"},
                       {"SLURM_STEP_NUM_TASKS", "2"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_STEP_TASKS_PER_NODE", "2"},
                       {"SLURM_STEP_NODELIST", "gpu07"}});
  const Environment e = read_environment();
  EXPECT_EQ(e.local_world_size, 2);
  EXPECT_EQ(e.master_address, "127.0.0.1");
}

TEST(Environment, SlurmStepsOfMoreAndFewerTasks) {
  // Three hosts in one short form, of which this is the second; a batch step's variables beside those of the step.
  std::map<std::string, std::string> names = {{"SLURM_JOB_NUM_NODES", "4"},
                                              {"SLURM_NTASKS", "16"},
                                              {"SLURM_JOB_NODELIST", "gpu[01-04]"},
                                              {"SLURM_PROCID", "6"},
                                              {"SLURM_STEP_NUM_TASKS", "10"},
                                              {"SLURM_LOCALID", "2"},
                                              {"SLURM_NODEID", "1"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "4(x2),2"},
                                              {"SLURM_STEP_NODELIST", "gpu[02-04]"},
                                              {"SLURM_JOB_ID", "4711"},
                                              {"SLURM_STEP_ID", "0"}};
  {
    Variables variables(names);
    const Environment e = read_environment();
    EXPECT_EQ(e.rank, 6);
    EXPECT_EQ(e.world_size, 10);
    EXPECT_EQ(e.local_rank, 2);
    EXPECT_EQ(e.local_world_size, 4);
    EXPECT_EQ(e.master_address, "gpu02");
  }
  {
    names["SLURM_PROCID"] = "10";
    Variables variables(names);
    EXPECT_THROW(read_environment(), c10::Error);
  }
  {
    // The shell of `salloc` is a step of one task.
    names["SLURM_PROCID"] = "0";
    names["SLURM_STEP_NUM_TASKS"] = "1";
    names["SLURM_STEP_ID"] = "4294967290";
    Variables variables(names);
    EXPECT_TRUE(read_environment().alone());
  }
}

TEST(Environment, SlurmsShortForms) {
  EXPECT_EQ(first_slurm_host("login1"), "login1");
  EXPECT_EQ(first_slurm_host("login1,login2"), "login1");
  EXPECT_EQ(first_slurm_host("node[03-05,9],login1"), "node03");
  EXPECT_EQ(first_slurm_host("node[12,14]"), "node12");
  EXPECT_EQ(first_slurm_host("rack[1-2]-cpu"), "rack1-cpu");
  EXPECT_EQ(first_slurm_host("rack[1-2]-cpu,login1"), "rack1-cpu");
  EXPECT_EQ(first_slurm_host("rack[01-02]node[07-08,11],login1"), "rack01node07");
  EXPECT_EQ(first_slurm_host("tux[1,3-4]x[2,5]"), "tux1x2");
  EXPECT_EQ(first_slurm_host("gpu-a.example.org"), "gpu-a.example.org");
  EXPECT_EQ(first_slurm_host(""), "");
  EXPECT_THROW(first_slurm_host("node[03-05"), c10::Error);
  EXPECT_EQ(slurm_tasks("4(x2),3", 0), 4);
  EXPECT_EQ(slurm_tasks("4(x2),3", 1), 4);
  EXPECT_EQ(slurm_tasks("4(x2),3", 2), 3);
  EXPECT_EQ(slurm_tasks("4(x2),3", 3), std::nullopt);
  EXPECT_EQ(slurm_tasks("", 0), std::nullopt);
  EXPECT_EQ(slurm_tasks("many", 0), std::nullopt);
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
