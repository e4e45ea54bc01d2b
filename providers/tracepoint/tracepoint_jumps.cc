// Jumps in an int3's stead: which may stand, where they lead, and who is in the way.
#include <fmt/format.h>

#include <algorithm>

#include "providers/tracepoint/code_writes.h"
#include "providers/tracepoint/tracepoint_state.h"

namespace ringside::providers {

using guest_linux::Kernel;

void TracepointTable::use_jumps(FindStanding find, IsInside is_inside) {
  state_->find_standing = std::move(find);
  state_->is_inside = std::move(is_inside);
}

void TracepointTable::prepare_jumps() {
  State& s = *state_;
  if (!s.find_standing) return;
  const std::lock_guard lock(s.lock);
  s.runs.forget();
  for (State::Point& point : s.points) {
    if (!point.is_coming()) continue;
    if (!std::exchange(point.jump_is_known, true)) s.prepare_jump(point);
    if (point.jump != State::kNoJump) s.leave_table(point);
  }
}

void TracepointTable::State::prepare_jump(Point& point) {
  const std::uint32_t before = std::exchange(point.jump, kNoJump);
  const auto run = runs.find(point.site);
  if (!run) return;
  if (before != kNoJump && std::ranges::equal(jumps[before].run.code(), run->code())) {
    point.jump = before;  // somebody may be in it: it is never another one's
    return;
  }
  if (const auto jump = displaced.make_record(point.address(), *run)) {
    point.jump = static_cast<std::uint32_t>(jumps.size());
    jumps.push_back(*jump);
  }
}

/// Nobody may stand there, or come back to it. Where a point lies in a jump's last byte, the byte
/// after that belongs to it: a trap of that point which the shim has not looked up yet has it on
/// its stack, and goes back to the point.
Kernel::AddressRange TracepointTable::State::kept_clear(const Point& point) const {
  Kernel::AddressRange range = jump_interior(point.address());
  if (index.find(range.end.wrapping_sub(1))) range.end = range.end.wrapping_add(1);
  return range;
}

/// Of a guest that sets more than so many hardware breakpoints no place becomes a jump any more.
constexpr std::size_t kMostInPlace = 4096;

/// Whether its jump displaces what begins at `at`; its own first byte is a jump, and is come by.
bool TracepointTable::State::displaces(const Point& point, GuestVirt at) const {
  return at != point.address() && at.is_in(point.address(), jumps[point.jump].run.code().size());
}

bool TracepointTable::State::displaces_breakpoint(const Point& point) const {
  return in_place.size() == kMostInPlace ||
         std::ranges::any_of(in_place, [&](GuestVirt at) { return displaces(point, at); });
}

void TracepointTable::State::note_in_place(GuestVirt at) {
  const bool known = std::ranges::find(in_place, at) != in_place.end();
  if (!known && in_place.size() < kMostInPlace) in_place.push_back(at);
}

/// The one that stands and has displaced the instruction at `at`.
std::optional<std::uint32_t> TracepointTable::State::jump_over(GuestVirt at) const {
  for (std::uint64_t back = 1; back < kLongestRun; ++back) {
    const auto id = index.find(at.wrapping_sub(back));
    if (!id || points[*id].stage != Stage::Jumping) continue;
    return displaces(points[*id], at) ? id : std::nullopt;
  }
  return std::nullopt;
}

bool TracepointTable::has_displaced(GuestVirt at) const {
  const std::lock_guard lock(state_->lock);
  return state_->jump_over(at).has_value();
}

Result<void> TracepointTable::keep_in_place(vmm::PausedMachine& machine, GuestVirt at) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  s.note_in_place(at);
  const auto jump = s.jump_over(at);
  if (!jump) return {};
  TRY(s.shim.check_mapped(machine));
  return s.narrow(machine, {*jump});
}

