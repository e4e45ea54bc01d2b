#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/installed_shim.h"
#include "vmm/shim/plain_region_for_tests.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

void expect_refused(FakeGuest& guest, const ShimKernelFacts& with, std::string_view reason) {
  const auto before = guest.get64(kPlace.raw());
  const auto shim = install(guest, with);
  ASSERT_FALSE(shim);
  EXPECT_NE(shim.error().message.find(reason), std::string::npos) << shim.error().message;
  EXPECT_EQ(guest.get64(kPlace.raw()), before) << "a refused guest is not touched";
  EXPECT_EQ(guest.pmd(9), 0u);
}

TEST(ShimInstall, MapsTextWithoutWriteAndDataWithoutExecute) {
  FakeGuest guest;

  const auto shim = install(guest);

  ASSERT_TRUE(shim) << shim.error().message;
  constexpr std::uint64_t kTextEntry = 0x1e1, kDataEntry = 0x1e3 | std::uint64_t{1} << 63;
  for (unsigned page = 0; page < 7; ++page) {
    EXPECT_EQ(guest.pmd(9 + page), (kPlace.raw() + page * 2 * kMiB) | kTextEntry) << page;
  }
  EXPECT_EQ(guest.pmd(16), (kPlace.raw() + 14 * kMiB) | kDataEntry);
  EXPECT_EQ(guest.pmd(17), 0u);
}

TEST(ShimInstall, LeavesNoExecuteOutWhereTheCpuDoesNotKnowIt) {
  FakeGuest guest;
  guest.first.efer = 0x501;

  ASSERT_TRUE(install(guest));

  EXPECT_EQ(guest.pmd(16) >> 63, 0u);
}

TEST(ShimInstall, PointsTheGateAtTheEntryAndRemembersTheHandler) {
  FakeGuest guest;

  ASSERT_TRUE(install(guest));

  shim_header header;
  std::memcpy(&header, guest.ram().data() + kPlace.raw(), sizeof header);
  EXPECT_EQ(header.magic, SHIM_MAGIC);
  EXPECT_EQ(header.version, SHIM_VERSION);
  EXPECT_EQ(header.original, kHandler.raw());
  EXPECT_EQ(header.this_cpu_off, 0x1fb88u);
  EXPECT_EQ(header.base, 0xffffffff81200000u);
  EXPECT_EQ(header.region_bytes, 16 * kMiB);
  EXPECT_EQ(header.page_bytes, 2 * kMiB);
  EXPECT_EQ(header.table, header.base + 2 * kMiB);
  EXPECT_EQ(header.table_entries, 1u << 18);
  EXPECT_EQ(header.slots, header.base + 4 * kMiB);
  EXPECT_EQ(header.slots_bytes, 10 * kMiB);
  EXPECT_EQ(header.data, header.base + 14 * kMiB);
  EXPECT_EQ(header.user_return, 0u) << "traps from user mode are the kernel's";
  EXPECT_EQ(guest.gate_handler().raw(), 0xffffffff81200000 + header.entry);
  EXPECT_EQ(guest.get64(kImagePhys.raw() + 0x1030) >> 16 & 0xffffffff, 0x8e000010u)
      << "selector and attributes stay";
}

TEST(ShimInstall, GoesBelowTheImageWhenThereIsNoRoomAbove) {
  FakeGuest guest;
  for (unsigned i = 9; i < 512; ++i) guest.put64(kPmd.raw() + 8 * i, 0x83);

  ASSERT_TRUE(install(guest));

  EXPECT_EQ(guest.pmd(0), kPlace.raw() | 0x1e1);
  EXPECT_EQ(guest.gate_handler().raw() >> 21, 0xffffffff80000000 >> 21);
}

TEST(ShimInstall, RefusesWhenNoRunOfEntriesIsFree) {
  FakeGuest guest;
  for (unsigned i = 2; i < 512; i += 4) guest.put64(kPmd.raw() + 8 * i, 0x83);

  const auto shim = install(guest);

  ASSERT_FALSE(shim);
  EXPECT_NE(shim.error().message.find("free addresses"), std::string::npos);
}

TEST(ShimInstall, RefusesGuestsThatItWouldBreak) {
  FakeGuest guest;
  guest.first.cr4 = std::uint64_t{1} << 32;
  expect_refused(guest, facts(), "FRED");
  guest.first.cr4 = 0;

  guest.set_gate(kHandler, 0x8e03);
  expect_refused(guest, facts(), "IST 3");
  guest.set_gate(kHandler, 0x8f00);
  expect_refused(guest, facts(), "attributes 0x8f00");
  guest.set_gate(GuestVirt(kHandler.raw() + 4), 0x8e00);
  expect_refused(guest, facts(), "not to the kernel's handler");
  guest.set_gate(kHandler, 0x8e00);

  ShimKernelFacts lost = facts();
  lost.idt = GuestVirt(0xffffffffb0000000);
  expect_refused(guest, lost, "not mapped");

  guest.vcpus = 64;
  expect_refused(guest, facts(), "64 vCPUs");
}

