#include "providers/tracepoint/points_aside.h"

#include <utility>

namespace ringside::providers {

using Stage = Tracepoint::Stage;

Result<bool> PointsAside::step_aside(vmm::PausedMachine& machine, GuestVirt at) {
  const TracepointStore& store = parts_.store;
  // Where faults are searched our int3 stays: the guest's kernel refuses its kprobe then.
  const auto reaches = [this, at](const Tracepoint& point) {
    return point.is_in_function_of(at) && !parts_.search.is_at(point);
  };
  std::vector<Id> leaving;
  for (const Id id : store.standing()) {
    if (reaches(store[id])) leaving.push_back(id);
  }
  if (leaving.empty()) return false;
  auto done = parts_.armed.restore(machine, reaches);
  for (const Id id : leaving) {
    if (store[id].stage == Stage::Retired) ids_.push_back(id);
  }
  TRY(done);
  return true;
}

Result<bool> PointsAside::step_back(vmm::PausedMachine& machine) {
  if (ids_.empty()) return true;
  TRY(parts_.shim.check_mapped(machine));
  TracepointStore& store = parts_.store;
  const auto& reader = parts_.armed.reader();
  reader.forget();
  if (parts_.kprobes.is_changing(reader)) return false;
  const auto kprobes = TRY(parts_.kprobes.read(reader));
  std::vector<Id> arming;
  for (const Id id : std::exchange(ids_, {})) {
    const Tracepoint& point = store[id];
    if (point.users == 0 || point.stage != Stage::Retired) continue;
    const std::size_t length = point.site.instruction().size();
    if (point.is_original(reader) && !guest_linux::has_kprobe(kprobes, point.address(), length)) {
      arming.push_back(id);
    } else {
      store.drop(id);
    }
  }
  TRY(parts_.armed.arm(machine, std::move(arming), [](const Tracepoint&) { return false; }));
  return true;
}

}  // namespace ringside::providers
