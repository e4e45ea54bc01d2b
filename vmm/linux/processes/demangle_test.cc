#include "vmm/linux/processes/demangle.h"

#include <gtest/gtest.h>

#include <random>

namespace ringside::guest_linux {
namespace {

TEST(Demangle, NamesAreAsTheirProgrammersWroteThem) {
  EXPECT_EQ(demangle("_ZN4wars5fightEiPKc"), "wars::fight(int, char const*)");
  EXPECT_EQ(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(demangle("_RNvC7mycrate3foo"), "mycrate::foo");
}

TEST(Demangle, OthersStay) {
  for (const char* name : {"malloc", "", "_Z", "_ZN", "_Rx", "__libc_start_main", "Z4foov"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

TEST(Demangle, WhatWouldGrowWithoutEndStays) {
  const std::string deep = "_Z1f" + std::string(1000, 'P') + "i";
  EXPECT_LE(demangle(deep).size(), 1024u);
  // Each part names the one before twice: gigabytes.
  std::string doubled = "_Z1f1AIiiES_IS0_S0_E";
  for (const char c : std::string_view("123456789ABCDEFGHIJKLMNOPQRSTUV")) {
    doubled += std::string("S_IS") + c + "_S" + c + "_E";
  }
  EXPECT_EQ(demangle(doubled), doubled);
  const std::string large = "_ZN" + std::string(2000, 'a') + "E";
  EXPECT_EQ(demangle(large), large);
}

TEST(Demangle, AnythingCanBeAsked) {
  std::mt19937_64 random(1);
  constexpr std::string_view kLetters = "_ZNRES0123456789IJKPvialdTCt";
  for (unsigned round = 0; round < 50000; ++round) {
    std::string name = round % 2 == 0 ? "_Z" : "_R";
    for (std::size_t n = random() % 60; n > 0; --n) name += kLetters[random() % kLetters.size()];
    EXPECT_LE(demangle(name).size(), 1024u);
  }
}

}  // namespace
}  // namespace ringside::guest_linux
