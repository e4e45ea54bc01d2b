#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "vmm/inert_machine_for_tests.h"
#include "vmm/shim/shim_channel.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kRam = 64 * kMiB;
constexpr GuestVirt kImage{0xffffffff81000000};
constexpr GuestVirt kIdt{kImage.raw() + 0x1000};
constexpr GuestVirt kHandler{kImage.raw() + 0x2000};
constexpr GuestPhys kRoot{0x1000}, kPud{0x2000}, kPmd{0x3000}, kImagePhys{2 * kMiB};
constexpr GuestPhys kPlace{32 * kMiB};
constexpr GuestVirt kText{kImage.raw() + 0x3000};

/// RAM with a four-level table that maps one large page of kernel image, and a machine around it.
class FakeGuest final : public InertMachine {
 public:
  FakeGuest() {
    void* ram = mmap(nullptr, kRam, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ram_ = {static_cast<std::byte*>(ram), kRam};
    memory_ = GuestMemory({{GuestPhys(0), ram_}});
    put64(kRoot.raw() + 8 * 511, kPud.raw() | 3);
    put64(kPud.raw() + 8 * 510, kPmd.raw() | 3);
    put64(kPmd.raw() + 8 * 8, kImagePhys.raw() | 0x83);
    set_gate(kHandler, 0x8e00);
    registers.efer = 0xd01;
    registers.cr0 = 0x80050033;
    registers.cr3 = kRoot.raw();
  }
  FakeGuest(const FakeGuest&) = delete;
  FakeGuest& operator=(const FakeGuest&) = delete;
  ~FakeGuest() override { munmap(ram_.data(), ram_.size()); }

  void put64(std::uint64_t at, std::uint64_t value) {
    std::memcpy(ram_.data() + at, &value, sizeof value);
  }
  std::uint64_t get64(std::uint64_t at) const {
    std::uint64_t value;
    std::memcpy(&value, ram_.data() + at, sizeof value);
    return value;
  }
  void set_gate(GuestVirt handler, std::uint64_t attributes) {
    const std::uint64_t h = handler.raw();
    put64(gate_at(), (h & 0xffff) | 0x10 << 16 | attributes << 32 | (h >> 16 & 0xffff) << 48);
    put64(gate_at() + 8, h >> 32);
  }
  GuestVirt gate_handler() const {
    const std::uint64_t low = get64(gate_at()), high = get64(gate_at() + 8);
    return GuestVirt((low & 0xffff) | (low >> 48) << 16 | high << 32);
  }
  std::uint64_t pmd(unsigned index) const { return get64(kPmd.raw() + 8 * index); }
  std::span<std::byte> ram() { return ram_; }

  unsigned vcpu_count() const override { return vcpus; }
  GuestMemory& memory() override { return memory_; }

  unsigned vcpus = 2;
  Registers registers;
  Registers others;  // of all vCPUs but 0: not started

 protected:
  Result<Registers> read_registers(unsigned vcpu) override {
    return vcpu == 0 ? registers : others;
  }

 private:
  static std::uint64_t gate_at() { return kImagePhys.raw() + 0x1000 + 3 * 16; }
  std::span<std::byte> ram_;
  GuestMemory memory_;
};

ShimKernelFacts facts() {
  ShimKernelFacts out;
  out.kernel_table = PageTable{kRoot, 4, 0};
  out.image_region_start = GuestVirt(0xffffffff80000000);
  out.image_region_end = GuestVirt(0xffffffffc0000000);
  out.image_end = GuestVirt(kImage.raw() + 0x180000);
  out.this_cpu_off = 0x1fb88;
  out.idt = kIdt;
  out.int3_handler = kHandler;
  return out;
}

Result<std::unique_ptr<Shim>> install(FakeGuest& guest, const ShimKernelFacts& with = facts(),
                                      GuestMemory::Extent place = {kPlace, 16 * kMiB}) {
  PausedMachine paused = TRY(PausedMachine::pause(guest));
  return Shim::install(paused, place, with);
}

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
  guest.registers.efer = 0x501;

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
  ShimKernelFacts isolated = facts();
  isolated.page_table_isolation = true;
  expect_refused(guest, isolated, "--append pti=off");

  guest.registers.cr4 = std::uint64_t{1} << 32;
  expect_refused(guest, facts(), "FRED");
  guest.registers.cr4 = 0;

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
  EXPECT_NE(second.error().message.find("boot it anew"), std::string::npos);
}