TEST(ShimInstall, RefusesASecondShim) {
  FakeGuest guest;
  ASSERT_TRUE(install(guest));

  const auto second = install(guest, facts(), {GuestPhys(16 * kMiB), 16 * kMiB});

  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("traced already"), std::string::npos);
}

TEST(ShimInstall, FitsIntoTheFirstMegabyteBySmallPages) {
  FakeGuest guest;

  const auto shim = install(guest, facts(), kLow);

  ASSERT_TRUE(shim) << shim.error().message;
  shim_header header;
  std::memcpy(&header, guest.ram().data() + kLow.base.raw(), sizeof header);
  EXPECT_EQ(header.page_bytes, 4096u);
  EXPECT_EQ(header.region_bytes, (400u << 10) - 2 * 4096) << "the last pages are page tables";
  EXPECT_EQ(header.data, header.base + header.region_bytes - SHIM_DATA_SIZE);
  EXPECT_GT(header.table_entries / 4 * 3, 15'000u);
  EXPECT_EQ(header.slots, header.table + header.table_entries * 8u);
  EXPECT_EQ(header.slots + header.slots_bytes, header.data);
  const std::uint64_t table = kLow.base.raw() + header.region_bytes;
  EXPECT_EQ(guest.pmd(home_of(header)), table | 0x63);
  EXPECT_EQ(guest.pmd(home_of(header) + 1), 0u);
  constexpr std::uint64_t kTextEntry = 0x161, kDataEntry = 0x163 | std::uint64_t{1} << 63;
  const std::uint64_t pages = header.region_bytes / 4096, data = pages - SHIM_DATA_SIZE / 4096;
  for (std::uint64_t page = 0; page < 512; ++page) {
    const std::uint64_t entry = guest.get64(table + 8 * page);
    const std::uint64_t wanted =
        page < pages ? (kLow.base.raw() + page * 4096) | (page < data ? kTextEntry : kDataEntry)
                     : 0;
    EXPECT_EQ(entry, wanted) << page;
  }
}

TEST(ShimInstall, GivesTheUserHalfItsFirstPageAndNothingElse) {
  FakeGuest guest;
  guest.isolate();

  const auto shim = install(guest, isolated_facts(), kLow);

  ASSERT_TRUE(shim) << shim.error().message;
  shim_header header;
  std::memcpy(&header, guest.ram().data() + kLow.base.raw(), sizeof header);
  const std::uint64_t table = kLow.base.raw() + header.region_bytes;
  EXPECT_EQ(guest.pmd(home_of(header)), table | 0x63);
  EXPECT_EQ(guest.get64(table), kLow.base.raw() | 0x61) << "not global";
  const std::uint64_t user_table = table + 4096;
  EXPECT_EQ(guest.user_pmd(home_of(header)), user_table | 0x21)
      << "not the user's, not to be written";
  EXPECT_EQ(guest.get64(user_table), kLow.base.raw() | 0x61);
  for (unsigned n = 1; n < 512; ++n) EXPECT_EQ(guest.get64(user_table + 8 * n), 0u) << n;
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);
  EXPECT_TRUE((*shim)->check_mapped(*paused)) << "vCPU 0 is in user mode";
}

TEST(ShimInstall, GivesTheUserHalfALargePageWhereAllOfItIsOurs) {
  FakeGuest guest;
  guest.isolate();

  ASSERT_TRUE(install(guest, isolated_facts()));

  EXPECT_EQ(guest.pmd(9), kPlace.raw() | 0xe1);
  EXPECT_EQ(guest.user_pmd(9), kPlace.raw() | 0xe1);
  EXPECT_EQ(guest.user_pmd(10), 0u);
}

TEST(ShimInstall, GoesWhereBothHalvesAreFree) {
  FakeGuest guest;
  guest.isolate();
  guest.put64(kUserPmd.raw() + 8 * 9, 0x83);

  ASSERT_TRUE(install(guest, isolated_facts()));

  EXPECT_EQ(guest.pmd(9), 0u);
  EXPECT_EQ(guest.user_pmd(9), 0x83u);
  EXPECT_EQ(guest.pmd(10), guest.user_pmd(10));
}

TEST(ShimInstall, FindsUserTablesThatTheCpusFlagDoesNotTellOf) {
  FakeGuest guest;
  guest.isolate();
  ShimKernelFacts silent = isolated_facts();
  silent.page_table_isolation = false;

  ASSERT_TRUE(install(guest, silent));

  EXPECT_NE(guest.user_pmd(9), 0u);
}

