// Bytes that are not mapped in this process and can only be copied from and to: another process's
// memory (process_memory.h), a file (file_memory.h). GuestMemory makes guest RAM of them.
// Threads: any.
// Fire context: read() and write() yes (system calls that do not wait); extents() no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace ringside::vmm
