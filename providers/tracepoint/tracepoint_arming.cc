// Arming and disarming, stepping aside for the guest, and what the guest has changed.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "providers/tracepoint/code_writes.h"
#include "providers/tracepoint/tracepoint_state.h"

namespace ringside::providers {

using guest_linux::Kernel;

/// Those that are used and not armed, less those that cannot be, which are dropped.
std::vector<std::uint32_t> TracepointTable::State::choose_to_arm() {
  std::vector<std::uint32_t> arming;
  ExaminedText function;  // of the point before: one look serves all points of a function
  bool unchanged = false;
  for (std::uint32_t id = 0; id < points.size(); ++id) {
    Point& point = points[id];
    if (!point.is_coming()) continue;
    if (point.site.text() != function) {
      function = point.site.text();
      unchanged = examiner.is_unchanged(function);
    }
    if (!unchanged || !is_unchanged(live, point.site) ||
        text.has_kprobe(point.address(), point.site.instruction().size())) {
      drop(point, changed);
      continue;
    }
    arming.push_back(id);
  }
  const bool mended = search && (points[*search].stage == Stage::Armed ||
                                 std::ranges::find(arming, *search) != arming.end());
  std::erase_if(arming, [&](std::uint32_t id) {
    const bool alone = points[id].site.may_fault() && !mended;
    if (alone) drop(points[id], changed);
    return alone;
  });
  return arming;
}

/// From now on int3s there are ours. Not before: until then a kprobe of the guest's own, which we
/// have not seen yet, has its hits.
Result<void> TracepointTable::State::enter_table(std::span<const std::uint32_t> ids) {
  std::vector<GuestVirt> entering;
  for (const std::uint32_t id : ids) {
    if (!points[id].is_in_table) entering.push_back(points[id].address());
  }
  if (entering.empty()) return {};
  TRY(shim.enable_entries(entering));
  for (const std::uint32_t id : ids) points[id].is_in_table = true;
  return {};
}

/// Int3s and jumps, of which the entries are as they have to be.
Result<void> TracepointTable::State::write_traps(vmm::PausedMachine& machine,
                                                 std::span<const vmm::VirtualCodeWrite> writes) {
  shim.note_arming();
  TRY(machine.write_code(table, writes));
  watched.forget();
  return {};
}

/// By copies of the addresses: to look each up again and again takes long for all of a kernel.
void TracepointTable::State::sort_by_address(std::vector<std::uint32_t>& ids) const {
  std::vector<std::pair<GuestVirt, std::uint32_t>> sorted;
  sorted.reserve(ids.size());
  for (const std::uint32_t id : ids) sorted.emplace_back(points[id].address(), id);
  std::ranges::sort(sorted);
  std::ranges::transform(sorted, ids.begin(), [](const auto& one) { return one.second; });
}

Result<void> TracepointTable::State::write_breakpoints(vmm::PausedMachine& machine,
                                                       std::vector<std::uint32_t> arming,
                                                       TrapForm form) {
  const auto address_of = [this](std::uint32_t id) { return points[id].address(); };
  sort_by_address(arming);
  std::vector<Stage> stages;
  std::vector<std::uint32_t> entering;
  for (const std::uint32_t id : arming) {
    Point& point = points[id];
    const bool jumps = form == TrapForm::JumpsWhereTheyMay && may_jump(point);
    if (jumps) {
      leave_table(point);
    } else {
      entering.push_back(id);
    }
    stages.push_back(jumps ? Stage::Jumping : Stage::Armed);
  }
  TRY(enter_table(entering));
  std::vector<vmm::VirtualCodeWrite> writes;
  for (std::size_t n = 0; n < arming.size(); ++n) {
    Point& point = points[arming[n]];
    point.stage = stages[n];
    append_code(writes, point.address(), code_of(point));
  }
  const auto before = static_cast<std::ptrdiff_t>(by_address.size());
  by_address.insert(by_address.end(), arming.begin(), arming.end());
  std::ranges::inplace_merge(by_address, by_address.begin() + before, {}, address_of);
  TRY(write_traps(machine, writes));
  for (const std::uint32_t id : arming) {
    if (stands(points[id])) continue;
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it wrote a breakpoint at {:#x}, and there is "
                            "none; start it anew, and do not trust it",
                            address_of(id).raw()));
  }
  return {};
}