TEST(ShimInstall, RefusesAnIsolationThatIsNotLinuxs) {
  FakeGuest plain;
  ShimKernelFacts claimed = facts();
  claimed.page_table_isolation = true;
  expect_refused(plain, claimed, "not where Linux has them");

  FakeGuest elsewhere;
  elsewhere.isolate();
  elsewhere.put64(kIsolatedRoot.raw() + 0x6000, (kImagePhys.raw() + 0x5000) | 1);
  expect_refused(elsewhere, isolated_facts(), "do not map its interrupt table");

  FakeGuest shared;
  shared.isolate();
  shared.put64(kIsolatedRoot.raw() + 0x2000 + 8 * 510, kPmd.raw() | 3);
  expect_refused(shared, isolated_facts(), "the kernel's own tables");
}

TEST(ShimInstall, UsesAllOfALargePlaceThatIsNotAligned) {
  FakeGuest guest;
  const GuestMemory::Extent place{GuestPhys(kPlace.raw() + 4096), 15 * kMiB};

  const auto shim = install(guest, facts(), place);

  ASSERT_TRUE(shim) << shim.error().message;
  shim_header header;
  std::memcpy(&header, guest.ram().data() + place.base.raw(), sizeof header);
  EXPECT_EQ(header.page_bytes, 4096u);
  EXPECT_EQ(header.region_bytes, 15 * kMiB - 9 * 4096)
      << "a page table for each 2 MiB, and the user's";
  for (unsigned n = 0; n < 8; ++n) {
    const std::uint64_t table = place.base.raw() + header.region_bytes + n * 4096;
    EXPECT_EQ(guest.pmd(home_of(header) + n), table | 0x63) << n;
    EXPECT_EQ(guest.get64(table) & 0xfffffffff000, place.base.raw() + n * 2 * kMiB) << n;
  }
}

TEST(ShimInstall, WorksByCopies) {
  FakeGuest guest;
  guest.reach_by_copies();
  ASSERT_TRUE(guest.memory().mapping(kPlace, 8).empty());

  auto shim = install(guest, facts(), kLow);

  ASSERT_TRUE(shim) << shim.error().message;
  EXPECT_EQ(guest.gate_handler().raw() >> 12, header_at(guest, kLow.base).base >> 12);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);
  EXPECT_TRUE((*shim)->check_mapped(*paused));
  ASSERT_TRUE((*shim)->retire(*paused));
  EXPECT_EQ(guest.gate_handler(), kHandler);
}

TEST(ShimInstall, RefusesAPlaceThatIsTooSmallOrNotRam) {
  FakeGuest guest;

  const auto small = install(guest, facts(), {GuestPhys(kPlace.raw() + 1), 64 << 10});
  const auto outside = install(guest, facts(), {GuestPhys(kRam), 16 * kMiB});
  const auto half = install(guest, facts(), {GuestPhys(kRam - 64 * 1024), 128 << 10});
  const auto wrapping = install(guest, facts(), {GuestPhys(~std::uint64_t{0}), 16 * kMiB});

  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("64 KiB or more"), std::string::npos);
  ASSERT_FALSE(outside);
  EXPECT_NE(outside.error().message.find("not RAM"), std::string::npos);
  EXPECT_FALSE(half);
  EXPECT_FALSE(wrapping);
  EXPECT_EQ(guest.get64(kRam - 64 * 1024), 0u);
}

TEST(ShimInstall, RetireGivesTheGateBack) {
  FakeGuest guest;
  auto shim = install(guest);
  ASSERT_TRUE(shim);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);

  ASSERT_TRUE((*shim)->retire(*paused));

  EXPECT_EQ(guest.gate_handler(), kHandler);
  EXPECT_NE(guest.pmd(9), 0u) << "slots stay mapped";
  EXPECT_FALSE(install(guest)) << "its place is not used twice";
}

TEST(ShimInstall, RemoveLeavesEveryByteAsItWas) {
  for (const GuestMemory::Extent place : {kLow, GuestMemory::Extent{kPlace, 16 * kMiB}}) {
    for (const bool isolated : {false, true}) {
      FakeGuest guest;
      if (isolated) guest.isolate();
      const auto before = image_of(guest);
      auto shim = install(guest, isolated ? isolated_facts() : facts(), place);
      ASSERT_TRUE(shim) << shim.error().message;
      const auto slot = (*shim)->allocate_slot(8);
      const std::array code = {std::byte{0x90}, std::byte{0xc3}};
      ASSERT_TRUE((*shim)->write_slot(*slot, code) && (*shim)->add_entry(kText, *slot));
      auto paused = PausedMachine::pause(guest);
      ASSERT_TRUE(paused);
      EXPECT_FALSE((*shim)->remove(*paused)) << "the gate leads to it";
      ASSERT_TRUE((*shim)->retire(*paused));
      EXPECT_EQ((*shim)->state(), ShimState::Retired);

      const auto removed = (*shim)->remove(*paused);

      ASSERT_TRUE(removed) << removed.error().message;
      EXPECT_TRUE(image_of(guest) == before);
      EXPECT_TRUE(install(guest, isolated ? isolated_facts() : facts(), place)) << "and again";
    }
  }
}

