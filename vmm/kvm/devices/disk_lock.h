// Finds out whether somebody else uses a disk, and takes locks that tell others of our use:
//   fcntl(2)'s open file description locks. A disk to be written is locked for writing from end to
//     end, which excludes every other lock. A read-only disk is locked for reading.
//   QEMU's image locking, which uses read locks on single bytes as flags (QEMU 2.10 to 10, its
//     block/file-posix.c): 100 + n says "I use permission n", 200 + n "nobody else may use it".
//     A read-only disk may be shared with a QEMU that reads it, not with one that writes.
//   flock(2), exclusive or shared: disk tools, and udev of block devices (systemd.io,
//     "Locking Block Device Access").
//   A block device that the host has mounted, swaps on or has made part of another.
// Used by DiskFile. Does not: hold against programs that take no locks.
#pragma once

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/disk_config.h"

namespace ringside::vmm::kvm {

/// Opens the disk's file. The error is an errno: EBUSY for a device that the host uses.
tl::expected<UniqueFd, int> open_disk(const DiskConfig& config);

/// Takes the locks on `fd`, which live as long as its open file. Io, with the way out, when
/// somebody uses the disk in a way that excludes ours.
Result<void> lock_disk(int fd, const DiskConfig& config);

}  // namespace ringside::vmm::kvm
