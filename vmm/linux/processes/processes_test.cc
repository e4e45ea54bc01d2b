#include "vmm/linux/processes/processes.h"

#include <gtest/gtest.h>

#include <array>

#include "vmm/linux/load_numbers.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kInitTask;

class Processes : public testing::Test {
 protected:
  std::optional<ProcessAddressSpace> find(std::uint64_t pid) {
    return find_process(guest_, layout_, GuestVirt(kInitTask), pid);
  }
  std::vector<FileMapping> mappings(std::uint64_t root, std::uint64_t vdso = 0) {
    return list_file_mappings(guest_, layout_, GuestVirt(write_.memory(root, 0, vdso)));
  }
  /// The areas of page n, from n * 0x1000 on, each one page of the same file.
  std::uint64_t pages(std::uint64_t first, std::uint64_t count, std::uint64_t file) {
    std::vector<fakes::ProcessWriter::Slot> slots;
    for (std::uint64_t n = first; n < first + count; ++n) {
      const std::uint64_t begin = n * 0x1000, end = begin + 0x1000;
      slots.push_back({end - 1, write_.area(begin, end, n, file)});
    }
    return write_.node(1, slots);
  }

  fakes::PagedGuest guest_;
  fakes::ProcessWriter write_{guest_};
  const ProcessLayout layout_ = fakes::process_layout();
};

TEST_F(Processes, AreFoundByTheirIdInTheKernelsList) {
  const std::uint64_t mm = write_.memory(0, 0x5000);
  write_.task(1, write_.memory(0, 0));
  write_.task(2, 0);
  const std::uint64_t task = write_.task(77, mm);

  EXPECT_EQ(find(77), (ProcessAddressSpace{GuestVirt(task), GuestVirt(mm), GuestVirt(0x5000)}));
  EXPECT_FALSE(find(2)) << "a kernel thread has no memory";
  EXPECT_FALSE(find(3));
}

TEST_F(Processes, HaveTheirMemoryWhenTheirFirstThreadHasEnded) {
  const std::uint64_t mm = write_.memory(0, 0x5000);
  const std::uint64_t leader = write_.task(77, 0), other = write_.task(78, 0);
  write_.second_thread(leader, mm);
  write_.second_thread(other, 0);

  EXPECT_EQ(find(77), (ProcessAddressSpace{GuestVirt(leader), GuestVirt(mm), GuestVirt(0x5000)}));
  EXPECT_FALSE(find(78)) << "all of it has ended";
}

TEST_F(Processes, AListThatNeverComesBackEnds) {
  const std::uint64_t first = write_.task(1, 0);
  guest_.put(first + 0x10, first + 0x10);  // its own successor

  EXPECT_FALSE(find(77));
}

TEST_F(Processes, MappingsOfFilesAreListedInOrderAcrossLevels) {
  const std::uint64_t file = write_.file("lib.so");
  const std::uint64_t low = pages(0, 16, file), high = pages(16, 3, file);
  const std::uint64_t inner = write_.node(2, {{0xffff, low}, {0, high}});
  const std::uint64_t root = write_.node(3, {{0x1ffff, inner}, {0, write_.node(1, {{0, 0}})}});

  const auto found = mappings(fakes::ProcessWriter::as_root(root));

  ASSERT_EQ(found.size(), 19u);
  for (std::size_t n = 0; n < found.size(); ++n) {
    EXPECT_EQ(found[n].begin.raw(), n * 0x1000);
    EXPECT_EQ(found[n].end.raw(), (n + 1) * 0x1000);
    EXPECT_EQ(found[n].offset, n * 0x1000);
  }
}

TEST_F(Processes, OfMemoryWithoutAFileOnlyTheVdsoIsListed) {
  const std::uint64_t root =
      write_.small_tree({{0x1000, 0x2000, 0, 0}, {0x5000, 0x7000, 0, 0}, {0x9000, 0xa000, 0, 0}});

  EXPECT_TRUE(mappings(root).empty());
  const auto found = mappings(root, 0x5000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].begin.raw(), 0x5000u);
  EXPECT_EQ(file_name(guest_, layout_, found[0].file), "[vdso]");
}

TEST_F(Processes, ATreeThatLeadsBackToItselfEnds) {
  std::vector<fakes::ProcessWriter::Slot> slots(10, {0, 0});
  const std::uint64_t node = write_.node(3, slots);
  for (std::uint64_t n = 0; n < 10; ++n) {
    const std::uint64_t at = node & ~std::uint64_t{255};
    if (n < 9) guest_.put(at + 8 + n * 8, (n + 1) << 40);
    guest_.put(at + 80 + n * 8, node);
  }

  EXPECT_TRUE(mappings(fakes::ProcessWriter::as_root(node)).empty());
}

TEST_F(Processes, PivotsThatGoDownEndTheirNode) {
  const std::uint64_t file = write_.file("lib.so");
  const std::uint64_t node = write_.node(1, {{0xfff, write_.area(0, 0x1000, 0, file)},
                                             {0x5, write_.area(0x1000, 0x2000, 1, file)},
                                             {0x2fff, write_.area(0x2000, 0x3000, 2, file)}});

  EXPECT_EQ(mappings(fakes::ProcessWriter::as_root(node)).size(), 1u);
}