TEST(ShimInstall, RemoveChangesNothingWhereTheGuestHasChangedItsTables) {
  FakeGuest guest;
  auto shim = install(guest, facts(), kLow);
  ASSERT_TRUE(shim);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused && (*shim)->retire(*paused));
  const unsigned home = home_of(header_at(guest, kLow.base));
  guest.put64(kPmd.raw() + 8 * home, guest.pmd(home) | 4);  // the user's, too
  const auto before = image_of(guest);

  const auto removed = (*shim)->remove(*paused);

  ASSERT_FALSE(removed);
  EXPECT_NE(removed.error().message.find("page tables"), std::string::npos);
  EXPECT_TRUE(image_of(guest) == before);
}

TEST(ShimInstall, APlaceHasItsOwnAddresses) {
  FakeGuest one, same, other;
  constexpr GuestMemory::Extent kLower{GuestPhys(0x11000), 300 << 10};
  ASSERT_TRUE(install(one, facts(), kLow) && install(same, facts(), kLow));
  ASSERT_TRUE(install(other, facts(), kLower));

  const std::uint64_t base = header_at(one, kLow.base).base;

  EXPECT_EQ(header_at(same, kLow.base).base, base);
  EXPECT_NE(header_at(other, kLower.base).base, base) << "a TLB may hold what was there before";
}

TEST(ShimInstall, RetireLeavesAGateAloneThatIsNotOursAnyMore) {
  FakeGuest guest;
  auto shim = install(guest);
  ASSERT_TRUE(shim);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);
  guest.set_gate(GuestVirt(kHandler.raw() + 0x40), 0x8e00);

  EXPECT_FALSE((*shim)->retire(*paused));

  EXPECT_EQ(guest.gate_handler().raw(), kHandler.raw() + 0x40);
}

/// Points vCPU 0 at tables that map the same kernel addresses to other memory, as a second
/// kernel's.
void start_another_kernel(FakeGuest& guest) {
  constexpr GuestPhys kOther{0x10000};
  guest.put64(kOther.raw() + 8 * 511, kOther.raw() + 0x1003);
  guest.put64(kOther.raw() + 0x1000 + 8 * 510, kOther.raw() + 0x2003);
  for (unsigned i = 0; i < 512; ++i) {
    guest.put64(kOther.raw() + 0x2000 + 8 * i, (i % 16) * 2 * kMiB | 0x83);
  }
  guest.first.cr3 = kOther.raw();
}

TEST(ShimInstall, RetireWritesNothingIntoAnotherKernel) {
  FakeGuest guest;
  auto shim = install(guest);
  ASSERT_TRUE(shim);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);
  ASSERT_TRUE((*shim)->check_mapped(*paused));
  start_another_kernel(guest);
  const GuestVirt ours = guest.gate_handler();  // still in the memory that the first one left

  const auto retired = (*shim)->retire(*paused);

  ASSERT_FALSE(retired);
  EXPECT_NE(retired.error().message.find("vCPU 0"), std::string::npos) << retired.error().message;
  EXPECT_EQ(guest.gate_handler(), ours);
}

TEST(ShimInstall, ADoubtMakesAllVcpusCount) {
  FakeGuest guest;
  auto shim = install(guest);
  ASSERT_TRUE(shim);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);
  guest.others = guest.first;
  guest.others.cr3 = 0x20000;
  EXPECT_TRUE((*shim)->check_mapped(*paused)) << "a virtual machine in the guest, say";
  std::memset(guest.ram().data() + kPlace.raw() + 16, 0, 8);

  EXPECT_FALSE((*shim)->check_mapped(*paused));
  std::memcpy(guest.ram().data() + kPlace.raw() + 16, &kHandler, 8);
  EXPECT_FALSE((*shim)->check_mapped(*paused)) << "vCPU 1 may run another kernel";
  guest.others.cr3 = guest.first.cr3;
  EXPECT_TRUE((*shim)->check_mapped(*paused)) << "text may be restored where all is as it was";
}

class Recorder final : public TrapSink {
 public:
  void on_trap(const Trap& trap) override {
    traps.push_back(trap);
    if (during) during();
  }
  std::vector<Trap> traps;
  std::function<void()> during;
};

/// A channel over plain memory, mapped and by copies; the test plays the guest.
class ShimChannel : public testing::TestWithParam<Reach> {
 protected:
  static constexpr GuestVirt kBase{0xffffffff9f000000};

