// Tracepoints that are jumps in an int3's stead.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "providers/tracepoint/tracepoints_for_tests.h"
#include "vmm/shim/jump_record.h"

namespace ringside::providers {
namespace {

using namespace tracepoint_fakes;
using Range = guest_linux::Kernel::AddressRange;

/// f: ftrace nop, push rbp, lea rax [rip], ret: at 5 a jump may displace push and lea.
class Jumps : public Tracepoints {
 protected:
  Jumps() {
    shim_.entry_of_jumps = GuestVirt(kSlots.raw() - 0x1000);
    table_.use_jumps(
        [this](vmm::PausedMachine&, std::span<const Range> ranges) {
          asked_.assign(ranges.begin(), ranges.end());
          return standing_;
        },
        [this](vmm::PausedMachine&, Range) -> Result<bool> { return is_inside_; });
  }
  /// Whether it was known who stands there.
  bool arm_jumps() {
    table_.prepare_jumps();
    auto paused = pause();
    const bool known = table_.find_standing(paused).has_value();
    armed_ = table_.arm(paused);
    return known;
  }
  void disarm() {
    auto paused = pause();
    ASSERT_TRUE(table_.disarm(paused));
  }
  /// The byte that stands there once a tracepoint of another kernel's is armed, and nobody is in
  /// the way of its jump.
  std::byte armed_in(FakeMachine& machine, FakeKernel& kernel, std::uint64_t offset) {
    shim_.entries.clear();
    TracepointTable table(machine, shim_, kernel);
    table.use_jumps([](auto&, auto) { return std::vector<GuestVirt>(); },
                    [](auto&, auto) { return false; });
    EXPECT_TRUE(table.examine_and_add(at(offset)));
    table.prepare_jumps();
    auto paused = std::move(*vmm::PausedMachine::pause(machine));
    EXPECT_TRUE(table.find_standing(paused));
    EXPECT_TRUE(table.arm(paused));
    return machine.text(offset);
  }
  vmm::JumpBytes text_at(std::uint64_t offset) const {
    vmm::JumpBytes bytes;
    for (std::size_t n = 0; n < bytes.size(); ++n) bytes[n] = machine_.text(offset + n);
    return bytes;
  }
  /// Where the jump there leads to; empty when it is none.
  std::optional<GuestVirt> target(std::uint64_t offset) const {
    return vmm::jump_target(at(offset), text_at(offset));
  }
  static vmm::JumpBytes bytes_of(const std::vector<std::byte>& code) {
    vmm::JumpBytes bytes{};
    std::copy_n(code.begin(), std::min(bytes.size(), code.size()), bytes.begin());
    return bytes;
  }

  const vmm::JumpBytes original_ = bytes_of(code({0x55, 0x48, 0x8d, 0x05, 0}));
  Result<std::vector<GuestVirt>> standing_;
  std::vector<Range> asked_;
  bool is_inside_ = false;
  Result<void> armed_;
};

TEST_F(Jumps, StandWhereWholeInstructionsGiveFiveBytes) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));  // ret: one byte, and what is behind it is no part of the function

  EXPECT_TRUE(arm_jumps());

  ASSERT_TRUE(armed_) << armed_.error().message;
  const auto entry = target(0x005);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(table_.armed(), 2u);
  const GuestVirt place = entry->wrapping_add(-std::uint64_t{vmm::JumpRecord::kEntry});
  std::vector<std::byte> held{shim_.replaced.at(place.wrapping_add(1))};
  const auto& rest = shim_.slots.at(place.wrapping_add(1));
  held.insert(held.end(), rest.begin(), rest.end());
  vmm::JumpRecord::Bytes head;
  std::copy_n(held.begin(), head.size(), head.begin());
  const auto record = vmm::JumpRecord::decode(head, place, *shim_.entry_of_jumps);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->address, at(0x005));
  EXPECT_EQ(record->replaced, original_);
  ASSERT_EQ(held.size(), head.size() + 1 + 7 + 5) << "push, lea, and one jump back";
  EXPECT_EQ(held[head.size()], std::byte{0x55});
  EXPECT_EQ(held[head.size() + 1], std::byte{0x48});
  EXPECT_EQ(held[head.size() + 8], std::byte{0xe9});
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].begin, at(0x006));
  EXPECT_EQ(asked_[0].end, at(0x00a));
  EXPECT_EQ(asked_[1].begin, kSlots);
  EXPECT_EQ(asked_[1].end, kSlots.wrapping_add(kSlotBytes));
}