TEST(ShimInstall, RefusesAPlaceThatIsTooSmallOrNotRam) {
  FakeGuest guest;

  const auto small = install(guest, facts(), {GuestPhys(kPlace.raw() + 4096), 16 * kMiB});
  const auto outside = install(guest, facts(), {GuestPhys(kRam), 16 * kMiB});
  const auto wrapping = install(guest, facts(), {GuestPhys(~std::uint64_t{0}), 16 * kMiB});

  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("set aside"), std::string::npos);
  ASSERT_FALSE(outside);
  EXPECT_NE(outside.error().message.find("not RAM"), std::string::npos);
  EXPECT_FALSE(wrapping);
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
  guest.registers.cr3 = kOther.raw();
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
  guest.others = guest.registers;
  guest.others.cr3 = 0x20000;
  EXPECT_TRUE((*shim)->check_mapped(*paused)) << "a virtual machine in the guest, say";
  std::memset(guest.ram().data() + kPlace.raw() + 16, 0, 8);

  EXPECT_FALSE((*shim)->check_mapped(*paused));
  std::memcpy(guest.ram().data() + kPlace.raw() + 16, &kHandler, 8);
  EXPECT_FALSE((*shim)->check_mapped(*paused)) << "vCPU 1 may run another kernel";
  guest.others.cr3 = guest.registers.cr3;
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

/// A channel over plain memory; the test plays the guest.
class ShimChannel : public testing::Test {
 protected:
  static constexpr GuestVirt kBase{0xffffffff9f000000};

  ShimChannel() : region_(SHIM_REGION_SIZE / 8), shim_(bytes(), kPlace, kBase, 2, {}) {
    slot_ = *shim_.allocate_slot(8);
    EXPECT_TRUE(shim_.add_entry(kText, slot_));
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(region_)); }
  shim_mailbox& box(unsigned i) {
    return reinterpret_cast<shim_mailbox*>(bytes().data() + SHIM_MAILBOX_OFFSET)[i];
  }
  const shim_control& control() {
    return *reinterpret_cast<const shim_control*>(bytes().data() + SHIM_DATA_OFFSET);
  }
  void raise(unsigned i, GuestVirt address, std::uint64_t sequence = 1) {
    box(i).address = address.raw();
    box(i).percpu = 0xffff888000000000 + i;
    box(i).tsc = 1000 + i;
    for (unsigned r = 0; r < SHIM_REGISTERS; ++r) box(i).regs[r] = 100 * i + r;
    box(i).segments = std::uint64_t{0x18} << 32 | 0x10;
    box(i).head = sequence << 8 | SHIM_RAISED;
  }

  std::vector<std::uint64_t> region_;
  SpinShim shim_;
  GuestVirt slot_;
  Recorder sink_;
};