  ShimChannel()
      : region_(GetParam()),
        shim_(region_.memory(), region_.layout(), kBase, 2, PlainRegion::gate()) {
    slot_ = *shim_.allocate_slot(8);
    EXPECT_TRUE(shim_.add_entry(kText, slot_));
  }
  std::span<std::byte> bytes() { return region_.bytes(); }
  shim_head& head(unsigned i) { return region_.head(i); }
  shim_box& box(unsigned i) { return region_.box(i); }
  shim_control& control() { return region_.control(); }
  const ShimLayout& layout() { return region_.layout(); }
  void raise(unsigned i, GuestVirt address, std::uint64_t claim = 1) {
    head(i).address = address.raw();
    head(i).percpu = 0xffff888000000000 + i;
    head(i).tsc = 1000 + i;
    for (unsigned r = 0; r < SHIM_REGISTERS; ++r) box(i).regs[r] = 100 * i + r;
    head(i).segments = std::uint64_t{0x18} << 32 | 0x10;
    head(i).head = claim * SHIM_CLAIM | SHIM_RAISED;
  }

  PlainRegion region_;
  InstalledShim shim_;
  GuestVirt slot_;
  Recorder sink_;
};

INSTANTIATE_TEST_SUITE_P(Every, ShimChannel,
                         testing::Values(Reach::Mapped, Reach::Copied, Reach::Mixed),
                         [](const auto& info) {
                           return info.param == Reach::Mapped   ? "Mapped"
                                  : info.param == Reach::Copied ? "Copied"
                                                                : "Mixed";
                         });

TEST_P(ShimChannel, ServesEveryRaisedMailboxOnceAndAnswers) {
  raise(0, kText, 7);
  raise(1, kText, 9);

  EXPECT_EQ(shim_.poll(sink_), 2u);
  EXPECT_EQ(shim_.poll(sink_), 0u);

  ASSERT_EQ(sink_.traps.size(), 2u);
  EXPECT_EQ(head(0).answered, 7 * SHIM_CLAIM);
  EXPECT_EQ(head(1).answered, 9 * SHIM_CLAIM);
  EXPECT_EQ(head(1).head, 9 * SHIM_CLAIM | SHIM_RAISED) << "the guest's own word";
  const Trap& trap = sink_.traps[1];
  EXPECT_EQ(trap.address, kText);
  EXPECT_EQ(trap.tsc, 1001u);
  EXPECT_EQ(trap.percpu_base.raw(), 0xffff888000000001);
  EXPECT_EQ(trap.registers.rip, kText.raw());
  EXPECT_EQ(trap.registers.rax, 100u);
  EXPECT_EQ(trap.registers.rdi, 107u);
  EXPECT_EQ(trap.registers.rsp, 104u);
  EXPECT_EQ(trap.registers.r15, 115u);
  EXPECT_EQ(trap.registers.cs, 0x10u);
  EXPECT_EQ(trap.registers.ss, 0x18u);
}

TEST_P(ShimChannel, AnswersTheMailboxThatRangAndNoOther) {
  raise(0, kText, 7);
  raise(1, kText, 9);

  shim_.answer(1, sink_);
  shim_.answer(1, sink_);

  ASSERT_EQ(sink_.traps.size(), 1u);
  EXPECT_EQ(sink_.traps[0].tsc, 1001u);
  EXPECT_EQ(head(0).answered, 0u);
  EXPECT_EQ(head(1).answered, 9 * SHIM_CLAIM);
}

TEST_P(ShimChannel, ARingForNothingDoesNothing) {
  head(3).head = SHIM_CLAIMED;
  for (const std::uint32_t lie : {0u, 3u, SHIM_MAILBOXES, SHIM_MAILBOXES + 1, UINT32_MAX}) {
    shim_.answer(lie, sink_);
  }

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(head(3).head, std::uint64_t{SHIM_CLAIMED});
  EXPECT_EQ(head(3).answered, 0u);
  EXPECT_EQ(shim_.counters().rejected, 0u);
}

TEST_P(ShimChannel, TellsTheGuestWhereToRing) {
  EXPECT_EQ(control().doorbell, 0u);

  shim_.set_doorbell(0x5244);
  EXPECT_EQ(control().doorbell, 0x5244u);
  shim_.set_doorbell(0);
  EXPECT_EQ(control().doorbell, 0u);
}

TEST_P(ShimChannel, FindsANestedTrapInAMailboxThatWasNeverUsed) {
  raise(40, kText);

  unsigned served = 0;
  for (int i = 0; i < 64; ++i) served += shim_.poll(sink_);
  EXPECT_EQ(served, 1u);

  raise(40, kText, 2);
  EXPECT_EQ(shim_.poll(sink_), 1u) << "from now on it is looked at every time";
}