TEST_F(Jumps, AreTakenBackWhole) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  EXPECT_EQ(table_.jumps(), 1u);

  disarm();

  EXPECT_EQ(text_at(0x005), original_);
  EXPECT_EQ(table_.armed(), 0u);
  EXPECT_FALSE(table_.any_armed());
}

/// The kernel's int3 in the first byte of a jump would lead to a slot, and from there into the
/// middle of the jump.
TEST_F(Jumps, LeaveAnInt3InTheirFirstByteToTheGuest) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(shim_.entries.contains(at(0x00d))) << "an int3 of ours";
  auto paused = pause();

  ASSERT_TRUE(table_.step_aside(paused, at(0x006)));
  ASSERT_TRUE(table_.step_back(paused));

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(shim_.entries.contains(at(0x005))) << "it is ours now";
}

TEST_F(Jumps, AreKnownAgainAsInt3s) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  disarm();
  ASSERT_FALSE(shim_.entries.contains(at(0x005)));

  arm();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
}

TEST_F(Jumps, AreNotInTheOriginalText) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));

  std::array<std::byte, 3> inside;
  ASSERT_TRUE(table_.original_text().read(at(0x007), inside));
  EXPECT_TRUE(std::ranges::equal(inside, std::span(original_).subspan(2)));
  EXPECT_EQ(reason(0x00d), "allowed") << "a sweep goes through it";
}

TEST_F(Jumps, TellWhereEachDisplacedInstructionWas) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);

  const GuestVirt code = entry->wrapping_add(SHIM_JUMP_CALL_END + 1);
  std::map<GuestVirt, std::pair<GuestVirt, unsigned>> told;
  for (const auto& slot : table_.slots()) told[slot.begin] = {slot.address, slot.size};
  EXPECT_EQ(told.at(*entry), std::pair(at(0x005), 1u));
  EXPECT_EQ(told.at(code), std::pair(at(0x005), 1u));
  EXPECT_EQ(told.at(code.wrapping_add(1)), std::pair(at(0x006), 12u)) << "with the jump back";
}

TEST_F(Jumps, GiveWayToWhoStandsInTheMiddle) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = std::vector{at(0x006)};

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), original_[1]);
}

/// An int3 once stood in the jump's last byte: a trap of it that the shim has yet to look up has
/// the next byte's address on its stack, and goes back to that last byte.
TEST_F(Jumps, GiveWayToALateTrapOfAPointInTheirLastByte) {
  // add rax, 1; push rax; nops and ret
  machine_.put(0x005, code({0x48, 0x83, 0xc0, 0x01, 0x50, 0x90, 0x90, 0x90, 0xc3}));
  table_.look_again();
  standing_ = std::vector{at(0x00a)};
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  EXPECT_TRUE(target(0x005)) << "a return to there is not in the way";
  table_.release(at(0x005));
  auto paused = pause();
  ASSERT_TRUE(table_.disarm_unused(paused));
  ASSERT_TRUE(add(at(0x009)));
  table_.release(at(0x009));
  table_.park_unused();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  ASSERT_TRUE(armed_) << armed_.error().message;
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(asked_.at(0).end, at(0x00b));
}

TEST_F(Jumps, DoNotMindWhoStandsAtTheBeginningOrBehind) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = std::vector{at(0x005), at(0x00d)};

  arm_jumps();

  EXPECT_TRUE(target(0x005).has_value());
}

