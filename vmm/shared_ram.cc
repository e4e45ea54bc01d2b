// The memory file.
#include "vmm/shared_ram.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

}  // namespace

Result<void> check_ram_size(std::uint64_t bytes, std::uint64_t host_bytes, std::uint64_t smallest) {
  if (bytes < smallest) {
    return fail(ErrorCode::Usage, fmt::format("a guest needs {} MiB of memory or more, not {} MiB",
                                              smallest / kMiB, bytes / kMiB));
  }
  if (bytes % kMiB != 0) {
    return fail(ErrorCode::Usage,
                fmt::format("a guest's memory must be whole MiB, not {} bytes", bytes));
  }
  if (bytes > host_bytes) {
    return fail(ErrorCode::Limit,
                fmt::format("a guest with {} MiB of memory does not fit: this host has {} MiB; "
                            "give a smaller --memory",
                            bytes / kMiB, host_bytes / kMiB));
  }
  return {};
}

std::uint64_t host_memory() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return UINT64_MAX;
  return (std::uint64_t{info.totalram} + info.totalswap) * info.mem_unit;
}

Result<SharedRam> SharedRam::create(std::uint64_t size) {
  UniqueFd fd(memfd_create("ringside-guest-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Sealed, because QEMU inherits the file: one that its guest has taken over could shrink it, and
  // our next look at the guest would be a SIGBUS.
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot make {} MiB of guest memory: {}", size / kMiB,
                                           std::strerror(errno)));
  }
  void* mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED) {
    return fail(ErrorCode::Io, fmt::format("cannot map {} MiB of guest memory: {}", size / kMiB,
                                           std::strerror(errno)));
  }
  return SharedRam(std::move(fd), {static_cast<std::byte*>(mapping), size});
}

SharedRam::~SharedRam() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

GuestMemory SharedRam::guest_memory(std::span<const RamPiece> pieces) const {
  std::vector<GuestMemory::Region> regions;
  for (const RamPiece& piece : pieces) {
    regions.push_back({piece.base, bytes_of(piece), fd_.get(), piece.file_offset});
  }
  return GuestMemory(regions);
}

}  // namespace ringside::vmm
