#include "vmm/shim/shim_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "vmm/shim/fake_guest_for_tests.h"
#include "vmm/shim/plain_region_for_tests.h"
#include "vmm/shim/shim.h"
#include "vmm/shim/shim_remains.h"

namespace ringside::vmm {
namespace {

using shim_fakes::FakeGuest;
using shim_fakes::kPlace;

class RegionAlone : public testing::TestWithParam<Reach> {
 protected:
  RegionAlone()
      : plain_(GetParam()),
        region_(plain_.memory(), plain_.layout().place, plain_.layout().bytes,
                plain_.layout().data) {}
  std::uint64_t size() const { return plain_.layout().bytes; }

  PlainRegion plain_;
  ShimRegion region_;
};

INSTANTIATE_TEST_SUITE_P(Every, RegionAlone,
                         testing::Values(Reach::Mapped, Reach::Copied, Reach::Mixed));

TEST_P(RegionAlone, EndsAtItsLastByte) {
  std::array<std::byte, 8> bytes{std::byte{1}};
  const auto empty = std::span(bytes).first(0);
  EXPECT_TRUE(region_.write(size() - 8, bytes));
  EXPECT_TRUE(region_.read(size() - 8, bytes));
  EXPECT_FALSE(region_.write(size() - 7, bytes));
  EXPECT_FALSE(region_.read(size() - 7, bytes));
  EXPECT_FALSE(region_.write(size() + 8, empty));
  EXPECT_FALSE(region_.read(size() + 8, empty));
  EXPECT_FALSE(region_.write(~std::uint64_t{0}, bytes));
  EXPECT_FALSE(region_.read(~std::uint64_t{0}, bytes));
  EXPECT_TRUE(region_.store(size() - 8, 7));
  EXPECT_EQ(region_.load(size() - 8), 7u);
  EXPECT_FALSE(region_.store(size(), 7));
  EXPECT_FALSE(region_.store(size() + 8, 7));
}

TEST_P(RegionAlone, AWordIsReplacedOnlyWhereItIsWhatWasExpected) {
  ASSERT_TRUE(region_.store(64, 5));
  std::uint64_t expected = 4;

  EXPECT_FALSE(region_.replace(64, expected, 6));
  EXPECT_EQ(expected, 5u) << "what is there";
  EXPECT_EQ(region_.load(64), 5u);
  EXPECT_TRUE(region_.replace(64, expected, 6));
  EXPECT_EQ(region_.load(64), 6u);
}

TEST_P(RegionAlone, AWordThatWasReadLongAgoIsLookedAtAgain) {
  ASSERT_TRUE(region_.store(64, 5));
  std::uint64_t expected = 4;
  const std::chrono::steady_clock::time_point long_ago;

  EXPECT_FALSE(region_.replace_after_look(64, expected, 6, long_ago));
  EXPECT_EQ(expected, 5u);
  EXPECT_TRUE(region_.replace_after_look(64, expected, 6, long_ago));
  EXPECT_EQ(region_.load(64), 6u);
}

TEST_P(RegionAlone, AfterTheLastWriteThereIsNone) {
  ASSERT_TRUE(region_.store(64, 5));
  std::uint64_t expected = 4;
  EXPECT_FALSE(region_.end_with(64, expected, 6)) << "nor was that one";
  EXPECT_EQ(expected, 5u);

  EXPECT_FALSE(region_.replace(64, expected, 7));
  EXPECT_FALSE(region_.replace_after_look(64, expected, 7, {}));
  EXPECT_FALSE(region_.replace_after_look(64, expected, 7, std::chrono::steady_clock::now()));
  EXPECT_EQ(region_.load(64), 5u);
}

TEST_P(RegionAlone, AMailboxIsCopiedWithItsHeadBeforeAndAfter) {
  plain_.raise(3, GuestVirt(0xffffffff81003000));
  plain_.box(3).regs[SHIM_R15] = 15;
  const std::uint64_t head = plain_.head(3).head;
  MailboxCopy copy;

  ASSERT_TRUE(region_.copy_mailbox(3, head, copy));

  EXPECT_EQ(copy.head.head, head);
  EXPECT_EQ(copy.head.address, 0xffffffff81003000u);
  EXPECT_EQ(copy.box.regs[SHIM_R15], 15u);
  EXPECT_EQ(copy.box.seal, plain_.box(3).seal);
  EXPECT_FALSE(region_.copy_mailbox(3, head + SHIM_CLAIM, copy)) << "another trap's";
}

TEST_P(RegionAlone, HeadsAreInTheOrderOfTheirMailboxes) {
  for (unsigned i = 0; i < SHIM_MAILBOXES; ++i) plain_.head(i).head = 100 + i;
  for (const std::size_t count : {1, 5, 64}) {
    std::vector<std::uint64_t> heads(count);
    region_.load_heads(heads);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(heads[i], 100 + i);
  }
}

TEST(ClearMemory, WritesZerosAndNothingBeside) {
  FakeGuest guest;
  constexpr std::uint64_t kSize = 2 * (1 << 20) + 4097;  // several pieces, the last one short
  const auto around = guest.ram().subspan(kPlace.raw() - 64, kSize + 128);
  std::ranges::fill(around, std::byte{0x5a});

  ASSERT_TRUE(clear_memory(guest.memory(), kPlace, kSize));

  const auto is = [](std::byte wanted) {
    return [wanted](std::byte byte) { return byte == wanted; };
  };
  EXPECT_TRUE(std::ranges::all_of(around.first(64), is(std::byte{0x5a})));
  EXPECT_TRUE(std::ranges::all_of(around.subspan(64, kSize), is(std::byte{0})));
  EXPECT_TRUE(std::ranges::all_of(around.last(64), is(std::byte{0x5a})));
  EXPECT_TRUE(clear_memory(guest.memory(), kPlace, 0));
  EXPECT_FALSE(clear_memory(guest.memory(), GuestPhys(shim_fakes::kRam - 4096), 8192));
}

/// A guest's RAM that takes so many writes, and no more.
class WritesUpTo final : public CopiedBytes {
 public:
  explicit WritesUpTo(std::span<std::byte> ram) : ram_(ram) {}
  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override {
    return ram_.read(parts);
  }
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (left == 0) return false;
    --left;
    return ram_.write(offset, bytes);
  }
  std::vector<ByteExtent> extents(ByteExtent of) const override { return {of}; }

