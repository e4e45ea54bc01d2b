#include "vmm/linux/health/block_requests.h"

#include <gtest/gtest.h>

#include <vector>

#include "vmm/linux/health/fake_kernel_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::kData;

struct CountedGuest final : public GuestReader {
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    ++reads;
    return guest.read(at, out);
  }
  fakes::SparseGuest guest;
  mutable unsigned reads = 0;
};

/// A disk whose queue has many tags; the kernel's structures at offsets of our own.
class OneDisk : public testing::Test {
 protected:
  static constexpr std::uint64_t kDevice = kData + 0x1000, kNode = kDevice + 80,
                                 kDisk = kData + 0x2000, kQueue = kData + 0x3000,
                                 kSet = kData + 0x4000, kTags = kData + 0x5000,
                                 kEntries = kData + 0x6000, kRequest = kData + 0x8000;
  static constexpr std::uint32_t kTagCount = 512, kInFlight = 1;

  OneDisk() {
    fakes::add_tasks(kernel_);
    kernel_.structure("super_block", 16, {{"s_inodes", "list_head", 0}});
    kernel_.structure("inode", 32, {{"i_sb_list", "list_head", 16}});
    kernel_.structure("bdev_inode", 96, {{"vfs_inode", "inode", 64}});
    kernel_.structure("block_device", 64, {{"bd_disk", "unsigned long", 0}});
    kernel_.structure("gendisk", 40,
                      {{"disk_name", "char", 0, 32}, {"queue", "unsigned long", 32}});
    kernel_.structure("request_queue", 8, {{"tag_set", "unsigned long", 0}});
    kernel_.structure("blk_mq_tag_set", 16,
                      {{"tags", "unsigned long", 0}, {"nr_hw_queues", "unsigned int", 8}});
    kernel_.structure("blk_mq_tags", 16,
                      {{"nr_tags", "unsigned int", 0}, {"rqs", "unsigned long", 8}});
    kernel_.structure("request", 40,
                      {{"state", "unsigned int", 0},
                       {"tag", "int", 4},
                       {"q", "unsigned long", 8},
                       {"cmd_flags", "unsigned int", 16},
                       {"__data_len", "unsigned int", 20},
                       {"__sector", "unsigned long", 24}});
    kernel_.symbol("blockdev_superblock", kData + 0x100);
    kernel_.seal();
    put(kData + 0x100, kData + 0x200);  // the super block, whose list has one inode
    put(kData + 0x200, kNode);
    put(kNode, kData + 0x200);
    put(kDevice, kDisk);
    guest_.guest.put_bytes(kDisk, std::vector<std::byte>(32));
    guest_.guest.put_text(kDisk, "vda");
    put(kDisk + 32, kQueue);
    put(kQueue, kSet);
    put(kSet, kSet + 0x100);
    put(kSet + 8, std::uint32_t{1});
    put(kSet + 0x100, kTags);
    put(kTags, kTagCount);
    put(kTags + 8, kEntries);
    guest_.guest.put_bytes(kEntries, std::vector<std::byte>(kTagCount * 8));
  }

  template <class T>
  void put(std::uint64_t at, T value) {
    guest_.guest.put(at, value);
  }
  /// With the tag: a write of 4096 bytes.
  void put_request(std::uint32_t tag, std::uint32_t state) {
    const std::uint64_t at = kRequest + tag * 0x100;
    put(kEntries + tag * 8, at);
    put(at, state);
    put(at + 4, tag);
    put(at + 8, kQueue);
    put(at + 16, std::uint32_t{1});
    put(at + 20, std::uint32_t{4096});
    put(at + 24, std::uint64_t{2048} + tag);
  }
  BlockState read() {
    const KernelView view(kernel_, guest_);
    const Clocks clocks(view);
    BlockRequests requests(view, clocks);
    guest_.reads = 0;
    return requests.read();
  }

  fakes::HealthKernel kernel_;
  CountedGuest guest_;
};

TEST_F(OneDisk, HasTheRequestsThatAreInFlight) {
  put_request(3, kInFlight);
  put_request(500, kInFlight);
  put_request(7, 0);  // it has ended

  const BlockState state = read();

  ASSERT_TRUE(state.known);
  ASSERT_EQ(state.disks.size(), 1u);
  EXPECT_EQ(state.disks[0].name, "vda");
  EXPECT_EQ(state.disks[0].in_flight, 2u);
  ASSERT_EQ(state.disks[0].requests.size(), 2u);
  EXPECT_EQ(state.disks[0].requests[0].sector, 2051u);
  EXPECT_EQ(state.disks[0].requests[1].operation, "write");
}

TEST_F(OneDisk, WithoutRequestsIsSeenInFewReads) {
  const BlockState state = read();

  EXPECT_TRUE(state.known);
  EXPECT_TRUE(state.disks.empty());
  EXPECT_LT(guest_.reads, 20u) << "each may be a system call, and each pause looks";
}

TEST_F(OneDisk, IsReadAsFarAsItsTagsCanBeRead) {
  put_request(3, kInFlight);
  put(kTags, std::uint32_t{1} << 20);  // more than there are

  EXPECT_EQ(read().disks.size(), 1u);
}

}  // namespace
}  // namespace ringside::guest_linux
