#include "vmm/shim/shim_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/numbers.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kFetchBytes = round_up(sizeof(shim_fetch), sizeof(std::uint64_t));
/// As far as the table reaches in its smallest units; larger regions have larger ones.
constexpr std::uint64_t kSmallSlots = std::uint64_t{1} << (16 + SHIM_BLOCK_SHIFT);
constexpr std::uint32_t kLargeUnitShift = 5;
static_assert(kSmallSlots <= 1 << SHIM_ENTRY_SLOT_BITS);
/// With less, larger units hold fewer trap points than kSmallSlots do with small ones.
constexpr std::uint64_t kLeastOfLargeUnits = 4 << 20;
static_assert(kLargeShimBytes <= kSmallSlots << kLargeUnitShift);

/// Of Debian's 6.1 and 6.12, with what both cost: the entries of all functions take 6.4 bytes each
/// where slots are shared, and 40 to 47 where they are not.
std::uint64_t room_of(std::uint64_t trap_points, bool shares_slots) {
  constexpr std::uint64_t kTables = 20 << 10;  // for addresses all over the kernel's text
  return kTables + (shares_slots ? 13 * trap_points / 2 : 48 * trap_points);
}

/// As large as `room` allows, behind the mailboxes.
void add_rings(ShimLayout& layout, RingWants rings, std::uint64_t room) {
  const std::uint64_t each = rings.count == 0 ? 0 : round_down(room / rings.count, SHIM_RING_SIZE);
  layout.ring_room = each - std::min<std::uint64_t>(each, SHIM_RING_SIZE);
  if (layout.ring_records() < kFewestRecords) return;
  layout.rings = layout.data + SHIM_DATA_SIZE;
  layout.ring_count = rings.count;
  layout.expected_points = rings.trap_points;
}

/// Rings take a quarter of all. If the trap points are known, they take what is left beside these,
/// as many again and some thousand more, since modules come later, and their fetch lists; but an
/// eighth at least.
std::uint64_t room_for_rings(std::uint64_t bytes, RingWants rings) {
  constexpr std::uint64_t kMore = 4096, kList = 512;  // trap points, bytes
  std::uint64_t room = bytes / 4;
  if (rings.trap_points != 0) {
    const std::uint64_t others =
        SHIM_CODE_SIZE + SHIM_DATA_SIZE + kFetchBytes +
        room_of(std::uint64_t{2} * rings.trap_points + kMore, bytes < kLeastOfLargeUnits) +
        kList * std::min(rings.trap_points, SHIM_LISTS);
    const std::uint64_t left = std::min(bytes - std::min(bytes, others), kShimLargePage);
    room = std::max(bytes / 8, left);
  }
  return round_down(room, kShimSmallPage);
}

/// From `slots` to the data, as far as the table reaches.
void fill_slots(ShimLayout& layout) {
  layout.slots_bytes = layout.data - layout.slots;
  const bool is_small = layout.slots_bytes < kLeastOfLargeUnits;
  if (is_small) layout.slots_bytes = std::min(layout.slots_bytes, kSmallSlots);
  layout.unit_shift = is_small ? 0 : kLargeUnitShift;
}

ShimLayout large_layout(GuestPhys place, RingWants rings) {
  ShimLayout layout;
  layout.place = place;
  layout.page_bytes = kShimLargePage;
  layout.slots = kShimLargePage;
  layout.data = kLargeShimBytes - kShimLargePage;
  layout.bytes = kLargeShimBytes;
  add_rings(layout, rings, kShimLargePage - SHIM_DATA_SIZE);
  fill_slots(layout);
  return layout;
}

ShimLayout small_layout(GuestPhys place, std::uint64_t size, RingWants rings) {
  ShimLayout layout;
  layout.place = place;
  layout.page_bytes = kShimSmallPage;
  const std::uint64_t tables = round_up(size, kShimLargePage) / kShimLargePage;
  layout.bytes = size - (tables + 1) * kShimSmallPage;
  std::uint64_t data_bytes = SHIM_DATA_SIZE;
  if (rings.count != 0) {
    const std::uint64_t room = room_for_rings(layout.bytes, rings);
    layout.data = layout.bytes - SHIM_DATA_SIZE - room;
    add_rings(layout, rings, room);
    if (layout.ring_count != 0) data_bytes += room;
  }
  layout.slots = SHIM_FETCH_AT + (layout.ring_count != 0 ? kFetchBytes : 0);
  layout.data = layout.bytes - data_bytes;
  fill_slots(layout);
  layout.page_tables = place.wrapping_add(layout.bytes);
  layout.user_page_table = layout.page_tables.wrapping_add(layout.directories() * kShimSmallPage);
  return layout;
}

}  // namespace

std::uint64_t ShimLayout::room_for(std::size_t trap_points) const {
  return room_of(trap_points, shares_slots());
}

Result<ShimLayout> layout_shim(GuestMemory::Extent place, RingWants rings) {
  const std::uint64_t start = place.base.raw();
  const auto fits = [&](std::uint64_t aligned, std::uint64_t least) {
    return aligned >= start && aligned - start <= place.size &&
           place.size - (aligned - start) >= least;
  };
  const std::uint64_t large = round_up(start, kShimLargePage);
  if (fits(large, kLargeShimBytes)) return large_layout(GuestPhys(large), rings);
  const std::uint64_t small = round_up(start, kShimSmallPage);
  if (!fits(small, kSmallestShimBytes)) {
    return fail(ErrorCode::Unsupported,
                fmt::format("the {} KiB of memory set aside at {:#x} do not hold the shim: it "
                            "takes {} KiB or more",
                            place.size >> 10, start, kSmallestShimBytes >> 10));
  }
  const std::uint64_t size = std::min(place.size - (small - start), kLargeShimBytes);
  return small_layout(GuestPhys(small), round_down(size, kShimSmallPage), rings);
}

}  // namespace ringside::vmm
