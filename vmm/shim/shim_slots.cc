#include "vmm/shim/shim_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "vmm/base/numbers.h"

namespace ringside::vmm {

ShimSlots::ShimSlots(ShimRegion& region, const ShimPresence& presence, const ShimLayout& layout,
                     GuestVirt base, std::vector<OccupiedSlots> occupied)
    : region_(region),
      presence_(presence),
      layout_(layout),
      base_(base),
      occupied_(std::move(occupied)) {}

Result<GuestVirt> ShimSlots::allocate(std::size_t size) {
  std::uint64_t begin = slot_bytes_;
  for (const OccupiedSlots& part : occupied_) {
    if (part.begin < begin + size && part.end > begin) begin = part.end;
  }
  if (begin > layout_.slots_bytes || size > layout_.slots_bytes - begin) {
    return fail(
        ErrorCode::Limit,
        fmt::format("the {} KiB for displaced instructions are used up: enable fewer probes",
                    layout_.slots_bytes >> 10));
  }
  slot_bytes_ = begin + size;
  note(static_cast<std::uint32_t>(layout_.slots + begin));
  return base_.wrapping_add(layout_.slots + begin);
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

bool ShimSlots::contains(GuestVirt slot) const {
  const std::uint64_t offset = slot.offset_from(base_);
  return offset >= layout_.slots && offset < layout_.slots + slot_bytes_;
}

Result<void> ShimSlots::write(GuestVirt slot, std::span<const std::byte> code) {
  const std::uint64_t offset = slot.offset_from(base_) - layout_.slots;
  if (offset > slot_bytes_ || code.size() > slot_bytes_ - offset) {
    return fail(ErrorCode::Invalid, fmt::format("{:#x} is no slot", slot.raw()));
  }
  if (presence_.state() != ShimState::There || !region_.write(layout_.slots + offset, code)) {
    return region_gone();
  }
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
