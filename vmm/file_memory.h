// A file as memory: a raw image of guest RAM, copied by pread() and pwrite().
// Used where GuestMemory is made. Does not: map the file, know where in the guest it belongs.
// Fire context: as CopiedBytes.
#pragma once

#include <vector>

#include "vmm/base/unique_fd.h"
#include "vmm/copied_bytes.h"

namespace ringside::vmm {

/// The parts of `of` that are no holes of the file, by SEEK_DATA; all of `of` where the file system
/// cannot tell.
std::vector<ByteExtent> data_extents(int fd, ByteExtent of);

class FileMemory final : public CopiedBytes {
 public:
  /// Offsets are those of the file.
  explicit FileMemory(UniqueFd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override;
  /// False for a file that was opened for reading only, and past its end: it never grows.
  [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  std::vector<ByteExtent> extents(ByteExtent of) const override {
    return data_extents(fd_.get(), of);
  }

 private:
  UniqueFd fd_;
};

}  // namespace ringside::vmm