TEST_F(ShimChannel, ServesEveryRaisedMailboxOnceAndAnswers) {
  raise(0, kText, 7);
  raise(1, kText, 9);

  EXPECT_EQ(shim_.poll(sink_), 2u);
  EXPECT_EQ(shim_.poll(sink_), 0u);

  ASSERT_EQ(sink_.traps.size(), 2u);
  EXPECT_EQ(box(0).head, 7u << 8 | SHIM_ANSWERED);
  EXPECT_EQ(box(1).head, 9u << 8 | SHIM_ANSWERED);
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

TEST_F(ShimChannel, AnswersTheMailboxThatRangAndNoOther) {
  raise(0, kText, 7);
  raise(1, kText, 9);

  shim_.answer(1, sink_);
  shim_.answer(1, sink_);

  ASSERT_EQ(sink_.traps.size(), 1u);
  EXPECT_EQ(sink_.traps[0].tsc, 1001u);
  EXPECT_EQ(box(0).head, 7u << 8 | SHIM_RAISED);
  EXPECT_EQ(box(1).head, 9u << 8 | SHIM_ANSWERED);
}

TEST_F(ShimChannel, ARingForNothingDoesNothing) {
  box(3).head = SHIM_CLAIMED;
  for (const std::uint32_t lie : {0u, 3u, SHIM_MAILBOXES, SHIM_MAILBOXES + 1, UINT32_MAX}) {
    shim_.answer(lie, sink_);
  }

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(box(3).head, std::uint64_t{SHIM_CLAIMED});
  EXPECT_EQ(shim_.counters().rejected, 0u);
}

TEST_F(ShimChannel, TellsTheGuestWhereToRing) {
  EXPECT_EQ(control().doorbell, 0u);

  shim_.set_doorbell(0x5244);
  EXPECT_EQ(control().doorbell, 0x5244u);
  shim_.set_doorbell(0);
  EXPECT_EQ(control().doorbell, 0u);
}

TEST_F(ShimChannel, FindsANestedTrapInAMailboxThatWasNeverUsed) {
  raise(40, kText);

  unsigned served = 0;
  for (int i = 0; i < 64; ++i) served += shim_.poll(sink_);
  EXPECT_EQ(served, 1u);

  raise(40, kText);
  EXPECT_EQ(shim_.poll(sink_), 1u) << "from now on it is looked at every time";
}

TEST_F(ShimChannel, AnswersButDoesNotFireWhatIsNoTracepoint) {
  raise(0, GuestVirt(kText.raw() + 1));
  raise(1, GuestVirt(kText.raw() & 0xffffffff));  // the key alone is not the address

  EXPECT_EQ(shim_.poll(sink_), 2u);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(shim_.counters().rejected, 2u);
  EXPECT_EQ(box(0).head & 0xff, std::uint64_t{SHIM_ANSWERED});
}

TEST_F(ShimChannel, IgnoresStatesThatDoNotExist) {
  raise(0, kText);
  box(0).head = 0xff;

  EXPECT_EQ(shim_.poll(sink_), 0u);
}

TEST_F(ShimChannel, DoesNotAnswerATrapThatReplacedTheOneItLookedAt) {
  raise(0, kText, 1);
  sink_.during = [this] { raise(0, kText, 2); };  // the guest gave up and trapped again

  shim_.poll(sink_);

  EXPECT_EQ(box(0).head, 2u << 8 | SHIM_RAISED);
}

/// A region whose first mailbox crosses a page, and a guest that acts when the second is touched.
class RegionThatChanges {
 public:
  explicit RegionThatChanges(std::function<void()> act) : act_(std::move(act)) {
    void* mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    bytes_ = static_cast<std::byte*>(mapped);
    current = this;
    struct sigaction action {};
    action.sa_handler = [](int) { current->touched(); };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~RegionThatChanges() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(bytes_, kSize);
  }
  RegionThatChanges(const RegionThatChanges&) = delete;
  RegionThatChanges& operator=(const RegionThatChanges&) = delete;

  std::span<std::byte> region() { return {bytes_ + kPage - kBefore, SHIM_REGION_SIZE}; }
  shim_mailbox& box() {
    return *reinterpret_cast<shim_mailbox*>(region().data() + SHIM_MAILBOX_OFFSET);
  }
  void wait_for_touch() { mprotect(second_page(), kPage, PROT_NONE); }

 private:
  static constexpr std::size_t kPage = 4096, kBefore = SHIM_BOX_REGS;
  static constexpr std::size_t kSize = SHIM_REGION_SIZE + kPage;
  static inline RegionThatChanges* current = nullptr;

  std::byte* second_page() { return bytes_ + SHIM_MAILBOX_OFFSET + kPage; }
  void touched() {
    mprotect(second_page(), kPage, PROT_READ | PROT_WRITE);
    act_();
  }

  std::byte* bytes_ = nullptr;
  std::function<void()> act_;
  struct sigaction before_ {};
};

TEST(ShimChannelCopy, FiresNoTrapWhoseMailboxChangesWhileItIsCopied) {
  RegionThatChanges* changes = nullptr;
  RegionThatChanges guest([&] {  // it lost patience, and another trap took the mailbox
    changes->box().head = 2 << 8 | SHIM_RAISED;
    changes->box().regs[SHIM_RDI] = 2;
  });
  changes = &guest;
  SpinShim shim(guest.region(), kPlace, GuestVirt(0xffffffff9f000000), 1, {});
  ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
  Recorder sink;
  guest.box().address = kText.raw();
  guest.box().head = 1 << 8 | SHIM_RAISED;
  guest.wait_for_touch();

  shim.poll(sink);

  EXPECT_TRUE(sink.traps.empty()) << "half of one trap and half of another";
  EXPECT_EQ(guest.box().head, 2u << 8 | SHIM_RAISED) << "not answered either";
  EXPECT_EQ(shim.poll(sink), 1u);
  ASSERT_EQ(sink.traps.size(), 1u);
  EXPECT_EQ(sink.traps[0].registers.rdi, 2u);
}

TEST_F(ShimChannel, WritesTheTableThatTheShimReads) {
  const auto* table = reinterpret_cast<const std::uint64_t*>(bytes().data() + SHIM_TABLE_OFFSET);
  const std::uint32_t bucket =
      static_cast<std::uint32_t>(kText.raw()) * SHIM_HASH >> (32 - SHIM_TABLE_BITS);

  EXPECT_EQ(table[bucket], (kText.raw() & 0xffffffff) | std::uint64_t{SHIM_SLOTS_OFFSET} << 32);
  EXPECT_FALSE(shim_.add_entry(kText, slot_)) << "once";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(0x401000), slot_)) << "user addresses have no key";
  EXPECT_FALSE(shim_.add_entry(GuestVirt(kText.raw() + 1), kBase)) << "no slot";
}