Result<void> TracepointTable::State::arm(vmm::PausedMachine& machine) {
  TRY(shim.check_mapped(machine));
  TRY(text.trouble());
  TRY(narrow(machine, jumps_in_the_way()));
  return write_breakpoints(machine, choose_to_arm(), TrapForm::JumpsWhereTheyMay);
}

Result<void> TracepointTable::arm(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  look_again();
  auto done = state_->arm(machine);
  state_->standing.reset();  // it was good for this pause
  state_->draining.clear();
  return done;
}

bool TracepointTable::stands_in_function(GuestVirt at) const {
  const std::lock_guard lock(state_->lock);
  return std::ranges::any_of(state_->by_address, [&](std::uint32_t id) {
    return State::is_in_function_of(at, state_->points[id].site);
  });
}

Result<bool> TracepointTable::step_aside(vmm::PausedMachine& machine, GuestVirt at) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  // Where faults are searched our int3 stays: the guest's kernel refuses its kprobe then.
  const auto reaches = [&s, at](const State::Point& point) {
    return State::is_in_function_of(at, point.site) && !s.is_search(point);
  };
  std::vector<std::uint32_t> leaving;
  for (const std::uint32_t id : s.by_address) {
    if (reaches(s.points[id])) leaving.push_back(id);
  }
  if (leaving.empty()) return false;
  auto done = s.restore(machine, reaches);
  for (const std::uint32_t id : leaving) {
    if (s.points[id].stage == State::Stage::Retired) s.aside.push_back(id);
  }
  TRY(done);
  return true;
}

Result<bool> TracepointTable::step_back(vmm::PausedMachine& machine) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  if (s.aside.empty()) return true;
  TRY(s.shim.check_mapped(machine));
  s.watched.forget();
  const guest_linux::KprobeTable& table = s.text.kprobe_table();
  if (table.is_changing(s.watched)) return false;
  const auto kprobes = TRY(table.read(s.watched));
  std::vector<std::uint32_t> arming;
  for (const std::uint32_t id : std::exchange(s.aside, {})) {
    State::Point& point = s.points[id];
    if (point.users == 0 || point.stage != State::Stage::Retired) continue;
    const ProbeSite& site = point.site;
    if (State::is_unchanged(s.watched, site) &&
        !guest_linux::has_kprobe(kprobes, site.address(), site.instruction().size())) {
      arming.push_back(id);
    } else {
      s.drop(point, s.changed);
    }
  }
  TRY(s.write_breakpoints(machine, std::move(arming), TrapForm::Breakpoints));
  return true;
}

bool TracepointTable::is_text_changing(vmm::PausedMachine&, Changes changes) const {
  state_->live.forget();
  return state_->text.kprobe_table().is_changing(state_->live, changes);
}

void TracepointTable::drop_in(const guest_linux::Kernel::AddressRange& range) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  for (State::Point& point : s.points) {
    if (!range.contains(point.address()) || point.stage == State::Stage::Dropped) continue;
    if (State::is_standing(point.stage)) s.changed.push_back(point.address());
    point.stage = State::Stage::Dropped;
    s.leave_table(point);
  }
  std::erase_if(s.by_address,
                [&s](std::uint32_t id) { return s.points[id].stage == State::Stage::Dropped; });
}

void TracepointTable::look_again() {
  if (state_->text.look_again()) ++state_->generation;
  state_->examiner.forget();
  state_->searching.reset();
}

std::uint64_t TracepointTable::generation() const {
  return state_->generation;
}

