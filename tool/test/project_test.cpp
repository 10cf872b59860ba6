// Which files are the user's, to be edited.
#include "project/Project.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace llvm;
using namespace migrate;

TEST(Project, OwnsItsSourcesAndNoCopyOfTheRuntime) {
  SmallString<128> Root;
  ASSERT_FALSE(sys::fs::createUniqueDirectory("project", Root));
  auto Put = [&](const Twine &Name) {
    std::string Path = (Root + "/" + Name).str();
    ASSERT_FALSE(sys::fs::create_directories(sys::path::parent_path(Path)));
    std::error_code EC;
    raw_fd_ostream OS(Path, EC);
    ASSERT_FALSE(EC) << EC.message();
  };
  Put("third_party/accelerate-migrate/runtime/include/accelerate/accelerate.h");
  Project P;
  P.SourceRoot = Root.str().str();
  P.BuildDir = (Root + "/build").str();
  auto Owns = [&](const Twine &Name) { return P.owns((Root + "/" + Name).str()); };
  EXPECT_TRUE(Owns("train.cpp"));
  EXPECT_TRUE(Owns("third_party/other/net.h"));
  EXPECT_FALSE(Owns("build/generated.h"));
  EXPECT_FALSE(Owns("third_party/accelerate-migrate/runtime/include/accelerate/accelerator.h"));
  EXPECT_FALSE(Owns("third_party/accelerate-migrate/runtime/src/backward.cpp"));
  EXPECT_FALSE(Owns("third_party/accelerate-migrate/examples/mnist/mnist.cpp"));
  // The runtime's own tree is a project as any other.
  P.SourceRoot = (Root + "/third_party/accelerate-migrate").str();
  EXPECT_TRUE(Owns("third_party/accelerate-migrate/examples/mnist/mnist.cpp"));
  EXPECT_FALSE(Owns("third_party/accelerate-migrate/runtime/src/backward.cpp"));
  sys::fs::remove_directories(Root);
}
