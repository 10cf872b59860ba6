// All files or none, whatever happens to the process that writes them.
#include "edit/WriteTree.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace migrate;

namespace {

class WriteTreeTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(sys::fs::createUniqueDirectory("write-tree", Root));
    SmallString<128> Real;
    ASSERT_FALSE(sys::fs::real_path(Root, Real));
    Root = Real;
  }
  void TearDown() override { sys::fs::remove_directories(Root); }

  std::string path(const Twine &Name) const { return (Root + "/" + Name).str(); }
  void put(const std::string &Path, StringRef Text) {
    std::error_code EC;
    raw_fd_ostream OS(Path, EC);
    ASSERT_FALSE(EC) << EC.message();
    OS << Text;
  }
  std::string get(const std::string &Path) {
    auto Buffer = MemoryBuffer::getFile(Path, false, false);
    return Buffer ? (*Buffer)->getBuffer().str() : "(none)";
  }
  std::string errorOf(Error E) { return llvm::toString(std::move(E)); }
  size_t entries() {
    size_t N = 0;
    std::error_code EC;
    for (sys::fs::directory_iterator It(Root, EC), End; !EC && It != End; It.increment(EC))
      ++N;
    return N;
  }

  SmallString<128> Root;
};

TEST_F(WriteTreeTest, WritesAllAndLeavesNothingBehind) {
  put(path("a"), "old a");
  put(path("b"), "old b");
  ASSERT_EQ(chmod(path("a").c_str(), 0640), 0);
  EXPECT_EQ(errorOf(writeTree(Root, {{path("a"), {"old a", "new a"}}, {path("b"), {"old b", ""}}})), "");
  EXPECT_EQ(get(path("a")), "new a");
  EXPECT_EQ(get(path("b")), "");
  struct stat S;
  ASSERT_EQ(stat(path("a").c_str(), &S), 0);
  EXPECT_EQ(S.st_mode & 0777, 0640u);
  EXPECT_EQ(entries(), 2u);
}

TEST_F(WriteTreeTest, AFileThatSomebodyElseChangedStopsAll) {
  put(path("a"), "old a");
  put(path("b"), "theirs");
  std::string Message = errorOf(writeTree(Root, {{path("a"), {"old a", "new a"}}, {path("b"), {"old b", "new b"}}}));
  EXPECT_NE(Message.find("has been changed while it was being analysed; nothing was changed"), std::string::npos)
      << Message;
  EXPECT_EQ(get(path("a")), "old a");
  EXPECT_EQ(get(path("b")), "theirs");
  EXPECT_EQ(entries(), 2u);
}

TEST_F(WriteTreeTest, AFileThatIsGoneStopsAll) {
  put(path("a"), "old a");
  EXPECT_NE(errorOf(writeTree(Root, {{path("a"), {"old a", "new a"}}, {path("b"), {"old b", "new b"}}})), "");
  EXPECT_EQ(get(path("a")), "old a");
}

TEST_F(WriteTreeTest, NothingToRecover) {
  Expected<Recovery> Done = recoverTree(Root);
  ASSERT_TRUE(static_cast<bool>(Done));
  EXPECT_EQ(*Done, Recovery::NothingToDo);
}

TEST_F(WriteTreeTest, ARunKilledBeforeItsJournalIsUndone) {
  put(path("a"), "old a");
  ASSERT_FALSE(sys::fs::create_directory(path(WriteFolder)));
  put(path(Twine(WriteFolder) + "/0"), "half of a te");
  Expected<Recovery> Done = recoverTree(Root);
  ASSERT_TRUE(static_cast<bool>(Done));
  EXPECT_EQ(*Done, Recovery::Undone);
  EXPECT_EQ(get(path("a")), "old a");
  EXPECT_EQ(entries(), 1u);
}

// A process that writes hundreds of files again and again is killed 200 times at random moments. What is left, after
// recovery, is all old or all new; both must have been seen, or the test has shown nothing.
TEST_F(WriteTreeTest, KilledTwoHundredTimes) {
  constexpr int Files = 40, Kills = 200;
  auto TextOf = [](int Version, int File) {
    return "version " + std::to_string(Version) + " of file " + std::to_string(File) + std::string(2000, 'x');
  };
  for (int F = 0; F != Files; ++F)
    put(path("f" + Twine(F)), TextOf(0, F));
  int Version = 0, Undone = 0, Completed = 0, Between = 0;
  // How long a write takes depends on what else runs: the time is doubled while none gets to its end.
  unsigned Random = 12345, Longest = 30000, Early = 0;
  for (int Kill = 0; Kill != Kills; ++Kill) {
    pid_t Child = fork();
    ASSERT_GE(Child, 0);
    if (Child == 0) {
      for (int V = Version;; ++V) {
        TextChanges Changes;
        for (int F = 0; F != Files; ++F)
          Changes[path("f" + Twine(F))] = {TextOf(V, F), TextOf(V + 1, F)};
        if (Error E = writeTree(Root, Changes)) {
          consumeError(std::move(E));
          _exit(1);
        }
      }
    }
    Random = Random * 1664525u + 1013904223u;
    usleep(Random % Longest);
    ASSERT_EQ(kill(Child, SIGKILL), 0);
    int Status = 0;
    ASSERT_EQ(waitpid(Child, &Status, 0), Child);
    ASSERT_TRUE(WIFSIGNALED(Status)) << "a write failed by itself";
    Expected<Recovery> Done = recoverTree(Root);
    ASSERT_TRUE(static_cast<bool>(Done)) << llvm::toString(Done.takeError());
    Early = *Done == Recovery::Completed ? 0 : Early + 1;
    if (Early == 20)
      Longest *= 2, Early = 0;
    Undone += *Done == Recovery::Undone;
    Completed += *Done == Recovery::Completed;
    Between += *Done == Recovery::NothingToDo;
    std::string First = get(path("f0"));
    ASSERT_EQ(sscanf(First.c_str(), "version %d", &Version), 1) << First.substr(0, 40);
    for (int F = 0; F != Files; ++F)
      ASSERT_EQ(get(path("f" + Twine(F))), TextOf(Version, F)) << "kill " << Kill;
    ASSERT_EQ(entries(), static_cast<size_t>(Files));
  }
  std::printf("undone %d, completed %d, between two writes %d; %d versions\n", Undone, Completed, Between, Version);
  EXPECT_GT(Undone, 0);
  EXPECT_GT(Completed, 0);
  EXPECT_GT(Version, 0);
}

} // namespace
