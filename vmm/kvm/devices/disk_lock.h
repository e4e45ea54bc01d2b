// Who else uses a disk? Asks the locks and the host's kernel, and takes locks by which others see
// that we use it:
//   fcntl(2)'s open file description locks. A disk to be written is locked for writing from end to
//     end, which goes with no lock of anybody's. A read-only disk is locked for reading.
//   QEMU's image locking, which makes flags of read locks on single bytes (QEMU 2.10 to 10, its
//     block/file-posix.c): 100 + n says "I use permission n", 200 + n "nobody else may use it".
//     Read-only disks go with QEMU's, and with nobody who writes.
//   flock(2), exclusive or shared: disk tools, and udev of block devices (systemd.io,
//     "Locking Block Device Access").
//   A block device that the host has mounted, swaps on or has made part of another.
// Used by DiskFile. Does not: hold against programs that take no locks.
// Fire context: no.
#pragma once

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/disk_config.h"

namespace ringside::vmm::kvm {

/// The disk's file, opened; errno's value when that fails, EBUSY for a device that the host uses.
tl::expected<UniqueFd, int> open_disk(const DiskConfig& config);

/// Io when another uses it in a way that does not go with ours, with the way out.
Result<void> lock_disk(int fd, const DiskConfig& config);

}  // namespace ringside::vmm::kvm
