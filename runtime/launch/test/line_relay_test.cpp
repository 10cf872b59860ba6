#include "line_relay.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace accelerate::launch {
namespace {

// Passes `pieces` through a relay, one at a time, and returns what comes out.
std::string Relay(const std::vector<std::string>& pieces, std::vector<std::string>* last_lines = nullptr) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  EXPECT_EQ(pipe(in.data()), 0);
  EXPECT_EQ(pipe(out.data()), 0);
  LineRelay relay(in[0], out[1], "[rank 1] ");
  for (const std::string& piece : pieces) {
    EXPECT_EQ(write(in[1], piece.data(), piece.size()), static_cast<ssize_t>(piece.size()));
    relay.Pump();
  }
  close(in[1]);
  relay.Finish();
  EXPECT_FALSE(relay.is_open());
  close(out[1]);
  if (last_lines != nullptr) *last_lines = relay.last_lines();
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t size = 0; (size = read(out[0], buffer.data(), buffer.size())) > 0;) text.append(buffer.data(), size);
  close(out[0]);
  return text;
}

TEST(LineRelay, PrefixesWholeLines) {
  EXPECT_EQ(Relay({"on", "e\ntwo\n\nla", "st"}), "[rank 1] one\n[rank 1] two\n[rank 1] \n[rank 1] last\n");
}

TEST(LineRelay, KeepsTheLastStateOfAProgressBar) {
  EXPECT_EQ(Relay({"\r 10%", "\r 50%\r", "100%\ndone\r\n"}), "[rank 1] 100%\n[rank 1] done\n");
}

TEST(LineRelay, PassesNothingOfNothing) { EXPECT_EQ(Relay({}), ""); }

TEST(LineRelay, RemembersTheLastLines) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += std::to_string(i) + "\n";
  std::vector<std::string> last_lines;
  Relay({text}, &last_lines);
  ASSERT_EQ(last_lines.size(), 10);
  EXPECT_EQ(last_lines.front(), "15");
  EXPECT_EQ(last_lines.back(), "24");
}

TEST(LineRelay, RemembersNoBacktraces) {
  std::string text =
      "terminate called\n  what():  boom\nException raised from f at a.cpp:1 (most recent call first):\n";
  text += "C++ CapturedTraceback:\n";
  for (int i = 4; i < 25; ++i) text += "#" + std::to_string(i) + " c10::Error::Error(std::string) from ??:0\n";
  text += "frame #0: f + 0x1\n#4 of 7 samples are bad\n";
  std::vector<std::string> last_lines;
  Relay({text}, &last_lines);
  EXPECT_EQ(last_lines, (std::vector<std::string>{"terminate called", "  what():  boom", "#4 of 7 samples are bad"}));
}

}  // namespace
}  // namespace accelerate::launch
