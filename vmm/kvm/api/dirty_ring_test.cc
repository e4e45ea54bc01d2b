#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "vmm/kvm/api/kvm_vcpu.h"

namespace ringside::vmm::kvm {
namespace {

using Pages = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

class DirtyRingTest : public ::testing::Test {
 protected:
  /// As KVM does.
  void write(std::uint32_t slot, std::uint64_t page) {
    kvm_dirty_gfn& entry = entries_[next_++ % entries_.size()];
    entry.slot = slot;
    entry.offset = page;
    entry.flags = KVM_DIRTY_GFN_F_DIRTY;
  }
  Pages harvest() {
    Pages pages;
    any_ = ring_.harvest(
        [&](std::uint32_t slot, std::uint64_t page) { pages.emplace_back(slot, page); });
    return pages;
  }
  /// KVM_RESET_DIRTY_RINGS.
  void reset() {
    for (kvm_dirty_gfn& entry : entries_) {
      if (entry.flags == KVM_DIRTY_GFN_F_RESET) entry.flags = 0;
    }
  }

  std::array<kvm_dirty_gfn, 4> entries_{};
  std::size_t next_ = 0;
  DirtyRing ring_{entries_};
  bool any_ = false;
};

TEST_F(DirtyRingTest, TakesEachPageOnceInOrder) {
  write(0, 5);
  write(1, 3);

  EXPECT_EQ(harvest(), (Pages{{0, 5}, {1, 3}}));
  EXPECT_TRUE(any_);

  EXPECT_EQ(harvest(), Pages{});  // they wait for the reset
  EXPECT_FALSE(any_);
}

TEST_F(DirtyRingTest, GoesOnWhereItStoppedRoundAndRound) {
  for (std::uint64_t page = 0; page < 30; page += 3) {
    for (std::uint64_t i = 0; i < 3; ++i) write(0, page + i);

    EXPECT_EQ(harvest(), (Pages{{0, page}, {0, page + 1}, {0, page + 2}}));
    reset();
  }
}

TEST_F(DirtyRingTest, TakesAFullRingToItsEndOnce) {
  for (std::uint64_t page = 0; page < 4; ++page) write(0, page);

  EXPECT_EQ(harvest().size(), 4u);
}

TEST(DirtyRing, WithoutARingThereIsNothing) {
  DirtyRing ring({});

  EXPECT_FALSE(ring.harvest([](std::uint32_t, std::uint64_t) { FAIL(); }));
}

}  // namespace
}  // namespace ringside::vmm::kvm
