// The bytes of a file: of the guest, as far as its kernel has them in memory (page_cache.h), or of
// the host (host_files.h). Used by what reads ELF files of programs, which need not know whose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ringside::guest_linux {

class FileBytes {
 public:
  virtual ~FileBytes() = default;
  /// Bytes of the file.
  virtual std::uint64_t size() const = 0;
  /// Copies the bytes from `offset` on; returns how many were there, up to the first one that is
  /// not, or the file's end.
  virtual std::size_t read(std::uint64_t offset, std::span<std::byte> out) const = 0;

 protected:
  FileBytes() = default;
  FileBytes(const FileBytes&) = default;
  FileBytes(FileBytes&&) = default;
  FileBytes& operator=(const FileBytes&) = default;
  FileBytes& operator=(FileBytes&&) = default;
};

}  // namespace ringside::guest_linux
