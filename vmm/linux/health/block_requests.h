// Requests that disks have been given and have not answered.
// Source: every block device is an inode of blockdev_superblock (block/bdev.c), which lies after
// its struct block_device in a struct bdev_inode; bd_disk leads to the gendisk, its queue and the
// tags of blk-mq: tag_set->tags[hardware queue]->rqs[tag] is the request that has the tag while its
// state is MQ_RQ_IN_FLIGHT (block/blk-mq.h, include/linux/blk-mq.h). Its age: jiffies since
// `deadline` less `timeout`. I/O that waits in a scheduler or has no request (device mapper,
// loop) is in the disk's statistics, disk_stats.in_flight of each CPU. Used by examine(). Hostile
// input: bounded.
#pragma once

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
BlockState read_block_requests(const KernelView& view, const Clocks& clocks);

}  // namespace ringside::guest_linux
