// Bytes that are not mapped in this process and can only be copied from and to: another process's
// memory (process_memory.h), a file (file_memory.h). GuestMemory makes guest RAM of them.
// Threads: every function from any thread. Fire context: read() and write(), which are system calls
// that do not wait, yes; extents() no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ringside::vmm {

/// A copy that is wanted: `out.size()` bytes from `offset` on.
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
  /// Makes the copies one after another; false when any byte of any could not be had, and then what
  /// `out` holds is unspecified.
  [[nodiscard]] virtual bool read(std::span<const CopyPart> parts) const = 0;
  /// All bytes in one go; false when any could not be written (some may have been).
  [[nodiscard]] virtual bool write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// The parts of `of` that may hold something else than zeros, in order, without looking at them.
  virtual std::vector<ByteExtent> extents(ByteExtent of) const = 0;
};

}  // namespace ringside::vmm
