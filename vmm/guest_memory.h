// Guest-physical memory: regions of a shared mapping, read and written by copy.
// Hands out no pointers; ranges that leave a region fail (the guest chooses the addresses).
// Fire context: read, write and load yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"

namespace ringside::vmm {

class GuestMemory {
 public:
  /// `base` up to base + bytes.size() of guest-physical space is `bytes` of host memory, which
  /// must outlive this object. Regions must not overlap.
  struct Region {
    GuestPhys base;
    std::span<std::byte> bytes;
    int fd = -1;  // the file behind the mapping, for present_extents; -1: none
    std::uint64_t fd_offset = 0;
  };

  GuestMemory() = default;
  explicit GuestMemory(std::vector<Region> regions);

  /// Copies out.size() bytes; false when any byte lies outside RAM (then `out` is unspecified).
  [[nodiscard]] bool read(GuestPhys at, std::span<std::byte> out) const {
    const Region* region = find(at, out.size());
    if (region == nullptr) [[unlikely]]
      return read_across(at, out);
    // memcpy() may not be given the null pointer that no bytes have.
    if (!out.empty()) {
      std::memcpy(out.data(), region->bytes.data() + (at.raw() - region->base.raw()), out.size());
    }
    return true;
  }
  [[nodiscard]] bool write(GuestPhys at, std::span<const std::byte> bytes);
  /// One aligned 8-byte load in a single access, for page-table entries.
  std::optional<std::uint64_t> load64(GuestPhys at) const {
    const Region* region = find(at, sizeof(std::uint64_t));
    if (region == nullptr || at.raw() % sizeof(std::uint64_t) != 0) [[unlikely]]
      return std::nullopt;
    // SAFETY: find() proved that the 8 bytes lie in the region, whose host base is page-aligned as
    // the guest's is. The guest may write at any time, hence one atomic access and never a second.
    const auto* entry = reinterpret_cast<const std::uint64_t*>(region->bytes.data() +
                                                               (at.raw() - region->base.raw()));
    return __atomic_load_n(entry, __ATOMIC_RELAXED);
  }
  [[nodiscard]] bool store64(GuestPhys at, std::uint64_t value);
  /// The bytes of [at, at + size) in place, for memory that we share with the guest on purpose
  /// (the shim's region); empty when it is not all in one region. Whoever takes it must treat
  /// every load as hostile and changing.
  std::span<std::byte> shared_window(GuestPhys at, std::size_t size);

  struct Extent {
    GuestPhys base;
    std::uint64_t size = 0;
  };
  /// The parts of RAM that were ever written, page-aligned: SEEK_DATA on the file, so that a scan
  /// does not allocate the holes (4 s against 12 ms for 512 MiB). All of RAM where there is no
  /// file.
  std::vector<Extent> present_extents() const;
  std::uint64_t size() const;

 private:
  /// The region that holds all of [at, at + size), which may not wrap; null when none does.
  const Region* find(GuestPhys at, std::size_t size) const {
    for (const Region& region : regions_) {
      const std::uint64_t offset = at.raw() - region.base.raw();  // huge when `at` lies below
      if (offset < region.bytes.size() && size <= region.bytes.size() - offset) return &region;
    }
    return nullptr;
  }
  std::size_t run_length(GuestPhys at, std::size_t wanted) const;
  bool read_across(GuestPhys at, std::span<std::byte> out) const;

  std::vector<Region> regions_;
};

}  // namespace ringside::vmm