TEST_F(Processes, AnAreaThatLiesElsewhereThanItsSlotIsLeftOut) {
  const std::uint64_t file = write_.file("lib.so");
  for (const auto& [begin, end] : {std::pair(0x0, 0x3000), std::pair(0x3000, 0x1000),
                                   std::pair(0x1000, 0x1000), std::pair(0x1000, 0x4000)}) {
    const auto area =
        write_.area(static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), 0, file);
    const auto node = write_.node(1, {{0xfff, 0}, {0x2fff, area}, {0, 0}});
    EXPECT_TRUE(mappings(fakes::ProcessWriter::as_root(node)).empty()) << begin;
  }
}

TEST_F(Processes, WhatIsNoTreeHasNoMappings) {
  EXPECT_TRUE(mappings(0).empty());
  EXPECT_TRUE(mappings(0xffff'ffff'ffff'ffff).empty());
  EXPECT_TRUE(mappings(2).empty());
  EXPECT_TRUE(mappings(0xdead'0000'0000'0002 | 15 << 3).empty()) << "a type that there is not";
  EXPECT_TRUE(mappings(0xdead'0000'0000'0002 | 1 << 3).empty()) << "a node that is not mapped";
  EXPECT_TRUE(list_file_mappings(guest_, layout_, GuestVirt(0x10)).empty());
}

TEST_F(Processes, TheMappingOfOneAddressIsFoundThroughAllLevels) {
  const std::uint64_t file = write_.file("lib.so");
  const std::uint64_t low = pages(1, 15, file), high = pages(17, 3, file);
  const std::uint64_t inner = write_.node(2, {{0xffff, low}, {0, high}});
  const std::uint64_t root = write_.node(3, {{0x1ffff, inner}, {0, write_.node(1, {{0, 0}})}});
  const GuestVirt mm(write_.memory(fakes::ProcessWriter::as_root(root), 0));
  const auto find = [&](std::uint64_t at) {
    const auto found = find_file_mapping(guest_, layout_, mm, GuestVirt(at));
    return found ? found->begin.raw() : 0;
  };

  EXPECT_EQ(find(0x1000), 0x1000u);
  EXPECT_EQ(find(0x1fff), 0x1000u);
  EXPECT_EQ(find(0xffff), 0xf000u);
  EXPECT_EQ(find(0x11000), 0x11000u);
  EXPECT_EQ(find(0x13fff), 0x13000u);
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{0xfff}, std::uint64_t{0x10000},
                                 std::uint64_t{0x14000}, std::uint64_t{0x20000}, UINT64_MAX}) {
    EXPECT_EQ(find(at), 0u) << at;
  }
  EXPECT_FALSE(find_file_mapping(guest_, layout_, GuestVirt(0x10), GuestVirt(0x1000)));
}

TEST_F(Processes, NumbersOfAStructureAreLoadedAtOnce) {
  guest_.put(0x9000, std::uint64_t{0x1111});
  guest_.put(0x9010, std::uint32_t{0x2222});
  guest_.put(0x9014, std::uint32_t{0x3333});
  guest_.put(0xa000, std::uint64_t{0x4444});
  const NumberMember first{0, 8}, second{0x10, 4}, far{0x1000, 8}, none{}, absent{0x9000, 8};
  guest_.reads = 0;

  EXPECT_EQ((load_numbers<3>(guest_, GuestVirt(0x9000), {first, none, second})),
            (std::array<std::uint64_t, 3>{0x1111, 0, 0x2222}));
  EXPECT_EQ(guest_.reads, 1u);
  EXPECT_EQ((load_numbers<2>(guest_, GuestVirt(0x9000), {far, second})),
            (std::array<std::uint64_t, 2>{0x4444, 0x2222}));
  EXPECT_EQ(guest_.reads, 3u);
  EXPECT_FALSE((load_numbers<2>(guest_, GuestVirt(0x9000), {first, absent})));
  EXPECT_EQ((load_numbers<1>(guest_, GuestVirt(0x9000), {none})),
            (std::array<std::uint64_t, 1>{0}));
}

TEST_F(Processes, NamesOfFilesAreMadePrintableAndCut) {
  EXPECT_EQ(file_name(guest_, layout_, GuestVirt(write_.file("busy box`\x1b[1m"))),
            "busy?box??[1m");
  const std::uint64_t file = write_.file(std::string(300, 'x'));
  EXPECT_EQ(file_name(guest_, layout_, GuestVirt(file)), std::string(255, 'x'));
  EXPECT_EQ(file_name(guest_, layout_, GuestVirt(0x10)), "");
}

TEST(ProcessLayoutOf, TypesOfAnOlderKernelAreNone) {
  EXPECT_FALSE(ProcessLayout::from(TypeGraph()));
}

}  // namespace
}  // namespace ringside::guest_linux