  unsigned left = UINT32_MAX;

 private:
  AliasedBytes ram_;
};

/// An isolated guest of such RAM, and its shim.
struct UnwritableGuest {
  UnwritableGuest() : bytes(std::make_shared<WritesUpTo>(guest.ram())) {
    guest.isolate();
    guest.reach_by(bytes);
  }
  void install() {
    auto installed = shim_fakes::install(guest, shim_fakes::isolated_facts(), shim_fakes::kLow);
    ASSERT_TRUE(installed) << installed.error().message;
    shim = std::move(*installed);
  }

  FakeGuest guest;
  std::shared_ptr<WritesUpTo> bytes;
  std::unique_ptr<Shim> shim;
};

/// With one write after the other that fails, each time on a guest of its own; how many it takes.
template <class Work>
unsigned fails_at_each_write(Work work) {
  for (unsigned n = 0; n < 1000; ++n) {
    UnwritableGuest fresh;
    const auto done = work(fresh, n);
    if (done) return n;
    EXPECT_EQ(done.error().code, ErrorCode::Io) << n << ": " << done.error().message;
  }
  return 0;
}

TEST(UnwritableMemory, IsToldWhicheverWriteOfAnInstallationFails) {
  const unsigned writes = fails_at_each_write([](UnwritableGuest& fresh, unsigned n) {
    fresh.bytes->left = n;
    return shim_fakes::install(fresh.guest, shim_fakes::isolated_facts(), shim_fakes::kLow);
  });

  EXPECT_GE(writes, 9u) << "code, header, page tables, two entries, the gate";
}

TEST(UnwritableMemory, IsToldWhicheverWriteOfTheEndFails) {
  EXPECT_EQ(fails_at_each_write([](UnwritableGuest& fresh, unsigned n) {
              fresh.install();
              auto paused = PausedMachine::pause(fresh.guest);
              fresh.bytes->left = n == 0 ? 0 : UINT32_MAX;
              return fresh.shim->retire(*paused);
            }),
            1u);
  const unsigned writes = fails_at_each_write([](UnwritableGuest& fresh, unsigned n) {
    fresh.install();
    auto paused = PausedMachine::pause(fresh.guest);
    EXPECT_TRUE(fresh.shim->retire(*paused));
    fresh.bytes->left = n;
    return fresh.shim->remove(*paused);
  });

  EXPECT_GE(writes, 4u);
}

TEST(UnwritableMemory, IsToldOfEachStepOfTakingRemainsOut) {
  using Step = Result<void> (ShimRemains::*)(PausedMachine&) const;
  const auto writes_of = [](Step step) {
    return fails_at_each_write([step](UnwritableGuest& fresh, unsigned n) {
      fresh.install();
      const auto found = ShimRemains::find(fresh.guest.memory(), shim_fakes::isolated_facts());
      auto paused = PausedMachine::pause(fresh.guest);
      fresh.bytes->left = n;
      return ((**found).*step)(*paused);
    });
  };
  EXPECT_EQ(writes_of(&ShimRemains::silence), 1u);
  EXPECT_EQ(writes_of(&ShimRemains::give_gate_back), 2u);
  EXPECT_GE(writes_of(&ShimRemains::remove), 4u);
}

}  // namespace
}  // namespace ringside::vmm