TEST_F(ShimChannel, ARemovedEntryKeepsItsPlaceWithoutASlot) {
  const auto* table = reinterpret_cast<const std::uint64_t*>(bytes().data() + SHIM_TABLE_OFFSET);
  const std::uint32_t bucket =
      static_cast<std::uint32_t>(kText.raw()) * SHIM_HASH >> (32 - SHIM_TABLE_BITS);

  shim_.remove_entry(GuestVirt(kText.raw() + 1));
  EXPECT_NE(table[bucket] >> 32, 0u) << "another address";
  shim_.remove_entry(kText);

  EXPECT_EQ(table[bucket], kText.raw() & 0xffffffff);
  raise(0, kText);  // it looked its slot up before
  EXPECT_EQ(shim_.poll(sink_), 1u);
  EXPECT_EQ(box(0).head & 0xff, std::uint64_t{SHIM_ANSWERED});
}

TEST_F(ShimChannel, FillsTheTableToItsLimitAndSaysSo) {
  Result<void> added;
  std::size_t count = 1;
  while ((added = shim_.add_entry(GuestVirt(kText.raw() + count), slot_))) ++count;

  EXPECT_EQ(count, SHIM_TABLE_ENTRIES / 4 * 3u);
  EXPECT_EQ(added.error().code, ErrorCode::Limit);
}

TEST_F(ShimChannel, HandsOutSlotsUntilTheyAreUsedUp) {
  const auto next = shim_.allocate_slot(9);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->raw(), slot_.raw() + 8);
  const std::byte code[9] = {std::byte{0x90}};
  ASSERT_TRUE(shim_.write_slot(*next, code));
  EXPECT_EQ(bytes()[SHIM_SLOTS_OFFSET + 8], std::byte{0x90});
  EXPECT_FALSE(shim_.write_slot(GuestVirt(next->raw() + 1), code)) << "past what was given out";
  EXPECT_FALSE(shim_.write_slot(GuestVirt(kBase.raw()), code)) << "the shim's own code";

  ASSERT_TRUE(shim_.allocate_slot(SHIM_SLOTS_SIZE - 17));
  const auto none = shim_.allocate_slot(1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::Limit);
}

TEST_F(ShimChannel, StartsInactiveAndBeatsForward) {
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
void expect_left_alone(SpinShim& shim, std::span<const std::byte> region, TrapSink& sink) {
  const std::vector<std::byte> before(region.begin(), region.end());
  const ShimCounters counted = shim.counters();

  shim.heartbeat();
  EXPECT_EQ(shim.poll(sink), 0u);
  shim.answer(0, sink);
  shim.set_doorbell(0x5244);
  shim.remove_entry(kText);
  shim.activate();
  shim.deactivate();

  EXPECT_TRUE(std::equal(before.begin(), before.end(), region.begin()));
  EXPECT_TRUE(shim.quiescent()) << "there is nobody to wait for";
  EXPECT_FALSE(shim.waiting(GuestVirt(0xffff888000000000)));
  EXPECT_EQ(shim.counters().orphans, counted.orphans);
}

TEST_F(ShimChannel, WritesNothingOnceTheGuestHasLeftItsKernel) {
  shim_.activate();
  EXPECT_EQ(shim_.fate(), ShimFate::There);
  raise(0, kText);
  const_cast<shim_control&>(control()).left = 1;

  expect_left_alone(shim_, bytes(), sink_);

  EXPECT_TRUE(sink_.traps.empty());
  EXPECT_EQ(shim_.fate(), ShimFate::GuestLeft);
  const_cast<shim_control&>(control()).left = 0;
  EXPECT_EQ(shim_.fate(), ShimFate::GuestLeft) << "for ever";
}

TEST_F(ShimChannel, WritesNothingIntoMemoryThatIsSomebodyElsesNow) {
  // Any of what we wrote: header, control, all of it.
  const std::pair<std::size_t, std::size_t> changes[] = {
      {0, 1}, {40, 8}, {SHIM_DATA_OFFSET + SHIM_CONTROL_PATIENCE, 8}, {0, SHIM_REGION_SIZE}};
  for (const auto& [at, size] : changes) {
    std::vector<std::uint64_t> region(SHIM_REGION_SIZE / 8);
    const auto all = std::as_writable_bytes(std::span(region));
    SpinShim shim(all, kPlace, kBase, 2, {});
    ASSERT_TRUE(shim.add_entry(kText, *shim.allocate_slot(8)));
    shim.activate();
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(at), size, std::byte{0x5a});

    expect_left_alone(shim, all, sink_);

    EXPECT_EQ(shim.fate(), ShimFate::Overwritten) << at;
  }
}

