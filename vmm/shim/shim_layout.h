// The layout of the shim's region in a place of a given size. Its parts have the same order and the
// same distances in guest-physical memory and in guest-virtual memory.
// Rings for records are there only where they are asked for: they take room from table and slots.
// There are two forms. A place that is 2 MiB aligned and large enough is mapped by large pages. Any
// other is mapped by 4 KiB pages, whose page tables follow the region in the place, so that it fits
// into the first megabyte, too.
// Pure. Used by the installer and the channel.
// Fire context: the struct's values yes, layout_shim() no.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "guest-shim/mailbox_abi.h"
#include "vmm/arch/arch.h"
#include "vmm/base/numbers.h"
#include "vmm/base/result.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

inline constexpr std::uint64_t kShimSmallPage = arch::kPageSize,
                               kShimLargePage = arch::kLargePageSize;
/// The size of the form with large pages: 12 MiB of slots.
inline constexpr std::uint64_t kLargeShimBytes = 16 << 20;
/// Smaller places are refused: they would hold some hundred trap points.
inline constexpr std::uint64_t kSmallestShimBytes = 64 << 10;
/// A ring with fewer records would drop most of a burst, so there is none then.
inline constexpr std::uint32_t kFewestRecords = 16;
inline constexpr unsigned kLeastRecordShift = std::bit_width(SHIM_RECORD_SIZE) - 1;
/// Of the size of records that have registers and no memory.
inline constexpr unsigned kDefaultRecordShift = std::bit_width(std::uint64_t{SHIM_RECORD_RUNS});
static_assert(SHIM_RECORD_RUNS <= 1U << kDefaultRecordShift);

/// Where a shim lies in the guest's addresses, and the slots in it.
struct ShimPlace {
  GuestVirt base{};
  std::uint64_t bytes = 0;
  GuestVirt slots{};
  std::uint64_t slots_bytes = 0;

  bool has_slot_at(GuestVirt at) const { return at.is_in(slots, slots_bytes); }
};

/// The rings that are wanted.
struct RingWants {
  std::uint32_t count = 0;        // for so many CPUs
  std::uint32_t trap_points = 0;  // that have to fit beside them; 0: not known
  bool is_must = false;           // there are rings even where the trap points do not fit
};

struct ShimLayout {
  GuestPhys place;                    // of the header
  std::uint64_t page_bytes = 0;       // of the pages that map it
  std::uint64_t slots = 0, data = 0;  // offsets from the header
  std::uint64_t slots_bytes = 0;      // with the table, which lies at their beginning
  std::uint32_t unit_shift = 0;       // of distances in the table
  std::uint64_t rings = 0;            // offset of the first struct shim_ring, in the data part
  std::uint32_t ring_count = 0;       // one for each CPU; 0: there are none
  std::uint64_t ring_room = 0;        // bytes, for the records of a CPU's two rings
  std::uint32_t expected_points = 0;  // RingWants::trap_points, where there are rings
  std::uint64_t bytes = 0;            // from the header to the data's end, whole pages
  GuestPhys page_tables;              // of small pages: after the region, one page for 2 MiB each
  GuestPhys user_page_table;          // after those, for a guest that isolates its page tables

  /// How many entries of the kernel's page middle directories map it.
  std::uint64_t directories() const { return divide_up(bytes, kShimLargePage); }
  /// Bytes of the region with the page tables that follow it.
  std::uint64_t taken() const {
    return page_bytes == kShimSmallPage ? bytes + (directories() + 1) * kShimSmallPage : bytes;
  }
  /// Bytes of which slots and blocks of the table lie a whole number behind its beginning.
  std::uint64_t slot_unit() const { return std::uint64_t{1} << unit_shift; }
  std::uint64_t block_unit() const { return slot_unit() << SHIM_BLOCK_SHIFT; }
  /// Whether slots with the same code are one. It saves room: of the kernel's functions, nine of
  /// ten begin like another one.
  bool shares_slots() const { return unit_shift == 0; }
  /// Whether it has room for so many trap points with their slots.
  bool holds(std::size_t trap_points) const { return room_for(trap_points) <= slots_bytes; }
  /// Bytes of the table, and of the slots of so many trap points.
  std::uint64_t room_for(std::size_t trap_points) const;
  /// Where it lies once it is mapped at `home`.
  ShimPlace place_at(GuestVirt home) const {
    return {home, bytes, home.wrapping_add(slots), slots_bytes};
  }
  /// Offsets of a CPU's struct shim_ring, and of the first record of its two rings. `shift`: a
  /// record has 1 << shift bytes.
  std::uint64_t ring_at(unsigned cpu) const { return rings + std::uint64_t{SHIM_RING_SIZE} * cpu; }
  std::uint64_t records_at(unsigned cpu) const { return ring_at(ring_count) + ring_room * cpu; }
  std::uint64_t nested_records_at(unsigned cpu, unsigned shift = kDefaultRecordShift) const {
    return records_at(cpu) + (std::uint64_t{ring_records(shift)} << shift);
  }
  /// How many records the first ring of a CPU holds, a power of two, or 0.
  std::uint32_t ring_records(unsigned shift = kDefaultRecordShift) const {
    const std::uint64_t all = ring_room >> shift;
    return static_cast<std::uint32_t>(
        std::bit_floor(all - std::min<std::uint64_t>(all, nested_records(shift))));
  }
  /// And the second one. Traps inside of traps are rare.
  static std::uint32_t nested_records(unsigned shift = kDefaultRecordShift) {
    return std::max(1U, 8U >> (shift - kLeastRecordShift));
  }
  /// Whether the page at `offset` is data, which the guest writes and never executes.
  bool is_data(std::uint64_t offset) const { return offset + page_bytes > data; }
};

/// The layout in `place`, with rings; without any where they do not fit. Unsupported, with the size
/// that is needed, when the place is too small.
Result<ShimLayout> layout_shim(GuestMemory::Extent place, RingWants rings = {});

}  // namespace ringside::vmm
