#include "command.h"

#include <gtest/gtest.h>

namespace accelerate::launch {
namespace {

using Words = std::vector<std::string>;

// Splits `arguments` as launch does; the rest stays in `arguments`.
Words Take(Words& arguments) {
  CLI::App app;
  Words unused;
  Action action;
  AddLaunchCommand(app, unused, action);
  return TakeProgram(*app.get_subcommand("launch"), arguments);
}

TEST(TakeProgram, BeginsAfterTheDashes) {
  Words arguments = {"-n", "2", "--", "-odd", "--cpu"};
  EXPECT_EQ(Take(arguments), (Words{"-odd", "--cpu"}));
  EXPECT_EQ(arguments, (Words{"-n", "2"}));
}

TEST(TakeProgram, BeginsAtTheFirstWord) {
  Words arguments = {"--num-processes", "2", "--cpu", "-n=3", "--gpu_ids=0,1", "./train", "-n", "5", "--", "x"};
  EXPECT_EQ(Take(arguments), (Words{"./train", "-n", "5", "--", "x"}));
  EXPECT_EQ(arguments, (Words{"--num-processes", "2", "--cpu", "-n=3", "--gpu_ids=0,1"}));
}

TEST(TakeProgram, TakesAProgramNamedAsACommand) {
  Words arguments = {"-n2", "env", "config"};
  EXPECT_EQ(Take(arguments), (Words{"env", "config"}));
  EXPECT_EQ(arguments, (Words{"-n2"}));
}

TEST(TakeProgram, MayFindNone) {
  Words arguments = {"-n"};
  EXPECT_EQ(Take(arguments), Words{});
  EXPECT_EQ(arguments, (Words{"-n"}));
}

TEST(ConfigurationFlags, HaveBothSpellings) {
  CLI::App app;
  ConfigurationFlags flags;
  flags.AddTo(app);
  app.parse("--num-processes 4 --mixed_precision BF16 --cpu=false --debug");
  const Configuration configuration = flags.Read();
  EXPECT_EQ(configuration.num_processes, 4);
  EXPECT_EQ(configuration.mixed_precision, "bf16");
  EXPECT_EQ(configuration.use_cpu, false);
  EXPECT_EQ(configuration.debug, true);
  EXPECT_FALSE(configuration.num_machines);
  EXPECT_EQ(configuration.sources.at("num_processes"), "--num_processes");
}

TEST(ConfigurationFlags, NameTheFlagThatIsWrong) {
  CLI::App app;
  ConfigurationFlags flags;
  flags.AddTo(app);
  app.parse("-n 0");
  try {
    flags.Read();
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--num_processes: '0' is not a whole number from 1 to 1048576");
  }
}

}  // namespace
}  // namespace accelerate::launch
