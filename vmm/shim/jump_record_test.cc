#include "vmm/shim/jump_record.h"

#include <gtest/gtest.h>

namespace ringside::vmm {
namespace {

constexpr GuestVirt kAddress{0xffffffff81234567}, kJumpPlace{0xffffffff83400123},
    kEntry{0xffffffff83200080};

TEST(JumpRecord, IsReadAsItWasWritten) {
  const JumpRecord record{.address = kAddress, .replaced = {std::byte{0x55}, std::byte{0x48}}};

  const auto read = JumpRecord::decode(record.encode(kJumpPlace, kEntry), kJumpPlace, kEntry);

  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->address, kAddress);
  EXPECT_EQ(read->replaced, record.replaced);
}

TEST(JumpRecord, OfATrapPointThatRecordsCallsTheOtherEntry) {
  const JumpRecord waits{.address = kAddress, .replaced = {}};
  const JumpRecord records{.address = kAddress, .replaced = {}, .recording = 7};
  const auto waiting = waits.encode(kJumpPlace, kEntry);
  const auto recording = records.encode(kJumpPlace, kEntry);

  EXPECT_NE(waiting, recording);
  constexpr std::uint64_t kApart = SHIM_RECORDING_JUMP_ENTRY - SHIM_JUMP_ENTRY;
  auto expected = waits.encode(kJumpPlace, kEntry.wrapping_add(kApart));
  expected[0] = std::byte{7};
  EXPECT_EQ(recording, expected);
  const auto first = JumpRecord::decode(waiting, kJumpPlace, kEntry);
  const auto second = JumpRecord::decode(recording, kJumpPlace, kEntry);
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(first->recording);
  EXPECT_EQ(second->recording, 7);
  EXPECT_EQ(second->address, kAddress);
  const JumpRecord beyond{.address = kAddress, .replaced = {}};
  EXPECT_FALSE(JumpRecord::decode(beyond.encode(kJumpPlace, kEntry.wrapping_add(2 * kApart)),
                                  kJumpPlace, kEntry));
}

TEST(JumpRecord, CallsTheShimWithInterruptsOff) {
  const auto bytes = JumpRecord{.address = kAddress, .replaced = {}}.encode(kJumpPlace, kEntry);

  EXPECT_EQ(bytes[JumpRecord::kEntry], std::byte{0x9c}) << "pushfq";
  EXPECT_EQ(bytes[JumpRecord::kEntry + 1], std::byte{0xfa}) << "cli";
  EXPECT_EQ(bytes[JumpRecord::kEntry + 2], std::byte{0xe8}) << "call";
  EXPECT_EQ(bytes[JumpRecord::kEntry + SHIM_JUMP_CALL_END], std::byte{0x9d}) << "popfq";
}

TEST(JumpRecord, IsNoneWhereOneByteOfItsCodeIsAnother) {
  const auto bytes = JumpRecord{.address = kAddress, .replaced = {}}.encode(kJumpPlace, kEntry);
  for (std::size_t n = JumpRecord::kEntry; n < bytes.size(); ++n) {
    auto changed = bytes;
    changed[n] ^= std::byte{1};
    EXPECT_FALSE(JumpRecord::decode(changed, kJumpPlace, kEntry)) << n;
  }
  EXPECT_FALSE(JumpRecord::decode(bytes, kJumpPlace.wrapping_add(1), kEntry)) << "it calls another";
}

TEST(JumpBetween, ReachesTwoGigabytes) {
  const auto there = jump_between(kAddress, kJumpPlace), back = jump_between(kJumpPlace, kAddress);

  ASSERT_TRUE(there && back);
  EXPECT_EQ(jump_target(kAddress, *there), kJumpPlace);
  EXPECT_EQ(jump_target(kJumpPlace, *back), kAddress);
  const GuestVirt last(kAddress.raw() + 5 + 0x7fffffff);
  EXPECT_TRUE(jump_between(kAddress, last));
  EXPECT_FALSE(jump_between(kAddress, last.wrapping_add(1)));
  EXPECT_FALSE(jump_target(kAddress, {std::byte{0xe8}}));
}

}  // namespace
}  // namespace ringside::vmm
