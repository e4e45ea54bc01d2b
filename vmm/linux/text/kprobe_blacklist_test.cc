#include <gtest/gtest.h>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/text/kprobes.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

using fakes::kText;

constexpr std::uint64_t kBlacklist = 0xffff'ffff'8200'0000, kEntries = 0xffff'8880'0000'0000;

struct KprobeBlacklist : testing::Test {
  KprobeBlacklist() {
    fakes::BtfWriter btf;
    const auto word = btf.integer("unsigned long", 8, false);
    btf.structure("kprobe_blacklist_entry", 32,
                  {{"list", word, 0}, {"start_addr", word, 128}, {"end_addr", word, 192}});
    EXPECT_TRUE(Btf::read(btf.blob(), nullptr, types));
    symbols.add_module({"vmlinux", GuestVirt(kText), 1 << 20, 0},
                       {{GuestVirt(kBlacklist), 16, "kprobe_blacklist", 'd', 0}});
    symbols.seal();
  }
  void entry(std::uint64_t at, std::uint64_t next, std::uint64_t start, std::uint64_t end) {
    guest.put(at, next);
    guest.put(at + 16, start);
    guest.put(at + 24, end);
  }
  auto read() { return read_kprobe_blacklist(guest, symbols, types); }

  fakes::SparseGuest guest;
  TypeGraph types;
  SymbolTable symbols;
};

TEST_F(KprobeBlacklist, IsEachRangeOfTheListInOrder) {
  guest.put(kBlacklist, kEntries);
  entry(kEntries, kEntries + 0x40, kText + 0x200, kText + 0x210);
  entry(kEntries + 0x40, kBlacklist, kText + 0x100, kText + 0x180);

  const auto ranges = read();

  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[0].begin.raw(), kText + 0x100);
  EXPECT_TRUE((*ranges)[0].contains(GuestVirt(kText + 0x17f)));
  EXPECT_FALSE((*ranges)[0].contains(GuestVirt(kText + 0x180)));
  EXPECT_EQ((*ranges)[1].begin.raw(), kText + 0x200);
}

TEST_F(KprobeBlacklist, ThatNeverEndsIsRefused) {
  guest.put(kBlacklist, kEntries);
  entry(kEntries, kEntries, kText, kText + 1);

  EXPECT_EQ(read().error().code, ErrorCode::Invalid);
}

TEST_F(KprobeBlacklist, ThatLeadsNowhereEndsBackwardsOrIsEmptyIsRefused) {
  guest.put(kBlacklist, kEntries);
  EXPECT_EQ(read().error().code, ErrorCode::Invalid);

  entry(kEntries, kBlacklist, kText + 1, kText);
  EXPECT_EQ(read().error().code, ErrorCode::Invalid);

  guest.put(kBlacklist, kBlacklist);
  EXPECT_EQ(read().error().code, ErrorCode::Invalid);
}

TEST_F(KprobeBlacklist, OfAKernelWithoutKprobesIsNotThere) {
  EXPECT_EQ(read_kprobe_blacklist(guest, SymbolTable(), types).error().code,
            ErrorCode::Unsupported);
  EXPECT_EQ(read_kprobe_blacklist(guest, symbols, TypeGraph()).error().code,
            ErrorCode::Unsupported);
}

}  // namespace
}  // namespace ringside::guest_linux