/// The push of an int3 that stood there before: a task in its slot comes back to the lea.
TEST_F(Jumps, GiveWayToWhoComesBackIntoTheMiddleFromASlot) {
  ASSERT_TRUE(add(at(0x005)));
  arm();
  const GuestVirt slot = shim_.entries.at(at(0x005));
  disarm();
  standing_ = std::vector{slot};

  EXPECT_TRUE(arm_jumps());

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  standing_ = std::vector<GuestVirt>();
  disarm();
  arm_jumps();
  EXPECT_TRUE(target(0x005).has_value()) << "once it has left";
}

/// The record of a jump that was taken away leads to what is behind all of its instructions.
TEST_F(Jumps, GiveWayToWhoComesBackIntoTheMiddleFromARecord) {
  machine_.put(0x005, code({0x48, 0x89, 0xfb, 0x31, 0xc0, 0x31, 0xd2, 0x90, 0xc3}));
  ASSERT_TRUE(add(at(0x005)));  // mov, xor
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  disarm();
  table_.release(at(0x005));
  ASSERT_TRUE(add(at(0x008)));  // two xors and a nop: the second one is where that goes on
  standing_ = std::vector{entry->wrapping_add(SHIM_JUMP_CALL_END + 1)};

  EXPECT_TRUE(arm_jumps());

  EXPECT_EQ(machine_.text(0x008), std::byte{0xcc});
}

TEST_F(Jumps, DoNotMindWhoIsInASlotThatLeadsElsewhere) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x00d)));
  standing_ = std::vector{shim_.known.at(at(0x00d))};

  EXPECT_TRUE(arm_jumps());

  EXPECT_TRUE(target(0x005).has_value());
}

TEST_F(Jumps, AreInt3sWhileSomebodyIsInASlotThatNobodyKnows) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = std::vector{kSlots.wrapping_add(kSlotBytes / 2)};

  EXPECT_FALSE(arm_jumps());

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, LieInOnePage) {
  for (const bool fits : {true, false}) {
    FakeMachine machine;
    FakeKernel kernel;
    const std::uint64_t begin = fits ? 0xff6 : 0xff7;  // its push is 5 bytes behind it
    kernel.name({{begin, "f"}, {0x1100, "end"}, {0x180000, "data"}});
    for (std::uint64_t n = 0; n < 14; ++n) machine.put(begin + n, {machine_.text(n)});

    EXPECT_EQ(armed_in(machine, kernel, begin + 5), fits ? std::byte{0xe9} : std::byte{0xcc});
  }
}

/// The guest would never come by it: what runs is a copy.
TEST_F(Jumps, LeaveInItsPlaceWhatAHardwareBreakpointStandsOn) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  EXPECT_FALSE(table_.has_displaced(at(0x005))) << "the jump itself is there";
  EXPECT_TRUE(table_.has_displaced(at(0x006))) << "lea";
  EXPECT_FALSE(table_.has_displaced(at(0x00d))) << "ret, where it comes back";
  auto paused = pause();

  ASSERT_TRUE(table_.keep_in_place(paused, at(0x006)));

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), original_[1]);
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
  EXPECT_FALSE(table_.has_displaced(at(0x006)));
  disarm();
  arm_jumps();
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "it stays so";
}

TEST_F(Jumps, AreInt3sWhereAHardwareBreakpointWasBefore) {
  constexpr std::uint64_t kEnabled = 0x110000, kAddresses = 0x110040;
  for (const std::uint64_t enabled : {0x400, 0x402}) {
    FakeMachine machine;
    for (std::uint64_t n = 0; n < 16; ++n) machine.put(n, {machine_.text(n)});
    const auto put = [&machine](std::uint64_t offset, std::uint64_t value) {
      const auto bytes = std::as_bytes(std::span(&value, 1));
      machine.put(offset, {bytes.begin(), bytes.end()});
    };
    put(kEnabled, enabled);
    put(kAddresses, at(0x006).raw());
    FakeKernel kernel;
    kernel.bases = {0};
    kernel.name(
        {{0x000, "f"}, {0x100, "end"}, {kEnabled, "cpu_dr7"}, {kAddresses, "cpu_debugreg"}});

    EXPECT_EQ(armed_in(machine, kernel, 0x005),
              enabled == 0x400 ? std::byte{0xe9} : std::byte{0xcc});
  }
}

