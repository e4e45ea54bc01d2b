#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/stacks/stack_walk.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kOrcTextBytes = 0x10000;
constexpr std::uint64_t kOrcTable = 0xffff'ffff'8200'0000, kStack = 0xffff'c900'0001'0000;
constexpr unsigned kSp = 5, kBp = 4, kPreviousSp = 1, kSpIndirect = 9, kR10 = 6;  // before 7.1
constexpr unsigned kEnd = 1, kCall = 2, kRegisters = 3, kPartial = 4;             // since 6.4

/// Tables as 6.4 and later have them.
class Orc {
 public:
  Orc& at(std::uint64_t offset, unsigned kind, unsigned sp, int sp_offset, unsigned bp = 0,
          int bp_offset = 0, bool signal = false) {
    const std::uint64_t here = kOrcTable + addresses_.size();
    addresses_.add(static_cast<std::int32_t>(kText + offset - here));
    entries_.add(static_cast<std::int16_t>(sp_offset)).add(static_cast<std::int16_t>(bp_offset));
    entries_.add(static_cast<std::uint16_t>(sp | bp << 4 | kind << 8 | (signal ? 0x800U : 0U)));
    return *this;
  }
  StackTables tables() const {
    StackTables tables;
    tables.add({GuestVirt(kText), GuestVirt(kText + kOrcTextBytes)},
               {GuestVirt(kOrcTable), addresses_.bytes()}, entries_.bytes());
    return tables;
  }

 private:
  fakes::Bytes addresses_, entries_;
};

class Walk : public testing::Test {
 protected:
  std::vector<std::uint64_t> frames(const StackTables& tables, WalkStart start,
                                    std::size_t most = 16) {
    std::vector<std::uint64_t> found(most);
    found.resize(unwind(tables, guest_, registers_, start, found));
    for (std::uint64_t& frame : found) frame -= kText;
    return found;
  }
  void put(std::uint64_t offset, std::uint64_t value) { guest_.put(kStack + offset, value); }

  fakes::SparseGuest guest_;
  Registers registers_;
};

using Frames = std::vector<std::uint64_t>;
using enum WalkStart;

TEST_F(Walk, FollowsCallsFromAFunctionsFirstInstructionToTheEnd) {
  const auto tables =
      Orc().at(0x100, kCall, kSp, 24).at(0x200, kCall, kSp, 16).at(0x300, kEnd, 0, 0).tables();
  registers_.rip = kText + 0x105;
  registers_.rsp = kStack;
  put(0, kText + 0x150);   // into a function with a frame of 24 bytes
  put(24, kText + 0x250);  // 16 bytes
  put(40, kText + 0x350);

  EXPECT_EQ(frames(tables, Caller), (Frames{0x150, 0x250, 0x350}));
  EXPECT_EQ(frames(tables, Caller, 2), (Frames{0x150, 0x250}));
}

TEST_F(Walk, ACallThatEndsItsFunctionBelongsToIt) {
  const auto tables =
      Orc().at(0x100, kCall, kSp, 8).at(0x200, kCall, kSp, 32).at(0x300, kEnd, 0, 0).tables();
  registers_.rsp = kStack;
  put(0, kText + 0x200);  // after the last call of the function at 0x100, which never returns
  put(8, kText + 0x300 + 1);

  EXPECT_EQ(frames(tables, Caller), (Frames{0x200, 0x301}));
}

TEST_F(Walk, ASampleBeginsWhereItStandsAndFindsTheSavedFramePointer) {
  const auto tables = Orc()
                          .at(0x100, kCall, kSp, 24, kPreviousSp, -16)
                          .at(0x200, kCall, kBp, 16, kPreviousSp, -16)
                          .at(0x300, kEnd, 0, 0)
                          .tables();
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  registers_.rbp = 1;
  put(8, kStack + 0x80);   // rbp, saved by the first
  put(16, kText + 0x210);  // back to the second, whose frame rbp describes
  put(0x88, kText + 0x310);
  put(0x80, 0);

  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x210, 0x310}));
}