TEST_F(ShimChannel, AHeartbeatReplacesNothingButTheLastOne) {
  auto& shared = const_cast<shim_control&>(control());
  shared.heartbeat = 0x1234567812345678;  // all else is still as we left it

  shim_.heartbeat();

  EXPECT_EQ(shared.heartbeat, 0x1234567812345678u);
  EXPECT_EQ(shim_.fate(), ShimFate::Overwritten);
}

TEST_F(ShimChannel, CountsNothingOfWhatLiesThereAfterwards) {
  box(0).orphans = 3;
  EXPECT_EQ(shim_.counters().orphans, 3u);
  std::fill(region_.begin(), region_.end(), 0x5a5a5a5a5a5a5a5a);

  EXPECT_EQ(shim_.counters().orphans, 3u);
}

TEST_F(ShimChannel, AFarewellNamesItsWordsFromWhereItStands) {
  const auto code = shim_.farewell(slot_);

  // movq $1, left(%rip); movq $0, active(%rip)
  ASSERT_EQ(code.size(), 22u);
  const auto target = [&](std::size_t instruction) {
    std::int32_t displacement;
    std::memcpy(&displacement, code.data() + instruction + 3, sizeof displacement);
    return slot_.raw() + instruction + 11 + static_cast<std::uint64_t>(displacement) - kBase.raw() -
           SHIM_DATA_OFFSET;
  };
  EXPECT_EQ(target(0), offsetof(shim_control, left));
  EXPECT_EQ(code[7], std::byte{1});
  EXPECT_EQ(target(11), offsetof(shim_control, active));
  EXPECT_EQ(code[18], std::byte{0});
}

TEST_F(ShimChannel, IsQuiescentWhenNothingWaits) {
  EXPECT_TRUE(shim_.quiescent());
  box(63).head = SHIM_CLAIMED;
  EXPECT_FALSE(shim_.quiescent());
  raise(63, kText);
  EXPECT_FALSE(shim_.quiescent());
  box(63).head = SHIM_ANSWERED;
  EXPECT_TRUE(shim_.quiescent());
}

TEST_F(ShimChannel, SumsTheGuestsCounters) {
  box(0).head = 5 << 8;
  box(1).head = 6 << 8 | SHIM_CLAIMED;
  box(0).orphans = 2;
  box(1).late = 3;
  auto& shared = const_cast<shim_control&>(control());
  shared.foreign = 4;
  shared.overflows = 1;

  const ShimCounters sum = shim_.counters();

  EXPECT_EQ(sum.firings, 12u);
  EXPECT_EQ(sum.orphans, 3u);
  EXPECT_EQ(sum.late, 3u);
  EXPECT_EQ(sum.foreign, 4u);
}

TEST_F(ShimChannel, TellsTheProfilerWhatAWaitingCpuDid) {
  raise(1, kText);

  const auto waiting = shim_.waiting(GuestVirt(0xffff888000000001));
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->rip, kText.raw());
  EXPECT_FALSE(shim_.waiting(GuestVirt(0xffff888000000000))) << "that one runs";

  EXPECT_TRUE(shim_.contains(kBase));
  EXPECT_TRUE(shim_.contains(GuestVirt(kBase.raw() + SHIM_REGION_SIZE - 1)));
  EXPECT_FALSE(shim_.contains(GuestVirt(kBase.raw() + SHIM_REGION_SIZE)));
  EXPECT_FALSE(shim_.contains(kText));
}

}  // namespace
}  // namespace ringside::vmm
