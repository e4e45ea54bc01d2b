// In this file, top to bottom: hardware breakpoints, records, what a jump displaces, which may
// stand, who is in the way.
#include "providers/trap_points/jump_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "providers/trap_points/code_writes.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {

void KeptInPlace::add(GuestVirt at) {
  const bool known = std::ranges::find(places_, at) != places_.end();
  if (!known && places_.size() < kMostInPlace) places_.push_back(at);
}

void KeptInPlace::look(const GuestReader& live) {
  for (const GuestVirt at : hardware_.find(live, kernel_.percpu_bases())) add(at);
}

bool KeptInPlace::forbids(const TrapPoint& point) const {
  return places_.size() == kMostInPlace ||
         std::ranges::any_of(places_, [&](GuestVirt at) { return point.displaces(at); });
}

using Stage = TrapPoint::Stage;

JumpPlanner::JumpPlanner(const guest_linux::Kernel& kernel, const Parts& parts)
    : parts_(parts),
      runs_(parts.text.original(), kernel, parts.text.examiner()),
      in_place_(kernel) {}

void JumpPlanner::use(FindStanding find, IsInside is_inside) {
  find_standing_ = std::move(find);
  is_inside_ = std::move(is_inside);
}

void JumpPlanner::prepare() {
  if (!find_standing_) return;
  TrapPointStore& store = parts_.store;
  runs_.forget();
  for (Id id = 0; id < store.size(); ++id) {
    const TrapPoint& point = store[id];
    if (!point.is_coming()) continue;
    if (!point.jump_is_known) store.set_jump(id, jump_for(point));
    if (point.jump != nullptr) store.leave_table(id);
  }
}

/// None where it has to be an int3.
const Jump* JumpPlanner::jump_for(const TrapPoint& point) {
  const Jump* const before = point.jump;
  const auto run = runs_.find(point.site);
  if (!run) return nullptr;
  // Somebody may be in that one: it is never another one's.
  if (before != nullptr && before->recording == point.recording &&
      std::ranges::equal(before->run.code(), run->code())) {
    return before;
  }
  const auto jump = parts_.displaced.make_record(point.address(), *run, point.recording);
  return jump ? &jumps_.emplace_back(*jump) : nullptr;
}

/// Nobody may stand there, or come back to it. Where a point lies in a jump's last byte, the byte
/// after that belongs to it: a trap of that point which the shim has not looked up yet has it on
/// its stack, and goes back to the point.
JumpPlanner::AddressRange JumpPlanner::kept_clear(const TrapPoint& point) const {
  AddressRange range = jump_interior(point.address());
  if (parts_.store.find(range.end.wrapping_sub(1))) range.end = range.end.wrapping_add(1);
  return range;
}

/// The one that stands and has displaced the instruction at `at`.
std::optional<JumpPlanner::Id> JumpPlanner::jump_over(GuestVirt at) const {
  const TrapPointStore& store = parts_.store;
  for (std::uint64_t back = 1; back < kLongestRun; ++back) {
    const auto id = store.find(at.wrapping_sub(back));
    if (!id || store[*id].stage != Stage::Jumping) continue;
    return store[*id].displaces(at) ? id : std::nullopt;
  }
  return std::nullopt;
}

Result<void> JumpPlanner::keep_in_place(vmm::PausedMachine& machine, GuestVirt at) {
  in_place_.add(at);
  const auto jump = jump_over(at);
  if (!jump) return {};
  TRY(parts_.shim.check_mapped(machine));
  return narrow(machine, {*jump});
}

bool JumpPlanner::may_jump(const TrapPoint& point) const {
  if (point.jump == nullptr || !standing_ || in_place_.forbids(point)) return false;
  const TrapPointStore& store = parts_.store;
  const AddressRange interior = jump_interior(point.address());
  const AddressRange clear = kept_clear(point);
  for (GuestVirt at = interior.begin; at < interior.end; at = at.wrapping_add(1)) {
    const auto id = store.find(at);
    if (id && (store[*id].users != 0 || TrapPoint::is_standing(store[*id].stage))) return false;
  }
  const auto code = point.jump->run.code();
  return !parts_.text.original().has_kprobe(point.address(), code.size()) &&
         has_bytes(parts_.text.live(), point.address(), code) &&
         std::ranges::none_of(*standing_, [&](GuestVirt place) { return clear.contains(place); });
}

