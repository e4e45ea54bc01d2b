// Bytes that are not mapped in this process and can only be copied from and to: another process's
// memory (process_memory.h), a file (FileMemory). GuestMemory makes guest RAM of them.
// Threads: any.
// Fire context: read() and write() yes (system calls that do not wait); extents() no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

/// One copy: out.size() bytes from `offset` on go into `out`.
struct CopyPart {
  std::uint64_t offset = 0;
  std::span<std::byte> out;
};

/// [offset, offset + size).
struct ByteExtent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

class CopiedBytes {
 public:
  virtual ~CopiedBytes() = default;
  /// Makes the copies in order, page by page; what a copy has of one page, from its begin or from
  /// its end on. False when a byte of any could not be read; then the contents of every `out` are
  /// unspecified.
  [[nodiscard]] virtual bool read(std::span<const CopyPart> parts) const = 0;
  /// False when a byte could not be written; others may have been.
  [[nodiscard]] virtual bool write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// The parts of `of` that may hold anything but zeros, in order. Does not read them.
  virtual std::vector<ByteExtent> extents(ByteExtent of) const = 0;
};

/// The parts of `of` that are no holes of the file, by SEEK_DATA; all of `of` where the file system
/// cannot tell.
std::vector<ByteExtent> data_extents(int fd, ByteExtent of);

/// A file as memory: a raw image of guest RAM, copied by pread() and pwrite(). Does not map the
/// file, nor know where in the guest it belongs.
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

/// A read-only view of CopiedBytes: every write is refused. Used for machines that are only read.
class ReadOnlyBytes final : public CopiedBytes {
 public:
  explicit ReadOnlyBytes(std::shared_ptr<const CopiedBytes> bytes) : bytes_(std::move(bytes)) {}

  [[nodiscard]] bool read(std::span<const CopyPart> parts) const override {
    return bytes_->read(parts);
  }
  [[nodiscard]] bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
  std::vector<ByteExtent> extents(ByteExtent of) const override { return bytes_->extents(of); }

 private:
  std::shared_ptr<const CopiedBytes> bytes_;
};

}  // namespace ringside::vmm