TEST_F(Walk, GoesOnBehindAnInterruptAndEndsAtTheEntryFromUserMode) {
  const auto tables = Orc()
                          .at(0x100, kCall, kSp, 8)
                          .at(0x200, kRegisters, kSp, 0, 0, 0, true)
                          .at(0x300, kCall, kBp, 16, kPreviousSp, -16)
                          .at(0x400, kPartial, kSp, 0, 0, 0, true)
                          .at(0x500, kCall, kSp, 8)
                          .tables();
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  put(0, kText + 0x210);  // an interrupt's entry: pt_regs follow
  for (std::uint64_t at = 8; at < 8 + 168; at += 8) put(at, 0);
  put(8 + 4 * 8, kStack + 0x400);   // bp
  put(8 + 16 * 8, kText + 0x300);   // ip: interrupted at the first instruction of a function
  put(8 + 17 * 8, 0x10);            // cs
  put(8 + 19 * 8, kStack + 0x300);  // sp
  put(0x408, kText + 0x410);        // the entry code, with only what the CPU pushed
  put(0x400, 0);
  put(0x410, 0x7fff'0000);  // ip
  put(0x418, 0x33);         // cs of a user program
  put(0x420, 0);
  put(0x428, 0);
  put(0x430, 0);

  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x210, 0x300, 0x410}));
}

TEST_F(Walk, AStackThatWasSwitchedIsFollowedThroughItsTop) {
  const auto tables = Orc()
                          .at(0x100, kCall, kSpIndirect, 8)
                          .at(0x200, kCall, kR10, 0)
                          .at(0x300, kCall, kSp, 8)
                          .tables();
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  put(0, kStack + 0x100);  // the other stack
  put(0x100, kText + 0x210);

  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x210})) << "r10 is not known after a call";
}

/// A timer's interrupt in a task: the handler's frames are on the interrupt stack, whose top keeps
/// the task's stack pointer, where pt_regs lead to what was interrupted.
Orc interrupt_of_a_task() {
  return Orc()
      .at(0x100, kCall, kSp, 8)                   // the handler
      .at(0x200, kCall, kSpIndirect, 8)           // sysvec_apic_timer_interrupt: changes stacks
      .at(0x300, kRegisters, kSp, 0, 0, 0, true)  // asm_sysvec_apic_timer_interrupt
      .at(0x400, kCall, kSp, 16)                  // what was interrupted
      .at(0x500, kEnd, 0, 0);
}

/// Stacks' offsets from kStack.
struct TwoStacks {
  std::uint64_t interrupt, task;
};

class WalkOverTwoStacks : public Walk {
 protected:
  void interrupt(const TwoStacks& at) {
    registers_.rip = kText + 0x110;
    registers_.rsp = kStack + at.interrupt;
    put(at.interrupt, kText + 0x210);
    put(at.interrupt + 8, kStack + at.task);  // the last word of the interrupt stack
    put(at.task, kText + 0x310);
    const std::uint64_t regs = at.task + 8;
    for (std::uint64_t word = 0; word < 168; word += 8) put(regs + word, 0);
    put(regs + 16 * 8, kText + 0x410);
    put(regs + 17 * 8, 0x10);
    put(regs + 19 * 8, kStack + at.task + 0x200);
    put(at.task + 0x200 + 8, kText + 0x510);
  }
};

TEST_F(WalkOverTwoStacks, GoesOnInATasksStackAboveAndBelowTheInterrupts) {
  const auto tables = interrupt_of_a_task().tables();

  interrupt({.interrupt = 0x1000, .task = 0x4000});
  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x210, 0x310, 0x410, 0x510}));

  interrupt({.interrupt = 0x9000, .task = 0x6000});
  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x210, 0x310, 0x410, 0x510}));
}

TEST_F(WalkOverTwoStacks, IsKnownToEndWhereverTheTasksStackLies) {
  const auto tables = interrupt_of_a_task().tables();
  const Kernel::AddressRange handler{GuestVirt(kText + 0x410), GuestVirt(kText + 0x411)};
  const Kernel::AddressRange nowhere{GuestVirt(1), GuestVirt(2)};

  interrupt({.interrupt = 0x9000, .task = 0x6000});

  EXPECT_EQ(passes(tables, guest_, registers_, Here, handler), true);
  EXPECT_EQ(passes(tables, guest_, registers_, Here, nowhere), false);
}

TEST_F(Walk, ASoftirqThatATaskRunsItselfIsFollowedDownToItsStack) {
  const auto tables = Orc()
                          .at(0x100, kCall, kSp, 8)          // __do_softirq
                          .at(0x200, kCall, kSpIndirect, 8)  // do_softirq.part.0
                          .at(0x300, kCall, kSp, 8)          // __local_bh_enable_ip
                          .at(0x400, kEnd, 0, 0)
                          .tables();
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack + 0x8000;
  put(0x8000, kText + 0x210);
  put(0x8008, kStack);  // the task's own, far below
  put(0, kText + 0x310);
  put(8, kText + 0x410);

  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x210, 0x310, 0x410}));
}

