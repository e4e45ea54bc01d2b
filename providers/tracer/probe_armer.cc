// In this file, top to bottom: making points, arming, restoring.
#include "providers/tracer/probe_armer.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>
#include <utility>

#include "vmm/base/end_order.h"

namespace ringside::providers {
namespace {

using Clock = std::chrono::steady_clock;

/// How often the guest is stopped, and let go on for a moment, to find it while it is not changing
/// its own text.
constexpr unsigned kQuietTries = 2000;
constexpr auto kQuietWait = std::chrono::milliseconds(5);
/// The same while a vCPU is kept: so many tries until it may be in the way itself, and in all.
constexpr unsigned kKeptTries = 10, kMostKeptTries = 200;
/// How often the guest is let go on until it is known who stands where a jump is to be. A vCPU that
/// is interrupted, or changes from a task to the next, does not tell.
constexpr unsigned kStandingTries = 50;
/// A vCPU that runs a virtual machine of the guest's own shows that one's page tables. It comes
/// back to the kernel with the next interrupt.
constexpr unsigned kKernelTries = 50;
/// For late traps. The shim knows the points a while longer when some traps have no answer by then.
constexpr auto kLateTraps = std::chrono::seconds(2);
constexpr auto kLateWait = std::chrono::microseconds(100);

}  // namespace

Result<void> ProbeArmer::bind(const ProbeSite& site, const Binding& binding) {
  if (is_without_) {
    return fail(ErrorCode::Unsupported,
                "no probe of the kernel's code was enabled when tracing began, so none can be now: "
                "begin with one");
  }
  if (table_.is_dropped(site.address())) bound_.lost.push_back(site.address());
  TRY(table_.add(site));
  bound_.added.push_back({site.address(), binding});
  return {};
}

Result<void> ProbeArmer::bind_in_file(const FilePlace& place, const Binding& binding) {
  if (is_without_) {
    return fail(ErrorCode::Unsupported,
                "no probe of a process was enabled when tracing began, so none can be now: begin "
                "with one");
  }
  bound_.added.push_back({TRY(users_.add(place.inode, place.offset, place.semaphore)), binding});
  return {};
}

void ProbeArmer::forget(std::span<const dif::ProbeId> probes) {
  bound_.removed.insert(bound_.removed.end(), probes.begin(), probes.end());
}

DispatchTable::Change ProbeArmer::take_first() {
  is_without_ = table_.size() == 0 && users_.size() == 0;
  return std::exchange(bound_, {});
}

Result<vmm::PausedMachine> ProbeArmer::pause_while_text_is_quiet(WaitFor wait) {
  using Changes = guest_linux::KprobeTable::Changes;
  table_.prepare_jumps();
  unsigned standing_tries = 0;
  const bool kept = wait == WaitFor::QuietKprobes;
  for (unsigned n = 0; n < (kept ? kMostKeptTries : kQuietTries); ++n) {
    if (n > 0) {
      if (!kept && end_order() != EndOrder::None) {
        return fail(
            ErrorCode::Io,
            "interrupted while the guest's kernel changes its own code: no probe was placed");
      }
      std::this_thread::sleep_for(kQuietWait);
    }
    vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
    if (n < kKernelTries && !shim_.check_mapped(paused)) continue;  // arm() says what is wrong
    const Changes looked_for = kept && n >= kKeptTries ? Changes::OfKprobes : Changes::OfText;
    if (table_.is_text_changing(paused, looked_for)) continue;
    if (table_.find_standing(paused) || ++standing_tries == kStandingTries) return paused;
  }
  return fail(ErrorCode::MachineGone,
              "the guest's kernel never stops changing its own code: no probe can be placed");
}

/// Some time before the int3s that lead there.
Result<void> ProbeArmer::write_user_slots() {
  if (users_.size() == 0) return {};
  {
    auto paused = TRY(vmm::PausedMachine::pause(machine_));
    TRY(users_.write_slots(paused));
  }
  std::this_thread::sleep_for(kQuietWait);
  return {};
}

Result<void> ProbeArmer::arm() {
  TRY(write_user_slots());
  return vmm::in_whole_pause([this] { return pause_while_text_is_quiet(); },
                             [this](vmm::PausedMachine& paused) { return arm_all(paused); });
}

/// Those of the kernel first: some of them watch over the files.
Result<void> ProbeArmer::arm_all(vmm::PausedMachine& machine) {
  TRY(table_.arm(machine));
  return users_.arm(machine);
}

Result<void> ProbeArmer::disarm(vmm::PausedMachine& machine, Restore what) {
  TRY(users_.disarm(machine, what));
  return what == Restore::All ? table_.disarm(machine) : table_.disarm_unused(machine);
}

Result<void> ProbeArmer::arm_added(TrapDispatcher& dispatcher, WaitFor wait) {
  if (bound_.added.empty()) return {};
  const auto written = write_user_slots();
  auto paused = written ? pause_while_text_is_quiet(wait) : tl::make_unexpected(written.error());
  auto armed = paused ? arm_all(*paused) : tl::make_unexpected(paused.error());
  if (armed) {
    dispatcher.publish(std::exchange(bound_, {}));
    return {};
  }
  if (paused) {
    // Before anybody can run into those that were written.
    release_bound();
    (void)disarm(*paused, Restore::Unused);
  }
  abandon_added();
  return armed;
}

void ProbeArmer::abandon_added() {
  release_bound();
  table_.park_unused();
}

void ProbeArmer::release_bound() {
  for (const auto& bound : std::exchange(bound_, {}).added) release(bound.at);
}

void ProbeArmer::release(GuestVirt place) {
  users_.owns(place) ? users_.release(place) : table_.release(place);
}

void ProbeArmer::release(std::span<const GuestVirt> places) {
  for (const GuestVirt place : places) release(place);
}

Result<void> ProbeArmer::remove(TrapDispatcher& dispatcher, std::span<const dif::ProbeId> probes) {
  const std::vector<GuestVirt> places = dispatcher.places_of(probes);
  if (places.empty()) return {};
  dispatcher.publish({.removed = {probes.begin(), probes.end()}});
  release(places);
  const auto late = TRY(restore(Restore::Unused));
  const auto deadline = Clock::now() + kLateTraps;
  while (!shim_.have_answers(late)) {
    if (Clock::now() > deadline) return {};
    std::this_thread::sleep_for(kLateWait);
  }
  table_.park_unused();
  return {};
}

Result<void> ProbeArmer::disarm() {
  if (!table_.any_armed() && !users_.any_armed()) return {};
  TRY(restore(Restore::All));
  return {};
}

/// The traps that were under way then; none where the machine is gone, and the int3s with it.
Result<vmm::TrapsUnderWay> ProbeArmer::try_restore(Restore what) {
  auto paused = vmm::PausedMachine::pause(machine_);
  if (paused) {
    TRY(disarm(*paused, what));
    return shim_.under_way();
  }
  if (paused.error().code == ErrorCode::MachineGone) return vmm::TrapsUnderWay();
  return fail(paused.error().code,
              fmt::format("the breakpoints stay in the guest: {}", paused.error().message));
}

Result<vmm::TrapsUnderWay> ProbeArmer::restore(Restore what) {
  auto done = try_restore(what);
  for (unsigned tries = 1; !done && tries < kKernelTries; ++tries) {
    if (done.error().code == ErrorCode::MachineGone) break;
    // Where the guest has left its kernel it never comes back.
    if (shim_.state() != vmm::ShimState::There) break;
    std::this_thread::sleep_for(kQuietWait);
    done = try_restore(what);
  }
  return done;
}

}  // namespace ringside::providers
