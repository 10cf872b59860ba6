#include <elf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "verify/explain.h"
#include "verify/numbers.h"
#include "verify/recordable.h"
#include "verify/text.h"
#include "verify_recordings.h"

namespace accelerate::launch {
namespace {

bool SameText(const std::string& a, const std::string& b, double tolerance) {
  double largest = 0;
  return !CompareText(a, b, tolerance, largest);
}

TEST(VerifyText, ComparesNumbersWithinTheTolerance) {
  EXPECT_TRUE(SameText("loss 0.5 at 3\n", "loss 0.5 at 3\n", 0));
  EXPECT_TRUE(SameText("loss 0.50001\n", "loss 0.50002\n", 1e-4));
  EXPECT_FALSE(SameText("loss 0.51\n", "loss 0.52\n", 1e-4));
  EXPECT_TRUE(SameText("loss 1e-3 nan\n", "loss 1.00001e-3 nan\n", 1e-4));
  EXPECT_FALSE(SameText("loss 1\n", "loss nan\n", 1e-4));
}

TEST(VerifyText, TakesTheLastOfFourDecimals) {
  EXPECT_TRUE(SameText("0.0001", "0.0002", 1e-6));
  EXPECT_FALSE(SameText("0.001", "0.002", 1e-6));
  EXPECT_FALSE(SameText("0.0001", "0.0003", 1e-6));
}

TEST(VerifyText, TakesTheLastOfSixDigits) {
  EXPECT_TRUE(SameText("71415.1", "71415", 1e-8));
  EXPECT_TRUE(SameText("71415.1", "71415.2", 1e-8));
  EXPECT_FALSE(SameText("71415.1", "71415.3", 1e-8));
  EXPECT_FALSE(SameText("7141.1", "7141.2", 1e-8));
  EXPECT_FALSE(SameText("0.001234", "0.001236", 1e-8));
}

TEST(VerifyText, WantsIntegersAndWordsToBeEqual) {
  EXPECT_FALSE(SameText("100000 rows", "100001 rows", 0.01));
  EXPECT_FALSE(SameText("epoch 1: good", "epoch 1: bad", 0.01));
  EXPECT_FALSE(SameText("a\nb\n", "a\n", 0.01));
  EXPECT_TRUE(SameText("10%\r20%\r\n\ndone", "10%\n20%\ndone  ", 0));
  double largest = 0;
  const auto difference = CompareText("a\nloss 4.5\n", "a\nloss 1.5\n", 1e-4, largest);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->line, 2U);
  EXPECT_NEAR(difference->ratio, 1.0 / 3, 1e-12);
}

TEST(VerifyText, Masks) {
  const std::vector<std::regex> masks = {std::regex("[0-9.]+ s")};
  EXPECT_EQ(Mask("loss 1 in 2.5 s, 3 s", masks), "loss 1 in <masked>, <masked>");
}

TEST(VerifyTolerance, GrowsWithTheSteps) {
  Tolerance tolerance;
  EXPECT_DOUBLE_EQ(tolerance.At("Float", 0), 256 * std::ldexp(1, -24));
  EXPECT_DOUBLE_EQ(tolerance.At("Float", 9), 2560 * std::ldexp(1, -24));
  EXPECT_DOUBLE_EQ(tolerance.At("Double", 0), 256 * std::ldexp(1, -53));
  EXPECT_DOUBLE_EQ(tolerance.At("Float", 1000000), 0.05);
  EXPECT_DOUBLE_EQ(tolerance.At("BFloat16", 0), 0.05);
  tolerance.first = 1e-3;
  EXPECT_DOUBLE_EQ(tolerance.At("Float", 1), 2e-3);
}

TEST(VerifyExplain, FindsACommonFactor) {
  EXPECT_NEAR(CommonFactor(Gradient(1), Times(Gradient(1), 3)), 3, 1e-9);
  EXPECT_EQ(CommonFactor(Gradient(1), Gradient(-1)), 0);
  EXPECT_EQ(CommonFactor({}, {}), 0);
}

TEST(VerifyExplain, FindsAPenalty) {
  const Prints values = Gradient(-2);
  Prints more = Gradient(1);
  for (auto& [position, print] : more) {
    for (std::size_t i = 0; i < print.sketch.size(); ++i) print.sketch[i] += 0.1 * values.at(position).sketch[i];
  }
  EXPECT_TRUE(IsPenalty(Gradient(1), more, values));
  EXPECT_FALSE(IsPenalty(Gradient(1), Gradient(2), values));
}

TEST(VerifyTraining, IsTheSame) {
  const Recording original = Train(0, 1, 5);
  EXPECT_TRUE(Compare(original, {original}).same());
  const RunReport report = Compare(original, {Train(0, 2, 5), Train(1, 2, 5)});
  EXPECT_TRUE(report.same()) << report.first->what;
  EXPECT_EQ(report.losses.size(), 5U);
}

TEST(VerifyTraining, WantsTheSameBitsAlone) {
  const Recording original = Train(0, 1, 5);
  Recording migrated = original;
  migrated.events[4].loss += 1e-9;
  const RunReport report = Compare(original, {migrated});
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->check, "losses");
  EXPECT_EQ(report.first->step, 2U);
  migrated = original;
  migrated.events[5].values[1].hash = "other";  // with the same sums
  ASSERT_FALSE(Compare(original, {migrated}).same());
  EXPECT_EQ(Compare(original, {migrated}).first->tensor, "bias [8]");
}

