#include "vmm/base/printable.h"

#include <gtest/gtest.h>

namespace ringside {
namespace {

TEST(Utf8, CharactersAreCountedInBytes) {
  EXPECT_EQ(character_length("a"), 1U);
  EXPECT_EQ(character_length("\u00e4x"), 2U);
  EXPECT_EQ(character_length("\u20ac"), 3U);
  EXPECT_EQ(character_length("\U0001f600"), 4U);
  for (const std::string_view none : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80", "\xff", "\xc3x"}) {
    EXPECT_EQ(character_length(none), 0U);
  }
}

TEST(Utf8, WhatATerminalWouldObeyIsSpelledOut) {
  EXPECT_EQ(terminal_text("a\tb\nc \u00e4\u20ac"), "a\tb\nc \u00e4\u20ac");
  EXPECT_EQ(terminal_text("\x1b[2J\r\x7f"), "\\033[2J\\r\\177");
  EXPECT_EQ(terminal_text("\xc2\x9b"
                          "31m"),
            "\\302\\23331m")
      << "C1: begins a sequence, too";
  EXPECT_EQ(terminal_text("\xff\xc3("), "\\377\\303(");
  EXPECT_EQ(terminal_text(std::string_view("\0", 1)), "\\000");
  EXPECT_EQ(terminal_text(""), "");
  EXPECT_EQ(terminal_text("a\tb\n\u00e4\x1b", Breaks::Escaped), "a\\tb\\n\u00e4\\033");
}

TEST(Grouped, HasACommaBetweenEachThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace ringside
