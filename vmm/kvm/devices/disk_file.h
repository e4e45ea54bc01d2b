// A raw disk image or block device: opened, locked and checked, then read and written in place.
// lock_disk() says who else may have it open meanwhile.
// Does not: read image formats. It knows their magic numbers, to refuse them with a way out.
// Threads: any, after open().
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

/// A raw file as a virtio block device.
struct DiskConfig {
  std::string path;
  bool read_only = false;
};

}  // namespace ringside::vmm

namespace ringside::vmm::kvm {

class DiskFile {
 public:
  static constexpr std::uint64_t kSector = 512;

  /// NotFound, Io (not permitted, in use), or Invalid (a directory, another format, a size that is
  /// empty or not whole sectors), with the way out.
  static Result<DiskFile> open(const DiskConfig& config);

  std::uint64_t size() const { return size_; }  // bytes
  bool read_only() const { return read_only_; }
  int fd() const { return fd_.get(); }

  using Pieces = std::span<const std::span<std::byte>>;
  /// Fills or writes all of `pieces`, in order, from byte `offset` of the disk on. False when the
  /// host failed; some of them may have been filled or written.
  bool read(std::uint64_t offset, Pieces pieces) const;
  bool write(std::uint64_t offset, Pieces pieces) const;
  /// Returns when all earlier writes are on the disk; false when the host failed.
  bool flush() const;

 private:
  DiskFile(UniqueFd fd, std::uint64_t size, bool read_only)
      : fd_(std::move(fd)), size_(size), read_only_(read_only) {}

  UniqueFd fd_;
  std::uint64_t size_ = 0;
  bool read_only_ = false;
};

// DiskFile::open() finds out whether somebody else uses a disk, and takes locks that tell others of
// our use:
//   fcntl(2)'s open file description locks. A disk to be written is locked for writing from end to
//     end, which excludes every other lock. A read-only disk is locked for reading.
//   QEMU's image locking, which uses read locks on single bytes as flags (QEMU 2.10 to 10, its
//     block/file-posix.c): 100 + n says "I use permission n", 200 + n "nobody else may use it".
//     A read-only disk may be shared with a QEMU that reads it, not with one that writes.
//   flock(2), exclusive or shared: disk tools, and udev of block devices (systemd.io,
//     "Locking Block Device Access").
//   A block device that the host has mounted, swaps on or has made part of another.
// They do not hold against programs that take no locks. Declared here for their tests.

/// Opens the disk's file. The error is an errno: EBUSY for a device that the host uses.
tl::expected<UniqueFd, int> open_disk(const DiskConfig& config);

/// Takes the locks on `fd`, which live as long as its open file. Io, with the way out, when
/// somebody uses the disk in a way that excludes ours.
Result<void> lock_disk(int fd, const DiskConfig& config);

}  // namespace ringside::vmm::kvm