/// Restores the armed ones for which wanted(point).
template <class Wanted>
Result<void> TracepointTable::State::restore(vmm::PausedMachine& machine, const Wanted& wanted) {
  TRY(shim.check_mapped(machine));
  drop_changed(changed);
  std::vector<vmm::VirtualCodeWrite> writes;
  for (const std::uint32_t id : by_address) {
    const Point& point = points[id];
    if (!wanted(point)) continue;
    append_code(writes, point.address(), replaced_by(point, point.stage));
  }
  auto written = writes.empty() ? Result<void>() : machine.write_code(table, writes);
  watched.forget();
  // By what lies there, not by the machine's word: the shim has to stay for any byte that is left.
  std::size_t left = 0;
  std::erase_if(by_address, [&](std::uint32_t id) {
    Point& point = points[id];
    if (!wanted(point)) return false;
    const bool restored = !stands(point);
    if (restored) point.stage = Stage::Retired;
    left += restored ? 0 : 1;
    return restored;
  });
  if (written && left != 0) {
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it restored the guest's code, but {} "
                            "breakpoints are still there; the shim stays for them",
                            left));
  }
  return written;
}

Result<void> TracepointTable::disarm(vmm::PausedMachine& machine) {
  const State& s = *state_;
  const std::lock_guard lock(state_->lock);
  state_->aside.clear();
  return state_->restore(machine, [&s](const State::Point& point) { return !s.is_search(point); });
}

bool TracepointTable::searches_faults() const {
  const std::lock_guard lock(state_->lock);
  return state_->search && state_->points[*state_->search].stage == State::Stage::Armed;
}

Result<void> TracepointTable::disarm_fault_search(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->restore(machine, [](const State::Point&) { return true; });
}

Result<void> TracepointTable::disarm_unused(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->restore(machine, [](const State::Point& point) { return point.users == 0; });
}

template <class Wanted>
void TracepointTable::State::park(const Wanted& wanted) {
  for (Point& point : points) {
    const bool stands = point.stage != Stage::Retired && point.stage != Stage::Prepared;
    if (stands || !wanted(point)) continue;
    leave_table(point);
    point.stage = Stage::Parked;
  }
}

void TracepointTable::park_unused() {
  const std::lock_guard lock(state_->lock);
  state_->park([](const State::Point& point) { return point.users == 0; });
}

void TracepointTable::park_restored() {
  const std::lock_guard lock(state_->lock);
  state_->park([](const State::Point&) { return true; });
}

/// Whether a kprobe that we were not asked to make way for has copied one of those that are jumps,
/// and runs it elsewhere.
bool TracepointTable::State::are_copied(std::span<const std::uint32_t> ids) const {
  std::vector<GuestVirt> places;
  for (const std::uint32_t id : ids) {
    if (points[id].stage != Stage::Jumping) continue;
    const auto first = load<std::byte>(watched, points[id].address());
    const bool may_be = first && (*first == arch::kBreakpoint || *first == arch::kNearJump);
    if (may_be) places.push_back(points[id].address());
  }
  if (places.empty()) return false;
  // Where a module has gone anything may lie by now.
  const auto kprobes = text.kprobe_table().read(watched);
  return !kprobes || std::ranges::any_of(places, [&kprobes](GuestVirt place) {
    return guest_linux::has_kprobe(*kprobes, place, 1);
  });
}

void TracepointTable::State::drop_changed(std::vector<GuestVirt>& gone) {
  watched.forget();
  std::vector<std::uint32_t> changed;
  // In the order of addresses, so that the reader's kept translations serve whole pages.
  std::ranges::copy_if(by_address, std::back_inserter(changed),
                       [this](std::uint32_t id) { return !stands(points[id]); });
  // Afterwards: a machine that ends meanwhile cannot be read any more, and has changed nothing.
  if (changed.empty() || shim.state() != vmm::ShimState::There) return;
  if (are_copied(changed)) is_copied_by_kprobe = true;
  for (const std::uint32_t id : changed) drop(points[id], gone);
  std::erase_if(by_address,
                [this](std::uint32_t id) { return points[id].stage == Stage::Dropped; });
}

std::vector<GuestVirt> TracepointTable::drop_changed() {
  State& s = *state_;
  const std::unique_lock lock(s.lock, std::try_to_lock);
  if (!lock) return {};  // the thread that changes them looks, too
  std::vector<GuestVirt> gone = std::exchange(s.changed, {});
  s.drop_changed(gone);
  return gone;
}

}  // namespace ringside::providers
