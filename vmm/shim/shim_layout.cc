#include "vmm/shim/shim_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "guest-shim/mailbox_abi.h"
#include "vmm/base/numbers.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kEntryBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kFetchBytes = round_up(sizeof(shim_fetch), kEntryBytes);

/// As large as `room` allows, behind the mailboxes.
void add_rings(ShimLayout& layout, RingWants rings, std::uint64_t room) {
  const std::uint64_t each = rings.count == 0 ? 0 : round_down(room / rings.count, SHIM_RING_SIZE);
  layout.ring_room = each - std::min<std::uint64_t>(each, SHIM_RING_SIZE);
  if (layout.ring_records() < kFewestRecords) return;
  layout.rings = layout.data + SHIM_DATA_SIZE;
  layout.ring_count = rings.count;
  layout.expected_points = rings.trap_points;
}

/// Of table and slots, for so many trap points, as many again and some thousand more, since modules
/// come later, and for their fetch lists.
std::uint64_t room_for(std::uint64_t trap_points) {
  constexpr std::uint64_t kEach = 22, kMore = 4096, kList = 512;  // bytes, trap points, bytes
  return kEach * (2 * trap_points + kMore) +
         kList * std::min<std::uint64_t>(trap_points, SHIM_LISTS);
}

/// Rings take a quarter of all, or what is left beside the trap points.
std::uint64_t room_for_rings(std::uint64_t bytes, RingWants rings) {
  std::uint64_t room = bytes / 4;
  const std::uint64_t others = SHIM_CODE_SIZE + SHIM_DATA_SIZE + room_for(rings.trap_points);
  const std::uint64_t left = std::min(bytes - std::min(bytes, others), kShimLargePage);
  if (rings.trap_points != 0) room = std::max(room, left);
  return round_down(room, kShimSmallPage);
}

/// Gives the table what is left before the slots.
void fill_table(ShimLayout& layout) {
  layout.table_entries = static_cast<std::uint32_t>((layout.slots - layout.table) / kEntryBytes);
}

ShimLayout large_layout(GuestPhys place, RingWants rings) {
  ShimLayout layout;
  layout.place = place;
  layout.page_bytes = kShimLargePage;
  layout.table = kShimLargePage;
  layout.slots = 2 * kShimLargePage;
  layout.data = kLargeShimBytes - kShimLargePage;
  layout.slots_bytes = layout.data - layout.slots;
  layout.bytes = kLargeShimBytes;
  add_rings(layout, rings, kShimLargePage - SHIM_DATA_SIZE);
  fill_table(layout);
  return layout;
}

/// A trap point takes 8 bytes of a table that is 3/4 full at most, and a slot of 9 to 10 bytes: so
/// half of the room for each.
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
  const std::uint64_t room = layout.bytes - SHIM_CODE_SIZE - data_bytes;
  layout.table = SHIM_FETCH_AT + (layout.ring_count != 0 ? kFetchBytes : 0);
  layout.slots = SHIM_CODE_SIZE + round_down(room / 2, kShimSmallPage);
  layout.data = layout.bytes - data_bytes;
  fill_table(layout);
  layout.slots_bytes = layout.data - layout.slots;
  layout.page_tables = place.wrapping_add(layout.bytes);
  layout.user_page_table = layout.page_tables.wrapping_add(layout.directories() * kShimSmallPage);
  return layout;
}

}  // namespace

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
