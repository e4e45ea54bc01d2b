// In this file, top to bottom: one point, making points, those that stand, those that do not any
// more.
#include "providers/trap_points/trap_point_store.h"

#include <algorithm>
#include <utility>

#include "providers/trap_points/code_writes.h"
#include "providers/trap_points/sites/site_examiner.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {

using Stage = TrapPoint::Stage;

bool TrapPoint::is_in_function_of(GuestVirt at) const {
  return at.is_in(site.text().begin, std::max<std::uint64_t>(site.text().size, 1));
}

bool TrapPoint::is_original(const GuestReader& reader) const {
  return has_bytes(reader, site.address(), site.instruction());
}

bool TrapPoint::displaces(GuestVirt at) const {
  return at != address() && at.is_in(address(), jump->run.code().size());
}

std::span<const std::byte> TrapPoint::code() const {
  return stage == Stage::Jumping ? std::span<const std::byte>(jump->code)
                                 : std::span(&arch::kBreakpoint, 1);
}

std::span<const std::byte> TrapPoint::replaced(Stage standing) const {
  return standing == Stage::Jumping ? jump->replaced() : site.instruction().first(1);
}

std::span<const std::byte> TrapPointStore::below(GuestVirt at) const {
  const auto id = index_.find(at);
  if (!id) return {};
  const Stage stage = points_[*id].stage;
  return TrapPoint::is_standing(stage) ? points_[*id].replaced(stage)
                                       : std::span<const std::byte>();
}

/// A point that the shim has forgotten. A slot is good for the instruction that it was made of, so
/// where that is another one now, there is a new slot: a task may still be inside the old one.
Result<void> TrapPointStore::revive(TrapPoint& point, const ProbeSite& site) {
  const bool same = std::ranges::equal(point.site.instruction(), site.instruction());
  point.slot = same ? TRY(displaced_.slot_for_list(point.slot, site, std::nullopt))
                    : TRY(displaced_.make_slot(site));
  TRY(shim_.add_entry(point.address(), point.slot));
  point.site = site;
  point.users = 0;
  point.jump_is_known = false;
  point.recording.reset();
  point.stage = Stage::Prepared;
  return {};
}

Result<TrapPointStore::Id> TrapPointStore::add(const ProbeSite& site) {
  const GuestVirt address = site.address();
  if (const auto id = index_.find(address)) {
    TrapPoint& point = points_[*id];
    if (point.stage == Stage::Dropped || point.stage == Stage::Parked) {
      TRY(revive(point, site));
    } else if (!std::ranges::equal(point.site.instruction(), site.instruction())) {
      return refuse(address, "the guest changed its text");
    }
    ++point.users;
    return *id;
  }
  const GuestVirt slot = TRY(displaced_.make_slot(site));
  TRY(shim_.add_entry(address, slot));
  const auto id = static_cast<Id>(points_.size());
  points_.emplace_back(site, slot).users = 1;
  index_.insert(address, id);
  return id;
}

void TrapPointStore::release(GuestVirt address) {
  const auto id = index_.find(address);
  if (id && points_[*id].users > 0) --points_[*id].users;
}

/// The shim alone does not tell: an entry is disabled while a jump stands there, too.
Result<void> TrapPointStore::record_at(std::span<const GuestVirt> addresses, std::uint8_t list) {
  for (const GuestVirt address : addresses) {
    const auto id = index_.find(address);
    if (id && points_[*id].stage == Stage::Prepared) continue;
    return fail(ErrorCode::Invalid, "a probe whose traps wait stands there already");
  }
  std::vector<TrapPoint*> points;
  for (const GuestVirt address : addresses) points.push_back(&points_[*index_.find(address)]);
  TRY(take_slots_for(points, list));
  TRY(shim_.record_at(addresses, list));
  for (const GuestVirt address : addresses) points_[*index_.find(address)].recording = list;
  return {};
}

/// All or none: a trap point that waits must not have a slot of those that record.
Result<void> TrapPointStore::take_slots_for(std::span<TrapPoint* const> points, std::uint8_t list) {
  std::vector<GuestVirt> slots;
  for (const TrapPoint* const point : points) {
    const auto slot = displaced_.slot_for_list(point->slot, point->site, list);
    if (!slot) {
      for (std::size_t n = 0; n < slots.size(); ++n) {
        if (slots[n] != points[n]->slot) continue;
        TRY(displaced_.slot_for_list(slots[n], points[n]->site, std::nullopt));
      }
      return tl::make_unexpected(slot.error());
    }
    slots.push_back(*slot);
  }
  for (std::size_t n = 0; n < slots.size(); ++n) {
    if (slots[n] == points[n]->slot) continue;
    TRY(shim_.add_entry(points[n]->address(), slots[n]));
    points[n]->slot = slots[n];
  }
  return {};
}

