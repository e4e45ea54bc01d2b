#include "vmm/linux/processes/reverse_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vmm/linux/fakes_for_tests.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"
#include "vmm/linux/types/btf.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kAt = fakes::kKernel + 0x10000, kInode = kAt, kMapping = kAt + 0x100;
constexpr std::uint64_t kAreas = kAt + 0x1000, kAreaBytes = 0x100;
constexpr std::uint64_t kMm = kAt + 0x800, kNode = 40;  // shared.rb

std::optional<ReverseMap> map_by(std::string_view lock) {
  TypeGraph types;
  EXPECT_TRUE(Btf::read(fakes::process_types(lock).blob(), nullptr, types));
  return ReverseMap::from(types);
}

/// A file whose mapping n is [n MiB, and `pages` pages], from page `page` of the file on.
class ReverseMapTest : public testing::Test {
 protected:
  ReverseMapTest() {
    guest_.put(kInode + 0x30, kMapping);
    guest_.put(kMapping + 0x40, std::uint64_t{0});
    root(0);
  }
  void root(std::uint64_t node) { guest_.put(kMapping + 0x20, node); }
  /// Its node's address, as other nodes have it. `last`: the last page that is mapped below it.
  std::uint64_t area(std::uint64_t n, std::uint64_t page, std::uint64_t pages, std::uint64_t last,
                     std::uint64_t left = 0, std::uint64_t right = 0, std::uint64_t anonymous = 0) {
    const std::uint64_t at = kAreas + n * kAreaBytes;
    guest_.put(at, n << 20);
    guest_.put(at + 8, (n << 20) + pages * 0x1000);
    guest_.put(at + 16, page);
    guest_.put(at + 32, kMm + n);
    guest_.put(at + kNode + 8, right);
    guest_.put(at + kNode + 16, left);
    guest_.put(at + kNode + 24, last);
    guest_.put(at + 72, anonymous);
    return at + kNode;
  }
  /// Of the mappings of these pages of the file, which ones they are.
  std::vector<std::uint64_t> found(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> numbers;
    const auto uses = map_->uses(guest_, GuestVirt(kInode), first, last);
    EXPECT_TRUE(uses);
    if (!uses) return numbers;
    for (const FileUse& use : *uses) numbers.push_back(use.begin.raw() >> 20);
    std::ranges::sort(numbers);
    return numbers;
  }

  fakes::PagedGuest guest_;
  std::optional<ReverseMap> map_ = map_by("count");
};

using Numbers = std::vector<std::uint64_t>;

TEST_F(ReverseMapTest, AFileThatNobodyMapsHasNone) {
  ASSERT_TRUE(map_);
  EXPECT_EQ(found(0, 100), Numbers());
}

TEST_F(ReverseMapTest, MappingsAreFoundByThePagesThatTheyHave) {
  const std::uint64_t left = area(1, 0, 2, 1), right = area(3, 8, 4, 11);
  root(area(2, 4, 4, 11, left, right));
  EXPECT_EQ(found(0, 100), (Numbers{1, 2, 3}));
  EXPECT_EQ(found(1, 4), (Numbers{1, 2}));
  EXPECT_EQ(found(2, 3), Numbers());
  EXPECT_EQ(found(7, 8), (Numbers{2, 3}));
  EXPECT_EQ(found(12, 12), Numbers());
}

TEST_F(ReverseMapTest, AMappingIsTheKernels) {
  root(area(5, 4, 3, 6, 0, 0, 1));
  const auto uses = map_->uses(guest_, GuestVirt(kInode), 5, 5);
  ASSERT_TRUE(uses);
  EXPECT_EQ(*uses, (std::vector<FileUse>{{GuestVirt(kMm + 5), GuestVirt(5 << 20),
                                          GuestVirt((5 << 20) + 0x3000), 0x4000, true}}));
}

TEST_F(ReverseMapTest, WhatIsMappedElsewhereIsNotRead) {
  const std::uint64_t left = area(1, 0, 2, 1), right = area(3, 8, 4, 11);
  root(area(2, 4, 4, 11, left, right));
  guest_.reads = 0;
  EXPECT_EQ(found(0, 1), Numbers{1});
  EXPECT_EQ(guest_.reads, 5u)
      << "the file's three words, the first mapping and the one on its left";
}

TEST_F(ReverseMapTest, WhileItIsChangedNothingIsSaid) {
  root(area(1, 0, 2, 1));
  guest_.put(kMapping + 0x40, std::uint64_t{1});
  EXPECT_FALSE(map_->uses(guest_, GuestVirt(kInode), 0, 1));
  guest_.put(kMapping + 0x40, std::uint64_t{0x100});  // a reader has it
  EXPECT_EQ(found(0, 1), Numbers{1});
}

TEST_F(ReverseMapTest, ATreeThatCannotBeReadOrHasNoEndIsNone) {
  root(kAreas + 0x100'0000);
  EXPECT_FALSE(map_->uses(guest_, GuestVirt(kInode), 0, 1)) << "no memory there";
  const std::uint64_t node = area(1, 0, 2, 1, kAreas + kAreaBytes + kNode);
  root(node);
  EXPECT_FALSE(map_->uses(guest_, GuestVirt(kInode), 0, 1)) << "it is its own child";
  EXPECT_FALSE(map_->uses(guest_, GuestVirt(0x1000), 0, 1)) << "no inode";
}

TEST_F(ReverseMapTest, NumbersThatContradictEachOtherAreNoMapping) {
  root(area(1, 0, 0, 1));
  EXPECT_EQ(found(0, 1), Numbers()) << "it ends where it begins";
  root(area(1, UINT64_MAX >> 4, 1, UINT64_MAX));
  EXPECT_EQ(found(0, UINT64_MAX), Numbers()) << "beyond any file";
}

TEST_F(ReverseMapTest, AKernelWithAnotherLockHasNone) {
  EXPECT_FALSE(map_by("rwbase"));
}

}  // namespace
}  // namespace ringside::guest_linux
