// In this file, top to bottom: the trap point where faults are searched, what may be armed,
// writing, restoring, what the guest has changed, stepping aside for its kprobes.
#include "providers/trap_points/armed_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "providers/trap_points/code_writes.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {

Result<void> FaultSearchPoint::ensure() {
  if (id_ && store_[*id_].stage != TrapPoint::Stage::Dropped) return {};
  id_ = TRY(store_.add(TRY(text_.search_site())));
  return {};
}

bool FaultSearchPoint::is_armed() const {
  return id_ && store_[*id_].stage == TrapPoint::Stage::Armed;
}

bool FaultSearchPoint::is_there_with(std::span<const TrapPointStore::Id> arming) const {
  return is_armed() || (id_ && std::ranges::find(arming, *id_) != arming.end());
}

using Stage = TrapPoint::Stage;

ArmedText::ArmedText(vmm::Machine& machine, const guest_linux::Kernel& kernel, const Parts& parts)
    : parts_(parts), table_(kernel.table()), reader_(machine.memory(), kernel.table()) {}

std::vector<ArmedText::Id> ArmedText::choose() {
  TrapPointStore& store = parts_.store;
  const ProbedText& text = parts_.text;
  std::vector<Id> arming;
  ExaminedText function;  // of the point before: one look serves all points of a function
  bool unchanged = false;
  for (Id id = 0; id < store.size(); ++id) {
    const TrapPoint& point = store[id];
    if (!point.is_coming()) continue;
    if (point.site.text() != function) {
      function = point.site.text();
      unchanged = text.is_unchanged(function);
    }
    if (!unchanged || !point.is_original(text.live()) ||
        text.original().has_kprobe(point.address(), point.site.instruction().size())) {
      store.drop(id);
      continue;
    }
    arming.push_back(id);
  }
  const bool mended = parts_.search.is_there_with(arming);
  std::erase_if(arming, [&](Id id) {
    const bool alone = store[id].site.may_fault() && !mended;
    if (alone) store.drop(id);
    return alone;
  });
  return arming;
}

Result<void> ArmedText::arm(vmm::PausedMachine& machine, std::vector<Id> arming,
                            const Which& may_jump) {
  TrapPointStore& store = parts_.store;
  store.sort_by_address(arming);
  std::vector<Stage> stages;
  std::vector<Id> entering;
  for (const Id id : arming) {
    const bool jumps = may_jump(store[id]);
    if (jumps) {
      store.leave_table(id);
    } else {
      entering.push_back(id);
    }
    stages.push_back(jumps ? Stage::Jumping : Stage::Armed);
  }
  TRY(store.enter_table(entering));
  store.mark_standing(arming, stages);
  std::vector<vmm::VirtualCodeWrite> writes;
  for (const Id id : arming) append_code(writes, store[id].address(), store[id].code());
  if (auto written = write(machine, writes); !written) {
    // Those that were not written may be armed in another pause.
    reader_.forget();
    store.retire([&](const TrapPoint& point) {
      const bool is_new = std::ranges::binary_search(
          arming, point.address(), {}, [&store](Id id) { return store[id].address(); });
      return is_new && !stands(point);
    });
    return written;
  }
  for (const Id id : arming) {
    if (stands(store[id])) continue;
    return fail(ErrorCode::MachineGone,
                fmt::format("the machine says that it wrote a breakpoint at {:#x}, and there is "
                            "none; start it anew, and do not trust it",
                            store[id].address().raw()));
  }
  return {};
}

Result<void> ArmedText::write(vmm::PausedMachine& machine,
                              std::span<const vmm::VirtualCodeWrite> writes) {
  parts_.shim.note_arming();
  TRY(machine.write_code(table_, writes));
  reader_.forget();
  return {};
}

