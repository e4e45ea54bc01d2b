// Guest RAM as a memory file, which QEMU or KVM maps too: nameless, so nothing is left behind, and
// of one size for ever, whoever has it open.
// Used by QemuMachine and KvmGuest. Does not: read or write it (GuestMemory does), know where a
// machine has its RAM.
// Fire context: no.
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

/// Is `bytes` of RAM something that we accept for a guest, on a host with `host_bytes`?
Result<void> check_ram_size(std::uint64_t bytes, std::uint64_t host_bytes, std::uint64_t smallest);
/// RAM and swap of this host, in bytes.
std::uint64_t host_memory();

class SharedRam {
 public:
  static Result<SharedRam> create(std::uint64_t size);
  SharedRam(SharedRam&& other) noexcept
      : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}
  SharedRam& operator=(SharedRam&&) = delete;
  ~SharedRam();

  int fd() const { return fd_.get(); }
  std::uint64_t size() const { return bytes_.size(); }
  /// Valid as long as this object.
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