TEST_F(Jumps, AreInt3sWhereItIsNotKnownWhoStandsThere) {
  ASSERT_TRUE(add(at(0x005)));
  standing_ = fail(ErrorCode::Invalid, "unclear");

  EXPECT_FALSE(arm_jumps());

  EXPECT_TRUE(armed_);
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sInAPauseThatNobodyLookedAtTheStacksIn) {
  ASSERT_TRUE(add(at(0x005)));
  table_.prepare_jumps();

  arm();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sWhereAJumpLeadsInto) {
  machine_.put(0x00d, code({0xeb, 0xf7, 0x90}));  // jmp to lea
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, MayBeJumpedToThemselves) {
  machine_.put(0x00d, code({0xeb, 0xf6, 0x90}));  // jmp to push
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_TRUE(target(0x005).has_value());
}

TEST_F(Jumps, AreInt3sBesideJumpsByRegisters) {
  machine_.put(0x00d, code({0xff, 0xe0}));  // jmp rax
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sWhereTheKernelMayLeadInto) {
  for (const bool by_fault : {false, true}) {
    FakeMachine machine;
    for (std::uint64_t n = 0; n < 16; ++n) machine.put(n, {machine_.text(n)});
    NamedKernel kernel;
    kernel.patched = {{.address = at(0x40), .length = 2, .what = "jump label"}};
    (by_fault ? kernel.patched[0].fixup : kernel.patched[0].target) = at(0x006);

    EXPECT_EQ(armed_in(machine, kernel, 0x005), std::byte{0xcc}) << by_fault;
  }
}

/// A key that is off is a nop: only the kernel's tables tell of the way out, and only the code
/// there of the way back.
TEST_F(Jumps, AreInt3sWhereCodeComesBackThatOnlyTheKernelsTablesLeadTo) {
  for (const char* const name : {"f.cold", "g"}) {
    for (const bool by_fault : {false, true}) {
      FakeMachine machine;
      for (std::uint64_t n = 0; n < 13; ++n) machine.put(n, {machine_.text(n)});
      machine.put(0x00d, code({0x66, 0x90, 0xc3}));
      machine.put(0x100, code({0x90, 0xe9, 0x00, 0xff, 0xff, 0xff}));  // nop, jmp to lea
      FakeKernel kernel;
      kernel.name({{0x000, "f"}, {0x100, name}, {0x106, "end"}, {0x180000, "data"}});
      kernel.patched = {{.address = at(0x00d), .length = 2, .what = "jump label"}};
      (by_fault ? kernel.patched[0].fixup : kernel.patched[0].target) = at(0x100);

      EXPECT_EQ(armed_in(machine, kernel, 0x005), std::byte{0xcc}) << name << " " << by_fault;
    }
  }
}

TEST_F(Jumps, StandOnlyBehindAnFtraceSite) {
  machine_.put(0x100, code({0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3}));
  ASSERT_TRUE(add(at(0x100)));  // g is not known to be a compiler's

  arm_jumps();

  EXPECT_EQ(machine_.text(0x100), std::byte{0xcc});
}

TEST_F(Jumps, AreInt3sBesideAnotherTracepoint) {
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x006)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(target(0x006).has_value()) << "lea alone has more than five bytes";
}