TEST(VerifyTraining, NamesTheRankAndTheTensor) {
  const Recording original = Train(0, 1, 5);
  std::vector<Recording> ranks = {Train(0, 3, 5), Train(1, 3, 5), Train(2, 3, 5)};
  ranks[2].events[7].gradients[1].hash = "other";
  const RunReport report = Compare(original, ranks);
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->explanation.kind, "not-reduced");
  EXPECT_EQ(report.first->rank, 2);
  EXPECT_EQ(report.first->step, 3U);
  EXPECT_EQ(report.first->tensor, "bias [8]");
}

TEST(VerifyTraining, TellsGrowthFromAJump) {
  const Recording original = Train(0, 1, 40);
  std::vector<Recording> ranks = {Train(0, 2, 40), Train(1, 2, 40)};
  double difference = 1e-7;
  for (std::size_t i = 0; i < ranks[0].events.size(); i += 2, difference *= 2) ranks[0].events[i].loss += difference;
  RunReport report = Compare(original, ranks);
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->explanation.kind, "rounding-grows");
  ranks = {Train(0, 2, 40), Train(1, 2, 40)};
  ranks[0].events[20].loss += 0.1;
  report = Compare(original, ranks);
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->explanation.kind, "other-rows-or-draws");
  EXPECT_EQ(report.first->step, 10U);
}

TEST(VerifyTraining, LetsAUnitTurnOver) {
  const Recording original = Train(0, 1, 10);
  const auto ranks = [](double change, std::initializer_list<std::size_t> steps) {
    std::vector<Recording> all = {Train(0, 2, 10), Train(1, 2, 10)};
    for (const std::size_t step : steps) {
      for (Recording& rank : all) {
        rank.events[2 * step + 1].gradients[0].sketch[0] += change;
        rank.events[2 * step + 1].gradients[0].hash = "other";
      }
    }
    return all;
  };
  EXPECT_TRUE(Compare(original, ranks(1e-3, {4, 7})).same());
  EXPECT_EQ(Compare(original, ranks(0.1, {4})).first->check, "gradients");         // more than a row's
  EXPECT_EQ(Compare(original, ranks(1e-3, {4, 6, 7})).first->check, "gradients");  // too often
  std::vector<Recording> with_consequences = ranks(1e-3, {4});
  for (Recording& rank : with_consequences) rank.events[14].loss *= 1.01;
  const RunReport report = Compare(original, with_consequences);
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->check, "gradients");
  EXPECT_EQ(report.first->step, 4U);
}