TEST_P(ShimChannel, AnswersButDoesNotFireWhatIsNoTracepoint) {
  raise(0, GuestVirt(kText.raw() + 1));
  raise(1, GuestVirt(kText.raw() & 0xffffffff));  // the key alone is not the address

  EXPECT_EQ(shim_.poll(sink_), 2u);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(shim_.counters().rejected, 2u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, IgnoresStatesThatDoNotExist) {
  raise(0, kText);
  head(0).head = 0xff;

  EXPECT_EQ(shim_.poll(sink_), 0u);
}

TEST_P(ShimChannel, DoesNotAnswerATrapThatReplacedTheOneItLookedAt) {
  raise(0, kText, 1);
  sink_.during = [this] { raise(0, kText, 2); };  // the guest gave up and trapped again

  shim_.poll(sink_);

  EXPECT_EQ(head(0).answered, SHIM_CLAIM) << "not what the second one waits for";
  sink_.during = nullptr;
  EXPECT_EQ(shim_.poll(sink_), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, ServesAClaimOnceWhoeverFindsIt) {
  raise(0, kText);
  sink_.during = [this] {  // the vCPU's own thread and the poller, say
    shim_.answer(0, sink_);
    shim_.poll(sink_);
  };

  shim_.answer(0, sink_);

  EXPECT_EQ(sink_.traps.size(), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, AnAnswerThatComesLateReplacesNoLaterOne) {
  raise(0, kText, 1);
  sink_.during = [this] {  // meanwhile another thread has served the next one
    sink_.during = nullptr;
    raise(0, kText, 2);
    EXPECT_EQ(shim_.poll(sink_), 1u);
  };

  shim_.answer(0, sink_);

  EXPECT_EQ(head(0).answered, 2 * SHIM_CLAIM);
  raise(0, kText, 3);
  EXPECT_EQ(shim_.poll(sink_), 1u);
  EXPECT_EQ(head(0).answered, 3 * SHIM_CLAIM);
}

TEST_P(ShimChannel, AGuestThatWritesTheHostsWordHurtsOneTrapOfItsOwn) {
  head(0).answered = 0x5a5a;
  raise(0, kText, 1);
  EXPECT_EQ(shim_.poll(sink_), 1u);
  EXPECT_EQ(head(0).answered, 0x5a5au) << "nothing is written over what is not ours";

  raise(0, kText, 2);
  EXPECT_EQ(shim_.poll(sink_), 1u);

  EXPECT_EQ(head(0).answered, 2 * SHIM_CLAIM);
}

/// A page that acts, once, when it is touched.
class PageThatActs {
 public:
  PageThatActs(std::byte* page, std::function<void()> act) : page_(page), act_(std::move(act)) {
    current = this;
    struct sigaction action {};
    action.sa_handler = [](int) { current->touched(); };
    sigaction(SIGSEGV, &action, &before_);
    mprotect(page_, kPage, PROT_NONE);
  }
  ~PageThatActs() { sigaction(SIGSEGV, &before_, nullptr); }
  PageThatActs(const PageThatActs&) = delete;
  PageThatActs& operator=(const PageThatActs&) = delete;

 private:
  static constexpr std::size_t kPage = 4096;
  static inline PageThatActs* current = nullptr;

  void touched() {
    mprotect(page_, kPage, PROT_READ | PROT_WRITE);
    act_();
  }

  std::byte* page_;
  std::function<void()> act_;
  struct sigaction before_ {};
};

TEST(ShimChannelCopy, FiresNoTrapWhoseMailboxChangesWhileItIsCopied) {
  FakeGuest guest;
  const ShimLayout layout = *layout_shim(kLow);
  InstalledShim shim(guest.memory(), layout, GuestVirt(0xffffffff9f000000), 1,
                     {.at = GuestPhys(0x10000), .bytes = {}, .ours = {}});
  ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
  std::byte* data = guest.ram().data() + layout.place.raw() + layout.data;
  auto& head = *reinterpret_cast<shim_head*>(data + SHIM_HEADS);
  auto& box = *reinterpret_cast<shim_box*>(data + SHIM_BOXES);
  Recorder sink;
  head.address = kText.raw();
  head.head = 1 * SHIM_CLAIM | SHIM_RAISED;
  // Its registers are copied after its head.
  const PageThatActs guest_acts(data + SHIM_BOXES, [&] {  // it lost patience, and another trap came
    head.head = 2 * SHIM_CLAIM | SHIM_RAISED;
    box.regs[SHIM_RDI] = 2;
  });

  shim.poll(sink);

  EXPECT_TRUE(sink.traps.empty()) << "half of one trap and half of another";
  EXPECT_EQ(head.answered, 0u) << "not answered either";
  EXPECT_EQ(shim.poll(sink), 1u);
  ASSERT_EQ(sink.traps.size(), 1u);
  EXPECT_EQ(sink.traps[0].registers.rdi, 2u);
}

TEST_P(ShimChannel, WritesTheTableThatTheShimReads) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));

  EXPECT_EQ(entry, (kText.raw() & 0xffffffff) | layout().slots << 32);
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "once";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(0x401000), slot_)) << "user addresses have no key";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(kText.raw() + 1), kBase)) << "no slot";
}

TEST_P(ShimChannel, ARemovedEntryIsPutBackWithAnotherSlotToo) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));
  const auto other = shim_.allocate_slot(8);
  ASSERT_TRUE(other);

  shim_.remove_entry(kText);
  ASSERT_TRUE(shim_.add_entry(kText, *other));

  EXPECT_EQ(entry >> 32, other->raw() - kBase.raw());
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "it is there";
  shim_.remove_entry(kText);
  EXPECT_EQ(entry >> 32, 0u);
}

