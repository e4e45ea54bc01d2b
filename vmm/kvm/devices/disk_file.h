// A raw disk image or block device: opened, locked and checked, then read and written in place.
// disk_lock.h says who else may have it open meanwhile.
// Does not: read image formats. It knows their magic numbers, to refuse them with a way out.
// Threads: any, after open().
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/devices/disk_config.h"

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

}  // namespace ringside::vmm::kvm