void JumpPlanner::end_pause() {
  standing_.reset();
  draining_.clear();
}

/// Jumps that would be written over where these are armed: they have to be int3s.
std::vector<JumpPlanner::Id> JumpPlanner::in_the_way() const {
  const TrapPointStore& store = parts_.store;
  if (store.count_jumping() == 0) return {};
  std::set<Id> found;
  for (const TrapPoint& point : store.all()) {
    if (!point.is_coming()) continue;
    for (std::uint64_t back = 1; back < SHIM_JUMP_BYTES; ++back) {
      const auto id = store.find(point.address().wrapping_add(-back));
      if (id && store[*id].stage == Stage::Jumping) found.insert(*id);
    }
  }
  return {found.begin(), found.end()};
}

Result<void> JumpPlanner::make_way(vmm::PausedMachine& machine) {
  return narrow(machine, in_the_way());
}

Result<void> JumpPlanner::find_standing(vmm::PausedMachine& machine) {
  standing_.reset();
  if (!find_standing_) return {};
  TRY(make_way(machine));
  std::vector<AddressRange> ranges;
  for (const TrapPoint& point : parts_.store.all()) {
    if (point.is_coming() && point.jump != nullptr) ranges.push_back(kept_clear(point));
  }
  if (ranges.empty() && draining_.empty()) return {};
  in_place_.look(parts_.text.live());
  ranges.push_back(parts_.displaced.range());
  std::ranges::sort(ranges, {}, &AddressRange::begin);
  auto standing = TRY(find_standing_(machine, ranges));
  TRY(check_drained(machine, standing));
  const auto back = TRY(parts_.displaced.ways_back(parts_.text.live(), standing));
  standing.insert(standing.end(), back.begin(), back.end());
  standing_ = std::move(standing);
  return {};
}

/// A vCPU that is inside would pass by what is armed there, though its jump may yet fire.
Result<void> JumpPlanner::check_drained(vmm::PausedMachine& machine,
                                        std::span<const GuestVirt> standing) {
  for (const AddressRange& record : draining_) {
    const auto leads_there = [&record](GuestVirt at) { return record.contains(at); };
    // Most words there are left over from calls that are long over: every firing leaves some.
    if (std::ranges::any_of(standing, leads_there) && TRY(is_inside_(machine, record))) {
      return fail(ErrorCode::Invalid,
                  fmt::format("somebody is at {:#x}, in code that a probe has displaced",
                              record.begin.raw()));
    }
  }
  return {};
}

/// Makes int3s of these jumps, with the text that they covered after them. Whoever is in a record
/// goes on after it. Those that the guest has changed are dropped.
Result<void> JumpPlanner::narrow(vmm::PausedMachine& machine, std::vector<Id> ids) {
  if (ids.empty()) return {};
  TrapPointStore& store = parts_.store;
  parts_.armed.drop_changed();
  std::erase_if(ids, [&store](Id id) { return store[id].stage != Stage::Jumping; });
  TRY(store.enter_table(ids));
  std::vector<vmm::VirtualCodeWrite> writes;
  for (const Id id : ids) {
    const TrapPoint& point = store[id];
    vmm::JumpBytes code{arch::kBreakpoint};
    std::ranges::copy(point.jump->replaced().subspan(1), code.begin() + 1);
    append_code(writes, point.address(), code);
  }
  TRY(parts_.armed.write(machine, writes));
  store.mark_narrowed(ids);
  for (const Id id : ids) draining_.push_back(store[id].jump->record);
  return {};
}

}  // namespace ringside::providers