TEST_F(Walk, StacksThatLeadToEachOtherEndWithWhatIsAskedFor) {
  const auto tables = Orc().at(0x100, kCall, kSpIndirect, 8).tables();
  const Kernel::AddressRange nowhere{GuestVirt(1), GuestVirt(2)};
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  put(0, kStack + 0x100);  // each keeps the other one's stack pointer
  put(0x100, kText + 0x110);
  put(0x108, kStack - 8);
  guest_.put(kStack - 8, kText + 0x110);

  EXPECT_EQ(frames(tables, Here, 100).size(), 100u);
  EXPECT_EQ(passes(tables, guest_, registers_, Here, nowhere), std::nullopt);
}

TEST_F(Walk, AStackThatTheGuestForgedEndsTheWalk) {
  const auto tables = Orc().at(0x100, kCall, kBp, 0, kBp, 0).at(0x200, kCall, kSp, -8).tables();
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  registers_.rbp = kStack;  // a frame that ends where it begins
  put(0, kStack);

  EXPECT_EQ(frames(tables, Here), (Frames{0x110}));
  registers_.rip = kText + 0x210;
  EXPECT_EQ(frames(tables, Here), (Frames{0x210}));
  registers_.rip = 0x1234;
  EXPECT_TRUE(frames(tables, Here).empty());
  registers_.rsp = 0xdead'0000;
  EXPECT_TRUE(frames(tables, Caller).empty());
}

TEST_F(Walk, AnEndlessStackFillsWhatIsAskedForAndNoMore) {
  const auto tables = Orc().at(0x100, kRegisters, kSp, 0).tables();
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  for (std::uint64_t at = 0; at < 168; at += 8) put(at, 0);
  put(16 * 8, kText + 0x110);
  put(17 * 8, 0x10);
  put(19 * 8, kStack);  // registers that restore themselves

  EXPECT_TRUE(frames(tables, Here, 100).size() <= 100);
}

TEST_F(Walk, AFrameInMovedTextThatManyShareIsShownByTheAddressOnTheStack) {
  auto tables = Orc().at(0x100, kCall, kSp, 8).at(0x102, kCall, kSp, 16).tables();
  constexpr std::uint64_t kSlot = 0xffff'ffff'9000'0000;
  // A push of two bytes: first the way back is on the stack once, then two times.
  tables.set_moved({{GuestVirt(kSlot), 3, {}, 2, 1},
                    {GuestVirt(kSlot + 3), 6, {}, 2, 2},
                    {GuestVirt(kSlot + 16), 1, {}, 0, 1}});
  put(0, kText + 0x102);
  put(8, kText + 0x102);
  put(16, kText + 0x210);
  put(24, kText + 0x220);

  registers_.rsp = kStack + 8;
  registers_.rip = kSlot;
  EXPECT_EQ(frames(tables, Here, 2), (Frames{0x100, 0x210}));
  registers_.rsp = kStack;
  for (const std::uint64_t at : {3, 8}) {
    registers_.rip = kSlot + at;
    EXPECT_EQ(frames(tables, Here, 2), (Frames{0x100, 0x210})) << at;
  }
  registers_.rsp = kStack + 8;
  registers_.rip = kSlot + 16;  // after another instruction, which has run
  EXPECT_EQ(frames(tables, Here, 2), (Frames{0x102, 0x220}));
  registers_.rsp = 0x1000;  // not to be read
  EXPECT_LE(frames(tables, Here, 2).size(), 1u);
}

TEST_F(Walk, AFrameInMovedTextIsShownWhereItCameFrom) {
  auto tables = Orc().at(0x100, kCall, kSp, 8).at(0x104, kCall, kSp, 16).tables();
  constexpr std::uint64_t kSlot = 0xffff'ffff'9000'0000;
  tables.set_moved({{GuestVirt(kSlot + 16), 9, GuestVirt(kText + 0x200), 4},
                    {GuestVirt(kSlot), 9, GuestVirt(kText + 0x100), 4}});
  registers_.rsp = kStack;
  put(0, kText + 0x210);
  put(8, kText + 0x220);

  registers_.rip = kSlot;  // before the instruction that grows the frame
  EXPECT_EQ(frames(tables, Here, 2), (Frames{0x100, 0x210}));
  registers_.rip = kSlot + 4;  // after it
  EXPECT_EQ(frames(tables, Here, 2), (Frames{0x104, 0x220}));
  registers_.rip = kSlot + 9;
  EXPECT_TRUE(frames(tables, Here).empty());
}

