// The trap point table: takes its lock, and has its parts do the work.
#include "providers/trap_points/trap_point_table.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "providers/trap_points/armed_text.h"
#include "providers/trap_points/displaced_code.h"
#include "providers/trap_points/jump_planner.h"
#include "providers/trap_points/probed_text.h"
#include "providers/trap_points/trap_point_store.h"

namespace ringside::providers {

/// In the order in which they need each other.
struct TrapPointTable::State {
  State(vmm::Machine& of, vmm::TrapTable& with, guest_linux::Kernel& kernel);

  vmm::TrapTable& shim;
  std::mutex lock;  // of all that other threads look at; not of `text` and `displaced`
  TrapPointStore store;
  ProbedText text;
  DisplacedCode displaced;
  FaultSearchPoint search;
  ArmedText armed;
  JumpPlanner jumps;
};

TrapPointTable::State::State(vmm::Machine& of, vmm::TrapTable& with, guest_linux::Kernel& kernel)
    : shim(with),
      store(with, displaced),
      text(of.memory(), store, kernel),
      displaced(with, {text.kexec_site(), text.fault_search()}),
      search(text, store),
      armed(of, kernel, {with, text, store, search}),
      jumps(kernel, {with, text, store, displaced, armed}) {}

TrapPointTable::TrapPointTable(vmm::Machine& machine, vmm::TrapTable& shim,
                               guest_linux::Kernel& kernel)
    : state_(std::make_unique<State>(machine, shim, kernel)) {}

TrapPointTable::~TrapPointTable() = default;

const GuestReader& TrapPointTable::original_text() const {
  return state_->text.original();
}

Result<ProbeSite> TrapPointTable::examine(GuestVirt address, SitePolicy policy) {
  return state_->text.examine(address, policy);
}

void TrapPointTable::look_again() {
  state_->text.look_again();
}

std::uint64_t TrapPointTable::generation() const {
  return state_->text.generation();
}

bool TrapPointTable::is_text_changing(vmm::PausedMachine&, Changes changes) const {
  return state_->text.is_changing(changes);
}

const guest_linux::KprobeTable& TrapPointTable::kprobe_table() const {
  return state_->text.kprobe_table();
}

const Result<std::optional<GuestVirt>>& TrapPointTable::kexec_site() const {
  return state_->text.kexec_site();
}

std::span<const Slot> TrapPointTable::slots() const {
  return state_->displaced.slots();
}

Result<TrapPointId> TrapPointTable::add(const ProbeSite& site) {
  const std::lock_guard lock(state_->lock);
  if (site.may_fault()) TRY(state_->search.ensure());
  return TrapPointId{TRY(state_->store.add(site))};
}

void TrapPointTable::release(GuestVirt address) {
  const std::lock_guard lock(state_->lock);
  state_->store.release(address);
}

Result<void> TrapPointTable::record_at(std::span<const GuestVirt> addresses, std::uint8_t list) {
  const std::lock_guard lock(state_->lock);
  return state_->store.record_at(addresses, list);
}

std::optional<std::uint8_t> TrapPointTable::recording_at(GuestVirt address) const {
  const std::lock_guard lock(state_->lock);
  return state_->store.recording_at(address);
}

bool TrapPointTable::is_dropped(GuestVirt address) const {
  const TrapPointStore& store = state_->store;
  const auto id = store.find(address);
  return id && store[*id].stage == TrapPoint::Stage::Dropped;
}

std::size_t TrapPointTable::size() const {
  return state_->store.size();
}

bool TrapPointTable::is_armed(TrapPointId id) const {
  const TrapPointStore& store = state_->store;
  return id.value < store.size() && TrapPoint::is_standing(store[id.value].stage);
}

std::size_t TrapPointTable::armed() const {
  const std::lock_guard lock(state_->lock);
  return state_->store.standing().size();
}

bool TrapPointTable::any_armed() const {
  return armed() != 0 || is_copied_by_kprobe();
}

bool TrapPointTable::is_copied_by_kprobe() const {
  return state_->armed.is_copied_by_kprobe();
}

std::size_t TrapPointTable::jumps() const {
  const std::lock_guard lock(state_->lock);
  return state_->store.count_jumping();
}

std::size_t TrapPointTable::recording() const {
  const std::lock_guard lock(state_->lock);
  return state_->store.count_recording();
}

void TrapPointTable::use_jumps(FindStanding find, IsInside is_inside) {
  state_->jumps.use(std::move(find), std::move(is_inside));
}

void TrapPointTable::prepare_jumps() {
  const std::lock_guard lock(state_->lock);
  state_->jumps.prepare();
}

Result<void> TrapPointTable::find_standing(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->jumps.find_standing(machine);
}

bool TrapPointTable::has_displaced(GuestVirt at) const {
  const std::lock_guard lock(state_->lock);
  return state_->jumps.has_displaced(at);
}

Result<void> TrapPointTable::keep_in_place(vmm::PausedMachine& machine, GuestVirt at) {
  const std::lock_guard lock(state_->lock);
  return state_->jumps.keep_in_place(machine, at);
}

Result<void> TrapPointTable::arm(vmm::PausedMachine& machine) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  s.text.look_again();
  const auto arm = [&]() -> Result<void> {
    TRY(s.shim.check_mapped(machine));
    TRY(s.text.original().trouble());
    TRY(s.jumps.make_way(machine));
    return s.armed.arm(machine, s.armed.choose(),
                       [&s](const TrapPoint& point) { return s.jumps.may_jump(point); });
  };
  auto done = arm();
  s.text.drop_copies();
  s.jumps.end_pause();
  return done;
}

