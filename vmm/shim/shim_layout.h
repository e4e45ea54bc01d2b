// Where the parts of the shim's region lie, for a place of a given size: in the same order and at
// the same distances in guest-physical memory and in the guest's addresses.
// Two forms. With 2 MiB aligned and enough for the largest, large pages map it. Else 4 KiB pages
// do, whose page tables lie in the place, behind the region: so it also fits into the first
// megabyte. Pure. Used by the installer and the channel. Fire context: layout() no; the struct's
// values yes.
#pragma once

#include <cstdint>

#include "vmm/arch/arch.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

inline constexpr std::uint64_t kShimSmallPage = arch::kPageSize,
                               kShimLargePage = arch::kLargePageSize;
/// What large pages map: a table for 196,608 tracepoints, and 10 MiB of slots.
inline constexpr std::uint64_t kLargeShimBytes = 16 << 20;
/// Less is refused: it would hold some hundred tracepoints.
inline constexpr std::uint64_t kSmallestShimBytes = 64 << 10;

struct ShimLayout {
  GuestPhys place;                               // of the header
  std::uint64_t page_bytes = 0;                  // of the pages that map it
  std::uint64_t table = 0, slots = 0, data = 0;  // offsets from the header
  std::uint32_t table_entries = 0;
  std::uint64_t slots_bytes = 0;
  std::uint64_t bytes = 0;    // from the header to the data's end, whole pages
  GuestPhys page_tables;      // of small pages: behind it, one page for 2 MiB each
  GuestPhys user_page_table;  // behind those, for a guest that isolates its page tables

  /// How many entries of the kernel's page middle directories map it.
  std::uint64_t directories() const { return (bytes + kShimLargePage - 1) / kShimLargePage; }
  /// With what lies behind it.
  std::uint64_t taken() const {
    return page_bytes == kShimSmallPage ? bytes + (directories() + 1) * kShimSmallPage : bytes;
  }
  /// Above this, open addressing makes long walks inside the guest.
  std::size_t most_tracepoints() const { return std::size_t{table_entries} / 4 * 3; }
  /// Whether the page at `offset` is written by the guest, and then never executed.
  bool is_data(std::uint64_t offset) const { return offset + page_bytes > data; }
};

/// The region in `place`. Unsupported, with its size, when that is too small.
Result<ShimLayout> layout_shim(GuestMemory::Extent place);

}  // namespace ringside::vmm