TEST_F(Walk, WithoutTablesFramePointersAreFollowed) {
  StackTables tables;
  tables.add({GuestVirt(kText), GuestVirt(kText + kOrcTextBytes)}, {}, {});
  registers_.rip = kText + 0x110;
  registers_.rsp = kStack;
  registers_.rbp = kStack + 0x20;
  put(0x20, kStack + 0x60);
  put(0x28, kText + 0x220);
  put(0x60, 0);
  put(0x68, kText + 0x330);

  EXPECT_EQ(frames(tables, Here), (Frames{0x110, 0x220, 0x330}));
}

TEST(Orc, TablesOutOfOrderAreSortedAndTheEndOfAFunctionYieldsToTheNext) {
  fakes::SparseGuest guest;
  const auto tables = Orc()
                          .at(0x300, kEnd, 0, 0)
                          .at(0x200, kCall, kSp, 8)
                          .at(0x200, 0, 0, 0)
                          .at(0x100, kCall, kSp, 8)
                          .at(0xffff'0000, kCall, kSp, 8)
                          .tables();
  EXPECT_EQ(tables.entry_count(), 4u) << "one lies outside the text";
  Registers registers;
  registers.rip = kText + 0x208;
  registers.rsp = kStack;
  guest.put(kStack, kText + 0x301);
  std::array<std::uint64_t, 4> frames{};

  EXPECT_EQ(unwind(tables, guest, registers, Here, frames), 2u);
}

std::vector<std::byte> entries(std::initializer_list<unsigned> flags) {
  fakes::Bytes bytes;
  for (const unsigned each : flags) {
    bytes.add(std::int16_t{8}).add(std::int16_t{-16}).add(static_cast<std::uint16_t>(each));
  }
  return bytes.bytes();
}

TEST(Orc, TheFormOfATableIsSeenFromItsEntries) {
  EXPECT_EQ(recognize_orc(entries({0x005, 0x005, 0x105, 0x400})), OrcForm::Before63);
  EXPECT_EQ(recognize_orc(entries({0x005, 0x005, 0x505, 0x800})), OrcForm::In63);
  EXPECT_EQ(recognize_orc(entries({0x205, 0x204, 0xb05, 0x100})), OrcForm::Since64);
  EXPECT_EQ(recognize_orc(entries({0x203, 0x204, 0xb03, 0x100})), OrcForm::Since71);
  EXPECT_EQ(recognize_orc(entries({0x105, 0x305})), std::nullopt);
  EXPECT_EQ(recognize_orc({}), std::nullopt);
}

OrcEntry decoded(unsigned flags, OrcForm form) {
  const auto bytes = entries({flags});
  return decode_orc(std::span(bytes).first<kOrcEntryBytes>(), form);
}

TEST(Orc, EveryFormSaysTheSameInItsOwnBits) {
  using Kind = OrcEntry::Kind;
  using Base = OrcEntry::Base;
  EXPECT_EQ(decoded(0x015, OrcForm::Before63).kind, Kind::Call);
  EXPECT_EQ(decoded(0x015, OrcForm::Before63).bp, Base::PreviousSp);
  EXPECT_TRUE(decoded(0x105, OrcForm::Before63).is_signal) << "registers were saved by a trap";
  EXPECT_EQ(decoded(0x400, OrcForm::Before63).kind, Kind::End);
  EXPECT_EQ(decoded(0x000, OrcForm::Before63).kind, Kind::Undefined);
  EXPECT_TRUE(decoded(0x505, OrcForm::In63).is_signal);
  EXPECT_EQ(decoded(0x800, OrcForm::In63).kind, Kind::End);
  EXPECT_EQ(decoded(0xb05, OrcForm::Since64).kind, Kind::Registers);
  EXPECT_TRUE(decoded(0xb05, OrcForm::Since64).is_signal);
  EXPECT_EQ(decoded(0x405, OrcForm::Since64).kind, Kind::PartialRegisters);
  EXPECT_EQ(decoded(0x283, OrcForm::Since71).sp, Base::Sp);
  EXPECT_EQ(decoded(0x283, OrcForm::Since71).bp, Base::PreviousSp);
  EXPECT_EQ(decoded(0x205, OrcForm::Since64).sp_offset, 8);
  EXPECT_EQ(decoded(0x205, OrcForm::Since64).bp_offset, -16);
}

}  // namespace
}  // namespace ringside::guest_linux
