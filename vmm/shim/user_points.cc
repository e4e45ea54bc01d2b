#include "vmm/shim/user_points.h"

#include <algorithm>
#include <cstring>

#include "vmm/base/check.h"

namespace ringside::vmm {
namespace {

std::uint32_t low_half(GuestVirt address) {
  return static_cast<std::uint32_t>(address.raw());
}

std::uint32_t list_of(std::uint16_t offset) {
  return std::uint32_t{offset} >> SHIM_USER_LIST_SHIFT;
}

Result<void> check_semaphore(std::uint64_t offset) {
  if (offset <= UINT32_MAX) return {};
  return fail(ErrorCode::Unsupported, "its semaphore lies beyond the file's first 4 GiB");
}

}  // namespace

Result<void> UserPoints::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (presence_.state() == ShimState::There && region_.write(offset, bytes)) return {};
  return region_gone();
}

Result<void> UserPoints::begin() {
  CHECK(!has_begun());
  const std::uint64_t at = TRY(slots_.allocate_words(sizeof(Heads) / sizeof(std::uint64_t)));
  TRY(write(at, std::as_bytes(std::span(heads_))));
  if (presence_.state() != ShimState::There ||
      !region_.store(SHIM_HEADER_USER_POINTS, base_.wrapping_add(at).raw())) {
    return region_gone();
  }
  lists_at_ = at;
  return {};
}

Result<GuestVirt> UserPoints::reserve() {
  shim_user_point made{};
  made.offset = SHIM_USER_NOWHERE;
  const GuestVirt name = TRY(slots_.allocate(sizeof made));
  TRY(slots_.write(name, std::as_bytes(std::span(&made, 1))));
  return name;
}

/// Its list may be known by now (TrapTable::record_at()), so of the bytes before it only that one
/// is written that the int3 replaces.
Result<void> UserPoints::describe(GuestVirt name, const UserTrapPoint& point) {
  CHECK(point.offset < SHIM_PAGE && point.code <= SHIM_PAGE - sizeof point.bytes);
  CHECK(point.before.size() <= SHIM_USER_SLOT_BYTES && point.down <= UINT32_C(1) << 30);
  TRY(check_semaphore(point.semaphore));
  shim_user_point made{};
  made.offset = point.offset;
  made.code = point.code;
  made.distance = point.distance;
  made.mask = point.mask;
  made.bytes = point.bytes;
  made.inode = point.inode.raw();
  made.page = point.page;
  made.slot = point.slot;
  made.down = point.makes_frame ? SHIM_USER_FRAME : point.down;
  made.semaphore = static_cast<std::uint32_t>(point.semaphore);
  made.slot_bytes = static_cast<std::uint16_t>(point.before.size());
  std::memcpy(made.before, point.before.data(), point.before.size());
  const std::uint64_t at = name.offset_from(base_);
  TRY(write(at, std::as_bytes(std::span(&made, 1))));
  TRY(write(at - SHIM_SLOT_REPLACED, std::span(&point.replaced, 1)));
  offsets_[name] = point.offset;
  return {};
}

Result<void> UserPoints::note_semaphore(GuestVirt name, std::uint64_t semaphore) {
  TRY(check_semaphore(semaphore));
  const auto noted = static_cast<std::uint32_t>(semaphore);
  return write(name.offset_from(base_) + offsetof(shim_user_point, semaphore),
               std::as_bytes(std::span(&noted, 1)));
}

/// The first of its list leads to all that were there before.
Result<void> UserPoints::link(std::span<const GuestVirt> names) {
  for (const GuestVirt name : names) {
    const std::uint32_t list = list_of(offsets_.at(name));
    const std::uint32_t next = heads_[list];
    TRY(write(name.offset_from(base_) + SHIM_USER_NEXT, std::as_bytes(std::span(&next, 1))));
    heads_[list] = low_half(name);
    TRY(store_head(list));
  }
  return {};
}

/// With the head of the list beside it, which stays as it is.
Result<void> UserPoints::store_head(std::uint32_t list) {
  const std::uint32_t first = list & ~1U;
  const std::uint64_t both = heads_[first] | std::uint64_t{heads_[first + 1]} << 32;
  const bool done = presence_.state() == ShimState::There &&
                    region_.store(lists_at_ + first * sizeof heads_[0], both);
  return done ? Result<void>() : region_gone();
}

Result<void> UserPoints::forget(GuestVirt name) {
  const std::uint16_t nowhere = SHIM_USER_NOWHERE;
  return write(name.offset_from(base_) + SHIM_USER_OFFSET, std::as_bytes(std::span(&nowhere, 1)));
}

}  // namespace ringside::vmm