std::optional<std::uint8_t> TrapPointStore::recording_at(GuestVirt address) const {
  const auto id = index_.find(address);
  return id ? points_[*id].recording : std::nullopt;
}

std::size_t TrapPointStore::count_jumping() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      standing_, [this](Id id) { return points_[id].stage == Stage::Jumping; }));
}

std::size_t TrapPointStore::count_recording() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      standing_, [this](Id id) { return points_[id].recording.has_value(); }));
}

/// By copies of the addresses: to look each up again and again takes long for all of a kernel.
void TrapPointStore::sort_by_address(std::vector<Id>& ids) const {
  std::vector<std::pair<GuestVirt, Id>> sorted;
  sorted.reserve(ids.size());
  for (const Id id : ids) sorted.emplace_back(points_[id].address(), id);
  std::ranges::sort(sorted);
  std::ranges::transform(sorted, ids.begin(), [](const auto& one) { return one.second; });
}

void TrapPointStore::set_jump(Id id, const Jump* jump) {
  points_[id].jump = jump;
  points_[id].jump_is_known = true;
}

Result<void> TrapPointStore::enter_table(std::span<const Id> ids) {
  std::vector<GuestVirt> entering;
  for (const Id id : ids) {
    if (!points_[id].is_in_table) entering.push_back(points_[id].address());
  }
  if (entering.empty()) return {};
  if (auto enabled = shim_.enable_entries(entering); !enabled) {
    for (const GuestVirt address : entering) shim_.disable_entry(address);
    return enabled;
  }
  for (const Id id : ids) points_[id].is_in_table = true;
  return {};
}

void TrapPointStore::leave_table(TrapPoint& point) {
  if (std::exchange(point.is_in_table, false)) shim_.disable_entry(point.address());
}

void TrapPointStore::mark_standing(std::span<const Id> ids, std::span<const Stage> stages) {
  for (std::size_t n = 0; n < ids.size(); ++n) points_[ids[n]].stage = stages[n];
  const auto before = static_cast<std::ptrdiff_t>(standing_.size());
  standing_.insert(standing_.end(), ids.begin(), ids.end());
  std::ranges::inplace_merge(standing_, standing_.begin() + before, {},
                             [this](Id id) { return points_[id].address(); });
}

void TrapPointStore::mark_narrowed(std::span<const Id> ids) {
  for (const Id id : ids) points_[id].stage = Stage::Armed;
}

void TrapPointStore::retire(const Which& restored) {
  std::erase_if(standing_, [&](Id id) {
    const bool gone = restored(points_[id]);
    if (gone) points_[id].stage = Stage::Retired;
    return gone;
  });
}

void TrapPointStore::park(const Which& wanted) {
  for (TrapPoint& point : points_) {
    const bool stands = point.stage != Stage::Retired && point.stage != Stage::Prepared;
    if (stands || !wanted(point)) continue;
    leave_table(point);
    point.stage = Stage::Parked;
  }
}

void TrapPointStore::park_unused() {
  park([](const TrapPoint& point) { return point.users == 0; });
}

void TrapPointStore::park_all() {
  park([](const TrapPoint&) { return true; });
}

void TrapPointStore::drop(TrapPoint& point) {
  point.stage = Stage::Dropped;
  leave_table(point);
  dropped_.push_back(point.address());
}

void TrapPointStore::drop_standing(std::span<const Id> ids) {
  for (const Id id : ids) drop(points_[id]);
  forget_dropped();
}

void TrapPointStore::drop_in(const guest_linux::Kernel::AddressRange& range) {
  for (TrapPoint& point : points_) {
    if (!range.contains(point.address()) || point.stage == Stage::Dropped) continue;
    if (TrapPoint::is_standing(point.stage)) dropped_.push_back(point.address());
    point.stage = Stage::Dropped;
    leave_table(point);
  }
  forget_dropped();
}

void TrapPointStore::forget_dropped() {
  std::erase_if(standing_, [this](Id id) { return points_[id].stage == Stage::Dropped; });
}

std::vector<GuestVirt> TrapPointStore::take_dropped() {
  return std::exchange(dropped_, {});
}

}  // namespace ringside::providers