TEST(VerifyTraining, CountsSteps) {
  const RunReport report = Compare(Train(0, 1, 5), {Train(0, 2, 4), Train(1, 2, 4)});
  ASSERT_FALSE(report.same());
  EXPECT_EQ(report.first->explanation.kind, "sequence");
}

// Optimizers write the states of their parameters in the order of a hash table.
TEST(VerifyRecording, PutsStatesIntoOrder) {
  const std::string path = testing::TempDir() + "/verify_states.jsonl";
  std::ofstream file(path);
  file << R"({"event":"start","version":1,"rank":0,"world":1})" << "\n";
  for (const char* id : {"3", "5"}) {
    file << R"({"event":"tensor","kind":"parameter","name":"w","dtype":"Float","shape":[2],"id":)" << id << "}\n";
  }
  const auto save = [&](const char* key, const char* state_of) {
    file << R"({"event":"saved","key":")" << key << R"(","shape":[2],"dtype":"Float",)" << state_of
         << R"("value":[null,"ab",1,1,2,3,4,5,6,7,8]})" << "\n";
  };
  save("before", "");
  for (const char* key : {"exp_avg", "exp_avg_sq"}) save(key, R"("state_of":5,)");
  for (const char* key : {"exp_avg", "exp_avg_sq"}) save(key, R"("state_of":3,)");
  save("behind", "");
  file << R"({"event":"archive","name":"optimizer.pt"})" << "\n";
  file.close();
  const auto recording = ReadRecording(path);
  ASSERT_TRUE(recording);
  std::string order;
  for (const SavedTensor& saved : recording->saved) {
    EXPECT_EQ(saved.archive, "optimizer.pt");
    order += saved.key + (saved.state_of ? std::to_string(*saved.state_of) : "") + " ";
  }
  EXPECT_EQ(order, "before exp_avg0 exp_avg_sq0 exp_avg1 exp_avg_sq1 behind ");
}

TEST(VerifyRecording, ReadsWholeLines) {
  const std::string path = testing::TempDir() + "/verify_recording.jsonl";
  std::ofstream(path) << R"({"event":"start","version":1,"rank":1,"world":2})" << "\n"
                      << R"({"event":"tensor","id":7,"kind":"parameter","name":"w","dtype":"Float","shape":[2]})"
                      << "\n"
                      << R"({"event":"values","values":[[7,"ab",1,1,2,3,4,5,6,7,8]]})" << "\n"
                      << R"({"event":"backward","n":0,"loss":"nan","dtype":"Float",)"
                      << R"("gradients":[[7,"cd",2,1,2,3,4,5,6,7,8]]})" << "\n"
                      << R"({"event":"saved","key":"w","shape":[2],"dtype":"Float","value":[7,"ef",2,1,2,3,4,5,6,7,8]})"
                      << "\n"
                      << R"({"event":"archive","name":"net.pt"})" << "\n"
                      << R"({"event":"step","n":0,"optimizer":0,"kind":"SGD","gradients":[[7]]})" << "\n"
                      << R"({"event":"name","id":7,"name":"fc.w"})" << "\n"
                      << R"({"event":"saved","key":"0","shape":[],"dtype":"Long",)"
                      << R"("value":[null,"01",1,1,1,1,1,1,1,1,1]})" << "\n"
                      << R"({"event":"stepped","values":[[7,)";
  const auto recording = ReadRecording(path);
  ASSERT_TRUE(recording);
  EXPECT_TRUE(recording->cut_off);
  EXPECT_EQ(recording->rank, 1);
  ASSERT_EQ(recording->events.size(), 2U);
  EXPECT_TRUE(std::isnan(recording->events[0].loss));
  EXPECT_EQ(recording->events[0].values.at(0).hash, "ab");
  EXPECT_EQ(recording->events[1].gradients.at(0).hash, "cd");
  EXPECT_EQ(recording->tensors[0].Describe(0), "fc.w [2]");
  ASSERT_EQ(recording->saved.size(), 2U);
  EXPECT_EQ(recording->saved[0].archive, "net.pt");
  EXPECT_EQ(recording->saved[0].position, 0U);
  EXPECT_EQ(recording->saved[0].steps, 0U);
  EXPECT_EQ(recording->saved[0].print.hash, "ef");
  EXPECT_EQ(recording->saved[1].archive, "");  // it hasn't ended
  EXPECT_EQ(recording->saved[1].archive_number, 1U);
  EXPECT_EQ(recording->saved[1].steps, 1U);
  EXPECT_FALSE(recording->saved[1].position);
  EXPECT_FALSE(ReadRecording(path + ".absent"));
  std::ofstream(path) << R"({"event":"start","version":2,"rank":0,"world":1})" << "\n";
  EXPECT_THROW(ReadRecording(path), std::runtime_error);
}

