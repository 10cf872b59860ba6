// What is read back is what was written, and damage is noticed.
#include "units/Serialise.h"
#include "gtest/gtest.h"

using namespace migrate;

namespace {

ReadUnit example() {
  ReadUnit U;
  U.Unit.Source = "/src/train.cpp";
  U.Unit.HasMain = true;
  U.Unit.Files.push_back({"/src/train.cpp", true, {0, 24}, {"<torch/torch.h>", "\"net.h\""}});
  ir::Expr E;
  E.Kind = ir::ExprKind::Call;
  E.Name = "at::Tensor::backward";
  E.Where = {0, 300, 320, 12, 5, true};
  E.Args = {1, ir::None, 0};
  U.Unit.Exprs = {E, ir::Expr()};
  ir::RuleMatch M;
  M.Rule = 3;
  M.Nodes["call"] = 0;
  U.Unit.Matches.push_back(M);
  ir::Function F;
  F.Usr = "c:@F@main#";
  F.Inits = {{7, 1}};
  F.Main = true;
  U.Unit.Functions.push_back(F);
  U.Own.push_back(Dependency::text("/src/train.cpp", "int main() {}"));
  U.System.push_back({Dependency::Kind::Missing, "/src/torch/torch.h", {}});
  return U;
}

TEST(Serialise, ReadsWhatWasWritten) {
  std::string Bytes = serialise(example());
  std::optional<ReadUnit> U = deserialise(Bytes);
  ASSERT_TRUE(U);
  EXPECT_EQ(serialise(*U), Bytes);
  EXPECT_EQ(U->Unit.Exprs[0].Name, "at::Tensor::backward");
  EXPECT_EQ(U->Unit.Exprs[0].Args, (std::vector<ir::ExprId>{1, ir::None, 0}));
  EXPECT_TRUE(U->Unit.Exprs[0].Where.Editable);
  EXPECT_EQ(U->Unit.Exprs[0].Where.End, 320u);
  EXPECT_EQ(U->Unit.Exprs[1].Var, ir::None);
  EXPECT_EQ(U->Unit.Matches[0].Nodes.at("call"), 0u);
  EXPECT_EQ(U->Unit.Functions[0].Inits[0].first, 7u);
  EXPECT_EQ(U->Own[0].Hash[0], example().Own[0].Hash[0]);
  EXPECT_EQ(U->System[0].What, Dependency::Kind::Missing);
}

TEST(Serialise, NoticesEveryDamagedByte) {
  std::string Bytes = serialise(example());
  for (size_t I = 0; I != Bytes.size(); ++I) {
    std::string Damaged = Bytes;
    Damaged[I] ^= 0x40;
    EXPECT_FALSE(deserialise(Damaged)) << "byte " << I;
    EXPECT_FALSE(deserialise(Bytes.substr(0, I))) << "cut at " << I;
  }
}

TEST(Serialise, DependenciesHold) {
  DependencyCheck Check;
  EXPECT_FALSE(Check.holds(Dependency::text("/nowhere/at/all", "text")));
  EXPECT_TRUE(Check.holds({Dependency::Kind::Missing, "/nowhere/at/all", {}}));
  EXPECT_TRUE(Check.holds({Dependency::Kind::Folder, "/", {}}));
  EXPECT_FALSE(Check.holds({Dependency::Kind::Missing, "/", {}}));
  Overlay Edited = {{"/nowhere/at/all", "text"}};
  DependencyCheck Over(Edited);
  EXPECT_TRUE(Over.holds(Dependency::text("/nowhere/at/all", "text")));
  EXPECT_FALSE(Over.holds(Dependency::text("/nowhere/at/all", "other")));
  EXPECT_FALSE(Over.holds({Dependency::Kind::Missing, "/nowhere/at/all", {}}));
}

} // namespace
