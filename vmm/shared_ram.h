// Guest RAM as a memory file, which QEMU or KVM maps too. It has no name, so it ends with its last
// user, and it is sealed: nobody who has it open can change its size.
// Used by QemuMachine and KvmGuest. Does not: read or write it (GuestMemory does), know where a
// machine has its RAM.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

/// One piece of RAM: where the guest sees it and where it lies in the file.
struct RamPiece {
  GuestPhys base;
  std::uint64_t file_offset = 0;
  std::uint64_t size = 0;
};

/// Usage or Limit, with the way out, unless a guest may have `bytes` of RAM: at least `smallest`,
/// at most `host_bytes`, whole pages.
Result<void> check_ram_size(std::uint64_t bytes, std::uint64_t host_bytes, std::uint64_t smallest);
/// RAM and swap of this host, in bytes.
std::uint64_t host_memory();

class SharedRam {
 public:
  /// `size`: bytes. Io when the host gives no such file or mapping.
  static Result<SharedRam> create(std::uint64_t size);
  SharedRam(SharedRam&& other) noexcept
      : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}
  SharedRam& operator=(SharedRam&&) = delete;
  ~SharedRam();

  int fd() const { return fd_.get(); }  // stays ours
  std::uint64_t size() const { return bytes_.size(); }
  /// The RAM as a guest with these pieces sees it; valid as long as this object.
  GuestMemory guest_memory(std::span<const RamPiece> pieces) const;
  /// The host's bytes of one piece.
  std::span<std::byte> bytes_of(const RamPiece& piece) const {
    return bytes_.subspan(piece.file_offset, piece.size);
  }

 private:
  SharedRam(UniqueFd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace ringside::vmm