/// Only as an int3 can it share its five bytes with others.
bool TracepointTable::State::may_jump(const Point& point) const {
  if (point.jump == kNoJump || !standing || displaces_breakpoint(point)) return false;
  const Kernel::AddressRange interior = jump_interior(point.address());
  const Kernel::AddressRange clear = kept_clear(point);
  for (GuestVirt at = interior.begin; at < interior.end; at = at.wrapping_add(1)) {
    const auto id = index.find(at);
    if (id && (points[*id].users != 0 || is_standing(points[*id].stage))) return false;
  }
  const auto code = jumps[point.jump].run.code();
  return !text.has_kprobe(point.address(), code.size()) && has_bytes(live, point.address(), code) &&
         std::ranges::none_of(*standing, [&](GuestVirt place) { return clear.contains(place); });
}

/// Jumps that would be written over where these are armed: they have to be int3s.
std::vector<std::uint32_t> TracepointTable::State::jumps_in_the_way() const {
  std::vector<std::uint32_t> found;
  if (count_jumping() == 0) return found;
  for (const Point& point : points) {
    if (!point.is_coming()) continue;
    for (std::uint64_t back = 1; back < SHIM_JUMP_BYTES; ++back) {
      const auto id = index.find(point.address().wrapping_add(-back));
      if (id && points[*id].stage == Stage::Jumping) found.push_back(*id);
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Result<void> TracepointTable::find_standing(vmm::PausedMachine& machine) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  s.standing.reset();
  if (!s.find_standing) return {};
  TRY(s.narrow(machine, s.jumps_in_the_way()));
  std::vector<Kernel::AddressRange> ranges;
  for (const State::Point& point : s.points) {
    if (point.is_coming() && point.jump != State::kNoJump) {
      ranges.push_back(s.kept_clear(point));
    }
  }
  if (ranges.empty() && s.draining.empty()) return {};
  for (const GuestVirt at : s.hardware.find(s.live, s.kernel.percpu_bases())) s.note_in_place(at);
  ranges.push_back(s.displaced.range());
  std::ranges::sort(ranges, {}, &Kernel::AddressRange::begin);
  auto standing = TRY(s.find_standing(machine, ranges));
  TRY(s.check_drained(machine, standing));
  const auto back = TRY(s.displaced.ways_back(s.live, standing));
  standing.insert(standing.end(), back.begin(), back.end());
  s.standing = std::move(standing);
  return {};
}

/// A vCPU that is inside would pass by what is armed there, though its jump may yet fire.
Result<void> TracepointTable::State::check_drained(vmm::PausedMachine& machine,
                                                   std::span<const GuestVirt> standing) {
  for (const Kernel::AddressRange& record : draining) {
    const auto leads_there = [&record](GuestVirt at) { return record.contains(at); };
    // Most words there are left over from calls that are long over: every firing leaves some.
    if (std::ranges::any_of(standing, leads_there) && TRY(is_inside(machine, record))) {
      return fail(ErrorCode::Invalid,
                  fmt::format("somebody is at {:#x}, in code that a probe has displaced",
                              record.begin.raw()));
    }
  }
  return {};
}

/// Makes int3s of these jumps, with the text that they covered after them. Whoever is in a record
/// goes on after it. Those that the guest has changed are dropped.
Result<void> TracepointTable::State::narrow(vmm::PausedMachine& machine,
                                            std::vector<std::uint32_t> ids) {
  if (ids.empty()) return {};
  drop_changed(changed);
  std::erase_if(ids, [this](std::uint32_t id) { return points[id].stage != Stage::Jumping; });
  TRY(enter_table(ids));
  std::vector<vmm::VirtualCodeWrite> writes;
  for (const std::uint32_t id : ids) {
    const Point& point = points[id];
    vmm::JumpBytes code{arch::kBreakpoint};
    std::ranges::copy(jumps[point.jump].replaced().subspan(1), code.begin() + 1);
    append_code(writes, point.address(), code);
  }
  TRY(write_traps(machine, writes));
  for (const std::uint32_t id : ids) {
    points[id].stage = Stage::Armed;
    draining.push_back(jumps[points[id].jump].record);
  }
  return {};
}

}  // namespace ringside::providers
