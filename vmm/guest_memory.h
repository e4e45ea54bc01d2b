// Guest-physical memory, read and written by copies. Each range is backed either by memory that is
// mapped in this process, or by bytes that can only be copied (vmm/copied_bytes.h); callers need
// not know which. Accesses outside RAM fail: the guest chooses the addresses.
// Used by everything that looks at a guest. Does not: translate virtual addresses (page_walk), own
// mapped RAM.
// Fire context: read, read_each, write, load64, store64 and is_ram yes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/result.h"
#include "vmm/copied_bytes.h"

namespace ringside::vmm {

class GuestMemory {
 public:
  /// Guest-physical [base, base + bytes.size()) is the host memory `bytes`, which must outlive the
  /// GuestMemory. Regions must not overlap.
  struct Region {
    GuestPhys base;
    std::span<std::byte> bytes;
    int fd = -1;                  // the mapped file, for present_extents(); -1: none
    std::uint64_t fd_offset = 0;  // of bytes[0] in it
  };
  /// Guest-physical [base, base + size) is [offset, offset + size) of `bytes`.
  struct CopiedRegion {
    GuestPhys base;
    std::uint64_t size = 0;
    std::shared_ptr<CopiedBytes> bytes;
    std::uint64_t offset = 0;
  };

  GuestMemory() = default;
  explicit GuestMemory(const std::vector<Region>& regions) : GuestMemory(of(regions, {})) {}
  static GuestMemory by_copies(const std::vector<CopiedRegion>& regions) {
    return of(std::vector<Region>(), regions);
  }
  /// Both kinds in one guest.
  static GuestMemory of(const std::vector<Region>& mapped, const std::vector<CopiedRegion>& copied);

  /// Copies out.size() bytes; false when any byte lies outside RAM (then `out` is unspecified).
  [[nodiscard]] bool read(GuestPhys at, std::span<std::byte> out) const {
    const Backing* backing = find(at, out.size());
    if (backing == nullptr || backing->mapped == nullptr) [[unlikely]]
      return read_long_way(at, out);
    // memcpy() may not be given the null pointer that no bytes have.
    if (!out.empty()) {
      std::memcpy(out.data(), backing->mapped + at.offset_from(backing->base), out.size());
    }
    return true;
  }
  struct Part {
    GuestPhys at;
    std::span<std::byte> out;
  };
  /// Several copies, in this order; false if one fails. It is one system call if all lie in the
  /// same copied region.
  [[nodiscard]] bool read_each(std::span<const Part> parts) const;
  /// False when any byte lies outside RAM or cannot be written; others may have been written.
  [[nodiscard]] bool write(GuestPhys at, std::span<const std::byte> bytes);
  /// One aligned 8-byte load in a single access, for page-table entries.
  std::optional<std::uint64_t> load64(GuestPhys at) const {
    const Backing* backing = find(at, sizeof(std::uint64_t));
    if (backing == nullptr || at.raw() % sizeof(std::uint64_t) != 0) [[unlikely]]
      return std::nullopt;
    if (backing->mapped == nullptr) [[unlikely]] {
      // The result is a reference parameter. An optional that another function returns lies in
      // memory, and then the one below does, too: a page walk would take four times as long.
      std::uint64_t copy = 0;
      return read_long_way(at, copy) ? std::optional(copy) : std::nullopt;
    }
    // SAFETY: find() proved that the 8 bytes lie in the region, whose host base is page-aligned as
    // the guest's is. The guest may write at any time, hence one atomic access and never a second.
    const auto* entry =
        reinterpret_cast<const std::uint64_t*>(backing->mapped + at.offset_from(backing->base));
    return __atomic_load_n(entry, __ATOMIC_RELAXED);
  }
  /// The same as a store; false outside RAM and at an address that is not aligned.
  [[nodiscard]] bool store64(GuestPhys at, std::uint64_t value);
  /// Whether all of [at, at + size) lies in one region.
  bool is_ram(GuestPhys at, std::size_t size) const { return find(at, size) != nullptr; }
  /// The bytes of [at, at + size) in place, for memory that we share with the guest on purpose
  /// (the shim's region, a virtqueue's rings). Empty when they do not lie in one region, or are not
  /// mapped in this process. The guest may change them between any two loads.
  std::span<std::byte> mapping(GuestPhys at, std::size_t size);

  struct Extent {
    GuestPhys base;
    std::uint64_t size = 0;
  };
  /// The parts of RAM that were ever written, page-aligned, in order. Found by SEEK_DATA on the
  /// mapped file, so that a scan does not allocate its holes (4 s against 12 ms for 512 MiB). All
  /// of RAM where nobody can tell.
  std::vector<Extent> present_extents() const;
  /// All of RAM, in order.
  std::vector<Extent> extents() const;
  /// Bytes of RAM in all.
  std::uint64_t size() const;

 private:
  struct Backing {
    GuestPhys base;
    std::uint64_t size = 0;
    std::byte* mapped = nullptr;  // null: by copies
    int fd = -1;
    std::uint64_t offset = 0;  // in fd, or in `copied`
    std::shared_ptr<CopiedBytes> copied;
  };
  explicit GuestMemory(std::vector<Backing> backings);

  /// The region that holds all of [at, at + size), which may not wrap; null when none does.
  const Backing* find(GuestPhys at, std::size_t size) const {
    for (const Backing& backing : backings_) {
      const std::uint64_t offset = at.offset_from(backing.base);  // huge when `at` lies below
      if (offset < backing.size && size <= backing.size - offset) return &backing;
    }
    return nullptr;
  }
  std::size_t run_length(GuestPhys at, std::size_t wanted) const;
  bool read_long_way(GuestPhys at, std::span<std::byte> out) const;
  bool read_long_way(GuestPhys at, std::uint64_t& out) const;

  std::vector<Backing> backings_;  // in order of their bases
};

}  // namespace ringside::vmm
