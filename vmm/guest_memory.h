// Guest-physical memory: regions of a shared mapping, read and written by copy.
// Hands out no pointers; ranges that leave a region fail (the guest chooses the addresses).
// Fire context: read, write and load yes.
#pragma once

#include <cstddef>
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
    int fd = -1;                 // the file behind the mapping, for present_extents; -1: none
    std::uint64_t fd_offset = 0;
  };

  GuestMemory() = default;
  explicit GuestMemory(std::vector<Region> regions);

  /// Copies out.size() bytes; false when any byte lies outside RAM (then `out` is unspecified).
  [[nodiscard]] bool read(GuestPhys at, std::span<std::byte> out) const;
  [[nodiscard]] bool write(GuestPhys at, std::span<const std::byte> bytes);
  /// One aligned 8-byte load in a single access, for page-table entries.
  std::optional<std::uint64_t> load64(GuestPhys at) const;
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
  /// does not allocate the holes (design: 4 s against 12 ms). All of RAM where there is no file.
  std::vector<Extent> present_extents() const;
  std::uint64_t size() const;

 private:
  const Region* find(GuestPhys at, std::size_t size) const;
  std::vector<Region> regions_;
};

}  // namespace ringside::vmm