TEST_P(ShimChannel, KnowsWhichTrapsWaitedAtAMomentHoweverManyComeAfterThem) {
  raise(0, kText);
  const TrapsUnderWay first = shim_.under_way();
  EXPECT_FALSE(shim_.have_answers(first));

  EXPECT_EQ(shim_.poll(sink_), 1u);
  EXPECT_TRUE(shim_.have_answers(first));
  raise(0, kText, 2);

  EXPECT_TRUE(shim_.have_answers(first)) << "that is another one";
  EXPECT_FALSE(shim_.have_answers(shim_.under_way()));
}

TEST_P(ShimChannel, ARemovedEntryKeepsItsPlaceWithoutASlot) {
  const std::uint64_t& entry = region_.entry(region_.bucket_of(kText));

  shim_.remove_entry(GuestVirt(kText.raw() + 1));
  EXPECT_NE(entry >> 32, 0u) << "another address";
  shim_.remove_entry(kText);

  EXPECT_EQ(entry, kText.raw() & 0xffffffff);
  raise(0, kText);  // it looked its slot up before
  EXPECT_EQ(shim_.poll(sink_), 1u);
  EXPECT_TRUE(region_.is_answered(0));
}

TEST_P(ShimChannel, FillsTheTableToItsLimitAndSaysSo) {
  Result<void> added;
  std::size_t count = 1;
  while ((added = shim_.add_entry(GuestVirt(kText.raw() + count), slot_))) ++count;

  EXPECT_EQ(count, layout().most_tracepoints());
  EXPECT_EQ(added.error().code, ErrorCode::Limit);
}

TEST_P(ShimChannel, HandsOutSlotsUntilTheyAreUsedUp) {
  const auto next = shim_.allocate_slot(9);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->raw(), slot_.raw() + 8);
  const std::byte code[9] = {std::byte{0x90}};
  ASSERT_TRUE(shim_.write_slot(*next, code));
  EXPECT_EQ(bytes()[layout().slots + 8], std::byte{0x90});
  EXPECT_FALSE(shim_.write_slot(GuestVirt(next->raw() + 1), code)) << "past what was given out";
  EXPECT_FALSE(shim_.write_slot(GuestVirt(kBase.raw()), code)) << "the shim's own code";

  ASSERT_TRUE(shim_.allocate_slot(layout().slots_bytes - 17));
  const auto none = shim_.allocate_slot(1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Limit);
}

TEST_P(ShimChannel, StartsInactiveAndBeatsForward) {
  EXPECT_EQ(control().active, 0u);
  const std::uint64_t first = control().heartbeat;
  EXPECT_GT(first, 0u) << "0 is the shim's word for: never gave up";

  shim_.activate();
  EXPECT_EQ(control().active, 1u);
  EXPECT_GT(control().heartbeat, first);
  shim_.deactivate();
  EXPECT_EQ(control().active, 0u);
}

/// After it, nothing of the region may change whatever is asked of the shim.
void expect_left_alone(InstalledShim& shim, std::span<const std::byte> region, TrapSink& sink) {
  const std::vector<std::byte> before(region.begin(), region.end());
  const ShimCounters counted = shim.counters();

  shim.heartbeat();
  EXPECT_EQ(shim.poll(sink), 0u);
  shim.answer(0, sink);
  shim.set_doorbell(0x5244);
  shim.remove_entry(kText);
  const auto slot = shim.allocate_slot(8);
  EXPECT_FALSE(slot && shim.write_slot(*slot, std::array{std::byte{0x90}}));
  EXPECT_FALSE(slot && shim.add_entry(GuestVirt(kText.raw() + 0x200), *slot));
  shim.activate();
  shim.deactivate();

  EXPECT_TRUE(std::equal(before.begin(), before.end(), region.begin()));
  EXPECT_TRUE(shim.quiescent()) << "there is nobody to wait for";
  EXPECT_FALSE(shim.waiting(GuestVirt(0xffff888000000000)));
  EXPECT_EQ(shim.counters().orphans, counted.orphans);
}

TEST_P(ShimChannel, WritesNothingOnceTheGuestHasLeftItsKernel) {
  shim_.activate();
  EXPECT_EQ(shim_.state(), ShimState::There);
  raise(0, kText);
  control().left = 1;

  expect_left_alone(shim_, bytes(), sink_);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft);
  control().left = 0;
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft) << "for ever";
}

TEST_P(ShimChannel, WritesNothingIntoMemoryThatIsSomebodyElsesNow) {
  // Any of what we wrote: header, control, all of it.
  const std::pair<std::size_t, std::size_t> changes[] = {
      {0, 1}, {40, 8}, {layout().data + SHIM_CONTROL_PATIENCE, 8}, {0, layout().bytes}};
  for (const auto& [at, size] : changes) {
    PlainRegion region(GetParam());
    const auto all = region.bytes();
    InstalledShim shim(region.memory(), region.layout(), kBase, 2, PlainRegion::gate());
    ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
    shim.activate();
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(at), size, std::byte{0x5a});

    expect_left_alone(shim, all, sink_);

    EXPECT_EQ(shim.state(), ShimState::Overwritten) << at;
  }
}