TEST_F(Jumps, BecomeInt3sWhenAnotherTracepointComesIntoThem) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  ASSERT_TRUE(target(0x005));
  ASSERT_TRUE(add(at(0x006)));

  arm_jumps();

  ASSERT_TRUE(armed_) << armed_.error().message;
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_TRUE(target(0x006).has_value());
  disarm();
  EXPECT_EQ(text_at(0x005), original_);
}

TEST_F(Jumps, BecomeInt3sFirstAndTheOtherComesOnceAllHaveLeftTheirRecord) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  ASSERT_TRUE(add(at(0x006)));
  standing_ = std::vector{entry->wrapping_add(SHIM_JUMP_CALL_END)};
  is_inside_ = true;
  table_.prepare_jumps();
  auto paused = pause();

  EXPECT_FALSE(table_.find_standing(paused)) << "who is inside would pass by the new one";
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "nobody else comes inside";
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
  EXPECT_EQ(machine_.text(0x006), original_[1]);
  EXPECT_FALSE(table_.find_standing(paused));
  is_inside_ = false;
  EXPECT_TRUE(table_.find_standing(paused)) << "the word is left over from an earlier call";
  ASSERT_TRUE(table_.arm(paused));

  EXPECT_TRUE(target(0x006).has_value());
}

/// It may be a task that gets no processor for long; it passes by once.
TEST_F(Jumps, MakeWayAlsoWhereSomebodyStaysInside) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  ASSERT_TRUE(add(at(0x006)));
  standing_ = std::vector{entry->wrapping_add(SHIM_JUMP_CALL_END)};
  is_inside_ = true;

  EXPECT_FALSE(arm_jumps());

  ASSERT_TRUE(armed_) << armed_.error().message;
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc}) << "it is not known who stands there";
}

TEST_F(Jumps, StandAgainInTheSameRecord) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto entry = target(0x005);
  ASSERT_TRUE(entry);
  const std::size_t slots = shim_.slots.size();
  table_.release(at(0x005));
  disarm();
  table_.park_unused();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(target(0x005), entry);
  EXPECT_EQ(shim_.slots.size(), slots);
}

TEST_F(Jumps, AreDroppedWhenTheGuestChangesOneOfTheirBytes) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  machine_.put(0x005, code({0x90, 0x90, 0x90, 0x90, 0x90}));

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x005)});
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(Jumps, AreNotWrittenOverWhatTheGuestHasMadeOfThem) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  const auto kprobe = code({0xe9, 1, 2, 3, 4});
  machine_.put(0x005, kprobe);
  ASSERT_TRUE(add(at(0x006)));

  arm_jumps();

  EXPECT_EQ(text_at(0x005), bytes_of(kprobe));
  EXPECT_EQ(table_.drop_changed(), (std::vector{at(0x005), at(0x006)}));
}

TEST_F(Jumps, KeepTheShimWhereAKprobeOfTheGuestsMayRunThem) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  set_kprobe(0x005);

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x005)});
  EXPECT_TRUE(table_.any_armed());
}

TEST_F(Jumps, DoNotKeepTheShimForABreakpointOfWhatLiesThereNow) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  machine_.put(0x005, code({0xcc}));

  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x005)});
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(Jumps, AreInt3sWhereAKprobeOfTheGuestsIsBehindTheFirstInstruction) {
  set_kprobe(0x006);
  table_.look_again();
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc}) << "the guest's own";
}

TEST_F(Jumps, StepAsideAndComeBackAsInt3s) {
  ASSERT_TRUE(add(at(0x005)));
  arm_jumps();
  auto paused = pause();

  EXPECT_EQ(table_.step_aside(paused, at(0x006)), true);
  EXPECT_EQ(text_at(0x005), original_);
  set_kprobe(0x006);
  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_EQ(table_.jumps(), 0u);
}

TEST_F(Jumps, LeaveRoomForBreakpoints) {
  shim_.room = 8;
  ASSERT_TRUE(add(at(0x005)));

  arm_jumps();

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
}

}  // namespace
}  // namespace ringside::providers
