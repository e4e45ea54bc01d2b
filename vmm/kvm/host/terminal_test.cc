#include "vmm/kvm/host/terminal.h"

#include <gtest/gtest.h>

#include <string>

namespace ringside::vmm::kvm {
namespace {

TerminalKeys::Typed take(TerminalKeys& keys, std::string_view typed) {
  return keys.take(std::as_bytes(std::span(typed)));
}

std::string text(const TerminalKeys::Typed& typed) {
  std::string all;
  for (const std::byte key : typed.guests) all += static_cast<char>(key);
  return all;
}

TEST(TerminalKeys, AreTheGuestsButForCommands) {
  TerminalKeys keys;

  EXPECT_EQ(text(take(keys, "ls x\r\x03\x04")), "ls x\r\x03\x04");
  const auto help = take(keys, "a\x01hb");
  EXPECT_EQ(text(help), "ab");
  EXPECT_TRUE(help.help);
  EXPECT_FALSE(help.end);
  EXPECT_TRUE(take(keys, "\x01x").end);
  EXPECT_EQ(text(take(keys, "\x01q\x01\x01\x01")), "\x01") << "an unknown command is none";
}

TEST(TerminalKeys, ACommandMayComeInTwoParts) {
  TerminalKeys keys;

  EXPECT_EQ(text(take(keys, "\x01")), "");
  EXPECT_TRUE(take(keys, "x").end);
  EXPECT_EQ(text(take(keys, "x")), "x");
}

}  // namespace
}  // namespace ringside::vmm::kvm
