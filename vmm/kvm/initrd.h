// The initrd, mapped while it is loaded. Refuses a file that ends too early (is_cut_off).
// Used by kvm_machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "vmm/base/result.h"

namespace ringside::vmm::kvm {

class InitrdFile {
 public:
  /// No bytes for an empty path. NotFound, Io, or Invalid for a file that is empty or cut off, with
  /// the way out.
  static Result<InitrdFile> open(const std::string& path);
  InitrdFile(InitrdFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  InitrdFile& operator=(InitrdFile&&) = delete;
  ~InitrdFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit InitrdFile(std::span<std::byte> bytes) : bytes_(bytes) {}

  std::span<std::byte> bytes_;
};

/// Whether the last part of an initrd ends too early. An initrd consists of parts, each a cpio
/// archive or a packed stream, with zero bytes between them (Linux
/// Documentation/driver-api/early-userspace/buffer-format.rst). Each part is followed to its end:
/// by its headers where they give lengths (cpio, zstd, lz4), else by unpacking it without keeping
/// the output (gzip, bzip2, lzma, and xz without its footer). An initrd is cut off only if a part
/// certainly continues after the file's end; the kernel judges all else. Does not: check sums, or
/// look into the archives. The bytes are a file of the user's: bounded, no trust in any size. Not
/// by libarchive, which ends at the first archive's trailer: of the parts after it, it tells
/// nothing. Takes as long as unpacking does, of at most 1 GiB.
bool is_cut_off(std::span<const std::byte> initrd);

}  // namespace ringside::vmm::kvm
