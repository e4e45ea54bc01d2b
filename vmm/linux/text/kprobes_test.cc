#include "vmm/linux/text/kprobes.h"

#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/text/kprobe_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kKprobeTable = 0xffff'ffff'8200'0000, kLock = 0xffff'ffff'8200'1000;
constexpr std::uint64_t kHeap = 0xffff'8880'0000'0000;

KprobeBytes code(std::initializer_list<int> values) {
  KprobeBytes bytes{};
  std::transform(values.begin(), values.end(), bytes.begin(),
                 [](int value) { return static_cast<std::byte>(value); });
  return bytes;
}

struct Kprobes : testing::Test {
  Kprobes() {
    fakes::add_kprobe_types(types);
    symbols.add_module({"vmlinux", GuestVirt(kText), 1 << 20, 0},
                       {{GuestVirt(kKprobeTable), 512, "kprobe_table", 'b', 0},
                        {GuestVirt(kLock), 32, "text_mutex", 'D', 0}});
    symbols.seal();
    for (std::uint64_t list = 0; list < 64; ++list)
      guest.put(kKprobeTable + 8 * list, std::uint64_t{0});
    guest.put(kLock + fakes::kOwnerAt, std::uint64_t{0});
  }
  void put(const fakes::FakeKprobe& kprobe) {
    kprobe.write([this](std::uint64_t at, auto value) { guest.put(at, value); });
  }
  void head(std::uint64_t list, std::uint64_t node) { guest.put(kKprobeTable + 8 * list, node); }
  KprobeTable table() { return {symbols, types}; }
  Result<std::vector<Kprobe>> read() { return table().read(guest); }

  fakes::SparseGuest guest;
  TypeGraph types;
  SymbolTable symbols;
};

TEST_F(Kprobes, OfAllListsAreSortedByAddress) {
  const fakes::FakeKprobe last{.at = kHeap + 0x1000, .address = kText + 9, .opcode = 0x48};
  const fakes::FakeKprobe first{
      .at = kHeap, .address = kText + 30, .opcode = 0x55, .next = last.node()};
  const fakes::FakeKprobe other{.at = kHeap + 0x2000, .address = kText + 20, .opcode = 0x41};
  put(first);
  put(last);
  put(other);
  head(3, first.node());
  head(63, other.node());

  const auto kprobes = read();

  ASSERT_TRUE(kprobes);
  ASSERT_EQ(kprobes->size(), 3u);
  EXPECT_EQ((*kprobes)[0].address.raw(), kText + 9);
  EXPECT_EQ((*kprobes)[0].opcode, std::byte{0x48});
  EXPECT_EQ((*kprobes)[1].address.raw(), kText + 20);
  EXPECT_EQ((*kprobes)[2].address.raw(), kText + 30);
}

TEST_F(Kprobes, OfUnknownShapeAreRefusedUnlessThereAreNone) {
  const TypeGraph unknown;

  const auto none = KprobeTable(symbols, unknown).read(guest);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());

  head(3, kHeap);
  const auto some = KprobeTable(symbols, unknown).read(guest);
  ASSERT_FALSE(some);
  EXPECT_NE(some.error().message.find("--types"), std::string::npos) << some.error().message;
}

TEST_F(Kprobes, ThatDoNotPatchTextAreLeftOut) {
  const fakes::FakeKprobe gone{
      .at = kHeap, .address = kText, .opcode = 0x55, .flags = fakes::kFlagGone};
  const fakes::FakeKprobe ftrace{.at = kHeap + 0x1000,
                                 .address = kText + 16,
                                 .opcode = 0,
                                 .flags = fakes::kFlagFtrace,
                                 .next = gone.node()};
  put(gone);
  put(ftrace);
  head(0, ftrace.node());

  const auto kprobes = read();

  ASSERT_TRUE(kprobes);
  EXPECT_TRUE(kprobes->empty());
}

