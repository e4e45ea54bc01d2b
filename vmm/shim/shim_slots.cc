#include "vmm/shim/shim_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "vmm/base/check.h"
#include "vmm/base/numbers.h"

namespace ringside::vmm {

ShimSlots::ShimSlots(ShimRegion& region, const ShimPresence& presence, const ShimLayout& layout,
                     GuestVirt base, std::vector<OccupiedSlots> occupied)
    : region_(region),
      presence_(presence),
      layout_(layout),
      base_(base),
      occupied_(std::move(occupied)) {}

tl::unexpected<Error> ShimSlots::used_up() const {
  return fail(
      ErrorCode::Limit,
      fmt::format("the {} KiB for displaced instructions are used up: enable fewer probes{}",
                  layout_.slots_bytes >> 10,
                  layout_.ring_count == 0 ? "" : ", or trace with -x record=no"));
}

/// Blocks whose room is reserved may lie anywhere, the first at the next whole unit. Where somebody
/// is inside, there is no room.
std::uint64_t ShimSlots::room() const {
  std::uint64_t used = slot_bytes_ + reserved_ + layout_.block_unit();
  for (const OccupiedSlots& part : occupied_) {
    used += part.end - std::min(part.end, std::max(part.begin, slot_bytes_));
  }
  return layout_.slots_bytes - std::min(layout_.slots_bytes, used);
}

/// `before`: so far behind the begin, a whole number of units has passed. `kept`: bytes that are
/// for others. An offset from the table's beginning.
Result<std::uint64_t> ShimSlots::take(std::uint64_t size, std::uint64_t unit, std::uint64_t before,
                                      std::uint64_t kept) {
  const auto align = [&](std::uint64_t at) { return round_up(at + before, unit) - before; };
  std::uint64_t begin = align(slot_bytes_);
  for (const OccupiedSlots& part : occupied_) {
    if (part.begin < begin + size && part.end > begin) begin = align(part.end);
  }
  const std::uint64_t end = layout_.slots_bytes - std::min(layout_.slots_bytes, kept);
  if (begin > end || size > end - begin) return used_up();
  slot_bytes_ = begin + size;
  note(static_cast<std::uint32_t>(layout_.slots + begin));
  return begin;
}

Result<GuestVirt> ShimSlots::allocate(std::size_t size) {
  const std::uint64_t begin = TRY(take(SlotHeader::kBytes + size, layout_.slot_unit(),
                                       SlotHeader::kBytes, reserved_ + layout_.block_unit()));
  return base_.wrapping_add(layout_.slots + begin + SlotHeader::kBytes);
}

Result<std::uint64_t> ShimSlots::allocate_block(std::size_t size, std::uint64_t reserved) {
  CHECK(reserved <= reserved_);
  const std::uint64_t begin = TRY(take(size, layout_.block_unit(), 0, reserved_ - reserved));
  reserved_ -= reserved;
  return layout_.slots + begin;
}

/// Firings look there, and do not wait while room is made.
void ShimSlots::note(std::uint32_t offset) {
  const bool is_full = begins_.size() == begins_.capacity();
  std::vector<std::uint32_t> grown;
  if (is_full) {
    grown.reserve(2 * begins_.size() + 1);
    grown.assign(begins_.begin(), begins_.end());
  }
  const std::lock_guard adding(begins_lock_);
  if (is_full) begins_.swap(grown);
  begins_.push_back(offset);
}

Result<std::uint64_t> ShimSlots::allocate_words(std::size_t words) {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const GuestVirt begin = TRY(allocate((words + 1) * kWord - 1));
  return round_up(begin.offset_from(base_), kWord);
}

bool ShimSlots::may_begin_at(std::uint64_t offset) const {
  const std::uint64_t distance = offset - layout_.slots;
  return distance >= kTableBytes + SlotHeader::kBytes && distance < slot_bytes_ &&
         distance % layout_.slot_unit() == 0;
}

Result<void> ShimSlots::write(GuestVirt slot, std::span<const std::byte> code, SlotHeader header) {
  const auto before = header.encode();
  std::vector<std::byte> bytes(before.begin(), before.end());
  bytes.insert(bytes.end(), code.begin(), code.end());
  const std::uint64_t offset = slot.offset_from(base_) - layout_.slots;
  if (offset < kTableBytes + before.size() || offset > slot_bytes_ ||
      code.size() > slot_bytes_ - offset) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is no slot", slot.raw()));
  }
  return write_at(layout_.slots + offset - before.size(), bytes);
}

Result<void> ShimSlots::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (presence_.state() == ShimState::There && region_.write(offset, bytes)) return {};
  return region_gone();
}

Result<void> ShimSlots::set_list(std::uint64_t slot, std::optional<std::uint8_t> list) {
  const auto byte = static_cast<std::uint8_t>(list ? SHIM_SLOT_RECORDS | *list : 0);
  const auto known = lists_.find(slot);
  if ((known == lists_.end() ? 0 : known->second) == byte) return {};
  const std::byte bytes[] = {std::byte{byte}};
  TRY(write_at(slot - SHIM_SLOT_LIST, bytes));
  lists_[slot] = byte;
  return {};
}

std::optional<SlotExtent> ShimSlots::slot_at(std::uint64_t offset) const {
  SlotExtent slot{0, layout_.bytes};
  const std::lock_guard looking(begins_lock_);
  const auto next = std::ranges::upper_bound(begins_, offset);
  if (next == begins_.begin()) return std::nullopt;
  slot.begin = *std::prev(next);
  if (next != begins_.end()) slot.end = *next;
  return slot;
}

std::uint64_t ShimSlots::used_bytes() const {
  const std::uint64_t occupied = occupied_.empty() ? 0 : occupied_.back().end;
  return std::max<std::uint64_t>(slot_bytes_, occupied);
}

}  // namespace ringside::vmm