template <typename Number>
std::string BytesOf(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

TEST(VerifyNumbers, FilesOfNumbersAreReadAsSuch) {
  std::vector<float> floats;
  std::vector<double> doubles;
  for (int i = 0; i < 40; ++i) {
    floats.push_back(std::sin(static_cast<float>(i)));
    doubles.push_back(std::cos(static_cast<double>(i)));
  }
  const auto scaled = [](auto numbers, double factor) {
    for (auto& x : numbers) x = static_cast<std::decay_t<decltype(x)>>(x * factor);
    return numbers;
  };
  for (const char* head : {"", "P", "head", "header!"}) {  // at any alignment
    SCOPED_TRACE(head);
    const auto distance = [&](const auto& a, const auto& b) {
      return NumberDistance(head + BytesOf(a), head + BytesOf(b)).value_or(-1);
    };
    EXPECT_NEAR(distance(floats, scaled(floats, 1.00001)), 1e-5, 1e-6);
    EXPECT_NEAR(distance(doubles, scaled(doubles, 1 + 1e-12)), 1e-12, 1e-13);
    EXPECT_NEAR(distance(floats, scaled(floats, 0.5)), 0.5, 1e-6);
    EXPECT_GT(distance(doubles, scaled(doubles, 0.5)), 0.01);
  }
  const std::string levels = {10, 20, 30, 40}, others = {10, 21, 29, 40};
  EXPECT_EQ(NumberDistance(levels, others), 0.0);
  EXPECT_EQ(NumberDistance("1234", "12345"), std::nullopt);
  // Compressed data, of which nothing can be said.
  std::mt19937 random(1);
  std::string a, b;
  for (int i = 0; i < 400; ++i) {
    a += static_cast<char>(random());
    b += static_cast<char>(random());
  }
  EXPECT_EQ(NumberDistance(a, b), std::nullopt);
}

// This program isn't linked with LibTorch's libraries, and has a name of LibTorch's in it.
__attribute__((used)) const char name_of_torch[] = "N5torch2nn6ModuleE";

TEST(VerifyRecordable, SaysWhatIsInTheWay) {
  const auto says = [](const std::string& program, const char* text) {
    return WhyNotRecorded(program).find(text) != std::string::npos;
  };
  EXPECT_TRUE(says("/proc/self/exe", "has LibTorch linked in statically"));
  EXPECT_TRUE(says("/bin/true", "has to be an executable that is linked with LibTorch's shared libraries"));
  EXPECT_TRUE(says("", "has to be an executable"));
  const std::string path = testing::TempDir() + "/verify_recordable";
  std::ofstream(path) << "#!/bin/sh\nexec ./train\n";
  EXPECT_TRUE(says(path, "is a script"));
  // The same program without the request for a loader.
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(self)), std::istreambuf_iterator<char>());
  ASSERT_GT(bytes.size(), sizeof(Elf64_Ehdr));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.e_phnum = 0;
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_TRUE(says(path, "is linked statically"));
  std::ofstream(path, std::ios::binary) << bytes.substr(0, 20);
  EXPECT_TRUE(says(path, "is linked statically"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace accelerate::launch
