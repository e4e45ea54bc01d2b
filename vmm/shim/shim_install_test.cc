#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/shim.h"

namespace ringside::vmm {
namespace {

using namespace shim_fakes;

void expect_refused(FakeGuest& guest, const ShimKernelFacts& with, std::string_view reason) {
  const auto low = guest.ram().first(4 * kMiB);  // page tables, image and gate
  const std::vector<std::byte> before(low.begin(), low.end());
  const auto place = guest.get64(kPlace.raw());
  const auto shim = install(guest, with);
  ASSERT_FALSE(shim);
  EXPECT_NE(shim.error().message.find(reason), std::string::npos) << shim.error().message;
  EXPECT_TRUE(std::ranges::equal(low, before)) << "a refused guest is not touched";
  EXPECT_EQ(guest.get64(kPlace.raw()), place);
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
  EXPECT_EQ(header.slots, header.base + 2 * kMiB);
  EXPECT_EQ(header.slots_bytes, 12 * kMiB);
  EXPECT_EQ(header.unit_shift, 5u);
  EXPECT_EQ(header.data, header.base + 14 * kMiB);
  EXPECT_EQ(header.current, 0) << "nobody knows where it is";
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

  guest.put64(kIdtTable.raw(), kHandler.raw() & 0xfff000);
  expect_refused(guest, facts(), "not the kernel's");
  guest.put64(kIdtTable.raw(), (kRam + 0x1000) | 1);
  expect_refused(guest, facts(), "not the kernel's");
  guest.put64(kIdtTable.raw(), (kImagePhys.raw() + 0x1000) | 1);

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
  EXPECT_EQ(header.slots, header.base + SHIM_CODE_SIZE);
  EXPECT_EQ(header.unit_shift, 0u);
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
  EXPECT_TRUE(install(guest, facts(), {GuestPhys(kRam - 64 * 1024), 64 << 10}))
      << "the smallest, at the end of RAM";
}

TEST(ShimInstall, TakesAsManyVcpusAsThereAreMailboxesButOne) {
  FakeGuest guest;
  guest.vcpus = SHIM_MAILBOXES - 1;
  EXPECT_TRUE(install(guest));
}

/// Ticks of the TSC, and looks at a mailbox, which take longer where the guest is translated.
TEST(ShimInstall, TellsTheShimHowLongToWait) {
  const auto timeout_of = [](pid_t process) {
    FakeGuest guest;
    guest.process = process;
    EXPECT_TRUE(install(guest));
    const shim_header header = header_at(guest, kPlace);
    return guest.get64(kPlace.raw() + (header.data - header.base) + SHIM_CONTROL_TIMEOUT);
  };
  constexpr std::uint64_t kTicks = 6'000'000'000 >> 10;
  EXPECT_EQ(timeout_of(0), kTicks | std::uint64_t{300'000'000 >> 10} << 32);
  EXPECT_EQ(timeout_of(getpid()), kTicks | std::uint64_t{8'000'000 >> 10} << 32)
      << "this process has no vCPUs of KVM";
  EXPECT_EQ(timeout_of(std::numeric_limits<pid_t>::max()), timeout_of(0)) << "nobody knows";
}

TEST(ShimInstall, TellsTheShimWhereTheTaskIs) {
  FakeGuest guest;
  ShimKernelFacts with = facts();
  with.task = ShimTaskFacts{0x1fb00, 0x700, 0x500, 0x504};

  ASSERT_TRUE(install(guest, with));

  const shim_header header = header_at(guest, kPlace);
  EXPECT_EQ(header.current, 0x1fb00);
  EXPECT_EQ(header.comm, 0x700u);
  EXPECT_EQ(header.pid, 0x500u);
  EXPECT_EQ(header.tgid, 0x504u);
}

TEST(ShimInstall, TellsWhoOwnsIt) {
  FakeGuest guest;
  guest.process = getpid();

  ASSERT_TRUE(install(guest));

  const shim_header header = header_at(guest, kPlace);
  const ProcessName self = ProcessName::of_self();
  EXPECT_EQ(header.machine, self.word());
  EXPECT_EQ(header.owner, self.pid);
  EXPECT_EQ(header.owner_start, self.start);
  EXPECT_NE(header.owner_start, 0u);
  timespec up;
  ASSERT_EQ(clock_gettime(CLOCK_BOOTTIME, &up), 0);
  EXPECT_LE(header.owner_start, static_cast<std::uint64_t>((up.tv_sec + 1) * sysconf(_SC_CLK_TCK)))
      << "it has begun, in clock ticks";
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

TEST(ShimInstall, WhatWasLostUntilItRetiredIsStillKnownAfterwards) {
  FakeGuest guest;
  auto shim = install(guest, facts(), kLow);
  ASSERT_TRUE(shim);
  EXPECT_EQ((*shim)->counters().orphans, 0u);
  const shim_header header = header_at(guest, kLow.base);
  guest.put64(kLow.base.raw() + (header.data - header.base) + SHIM_BOXES + SHIM_BOX_ORPHANS, 3);
  auto paused = PausedMachine::pause(guest);
  ASSERT_TRUE(paused);

  ASSERT_TRUE((*shim)->retire(*paused));

  EXPECT_EQ((*shim)->counters().orphans, 3u);
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
      ASSERT_TRUE((*shim)->enable_entries(std::array{kText}));
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

TEST(ShimInstall, AVcpuWithoutPageTablesRunsNoKernelOfOurs) {
  FakeGuest guest;
  auto shim = install(guest);
  ASSERT_TRUE(shim);
  auto paused = PausedMachine::pause(guest);
  guest.first.cr0 = 0x10;

  EXPECT_FALSE((*shim)->check_mapped(*paused));
}

}  // namespace
}  // namespace ringside::vmm