TEST_P(ShimChannel, AHeartbeatReplacesNothingButTheLastOne) {
  auto& shared = control();
  shared.heartbeat = 0x1234567812345678;  // all else is still as we left it

  shim_.heartbeat();

  EXPECT_EQ(shared.heartbeat, 0x1234567812345678u);
  EXPECT_EQ(shim_.state(), ShimState::Overwritten);
}

TEST_P(ShimChannel, CountsNothingOfWhatLiesThereAfterwards) {
  box(0).orphans = 3;
  EXPECT_EQ(shim_.counters().orphans, 3u);
  std::ranges::fill(bytes(), std::byte{0x5a});

  EXPECT_EQ(shim_.counters().orphans, 3u);
}

TEST_P(ShimChannel, AFarewellNamesItsWordsFromWhereItStands) {
  const auto code = shim_.farewell(slot_);

  // movq $1, left(%rip); movq $0, active(%rip)
  ASSERT_EQ(code.size(), 22u);
  const auto target = [&](std::size_t instruction) {
    std::int32_t displacement;
    std::memcpy(&displacement, code.data() + instruction + 3, sizeof displacement);
    return slot_.raw() + instruction + 11 + static_cast<std::uint64_t>(displacement) - kBase.raw() -
           layout().data;
  };
  EXPECT_EQ(target(0), offsetof(shim_control, left));
  EXPECT_EQ(code[7], std::byte{1});
  EXPECT_EQ(target(11), offsetof(shim_control, active));
  EXPECT_EQ(code[18], std::byte{0});
}

TEST_P(ShimChannel, TheTrapThatLeavesTheKernelHasTheLastWrite) {
  const GuestVirt leaving(kText.raw() + 0x100);
  const GuestVirt slot = *shim_.allocate_slot(30);
  (void)shim_.farewell(slot);
  ASSERT_TRUE(shim_.add_entry(leaving, slot));
  shim_.activate();
  raise(0, leaving);

  EXPECT_EQ(shim_.poll(sink_), 1u);

  EXPECT_EQ(sink_.traps.size(), 1u) << "it fires";
  EXPECT_TRUE(region_.is_answered(0));
  EXPECT_EQ(shim_.state(), ShimState::GuestLeft) << "though the guest has not said so yet";
  raise(1, kText);
  expect_left_alone(shim_, bytes(), sink_);
}

TEST_P(ShimChannel, AnAddressThatIsNoTracepointIsNoFarewell) {
  raise(0, GuestVirt(0));

  EXPECT_EQ(shim_.poll(sink_), 1u);

  EXPECT_EQ(shim_.state(), ShimState::There);
}

TEST_P(ShimChannel, IsQuiescentWhenNothingWaits) {
  EXPECT_TRUE(shim_.quiescent());
  head(63).head = SHIM_CLAIMED;
  EXPECT_FALSE(shim_.quiescent());
  raise(63, kText);
  EXPECT_FALSE(shim_.quiescent());
  head(63).answered = head(63).head - SHIM_RAISED;
  EXPECT_FALSE(shim_.quiescent()) << "it is we who know what we have answered";
  head(63).answered = 0;
  shim_.answer(63, sink_);
  EXPECT_TRUE(shim_.quiescent());
}

TEST_P(ShimChannel, SumsTheGuestsCounters) {
  head(0).head = 5 * SHIM_CLAIM;
  head(1).head = 6 * SHIM_CLAIM | SHIM_CLAIMED;
  box(0).orphans = 2;
  box(1).late = 3;
  auto& shared = control();
  shared.foreign = 4;
  shared.overflows = 1;

  const ShimCounters sum = shim_.counters();

  EXPECT_EQ(sum.firings, 12u);
  EXPECT_EQ(sum.orphans, 3u);
  EXPECT_EQ(sum.late, 3u);
  EXPECT_EQ(sum.foreign, 4u);
}

TEST_P(ShimChannel, TellsTheProfilerWhatAWaitingCpuDid) {
  raise(1, kText);

  const auto waiting = shim_.waiting(GuestVirt(0xffff888000000001));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->rip, kText.raw());
  EXPECT_FALSE(shim_.waiting(GuestVirt(0xffff888000000000))) << "that one runs";

  EXPECT_TRUE(shim_.contains(kBase));
  EXPECT_TRUE(shim_.contains(GuestVirt(kBase.raw() + layout().bytes - 1)));
  EXPECT_FALSE(shim_.contains(GuestVirt(kBase.raw() + layout().bytes)));
  EXPECT_FALSE(shim_.contains(kText));
}

}  // namespace
}  // namespace ringside::vmm
