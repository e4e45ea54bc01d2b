// Finds the requests that disks were given and have not answered yet.
// Source: every block device is an inode of blockdev_superblock (block/bdev.c), which lies after
// its struct block_device in a struct bdev_inode; bd_disk points at the gendisk, with its queue and
// the tags of blk-mq: tag_set->tags[hardware queue]->rqs[tag] is the request that has the tag while
// its state is MQ_RQ_IN_FLIGHT (block/blk-mq.h, include/linux/blk-mq.h). Its age: jiffies since
// `deadline` less `timeout`. I/O that waits in a scheduler or has no request (device mapper,
// loop) is in the disk's statistics, disk_stats.in_flight of each CPU. Used by examine() and
// StorageWatch. Hostile input: bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "vmm/linux/health/clocks.h"
#include "vmm/linux/health/kernel_view.h"
#include "vmm/linux/health/report.h"

namespace ringside::guest_linux {

/// The disks with requests, the oldest request first; `known` is false where this kernel's types do
/// not say enough.
struct BlockState {
  bool known = false;
  std::vector<DiskReport> disks;
};

/// Both must outlive it. The kernel's types and symbols are asked when it is made, and not later.
class BlockRequests {
 public:
  BlockRequests(const KernelView& view, const Clocks& clocks);
  BlockState read();

 private:
  bool knows_requests() const;
  void add_disk(GuestVirt device, GuestVirt disk);
  void read_tags(GuestVirt set, GuestVirt queue, DiskReport& report);
  void read_queue(GuestVirt tags, GuestVirt queue, DiskReport& report);
  RequestReport request(GuestVirt at) const;
  std::optional<std::uint64_t> accounted(GuestVirt device) const;

  const KernelView& view_;
  const Clocks& clocks_;
  std::optional<GuestVirt> super_block_at_;  // blockdev_superblock
  std::optional<Field> inodes_, inode_link_, device_disk_, device_stats_, disk_name_, disk_queue_,
      disk_whole_, queue_set_, set_tags_, set_queues_, tags_count_, tags_requests_, request_state_,
      request_queue_, request_tag_, request_flags_, request_bytes_, request_sector_,
      request_deadline_, request_timeout_, stats_in_flight_;
  std::optional<Field> holder_inode_;  // of struct bdev_inode
  std::size_t budget_ = 0;
  std::set<std::uint64_t> seen_;
  BlockState state_;
};

}  // namespace ringside::guest_linux