Result<void> TrapPointTable::disarm(vmm::PausedMachine& machine) {
  State& s = *state_;
  const std::lock_guard lock(s.lock);
  s.armed.end();
  return s.armed.restore(machine, [&s](const TrapPoint& point) { return !s.search.is_at(point); });
}

bool TrapPointTable::searches_faults() const {
  const std::lock_guard lock(state_->lock);
  return state_->search.is_armed();
}

Result<void> TrapPointTable::disarm_fault_search(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->armed.restore(machine, [](const TrapPoint&) { return true; });
}

Result<void> TrapPointTable::disarm_unused(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->armed.restore(machine, [](const TrapPoint& point) { return point.users == 0; });
}

void TrapPointTable::park_unused() {
  const std::lock_guard lock(state_->lock);
  state_->store.park_unused();
}

void TrapPointTable::park_restored() {
  const std::lock_guard lock(state_->lock);
  state_->store.park_all();
}

bool TrapPointTable::stands_in_function(GuestVirt at) const {
  const std::lock_guard lock(state_->lock);
  const TrapPointStore& store = state_->store;
  return std::ranges::any_of(
      store.standing(), [&](TrapPointStore::Id id) { return store[id].is_in_function_of(at); });
}

Result<bool> TrapPointTable::step_aside(vmm::PausedMachine& machine, GuestVirt at) {
  const std::lock_guard lock(state_->lock);
  return state_->armed.step_aside(machine, at);
}

Result<bool> TrapPointTable::step_back(vmm::PausedMachine& machine) {
  const std::lock_guard lock(state_->lock);
  return state_->armed.step_back(machine);
}

Result<void> TrapPointTable::rest(vmm::PausedMachine& machine, GuestVirt at) {
  const std::lock_guard lock(state_->lock);
  return state_->armed.rest(machine, at);
}

Result<bool> TrapPointTable::wake(vmm::PausedMachine& machine, GuestVirt at) {
  const std::lock_guard lock(state_->lock);
  return state_->armed.wake(machine, at);
}

bool TrapPointTable::stands_at(GuestVirt at) const {
  const std::lock_guard lock(state_->lock);
  const auto id = state_->store.find(at);
  return id && TrapPoint::is_standing(state_->store[*id].stage);
}

void TrapPointTable::drop_in(const guest_linux::Kernel::AddressRange& range) {
  const std::lock_guard lock(state_->lock);
  state_->store.drop_in(range);
}

std::vector<GuestVirt> TrapPointTable::drop_changed() {
  const std::unique_lock lock(state_->lock, std::try_to_lock);
  if (!lock) return {};  // the thread that changes them looks, too
  state_->armed.drop_changed();
  return state_->store.take_dropped();
}

}  // namespace ringside::providers
