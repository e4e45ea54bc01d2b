#include "vmm/text_tail.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

TEST(TextTail, KeepsTheLastWholeLinesOfALongText) {
  TextTail tail(100);
  for (int i = 0; i < 10'000; ++i) tail.append("line " + std::to_string(i) + "\r\n");

  EXPECT_LE(tail.text().size(), 220u);
  EXPECT_TRUE(tail.text().starts_with("line "));
  EXPECT_TRUE(tail.text().ends_with("line 9998\nline 9999\n"));
}

TEST(TextTail, BoundsATextWithoutLines) {
  TextTail tail(100);
  for (int i = 0; i < 100; ++i) tail.append(std::string(1000, 'x'));

  EXPECT_LE(tail.text().size(), 1200u);
}

TEST(TextTail, LetsNothingThroughThatATerminalWouldObey) {
  TextTail tail(100);
  tail.append(std::string_view("a\x1b[31mb\x07\x00\x9b\tc\n", 13));

  EXPECT_EQ(tail.text(), "a?[31mb???\tc\n");
}

TEST(TextTail, FindsTheLastLineThatIsNotBlank) {
  TextTail tail(100), blank(100);
  tail.append("first\nsecond\n \n\n");
  blank.append("\n \n");

  EXPECT_EQ(tail.last_line(), "second");
  EXPECT_EQ(blank.last_line(), "");
}

}  // namespace
}  // namespace ringside::vmm