TEST_F(Kprobes, ABreakpointHidesOneByte) {
  put({.at = kHeap, .address = kText, .opcode = 0x48});
  head(0, fakes::FakeKprobe{.at = kHeap, .address = 0, .opcode = 0}.node());
  const Kprobe kprobe = read()->at(0);

  EXPECT_EQ(kprobe.original(code({0xcc, 1, 2, 3, 4})), code({0x48, 1, 2, 3, 4}));
  EXPECT_EQ(kprobe.original(code({0x48, 1, 2, 3, 4})), code({0x48, 1, 2, 3, 4})) << "disabled";
  EXPECT_EQ(kprobe.original(code({0xe9, 1, 2, 3, 4})), code({0xe9, 1, 2, 3, 4})) << "no jump of it";
}

TEST_F(Kprobes, AJumpHidesFiveBytes) {
  const fakes::FakeKprobe optimized{.at = kHeap,
                                    .address = kText,
                                    .opcode = 0x55,
                                    .flags = fakes::kFlagOptimized,
                                    .copied = 0x44332211,
                                    .target = kText + 5 + 0x01020304};
  put(optimized);
  head(0, optimized.node());
  const Kprobe kprobe = read()->at(0);
  const KprobeBytes original = code({0x55, 0x11, 0x22, 0x33, 0x44});

  EXPECT_EQ(kprobe.original(code({0xe9, 4, 3, 2, 1})), original);
  EXPECT_EQ(kprobe.original(code({0xcc, 4, 3, 2, 1})), original) << "while the jump is written";
  EXPECT_EQ(kprobe.original(code({0xcc, 0x11, 0x22, 0x33, 0x44})), original) << "before it";
  EXPECT_EQ(kprobe.original(code({0xe9, 9, 9, 9, 9})), code({0xe9, 9, 9, 9, 9})) << "another jump";
}

TEST_F(Kprobes, AListThatEndsNowhereIsRefused) {
  const fakes::FakeKprobe tail{.at = kHeap + 0x1000, .address = kText, .opcode = 0x55};
  fakes::FakeKprobe cyclic{.at = kHeap, .address = kText, .opcode = 0x55, .next = tail.node()};
  put(cyclic);
  put({.at = tail.at, .address = kText, .opcode = 0x55, .next = cyclic.node()});
  head(7, cyclic.node());
  EXPECT_FALSE(read()) << "a cycle";

  cyclic.next = 0x1000;
  put(cyclic);
  EXPECT_FALSE(read()) << "unmapped";
}

TEST_F(Kprobes, InTwoListsAreRefused) {
  const fakes::FakeKprobe probe{
      .at = kHeap, .address = kText, .opcode = 0x55, .flags = fakes::kFlagGone};
  put(probe);
  head(3, probe.node());
  head(4, probe.node());

  EXPECT_FALSE(read());
}

TEST_F(Kprobes, WhoseCopyDisagreesAreRefused) {
  const fakes::FakeKprobe kprobe{.at = kHeap, .address = kText, .opcode = 0x55};
  put(kprobe);
  head(0, kprobe.node());
  ASSERT_TRUE(read());
  guest.put(kHeap + 0x100, std::uint8_t{0x90});

  EXPECT_FALSE(read()) << "the instruction that the kernel would execute begins otherwise";
}

TEST_F(Kprobes, AreNoneInAKernelWithoutThem) {
  SymbolTable none;
  none.add_module({"vmlinux", GuestVirt(kText), 1 << 20, 0}, {});
  none.seal();

  const auto kprobes = KprobeTable(none, types).read(guest);

  ASSERT_TRUE(kprobes);
  EXPECT_TRUE(kprobes->empty());
}

TEST_F(Kprobes, TheTextIsChangingWhileItsLockIsHeld) {
  EXPECT_FALSE(table().is_changing(guest));

  guest.put(kLock + fakes::kOwnerAt, std::uint64_t{7});
  EXPECT_FALSE(table().is_changing(guest)) << "flags of those who wait";

  guest.put(kLock + fakes::kOwnerAt, std::uint64_t{0xffff'8880'0001'0001});
  EXPECT_TRUE(table().is_changing(guest));
  EXPECT_FALSE(table().is_changing(guest, KprobeTable::Changes::OfKprobes)) << "another lock's";
}

}  // namespace
}  // namespace ringside::guest_linux