Result<void> ArmedText::restore(vmm::PausedMachine& machine, const Which& wanted) {
  TrapPointStore& store = parts_.store;
  TRY(parts_.shim.check_mapped(machine));
  drop_changed();
  std::vector<vmm::VirtualCodeWrite> writes;
  for (const Id id : store.standing()) {
    const TrapPoint& point = store[id];
    if (wanted(point)) append_code(writes, point.address(), point.replaced(point.stage));
  }
  auto written = writes.empty() ? Result<void>() : machine.write_code(table_, writes);
  reader_.forget();
  // By what lies there, not by the machine's word: the shim has to stay for any byte that is left.
  std::size_t left = 0;
  store.retire([&](const TrapPoint& point) {
    if (!wanted(point)) return false;
    const bool restored = !stands(point);
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

bool ArmedText::stands(const TrapPoint& point) const {
  return has_bytes(reader_, point.address(), point.code());
}

/// Whether a kprobe that we were not asked to make way for has copied one of those that are jumps,
/// and runs it elsewhere.
bool ArmedText::are_copied(std::span<const Id> ids) const {
  const TrapPointStore& store = parts_.store;
  std::vector<GuestVirt> places;
  for (const Id id : ids) {
    if (store[id].stage != Stage::Jumping) continue;
    const auto first = load<std::byte>(reader_, store[id].address());
    const bool may_be = first && (*first == arch::kBreakpoint || *first == arch::kNearJump);
    if (may_be) places.push_back(store[id].address());
  }
  if (places.empty()) return false;
  // Where a module has gone anything may lie by now.
  const auto kprobes = parts_.text.kprobe_table().read(reader_);
  return !kprobes || std::ranges::any_of(places, [&kprobes](GuestVirt place) {
    return guest_linux::has_kprobe(*kprobes, place, 1);
  });
}

void ArmedText::drop_changed() {
  reader_.forget();
  std::vector<Id> changed;
  // In the order of addresses, so that the reader's kept translations serve whole pages.
  std::ranges::copy_if(parts_.store.standing(), std::back_inserter(changed),
                       [this](Id id) { return !stands(parts_.store[id]); });
  // Afterwards: a machine that ends meanwhile cannot be read any more, and has changed nothing.
  if (changed.empty() || parts_.shim.state() != vmm::ShimState::There) return;
  if (are_copied(changed)) is_copied_by_kprobe_ = true;
  parts_.store.drop_standing(changed);
}

Result<bool> ArmedText::step_aside(vmm::PausedMachine& machine, GuestVirt at) {
  const TrapPointStore& store = parts_.store;
  // Where faults are searched our int3 stays: the guest's kernel refuses its kprobe then.
  const auto reaches = [this, at](const TrapPoint& point) {
    return point.is_in_function_of(at) && !parts_.search.is_at(point);
  };
  std::vector<Id> leaving;
  for (const Id id : store.standing()) {
    if (reaches(store[id])) leaving.push_back(id);
  }
  if (leaving.empty()) return false;
  auto done = restore(machine, reaches);
  for (const Id id : leaving) {
    if (store[id].stage == Stage::Retired) stepped_aside_.push_back(id);
  }
  TRY(done);
  return true;
}

Result<bool> ArmedText::step_back(vmm::PausedMachine& machine) {
  if (stepped_aside_.empty()) return true;
  TRY(parts_.shim.check_mapped(machine));
  reader_.forget();
  if (parts_.text.kprobe_table().is_changing(reader_)) return false;
  TRY(arm_again(machine, std::exchange(stepped_aside_, {})));
  return true;
}

/// Those that are not armed and have users; as int3s.
Result<void> ArmedText::arm_again(vmm::PausedMachine& machine, std::span<const Id> ids) {
  TrapPointStore& store = parts_.store;
  const auto kprobes = TRY(parts_.text.kprobe_table().read(reader_));
  std::vector<Id> arming;
  for (const Id id : ids) {
    const TrapPoint& point = store[id];
    if (point.users == 0 || point.stage != Stage::Retired) continue;
    const std::size_t length = point.site.instruction().size();
    if (point.is_original(reader_) && !guest_linux::has_kprobe(kprobes, point.address(), length)) {
      arming.push_back(id);
    } else {
      store.drop(id);
    }
  }
  return arm(machine, std::move(arming), [](const TrapPoint&) { return false; });
}

Result<void> ArmedText::rest(vmm::PausedMachine& machine, GuestVirt at) {
  const auto id = parts_.store.find(at);
  if (!id || parts_.store[*id].users != 1 || !TrapPoint::is_standing(parts_.store[*id].stage)) {
    return {};
  }
  return restore(machine, [at](const TrapPoint& point) { return point.address() == at; });
}

Result<bool> ArmedText::wake(vmm::PausedMachine& machine, GuestVirt at) {
  if (has_ended_) return false;
  const auto id = parts_.store.find(at);
  if (!id || parts_.store[*id].stage != Stage::Retired) return true;
  TRY(parts_.shim.check_mapped(machine));
  reader_.forget();
  using Changes = guest_linux::KprobeTable::Changes;
  if (parts_.text.kprobe_table().is_changing(reader_, Changes::OfKprobes)) return false;
  TRY(arm_again(machine, {&*id, 1}));
  return true;
}

}  // namespace ringside::providers
